//! Rules column by column, with everything that is wrong.

use std::time::Duration;

use sluicegate::rules::RuleSpec;
use sluicegate::{Algorithm, Decimal, Mode, OnError, Refill, Rule, Scope};

use crate::library::support::{quota, rule};

fn minute(tokens: u64) -> RuleSpec {
    RuleSpec {
        rule_id: 1,
        key_pattern: "user:{user_id}".into(),
        tokens: Some(tokens),
        period: Some(Duration::from_secs(60)),
        ..RuleSpec::default()
    }
}

fn decimal(text: &str) -> Option<Decimal> {
    Some(text.parse().unwrap())
}

/// The errors, a line for every column.
fn errors(spec: &RuleSpec) -> Vec<String> {
    spec.build().unwrap_err().iter().map(ToString::to_string).collect()
}

#[test]
fn what_is_left_out_is_harmless() {
    assert_eq!(minute(5).build().unwrap(), rule(1, "user:{user_id}", "5/minute"));
}

#[test]
fn every_column_is_used() {
    let spec = RuleSpec {
        rule_id: 7,
        scope: Some(Scope::Custom),
        burst_capacity: Some(9),
        algorithm: Algorithm::LeakyBucket,
        max_wait: Some(Duration::from_secs(2)),
        plan: "pro".into(),
        mode: Mode::Shadow,
        on_error: OnError::Deny,
        is_active: false,
        description: "a note".into(),
        conditions: vec![("method".into(), "P*".into()), ("endpoint".into(), "/x".into())],
        ..minute(5)
    };
    let quota = quota("5/minute burst 9")
        .with_algorithm(Algorithm::LeakyBucket)
        .and_then(|quota| quota.with_max_wait(Duration::from_secs(2)));
    let rule = Rule::new(7, "user:{user_id}", quota.unwrap())
        .unwrap()
        .with_scope(Scope::Custom)
        .with_plan("pro")
        .unwrap()
        .with_mode(Mode::Shadow)
        .with_on_error(OnError::Deny)
        .with_is_active(false)
        .with_description("a note")
        .with_condition("method", "P*")
        .unwrap()
        .with_condition("endpoint", "/x")
        .unwrap();
    assert_eq!(spec.build().unwrap(), rule);
}

#[test]
fn a_rate_is_given_once_or_twice_alike() {
    let rate = |rate_per_second: &str| RuleSpec {
        rate_per_second: decimal(rate_per_second),
        tokens: None,
        period: None,
        ..minute(0)
    };
    let slow = rate("0.016").build().unwrap();
    assert_eq!(*slow.quota(), quota("1 per 62.5s"));
    let both = RuleSpec { rate_per_second: decimal("0.1"), ..minute(6) };
    assert_eq!(*both.build().unwrap().quota(), quota("6/minute"));
    let unequal = RuleSpec { rate_per_second: decimal("0.1001"), ..minute(6) };
    assert_eq!(errors(&unequal), ["rate_per_second: is not 6 per period: leave it out"]);
    let half = RuleSpec { tokens: None, ..minute(6) };
    assert_eq!(errors(&half), ["tokens: is missing: a period needs tokens"]);
    let other_half = RuleSpec { period: None, rate_per_second: decimal("1"), ..minute(6) };
    assert_eq!(errors(&other_half), ["period: is missing: tokens need a period"]);
    let none = RuleSpec { tokens: None, period: None, ..minute(6) };
    let missing = "tokens: is missing: give tokens and period, or rate_per_second";
    assert_eq!(errors(&none), [missing]);
    assert_eq!(errors(&rate("0")), ["rate_per_second: a rate of zero never refills"]);
    let fine = rate("0.00000000000000000001");
    assert_eq!(errors(&fine), ["rate_per_second: too many digits to be kept exactly"]);
}

/// A window is not built by way of a token bucket, which may be impossible where the window is not.
#[test]
fn a_window_need_not_be_a_token_bucket_first() {
    let day = Duration::from_secs(86_400);
    let spec = RuleSpec { period: Some(day), ..minute(1_000_003) };
    assert_eq!(errors(&spec).len(), 1);
    let spec = RuleSpec { algorithm: Algorithm::FixedWindow, ..spec };
    assert_eq!(spec.build().unwrap().quota().capacity(), 1_000_003);
    // Nor must a small burst be a large one first.
    let spec = RuleSpec { period: Some(day), burst_capacity: Some(10), ..minute(1_000_003) };
    assert_eq!(spec.build().unwrap().quota().capacity(), 10);
}

