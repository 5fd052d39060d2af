//! Redis failures: requests do not wait, each rule's policy answers and marks the answer as degraded, and Redis
//! counts again once it is back.

use std::time::Duration;

use serde_json::{Value, json};
use sluicegate_tests::servers::{Flavour, RedisServer};

use super::redis::{metric, patient, take};
use crate::common::{Client, Launch, Response, Server, eventually, now, pause};

/// Default time budget, and the additional delay allowed for a busy machine.
const BUDGET: Duration = Duration::from_millis(10);
const SLACK: Duration = Duration::from_millis(240);

/// Maximum time until answers are degraded after Redis fails, and until they are whole again after it returns.
const DEGRADED_WITHIN: Duration = Duration::from_millis(250);
const RECOVERED_WITHIN: Duration = Duration::from_secs(1);

const RULES: &str = r#"
[[rule]]
rule_id = 1
key_pattern = "local:{user_id}"
conditions = { endpoint = "/local" }
tokens = 1
period = "1d"
burst_capacity = 4

[[rule]]
rule_id = 2
key_pattern = "allow:{user_id}"
conditions = { endpoint = "/allow" }
tokens = 1
period = "1d"
burst_capacity = 4
on_error = "allow"

[[rule]]
rule_id = 3
key_pattern = "deny:{user_id}"
conditions = { endpoint = "/deny" }
tokens = 1
period = "1d"
burst_capacity = 4
on_error = "deny"
"#;

fn with_rules(launch: Launch) -> Launch {
    launch.args(&["--rules", "rules.toml"]).file("rules.toml", RULES)
}

fn check(server: &Server, endpoint: &str) -> Response {
    let body = json!({"user_id": "42", "endpoint": endpoint}).to_string();
    let response = server.post_json("/v1/check", &body);
    assert_eq!(response.status, 200, "{response:?}");
    response
}

/// Sends `count` checks without Redis: the verdicts, and the last answer.
fn check_degraded(server: &Server, endpoint: &str, count: usize) -> (Vec<bool>, Value) {
    let (mut allowed, mut last) = (Vec::new(), Value::Null);
    for _ in 0..count {
        let response = check(server, endpoint);
        assert_eq!(response.header("x-sluicegate-degraded"), Some("true"), "{response:?}");
        last = response.json();
        assert_eq!(last["degraded"], true, "{last}");
        allowed.push(last["allowed"] == true);
    }
    (allowed, last)
}

fn is_degraded(server: &Server) -> bool {
    take(server, "probe", 10_000).get("degraded").is_some()
}

/// Time until answers are degraded, or whole again.
fn time_until(server: &Server, degraded: bool) -> Duration {
    let started = now();
    while is_degraded(server) != degraded {
        assert!(now() - started < Duration::from_secs(10), "never: {}", server.stderr());
        pause(Duration::from_millis(1));
    }
    now() - started
}

#[test]
fn without_redis_it_starts_and_each_rule_answers_by_its_policy() {
    let redis = RedisServer::start(Flavour::Redis70);
    redis.kill();
    // Half of each limit, as for one of two processes.
    let launch = with_rules(patient(&redis)).env("SLUICEGATE_STORE_LOCAL_SHARE_PERCENT", "50");
    let server = launch.start();
    let warning = server.wait_for_line(|line| line.contains("starting without it"));
    assert!(warning.contains("connection: 127.0.0.1:"), "{warning}");
    assert_eq!((server.get("/livez").status, server.get("/readyz").status), (200, 200));

    let (allowed, last) = check_degraded(&server, "/local", 3);
    assert_eq!(allowed, [true, true, false]);
    assert_eq!((&last["violated_rule"], &last["limit"]), (&json!("local:{user_id}"), &json!(2)));
    assert_eq!(check_degraded(&server, "/allow", 6).0, [true; 6]);
    let (allowed, last) = check_degraded(&server, "/deny", 2);
    assert_eq!(allowed, [false; 2]);
    assert_eq!(last["retry_after_ms"], 1000);
    assert_eq!(take(&server, "k", 4)["degraded"], true);

    let batch = json!([{"user_id": "7", "endpoint": "/allow"}, {"endpoint": "/none"}]).to_string();
    let batch = server.post_json("/v1/check/batch", &batch);
    assert_eq!(batch.header("x-sluicegate-degraded"), Some("true"));
    let results = &batch.json()["results"];
    assert_eq!((&results[0]["degraded"], results[1].get("degraded")), (&json!(true), None));

    for (on_error, count) in [("local", 4), ("allow", 7), ("deny", 2)] {
        let name = format!("sluicegate_degraded_total{{on_error=\"{on_error}\"}}");
        assert_eq!(metric(&server, &name), count, "{on_error}");
    }
    assert_eq!(metric(&server, "sluicegate_store_breaker"), 2);
    assert_eq!(metric(&server, "sluicegate_buckets"), 2, "those that stand in");
}

#[test]
fn without_redis_nothing_is_forgotten_and_probes_say_why() {
    let redis = RedisServer::start(Flavour::Redis8);
    redis.kill();
    let server = patient(&redis).start();
    server.wait_for_log("the store does not reply: its breaker is open");
    let response = server.request("DELETE", "/v1/buckets/k", &[], "");
    assert_eq!((response.status, response.header("retry-after")), (503, Some("1")));
    assert_eq!(response.header("content-type"), Some("application/problem+json"));
    let expected = json!({
        "type": "about:blank", "title": "Service Unavailable", "status": 503,
        "detail": "the store is in trouble (open): try again",
    });
    assert_eq!(response.json(), expected);

    let ready = server.get("/readyz?verbose");
    assert_eq!(ready.status, 200);
    let address = format!("127.0.0.1:{}", redis.port());
    let note = format!(
        "[~]store degraded (does not affect readiness)\n    redis {address}: breaker open, answering by on_error\n    connection: \
         {address}: Connection refused (os error 111)\n    errors since the start: connection "
    );
    assert!(ready.body.contains(&note), "{}", ready.body);
}

