//! Commands of the limiter, in both versions of the protocol.

use serde_json::json;

use crate::common::{Launch, on_every_store};
use crate::resp::support::{Reply, connect, serve};

/// One rule for users and one for addresses.
const RULES: &str = r#"
[[rule]]
rule_id = 1
key_pattern = "user:{user_id}"
tokens = 1
period = "1h"
burst_capacity = 2

[[rule]]
rule_id = 2
key_pattern = "ip:{ip}"
tokens = 1
period = "1h"
burst_capacity = 5
"#;

fn with_rules() -> Launch {
    Launch::serve(&["--rules", "r.toml", "--store-budget-ms", "5000"])
        .file("r.toml", RULES)
        .with_resp()
}

#[test]
fn cl_throttle_counts_as_redis_cell_does() {
    on_every_store(with_rules, |server| {
        let mut redis = connect(server);
        for remaining in (0..=15).rev() {
            let numbers = redis.numbers("CL.THROTTLE user:1 15 30 3600");
            assert_eq!(numbers[..4], [0, 16, remaining, -1]);
        }
        let numbers = redis.numbers("cl.throttle user:1 15 30 3600 1");
        assert_eq!(numbers[..3], [1, 16, 0], "{numbers:?}");
        assert!((110..=120).contains(&numbers[3]), "{numbers:?}");
        assert!((1910..=1920).contains(&numbers[4]), "{numbers:?}");
        // A peek charges nothing, and a cost above the capacity is denied without a retry time.
        assert_eq!(redis.numbers("CL.THROTTLE user:2 15 30 60 0"), [0, 16, 16, -1, 0]);
        assert_eq!(redis.numbers("CL.THROTTLE user:2 15 30 60 17"), [1, 16, 16, -1, 0]);
        assert_eq!(redis.numbers("CL.THROTTLE user:2 15 30 60 16"), [0, 16, 0, -1, 32]);
    });
}

#[test]
fn a_denial_is_worth_a_second_at_least() {
    let server = serve(&[]);
    let mut redis = connect(&server);
    let command = crate::resp::support::words("CL.THROTTLE fast 0 5000 1 1");
    redis.send(&command.repeat(50));
    let denied = (0..50).map(|_| redis.reply().numbers()).find(|numbers| numbers[0] == 1);
    assert_eq!(denied.unwrap()[3..], [1, 1]);
}

#[test]
fn keys_are_those_of_take() {
    let server = serve(&[]);
    let mut redis = connect(&server);
    let body = json!({ "key": "same", "capacity": 3, "refill_rate": 1, "refill_interval": 3600, "cost": 2 });
    let taken = server.post_json("/v1/take", &body.to_string()).json();
    assert_eq!(taken["remaining"], 1);
    assert_eq!(redis.numbers("CL.THROTTLE same 2 1 3600")[..3], [0, 3, 0]);
    assert_eq!(redis.numbers("SG.TAKE same 3 1 3600000")[..3], [0, 3, 0]);
}

/// One key has one quota, as in docs/reference/resp.md.
#[test]
fn a_smaller_quota_forgets_what_it_cannot_hold() {
    let server = serve(&[]);
    let mut redis = connect(&server);
    assert_eq!(redis.numbers("CL.THROTTLE k 9 10 86400 9")[..3], [0, 10, 1]);
    // A larger capacity keeps what was spent,
    assert_eq!(redis.numbers("CL.THROTTLE k 19 20 86400 0")[..3], [0, 20, 11]);
    // and so does a smaller one, up to its capacity.
    assert_eq!(redis.numbers("CL.THROTTLE k 0 1 86400")[..3], [1, 1, 0]);
    assert_eq!(redis.numbers("CL.THROTTLE k 9 10 86400 0")[..3], [0, 10, 9]);
}

#[test]
fn any_bytes_are_a_key() {
    on_every_store(with_rules, |server| {
        let mut redis = connect(server);
        for key in [&b"\xff\x00\r\n"[..], b"", b"a key", "\u{1f980}".as_bytes()] {
            let arguments = [b"CL.THROTTLE", key, b"0", b"1", b"3600"];
            assert_eq!(redis.ask_all(&arguments).numbers()[0], 0, "{key:?}");
            assert_eq!(redis.ask_all(&arguments).numbers()[0], 1, "{key:?}");
        }
    });
}