#[test]
fn a_quota_shows_all_its_mistakes() {
    let spec = RuleSpec {
        algorithm: Algorithm::SlidingWindow,
        burst_capacity: Some(7),
        refill: Refill::Interval,
        max_wait: Some(Duration::ZERO),
        ..minute(5)
    };
    assert_eq!(
        errors(&spec),
        [
            "max_wait: max_wait needs the leaky_bucket algorithm",
            "refill: interval refill needs the token_bucket algorithm",
            "burst_capacity: a window admits its tokens per period and has no other capacity: \
             leave it out",
        ]
    );
    // A capacity that says what the tokens say is no mistake.
    let same =
        RuleSpec { burst_capacity: Some(5), max_wait: None, refill: Refill::default(), ..spec };
    assert!(same.build().is_ok());

    let of = |spec: RuleSpec| errors(&spec).join("\n");
    assert_eq!(of(minute(0)), "tokens: a rate of zero never refills");
    let spec = RuleSpec { period: Some(Duration::ZERO), ..minute(5) };
    assert_eq!(of(spec), "period: the period must be longer than zero");
    let spec = RuleSpec { period: Some(Duration::from_nanos(1)), ..minute(5) };
    assert_eq!(of(spec), "period: the period is not a whole number of microseconds");
    let spec = RuleSpec { period: Some(Duration::from_secs(u64::MAX)), ..minute(5) };
    assert_eq!(of(spec), "period: the period is longer than 142 years");
    let spec = RuleSpec { burst_capacity: Some(0), ..minute(5) };
    assert_eq!(of(spec), "burst_capacity: a capacity of zero grants nothing");
    let spec = RuleSpec { burst_capacity: Some(u64::MAX), ..minute(5) };
    assert_eq!(of(spec), "burst_capacity: the capacity is above 2^52");
    assert_eq!(of(minute(u64::MAX)), "tokens: the capacity is above 2^52");
    let spec = RuleSpec { burst_capacity: Some(1 << 51), ..minute(1) };
    assert!(of(spec).starts_with("burst_capacity: an empty bucket would take too long"));
    let spec = RuleSpec {
        algorithm: Algorithm::LeakyBucket,
        max_wait: Some(Duration::MAX),
        burst_capacity: Some(0),
        ..minute(5)
    };
    assert_eq!(
        of(spec),
        "burst_capacity: a capacity of zero grants nothing\n\
         max_wait: max_wait cannot be counted exactly in microseconds"
    );
    let spec =
        RuleSpec { rate_per_second: decimal("0.5"), tokens: None, period: None, ..minute(0) };
    let spec = RuleSpec { refill: Refill::Interval, ..spec };
    assert_eq!(
        of(spec),
        "rate_per_second: windows and interval refill need a whole number of tokens per period"
    );
}

#[test]
fn everything_that_is_wrong_is_said() {
    let conditions = [("method", ""), ("a b", "*"), ("endpoint", "/ok"), ("x", &"y".repeat(257))];
    let spec = RuleSpec {
        rule_id: 1 << 53,
        key_pattern: "user:{".into(),
        burst_capacity: Some(0),
        plan: "p".repeat(33),
        description: "d".repeat(1025),
        conditions: conditions.map(|(name, glob)| (name.into(), glob.into())).to_vec(),
        name: "same".into(),
        replaces: vec!["same".into()],
        ..minute(5)
    };
    let wrong = spec.build().unwrap_err();
    assert_eq!(
        errors(&spec),
        [
            "rule_id: is at most 9007199254740991",
            "burst_capacity: a capacity of zero grants nothing",
            "key_pattern: this `{` is never closed",
            "plan: a plan's name must have at most 32 bytes and no control characters",
            "conditions.method: an empty glob matches nothing",
            "conditions.a b: `a b` is not the name of an attribute (at most 64 letters, digits, \
             `_`, `-`, `.`)",
            "conditions.x: the glob has more than 256 bytes",
            "replaces: a rule cannot replace itself",
            "description: has at most 1024 bytes",
        ]
    );
    let at: Vec<_> = wrong.iter().filter_map(|error| error.at).collect();
    assert_eq!(at, [5], "only the key pattern knows the character");
}

