//! Header fields, case by case.

use std::time::Duration;

use http::{HeaderMap, HeaderValue};
use sluicegate::headers::{Draft, Headers, Legacy, POLICIES_MAX, Policies, Policy, Reset};
use sluicegate::rules::{Override, Overrides};
use sluicegate::{Algorithm, Decision, Mode, Outcome, Quota, Refill, Request, Rule, RuleSet};

use crate::http::support::{NOW, fields, fields_of, limiter, on_clock, rule};

const USER: Request<'_> = Request::new();

fn user() -> Request<'static> {
    USER.user_id("42")
}

#[test]
fn an_allowed_request() {
    let (limiter, clock) = limiter(vec![rule(1, "user:{user_id}", "10/s burst 50")]);
    assert!(limiter.check_now(&user().cost(37)).is_allowed());
    clock.advance(Duration::from_millis(20));
    let fields = fields(&limiter.check_now(&user()));
    assert_eq!(fields["ratelimit-policy"], r#""user";q=50;w=5"#);
    // Thirty-eight tokens take 3.78 s. The next one is there in 80 ms.
    assert_eq!(fields["ratelimit"], r#""user";r=12;t=1"#);
    assert_eq!(fields["x-ratelimit-limit"], "50");
    assert_eq!(fields["x-ratelimit-remaining"], "12");
    assert_eq!(fields["x-ratelimit-reset"], "4");
    assert_eq!(fields.len(), 5, "{fields:?}");
}

#[test]
fn a_denied_request() {
    let rules = vec![
        rule(1, "user:{user_id}", "5/minute"),
        rule(2, "ip:{ip}", "1/hour burst 2"),
        rule(3, "global", "1/s burst 100"),
    ];
    let (limiter, _) = limiter(rules);
    let request = user().ip("203.0.113.9");
    assert!(limiter.check_now(&request.clone().cost(2)).is_allowed());
    let fields = fields(&limiter.check_now(&request.cost(4)));
    assert_eq!(
        fields["ratelimit-policy"],
        r#""user";q=5;w=60, "ip";q=2;w=7200, "global";q=100;w=100"#
    );
    // Four never fit in rule 2, and the global rule is not what is waited for.
    assert_eq!(fields["ratelimit"], r#""user";r=3;t=12, "ip";r=0, "global";r=98"#);
    assert_eq!(fields["x-ratelimit-limit"], "2");
    assert_eq!(fields.get("retry-after"), None);
}

#[test]
fn a_denial_says_when_to_come_back() {
    let rules = vec![rule(1, "user:{user_id}", "5/minute"), rule(2, "ip:{ip}", "1/s")];
    let (limiter, _) = limiter(rules);
    let request = user().ip("203.0.113.9");
    assert!(limiter.check_now(&request).is_allowed());
    let fields = fields(&limiter.check_now(&request));
    assert_eq!(fields["ratelimit"], r#""user";r=4, "ip";r=0;t=1"#);
    assert_eq!(fields["retry-after"], "1");
    assert_eq!(fields["x-ratelimit-remaining"], "0");
    assert_eq!(fields["x-ratelimit-reset"], "1");
}

#[test]
fn a_wait_of_a_microsecond_is_a_second() {
    let (limiter, _) = limiter(vec![rule(1, "global", "1 per 1us")]);
    assert!(limiter.check_now(&USER).is_allowed());
    let fields = fields(&limiter.check_now(&USER));
    assert_eq!((&*fields["ratelimit"], &*fields["retry-after"]), (r#""global";r=0;t=1"#, "1"));
    assert_eq!(fields["ratelimit-policy"], r#""global";q=1;w=1"#);
}

#[test]
fn a_full_bucket_has_nothing_to_wait_for() {
    let (limiter, _) = limiter(vec![rule(1, "global", "5/minute")]);
    let fields = fields(&limiter.check_now(&USER.cost(0)));
    assert_eq!(fields["ratelimit"], r#""global";r=5"#);
    assert_eq!(fields["x-ratelimit-reset"], "0");
}

#[test]
fn names_have_the_rules_id_where_a_scope_is_shared() {
    let rules = vec![
        rule(3, "user:{user_id}", "5/minute"),
        rule(7, "payment:{user_id}", "1/minute burst 3"),
        rule(8, "global", "9/s"),
    ];
    let (limiter, _) = limiter(rules);
    let fields = fields(&limiter.check_now(&user()));
    assert_eq!(fields["ratelimit"], r#""user-3";r=4;t=12, "user-7";r=2;t=60, "global";r=8;t=1"#);
    assert_eq!(fields["x-ratelimit-limit"], "3");
}

#[test]
fn shadow_rules_are_not_told_of() {
    let hidden = rule(1, "user:{user_id}", "1/hour").with_mode(Mode::Shadow);
    let (limiter, _) = limiter(vec![hidden.clone(), rule(2, "payment:{user_id}", "5/minute")]);
    for _ in 0..2 {
        let fields = fields(&limiter.check_now(&user()));
        assert_eq!(fields["ratelimit-policy"], r#""user";q=5;w=60"#);
        assert_eq!(fields.get("retry-after"), None);
    }
    let (limiter, _) = self::limiter(vec![hidden]);
    assert!(fields(&limiter.check_now(&user())).is_empty());
}

#[test]
fn no_rule_no_fields() {
    let (limiter, _) = limiter(vec![rule(1, "user:{user_id}", "1/s")]);
    assert!(fields(&limiter.check_now(&USER)).is_empty());
}

#[test]
fn a_blocked_subject_is_not_told_to_come_back() {
    let rules = RuleSet::new(vec![rule(1, "user:{user_id}", "10/s")]).unwrap();
    let blocked = Overrides::new([(1, "42".to_owned(), Override::Blocked)]).unwrap();
    let (limiter, _) = on_clock(rules.with_overrides(blocked));
    let fields = fields(&limiter.check_now(&user()));
    assert_eq!(fields["ratelimit-policy"], r#""user";q=0;w=1"#);
    assert_eq!(fields["ratelimit"], r#""user";r=0"#);
    assert_eq!(fields.get("retry-after"), None);
}

#[test]
fn an_override_is_what_its_subject_sees() {
    let rules = RuleSet::new(vec![rule(1, "user:{user_id}", "10/s")]).unwrap();
    let more = Override::Quota("100/minute burst 200".parse().unwrap());
    let (limiter, _) =
        on_clock(rules.with_overrides(Overrides::new([(1, "42".to_owned(), more)]).unwrap()));
    let fields = fields(&limiter.check_now(&user()));
    assert_eq!(fields["ratelimit-policy"], r#""user";q=200;w=120"#);
    assert_eq!(fields["ratelimit"], r#""user";r=199;t=1"#);
}

/// `t` of the rules' algorithms, after four of five tokens.
#[test]
fn until_there_is_more() {
    let counted = |algorithm| {
        Quota::build("5 per 10s".parse().unwrap(), algorithm, Refill::Continuous, None, None)
            .unwrap()
    };
    let interval = counted(Algorithm::TokenBucket).with_refill(Refill::Interval).unwrap();
    let queue = counted(Algorithm::LeakyBucket).with_max_wait(Duration::from_secs(1)).unwrap();
    let cases = [
        (counted(Algorithm::TokenBucket), r#""custom";r=1;t=2"#),
        (interval, r#""custom";r=1;t=10"#),
        (counted(Algorithm::FixedWindow), r#""custom";r=1;t=10"#),
        (counted(Algorithm::SlidingWindow), r#""custom";r=1;t=10"#),
        (counted(Algorithm::SlidingCounter), r#""custom";r=1;t=20"#),
        (counted(Algorithm::LeakyBucket), r#""custom";r=1;t=2"#),
        // The queue is eight seconds long, and the maximum wait is one second.
        (queue, r#""custom";r=0;t=7"#),
    ];
    for (quota, expected) in cases {
        let (limiter, _) = limiter(vec![Rule::new(1, "a", quota).unwrap()]);
        let verdict = limiter.check_now(&USER.cost(4));
        assert_eq!(fields(&verdict)["ratelimit"], expected, "{quota}");
    }
}

#[test]
fn each_kind_can_be_left_out() {
    let (limiter, _) = limiter(vec![rule(1, "global", "1/minute burst 2")]);
    assert!(limiter.check_now(&USER.cost(2)).is_allowed());
    let verdict = limiter.check_now(&USER);
    let names = |draft, legacy| {
        let fields = fields_of(Headers { draft, legacy }, &Policies::of(&verdict));
        fields.into_keys().collect::<Vec<_>>()
    };
    let off: [&str; 1] = ["retry-after"];
    assert_eq!(names(Draft::Off, Legacy::Off), off);
    assert_eq!(names(Draft::Ietf11, Legacy::Off), ["ratelimit", "ratelimit-policy", "retry-after"]);
    assert_eq!(names(Draft::Off, Legacy::XRateLimit(Reset::Epoch)).len(), 4);
}

#[test]
fn reset_as_an_instant() {
    let (limiter, _) = limiter(vec![rule(1, "global", "1/s burst 9")]);
    let verdict = limiter.check_now(&USER);
    let reset = |reset| {
        let headers = Headers { legacy: Legacy::XRateLimit(reset), ..Headers::default() };
        fields_of(headers, &Policies::of(&verdict))["x-ratelimit-reset"].clone()
    };
    assert_eq!(reset(Reset::Delta), "1");
    // 1_700_000_000.123456 and a second, rounded up.
    assert_eq!(reset(Reset::Epoch), "1700000002");
}

#[test]
fn settings_by_name() {
    for draft in Draft::ALL {
        assert_eq!(draft.name().parse(), Ok(draft));
    }
    for reset in Reset::ALL {
        assert_eq!(reset.name().parse(), Ok(reset));
    }
    assert_eq!(Draft::default().name(), "ietf-draft-11");
    assert_eq!(Legacy::default(), Legacy::XRateLimit(Reset::Delta));
    assert_eq!(
        "ietf".parse::<Draft>().unwrap_err().to_string(),
        "must be one of ietf-draft-11, off"
    );
}

#[test]
fn fields_that_are_there_are_replaced() {
    let (limiter, _) = limiter(vec![rule(1, "global", "1/s")]);
    let verdict = limiter.check_now(&USER);
    let mut map = HeaderMap::new();
    map.append("ratelimit", HeaderValue::from_static(r#""theirs";r=1"#));
    map.append("ratelimit", HeaderValue::from_static(r#""theirs-2";r=1"#));
    Headers::default().write(&Policies::of(&verdict), NOW, &mut map);
    assert_eq!(map.get_all("ratelimit").iter().count(), 1);
}

// ===== policies of several answers =====

fn granted(remaining: u64) -> Decision {
    Decision { outcome: Outcome::Granted { delay: 0 }, limit: 9, remaining, reset_after: 1 }
}

#[test]
fn a_bucket_without_a_rule_has_the_name_it_is_given() {
    let quota = Quota::per_second(9).unwrap();
    let decision = granted(8);
    let names =
        [("user:123", r#""user:123""#), (r#"a"b\c"#, r#""a\"b\\c""#), ("zürich\n", r#""z_rich_""#)];
    for (name, written) in names {
        let mut policies = Policies::default();
        policies.add(Policy::new(name, &quota, &decision));
        let fields = fields_of(Headers::default(), &policies);
        assert_eq!(fields["ratelimit-policy"], format!("{written};q=9;w=1"));
    }
    let long = "x".repeat(1000);
    let mut policies = Policies::default();
    policies.add(Policy::new(&long, &quota, &decision));
    assert_eq!(
        fields_of(Headers::default(), &policies)["ratelimit"].len(),
        64 + r#""";r=8;t=1"#.len()
    );
}

#[test]
fn of_two_buckets_of_one_rule_the_tighter_one_is_told_of() {
    let (limiter, _) = limiter(vec![rule(1, "user:{user_id}", "5/minute")]);
    assert!(limiter.check_now(&user().cost(3)).is_allowed());
    let (one, other) = (limiter.check_now(&user()), limiter.check_now(&USER.user_id("7")));
    for order in [[&one, &other], [&other, &one]] {
        let mut policies = Policies::default();
        order.into_iter().for_each(|verdict| policies.add_verdict(verdict));
        let fields = fields_of(Headers::default(), &policies);
        assert_eq!(fields["ratelimit"], r#""user";r=1;t=12"#);
    }
}

#[test]
fn of_too_many_the_tightest_are_told_of() {
    let quota = Quota::per_second(9).unwrap();
    let decisions: Vec<_> = (0..100).map(granted).collect();
    let names: Vec<_> = (0..100).map(|number| format!("p{number}")).collect();
    let mut policies = Policies::default();
    for (name, decision) in names.iter().zip(&decisions).rev() {
        policies.add(Policy::new(name, &quota, decision));
    }
    assert_eq!(policies.iter().len(), POLICIES_MAX);
    assert!(policies.iter().all(|policy| policy.remaining() < POLICIES_MAX as u64));
    assert_eq!(policies.tightest().unwrap().remaining(), 0);
}

/// A structured field has integers of fifteen digits.
#[test]
fn integers_that_are_too_large_stop_at_the_largest() {
    let (limiter, _) = limiter(vec![rule(1, "global", "1 per 1us burst 4503599627370496")]);
    let fields = fields(&limiter.check_now(&USER));
    assert_eq!(fields["ratelimit-policy"], r#""global";q=999999999999999;w=4503599628"#);
    assert_eq!(fields["ratelimit"], r#""global";r=999999999999999;t=1"#);
    assert_eq!(fields["x-ratelimit-limit"], "4503599627370496");
}
