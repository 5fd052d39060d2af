//! M1 all or nothing, M2 the longest wait, and the figures on top.

use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use sluicegate::{Mode, Request, Rule, Scope, Tier, Verdict};

use crate::library::support::{
    cases, limiter, ms, on_clock, remaining, rule, rule_ids, secs, violated,
};

const ALL: Request<'_> = Request::new();

#[test]
fn without_a_rule_everything_is_allowed() {
    let (limiter, _) = limiter(Vec::new());
    let verdict = limiter.check_now(&ALL.cost(u64::MAX));
    assert!(verdict.is_allowed());
    assert!(verdict.violated().is_none() && verdict.tightest().is_none());
    assert_eq!(verdict.tiers().len(), 0);
    assert_eq!(verdict.retry_after(), Some(Duration::ZERO));
    assert_eq!(verdict.delay(), Duration::ZERO);
    assert_eq!(verdict.version(), 1);
}

#[test]
fn m1_a_denial_charges_nothing() {
    let (limiter, _) = limiter(vec![
        rule(1, "a", "1/s burst 10"),
        rule(2, "b", "1/s burst 3"),
        rule(3, "c", "1/s"),
    ]);
    assert!(limiter.check_now(&ALL).is_allowed());
    assert_eq!(remaining(&limiter, &ALL), [9, 2, 0]);
    for _ in 0..100 {
        let verdict = limiter.check_now(&ALL);
        assert_eq!(violated(&verdict), Some(3));
        // The figures are uncharged, and tiers that would have granted are granted.
        let shown =
            verdict.tiers().map(|tier| (tier.decision.is_granted(), tier.decision.remaining));
        assert_eq!(shown.collect::<Vec<_>>(), [(true, 9), (true, 2), (false, 0)]);
    }
    assert_eq!(remaining(&limiter, &ALL), [9, 2, 0]);
}

/// An earlier limiter charges the tiers that pass and reports the first that does not (M4).
#[test]
fn m4_a_drained_user_leaves_the_global_bucket_alone() {
    let rules = vec![rule(1, "user:{user_id}", "1/hour"), rule(2, "global", "1/s burst 1000")];
    let (limiter, _) = limiter(rules);
    let user = Request::new().user_id("42");
    for _ in 0..10_000 {
        let _ = limiter.check_now(&user);
    }
    assert_eq!(remaining(&limiter, &user), [0, 999]);
}

#[test]
fn m2_the_longest_wait_is_named() {
    let rules = vec![rule(1, "a", "1/s"), rule(2, "b", "1 per 3s"), rule(3, "c", "1 per 2s")];
    let (limiter, clock) = limiter(rules);
    assert!(limiter.check_now(&ALL).is_allowed());
    let verdict = limiter.check_now(&ALL);
    assert_eq!((violated(&verdict), verdict.retry_after()), (Some(2), Some(secs(3))));
    let tightest = verdict.tightest().unwrap();
    assert_eq!(tightest.rule.rule_id(), 2, "the one that denied it sums it up");

    // At that moment, and not before, the client may come back.
    clock.advance(secs(3) - Duration::from_micros(1));
    let verdict = limiter.check_now(&ALL);
    assert_eq!(verdict.retry_after(), Some(Duration::from_micros(1)));
    clock.advance(Duration::from_micros(1));
    assert!(limiter.check_now(&ALL).is_allowed());
}

#[test]
fn m2_never_is_longest() {
    let (limiter, _) = limiter(vec![rule(1, "a", "1 per 100 days"), rule(2, "b", "1/s burst 4")]);
    let verdict = limiter.check_now(&ALL.cost(5));
    assert_eq!(violated(&verdict), Some(1), "both never: the lowest id");
    let (limiter, _) = on_clock(limiter.rules().as_ref().clone());
    assert!(limiter.check_now(&ALL).is_allowed());
    let verdict = limiter.check_now(&ALL);
    assert_eq!(violated(&verdict), Some(1));
    let verdict = limiter.check_now(&Request::new().cost(5));
    assert!(verdict.tiers().all(|tier| tier.decision.is_never()));
    assert_eq!(verdict.retry_after(), None);
}

#[test]
fn m2_ties_go_by_scope_and_then_by_id() {
    // All drained alike; ids against the order of scopes.
    let scopes = [Scope::Custom, Scope::User, Scope::Endpoint, Scope::Ip, Scope::Global];
    let tied = |rule_id, scope| rule(rule_id, &format!("r{rule_id}"), "1/s").with_scope(scope);
    for from in 0..scopes.len() {
        let rules = (1..).zip(&scopes[..=from]).map(|(id, scope)| tied(id, *scope)).collect();
        let (limiter, _) = limiter(rules);
        assert!(limiter.check_now(&ALL).is_allowed());
        let verdict = limiter.check_now(&ALL);
        assert_eq!(verdict.violated().unwrap().rule.scope(), scopes[from]);
    }
    let (limiter, _) = limiter(vec![tied(9, Scope::Ip), tied(4, Scope::Ip), tied(1, Scope::User)]);
    assert!(limiter.check_now(&ALL).is_allowed());
    assert_eq!(violated(&limiter.check_now(&ALL)), Some(4));
}

