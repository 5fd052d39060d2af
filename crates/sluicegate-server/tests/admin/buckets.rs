//! Reading buckets of rules, granting and refunding tokens: on every store, and through the deny cache.

use serde_json::{Value, json};
use sluicegate_tests::servers::{Flavour, RedisServer};

use crate::common::{Launch, Server, check, eventually, on_every_store, with_rules};

/// Rules whose buckets hardly refill during a test.
const RULES: &str = r#"
[[rule]]
rule_id = 1
key_pattern = "user:{user_id}"
tokens = 1
period = "1d"
burst_capacity = 10

[[rule]]
rule_id = 2
key_pattern = "ip:{ip}"
tokens = 1
period = "1d"
burst_capacity = 5

[[rule]]
rule_id = 3
key_pattern = "api:{endpoint}:{user_id}"
tokens = 1
period = "1d"
burst_capacity = 4

[[rule]]
rule_id = 4
key_pattern = "all"
tokens = 1
period = "1d"
burst_capacity = 1000

[[rule]]
rule_id = 5
key_pattern = "off:{user_id}"
tokens = 1
period = "1d"
burst_capacity = 3
is_active = false
"#;

fn launch() -> Launch {
    with_rules(RULES)
}

fn peek(server: &Server, path: &str) -> Value {
    let response = server.get(&format!("/v1/buckets/{path}"));
    assert_eq!(response.status, 200, "{response:?}");
    response.json()
}

fn give(server: &Server, path: &str, tokens: u64) -> Value {
    let body = json!({"tokens": tokens}).to_string();
    let response = server.post_json(&format!("/v1/buckets/{path}"), &body);
    assert_eq!(response.status, 200, "{response:?}");
    response.json()
}

#[test]
fn figures_of_peek_refund_grant_and_reset() {
    on_every_store(launch, |server| {
        let user = json!({"user_id": "42"});
        for _ in 0..3 {
            assert_eq!(check(server, &user)["allowed"], true);
        }
        let mut bucket = peek(server, "1/42");
        let reset_after_ms = bucket["reset_after_ms"].take().as_u64().unwrap();
        // Three days, less the time that has passed.
        assert!((2 * 86_400_000..=3 * 86_400_000).contains(&reset_after_ms), "{reset_after_ms}");
        assert_eq!(
            bucket,
            json!({
                "rule_id": 1, "subject": "42", "bucket_key": "user:42", "limit": 10, "remaining": 7,
                "reset_after_ms": null, "override": null,
            })
        );
        assert_eq!(peek(server, "1/42")["remaining"], 7);
        assert_eq!(give(server, "1/42/refund", 2)["remaining"], 9);
        // A bucket never holds more than its limit.
        let full = give(server, "1/42/grant", 100);
        assert_eq!((&full["remaining"], &full["reset_after_ms"]), (&json!(10), &json!(0)));
        assert_eq!(give(server, "1/42/grant", u64::MAX)["remaining"], 10);

        // A subject that was just denied is allowed at once.
        let drain = || while check(server, &user)["allowed"] == true {};
        drain();
        assert_eq!(check(server, &user)["violated_rule"], "user:{user_id}");
        assert_eq!(give(server, "1/42/grant", 2)["remaining"], 2);
        assert_eq!(check(server, &user)["remaining"], 1);
        drain();
        let reset = give_nothing(server, "1/42/reset");
        assert_eq!((&reset["remaining"], &reset["existed"]), (&json!(10), &json!(true)));
        assert_eq!(check(server, &user)["remaining"], 9);
        let untouched = give_nothing(server, "1/somebody/reset");
        assert_eq!((&untouched["remaining"], &untouched["existed"]), (&json!(10), &json!(false)));
    });
}

fn give_nothing(server: &Server, path: &str) -> Value {
    let response = server.request("POST", &format!("/v1/buckets/{path}"), &[], "");
    assert_eq!(response.status, 200, "{response:?}");
    response.json()
}

#[test]
fn every_bucket_has_a_path() {
    on_every_store(launch, |server| {
        check(server, &json!({"user_id": "a/b c?", "endpoint": "/x"}));
        let bucket = peek(server, "1/a%2Fb%20c%3F");
        assert_eq!((&bucket["subject"], &bucket["remaining"]), (&json!("a/b c?"), &json!(9)));
        let bucket = peek(server, "3/a%2Fb%20c%3F?endpoint=/x");
        assert_eq!(bucket["bucket_key"], "api:/x:a/b c?");
        assert_eq!(bucket["remaining"], 3);
        assert_eq!(peek(server, "3/a%2Fb%20c%3F?endpoint=/y")["remaining"], 4);
        assert_eq!(peek(server, "4/all")["remaining"], 999);

        // Addresses are normalised.
        check(server, &json!({"ip": "::ffff:203.0.113.9"}));
        for spelling in ["203.0.113.9", "::ffff:203.0.113.9", "::FFFF:cb00:7109"] {
            let bucket = peek(server, &format!("2/{spelling}"));
            assert_eq!(bucket["subject"], "203.0.113.9");
            assert_eq!((&bucket["limit"], &bucket["remaining"]), (&json!(5), &json!(4)));
        }
        // A rule that is switched off keeps its buckets.
        assert_eq!(peek(server, "5/42")["remaining"], 3);
    });
}

