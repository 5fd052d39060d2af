//! Overrides of single subjects: another quota, no limit, or a block; with everything that holds of rules: M1 all or
//! nothing, U1 no free refill, U3 snapshots, U5 no ghosts.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use sluicegate::rules::{OVERRIDES_MAX, OverridesError};
use sluicegate::{
    Algorithm, Limiter, MemoryStore, Mode, Outcome, Override, Overrides, Quota, Request, Rule,
    RuleSet,
};

use crate::library::support::{
    TestLimiter, allowed_in_a_row, limiter, on_clock, quota, remaining, rule, rule_ids, secs,
    violated,
};

const ALL: Request<'_> = Request::new();

fn overrides<'a>(of: impl IntoIterator<Item = (u64, &'a str, Override)>) -> Overrides {
    let owned = of.into_iter().map(|(rule_id, subject, one)| (rule_id, subject.to_owned(), one));
    Overrides::new(owned).unwrap()
}

fn another(text: &str) -> Override {
    Override::Quota(quota(text))
}

fn user(user_id: &str) -> Request<'_> {
    Request::new().user_id(user_id)
}

/// The same rules with other overrides.
fn change<'a>(limiter: &TestLimiter, of: impl IntoIterator<Item = (u64, &'a str, Override)>) {
    let rules = limiter.rules().as_ref().clone();
    limiter.replace_rules(rules.with_overrides(overrides(of)));
}

fn shadow(rule_id: u64, key_pattern: &str, quota: &str) -> Rule {
    rule(rule_id, key_pattern, quota).with_mode(Mode::Shadow)
}

#[test]
fn each_kind_does_what_it_says_and_nobody_else_notices() {
    let (limiter, _) = limiter(vec![rule(1, "user:{user_id}", "1/hour burst 3")]);
    let kinds = [
        (1, "more", another("1/hour burst 5")),
        (1, "less", another("1/hour burst 1")),
        (1, "free", Override::Unlimited),
        (1, "out", Override::Blocked),
        (2, "42", Override::Blocked),
    ];
    change(&limiter, kinds);
    let in_a_row = |user_id| allowed_in_a_row(&limiter, &user(user_id));
    assert_eq!([in_a_row("42"), in_a_row("more"), in_a_row("less"), in_a_row("out")], [3, 5, 1, 0]);
    let free = limiter.check_now(&user("free").cost(u64::MAX));
    assert!(free.is_allowed() && free.tiers().len() == 0);
    assert!(
        limiter.check_now(&ALL).is_allowed(),
        "of whom nothing is known, nothing is overridden"
    );
}

#[test]
fn a_tier_says_what_it_was_charged_by() {
    let (limiter, _) = limiter(vec![rule(1, "user:{user_id}", "1/hour burst 3")]);
    let more = another("1/hour burst 5");
    change(&limiter, [(1, "more", more), (1, "out", Override::Blocked)]);
    let tier = |user_id, look: &dyn Fn(sluicegate::Tier<'_>)| {
        look(limiter.check_now(&user(user_id)).tightest().unwrap());
    };
    tier("42", &|tier| {
        assert_eq!((tier.overridden, tier.quota), (None, tier.rule.quota()));
        assert_eq!(tier.decision.limit, 3);
    });
    tier("more", &|tier| {
        assert_eq!((tier.overridden, *tier.quota), (Some(&more), quota("1/hour burst 5")));
        assert_eq!((tier.decision.limit, tier.decision.remaining), (5, 4));
    });
    tier("out", &|tier| {
        assert_eq!((tier.overridden, tier.quota), (Some(&Override::Blocked), tier.rule.quota()));
        assert_eq!(tier.decision.outcome, Outcome::Never);
        let figures = (tier.decision.limit, tier.decision.remaining, tier.decision.reset_after);
        assert_eq!(figures, (0, 0, 0));
    });
}

