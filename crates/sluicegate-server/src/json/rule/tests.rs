use serde_json::{Value, json};
use sluicegate::{Algorithm, Mode, OnError, PathForm, Refill, Scope};

use super::*;
use crate::json::Object;

fn parse(body: &Value, check: impl FnOnce(&Columns<'_>)) {
    let text = body.to_string();
    let Object(columns): Object<Columns<'_>> = serde_json::from_str(&text).unwrap();
    check(&columns);
}

fn rule(body: &Value) -> Result<RuleSpec, Wrong> {
    let mut made = Err(Vec::new());
    parse(body, |columns| made = columns.rule(0));
    made
}

fn patch(rule: &RuleSpec, body: &Value) -> Result<RuleSpec, Wrong> {
    let mut made = Err(Vec::new());
    parse(body, |columns| made = columns.patch(rule));
    made
}

fn fields(wrong: Result<RuleSpec, Wrong>) -> Vec<&'static str> {
    wrong.unwrap_err().iter().map(|wrong| wrong.field).collect()
}

/// Stored form of a rule: tokens and period, without a rate.
fn stored(body: &Value) -> RuleSpec {
    let spec = rule(body).unwrap();
    let mut stored = spec.build().unwrap().spec();
    stored.rule_id = 7;
    stored
}

#[test]
fn a_rule_of_its_columns() {
    let spec = rule(&json!({
        "rule_id": 9, "key_pattern": "login:{ip}", "scope": "custom", "tokens": 5, "period": "1 minute",
        "burst_capacity": 10, "plan": "pro", "algorithm": "leaky_bucket", "refill": null, "max_wait": 0,
        "mode": "shadow", "on_error": "deny", "path": "folded", "is_active": false, "description": "d",
        "conditions": {"endpoint": "/login", "method": "POST"}, "name": "n", "replaces": ["b", "a"],
    }))
    .unwrap();
    #[expect(clippy::needless_update, reason = "a new column needs no edit here")]
    let expected = RuleSpec {
        rule_id: 9,
        key_pattern: "login:{ip}".into(),
        scope: Some(Scope::Custom),
        rate_per_second: None,
        tokens: Some(5),
        period: Some(Duration::from_secs(60)),
        burst_capacity: Some(10),
        algorithm: Algorithm::LeakyBucket,
        refill: Refill::Continuous,
        max_wait: Some(Duration::ZERO),
        plan: "pro".into(),
        mode: Mode::Shadow,
        on_error: OnError::Deny,
        path: PathForm::Folded,
        is_active: false,
        description: "d".into(),
        conditions: vec![("endpoint".into(), "/login".into()), ("method".into(), "POST".into())],
        name: "n".into(),
        replaces: vec!["b".into(), "a".into()],
        ..RuleSpec::default()
    };
    assert_eq!(spec, expected);
    let least = rule(&json!({"key_pattern": "global", "rate_per_second": 0.016})).unwrap();
    assert_eq!((least.plan.as_str(), least.is_active, least.tokens), ("", true, None));
}

#[test]
fn every_wrong_column_is_named() {
    let wrong = json!({
        "key_pattern": "user:{user_id", "scope": "users", "tokens": 0, "period": "1 fortnight",
        "algorithm": "bucket", "mode": "on", "on_error": "maybe", "plan": "p".repeat(33),
        "description": "d".repeat(1025), "conditions": {"a b": "x", "endpoint": ""},
        "name": "n".repeat(129), "replaces": [""],
    });
    let mut named = fields(rule(&wrong));
    named.sort_unstable();
    let expected = [
        "algorithm",
        "conditions",
        "conditions",
        "description",
        "key_pattern",
        "mode",
        "name",
        "on_error",
        "period",
        "plan",
        "replaces",
        "scope",
        "tokens",
    ];
    assert_eq!(named, expected);
    for (body, field) in [
        (json!({}), "key_pattern"),
        (json!({"key_pattern": "", "tokens": 1, "period": 1}), "key_pattern"),
        (json!({"key_pattern": "global"}), "tokens"),
        (json!({"key_pattern": "global", "tokens": 1}), "period"),
        (json!({"key_pattern": "global", "period": 1}), "tokens"),
        (json!({"key_pattern": "global", "rate_per_second": 0}), "rate_per_second"),
        (json!({"key_pattern": "global", "rate_per_second": -1}), "rate_per_second"),
        (json!({"key_pattern": "global", "rate_per_second": 1e300}), "rate_per_second"),
        (json!({"key_pattern": "global", "tokens": 1, "period": 0}), "period"),
        (json!({"key_pattern": "global", "tokens": 1, "period": 1e-7}), "period"),
        (json!({"key_pattern": "global", "tokens": 1, "period": 1e12}), "period"),
        (
            json!({"key_pattern": "global", "rate_per_second": 1, "burst_capacity": 0}),
            "burst_capacity",
        ),
        (json!({"key_pattern": "global", "rate_per_second": 1, "rule_id": 0}), "rule_id"),
        (json!({"key_pattern": "global", "rate_per_second": 1, "rule_id": 1_u64 << 53}), "rule_id"),
        (
            json!({"key_pattern": "global", "rate_per_second": 2, "tokens": 1, "period": 1}),
            "rate_per_second",
        ),
        (json!({"key_pattern": "global", "rate_per_second": 1, "max_wait": 1}), "max_wait"),
    ] {
        assert!(fields(rule(&body)).contains(&field), "{body}");
    }
}

