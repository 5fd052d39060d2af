//! M1: all buckets are charged or none, and a denied charge shows the tokens that are really left.

use std::time::Duration;

use sluicegate::{Algorithm, Decision, LocalStore, Outcome, Quota};

use crate::store::support::{
    ManualStore, key, manual_store, on_threads, part, remaining, shadow, tokens,
};

fn outcomes(decisions: &[Decision]) -> Vec<bool> {
    decisions.iter().map(Decision::is_granted).collect()
}

fn left(decisions: &[Decision]) -> Vec<u64> {
    decisions.iter().map(|decision| decision.remaining).collect()
}

/// A store with an exhausted bucket.
fn with_exhausted(name: &str, quota: &Quota) -> (ManualStore, sluicegate::MemoryKey) {
    let (store, _) = manual_store(1000);
    let exhausted = key(&store, name);
    assert!(store.charge_one_now(part(&exhausted, quota, quota.capacity())).is_granted());
    (store, exhausted)
}

/// M4: charging every tier that passes, also when another denies, would let a client without tokens drain the
/// bucket that all clients share.
#[test]
fn m4_seed_001_denied_requests_drained_the_shared_bucket() {
    let (user, global) = (tokens(5), tokens(20_000));
    let (store, user_key) = with_exhausted("user", &user);
    let global_key = key(&store, "global");
    assert!(store.charge_one_now(part(&global_key, &global, 7)).is_granted());
    for cost in (1..=5).cycle().take(10_000) {
        let charges = [part(&user_key, &user, cost), part(&global_key, &global, cost)];
        let decisions = store.charge_now(&charges);
        assert_eq!(outcomes(&decisions), [false, true]);
        assert_eq!(left(&decisions), [0, 19_993]);
    }
    assert_eq!(remaining(&store, &global_key, &global), 19_993);
}

/// The same for every algorithm, as the one that denies and as the one that must not be charged.
#[test]
fn m1_every_algorithm_denies_and_is_spared() {
    let quotas = Algorithm::ALL.map(|algorithm| {
        Quota::new(4, Duration::from_secs(3600)).unwrap().with_algorithm(algorithm).unwrap()
    });
    for (denying, spared) in quotas.iter().flat_map(|a| quotas.iter().map(move |b| (a, b))) {
        let (store, exhausted) = with_exhausted("exhausted", denying);
        let other = key(&store, "other");
        store.charge_one_now(part(&other, spared, 1));
        for _ in 0..20 {
            let charges = [part(&other, spared, 2), part(&exhausted, denying, 2)];
            assert_eq!(outcomes(&store.charge_now(&charges)), [true, false]);
        }
        assert_eq!(remaining(&store, &other, spared), 3, "{denying:?} {spared:?}");
    }
}

#[test]
fn a_cost_that_no_bucket_can_hold_is_never_and_charges_nothing() {
    let (small, large) = (tokens(5), tokens(50));
    let (store, _) = manual_store(1000);
    let (small_key, large_key) = (key(&store, "small"), key(&store, "large"));
    for cost in [6, u64::MAX] {
        let charges = [part(&large_key, &large, 6), part(&small_key, &small, cost)];
        let decisions = store.charge_now(&charges);
        assert_eq!(decisions[1].outcome, Outcome::Never);
        assert_eq!(left(&decisions), [50, 5]);
    }
    assert_eq!(store.stats().buckets, 0, "a denial of new buckets leaves nothing behind");
}

/// A cost of zero is a peek: neither denied nor charged, whatever the other parts do.
#[test]
fn k2_a_look_among_charges_changes_nothing() {
    let quota = tokens(5);
    let (store, exhausted) = with_exhausted("exhausted", &quota);
    let (looked_at, charged) = (key(&store, "looked at"), key(&store, "charged"));
    let granted = store.charge_now(&[part(&exhausted, &quota, 0), part(&charged, &quota, 2)]);
    assert_eq!((outcomes(&granted), left(&granted)), (vec![true, true], vec![0, 3]));
    let denied = store.charge_now(&[part(&exhausted, &quota, 1), part(&looked_at, &quota, 0)]);
    assert_eq!((outcomes(&denied), left(&denied)), (vec![false, true], vec![0, 5]));
    assert_eq!(store.stats().buckets, 2);
}

// ===== shadow =====

/// If all enforced tiers grant, a shadow tier that has enough is charged too.
#[test]
fn a_shadow_tier_with_enough_is_charged() {
    let quota = tokens(5);
    let (store, _) = manual_store(1000);
    let (enforced, shadowed) = (key(&store, "enforced"), key(&store, "shadow"));
    let decisions = store.charge_now(&[part(&enforced, &quota, 2), shadow(&shadowed, &quota, 2)]);
    assert_eq!((outcomes(&decisions), left(&decisions)), (vec![true, true], vec![3, 3]));
}

/// A shadow tier that has not enough stays unchanged, reports it, and does not prevent the charge of the
/// others.
#[test]
fn a_shadow_tier_without_enough_is_left_unchanged() {
    let quota = tokens(5);
    let (store, _) = manual_store(1000);
    let (enforced, shadowed) = (key(&store, "enforced"), key(&store, "shadow"));
    store.charge_one_now(shadow(&shadowed, &quota, 4));
    let decisions = store.charge_now(&[shadow(&shadowed, &quota, 2), part(&enforced, &quota, 2)]);
    assert_eq!((outcomes(&decisions), left(&decisions)), (vec![false, true], vec![1, 3]));
    assert_eq!(remaining(&store, &shadowed, &quota), 1);
    // A shadow tier alone is the same.
    assert!(!store.charge_one_now(shadow(&shadowed, &quota, 2)).is_granted());
    assert!(store.charge_one_now(shadow(&shadowed, &quota, 1)).is_granted());
}

