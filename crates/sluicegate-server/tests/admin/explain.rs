//! `/v1/explain`: agrees with checks and spends no tokens.

use serde_json::{Value, json};
use sluicegate_tests::servers::{Flavour, RedisServer};

use crate::common::{Launch, Server, with_rules};

const RULES: &str = r#"
[[rule]]
rule_id = 1
key_pattern = "user:{user_id}"
plan = "free"
tokens = 1
period = "1d"
burst_capacity = 5

[[rule]]
rule_id = 2
key_pattern = "user:{user_id}"
plan = "pro"
tokens = 1
period = "1d"

[[rule]]
rule_id = 3
key_pattern = "user:{user_id}"
plan = "default"
tokens = 1
period = "1d"

[[rule]]
rule_id = 4
key_pattern = "login:{ip}"
conditions = { endpoint = "/login" }
tokens = 1
period = "1d"

[[rule]]
rule_id = 5
key_pattern = "off"
is_active = false
tokens = 1
period = "1d"

[[rule]]
rule_id = 6
key_pattern = "tenant:{tenant}"
tokens = 1
period = "1d"

[[rule]]
rule_id = 7
key_pattern = "all"
mode = "shadow"
tokens = 3
period = "1d"
"#;

fn launch() -> Launch {
    with_rules(RULES)
}

fn ask(server: &Server, path: &str, request: &Value) -> Value {
    let response = server.post_json(path, &request.to_string());
    assert_eq!(response.status, 200, "{request} -> {response:?}");
    response.json()
}

fn of(explained: &Value, rule_id: u64) -> &Value {
    let rules = explained["rules"].as_array().unwrap();
    rules.iter().find(|rule| rule["rule_id"] == rule_id).unwrap()
}

#[test]
fn every_rule_says_why() {
    let server = launch().start();
    let request = json!({"user_id": 42, "plan": "free", "endpoint": "/search", "ip": "192.0.2.1"});
    let explained = ask(&server, "/v1/explain", &request);
    assert_eq!(
        (&explained["allowed"], &explained["cost"], &explained["more"]),
        (&json!(true), &json!(1), &json!(0))
    );
    let ids: Vec<_> =
        explained["rules"].as_array().unwrap().iter().map(|rule| &rule["rule_id"]).collect();
    assert_eq!(ids, [1, 7, 2, 3, 4, 5, 6], "those that apply come first");
    let expected = json!({
        "rule_id": 1, "scope": "user", "key_pattern": "user:{user_id}", "plan": "free", "mode": "enforce",
        "applies": true, "reason": "applies", "bucket_key": "user:42", "subject": "42", "override": null,
        "limit": 5, "remaining": 5, "reset_after_ms": 0, "retry_after_ms": 0, "would_allow": true,
    });
    assert_eq!(of(&explained, 1), &expected);
    for (rule_id, reason, bucket_key) in [
        (2, "is for plan `pro`", json!("user:42")),
        (3, "rule 1 names this plan", json!("user:42")),
        (4, "condition on endpoint fails: `/search` does not match", json!("login:192.0.2.1")),
        (5, "switched off", json!("off")),
        (6, "the request has no tenant", Value::Null),
    ] {
        let rule = of(&explained, rule_id);
        assert_eq!((&rule["applies"], &rule["reason"]), (&json!(false), &json!(reason)));
        assert_eq!(
            (&rule["bucket_key"], &rule["limit"], &rule["would_allow"]),
            (&bucket_key, &Value::Null, &Value::Null)
        );
    }
    let bare = ask(&server, "/v1/explain", &json!({}));
    assert_eq!(of(&bare, 4)["reason"], "condition on endpoint fails: the request has no endpoint");
}