/// Sending back an unchanged answer changes nothing, even if the rate cannot be written exactly.
#[test]
fn an_answer_can_be_sent_back() {
    for body in [
        json!({"key_pattern": "a", "tokens": 1, "period": "1 minute"}),
        json!({"key_pattern": "a", "tokens": 1, "period": "1 day"}),
        json!({"key_pattern": "a", "tokens": 1, "period": 4_000_000_000_u64}),
        json!({"key_pattern": "a", "tokens": 7, "period": 0.000_003}),
        json!({"key_pattern": "a", "tokens": 1, "period": 3_999_999_999.000_001}),
        json!({"key_pattern": "a", "rate_per_second": 0.016}),
        json!({"key_pattern": "a", "tokens": 10, "period": 1, "algorithm": "sliding_window"}),
        json!({"key_pattern": "a:{x}", "tokens": 1, "period": 1, "algorithm": "leaky_bucket",
            "max_wait": 2.5, "plan": "pro", "conditions": {"x": "**"}}),
    ] {
        let rule = stored(&body);
        let shown = serde_json::to_value(RuleView::new(&rule, None, 3)).unwrap();
        let mut again = None;
        parse(&shown, |columns| again = Some((columns.rule(7), columns.patch(&rule))));
        let (put, patched) = again.unwrap();
        let built = rule.build().unwrap();
        assert_eq!(put.unwrap().build().unwrap(), built, "{shown}");
        assert_eq!(patched.unwrap().build().unwrap(), built, "{shown}");
    }
}

#[test]
fn a_patch_changes_what_it_names() {
    let rule = stored(&json!({
        "key_pattern": "user:{user_id}", "tokens": 10, "period": 60, "burst_capacity": 50, "plan": "free",
        "description": "d", "conditions": {"endpoint": "/a", "method": "POST"},
    }));
    assert_eq!(patch(&rule, &json!({})).unwrap(), rule);
    let rate = patch(&rule, &json!({"rate_per_second": 0.5})).unwrap().build().unwrap();
    assert_eq!(rate.quota().rate(), "0.5/s".parse().unwrap());
    assert_eq!(rate.quota().capacity(), 50);
    let tokens = patch(&rule, &json!({"tokens": 20})).unwrap().build().unwrap();
    assert_eq!(tokens.quota().rate(), "20 per 60s".parse().unwrap());
    let both = json!({"tokens": 1, "period": 2, "rate_per_second": 0.5});
    assert_eq!(patch(&rule, &both).unwrap().tokens, Some(1));
    assert_eq!(
        fields(patch(&rule, &json!({"tokens": 1, "rate_per_second": 5}))),
        ["rate_per_second"]
    );
    let nulls = json!({
        "plan": null, "description": null, "burst_capacity": null, "scope": null,
        "conditions": {"method": null, "tenant": "acme"},
    });
    let patched = patch(&rule, &nulls).unwrap();
    assert_eq!((patched.plan.as_str(), patched.description.as_str()), ("", ""));
    assert_eq!((patched.burst_capacity, patched.scope), (None, None));
    let conditions: Vec<_> =
        patched.conditions.iter().map(|(n, g)| (n.as_str(), g.as_str())).collect();
    assert_eq!(conditions, [("endpoint", "/a"), ("tenant", "acme")]);
    assert!(patch(&rule, &json!({"conditions": null})).unwrap().conditions.is_empty());
    assert_eq!(fields(patch(&rule, &json!({"rule_id": 8}))), ["rule_id"]);
    assert_eq!(patch(&rule, &json!({"rule_id": 7})).unwrap(), rule);
    assert!(!fields(patch(&rule, &json!({"key_pattern": null}))).is_empty());
}

/// The capacity of a window is its tokens: changing them needs no second field.
#[test]
fn the_capacity_of_a_window_follows_its_tokens() {
    let bucket =
        stored(&json!({"key_pattern": "a", "tokens": 10, "period": 1, "burst_capacity": 50}));
    let window = patch(&bucket, &json!({"algorithm": "fixed_window"})).unwrap();
    assert_eq!(window.build().unwrap().quota().capacity(), 10);
    let mut window = window;
    // As a stored row may have it.
    window.burst_capacity = Some(10);
    let more = patch(&window, &json!({"tokens": 20})).unwrap();
    assert_eq!(more.build().unwrap().quota().capacity(), 20);
    let wrong = json!({"tokens": 20, "burst_capacity": 10});
    assert_eq!(fields(patch(&window, &wrong)), ["burst_capacity"]);
}