/// M1: a subject that is blocked by an enforced rule takes nothing from any bucket, and only the tiers with the block
/// answer: no bucket was charged.
#[test]
fn m1_the_blocked_are_charged_nothing() {
    let (limiter, _) = limiter(vec![
        rule(1, "global", "1/hour burst 10"),
        rule(2, "user:{user_id}", "1/hour burst 10"),
        rule(3, "ip:{ip}", "1/hour burst 10"),
        shadow(4, "shadow:{user_id}", "1/hour burst 10"),
        shadow(5, "other:{user_id}", "1/hour burst 10"),
    ]);
    let blocked = Override::Blocked;
    change(&limiter, [(2, "out", blocked), (3, "::1", blocked), (4, "out", blocked)]);
    let out = user("out").ip("::2");
    for cost in [0, 1, 10, u64::MAX] {
        let verdict = limiter.check_now(&out.clone().cost(cost));
        assert_eq!((violated(&verdict), verdict.retry_after()), (Some(2), None), "{cost}");
        assert_eq!(rule_ids(&verdict), [2, 4]);
        assert!(!verdict.is_degraded());
    }
    assert_eq!(limiter.store().stats().buckets, 0, "nothing was charged");
    // Of two rules that block, the address's is named: ties go by scope.
    assert_eq!(violated(&limiter.check_now(&out.ip("::1"))), Some(3));
    assert_eq!(remaining(&limiter, &user("42").ip("::2")), [10; 5]);
}

#[test]
fn in_the_shadow_a_block_is_shown_and_denies_nobody() {
    let (limiter, _) = limiter(vec![
        rule(1, "global", "1/hour burst 10"),
        shadow(2, "user:{user_id}", "1/hour burst 10"),
        shadow(3, "more:{user_id}", "1/hour burst 1"),
        rule(4, "last:{user_id}", "1/hour burst 10"),
    ]);
    let more = another("1/hour burst 2");
    change(
        &limiter,
        [(2, "out", Override::Blocked), (3, "out", more), (4, "free", Override::Unlimited)],
    );
    let verdict = limiter.check_now(&user("out").cost(2));
    assert!(verdict.is_allowed());
    assert_eq!(rule_ids(&verdict), [1, 2, 3, 4], "in the order of their ids");
    let granted: Vec<_> = verdict.tiers().map(|tier| tier.decision.is_granted()).collect();
    assert_eq!(granted, [true, false, true, true]);
    assert_eq!(verdict.tightest().unwrap().rule.rule_id(), 1, "a shadow tier sums nothing up");
    assert_eq!(remaining(&limiter, &user("out")), [8, 0, 0, 8], "the others are charged as ever");
    assert_eq!(rule_ids(&limiter.check_now(&user("free"))), [1, 2, 3]);
}

/// An override is for all buckets of a subject, which the key pattern determines.
#[test]
fn subjects_are_users_then_addresses_then_whatever_comes_first() {
    let patterns = [
        ("a:{endpoint}:{user_id}:{ip}", "42"),
        ("b:{endpoint}:{ip}", "::1"),
        ("c:{tenant}:{endpoint}", "acme"),
        ("endpoint:/x", "endpoint:/x"),
        ("global", "global"),
    ];
    let rules = (1..).zip(patterns).map(|(id, (pattern, _))| rule(id, pattern, "1/hour burst 3"));
    let (limiter, _) = limiter(rules.collect());
    let request = user("42").ip("::1").endpoint("/x").attribute("tenant", "acme");
    for (position, (_, subject)) in patterns.into_iter().enumerate() {
        let rules = limiter.rules();
        let rule = &rules.rules()[position];
        assert_eq!(rule.subject(&request), Some(subject));
        change(&limiter, [(rule.rule_id(), subject, Override::Blocked)]);
        let expected = (Some(rule.rule_id()), vec![rule.rule_id()]);
        for endpoint in ["/x", "/y"] {
            // The rule of one endpoint does not apply to another.
            if endpoint == "/x" || position != 3 {
                let verdict = limiter.check_now(&request.clone().endpoint(endpoint));
                assert_eq!((violated(&verdict), rule_ids(&verdict)), expected);
            }
        }
    }
    change(&limiter, [(1, "::1", Override::Blocked), (1, "/x", Override::Blocked)]);
    assert!(limiter.check_now(&request).is_allowed(), "other attributes are nobody");
}

/// Each endpoint's bucket of an overridden user is its own still.
#[test]
fn an_override_gives_each_bucket_its_quota() {
    let (limiter, _) = limiter(vec![rule(1, "{endpoint}:{user_id}", "1/hour burst 2")]);
    change(&limiter, [(1, "42", another("1/hour burst 4"))]);
    for endpoint in ["/a", "/b"] {
        assert_eq!(allowed_in_a_row(&limiter, &user("42").endpoint(endpoint)), 4);
        assert_eq!(allowed_in_a_row(&limiter, &user("43").endpoint(endpoint)), 2);
    }
}

