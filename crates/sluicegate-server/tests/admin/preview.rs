//! `/v1/rules/preview`: its figures are those of a server with that rule.

use serde_json::{Value, json};

use crate::common::{Launch, Response, Server};

/// Requests in order, with user, endpoint, plan and cost.
fn requests() -> Vec<Value> {
    let mut requests = Vec::new();
    for round in 0..30_u64 {
        for user in 0..4 {
            let (plan, cost) = (["free", "pro", "", "other"][user], 1 + round % 3);
            let endpoint = if round.is_multiple_of(2) { "/a" } else { "/b" };
            requests.push(json!({
                "user_id": format!("u{user}"), "plan": plan, "endpoint": endpoint, "cost": cost,
                "ip": format!("192.0.2.{user}"), "attributes": {"tenant": "acme"},
            }));
        }
    }
    requests
}

fn check(server: &Server, request: &Value) -> bool {
    let response = server.post_json("/v1/check", &request.to_string());
    assert_eq!(response.status, 200, "{response:?}");
    response.json()["allowed"] == true
}

fn preview(server: &Server, body: &Value) -> Response {
    server.post_json("/v1/rules/preview", &body.to_string())
}

fn figures(server: &Server, body: &Value) -> Value {
    let response = preview(server, body);
    assert_eq!(response.status, 200, "{response:?}");
    response.json()
}

/// Starts a server that records the requests, with rules that rarely deny.
fn start() -> Server {
    let server = Launch::serve(&[]).start();
    for request in requests() {
        check(&server, &request);
    }
    server
}

#[test]
fn it_agrees_with_what_a_server_does() {
    let server = start();
    let candidates = [
        json!({"key_pattern": "user:{user_id}:x", "tokens": 1, "period": "1 day", "burst_capacity": 20}),
        json!({"key_pattern": "u:{user_id}:{endpoint}", "tokens": 9, "period": "1 day"}),
        json!({"key_pattern": "t:{tenant}", "tokens": 100, "period": "1 day", "conditions": {"endpoint": "/a"}}),
        json!({"key_pattern": "p:{user_id}", "tokens": 5, "period": "1 day", "plan": "pro"}),
        json!({"key_pattern": "d:{ip}", "tokens": 5, "period": "1 day", "plan": "default"}),
        json!({"key_pattern": "w:{user_id}", "tokens": 7, "period": "1 day", "algorithm": "sliding_window"}),
        json!({"key_pattern": "s", "tokens": 50, "period": "1 day", "mode": "shadow", "is_active": false}),
        json!({"key_pattern": "none:{nobody}", "tokens": 1, "period": "1 day"}),
    ];
    for candidate in candidates {
        let told = figures(&server, &json!({"rule": candidate}));
        let mut real = candidate.clone();
        (real["mode"], real["is_active"]) = (Value::Null, Value::Null);
        let set = json!({"rules": [real]}).to_string();
        let other = Launch::serve(&[]).start();
        assert_eq!(
            other.request("PUT", "/v1/rules", &[("content-type", "application/json")], &set).status,
            200
        );
        let (mut applies, mut denied) = (0, 0);
        for request in requests() {
            let answer = other.post_json("/v1/check", &request.to_string()).json();
            applies += u64::from(!answer["tiers"].as_array().unwrap().is_empty());
            denied += u64::from(answer["allowed"] == false);
        }
        assert_eq!(
            (&told["applies"], &told["denied"]),
            (&json!(applies), &json!(denied)),
            "{candidate}: {told}"
        );
        assert_eq!(told["allowed"], applies - denied);
        assert_eq!(told["first_denied_at"].is_null(), denied == 0);
        assert_eq!(
            (&told["requests"], &told["before"], &told["note"]),
            (&json!(120), &Value::Null, &Value::Null)
        );
        assert!(told["from"].as_str() < told["to"].as_str());
    }
}

