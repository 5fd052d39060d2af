//! U1 no free refill, U3 snapshots, U5 no ghosts, T34 reload under load.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use sluicegate::{Algorithm, Limiter, ManualClock, MemoryStore, Quota, Request, Rule, RuleSet};

use crate::library::support::{
    NOW, allowed_in_a_row, limiter, quota, remaining, rule, secs, violated,
};

const ALL: Request<'_> = Request::new();

fn set(rules: Vec<Rule>) -> RuleSet {
    RuleSet::new(rules).unwrap()
}

#[test]
fn every_verdict_has_the_version_of_its_rules() {
    let (limiter, _) = limiter(vec![rule(1, "a", "1/s")]);
    let first = limiter.check_now(&ALL);
    assert_eq!((first.version(), limiter.rules().version()), (1, 1));
    assert_eq!(limiter.replace_rules(set(vec![rule(2, "b", "1/s")])), 2);
    let second = limiter.check_now(&ALL);
    assert_eq!(second.version(), 2);
    // The first still shows the rules that it was judged by.
    assert_eq!(first.version(), 1);
    assert_eq!(first.tiers().next().unwrap().rule.rule_id(), 1);
    // A set that was in force once is another one when it comes back.
    let old = limiter.rules().as_ref().clone();
    assert_eq!(limiter.replace_rules(old), 3);
    assert_eq!(limiter.clone().replace_rules(RuleSet::default()), 4, "clones share everything");
    assert_eq!(limiter.check_now(&ALL).version(), 4);
}

/// U1: what was spent stays spent, through every change of quota.
#[test]
fn u1_a_new_quota_is_no_free_refill() {
    let windows = |tokens, algorithm| {
        Quota::per_hour(tokens).and_then(|quota| quota.with_algorithm(algorithm)).unwrap()
    };
    let changed = [
        (quota("1/hour burst 20"), 12),
        (quota("1/hour burst 3"), 0),
        (quota("100/s burst 20"), 12),
        (quota("7/hour burst 8"), 0),
        (quota("1/minute burst 9"), 1),
        (windows(20, Algorithm::FixedWindow), 12),
        (windows(20, Algorithm::SlidingWindow), 12),
        (windows(20, Algorithm::SlidingCounter), 12),
        (windows(20, Algorithm::LeakyBucket), 12),
    ];
    for (new, left) in changed {
        let (limiter, _) = limiter(vec![rule(1, "a", "1/hour burst 10")]);
        assert!(limiter.check_now(&ALL.cost(8)).is_allowed());
        limiter.replace_rules(set(vec![Rule::new(1, "a", new).unwrap()]));
        assert_eq!(remaining(&limiter, &ALL), [left], "{new}");
        assert_eq!(allowed_in_a_row(&limiter, &ALL), usize::try_from(left).unwrap(), "{new}");
    }
}

/// Changing a quota back and forth neither adds tokens nor blocks a client.
#[test]
fn u1_back_and_forth_is_no_refill() {
    let (limiter, clock) = limiter(vec![rule(1, "a", "1/hour burst 10")]);
    let mut admitted = 0;
    for round in 0..50 {
        let quota = if round & 1 == 0 { "1/day burst 10" } else { "1/hour burst 10" };
        limiter.replace_rules(set(vec![rule(1, "a", quota)]));
        admitted += allowed_in_a_row(&limiter, &ALL.cost(1));
    }
    assert_eq!(admitted, 10);
    clock.advance(secs(3600));
    assert_eq!(allowed_in_a_row(&limiter, &ALL), 1, "the last quota in force brings one an hour");
}

#[test]
fn u5_a_rule_that_is_gone_denies_nobody() {
    let (limiter, _) = limiter(vec![rule(1, "a", "1/day"), rule(2, "b", "1/s burst 9")]);
    assert!(limiter.check_now(&ALL).is_allowed());
    assert_eq!(violated(&limiter.check_now(&ALL)), Some(1));

    limiter.replace_rules(set(vec![rule(2, "b", "1/s burst 9")]));
    assert!(limiter.check_now(&ALL).is_allowed());
    let off = rule(1, "a", "1/day").with_is_active(false);
    limiter.replace_rules(set(vec![off, rule(2, "b", "1/s burst 9")]));
    assert!(limiter.check_now(&ALL).is_allowed());
    // Another rule with the same pattern, under an id of its own, starts full.
    limiter.replace_rules(set(vec![rule(3, "a", "1/day")]));
    assert!(limiter.check_now(&ALL).is_allowed());
    // The old one, back again, has kept what was spent.
    limiter.replace_rules(set(vec![rule(1, "a", "1/day")]));
    assert_eq!(violated(&limiter.check_now(&ALL)), Some(1));
}

