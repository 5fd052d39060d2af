//! Bounds of a set, and clashes between its rules.

use sluicegate::rules::{RULES_MAX, RuleSetError};
use sluicegate::{Ask, Limiter, MemoryStore, OnError, Quota, Request, RuleSet};

use crate::library::support::rule;

#[test]
fn rules_are_kept_in_the_order_of_their_ids() {
    let rules = [rule(7, "a", "1/s"), rule(2, "b", "1/s"), rule(5, "c", "1/s")];
    let set = RuleSet::new(rules.to_vec()).unwrap();
    let ids: Vec<u64> = set.rules().iter().map(sluicegate::Rule::rule_id).collect();
    assert_eq!(ids, [2, 5, 7]);
    assert_eq!(set.get(5), Some(&rules[2]));
    assert_eq!(set.get(6), None);
}

#[test]
fn every_clash_is_reported() {
    let free = |id, pattern| rule(id, pattern, "1/s").with_plan("free").unwrap();
    let errors = RuleSet::new(vec![
        rule(1, "global", "1/s"),
        free(1, "user:{user_id}"),
        rule(2, "global", "2/s").with_is_active(false),
        free(3, "user:{user_id}").with_condition("endpoint", "/x").unwrap(),
        rule(1, "global", "1/s").with_plan("").unwrap(),
        free(4, "global"),
    ])
    .unwrap_err();
    let same = |key_pattern: &str, plan: Option<&str>, first, second| RuleSetError::SamePattern {
        key_pattern: key_pattern.into(),
        plan: plan.map(Into::into),
        first,
        second,
    };
    assert_eq!(
        errors.as_slice(),
        [
            RuleSetError::SameId { rule_id: 1, first: 0, second: 1 },
            same("global", None, 0, 2),
            same("user:{user_id}", Some("free"), 1, 3),
            RuleSetError::SameId { rule_id: 1, first: 0, second: 4 },
            same("global", None, 0, 4),
        ]
    );
    assert_eq!(
        errors.to_string(),
        "rule_id 1 is duplicated; \
         key_pattern `global` is duplicated for every plan; \
         key_pattern `user:{user_id}` is duplicated for plan `free`; \
         rule_id 1 is duplicated; \
         key_pattern `global` is duplicated for every plan"
    );
}

#[test]
fn one_pattern_may_have_many_plans() {
    let plans = ["", "free", "Free", "default", "pro"];
    let rules = (1..).zip(plans).map(|(id, plan)| rule(id, "a", "1/s").with_plan(plan).unwrap());
    assert_eq!(RuleSet::new(rules.collect()).unwrap().rules().len(), 5);
}

#[test]
fn there_is_an_end_to_rules() {
    let rules =
        |count| (1..=count).map(|id| rule(id, &format!("r{id}:{{a{id}}}"), "1/s")).collect();
    assert!(RuleSet::new(rules(RULES_MAX as u64)).is_ok());
    let errors = RuleSet::new(rules(RULES_MAX as u64 + 1)).unwrap_err();
    assert_eq!(errors.to_string(), "10001 rules exceed the maximum of 10000");
}

/// A request that meets more rules than it may is denied by every call, charges nothing, and has no tiers.
#[test]
fn a_request_that_meets_too_many_rules_is_denied() {
    let everywhere = |id| rule(id, &format!("r{id}"), "1/s").with_condition("endpoint", "/**");
    let rules: Vec<_> = (1..=4).map(|id| everywhere(id).unwrap()).collect();
    let met = Request::new().endpoint("/");
    let at_most =
        |max| Limiter::new(MemoryStore::new(), RuleSet::bounded(rules.clone(), max).unwrap());
    assert_eq!(at_most(4).check_now(&met).tiers().len(), 4);

    let limiter = at_most(3);
    let verdict = limiter.check_now(&met);
    assert!(!verdict.is_allowed() && verdict.violated().is_none());
    assert_eq!((verdict.too_many_rules(), verdict.retry_after()), (Some(4), None));
    assert_eq!((verdict.tiers().len(), verdict.tiers_max()), (0, 3));
    let reservation = limiter.reserve_now(&met);
    assert!(!reservation.verdict().is_allowed());
    reservation.refund_now();
    // It denies all that is checked with it, and nothing of that is charged.
    let (quota, is_probe) = (Quota::per_minute(5).unwrap(), false);
    let take = Ask::Take {
        key: "k",
        namespace: None,
        quota: &quota,
        cost: 5,
        on_error: OnError::Local,
        is_probe,
    };
    let asks = [Ask::Request { request: &met, is_probe }, take];
    assert!(!limiter.check_together_now(&asks).is_allowed());
    assert_eq!(limiter.peek_now("k", &quota).remaining, 5);
}

#[test]
fn no_rules_are_a_set_too() {
    assert_eq!(RuleSet::new(Vec::new()).unwrap().rules(), []);
    assert_eq!(RuleSet::default().version(), 0);
}

/// Rules are named by numbers that every language has exactly.
#[test]
fn an_id_that_is_too_large_is_refused() {
    let rule =
        |id| sluicegate::Rule::new(id, "global", crate::library::support::quota("1/s")).unwrap();
    assert!(RuleSet::new(vec![rule((1 << 53) - 1)]).is_ok());
    let errors = RuleSet::new(vec![rule(1 << 53)]).unwrap_err().to_string();
    assert!(errors.contains("rule_id 9007199254740992 is above 9007199254740991"), "{errors}");
}
