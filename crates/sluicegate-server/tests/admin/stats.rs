//! Decisions of the last minutes, by rule.

use serde_json::{Value, json};

use crate::common::{Launch, Server};

const RULES: &str = r#"
[[rule]]
rule_id = 1
key_pattern = "user:{user_id}"
plan = "free"
tokens = 5
period = "1h"

[[rule]]
rule_id = 2
key_pattern = "ip:{ip}"
tokens = 2
period = "1h"
mode = "shadow"
"#;

fn rule(stats: &Value, rule_id: u64) -> &Value {
    stats["rules"].as_array().unwrap().iter().find(|rule| rule["rule_id"] == rule_id).unwrap()
}

#[test]
fn decisions_are_counted_by_rule_at_once() {
    let server = Launch::serve(&["--rules", "rules.toml"]).file("rules.toml", RULES).start();
    let body = json!({"user_id": "1", "plan": "free", "ip": "203.0.113.9"}).to_string();
    for _ in 0..8 {
        server.post_json("/v1/check", &body);
    }
    server.post_json("/v1/check", &json!({"user_id": "1", "plan": "free", "cost": 6}).to_string());
    server.post_json("/v1/take", r#"{"key": "k", "capacity": 1, "refill_rate": 1}"#);
    let stats = server.get("/v1/stats").json();
    assert_eq!(stats["minutes"], 15);
    assert!(stats["now"].as_str().unwrap().ends_with('Z'), "{stats}");
    let (enforced, shadow) = (rule(&stats, 1), rule(&stats, 2));
    for (field, expected) in [
        ("key_pattern", json!("user:{user_id}")),
        ("plan", json!("free")),
        ("mode", json!("enforce")),
        ("granted", json!(5)),
        ("denied", json!(3)),
        ("never", json!(1)),
        ("last_minute", json!({"granted": 5, "denied": 3, "never": 1})),
        ("last_5_minutes", json!({"granted": 5, "denied": 3, "never": 1})),
    ] {
        assert_eq!(enforced[field], expected, "{field} of {enforced}");
    }
    let per_minute = enforced["per_minute"].as_array().unwrap();
    assert_eq!((per_minute.len(), &per_minute[14]), (15, &enforced["last_minute"]));
    assert_eq!((&shadow["mode"], &shadow["plan"]), (&json!("shadow"), &Value::Null));
    assert!(shadow["denied"].as_u64().unwrap() > 0, "{shadow}");
    assert_eq!(stats["take"]["granted"], 1);
    let audit = &stats["audit"];
    let figure = |name: &str| audit[name].as_u64().unwrap();
    assert_eq!(figure("noted"), figure("written") + figure("dropped") + figure("waiting"));
    assert!(figure("noted") >= 4, "{audit}");
}

#[test]
fn rules_that_vanish_are_shown_no_more() {
    let server = Launch::serve(&["--rules", "rules.toml"]).file("rules.toml", RULES).start();
    server.post_json("/v1/check", &json!({"user_id": "1", "plan": "free"}).to_string());
    assert_eq!(rule(&server.get("/v1/stats").json(), 1)["granted"], 1);
    let only_the_second = &RULES[RULES.rfind("[[rule]]").unwrap()..];
    std::fs::write(server.folder().join("rules.toml"), only_the_second).unwrap();
    server.wait_for_log("rules reloaded");
    let stats = server.get("/v1/stats").json();
    assert_eq!(stats["rules"].as_array().unwrap().len(), 1, "{stats}");
    assert_eq!(rule(&stats, 2)["granted"], 0);
}

#[test]
fn parameters_are_refused() {
    let server = Launch::serve(&[]).start();
    assert_eq!(server.get("/v1/stats?minutes=5").status, 400);
}

#[test]
fn answers_of_the_administration_are_neither_guessed_at_nor_kept() {
    let server = Server::start(&[]);
    for path in
        ["/v1/stats", "/v1/rules", "/v1/rules/1", "/v1/violations?format=csv", "/v1/rules/99"]
    {
        let response = server.get(path);
        assert_eq!(response.header("x-content-type-options"), Some("nosniff"), "{path}");
        assert_eq!(response.header("cache-control"), Some("no-store"), "{path}");
    }
}