/// A rule's override is that rule's: under another plan another rule applies.
#[test]
fn an_override_belongs_to_one_rule() {
    let plan = |id, plan, quota| rule(id, "user:{user_id}", quota).with_plan(plan).unwrap();
    let (limiter, _) =
        limiter(vec![plan(1, "free", "1/hour burst 1"), plan(2, "default", "1/hour burst 2")]);
    change(&limiter, [(1, "42", another("1/hour burst 7"))]);
    assert_eq!(allowed_in_a_row(&limiter, &user("42").plan("free")), 7);
    assert_eq!(allowed_in_a_row(&limiter, &user("42")), 2);
    // A subject that is unlimited under the rule of its plan does not fall back to the rule without a plan.
    change(&limiter, [(1, "42", Override::Unlimited)]);
    let unlimited = limiter.check_now(&user("42").plan("free").cost(100));
    assert!(unlimited.is_allowed() && unlimited.tiers().len() == 0);
}

/// M1 over many tiers, of which some are overridden.
#[test]
fn m1_overridden_tiers_are_charged_with_the_others_or_not_at_all() {
    let rules = (1..=9).map(|id| rule(id, &format!("r{id}:{{user_id}}"), "1/hour burst 5"));
    let (limiter, _) = limiter(rules.collect());
    let odd = (1..=9).step_by(2).map(|id| (id, "42", another("1/hour burst 7")));
    change(&limiter, odd.chain([(4, "42", Override::Unlimited)]));
    assert!(limiter.check_now(&user("42").cost(5)).is_allowed());
    assert_eq!(remaining(&limiter, &user("42")), [2, 0, 2, 2, 0, 2, 0, 2]);
    assert_eq!(violated(&limiter.check_now(&user("42").cost(2))), Some(2));
    assert_eq!(remaining(&limiter, &user("42")), [2, 0, 2, 2, 0, 2, 0, 2]);
}

/// U1: an override that gives more gives no refill, and taking it away gives none either.
#[test]
fn u1_an_override_is_no_free_refill() {
    let window = |tokens| {
        Quota::per_hour(tokens).and_then(|q| q.with_algorithm(Algorithm::SlidingWindow)).unwrap()
    };
    let changed = [
        (quota("1/hour burst 20"), 12),
        (quota("1/hour burst 3"), 0),
        (quota("100/s burst 20"), 12),
        (quota("7/hour burst 9"), 1),
        (window(20), 12),
    ];
    for (new, left) in changed {
        let (limiter, _) = limiter(vec![rule(1, "user:{user_id}", "1/hour burst 10")]);
        assert!(limiter.check_now(&user("42").cost(8)).is_allowed());
        change(&limiter, [(1, "42", Override::Quota(new))]);
        assert_eq!(remaining(&limiter, &user("42")), [left], "{new}");
    }
}

#[test]
fn u1_back_and_forth_is_no_refill() {
    let (limiter, clock) = limiter(vec![rule(1, "user:{user_id}", "1/hour burst 10")]);
    let mut admitted = 0;
    for round in 0..50 {
        let of_42 = [another("1/day burst 10"), another("2/hour burst 10")][round % 2];
        change(&limiter, [(1, "42", of_42)].into_iter().filter(|_| round % 3 != 0));
        admitted += allowed_in_a_row(&limiter, &user("42"));
    }
    assert_eq!(admitted, 10);
    change(&limiter, []);
    assert_eq!(allowed_in_a_row(&limiter, &user("42")), 0);
    clock.advance(secs(3600));
    assert_eq!(allowed_in_a_row(&limiter, &user("42")), 1, "the rule's own quota counts again");
}

/// Tokens spent before a subject was unlimited or blocked stay spent, and refill as time passes.
#[test]
fn u1_a_bucket_that_nobody_asks_is_kept() {
    for instead in [Override::Unlimited, Override::Blocked] {
        let (limiter, clock) = limiter(vec![rule(1, "user:{user_id}", "1/hour burst 10")]);
        assert!(limiter.check_now(&user("42").cost(10)).is_allowed());
        change(&limiter, [(1, "42", instead)]);
        clock.advance(secs(3 * 3600));
        let _ = limiter.check_now(&user("42").cost(1));
        change(&limiter, []);
        assert_eq!(remaining(&limiter, &user("42")), [3]);
    }
}

