//! `/v1/check`.

use serde_json::{Value, json};

use crate::common::{Launch, Server};

fn check(server: &Server, body: &Value) -> Value {
    let response = server.post_json("/v1/check", &body.to_string());
    assert_eq!(response.status, 200, "{body} -> {response:?}");
    assert_eq!(response.header("content-type"), Some("application/json"));
    response.json()
}

/// A free user gets a burst of 50, then a denial with the exact wait.
#[test]
fn a_free_user_gets_the_burst_and_then_the_wait() {
    let rules = r#"
        [[rule]]
        rule_id = 1
        key_pattern = "user:{user_id}"
        plan = "free"
        tokens = 1
        period = "10s"
        burst_capacity = 3
    "#;
    let server = Launch::serve(&["--rules", "rules.toml"]).file("rules.toml", rules).start();
    let request = json!({"user_id": "42", "plan": "free"});
    for remaining in [2, 1, 0] {
        let answer = check(&server, &request);
        assert_eq!((&answer["allowed"], &answer["remaining"]), (&json!(true), &json!(remaining)));
    }
    let answer = check(&server, &request);
    let (wait, reset) = (answer["retry_after_ms"].as_u64(), answer["reset_after_ms"].as_u64());
    assert!(wait.is_some_and(|wait| (5_000..=10_000).contains(&wait)), "{answer}");
    assert_eq!(reset.zip(wait).map(|(reset, wait)| reset - wait), Some(20_000), "{answer}");
    let tier = json!({
        "rule_id": 1, "scope": "user", "key_pattern": "user:{user_id}", "mode": "enforce",
        "allowed": false, "limit": 3, "remaining": 0,
        "retry_after_ms": wait, "reset_after_ms": reset,
    });
    let expected = json!({
        "allowed": false, "limit": 3, "remaining": 0,
        "retry_after_ms": wait, "reset_after_ms": reset,
        "violated_tier": "user", "violated_rule": "user:{user_id}", "rule_id": 1, "tiers": [tier],
    });
    assert_eq!(answer, expected);
    // Another user, and the same user on another plan, are not affected.
    assert_eq!(check(&server, &json!({"user_id": "43", "plan": "free"}))["remaining"], 2);
    assert_eq!(check(&server, &json!({"user_id": "42", "plan": "pro"}))["limit"], Value::Null);
}

#[test]
fn without_a_rule_everything_is_allowed() {
    let server = Launch::serve(&["--rules", "rules.toml"]).file("rules.toml", "rule = []").start();
    let expected = json!({
        "allowed": true, "limit": null, "remaining": null, "retry_after_ms": 0,
        "reset_after_ms": null, "violated_tier": null, "violated_rule": null, "rule_id": null,
        "tiers": [],
    });
    assert_eq!(check(&server, &json!({})), expected);
}

/// A cost of 51 of 50 tokens has no retry time: no wait would help.
#[test]
fn more_than_a_bucket_holds_is_never() {
    let server = Server::start(&[]);
    let answer = check(&server, &json!({"user_id": 7, "plan": "free", "cost": 51}));
    assert_eq!((&answer["allowed"], &answer["retry_after_ms"]), (&json!(false), &Value::Null));
    assert_eq!(
        (&answer["violated_rule"], &answer["remaining"]),
        (&json!("user:{user_id}"), &json!(50))
    );
    let whole = check(&server, &json!({"user_id": 7, "plan": "free", "cost": 50}));
    assert_eq!(whole["allowed"], true, "the denial took nothing");
}

/// Tiers that would grant are not charged if another one denies.
#[test]
fn a_denial_charges_no_tier() {
    let server = Server::start(&[]);
    let login = json!({"ip": "198.51.100.7", "endpoint": "/login", "cost": 5});
    assert_eq!(check(&server, &login)["allowed"], true);
    let of_ip = |answer: &Value| {
        let tiers = answer["tiers"].as_array().unwrap();
        tiers.iter().find(|tier| tier["rule_id"] == 7).unwrap()["remaining"].clone()
    };
    for _ in 0..20 {
        let answer = check(&server, &login);
        assert_eq!((&answer["violated_tier"], &answer["rule_id"]), (&json!("ip"), &json!(5)));
        // Refilled at 100/s, and not charged by denials.
        assert!(of_ip(&answer).as_u64().unwrap() >= 195, "{answer}");
    }
}

#[test]
fn a_cost_of_zero_only_looks() {
    let server = Server::start(&[]);
    for _ in 0..10 {
        let answer = check(&server, &json!({"user_id": "p", "endpoint": "/payment", "cost": 0}));
        assert_eq!((&answer["allowed"], &answer["remaining"]), (&json!(true), &json!(3)));
    }
}

#[test]
fn a_number_and_its_text_are_one_user() {
    let server = Server::start(&[]);
    let pay = |user: Value| check(&server, &json!({"user_id": user, "endpoint": "/payment"}));
    assert_eq!(pay(json!(42))["remaining"], 2);
    assert_eq!(pay(json!("42"))["remaining"], 1);
}

#[test]
fn addresses_have_one_spelling() {
    let server = Server::start(&[]);
    let login =
        |ip: &str| check(&server, &json!({"ip": ip, "endpoint": "/login"}))["remaining"].clone();
    assert_eq!(login("203.0.113.9"), 4);
    assert_eq!(login("::ffff:203.0.113.9"), 3);
    assert_eq!(login("64:ff9b::203.0.113.9"), 2);
    assert_eq!(login("2001:db8::1"), 4);
    assert_eq!(login("2001:DB8:0:0:0:0:0:1"), 3);
}

#[test]
fn other_attributes_and_shadow_rules() {
    let rules = r#"
        [[rule]]
        key_pattern = "tenant:{tenant}"
        tokens = 1
        period = 60
        mode = "shadow"

        [[rule]]
        key_pattern = "global"
        tokens = 5
        period = 60
    "#;
    let server = Launch::serve(&["--rules", "rules.toml"]).file("rules.toml", rules).start();
    let request = json!({"attributes": {"tenant": "acme"}});
    assert_eq!(check(&server, &request)["tiers"][0]["allowed"], true);
    let answer = check(&server, &request);
    assert_eq!(answer["allowed"], true, "a rule in shadow mode does not deny");
    assert_eq!(answer["tiers"][0]["allowed"], false);
    assert_eq!(answer["tiers"][0]["mode"], "shadow");
    assert_eq!((&answer["limit"], &answer["remaining"]), (&json!(5), &json!(3)));
}

#[test]
fn a_queue_says_how_long_to_wait_in_line() {
    let rules = r#"
        [[rule]]
        key_pattern = "print:{user_id}"
        algorithm = "leaky_bucket"
        tokens = 1
        period = "10s"
        burst_capacity = 3
    "#;
    let server = Launch::serve(&["--rules", "rules.toml"]).file("rules.toml", rules).start();
    let request = json!({"user_id": "42"});
    assert_eq!(check(&server, &request)["delay_ms"], 0);
    let second = check(&server, &request);
    let delay = second["delay_ms"].as_u64().unwrap();
    assert!((9_000..=10_000).contains(&delay), "{second}");
    assert_eq!(second["tiers"][0]["delay_ms"], delay);
}