#[test]
fn the_least_remaining_sums_up_what_is_allowed() {
    let rules = vec![
        rule(1, "user:{user_id}", "1/s burst 5"),
        rule(2, "global", "1/s burst 3"),
        rule(3, "ip:{ip}", "1/s burst 3"),
        rule(4, "shadow", "1/s").with_mode(Mode::Shadow),
    ];
    let (limiter, _) = limiter(rules);
    let verdict = limiter.check_now(&Request::new().user_id("42"));
    assert_eq!(verdict.tightest().unwrap().rule.rule_id(), 2);
    let verdict = limiter.check_now(&Request::new().ip("::1"));
    let tightest = verdict.tightest().unwrap();
    assert_eq!((tightest.rule.rule_id(), tightest.decision.remaining), (2, 1));
    // A tie goes by scope here too: global comes in front of ip.
    let verdict = limiter.check_now(&Request::new().ip("::2").cost(0));
    assert_eq!(verdict.tightest().unwrap().rule.rule_id(), 2);
}

#[test]
fn buckets_of_different_values_are_different() {
    let (limiter, _) = limiter(vec![rule(1, "{a}:{b}", "1/hour"), rule(2, "{b}:{c}", "1/hour")]);
    let pair = |a, b| Request::new().attribute("a", a).attribute("b", b);
    assert!(limiter.check_now(&pair("x", "yz")).is_allowed());
    // The same text between them, divided elsewhere; and with the pattern's own colon in it.
    assert!(limiter.check_now(&pair("xy", "z")).is_allowed());
    assert!(limiter.check_now(&pair("x:", "yz")).is_allowed());
    assert!(limiter.check_now(&pair("x", ":yz")).is_allowed());
    assert!(!limiter.check_now(&pair("x", "yz")).is_allowed());
    // The values of one rule's bucket are not those of another's.
    let other = Request::new().attribute("b", "x").attribute("c", "yz");
    assert!(limiter.check_now(&other).is_allowed());
}

// ===== properties =====

/// The wait of a tier, never as the longest.
fn wait(tier: &Tier<'_>) -> u64 {
    tier.decision.retry_after().map_or(u64::MAX, |wait| u64::try_from(wait.as_micros()).unwrap())
}

/// The definition: the enforced denial with the longest wait, ties in the order global, ip,
/// endpoint, user, custom, then the lowest id.
fn expected(verdict: &Verdict) -> Option<u64> {
    let order = ["global", "ip", "endpoint", "user", "custom"];
    let mut denying: Vec<Tier<'_>> = verdict
        .tiers()
        .filter(|tier| tier.rule.mode() == Mode::Enforce && !tier.decision.is_granted())
        .collect();
    denying.sort_by_key(|tier| {
        let scope = order.iter().position(|name| *name == tier.rule.scope().name());
        (u64::MAX - wait(tier), scope, tier.rule.rule_id())
    });
    denying.first().map(|tier| tier.rule.rule_id())
}

fn rules() -> impl Strategy<Value = Vec<Rule>> {
    // Few of them, so that there are ties.
    const QUOTAS: [&str; 5] = ["1/s", "1/s burst 2", "2/s burst 3", "1 per 2s", "1 per 2s burst 4"];
    let one = (select(&QUOTAS), select(&Scope::ALL), prop::bool::weighted(0.25));
    vec(one, 1..7).prop_map(|parts| {
        let rules = (1..).zip(parts).map(|(id, (quota, scope, is_shadow))| {
            let mode = if is_shadow { Mode::Shadow } else { Mode::Enforce };
            rule(id, &format!("r{id}"), quota).with_scope(scope).with_mode(mode)
        });
        rules.collect()
    })
}

proptest! {
    #![proptest_config(cases(2_000))]

    /// M1 and M2 along random traces; and the order in which the rules were given says nothing.
    #[test]
    fn verdicts_follow_from_their_tiers(
        (rules, shuffled) in rules().prop_flat_map(|rules| {
            (Just(rules.clone()), Just(rules).prop_shuffle())
        }),
        steps in vec((0u64..5, 0u64..3_000), 1..20),
    ) {
        let (limiter, clock) = limiter(rules);
        let (other, other_clock) = crate::library::support::limiter(shuffled);
        for (cost, pause_ms) in steps {
            let before = remaining(&limiter, &ALL);
            let request = ALL.cost(cost);
            let verdict = limiter.check_now(&request);

            prop_assert_eq!(violated(&verdict), expected(&verdict));
            prop_assert_eq!(verdict.is_allowed(), expected(&verdict).is_none());
            for (tier, before) in verdict.tiers().zip(before) {
                let is_charged = verdict.is_allowed() && tier.decision.is_granted();
                let spent = if is_charged { cost } else { 0 };
                prop_assert_eq!(tier.decision.remaining, before - spent, "{:?}", verdict);
            }
            if let Some(denying) = verdict.violated() {
                prop_assert_eq!(verdict.retry_after(), denying.decision.retry_after());
            }

            let again = other.check_now(&request);
            prop_assert_eq!(violated(&again), violated(&verdict));
            prop_assert_eq!(rule_ids(&again), rule_ids(&verdict));
            prop_assert_eq!(
                again.tightest().map(|tier| tier.rule.rule_id()),
                verdict.tightest().map(|tier| tier.rule.rule_id())
            );
            clock.advance(ms(pause_ms));
            other_clock.advance(ms(pause_ms));
        }
    }
}
