//! Changes whose record cannot be written are refused: exit code 3 of a command, 503 over HTTP.

use serde_json::{Value, json};

use super::support::Gate;

const BLOCKING: &str = "CREATE TRIGGER blocking BEFORE INSERT ON rate_limit_history \
                        BEGIN SELECT RAISE(ABORT, 'no room'); END";

fn lists(gate: &Gate, of: &[&str]) -> Vec<Value> {
    of.iter().map(|of| gate.json(&[of, "list"])[of].clone()).collect()
}

#[test]
fn a_command_that_cannot_be_recorded_changes_nothing() {
    let gate = Gate::database();
    let all = ["rules", "tokens", "callers"];
    let before = lists(&gate, &all);
    gate.sql(BLOCKING);
    let commands: [&[&str]; 3] = [
        &["rules", "update", "1", "--burst-capacity", "77"],
        &["tokens", "create", "deploy", "--role", "admin"],
        &["callers", "create", "checkout", "--may", "check"],
    ];
    for command in commands {
        let message = gate.refused(3, command);
        for words in ["the history cannot be written", "nothing was changed", "no room"] {
            assert!(message.contains(words), "{command:?}: {message}");
        }
    }
    assert_eq!(lists(&gate, &all), before);
}

#[test]
fn a_request_that_cannot_be_recorded_changes_nothing() {
    let gate = Gate::server();
    let before = lists(&gate, &["rules", "overrides"]);
    gate.sql(BLOCKING);
    let server = gate.server_of();
    let blocked = json!({"rule_id": 1, "subject": "42", "blocked": true});
    let requests = [
        ("PATCH", "/v1/rules/1", json!({"burst_capacity": 77})),
        ("POST", "/v1/overrides", blocked),
        ("POST", "/v1/callers", json!({"name": "checkout", "rights": ["check"]})),
        ("POST", "/v1/buckets/1/42/grant", json!({"tokens": 1})),
    ];
    for (method, path, body) in requests {
        let answer = server.request(method, path, &[], &body.to_string());
        assert_eq!(answer.status, 503, "{path}: {answer:?}");
        assert!(answer.body.contains("nothing was changed"), "{path}: {answer:?}");
        assert!(!answer.body.contains("no room"), "the cause is for the log: {answer:?}");
    }
    server.wait_for_log("change refused: it cannot be recorded in the history");
    assert_eq!(lists(&gate, &["rules", "overrides"]), before);
    let callers = server.get("/v1/callers");
    assert!(callers.status == 200 && !callers.body.contains("checkout"), "{callers:?}");
}
