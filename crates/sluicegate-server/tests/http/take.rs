//! `/v1/take` and `/v1/buckets/{key}`.

use serde_json::{Value, json};

use crate::common::{Launch, Server};

fn take(server: &Server, body: &Value) -> Value {
    let response = server.post_json("/v1/take", &body.to_string());
    assert_eq!(response.status, 200, "{body} -> {response:?}");
    response.json()
}

#[test]
fn the_example_of_the_design() {
    let server = Server::start(&[]);
    let body = json!({
        "key": "user:123", "capacity": 10, "refill_rate": 1, "refill_interval": 1.0,
        "refill": "continuous", "algorithm": "token_bucket", "cost": 1,
    });
    let expected = json!({
        "allowed": true, "limit": 10, "remaining": 9, "retry_after_ms": 0, "reset_after_ms": 1000,
    });
    assert_eq!(take(&server, &body), expected);
}

#[test]
fn defaults_are_a_second_continuous_and_one() {
    let server = Server::start(&[]);
    let answer = take(&server, &json!({"key": "k", "capacity": 3, "refill_rate": 0.016}));
    // 0.016/s is exactly one token every 62.5 s.
    assert_eq!((&answer["remaining"], &answer["reset_after_ms"]), (&json!(2), &json!(62_500)));
}

#[test]
fn interval_refill_comes_all_at_once() {
    let server = Server::start(&[]);
    let body = json!({
        "key": "i", "capacity": 4, "refill_rate": 2, "refill_interval": 60, "refill": "interval",
        "cost": 4,
    });
    let answer = take(&server, &body);
    assert_eq!((&answer["remaining"], &answer["reset_after_ms"]), (&json!(0), &json!(120_000)));
    let denied = take(
        &server,
        &json!({
            "key": "i", "capacity": 4, "refill_rate": 2, "refill_interval": 60, "refill": "interval",
        }),
    );
    let wait = denied["retry_after_ms"].as_u64().unwrap();
    assert!((50_000..=60_000).contains(&wait), "{denied}");
}

#[test]
fn every_algorithm_denies_the_token_after_the_last() {
    let server = Server::start(&[]);
    for algorithm in
        ["token_bucket", "fixed_window", "sliding_window", "sliding_counter", "leaky_bucket"]
    {
        // A window of a day, which ends during the test only around midnight.
        let body = json!({
            "key": algorithm, "capacity": 3, "refill_rate": 3, "refill_interval": 86400,
            "algorithm": algorithm,
        });
        for remaining in [2, 1, 0] {
            let answer = take(&server, &body);
            assert_eq!(answer["remaining"], remaining, "{algorithm}: {answer}");
            assert_eq!(answer["limit"], 3);
            assert_eq!(answer.get("delay_ms").is_some(), algorithm == "leaky_bucket");
        }
        let denied = take(&server, &body);
        assert_eq!(denied["allowed"], false, "{algorithm}: {denied}");
        assert!(denied["retry_after_ms"].as_u64().is_some_and(|wait| wait > 0), "{denied}");
    }
}

#[test]
fn a_queue_without_waiting() {
    let server = Server::start(&[]);
    let body = json!({
        "key": "k", "capacity": 3, "refill_rate": 1, "refill_interval": 86400,
        "algorithm": "leaky_bucket", "max_wait": 0,
    });
    assert_eq!(take(&server, &body)["allowed"], true);
    assert_eq!(take(&server, &body)["allowed"], false);
}

#[test]
fn deleting_a_bucket_fills_it() {
    let server = Server::start(&[]);
    let body = json!({"key": "a/b {c}", "capacity": 1, "refill_rate": 1, "refill_interval": 3600});
    assert_eq!(take(&server, &body)["allowed"], true);
    assert_eq!(take(&server, &body)["allowed"], false);
    let path = "/v1/buckets/a%2Fb%20%7Bc%7D";
    assert_eq!(server.request("DELETE", path, &[], "").status, 204);
    assert_eq!(take(&server, &body)["allowed"], true);
    // An unknown bucket is full as well.
    assert_eq!(server.request("DELETE", "/v1/buckets/unheard-of", &[], "").status, 204);
}