/// In memory and in Redis, explain and check agree after any amount spent, and only the check spends.
#[test]
fn it_agrees_with_a_check_and_spends_nothing() {
    let redis = RedisServer::start(Flavour::Redis70);
    let in_redis = launch().env("SLUICEGATE_STORE_URL", &redis.url()).start();
    for (server, keeps_denials) in [(launch().start(), false), (in_redis, true)] {
        for spent in 0..7 {
            for cost in [0, 1, 3, 5, 6] {
                let request = json!({"user_id": "u", "plan": "free", "cost": cost});
                let explained = ask(&server, "/v1/explain", &request);
                let again = ask(&server, "/v1/explain", &request);
                assert_eq!(explained["rules"][0]["remaining"], again["rules"][0]["remaining"]);
                let remaining = 5_u64.saturating_sub(spent);
                assert_eq!(explained["rules"][0]["remaining"], remaining, "{explained}");
                let allowed = cost <= remaining;
                assert_eq!(
                    (&explained["allowed"], &explained["cost"]),
                    (&json!(allowed), &json!(cost))
                );
                if !allowed {
                    // A denial charges nothing.
                    let checked = ask(&server, "/v1/check", &request);
                    assert_eq!(checked["allowed"], false, "{checked}");
                    let (told, said) = (&explained["rules"][0], &checked["tiers"][0]);
                    match (told["retry_after_ms"].as_u64(), said["retry_after_ms"].as_u64()) {
                        (None, None) => assert_eq!(cost, 6, "only that is never"),
                        // The check comes a little later, or is answered by the deny cache, whose entry may be older
                        // than the last request.
                        (Some(told), Some(said)) => {
                            assert!(keeps_denials || told.abs_diff(said) < 60_000, "{told} {said}");
                        }
                        (told, said) => panic!("{told:?} {said:?}"),
                    }
                }
            }
            let _ = ask(&server, "/v1/check", &json!({"user_id": "u", "plan": "free"}));
        }
        // A rule in shadow mode does not deny.
        let explained = ask(&server, "/v1/explain", &json!({"user_id": "v", "plan": "free"}));
        assert_eq!(
            (&of(&explained, 7)["would_allow"], &explained["allowed"]),
            (&json!(false), &json!(true))
        );
    }
}

#[test]
fn overrides_are_shown() {
    let server = launch().start();
    let put = |subject: &str, mut body: Value| {
        body["rule_id"] = json!(1);
        body["subject"] = json!(subject);
        let response = server.post_json("/v1/overrides", &body.to_string());
        assert_eq!(response.status, 201, "{response:?}");
    };
    put("big", json!({"tokens": 2, "period": 1, "burst_capacity": 50}));
    put("free", json!({"unlimited": true}));
    put("bad", json!({"blocked": true}));
    let explain =
        |user: &str| ask(&server, "/v1/explain", &json!({"user_id": user, "plan": "free"}));
    let big = explain("big");
    let quota = json!({"kind": "quota", "tokens": 2, "period": 1, "burst_capacity": 50});
    assert_eq!((&of(&big, 1)["override"], &of(&big, 1)["limit"]), (&quota, &json!(50)));
    let free = explain("free");
    assert_eq!(
        (&of(&free, 1)["override"]["kind"], &free["allowed"]),
        (&json!("unlimited"), &json!(true))
    );
    assert_eq!(
        (&of(&free, 1)["limit"], &of(&free, 1)["would_allow"]),
        (&Value::Null, &json!(true))
    );
    let bad = explain("bad");
    assert_eq!(
        (&of(&bad, 1)["override"]["kind"], &bad["allowed"]),
        (&json!("blocked"), &json!(false))
    );
    assert_eq!(
        (&of(&bad, 1)["remaining"], &of(&bad, 1)["retry_after_ms"]),
        (&json!(0), &Value::Null)
    );
    for (user, explained) in [("big", big), ("free", free), ("bad", bad)] {
        let checked = ask(&server, "/v1/check", &json!({"user_id": user, "plan": "free"}));
        assert_eq!(checked["allowed"], explained["allowed"], "{user}");
    }
}

#[test]
fn bad_requests_are_refused_as_a_check_does() {
    let server = launch().start();
    for (body, field) in [
        (json!({"plna": 1}), "plna"),
        (json!({"ip": "x"}), "ip"),
        (json!({"cost": -1}), "cost"),
        (json!({"attributes": {"user_id": "1"}}), "attributes.user_id"),
    ] {
        let response = server.post_json("/v1/explain", &body.to_string());
        assert_eq!(
            (response.status, &response.json()["field"]),
            (400, &json!(field)),
            "{response:?}"
        );
    }
    assert_eq!(server.post_json("/v1/explain?x=1", "{}").status, 400);
}

/// The number of rules shown that do not apply is bounded; rules that apply are all shown.
#[test]
fn of_many_rules_those_that_do_not_apply_are_bounded() {
    let mut rules = String::new();
    for id in 1..=1500 {
        rules += &format!(
            "[[rule]]\nrule_id = {id}\nkey_pattern = \"r{id}\"\nconditions = {{ endpoint = \"/{}\" }}\n\
            tokens = 1\nperiod = 60\n",
            id % 2
        );
    }
    let server = Launch::serve(&["--rules", "r.toml"]).file("r.toml", &rules).start();
    let explained = ask(&server, "/v1/explain", &json!({"endpoint": "/nowhere"}));
    assert_eq!(
        (explained["rules"].as_array().unwrap().len(), &explained["more"]),
        (1000, &json!(500))
    );
    let explained = ask(&server, "/v1/explain", &json!({"endpoint": "/1"}));
    assert_eq!(
        (explained["rules"].as_array().unwrap().len(), &explained["more"]),
        (1500, &json!(0))
    );
    assert_eq!(explained["rules"][749]["applies"], true);
}