#[test]
fn wrong_numbers_are_errors() {
    let server = serve(&[]);
    let mut redis = connect(&server);
    let usage = "ERR wrong number of arguments for 'cl.throttle' command: \
                 CL.THROTTLE key max_burst count_per_period period [quantity]";
    for (line, error) in [
        ("CL.THROTTLE", usage),
        ("CL.THROTTLE k 1 1", usage),
        ("CL.THROTTLE k 1 1 1 1 1", usage),
        ("CL.THROTTLE k -1 1 1", "ERR max_burst: is negative"),
        ("CL.THROTTLE k x 1 1", "ERR max_burst: is not a whole number"),
        ("CL.THROTTLE k 1 -1 1", "ERR count_per_period: is negative"),
        ("CL.THROTTLE k 1 1 1.5", "ERR period: is not a whole number"),
        ("CL.THROTTLE k 1 1 1 -5", "ERR quantity: is negative"),
        ("CL.THROTTLE k 1 1 9223372036854775808", "ERR period: is too large"),
        (
            "SG.TAKE k 1 1",
            "ERR wrong number of arguments for 'sg.take' command: SG.TAKE key \
          capacity tokens period_ms [cost] [ALGORITHM name] [REFILL name] [MAX_WAIT ms]",
        ),
        ("SG.TAKE k 1 1 1000 REFILL interval refill continuous", "ERR refill: is duplicated"),
        ("SG.TAKE k 1 1 1000 COLOUR red", "ERR COLOUR: must be one of ALGORITHM, REFILL, MAX_WAIT"),
        ("CL.THROTTLE k 1 0 1", "ERR count_per_period: a rate of zero never refills"),
        ("CL.THROTTLE k 1 1 0", "ERR period: the period must be longer than zero"),
        ("SG.TAKE k 0 1 1000", "ERR capacity: a capacity of zero grants nothing"),
        ("SG.CHECK a/b 1", "ERR a/b: is not a valid attribute name"),
        (
            "DEL k",
            "ERR unknown command 'DEL': read and delete buckets over HTTP, at \
             /v1/buckets/{key}",
        ),
        ("SG.CHECK user_id 1 user_id 2", "ERR user_id: is duplicated"),
        ("SG.CHECK tenant 1 tenant 2", "ERR tenant: is duplicated"),
        ("SG.CHECK ip 300.1.1.1", "ERR ip: is not an address"),
        ("SG.CHECK cost -1", "ERR cost: is negative"),
        (
            "SG.CHECK user_id",
            "ERR wrong number of arguments for 'sg.check' command: SG.CHECK name \
          value [name value ...]",
        ),
    ] {
        assert_eq!(redis.error(line), error, "{line}");
    }
    for line in [
        "CL.THROTTLE k 9223372036854775807 1 1",
        "CL.THROTTLE k 1 9223372036854775807 1",
        "CL.THROTTLE k 1 1 9223372036854775807",
        "SG.TAKE k 1 1 0",
        "SG.TAKE k 1 1 1000 ALGORITHM nothing",
        "SG.TAKE k 1 1 1000 MAX_WAIT 5",
    ] {
        assert!(redis.error(line).starts_with("ERR "), "{line}");
    }
    assert!(matches!(redis.ask_all(&[&b"SG.CHECK"[..], b"user_id", b"\xff"]), Reply::Error(_)));
    // The errors neither ended the connection nor charged anything.
    assert_eq!(redis.numbers("CL.THROTTLE k 1 1 3600")[..3], [0, 2, 1]);
}