/// A bad set never comes to be in force: it cannot even be made.
#[test]
fn u4_a_bad_set_changes_nothing() {
    let (limiter, _) = limiter(vec![rule(1, "a", "1/s")]);
    let bad = RuleSet::new(vec![rule(1, "a", "5/s"), rule(1, "b", "5/s")]);
    assert!(bad.map(|rules| limiter.replace_rules(rules)).is_err());
    assert_eq!(limiter.check_now(&ALL).version(), 1);
}

/// A set whose rules all say, in their notes, which version they belong to.
fn marked(version: u64, rules: u64, quota: &str) -> RuleSet {
    let rules = (1..=rules).map(|id| {
        let mark = version.to_string();
        // Ids in another order in every version.
        let id = (id + version) % rules + 1;
        rule(id, &format!("r{id}"), quota).with_description(&mark)
    });
    set(rules.collect())
}

/// U3: no verdict is made by two sets of rules, whatever is replaced meanwhile.
#[test]
fn u3_no_verdict_is_a_mixture() {
    const RULES: u64 = 7;
    /// Number of replacements that the other threads must see, and the time to give up.
    const CHANGES_SEEN: usize = 1_000;
    const VERSIONS_MAX: u64 = 1_000_000;
    let limiter = Limiter::new(MemoryStore::new(), marked(1, RULES, "1000000/s"));
    let is_done = AtomicBool::new(false);
    let changes_seen = AtomicUsize::new(0);
    let check = || {
        let mut last = 0;
        while !is_done.load(Ordering::Relaxed) {
            let verdict = limiter.check_now(&ALL);
            let version = verdict.version();
            assert!(version >= last, "versions only grow");
            changes_seen.fetch_add(usize::from(version > last), Ordering::Relaxed);
            last = version;
            assert_eq!(verdict.tiers().len() as u64, RULES);
            for tier in verdict.tiers() {
                assert_eq!(tier.rule.description(), version.to_string());
            }
        }
    };
    let mut version = 1;
    thread::scope(|scope| {
        scope.spawn(check);
        scope.spawn(check);
        while changes_seen.load(Ordering::Relaxed) < CHANGES_SEEN && version < VERSIONS_MAX {
            version += 1;
            assert_eq!(limiter.replace_rules(marked(version, RULES, "1000000/s")), version);
        }
        is_done.store(true, Ordering::Relaxed);
    });
    assert!(changes_seen.into_inner() >= CHANGES_SEEN, "{version} versions, and nobody looked");
}

/// Concurrent replacements: every set has a unique version.
#[test]
fn versions_are_given_once() {
    let (limiter, _) = limiter(Vec::new());
    let replace =
        || -> Vec<u64> { (0..500).map(|_| limiter.replace_rules(RuleSet::default())).collect() };
    let mut versions = thread::scope(|scope| {
        let other = scope.spawn(replace);
        let mut versions = replace();
        versions.extend(other.join().unwrap());
        versions
    });
    versions.sort_unstable();
    assert_eq!(versions, (2..=1001).collect::<Vec<_>>());
    assert_eq!(limiter.rules().version(), 1001);
}

/// T34: a thousand rules with changing rates replaced continuously under concurrent checks. The clock
/// stands still, so exactly the burst is admitted: no free refill and no lost tokens.
#[test]
fn t34_rules_are_replaced_under_load() {
    const BURST: usize = 500;
    let with_rate = |version: u64| {
        let own = rule(
            1,
            "user:{user_id}",
            if version.is_multiple_of(2) { "1/s burst 500" } else { "7/s burst 500" },
        );
        let others = (2..=1000).map(|id| {
            let plan = format!("p{}", id % 50);
            rule(id, &format!("endpoint:/api/e{id}/*"), "1/s").with_plan(&plan).unwrap()
        });
        set(std::iter::once(own).chain(others).collect())
    };
    let store = MemoryStore::builder().clock(ManualClock::new(NOW)).build();
    let limiter = Limiter::new(store, with_rate(1));
    let admitted = AtomicUsize::new(0);
    let request = Request::new().user_id("42").plan("p7").endpoint("/api/e77/x");
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                for _ in 0..10_000 {
                    let verdict = limiter.check_now(&request);
                    admitted.fetch_add(usize::from(verdict.is_allowed()), Ordering::Relaxed);
                }
            });
        }
        for version in 2..60 {
            assert_eq!(limiter.replace_rules(with_rate(version)), version);
        }
    });
    assert_eq!(admitted.into_inner(), BURST);
}
