//! `/v1/refund`: both forms of its body, on every store, and only for callers with the right.

use serde_json::{Value, json};
use sluicegate_tests::servers::{Flavour, RedisServer};

use crate::common::{Launch, Response, Server, check, eventually, on_every_store, with_rules};

const RULES: &str = r#"
[[rule]]
rule_id = 1
key_pattern = "user:{user_id}"
tokens = 1
period = "1d"
burst_capacity = 10

[[rule]]
rule_id = 2
key_pattern = "global"
tokens = 1
period = "1d"
burst_capacity = 100
"#;

const TOKEN: &str = "an-administrator-of-the-tests";

/// Service whose administrator has every right.
fn launch() -> Launch {
    with_rules(RULES).env("SLUICEGATE_ADMIN_TOKEN", TOKEN)
}

fn post(server: &Server, path: &str, token: &str, body: &str) -> Response {
    let token = format!("Bearer {token}");
    let headers = [("content-type", "application/json"), ("authorization", token.as_str())];
    server.request("POST", path, &headers, body)
}

fn refund(server: &Server, body: &Value) -> Value {
    let response = post(server, "/v1/refund", TOKEN, &body.to_string());
    assert_eq!(response.status, 200, "{body} -> {response:?}");
    response.json()
}

/// Remaining tokens of every tier.
fn remaining(answer: &Value) -> Vec<u64> {
    let tiers = answer["tiers"].as_array().unwrap().iter();
    tiers.map(|tier| tier["remaining"].as_u64().unwrap()).collect()
}

