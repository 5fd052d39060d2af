//! Floods of keys.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use serde_json::{Value, json};

use crate::common::{Launch, PATIENCE, Server, eventually, now};
use crate::sockets::{metric, sign_in};

const MAX_BUCKETS: usize = 4000;
/// A quarter of all.
const TAKE_BUCKETS_MAX: usize = 1000;
/// Half of the rest, divided by two rules with placeholders.
const RESERVE: usize = 750;
/// Commands sent before their replies are read.
const PIPELINE: usize = 200;

const RULES: &str = r#"
    [[rule]]
    rule_id = 1
    key_pattern = "user:{user_id}"
    tokens = 10
    period = "1d"

    [[rule]]
    rule_id = 2
    key_pattern = "ip:{ip}"
    tokens = 10
    period = "1d"

    [[rule]]
    rule_id = 3
    key_pattern = "global"
    tokens = 1000000
    period = "1s"
"#;

const NO_ROOM: &str = "the store has no room for new keys of these rules";

fn launch() -> Launch {
    let max_buckets = MAX_BUCKETS.to_string();
    Launch::serve(&["--rules", "rules.toml", "--store-max-buckets", &max_buckets])
        .file("rules.toml", RULES)
        .with_resp()
}

/// Sends commands over one connection, reads all replies, and returns the first integer of each.
fn pipeline(server: &Server, commands: impl Iterator<Item = String>) -> Vec<i64> {
    let mut stream = TcpStream::connect_timeout(&server.address_of("resp"), PATIENCE).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    sign_in(&mut stream);
    let mut stream = BufReader::new(stream);
    let (mut firsts, commands) = (Vec::new(), commands.collect::<Vec<_>>());
    let (started, bytes) = (now(), commands.iter().map(String::len).sum::<usize>());
    for commands in commands.chunks(PIPELINE) {
        let input = commands.iter().map(|command| format!("{command}\r\n")).collect::<String>();
        stream.get_mut().write_all(format!("{input}PING\r\n").as_bytes()).unwrap();
        let mut is_first = false;
        for line in stream.by_ref().lines().map(Result::unwrap) {
            match line.split_at(1) {
                ("*", _) => is_first = true,
                (":", number) if is_first => {
                    firsts.push(number.parse().unwrap());
                    is_first = false;
                }
                ("-", error) => panic!("{error}"),
                ("+", "PONG") => break,
                _ => {}
            }
        }
    }
    eprintln!("  {} commands, {bytes} bytes, {:?}", commands.len(), now() - started);
    firsts
}

fn granted(replies: &[i64]) -> usize {
    replies.iter().filter(|allowed| **allowed == 1).count()
}

fn check(server: &Server, request: &Value) -> Value {
    let response = server.post_json("/v1/check", &request.to_string());
    assert_eq!(response.status, 200, "{response:?}");
    response.json()
}

/// One line of the log, and no more than one, names these rules; `/readyz?verbose` and the metrics tell it too.
fn is_told(server: &Server, rules: &str) {
    let line = server.wait_for_line(|line| line.contains(NO_ROOM));
    eprintln!("  {line}");
    assert!(line.contains(&format!("\"rules\":\"{rules}\"")), "{line}");
    let ready = server.get("/readyz?verbose");
    assert_eq!(ready.status, 200);
    assert!(ready.body.contains("[~]store degraded"), "{}", ready.body);
    assert!(ready.body.contains(&format!("of rules {rules}\n")), "{}", ready.body);
    assert_eq!(server.stderr().matches(NO_ROOM).count(), 1);
}

/// Keys without a rule that stay for a year, and then thousands of quotas: users, addresses and the rule for all requests
/// have their buckets, known and new ones.
#[test]
fn a01_a_flood_of_keys_without_a_rule_denies_no_subject_of_a_rule() {
    let server = launch().start();
    for user in ["known", "exhausted"] {
        assert_eq!(check(&server, &json!({"user_id": user, "ip": "192.0.2.1"}))["allowed"], true);
    }
    let nine = json!({"user_id": "exhausted", "cost": 9});
    assert_eq!(check(&server, &nine)["allowed"], true);

    let year_ms = 365_u64 * 86_400_000;
    let keys = pipeline(&server, (0..6000).map(|key| format!("SG.TAKE k{key} 1 1 {year_ms}")));
    assert_eq!(granted(&keys), TAKE_BUCKETS_MAX + 1);
    let quotas = pipeline(
        &server,
        (0..6000).map(|key| format!("SG.TAKE q{key} {} 1 86400000", 2 + key % 365)),
    );
    let quotas = granted(&quotas)
        + granted(&pipeline(
            &server,
            (0..6000).map(|key| format!("SG.TAKE p{key} 1 1 {}", year_ms - 1 - key)),
        ));
    assert!(quotas < 12_000, "overflow buckets without a rule are bounded: {quotas}");

    let known = check(&server, &json!({"user_id": "known", "ip": "192.0.2.1"}));
    assert_eq!(known["allowed"], true, "{known}");
    assert_eq!(check(&server, &json!({"user_id": "exhausted"}))["allowed"], false);
    let global = check(&server, &json!({}));
    assert_eq!((&global["allowed"], &global["limit"]), (&json!(true), &json!(1_000_000)));
    for user in 0..100 {
        let new = check(&server, &json!({"user_id": format!("new {user}")}));
        assert_eq!((&new["allowed"], &new["remaining"]), (&json!(true), &json!(9)), "{new}");
    }
    is_told(&server, "take");
    assert!(metric(&server, "sluicegate_overflow_total{rule_id=\"take\"}") >= 17_000);
    assert_eq!(metric(&server, "sluicegate_overflow_total{rule_id=\"1\"}"), 0);
    assert_eq!(metric(&server, "sluicegate_take_buckets"), TAKE_BUCKETS_MAX);
    assert!(metric(&server, "sluicegate_buckets") <= TAKE_BUCKETS_MAX + 200);
}

