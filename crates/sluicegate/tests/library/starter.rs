//! The starter rules, and scenarios of earlier limiters.

use sluicegate::{Limiter, ManualClock, Request, RuleSet};

use crate::library::support::{allowed_in_a_row, ms, on_clock, quota, rule_ids, secs, violated};

/// Id, scope, key pattern, plan, quota, condition on the endpoint.
const DESIGN: [(u64, &str, &str, &str, &str, &str); 9] = [
    (1, "user", "user:{user_id}", "free", "10/s burst 50", ""),
    (2, "user", "user:{user_id}", "pro", "100/s burst 500", ""),
    (3, "user", "user:{user_id}", "enterprise", "1000/s burst 5000", ""),
    (4, "endpoint", "endpoint:/api/search", "", "1000/s burst 2000", ""),
    (5, "ip", "login:{ip}", "", "5/minute burst 5", "/login"),
    (6, "user", "payment:{user_id}", "", "1/minute burst 3", "/payment"),
    (7, "ip", "ip:{ip}", "", "100/s burst 200", ""),
    (8, "global", "global", "", "50000/s burst 100000", ""),
    (9, "user", "search:{user_id}", "", "10/s burst 100", "/search"),
];

#[test]
fn the_starter_rules_are_the_designs() {
    let starter = RuleSet::starter();
    assert_eq!(starter.rules().len(), DESIGN.len());
    for (rule, (id, scope, pattern, plan, quota_text, endpoint)) in
        starter.rules().iter().zip(DESIGN)
    {
        assert_eq!(rule.rule_id(), id);
        assert_eq!(rule.scope().name(), scope, "{id}");
        assert_eq!(rule.key_pattern().as_str(), pattern, "{id}");
        assert_eq!(rule.plan().unwrap_or_default(), plan, "{id}");
        assert_eq!(*rule.quota(), quota(quota_text), "{id}");
        let conditions = rule.conditions().iter().map(|(a, glob)| (a.name(), glob.as_str()));
        let expected = Some(("endpoint", endpoint)).filter(|_| !endpoint.is_empty());
        assert_eq!(conditions.collect::<Vec<_>>(), Vec::from_iter(expected), "{id}");
        assert_eq!(rule.mode(), sluicegate::Mode::Enforce, "{id}");
        assert_eq!(rule.on_error(), sluicegate::OnError::Local, "{id}");
        assert!(rule.is_active(), "{id}");
        assert!(!rule.description().is_empty(), "{id}");
    }
}

fn starter() -> (Limiter<sluicegate::MemoryStore<ManualClock>>, ManualClock) {
    on_clock(RuleSet::starter())
}

/// Idle, then fifty at once, then ten a second.
#[test]
fn seed_001_a_free_user_has_a_burst_of_fifty_then_ten_a_second() {
    let (limiter, clock) = starter();
    let free = Request::new().user_id("42").ip("203.0.113.9").endpoint("/").plan("free");
    assert_eq!(rule_ids(&limiter.check_now(&free.clone().cost(0))), [1, 7, 8]);
    assert_eq!(allowed_in_a_row(&limiter, &free), 50);
    let verdict = limiter.check_now(&free);
    assert_eq!((violated(&verdict), verdict.retry_after()), (Some(1), Some(ms(100))));

    for _ in 0..5 {
        clock.advance(secs(1));
        assert_eq!(allowed_in_a_row(&limiter, &free), 10);
    }
    // A user of another plan is not affected by that.
    let pro = Request::new().user_id("43").ip("203.0.113.10").plan("pro").cost(200);
    assert!(limiter.check_now(&pro).is_allowed());
}

/// An earlier limiter answered cost 51 of 50 with a wait of 100 ms, for ever.
#[test]
fn seed_001_more_than_the_burst_is_never() {
    let (limiter, _) = starter();
    let free = Request::new().user_id("42").plan("free").cost(51);
    let verdict = limiter.check_now(&free);
    assert_eq!((violated(&verdict), verdict.retry_after()), (Some(1), None));
}

/// An earlier limiter reported the first tier that failed, not the one with the longest wait.
#[test]
fn seed_001_the_tier_that_fails_longest_is_reported() {
    let (limiter, _) = starter();
    let login = Request::new().user_id("42").ip("203.0.113.9").endpoint("/login").plan("free");
    assert_eq!(allowed_in_a_row(&limiter, &login), 5);
    let rest = Request::new().user_id("42").ip("203.0.113.9").endpoint("/").plan("free");
    assert_eq!(allowed_in_a_row(&limiter, &rest), 45);
    let verdict = limiter.check_now(&login);
    let denied = verdict.tiers().filter(|tier| !tier.decision.is_granted());
    assert_eq!(denied.map(|tier| tier.rule.rule_id()).collect::<Vec<_>>(), [1, 5]);
    assert_eq!((violated(&verdict), verdict.retry_after()), (Some(5), Some(secs(12))));
}

/// Logins: never more than five attempts at once, five a minute.
#[test]
fn seed_003_logins_are_five_a_minute() {
    let (limiter, clock) = starter();
    let login = Request::new().ip("203.0.113.9").endpoint("/login").method("POST");
    assert_eq!(allowed_in_a_row(&limiter, &login), 5);
    let verdict = limiter.check_now(&login);
    assert_eq!((violated(&verdict), verdict.retry_after()), (Some(5), Some(secs(12))));
    assert!(limiter.check_now(&login.clone().ip("203.0.113.10")).is_allowed());
    assert!(limiter.check_now(&login.clone().endpoint("/logins")).is_allowed());
    clock.advance(secs(60));
    assert_eq!(allowed_in_a_row(&limiter, &login), 5);
}

/// Payments: a burst of three and one a minute.
#[test]
fn seed_003_payments_are_one_a_minute() {
    let (limiter, clock) = starter();
    let payment = Request::new().user_id("42").endpoint("/payment").plan("enterprise");
    assert_eq!(allowed_in_a_row(&limiter, &payment), 3);
    let verdict = limiter.check_now(&payment);
    assert_eq!((violated(&verdict), verdict.retry_after()), (Some(6), Some(secs(60))));
    clock.advance(secs(60));
    assert_eq!(allowed_in_a_row(&limiter, &payment), 1);
}

/// Autocomplete: a burst of a hundred and ten a second.
#[test]
fn seed_003_search_has_a_burst_of_a_hundred_then_ten_a_second() {
    let (limiter, clock) = starter();
    let search = Request::new().user_id("42").endpoint("/search").plan("pro");
    assert_eq!(allowed_in_a_row(&limiter, &search), 100);
    let verdict = limiter.check_now(&search);
    assert_eq!((violated(&verdict), verdict.retry_after()), (Some(9), Some(ms(100))));
    clock.advance(secs(1));
    assert_eq!(allowed_in_a_row(&limiter, &search), 10);
}

/// Search is limited for all users together.
#[test]
fn seed_001_an_endpoint_is_limited_for_all_users_together() {
    let (limiter, _) = starter();
    let users: Vec<String> = (0..50).map(|user| user.to_string()).collect();
    let of = |user| Request::new().user_id(user).endpoint("/api/search").plan("free");
    let allowed: usize = users.iter().map(|user| allowed_in_a_row(&limiter, &of(user))).sum();
    assert_eq!(allowed, 2000);
    assert_eq!(violated(&limiter.check_now(&of("new"))), Some(4));
    // A denial took nothing from the user.
    assert_eq!(
        limiter.check_now(&of("new").cost(0)).tiers().next().unwrap().decision.remaining,
        50
    );
}
