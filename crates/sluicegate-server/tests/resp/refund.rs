//! `SG.REFUND`: figures, errors, and only for callers with the right.

use serde_json::json;

use crate::common::{Launch, Server, on_every_store};
use crate::resp::support::{Redis, Reply, connect};

fn launch() -> Launch {
    Launch::serve(&["--store-budget-ms", "5000"]).with_resp()
}

/// Connection of a caller with these rights.
fn caller(server: &Server, name: &str, rights: &[&str], namespace: Option<&str>) -> Redis {
    let caller = json!({"name": name, "rights": rights, "namespace": namespace});
    let response = server.post_json("/v1/callers", &caller.to_string());
    assert_eq!(response.status, 201, "{response:?}");
    let token = response.json()["token"].as_str().unwrap().to_owned();
    let mut redis = connect(server);
    assert_eq!(redis.ask(&format!("AUTH {name} {token}")), Reply::Status("OK".into()));
    redis
}

#[test]
fn tokens_come_back_up_to_full_in_the_namespace_of_the_caller() {
    on_every_store(launch, |server| {
        let mut one = caller(server, "one", &["take", "refund"], Some("team-a"));
        let mut other = caller(server, "other", &["take", "refund"], None);
        assert_eq!(one.numbers("SG.TAKE k 10 1 86400000 8")[..4], [1, 10, 2, 0]);
        let numbers = one.numbers("SG.REFUND k 5 10 1 86400000");
        assert_eq!(numbers[..4], [1, 10, 7, 0]);
        assert_eq!(numbers[5..], [0, 0]);
        assert_eq!(other.numbers("SG.REFUND k 5 10 1 86400000")[2], 10);
        assert_eq!(one.numbers("SG.TAKE k 10 1 86400000 0")[2], 7);
        assert_eq!(one.numbers("sg.refund k 9223372036854775807 10 1 86400000")[2..5], [10, 0, 0]);

        // A cached denial does not outlive the refund; commands of a pipeline are done in order.
        while one.numbers("SG.TAKE d 2 1 86400000")[0] == 1 {}
        let pipeline = ["SG.TAKE d 2 1 86400000", "SG.REFUND d 1 2 1 86400000"];
        for command in pipeline.iter().chain(&pipeline[..1]) {
            one.send(&crate::resp::support::words(command));
        }
        let allowed: Vec<_> = (0..3).map(|_| one.reply().numbers()[0]).collect();
        assert_eq!(allowed, [0, 1, 1]);

        let window = "5 86400000 ALGORITHM sliding_window";
        assert_eq!(one.numbers(&format!("SG.TAKE w 5 {}", window.replace(" AL", " 5 AL")))[2], 0);
        assert_eq!(one.numbers(&format!("SG.REFUND w 3 5 {window}"))[2], 3);
        let metrics = server.get("/metrics").body;
        assert!(metrics.contains(r#"sluicegate_refunds_total{door="resp"} 5"#), "{metrics}");
        let commands = r#"sluicegate_resp_commands_total{command="sg.refund",outcome="ok"} 5"#;
        assert!(metrics.contains(commands), "{metrics}");
    });
}

#[test]
fn errors_name_the_argument() {
    let server = launch().start();
    let mut redis = caller(&server, "one", &["refund"], None);
    for (line, error) in [
        ("SG.REFUND k 1 10 1", "ERR wrong number of arguments for 'sg.refund' command"),
        ("SG.REFUND k 0 10 1 1000", "ERR amount: must be at least 1"),
        ("SG.REFUND k -1 10 1 1000", "ERR amount: is negative"),
        ("SG.REFUND k 1.5 10 1 1000", "ERR amount: is not a whole number"),
        ("SG.REFUND k 9223372036854775808 10 1 1000", "ERR amount: is too large"),
        ("SG.REFUND k 1 x 1 1000", "ERR capacity: is not a whole number"),
        ("SG.REFUND k 1 10 x 1000", "ERR tokens: is not a whole number"),
        ("SG.REFUND k 1 10 1 x", "ERR period_ms: is not a whole number"),
        ("SG.REFUND k 1 10 1 1000 5", "ERR wrong number of arguments for 'sg.refund' command"),
        ("SG.REFUND k 1 10 1 1000 REFILL", "ERR wrong number of arguments for 'sg.refund' command"),
        ("SG.REFUND k 1 10 1 1000 COST 5", "ERR COST: must be one of ALGORITHM, REFILL, MAX_WAIT"),
    ] {
        let refused = redis.error(line);
        assert!(refused.starts_with(error), "{line}: {refused}");
    }
    let slow = redis.error("SG.REFUND k 1 1000 1 86400000");
    assert!(slow.starts_with("ERR capacity, tokens and period_ms: would take"), "{slow}");
    let long = redis.error(&format!("SG.REFUND {} 1 10 1 1000", "k".repeat(2000)));
    assert!(long.starts_with("ERR key: has more than"), "{long}");
    // The connection lives on.
    assert_eq!(redis.numbers("SG.REFUND k 1 10 1 1000")[2], 10);
}

#[test]
fn only_callers_with_the_right_refund() {
    let server = launch().start();
    let refund = "SG.REFUND k 1 10 1 86400000";
    let refused = connect(&server).error(refund);
    assert!(refused.starts_with("NOAUTH 'sg.refund' needs a caller"), "{refused}");
    let mut taker = caller(&server, "taker", &["take", "check"], None);
    assert_eq!(taker.numbers("SG.TAKE k 10 1 86400000")[2], 9);
    let refused = taker.error(refund);
    let expected = "NOPERM this caller may not run 'sg.refund': it lacks the right refund";
    assert_eq!(refused, expected);
    assert_eq!(taker.numbers("SG.TAKE k 10 1 86400000")[2], 8);
}