/// U5: no override outlives its set, and none outlives its rule.
#[test]
fn u5_an_override_that_is_gone_denies_nobody() {
    let (limiter, _) = limiter(vec![rule(1, "user:{user_id}", "1/hour burst 5")]);
    change(&limiter, [(1, "42", Override::Blocked), (1, "43", another("1/hour burst 1"))]);
    assert!(!limiter.check_now(&user("42")).is_allowed());
    assert_eq!(allowed_in_a_row(&limiter, &user("43")), 1);
    change(&limiter, []);
    assert_eq!(allowed_in_a_row(&limiter, &user("42")), 5, "nothing was spent");
    assert_eq!(allowed_in_a_row(&limiter, &user("43")), 4, "one was");

    change(&limiter, [(1, "42", Override::Blocked)]);
    let kept = limiter.rules().overrides().clone();
    let other = RuleSet::new(vec![rule(2, "user:{user_id}", "1/hour burst 5")]).unwrap();
    limiter.replace_rules(other.with_overrides(kept));
    assert!(limiter.check_now(&user("42")).is_allowed(), "it was another rule's");
    // A new set has no overrides.
    limiter.replace_rules(RuleSet::new(vec![rule(1, "user:{user_id}", "1/hour burst 5")]).unwrap());
    assert!(limiter.rules().overrides().is_empty());
}

/// A rule that is switched off does nothing, even with overrides.
#[test]
fn overrides_of_rules_that_do_not_apply_do_nothing() {
    let off = rule(1, "user:{user_id}", "1/hour").with_is_active(false);
    let login = rule(2, "login:{user_id}", "1/hour").with_condition("endpoint", "/login").unwrap();
    let (limiter, _) = limiter(vec![off, login]);
    change(&limiter, [(1, "42", Override::Blocked), (2, "42", Override::Blocked)]);
    assert!(limiter.check_now(&user("42").endpoint("/")).is_allowed());
    assert!(!limiter.check_now(&user("42").endpoint("/login")).is_allowed());
}

/// K3: what is given back goes by the quota that counts now.
#[test]
fn reservations_follow_overrides() {
    let (limiter, _) = limiter(vec![rule(1, "user:{user_id}", "1/hour burst 10")]);
    let long = "x".repeat(1000);
    for user_id in ["42", &long] {
        change(&limiter, []);
        let reservation = limiter.reserve_now(&user(user_id).cost(8));
        change(&limiter, [(1, user_id, another("1/hour burst 100"))]);
        assert!(limiter.check_now(&user(user_id).cost(60)).is_allowed());
        reservation.refund_now();
        assert_eq!(remaining(&limiter, &user(user_id)), [40], "nothing beyond ten was forgotten");
    }
    change(&limiter, [(1, "42", another("1/hour burst 100"))]);
    let reservation = limiter.reserve_now(&user("42").cost(30));
    for gone in [Override::Unlimited, Override::Blocked] {
        change(&limiter, [(1, "42", gone)]);
        assert_eq!(
            limiter.reserve_now(&user("42")).verdict().is_allowed(),
            gone == Override::Unlimited
        );
    }
    reservation.commit_now(20);
    change(&limiter, [(1, "42", another("1/hour burst 100"))]);
    assert_eq!(remaining(&limiter, &user("42")), [20]);
    // An unlimited subject was charged nothing, and gets nothing back.
    change(&limiter, [(1, "42", Override::Unlimited)]);
    let unlimited = limiter.reserve_now(&user("42").cost(50));
    change(&limiter, [(1, "42", another("1/hour burst 100"))]);
    unlimited.refund_now();
    assert_eq!(remaining(&limiter, &user("42")), [20]);
}

#[cfg(feature = "tokio")]
#[tokio::test]
async fn the_asynchronous_twins_do_the_same() {
    let (limiter, _) = limiter(vec![rule(1, "user:{user_id}", "1/hour burst 10")]);
    change(&limiter, [(1, "42", another("1/hour burst 20")), (1, "out", Override::Blocked)]);
    let reservation = limiter.reserve(&user("42").cost(15)).await.unwrap();
    assert!(reservation.verdict().is_allowed());
    reservation.commit(5).await.unwrap();
    assert_eq!(remaining(&limiter, &user("42")), [15]);
    assert_eq!(violated(&limiter.check(&user("out")).await.unwrap()), Some(1));
    limiter.reserve(&user("out")).await.unwrap().refund().await.unwrap();
}

