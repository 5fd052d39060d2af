//! The body of a denial.

use http::StatusCode;
use proptest::prelude::*;
use serde_json::{Value, json};
use sluicegate::headers::{PROBLEM_JSON, Policies, Policy, QUOTA_EXCEEDED};
use sluicegate::rules::{Override, Overrides};
use sluicegate::{Decision, Outcome, Quota, Request, RuleSet, Verdict};

use crate::http::support::{cases, limiter, on_clock, rule};

fn body(verdict: &Verdict, status: StatusCode) -> Value {
    serde_json::from_slice(&Policies::of(verdict).problem_json(status)).unwrap()
}

#[test]
fn it_says_which_rule_and_when_to_come_back() {
    let rules = vec![
        rule(1, "user:{user_id}", "10/s"),
        rule(2, "ip:{ip}", "10/minute"),
        rule(3, "global", "1000/s"),
    ];
    let (limiter, _) = limiter(rules);
    let request = Request::new().user_id("42").ip("203.0.113.9").cost(10);
    assert!(limiter.check_now(&request).is_allowed());
    assert_eq!(
        body(&limiter.check_now(&request.cost(1)), StatusCode::TOO_MANY_REQUESTS),
        json!({
            "type": "https://iana.org/assignments/http-problem-types#quota-exceeded",
            "title": "Request cannot be satisfied as assigned quota has been exceeded",
            "status": 429,
            "detail": "the limit of rule 2, ip:{ip}, is reached: try again in 6 s",
            "violated-policies": ["user", "ip"],
            "rule_id": 2,
            "retry_after_ms": 6000,
        })
    );
    assert_eq!(PROBLEM_JSON, "application/problem+json");
    assert!(QUOTA_EXCEEDED.ends_with("#quota-exceeded"));
}

#[test]
fn waiting_does_not_help_with_never() {
    let (limiter, _) = limiter(vec![rule(1, "user:{user_id}", "10/s")]);
    let verdict = limiter.check_now(&Request::new().user_id("42").cost(11));
    let body = body(&verdict, StatusCode::FORBIDDEN);
    assert_eq!(body["status"], 403);
    assert_eq!(body["retry_after_ms"], Value::Null);
    assert_eq!(
        body["detail"],
        "the limit of rule 1, user:{user_id}, is 10, which is less than the request costs: waiting does not help"
    );
}

#[test]
fn nor_if_one_is_blocked() {
    let rules = RuleSet::new(vec![rule(1, "user:{user_id}", "10/s")]).unwrap();
    let blocked = Overrides::new([(1, "42".to_owned(), Override::Blocked)]).unwrap();
    let (limiter, _) = on_clock(rules.with_overrides(blocked));
    let body =
        body(&limiter.check_now(&Request::new().user_id("42")), StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(body["violated-policies"], json!(["user"]));
    assert_eq!(
        body["detail"],
        "the limit of rule 1, user:{user_id}, lets nothing through: waiting does not help"
    );
}

#[test]
fn a_denial_that_no_policy_is_about() {
    let body = Policies::default().problem_json(StatusCode::TOO_MANY_REQUESTS);
    let body: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(body["violated-policies"], json!([]));
    assert_eq!((&body["rule_id"], &body["retry_after_ms"]), (&Value::Null, &Value::Null));
}

proptest! {
    #![proptest_config(cases(512))]

    /// Whatever rules and policies are called, the body is JSON with those names in it.
    #[test]
    fn any_name_is_a_string(name in any::<String>(), pattern in "[^{}\u{0}-\u{1f}\u{7f}]{1,40}") {
        let quota = Quota::per_second(1).unwrap();
        let outcome = Outcome::Denied { retry_after: 1 };
        let decision = Decision { outcome, limit: 1, remaining: 0, reset_after: 1 };
        let mut policies = Policies::default();
        policies.add(Policy::new(&name, &quota, &decision));
        let body: Value =
            serde_json::from_slice(&policies.problem_json(StatusCode::TOO_MANY_REQUESTS)).unwrap();
        let shown = policies.name(policies.iter().next().unwrap()).to_string();
        prop_assert_eq!(&body["violated-policies"], &json!([shown]));

        let Ok(rule) = sluicegate::Rule::new(1, &pattern, quota) else { return Ok(()) };
        let (limiter, _) = limiter(vec![rule]);
        let verdict = limiter.check_now(&Request::new().endpoint("/").cost(2));
        if !verdict.is_allowed() {
            let body = self::body(&verdict, StatusCode::TOO_MANY_REQUESTS);
            prop_assert!(body["detail"].as_str().unwrap().contains(&pattern));
        }
    }
}
