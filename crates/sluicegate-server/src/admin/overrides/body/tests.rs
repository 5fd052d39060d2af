use std::time::Duration;

use super::*;

const NOW: Timestamp = Timestamp::from_micros(1_785_585_600_000_000);

fn limits() -> RequestLimits {
    RequestLimits {
        body_bytes_max: 16_384,
        body_timeout: Duration::from_secs(1),
        batch_max: 1,
        attributes_max: 1,
        value_bytes_max: 64,
        take_full_max: Duration::MAX,
    }
}

fn rule(key_pattern: &str) -> Rule {
    let spec = RuleSpec {
        rule_id: 1,
        key_pattern: key_pattern.into(),
        tokens: Some(10),
        period: Some(Duration::from_secs(1)),
        burst_capacity: Some(50),
        refill: Refill::Interval,
        ..RuleSpec::default()
    };
    spec.build().unwrap()
}

fn read(json: &str) -> Result<OverrideSpec, Problem> {
    read_for("user:{user_id}", "42", json)
}

fn read_for(key_pattern: &str, subject: &str, json: &str) -> Result<OverrideSpec, Problem> {
    let body: OverrideBody<'_> = crate::web::body::parse(json.as_bytes())?;
    body.spec(&rule(key_pattern), subject, &limits(), NOW)
}

fn quota(json: &str) -> Quota {
    match read(json).unwrap().instead {
        Override::Quota(quota) => quota,
        other => panic!("{other:?}"),
    }
}

fn blamed(json: &str) -> String {
    blamed_for("user:{user_id}", "42", json)
}

fn blamed_for(key_pattern: &str, subject: &str, json: &str) -> String {
    let problem = read_for(key_pattern, subject, json).unwrap_err();
    serde_json::to_value(&problem).unwrap()["field"].as_str().unwrap().to_owned()
}