/// If an enforced tier denies, nothing is charged, shadow tiers included.
#[test]
fn a_denial_spares_the_shadow_tiers_too() {
    let quota = tokens(5);
    let (store, exhausted) = with_exhausted("exhausted", &quota);
    let shadowed = key(&store, "shadow");
    store.charge_one_now(part(&shadowed, &quota, 1));
    for _ in 0..100 {
        let decisions =
            store.charge_now(&[shadow(&shadowed, &quota, 2), part(&exhausted, &quota, 1)]);
        assert_eq!((outcomes(&decisions), left(&decisions)), (vec![true, false], vec![4, 0]));
    }
    assert_eq!(remaining(&store, &shadowed, &quota), 4);
}

// ===== the same bucket twice =====

#[test]
fn the_same_bucket_twice_pays_both_costs() {
    let quota = tokens(10);
    let (store, _) = manual_store(1000);
    let (twice, other) = (key(&store, "twice"), key(&store, "other"));
    let charges = [part(&twice, &quota, 3), part(&other, &quota, 1), part(&twice, &quota, 4)];
    let decisions = store.charge_now(&charges);
    assert_eq!(left(&decisions), [3, 9, 3]);
    // Each of the two costs would fit; both together do not.
    let decisions = store.charge_now(&[part(&twice, &quota, 2), part(&twice, &quota, 2)]);
    assert_eq!((outcomes(&decisions), left(&decisions)), (vec![false, false], vec![3, 3]));
    assert_eq!(remaining(&store, &twice, &quota), 3);
}

/// The cost of a later part is charged also if the first part of the bucket is a peek, and the new bucket is
/// counted.
#[test]
fn a_look_and_a_charge_of_one_new_bucket() {
    let quota = tokens(10);
    let (store, _) = manual_store(1000);
    let bucket = key(&store, "bucket");
    let decisions = store.charge_now(&[part(&bucket, &quota, 0), part(&bucket, &quota, 4)]);
    assert_eq!(left(&decisions), [6, 6]);
    assert_eq!(store.stats().buckets, 1);
    assert!(store.reset_now(&bucket));
    assert_eq!(store.stats().buckets, 0);
}

/// If parts of one bucket were charged under separate quotas, a shadow part could hide the cost of an
/// enforced one. The quota of the first part applies to both.
#[test]
fn twins_of_two_quotas_are_one_bucket_all_the_same() {
    let (small, large) = (tokens(5), tokens(50));
    let (store, _) = manual_store(1000);
    let bucket = key(&store, "bucket");
    for _ in 0..10 {
        let charges = [shadow(&bucket, &small, 4), part(&bucket, &large, 4)];
        assert_eq!(outcomes(&store.charge_now(&charges)), [false, false]);
    }
    assert_eq!(remaining(&store, &bucket, &large), 50);
}

// ===== figures =====

/// In a denied charge each decision shows the tokens left without it; in a granted one, with it.
#[test]
fn every_decision_shows_the_tokens_really_left() {
    let (five, nine) = (tokens(5), tokens(9));
    let (store, _) = manual_store(1000);
    let (a, b, c) = (key(&store, "a"), key(&store, "b"), key(&store, "c"));
    let charge = |costs: [u64; 3]| {
        let charges =
            [part(&a, &five, costs[0]), part(&b, &nine, costs[1]), shadow(&c, &five, costs[2])];
        left(&store.charge_now(&charges))
    };
    assert_eq!(charge([1, 2, 3]), [4, 7, 2]);
    assert_eq!(charge([5, 1, 1]), [4, 7, 2]);
    assert_eq!(charge([1, 8, 1]), [4, 7, 2]);
    assert_eq!(charge([1, 1, 3]), [3, 6, 2]);
    assert_eq!(charge([0, 0, 0]), [3, 6, 2]);
}

#[test]
fn no_charges_no_decisions() {
    let (store, _) = manual_store(1000);
    assert!(store.charge_now(&[]).is_empty());
}

/// No charge sees a refund of several buckets half done.
#[test]
fn m1_a_refund_of_several_buckets_is_one_step() {
    let quota = tokens(10);
    let (store, first) = with_exhausted("first", &quota);
    let second = key(&store, "second");
    assert!(store.charge_one_now(part(&second, &quota, 10)).is_granted());
    let parts = |cost| [part(&first, &quota, cost), part(&second, &quota, cost)];
    on_threads(2, |thread| {
        for _ in 0..20_000 {
            if thread == 0 {
                assert_eq!(left(&store.refund_many_now(&parts(3))), [3, 3]);
                assert_eq!(outcomes(&store.charge_now(&parts(3))), [true, true]);
            } else {
                let figures = left(&store.charge_now(&parts(0)));
                assert_eq!(figures[0], figures[1]);
            }
        }
    });
    // The same bucket twice receives both, and no bucket more than it holds.
    let credits = [part(&first, &quota, 2), part(&second, &quota, 11), part(&first, &quota, 5)];
    assert_eq!(left(&store.refund_many_now(&credits)), [7, 10, 7]);
}