#[test]
fn a_full_store_sends_new_keys_to_the_overflow_bucket_or_denies_them() {
    let key = |n: usize| json!({"key": format!("k{n}"), "capacity": 2, "refill_rate": 1, "refill_interval": 86400});
    let overflow = Launch::serve(&[]).env("SLUICEGATE_STORE_MAX_BUCKETS", "40").start();
    let admitted = (0..50).filter(|n| take(&overflow, &key(*n))["allowed"] == true).count();
    assert_eq!(admitted, 10 + 2, "a quarter of all buckets, and two tokens for all the others");
    assert_eq!(take(&overflow, &key(3))["remaining"], 0, "a known key keeps its own bucket");

    let deny = Launch::serve(&[])
        .env("SLUICEGATE_STORE_MAX_BUCKETS", "11")
        .env("SLUICEGATE_STORE_TAKE_BUCKETS_MAX", "10")
        .env("SLUICEGATE_STORE_ON_FULL", "deny")
        .start();
    let admitted = (0..50).filter(|n| take(&deny, &key(*n))["allowed"] == true).count();
    assert_eq!(admitted, 10);
    assert!(deny.get("/metrics").body.contains("sluicegate_overflow_total{rule_id=\"take\"} 40"));
}

#[test]
fn a_denial_has_a_status_and_headers_on_request() {
    let server = Server::start(&[]);
    let body = r#"{"key": "k", "capacity": 2, "refill_rate": 1, "refill_interval": 60, "cost": 2}"#;
    let told = |query: &str, body: &str| server.post_json(&format!("/v1/take{query}"), body);
    let granted = told("?deny=429", body);
    assert_eq!((granted.status, &granted.json()["allowed"]), (200, &json!(true)));
    for (name, value) in [
        ("ratelimit-policy", Some(r#""take";q=2;w=120"#)),
        ("ratelimit", Some(r#""take";r=0;t=60"#)),
        ("x-ratelimit-limit", Some("2")),
        ("x-ratelimit-remaining", Some("0")),
        ("x-ratelimit-reset", Some("120")),
        ("retry-after", None),
    ] {
        assert_eq!(granted.header(name), value, "{name}");
    }
    for (query, status) in [("?deny=429", 429), ("?deny=403", 403)] {
        let denied = told(query, body);
        assert_eq!(denied.status, status, "{denied:?}");
        assert_eq!(denied.header("content-type"), Some("application/json"));
        // The body does not change, and the header fields agree with it.
        let answer = denied.json();
        assert_eq!((&answer["allowed"], &answer["limit"]), (&json!(false), &json!(2)));
        let wait_s = answer["retry_after_ms"].as_u64().unwrap().div_ceil(1000);
        assert!((100..=120).contains(&wait_s), "{answer}");
        assert_eq!(denied.header("retry-after"), Some(&*wait_s.to_string()));
        assert_eq!(denied.header("ratelimit"), Some(&*format!(r#""take";r=0;t={wait_s}"#)));
    }
    // A cost above the capacity has no retry time.
    let never = told("?deny=429", &body.replace("\"cost\": 2", "\"cost\": 3"));
    assert_eq!((never.status, never.header("retry-after")), (429, None));
    assert_eq!(never.json()["retry_after_ms"], Value::Null);
}

#[test]
fn without_being_asked_for_a_denial_is_200_and_has_no_headers() {
    let server = Server::start(&[]);
    let body = r#"{"key": "k", "capacity": 1, "refill_rate": 1, "refill_interval": 60}"#;
    for (path, allowed) in [("/v1/take", true), ("/v1/take", false), ("/v1/take?", false)] {
        let answer = server.post_json(path, body);
        assert_eq!((answer.status, &answer.json()["allowed"]), (200, &json!(allowed)), "{path}");
        for name in ["ratelimit", "ratelimit-policy", "x-ratelimit-limit", "retry-after"] {
            assert_eq!(answer.header(name), None, "{name}");
        }
    }
}

#[test]
fn a_denial_is_429_or_403() {
    let server = Server::start(&[]);
    let mut client = server.connect();
    let body = br#"{"key": "k", "capacity": 1, "refill_rate": 1, "refill_interval": 60}"#;
    let json = [("content-type", "application/json")];
    for (query, field) in [
        ("deny=200", "deny"),
        ("deny", "deny"),
        ("deny=", "deny"),
        ("deny=429&deny=429", "deny"),
        // A misspelt parameter must not be ignored: the client relies on the status.
        ("denied=429", "denied"),
        ("deny=%ff", "deny"),
    ] {
        let path = format!("/v1/take?{query}");
        let refused = client.request("POST", &path, &json, body).unwrap();
        assert_eq!((refused.status, &refused.json()["field"]), (400, &json!(field)), "{query}");
    }
    // No token was taken.
    assert_eq!(client.request("POST", "/v1/take?deny=429", &json, body).unwrap().status, 200);
}