#[test]
fn invalid_parameters_are_named() {
    let server = launch().start();
    for (path, status, field) in [
        ("1/42?endpoint=/x", 400, json!("endpoint")),
        ("1/%ff", 400, json!("subject")),
        (&format!("1/{}", "x".repeat(10_000)), 400, json!("subject")),
        ("2/nowhere", 400, json!("subject")),
        ("3/42", 400, json!("endpoint")),
        ("3/42?endpoint=/x&endpoint=/y", 400, json!("endpoint")),
        ("4/somebody", 400, json!("subject")),
        ("99/42", 404, Value::Null),
        ("user/42", 404, Value::Null),
        ("-1/42", 404, Value::Null),
        ("18446744073709551616/42", 404, Value::Null),
    ] {
        let peeked = server.get(&format!("/v1/buckets/{path}"));
        assert_eq!((peeked.status, &peeked.json()["field"]), (status, &field), "{path}");
    }
    for body in ["", "{}", "[1]", r#"{"tokens":0}"#, r#"{"tokens":-1}"#, r#"{"tokens":1.5}"#] {
        for act in ["grant", "refund"] {
            let response = server.post_json(&format!("/v1/buckets/1/42/{act}"), body);
            assert_eq!(response.status, 400, "{act} {body}");
        }
    }
    for (method, path) in [("PUT", "1/42"), ("GET", "1/42/reset"), ("POST", "1/42"), ("GET", "k")] {
        let response = server.request(method, &format!("/v1/buckets/{path}"), &[], "");
        assert_eq!(response.status, 405, "{method} {path}");
    }
    assert_eq!(server.get("/v1/buckets/1/42/empty").status, 404);
    assert_eq!(peek(&server, "1/42")["remaining"], 10);
    // Buckets without a rule are a separate endpoint.
    assert_eq!(server.request("DELETE", "/v1/buckets/1", &[], "").status, 204);
    let long = "x".repeat(65);
    for namespace in ["", "a%3Ab", "t%C3%A9am", &long, "a&namespace=b"] {
        let path = format!("/v1/buckets/1?namespace={namespace}");
        let response = server.request("DELETE", &path, &[], "");
        assert_eq!((response.status, &response.json()["field"]), (400, &json!("namespace")));
    }
}

/// A bucket of a namespace is another than that of the same key without one.
#[test]
fn a_key_is_reset_in_one_namespace() {
    on_every_store(launch, |server| {
        let body = json!({"key": "k", "capacity": 2, "refill_rate": 1, "refill_interval": 86_400});
        let take = || server.post_json("/v1/take", &body.to_string()).json();
        let reset = |query| server.request("DELETE", &format!("/v1/buckets/k{query}"), &[], "");
        assert_eq!(take()["remaining"], 1);
        assert_eq!(reset("?namespace=team-a").status, 204);
        assert_eq!(take()["remaining"], 0);
        assert_eq!(reset("").status, 204);
        assert_eq!(take()["remaining"], 1);
    });
}

#[test]
fn a_failed_store_is_an_error() {
    let redis = RedisServer::start(Flavour::Redis70);
    let server = Launch::serve(&["--rules", "r.toml", "--store-budget-ms", "50"])
        .file("r.toml", RULES)
        .env("SLUICEGATE_STORE_URL", &redis.url())
        .start();
    eventually("the store", || (server.get("/v1/buckets/1/42").status == 200).then_some(()));
    drop(redis);
    let tokens = json!({"tokens": 1}).to_string();
    for (method, path, body) in [
        ("GET", "1/42", ""),
        ("POST", "1/42/reset", ""),
        ("POST", "1/42/grant", tokens.as_str()),
        ("POST", "1/42/refund", tokens.as_str()),
    ] {
        let response = server.request(method, &format!("/v1/buckets/{path}"), &[], body);
        assert_eq!(response.status, 503, "{method} {path}: {response:?}");
        assert!(response.header("retry-after").is_some());
    }
}