/// U3: rules and overrides are swapped as one. In every set the rule's note and the override's capacity are
/// the same number.
#[test]
fn u3_rules_and_overrides_are_never_a_mixture() {
    const CHANGES_SEEN: usize = 1_000;
    const VERSIONS_MAX: u64 = 1_000_000;
    let marked = |version: u64| {
        let note = version.to_string();
        let rules = (1..=3)
            .map(|id| rule(id, &format!("r{id}:{{user_id}}"), "1/s").with_description(&note));
        let quota = Quota::per_second(1_000_000_000 + version).unwrap();
        let of_42 = (1..=3).map(|id| (id, "42", Override::Quota(quota)));
        RuleSet::new(rules.collect()).unwrap().with_overrides(overrides(of_42))
    };
    let limiter = Limiter::new(MemoryStore::new(), marked(1));
    let (is_done, changes_seen) = (AtomicBool::new(false), AtomicUsize::new(0));
    let check = || {
        let mut last = 0;
        while !is_done.load(Ordering::Relaxed) {
            let verdict = limiter.check_now(&user("42"));
            changes_seen.fetch_add(usize::from(verdict.version() > last), Ordering::Relaxed);
            last = verdict.version();
            for tier in verdict.tiers() {
                assert_eq!(tier.rule.description(), last.to_string());
                assert_eq!(tier.quota.capacity(), 1_000_000_000 + last);
                assert_eq!(tier.decision.limit, tier.quota.capacity());
            }
        }
    };
    let mut version = 1;
    thread::scope(|scope| {
        scope.spawn(check);
        scope.spawn(check);
        while changes_seen.load(Ordering::Relaxed) < CHANGES_SEEN && version < VERSIONS_MAX {
            version += 1;
            limiter.replace_rules(marked(version));
        }
        is_done.store(true, Ordering::Relaxed);
    });
    assert!(changes_seen.into_inner() >= CHANGES_SEEN, "{version} versions, and nobody looked");
}

#[test]
fn a_set_of_overrides_knows_what_is_in_it() {
    let of = overrides([
        (1, "", Override::Blocked),
        (1, "a", Override::Unlimited),
        (2, "a", another("7/s")),
    ]);
    assert_eq!((of.len(), of.is_empty()), (3, false));
    assert_eq!(of.get(1, ""), Some(&Override::Blocked));
    assert_eq!(of.get(1, "a"), Some(&Override::Unlimited));
    assert_eq!(of.get(2, "a"), Some(&another("7/s")));
    assert_eq!((of.get(2, ""), of.get(3, "a"), of.get(1, "A")), (None, None, None));
    assert!(Overrides::default().is_empty());
    assert_eq!(Overrides::default().get(1, "a"), None);
}

/// An empty text is a subject like any other.
#[test]
fn nobody_is_somebody() {
    let (limiter, _) = limiter(vec![rule(1, "user:{user_id}", "1/hour burst 3")]);
    change(&limiter, [(1, "", Override::Blocked)]);
    assert_eq!(violated(&limiter.check_now(&user(""))), Some(1));
    assert!(limiter.check_now(&user(" ")).is_allowed());
}

#[test]
fn bad_overrides_are_refused_whole() {
    let twice =
        [(7, "a\n".to_owned(), Override::Blocked), (7, "a\n".to_owned(), Override::Unlimited)];
    let error = Overrides::new(twice).unwrap_err();
    assert_eq!(error, OverridesError::SameSubject { rule_id: 7, subject: "a\n".into() });
    assert_eq!(error.to_string(), "rule_id 7 has two overrides for subject `a\\n`");

    let many = |count: usize| (0..count).map(|n| (n as u64 % 7, n.to_string(), Override::Blocked));
    let error = Overrides::new(many(OVERRIDES_MAX + 1)).unwrap_err();
    assert_eq!(error.to_string(), "there are more than 1000000 overrides");
}

/// Overrides change without the rules being made again: a clone shares them.
#[test]
fn rules_are_shared_by_sets_with_other_overrides() {
    let (limiter, _) = on_clock(RuleSet::starter());
    let before = limiter.rules();
    change(&limiter, [(1, "42", Override::Blocked)]);
    let after = limiter.rules();
    assert!(std::ptr::eq(before.rules(), after.rules()));
    assert_eq!((before.overrides().len(), after.overrides().len()), (0, 1));
}