#[test]
fn errors_of_the_store_are_shown_with_a_token_only() {
    let redis = RedisServer::start(Flavour::Redis8);
    redis.kill();
    let server =
        patient(&redis).env("SLUICEGATE_ADMIN_TOKEN", "correct-horse-battery-staple").start();
    server.wait_for_log("the store does not reply: its breaker is open");
    let ready = server.get("/readyz?verbose");
    let in_trouble = "[~]store degraded (does not affect readiness)\n[+]";
    assert!(ready.body.contains(in_trouble), "{}", ready.body);
    let headers = [("authorization", "Bearer correct-horse-battery-staple")];
    let ready = server.request("GET", "/readyz?verbose", &headers, "");
    assert!(ready.body.contains("Connection refused"), "{}", ready.body);
}

#[test]
fn when_redis_comes_up_it_counts_and_answers_are_whole_again() {
    let redis = RedisServer::start(Flavour::Valkey9);
    redis.kill();
    let server = with_rules(patient(&redis)).start();
    check_degraded(&server, "/local", 3);
    redis.restart();
    let recovery = time_until(&server, false);
    assert!(recovery < RECOVERED_WITHIN, "{recovery:?}");
    // Every bucket is full: Redis does not know what this process granted without it.
    for endpoint in ["/local", "/allow", "/deny"] {
        for remaining in (0..4).rev() {
            let response = check(&server, endpoint);
            assert_eq!(response.header("x-sluicegate-degraded"), None);
            let answer = response.json();
            assert_eq!(answer["remaining"], remaining, "{answer}");
            assert_eq!(answer.get("degraded"), None, "{answer}");
        }
        assert_eq!(check(&server, endpoint).json()["allowed"], false);
    }
    server.wait_for_log("the store replies again: its breaker is closed");
    assert_eq!(server.request("DELETE", "/v1/buckets/k", &[], "").status, 204);
}

#[test]
fn a_fallback_bucket_is_dropped_when_it_is_full() {
    let redis = RedisServer::start(Flavour::Redis70);
    let server = patient(&redis).env("SLUICEGATE_STORE_MAX_BUCKETS", "1000").start();
    redis.kill();
    let slow = json!({"key": "slow", "capacity": 1, "refill_rate": 1, "refill_interval": 3600});
    let quick = json!({"key": "quick", "capacity": 1, "refill_rate": 1000});
    for body in [slow, quick] {
        let answer = server.post_json("/v1/take", &body.to_string()).json();
        assert_eq!(answer["degraded"], true, "{answer}");
    }
    assert_eq!(metric(&server, "sluicegate_buckets_max"), 1000);
    eventually("the quick one to be forgotten", || {
        (metric(&server, "sluicegate_buckets") == 1).then_some(())
    });
}

#[test]
fn a_redis_without_memory_is_distinguished() {
    let redis = RedisServer::start(Flavour::Redis70);
    let server = patient(&redis).start();
    assert_eq!(take(&server, "k", 9).get("degraded"), None);
    redis.command(&["CONFIG", "SET", "maxmemory", "1"]);
    assert_eq!(take(&server, "k", 9)["degraded"], true);
    assert_eq!(metric(&server, "sluicegate_store_errors_total{kind=\"oom\"}"), 1);
    assert_eq!(metric(&server, "sluicegate_store_breaker"), 0, "it answers");
    server.wait_for_line(|line| line.contains("\"kind\":\"oom\""));
    redis.command(&["CONFIG", "SET", "maxmemory", "0"]);
    assert_eq!(take(&server, "k", 9).get("degraded"), None);
}

/// Sends requests over one connection for this time, and returns the longest latency.
fn slowest(client: &mut Client, length: Duration) -> Duration {
    let body = br#"{"key": "slow", "capacity": 1000000, "refill_rate": 1}"#;
    let headers = [("content-type", "application/json")];
    let (started, mut slowest) = (now(), Duration::ZERO);
    while now() - started < length {
        let asked = now();
        let response = client.request("POST", "/v1/take", &headers, body).unwrap();
        assert_eq!(response.status, 200, "{response:?}");
        slowest = slowest.max(now() - asked);
    }
    slowest
}

/// Breaks and repairs Redis under requests, none of which may exceed the time budget.
fn requests_do_not_wait(break_it: impl FnOnce(&RedisServer), mend_it: impl FnOnce(&RedisServer)) {
    let redis = RedisServer::start(Flavour::Redis70);
    let server = Launch::serve(&[]).env("SLUICEGATE_STORE_URL", &redis.url()).start();
    let mut client = server.connect();
    time_until(&server, false);
    break_it(&redis);
    let noticed = time_until(&server, true);
    assert!(noticed < DEGRADED_WITHIN, "{noticed:?}");
    let slowest = slowest(&mut client, Duration::from_millis(600));
    assert!(slowest < BUDGET + SLACK, "{slowest:?}");
    assert!(is_degraded(&server));
    assert_eq!(server.get("/readyz").status, 200);
    assert!(metric(&server, "sluicegate_store_breaker") > 0);
    mend_it(&redis);
    let recovered = time_until(&server, false);
    assert!(recovered < RECOVERED_WITHIN, "{recovered:?}");
}

#[test]
fn requests_do_not_wait_for_a_redis_that_was_killed() {
    requests_do_not_wait(RedisServer::kill, RedisServer::restart);
}

#[test]
fn requests_do_not_wait_for_a_redis_that_hangs() {
    requests_do_not_wait(RedisServer::stop, RedisServer::cont);
}