#[test]
fn sg_take_answers_in_milliseconds() {
    on_every_store(with_rules, |server| {
        let mut redis = connect(server);
        assert_eq!(redis.numbers("SG.TAKE a 3 1 3600000 2"), [1, 3, 1, 0, 7_200_000, 0, 0]);
        let denied = redis.numbers("sg.take a 3 1 3600000 2");
        assert_eq!(denied[..3], [0, 3, 1]);
        assert!((3_590_000..=3_600_000).contains(&denied[3]), "{denied:?}");
        assert_eq!(redis.numbers("SG.TAKE a 3 1 3600000 4")[3], -1);
        let window = redis.numbers("SG.TAKE w 0 2 3600000 ALGORITHM FIXED_WINDOW");
        assert_eq!(window[..4], [1, 2, 1, 0], "a window's capacity is its tokens");
        let line = "SG.TAKE q 4 1 1000 1 ALGORITHM leaky_bucket MAX_WAIT 3000";
        assert_eq!(redis.numbers(line)[5], 0);
        let delay_ms = redis.numbers(line)[5];
        assert!((1..=1000).contains(&delay_ms), "{delay_ms}");

        redis.ask("HELLO 3");
        let taken = redis.ask("SG.TAKE b 3 1 3600000 REFILL interval");
        assert_eq!(*taken.get("allowed"), Reply::Boolean(true));
        assert_eq!(*taken.get("limit"), Reply::Integer(3));
        assert_eq!(*taken.get("remaining"), Reply::Integer(2));
        assert_eq!(*taken.get("retry_after_ms"), Reply::Integer(0));
        assert_eq!(*taken.get("degraded"), Reply::Boolean(false));
        // Commands of other servers have the same reply in both versions.
        assert_eq!(redis.numbers("CL.THROTTLE b 2 1 3600")[..2], [0, 3]);
    });
}

#[test]
fn sg_check_asks_the_rules() {
    on_every_store(with_rules, |server| {
        let mut redis = connect(server);
        let Reply::Array(allowed) = redis.ask("SG.CHECK user_id 42 ip 203.0.113.9 cost 2") else {
            panic!("no array");
        };
        assert_eq!(allowed.len(), 10);
        assert_eq!(allowed[..4], [1, 2, 0, 0].map(Reply::Integer));
        assert_eq!(allowed[5..7], [0, 0].map(Reply::Integer));
        assert_eq!(allowed[7..], [Reply::Null, Reply::Null, Reply::Null]);

        redis.ask("HELLO 3");
        // The same address in another spelling; a denial by one tier charges none.
        let denied = redis.ask("sg.check user_id 42 ip ::ffff:203.0.113.9");
        assert_eq!(*denied.get("allowed"), Reply::Boolean(false));
        assert_eq!(denied.get("violated_tier").text(), "user");
        assert_eq!(denied.get("violated_rule").text(), "user:{user_id}");
        assert_eq!(*denied.get("rule_id"), Reply::Integer(1));
        let ip = redis.ask("SG.CHECK ip 203.0.113.9 tenant acme");
        assert_eq!(*ip.get("remaining"), Reply::Integer(2));
        // No rule applies.
        let none = redis.ask("SG.CHECK endpoint /");
        assert_eq!(*none.get("allowed"), Reply::Boolean(true));
        assert_eq!(*none.get("limit"), Reply::Null);
        // HTTP uses the same buckets.
        let request = json!({ "user_id": "42", "cost": 0 });
        let verdict = server.post_json("/v1/check", &request.to_string()).json();
        assert_eq!(verdict["remaining"], 0);
    });
}

#[test]
fn commands_are_counted() {
    let server = serve(&[]);
    let mut redis = connect(&server);
    redis.ask("CL.THROTTLE k 0 1 3600");
    redis.ask("CL.THROTTLE k 0 1 3600");
    redis.error("CL.THROTTLE k");
    redis.ask("SG.TAKE t 1 1 1000");
    redis.ask("SG.CHECK user_id 1");
    redis.error("GET k");
    redis.ask("PING");
    let metrics = server.get("/metrics").body;
    let count = |line: &str| {
        let found = metrics.lines().find_map(|found| found.strip_prefix(line));
        found.unwrap_or_else(|| panic!("no {line} in {metrics}")).trim().parse::<u64>().unwrap()
    };
    let commands = |command, outcome| {
        let labels = format!("{{command=\"{command}\",outcome=\"{outcome}\"}}");
        count(&format!("sluicegate_resp_commands_total{labels}"))
    };
    assert_eq!(commands("cl.throttle", "ok"), 1);
    assert_eq!(commands("cl.throttle", "denied"), 1);
    assert_eq!(commands("cl.throttle", "error"), 1);
    assert_eq!(commands("sg.take", "ok"), 1);
    assert_eq!(commands("sg.check", "ok"), 1);
    assert_eq!(commands("other", "error"), 1);
    assert_eq!(commands("other", "ok"), 1);
    assert_eq!(count("sluicegate_decision_duration_seconds_count"), 4);
}
