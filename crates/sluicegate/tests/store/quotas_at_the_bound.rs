//! A full store where quotas come with the charges, where subjects of a rule have quotas of their own, and
//! where buckets are logs: still no limit is lifted, and nothing grows.

use std::time::Duration;

use sluicegate::{Algorithm, LocalStore, Quota, Space, Store};

use crate::store::support::{key, manual_store, part, store_with_take, tokens};

/// Keys without a rule and with different quotas do not share an overflow bucket: the denial of a small one
/// would clamp the debt of the large one.
#[test]
fn t41_small_quotas_do_not_refill_large_ones() {
    let (store, _) = store_with_take(1, 1);
    let take = |name: &str, quota: &Quota, cost| {
        let key = store.key(Space::Take, &[name.as_bytes()]);
        store.charge_one_now(part(&key, quota, cost))
    };
    let (large, small) = (tokens(1000), tokens(1));
    assert!(take("the only one", &small, 1).is_granted());
    assert!(take("x", &large, 1000).is_granted(), "from the overflow bucket of its quota");
    assert!(take("y", &small, 1).is_granted());
    for _ in 0..10 {
        assert!(!take("z", &small, 1).is_granted());
        assert!(!take("x", &large, 1).is_granted());
        let both = [("y", &small), ("x", &large)]
            .map(|(name, quota)| (store.key(Space::Take, &[name.as_bytes()]), quota));
        let charges = [part(&both[0].0, both[0].1, 1), part(&both[1].0, both[1].1, 1)];
        assert!(store.charge_now(&charges).iter().all(|decision| !decision.is_granted()));
    }
}

/// Nor do subjects of one rule: the denial of a subject with a smaller quota must not clamp the debt of all
/// others, and a subject with a larger quota must not lift the limit of a smaller one.
#[test]
fn t41_overridden_subjects_do_not_refill_their_rule() {
    let (store, _) = manual_store(1);
    let charge = |name: &str, quota: &Quota, cost| {
        store.charge_one_now(part(&key(&store, name), quota, cost)).is_granted()
    };
    let (rule, more, less) = (tokens(100), tokens(1000), tokens(1));
    assert!(charge("the only one", &less, 1));
    assert!(charge("anybody", &rule, 100), "from the overflow bucket of the rule's quota");
    assert!(charge("pays", &more, 1000) && charge("was cut", &less, 1), "and from theirs");
    for round in 0..10 {
        for (name, quota) in [("anybody", &rule), ("pays", &more), ("was cut", &less)] {
            let other = format!("{name} {round}");
            assert!(!charge(name, quota, 1) && !charge(&other, quota, 1), "{other}");
        }
        let keys = ["anybody", "pays", "was cut"].map(|name| key(&store, name));
        let [anybody, pays, cut] = &keys;
        let all = [part(anybody, &rule, 1), part(pays, &more, 1), part(cut, &less, 1)];
        assert!(store.charge_now(&all).iter().all(|decision| !decision.is_granted()));
    }
    // One quota has one bucket for the whole rule, and none in common with another rule.
    let other_rule = store.key(Space::Rule(2), &[b"anybody"]);
    assert!(store.charge_one_now(part(&other_rule, &rule, 100)).is_granted());
}

/// A client that chooses quotas freely meets a bound of overflow buckets too.
#[test]
fn t41_overflow_buckets_are_bounded() {
    let (store, _) = store_with_take(1, 1);
    let take = |name: &str, quota: &Quota| {
        let key = store.key(Space::Take, &[name.as_bytes()]);
        store.charge_one_now(part(&key, quota, 1)).is_granted()
    };
    assert!(take("the only one", &tokens(1)));
    let admitted = (1..=6000).filter(|capacity| take("x", &tokens(*capacity))).count();
    assert_eq!(admitted, 4096);
    assert!(take("x", &tokens(2)), "those that are there are unaffected");
}

/// So do overrides: beyond the bound new keys are denied.
#[test]
fn t41_overflow_buckets_of_rules_are_bounded() {
    let (store, _) = manual_store(1);
    let charge = |name: &str, quota: &Quota| {
        store.charge_one_now(part(&key(&store, name), quota, 1)).is_granted()
    };
    assert!(charge("the only one", &tokens(1)));
    let admitted = (1..=6000).filter(|capacity| charge("x", &tokens(*capacity))).count();
    assert_eq!(admitted, 4096);
    assert!(charge("x", &tokens(2)), "those that are there are unaffected");
}

/// A log is as long as its admissions: all of them together are bounded as well.
#[test]
fn t41_logs_are_bounded() {
    let (store, clock) = store_with_take(10, 10);
    let hour = Duration::from_secs(3600);
    let quota = Quota::new(1000, hour).unwrap().with_algorithm(Algorithm::SlidingWindow).unwrap();
    let key = store.key(Space::Take, &[b"log"]);
    let take = || {
        clock.advance(Duration::from_micros(1));
        store.charge_one_now(part(&key, &quota, 1)).is_granted()
    };
    assert_eq!((0..500).filter(|_| take()).count(), 4 * 10);
    // Room becomes free at the end of the window.
    clock.advance(hour);
    assert!(take());
}

/// Expired logs take no room from others, swept or not: a stored key and a new one are served as usual.
#[test]
fn t41_logs_of_the_past_take_no_room() {
    let (store, clock) = manual_store(100);
    let hour = Duration::from_secs(3600);
    let quota = Quota::new(1000, hour).unwrap().with_algorithm(Algorithm::SlidingWindow).unwrap();
    let take = |name: u64| {
        clock.advance(Duration::from_micros(1));
        let key = store.key(Space::Rule(1), &[&name.to_le_bytes()]);
        store.charge_one_now(part(&key, &quota, 1)).is_granted()
    };
    assert!(take(0));
    let others = (0..1000).filter(|number| take(1 + number % 80)).count();
    assert_eq!(others, 4 * 100 - 1);
    assert!(!take(0) && !take(99), "there is no more room");
    clock.advance(hour);
    assert!((0..300).all(|_| take(0)), "one that is there");
    assert!(take(99), "one that is new");
}