#[test]
fn a_rule_has_a_bounded_number_of_conditions() {
    let conditions = |count| (0..count).map(|n| (format!("a{n}"), "*".to_owned())).collect();
    assert!(RuleSpec { conditions: conditions(16), ..minute(5) }.build().is_ok());
    let spec = RuleSpec { conditions: conditions(18), ..minute(5) };
    let most = "the rule has more than 16 conditions";
    assert_eq!(
        errors(&spec),
        [format!("conditions.a16: {most}"), format!("conditions.a17: {most}")]
    );
}

/// Conditions are a map: of two for one attribute a file, a database or JSON could keep one only.
#[test]
fn a_rule_has_one_condition_for_an_attribute() {
    let twice = vec![("method".into(), "GET".into()), ("method".into(), "P*".into())];
    let spec = RuleSpec { conditions: twice, ..minute(5) };
    assert_eq!(
        errors(&spec),
        ["conditions.method: the condition on `method` is duplicated".to_owned()]
    );
}

/// The columns of a rule make that rule again, and say what was written.
#[test]
fn a_rule_knows_its_columns() {
    let with_algorithm = |algorithm| RuleSpec { algorithm, ..minute(5) };
    let windows = Algorithm::ALL.map(with_algorithm).into_iter();
    let specs = windows.chain([
        RuleSpec { refill: Refill::Interval, burst_capacity: Some(7), ..minute(5) },
        RuleSpec {
            max_wait: Some(Duration::ZERO),
            plan: "free".into(),
            mode: Mode::Shadow,
            on_error: OnError::Deny,
            is_active: false,
            description: "a note".into(),
            scope: Some(Scope::Custom),
            conditions: vec![("b".into(), "*".into()), ("a".into(), "! b |c".into())],
            name: "a name".into(),
            replaces: vec!["b".into(), "a".into()],
            ..with_algorithm(Algorithm::LeakyBucket)
        },
        RuleSpec { tokens: None, period: None, rate_per_second: "2.5".parse().ok(), ..minute(5) },
    ]);
    for spec in specs {
        let rule = spec.build().unwrap();
        assert_eq!(rule.spec().build().unwrap(), rule, "{spec:?}");
        assert_eq!(rule.spec().build().unwrap().spec(), rule.spec(), "{spec:?}");
    }
    // As written: the same rate may be written in several ways.
    let hundred =
        RuleSpec { tokens: Some(600), period: Some(Duration::from_secs(60)), ..minute(5) };
    let written = hundred.build().unwrap().spec();
    assert_eq!((written.tokens, written.period), (hundred.tokens, hundred.period));
    assert_eq!((written.rate_per_second, written.burst_capacity), (None, Some(600)));
    let decimal =
        RuleSpec { tokens: None, period: None, rate_per_second: "0.016".parse().ok(), ..minute(5) };
    let written = decimal.build().unwrap().spec();
    assert_eq!(
        (written.tokens, written.period),
        (Some(1), Some(Duration::from_micros(62_500_000)))
    );
}

/// A rule in `Unlimited` mode needs no quota; one that is given is checked and kept.
#[test]
fn a_rule_without_a_limit_needs_no_quota() {
    let unlimited =
        RuleSpec { key_pattern: "free".into(), mode: Mode::Unlimited, ..RuleSpec::default() };
    let spec = unlimited.build().unwrap().spec();
    assert_eq!((spec.tokens, spec.period), (Some(1_000_000), Some(Duration::from_secs(1))));
    assert_eq!(spec.burst_capacity, Some(1_000_000));
    let given = RuleSpec { mode: Mode::Unlimited, ..minute(5) };
    assert_eq!(given.build().unwrap().spec().tokens, Some(5));
    let half = RuleSpec { tokens: Some(5), ..unlimited.clone() };
    assert_eq!(errors(&half), ["period: is missing: tokens need a period"]);
    assert_eq!(errors(&RuleSpec { mode: Mode::Shadow, ..unlimited }).len(), 1);
}

/// The setter truncates; only columns that are too long are refused.
#[test]
fn a_description_is_cut_between_characters() {
    let rule = rule(1, "a", "1/s").with_description(&"€".repeat(1000));
    assert_eq!(rule.description(), "€".repeat(341));
}