#[test]
fn it_is_compared_with_the_rule_that_it_replaces_and_spends_nothing() {
    let server = start();
    let list = server.get("/v1/rules").json();
    let rule = json!({"key_pattern": "user:{user_id}", "plan": "free", "tokens": 1, "period": "1 day", "burst_capacity": 10});
    let told = figures(&server, &json!({"rule": rule, "replaces": 1}));
    // u0 asks for 60 tokens in total and gets ten: costs 1 2 3 1 2 1, then only what fits.
    assert_eq!(
        (&told["applies"], &told["subjects"], &told["subjects_denied"]),
        (&json!(30), &json!(1), &json!(1))
    );
    assert!(told["denied"].as_u64().unwrap() >= 20, "{told}");
    assert_eq!(told["top"][0]["subject"], "u0");
    assert_eq!(
        (&told["top"][0]["requests"], &told["top"][0]["denied"]),
        (&json!(30), &told["denied"])
    );
    let before = &told["before"];
    assert_eq!(
        (&before["applies"], before["denied"].as_u64() < told["denied"].as_u64()),
        (&json!(30), true)
    );
    assert_eq!(told["left_out"], 0);
    // A preview changes and spends nothing: repeating it gives the same answer.
    assert_eq!(figures(&server, &json!({"rule": rule, "replaces": 1})), told);
    let now = server.get("/v1/rules").json();
    assert_eq!((&now["rules"], &now["version"]), (&list["rules"], &list["version"]));
}

#[test]
fn bad_candidates_are_refused() {
    let server = Launch::serve(&[]).start();
    for (body, field) in [
        (json!({}), "rule"),
        (json!({"rule": {}}), "rule.key_pattern"),
        (json!({"rule": {"key_pattern": "x", "tokens": 0, "period": 1}}), "rule.tokens"),
        (json!({"rule": {"key_pattern": "x", "tokens": "1"}}), "rule.tokens"),
        (json!({"rule": {"key_pattern": "x", "rate_per_second": 1}, "replaces": 99}), "replaces"),
        (json!({"rule": {"key_pattern": "x", "rate_per_second": 1}, "replace": 1}), "replace"),
    ] {
        let response = preview(&server, &body);
        assert_eq!(
            (response.status, &response.json()["field"]),
            (400, &json!(field)),
            "{response:?}"
        );
    }
    let nothing = figures(&server, &json!({"rule": {"key_pattern": "x", "rate_per_second": 1}}));
    assert_eq!((&nothing["requests"], &nothing["from"]), (&json!(0), &Value::Null));
}

#[test]
fn privacy_and_bounds_apply_before_anything_is_remembered() {
    let rule = json!({"rule": {"key_pattern": "u:{user_id}", "tokens": 1, "period": "1 day"}});
    let hashed = Launch::serve(&["--audit-privacy", "hashed"])
        .env("SLUICEGATE_AUDIT_PRIVACY_KEY", "a-key-of-some-length")
        .start();
    for user in ["a", "b", "a"] {
        check(&hashed, &json!({"user_id": user}));
    }
    let told = figures(&hashed, &rule);
    assert_eq!((&told["subjects"], &told["denied"]), (&json!(2), &json!(1)), "they are told apart");
    let subject = told["top"][0]["subject"].as_str().unwrap();
    assert!(subject != "a" && subject.len() > 8 && told["note"].is_string(), "{told}");

    let few = Launch::serve(&["--recent-requests-max", "5"]).start();
    for user in 0..20 {
        check(&few, &json!({"user_id": user}));
    }
    check(&few, &json!({"user_id": "x".repeat(600)}));
    let told = figures(&few, &rule);
    assert_eq!((&told["requests"], &told["left_out"]), (&json!(5), &json!(1)));

    let off = Launch::serve(&["--recent-requests-max", "0"]).start();
    check(&off, &json!({"user_id": "a"}));
    let told = figures(&off, &rule);
    assert_eq!((&told["requests"], told["note"].is_string()), (&json!(0), true));
}