/// Made-up users of one rule: addresses of another rule have their buckets, and so have keys without a rule.
#[test]
fn a01_a_flood_of_one_rule_denies_no_subject_of_another() {
    let server = launch().start();
    let users = pipeline(&server, (0..8000).map(|user| format!("SG.CHECK user_id {user} cost 10")));
    // Its reserve, all of the common half, and its overflow bucket.
    assert_eq!(granted(&users), 3 * RESERVE + 1);
    let address = |number: usize| format!("10.0.{}.{}", number / 256, number % 256);
    let addresses = pipeline(
        &server,
        (0..RESERVE).map(|number| format!("SG.CHECK ip {} cost 10", address(number))),
    );
    assert_eq!(granted(&addresses), RESERVE);
    let overflow = check(&server, &json!({"ip": "192.0.2.1"}));
    assert_eq!((&overflow["allowed"], &overflow["remaining"]), (&json!(true), &json!(9)));
    let keys =
        pipeline(&server, (0..TAKE_BUCKETS_MAX).map(|key| format!("SG.TAKE {key} 1 1 86400000")));
    assert_eq!(granted(&keys), TAKE_BUCKETS_MAX);
    let line = server.wait_for_line(|line| line.contains(NO_ROOM));
    assert!(line.contains("\"rules\":\"1"), "{line}");
    eventually("both rules in the note", || {
        server.get("/readyz?verbose").body.contains("of rules 1, 2\n").then_some(())
    });
    assert_eq!(metric(&server, "sluicegate_overflow_total{rule_id=\"1\"}"), 8000 - 3 * RESERVE);
    assert_eq!(metric(&server, "sluicegate_buckets"), MAX_BUCKETS);
}

/// A bucket without a rule that takes longer to fill than allowed is refused on every protocol, by the name of a field.
#[test]
fn a01_buckets_without_a_rule_that_fill_too_slowly_are_refused() {
    let server = launch().args(&["--store-take-full-max", "12h"]).start();
    let take = |capacity: u64| {
        let body =
            json!({"key": "k", "capacity": capacity, "refill_rate": 1, "refill_interval": 3600});
        server.post_json("/v1/take", &body.to_string())
    };
    assert_eq!(take(12).status, 200);
    let refused = take(13);
    assert_eq!((refused.status, &refused.json()["field"]), (400, &json!("capacity")));
    assert!(refused.body.contains("store.take_full_max"), "{}", refused.body);
    let window = json!({"key": "k", "refill_rate": 1, "refill_interval": 43_201, "algorithm": "fixed_window"});
    let refused = server.post_json("/v1/take", &window.to_string());
    assert_eq!((refused.status, &refused.json()["field"]), (400, &json!("refill_interval")));

    let mut redis = TcpStream::connect(server.address_of("resp")).unwrap();
    sign_in(&mut redis);
    let mut redis = BufReader::new(redis);
    let mut ask = |command: &str| {
        redis.get_mut().write_all(format!("{command}\r\n").as_bytes()).unwrap();
        let mut reply = String::new();
        redis.read_line(&mut reply).unwrap();
        reply
    };
    for (command, names) in [
        ("SG.TAKE k 13 1 3600000", "capacity, tokens and period_ms"),
        ("CL.THROTTLE k 12 1 3600", "max_burst, count_per_period and period"),
    ] {
        let reply = ask(command);
        assert!(reply.starts_with("-ERR ") && reply.contains(names), "{reply}");
        assert!(reply.contains("store.take_full_max"), "{reply}");
    }
    assert_eq!(ask("CL.THROTTLE k 11 1 3600"), "*5\r\n");
}