#[test]
fn there_are_three_kinds_and_only_one_of_them() {
    assert_eq!(read(r#"{"unlimited": true}"#).unwrap().instead, Override::Unlimited);
    let blocked = read(r#"{"blocked": true, "unlimited": false, "tokens": null}"#);
    assert_eq!(blocked.unwrap().instead, Override::Blocked);
    assert_eq!(blamed("{}"), "tokens");
    assert_eq!(blamed(r#"{"unlimited": true, "blocked": true}"#), "unlimited");
    assert_eq!(blamed(r#"{"unlimited": true, "tokens": 1, "period": 1}"#), "unlimited");
    assert_eq!(blamed(r#"{"blocked": true, "rate_per_second": 1}"#), "blocked");
}

#[test]
fn a_quota_has_from_the_rule_what_is_left_out() {
    let raised = quota(r#"{"tokens": 1000, "period": "1 minute"}"#);
    assert_eq!(raised.rate().tokens_and_period_us(), (1000, 60_000_000));
    assert_eq!((raised.capacity(), raised.refill()), (50, Refill::Interval));
    let other = quota(r#"{"rate_per_second": 0.016, "burst_capacity": 7, "refill": "continuous"}"#);
    assert_eq!(other.rate().tokens_and_period_us(), (1, 62_500_000));
    assert_eq!((other.capacity(), other.refill()), (7, Refill::Continuous));
    // Another algorithm inherits nothing from the rule.
    let window = quota(r#"{"tokens": 5, "period": 1, "algorithm": "fixed_window"}"#);
    assert_eq!((window.capacity(), window.algorithm()), (5, Algorithm::FixedWindow));
    let queue = r#"{"tokens": 5, "period": 1, "algorithm": "leaky_bucket", "max_wait": 0}"#;
    assert_eq!(quota(queue).max_wait(), Some(Duration::ZERO));
}

#[test]
fn a_wrong_quota_is_blamed_on_its_field() {
    for (json, field) in [
        (r#"{"tokens": 1}"#, "period"),
        (r#"{"period": 1}"#, "tokens"),
        (r#"{"burst_capacity": 5}"#, "tokens"),
        (r#"{"tokens": 0, "period": 1}"#, "tokens"),
        (r#"{"tokens": 1, "period": 0}"#, "period"),
        (r#"{"tokens": 1, "period": "soon"}"#, "period"),
        (r#"{"tokens": 1, "period": 1, "burst_capacity": 0}"#, "burst_capacity"),
        (r#"{"tokens": 1, "period": 1, "rate_per_second": 2}"#, "rate_per_second"),
        (r#"{"tokens": 1, "period": 1, "algorithm": "guess"}"#, "algorithm"),
        (r#"{"tokens": 1, "period": 1, "refill": "never"}"#, "refill"),
        (r#"{"tokens": 1, "period": 1, "max_wait": 1}"#, "max_wait"),
        (r#"{"tokens": -1, "period": 1}"#, "tokens"),
        (r#"{"tokns": 1}"#, "tokns"),
    ] {
        assert_eq!(blamed(json), field, "{json}");
    }
}

#[test]
fn it_ends_in_the_future_or_never() {
    let ends = |rest: &str| read(&format!(r#"{{"blocked": true{rest}}}"#)).unwrap().expires_at;
    assert_eq!(ends(""), None);
    assert_eq!(ends(r#", "expires_in": 90"#), Some(NOW.plus_micros(90_000_000)));
    assert_eq!(ends(r#", "expires_in": "1h""#), Some(NOW.plus_micros(3_600_000_000)));
    let later = NOW.plus_micros(1);
    assert_eq!(ends(&format!(r#", "expires_at": "{later}""#)), Some(later));
    for (rest, field) in [
        (r#""expires_at": "yesterday""#.to_owned(), "expires_at"),
        (format!(r#""expires_at": "{NOW}""#), "expires_at"),
        (r#""expires_in": 0"#.to_owned(), "expires_in"),
        (r#""expires_in": -5"#.to_owned(), "expires_in"),
        (r#""expires_in": 1e300"#.to_owned(), "expires_in"),
        (format!(r#""expires_in": 5, "expires_at": "{later}""#), "expires_in"),
    ] {
        assert_eq!(blamed(&format!(r#"{{"blocked": true, {rest}}}"#)), field, "{rest}");
    }
}

#[test]
fn a_subject_is_one_that_requests_have() {
    const BLOCKED: &str = r#"{"blocked": true}"#;
    let subject = |key_pattern, subject| read_for(key_pattern, subject, BLOCKED).unwrap().subject;
    assert_eq!(subject("ip:{ip}", "::ffff:203.0.113.9"), "203.0.113.9");
    assert_eq!(subject("ip:{ip}", "2001:DB8::0:1"), "2001:db8::1");
    assert_eq!(subject("api:{endpoint}:{user_id}", "::ffff:203.0.113.9"), "::ffff:203.0.113.9");
    assert_eq!(subject("global", "global"), "global");
    for (key_pattern, subject) in
        [("ip:{ip}", "nowhere"), ("global", "42"), ("user:{user_id}", ""), ("u:{user_id}", "a\0b")]
    {
        assert_eq!(blamed_for(key_pattern, subject, BLOCKED), "subject", "{subject}");
    }
    let long = "x".repeat(65);
    assert_eq!(blamed_for("user:{user_id}", &long, BLOCKED), "subject");
}

#[test]
fn a_reason_is_short() {
    let reason =
        |bytes: usize| format!(r#"{{"blocked": true, "reason": "{}"}}"#, "x".repeat(bytes));
    assert_eq!(read(&reason(REASON_BYTES_MAX)).unwrap().reason.len(), REASON_BYTES_MAX);
    assert_eq!(blamed(&reason(REASON_BYTES_MAX + 1)), "reason");
    assert_eq!(blamed(r#"{"blocked": true, "reason": "\u0000"}"#), "reason");
}
