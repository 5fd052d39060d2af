//! Shadow rules: recorded, never enforced.

use std::time::Duration;

use sluicegate::{Algorithm, Mode, Request, Rule};

use crate::library::support::{limiter, quota, remaining, rule, violated};

const ALL: Request<'_> = Request::new();

fn shadow(rule_id: u64, key_pattern: &str, quota: &str) -> Rule {
    rule(rule_id, key_pattern, quota).with_mode(Mode::Shadow)
}

#[test]
fn a_shadow_tier_that_has_enough_is_charged() {
    let (limiter, _) = limiter(vec![rule(1, "a", "1/s burst 5"), shadow(2, "b", "1/s burst 3")]);
    assert!(limiter.check_now(&ALL.cost(2)).is_allowed());
    assert_eq!(remaining(&limiter, &ALL), [3, 1]);
}

#[test]
fn one_that_has_not_is_left_unchanged_and_says_so() {
    let (limiter, _) = limiter(vec![rule(1, "a", "1/s burst 5"), shadow(2, "b", "1/s burst 3")]);
    assert!(limiter.check_now(&ALL.cost(2)).is_allowed());
    let verdict = limiter.check_now(&ALL.cost(2));
    assert!(verdict.is_allowed());
    let shown: Vec<_> = verdict
        .tiers()
        .map(|t| (t.is_enforced(), t.decision.is_granted(), t.decision.remaining))
        .collect();
    assert_eq!(shown, [(true, true, 1), (false, false, 1)]);
    assert_eq!(remaining(&limiter, &ALL), [1, 1]);
}

#[test]
fn a_denial_charges_no_shadow_tier() {
    let (limiter, _) = limiter(vec![rule(1, "a", "1/s"), shadow(2, "b", "1/s burst 3")]);
    assert!(limiter.check_now(&ALL).is_allowed());
    let verdict = limiter.check_now(&ALL);
    assert_eq!(violated(&verdict), Some(1));
    let shadow = verdict.tiers().last().unwrap();
    assert!(shadow.decision.is_granted(), "it would have granted it");
    assert_eq!(shadow.decision.remaining, 2);
    assert_eq!(remaining(&limiter, &ALL), [0, 2]);
}

/// A would-be denial shows in a denied verdict too, so that it can be recorded either way.
#[test]
fn a_would_be_denial_shows_either_way() {
    let (limiter, _) = limiter(vec![rule(1, "a", "1/s burst 2"), shadow(2, "b", "1/s")]);
    let shadow_granted = |cost| {
        let verdict = limiter.check_now(&ALL.cost(cost));
        let granted = verdict.tiers().last().unwrap().decision.is_granted();
        (verdict.is_allowed(), granted)
    };
    assert_eq!(shadow_granted(1), (true, true));
    assert_eq!(shadow_granted(1), (true, false));
    assert_eq!(shadow_granted(1), (false, false));
}

#[test]
fn shadow_tiers_are_never_on_top() {
    // The shadow rules are tighter, wait longer, and come first in every tie.
    let rules = vec![
        rule(9, "user:{user_id}", "1/s burst 2"),
        shadow(1, "global", "1/hour"),
        shadow(2, "x", "1/day burst 1"),
    ];
    let (limiter, _) = limiter(rules);
    let user = Request::new().user_id("42");
    for left in [1, 0] {
        let verdict = limiter.check_now(&user);
        assert!(verdict.is_allowed() && verdict.violated().is_none());
        assert_eq!(verdict.retry_after(), Some(Duration::ZERO));
        let tightest = verdict.tightest().unwrap();
        assert_eq!((tightest.rule.rule_id(), tightest.decision.remaining), (9, left));
    }
    let verdict = limiter.check_now(&user);
    assert_eq!(violated(&verdict), Some(9));
    assert_eq!(verdict.tightest().unwrap().rule.rule_id(), 9);
    assert_eq!(verdict.retry_after(), Some(Duration::from_secs(1)));
    // Nor does a shadow's never make it never.
    let verdict = limiter.check_now(&user.cost(2));
    assert!(verdict.tiers().take(2).all(|tier| tier.decision.is_never()));
    assert_eq!(verdict.retry_after(), Some(Duration::from_secs(2)));
}

#[test]
fn in_the_shadow_alone_everything_is_allowed() {
    let (limiter, _) = limiter(vec![shadow(1, "a", "1/s"), shadow(2, "b", "1/s burst 2")]);
    for _ in 0..3 {
        let verdict = limiter.check_now(&ALL);
        assert!(verdict.is_allowed() && verdict.tightest().is_none());
    }
    // Each was charged as long as it had enough, whatever the other had.
    assert_eq!(remaining(&limiter, &ALL), [0, 0]);
    assert!(limiter.check_now(&ALL.cost(u64::MAX)).is_allowed());

    let (limiter, _) = crate::library::support::limiter(vec![shadow(1, "a", "1/s")]);
    assert!(limiter.check_now(&ALL).is_allowed());
    let verdict = limiter.check_now(&ALL);
    assert!(verdict.is_allowed() && !verdict.tiers().next().unwrap().decision.is_granted());
}

#[test]
fn a_shadow_queue_makes_nobody_wait() {
    let queue = quota("1/s burst 9").with_algorithm(Algorithm::LeakyBucket).unwrap();
    let rules = vec![Rule::new(1, "a", queue).unwrap().with_mode(Mode::Shadow)];
    let (limiter, _) = limiter(rules);
    for _ in 0..3 {
        assert_eq!(limiter.check_now(&ALL).delay(), Duration::ZERO);
    }
    assert_eq!(limiter.check_now(&ALL).tiers().next().unwrap().decision.delay().as_secs(), 3);
}