#[test]
fn every_bucket_of_a_request_gets_tokens_back_up_to_full() {
    on_every_store(launch, |server| {
        let upload = json!({"user_id": "42", "cost": 8});
        assert_eq!(remaining(&check(server, &upload)), [2, 92]);
        let answer = refund(server, &json!({"user_id": "42", "amount": 5}));
        assert_eq!(remaining(&answer), [7, 97]);
        let figures = ["refunded", "limit", "remaining"].map(|name| &answer[name]);
        assert_eq!(figures, [&json!(true), &json!(10), &json!(7)]);
        assert!(answer["reset_after_ms"].as_u64().is_some_and(|wait| wait > 2 * 86_400_000));
        // No bucket exceeds its limit, whatever the amount.
        let answer = refund(server, &json!({"user_id": "42", "amount": u64::MAX}));
        assert_eq!((remaining(&answer), &answer["reset_after_ms"]), (vec![10, 100], &json!(0)));
        // A bucket that is not stored is full.
        assert_eq!(remaining(&refund(server, &json!({"user_id": "new", "amount": 3}))), [10, 100]);

        // A client that was denied is allowed at once: no cached denial outlives the refund.
        while check(server, &json!({"user_id": "7"}))["allowed"] == true {}
        assert_eq!(check(server, &json!({"user_id": "7"}))["allowed"], false);
        refund(server, &json!({"user_id": "7", "amount": 1}));
        assert_eq!(check(server, &json!({"user_id": "7"}))["allowed"], true);
        assert_eq!(check(server, &json!({"user_id": "7"}))["allowed"], false);
        let metrics = server.get("/metrics").body;
        assert!(metrics.contains(r#"sluicegate_refunds_total{door="http"} 4"#), "{metrics}");
        assert!(metrics.contains(r#"sluicegate_refunds_total{door="resp"} 0"#), "{metrics}");
    });
}

#[test]
fn a_key_gets_tokens_back_under_its_quota() {
    on_every_store(launch, |server| {
        for algorithm in
            ["token_bucket", "fixed_window", "sliding_window", "sliding_counter", "leaky_bucket"]
        {
            let mut body = json!({
                "key": format!("upload:{algorithm}"), "capacity": 5, "refill_rate": 5,
                "refill_interval": 86_400, "algorithm": algorithm, "cost": 5,
            });
            let taken = server.post_json("/v1/take", &body.to_string()).json();
            assert_eq!((&taken["allowed"], &taken["remaining"]), (&json!(true), &json!(0)));
            let fields = body.as_object_mut().unwrap();
            fields.remove("cost");
            for (amount, expected) in [(2, 2), (1, 3), (100, 5)] {
                body["amount"] = amount.into();
                let mut answer = refund(server, &body);
                answer["reset_after_ms"].take();
                let expected = json!({
                    "refunded": true, "limit": 5, "remaining": expected, "reset_after_ms": null,
                });
                assert_eq!(answer, expected, "{algorithm}");
            }
        }
    });
}

#[test]
fn a_request_without_a_bucket_gets_nothing() {
    let rules = r#"
[[rule]]
rule_id = 1
key_pattern = "user:{user_id}"
tokens = 1
period = "1d"
"#;
    let server = with_rules(rules).env("SLUICEGATE_ADMIN_TOKEN", TOKEN).start();
    let expected = json!({
        "refunded": false, "limit": null, "remaining": null, "reset_after_ms": null, "tiers": [],
    });
    assert_eq!(refund(&server, &json!({"ip": "192.0.2.1", "amount": 1})), expected);
}

#[test]
fn invalid_bodies_name_the_field_and_refund_nothing() {
    let server = launch().start();
    while check(&server, &json!({"user_id": "42"}))["allowed"] == true {}
    let long = format!(r#"{{"user_id":"{}","amount":1}}"#, "x".repeat(2000));
    let long_key =
        format!(r#"{{"key":"{}","capacity":1,"refill_rate":1,"amount":1}}"#, "x".repeat(2000));
    let attributes: Vec<_> = (0..33).map(|number| format!(r#""a{number}":"x""#)).collect();
    let many = format!(r#"{{"attributes":{{{}}},"amount":1}}"#, attributes.join(","));
    let cases = [
        ("", Value::Null),
        ("[]", Value::Null),
        (r#"{"user_id":"42"}"#, json!("amount")),
        (r#"{"user_id":"42","amount":0}"#, json!("amount")),
        (r#"{"user_id":"42","amount":-1}"#, json!("amount")),
        (r#"{"user_id":"42","amount":1.5}"#, json!("amount")),
        (r#"{"user_id":"42","amount":"1"}"#, json!("amount")),
        (r#"{"user_id":"42","amount":1e30}"#, json!("amount")),
        (r#"{"user_id":"42","amount":1,"amount":1}"#, json!("amount")),
        (r#"{"user_id":"42","amount":1,"cost":1}"#, json!("cost")),
        (r#"{"user_id":"42","amount":1,"capacity":1}"#, json!("capacity")),
        (r#"{"user_id":"42","amount":1,"refill_rate":1}"#, json!("refill_rate")),
        (r#"{"ip":"1.2.3","amount":1}"#, json!("ip")),
        (r#"{"attributes":{"user_id":"42"},"amount":1}"#, json!("attributes.user_id")),
        (r#"{"attributes":{"a":"1","a":"2"},"amount":1}"#, json!("attributes.a")),
        (r#"{"attributes":[],"amount":1}"#, json!("attributes")),
        (r#"{"key":"k","amount":1,"user_id":"42"}"#, json!("user_id")),
        (r#"{"key":"k","amount":1,"attributes":{}}"#, json!("attributes")),
        (r#"{"key":"k","amount":1,"capacity":1}"#, json!("refill_rate")),
        (r#"{"key":"k","amount":1,"refill_rate":1}"#, json!("capacity")),
        (r#"{"key":"k","amount":1,"capacity":0,"refill_rate":1}"#, json!("capacity")),
        (r#"{"key":"k","amount":1,"capacity":1,"refill_rate":0}"#, json!("refill_rate")),
        (
            r#"{"key":"k","amount":1,"capacity":1000,"refill_rate":1,"refill_interval":86400}"#,
            json!("capacity"),
        ),
        (&long, json!("user_id")),
        (&long_key, json!("key")),
        (&many, json!("attributes")),
    ];
    for (body, field) in cases {
        let response = post(&server, "/v1/refund", TOKEN, body);
        assert_eq!((response.status, &response.json()["field"]), (400, &field), "{body}");
    }
    assert_eq!(check(&server, &json!({"user_id": "42"}))["allowed"], false);
    let token = format!("Bearer {TOKEN}");
    let response = server.request("GET", "/v1/refund", &[("authorization", &token)], "");
    assert_eq!(response.status, 405);
}

#[test]
fn a_failed_store_is_an_error() {
    let redis = RedisServer::start(Flavour::Redis70);
    let server = Launch::serve(&["--rules", "r.toml", "--store-budget-ms", "50"])
        .file("r.toml", RULES)
        .env("SLUICEGATE_ADMIN_TOKEN", TOKEN)
        .env("SLUICEGATE_STORE_URL", &redis.url())
        .start();
    let by_rules = json!({"user_id": "42", "amount": 1}).to_string();
    let by_key = json!({"key": "k", "capacity": 1, "refill_rate": 1, "amount": 1}).to_string();
    let status = |body: &str| post(&server, "/v1/refund", TOKEN, body).status;
    eventually("the store", || (status(&by_rules) == 200).then_some(()));
    drop(redis);
    for body in [by_rules, by_key] {
        let response = post(&server, "/v1/refund", TOKEN, &body);
        assert_eq!(response.status, 503, "{body}: {response:?}");
        assert!(response.header("retry-after").is_some());
    }
}

#[test]
fn only_callers_with_the_right_refund_and_only_in_their_namespace() {
    on_every_store(
        || Launch::serve(&["--store-budget-ms", "5000"]),
        |server| {
            // Without callers, a check needs none; a refund does.
            let body = json!({
                "key": "k", "capacity": 5, "refill_rate": 1, "refill_interval": 86_400, "amount": 1,
            });
            let body = body.to_string();
            assert_eq!(server.post_json("/v1/refund", &body).status, 401);
            let create = |name: &str, rights: Value, namespace: Value| {
                let caller = json!({"name": name, "rights": rights, "namespace": namespace});
                let response = server.post_json("/v1/callers", &caller.to_string());
                assert_eq!(response.status, 201, "{response:?}");
                response.json()["token"].as_str().unwrap().to_owned()
            };
            let one = create("one", json!(["take", "refund"]), json!("team-a"));
            let other = create("other", json!(["take", "refund"]), json!("team-b"));
            let taker = create("taker", json!(["take", "check"]), Value::Null);
            let remaining = |token: &str, path: &str, body: &str| {
                let response = post(server, path, token, body);
                assert_eq!(response.status, 200, "{response:?}");
                response.json()["remaining"].clone()
            };
            let take = body.replace("amount", "cost");
            for left in [4, 3] {
                assert_eq!(remaining(&one, "/v1/take", &take), left);
            }
            assert_eq!(remaining(&other, "/v1/refund", &body), 5);
            assert_eq!(remaining(&one, "/v1/take", &take), 2, "not that of the other");
            assert_eq!(remaining(&one, "/v1/refund", &body), 3);
            assert_eq!(remaining(&one, "/v1/take", &take), 2);
            assert_eq!(post(server, "/v1/refund", &taker, &body).status, 403);
            assert_eq!(post(server, "/v1/refund", "sg_wrong", &body).status, 401);
            assert_eq!(server.post_json("/v1/refund", &body).status, 401);
            assert_eq!(remaining(&one, "/v1/take", &take), 1);
        },
    );
}
