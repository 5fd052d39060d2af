//! E1: a sweep evicts full buckets, only full ones, and no more of them than it visits.

use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use sluicegate::{Clock, LocalStore, Quota};

use crate::store::naive::{Naive, Part};
use crate::store::quotas::any_quota;
use crate::store::support::{config, key, manual_store, part, peek, sweep_all};

proptest! {
    #![proptest_config(config(400))]

    /// Buckets of random quotas, charged at random times: after any number of sweeps at any time, also on a
    /// clock that stepped back, all that were less than full are stored unchanged.
    #[test]
    fn e1_what_is_not_full_is_never_forgotten(
        buckets in vec((any_quota(), 0..=10u64, 0..=30u64), 1..60),
        times in vec((any::<bool>(), 0..=60u64, 0..=2000usize), 1..12),
    ) {
        let (store, clock) = manual_store(10_000);
        let mut model = Naive::default();
        model.now = clock.now();
        let keys: Vec<_> = (0..buckets.len()).map(|name| key(&store, &format!("{name}"))).collect();
        for (name, (quota, cost, pause)) in buckets.iter().enumerate() {
            let cost = *cost.min(&quota.capacity());
            store.charge_one_now(part(&keys[name], quota, cost));
            model.charge(&[Part { name, quota: *quota, cost, mode: sluicegate::Mode::Enforce, is_probe: false }]);
            clock.advance(Duration::from_micros(*pause));
            model.now = clock.now();
        }
        // Only buckets that were full at some time may be evicted.
        let mut was_full: Vec<_> = (0..buckets.len()).map(|name| model.is_full(name)).collect();
        for (back, pause, slots) in times {
            let pause = Duration::from_micros(pause);
            if back { clock.step_back(pause) } else { clock.advance(pause) }
            model.now = clock.now();
            store.sweep(slots);
            for (name, (quota, ..)) in buckets.iter().enumerate() {
                was_full[name] |= model.is_full(name);
                if !was_full[name] {
                    prop_assert_eq!(peek(&store, &keys[name], quota), model.peek(name, quota));
                }
            }
        }
        sweep_all(&store);
        let held = (0..buckets.len()).filter(|name| !was_full[*name]).count();
        prop_assert!(store.stats().buckets >= held);
    }
}

/// A store with this many buckets, all of which become full at the same time.
fn store_of_full_buckets(buckets: usize) -> crate::store::support::ManualStore {
    let quota: Quota = "1/s burst 5".parse().unwrap();
    let (store, clock) = manual_store(buckets);
    for bucket in 0..buckets {
        store.charge_one_now(part(&key(&store, &format!("{bucket}")), &quota, 5));
    }
    clock.advance(Duration::from_secs(5));
    store
}

#[test]
fn a_sweep_forgets_no_more_than_it_looks_at() {
    let store = store_of_full_buckets(20_000);
    for slots in [0, 1, 10, 255, 256, 257, 1000] {
        let before = store.stats();
        store.sweep(slots);
        let after = store.stats();
        assert!(before.buckets - after.buckets <= slots);
        assert_eq!((before.buckets - after.buckets) as u64, after.forgotten - before.forgotten);
    }
    sweep_all(&store);
    assert_eq!(store.stats().buckets, 0);
    assert_eq!(store.stats().forgotten, 20_000);
}

/// Four slots are swept for every new bucket, so that new ones alone keep the store from filling up with full
/// ones: calling `sweep` is not necessary.
#[test]
fn new_buckets_sweep_away_more_than_they_are() {
    let quota: Quota = "1/s burst 5".parse().unwrap();
    let (store, clock) = manual_store(1_000_000);
    for bucket in 0..200_000 {
        store.charge_one_now(part(&key(&store, &format!("{bucket}")), &quota, 1));
        // A thousand new ones a second, each full after one second.
        clock.advance(Duration::from_millis(1));
    }
    let stats = store.stats();
    assert!(stats.buckets < 10_000, "{stats:?}");
}

/// A bucket written under a clock that was ahead is not full until it would be on the current clock.
#[test]
fn t2_a_clock_that_stepped_back_forgets_nothing_early() {
    let quota: Quota = "1/s burst 5".parse().unwrap();
    let (store, clock) = manual_store(1000);
    let bucket = key(&store, "bucket");
    assert!(store.charge_one_now(part(&bucket, &quota, 5)).is_granted());
    clock.step_back(Duration::from_hours(1));
    for _ in 0..4 {
        sweep_all(&store);
        assert_eq!(store.stats().buckets, 1);
        assert_eq!(peek(&store, &bucket, &quota).remaining, 0);
        clock.advance(Duration::from_millis(100));
    }
    // The first charge clamps it to empty, and it refills from there.
    assert!(!store.charge_one_now(part(&bucket, &quota, 1)).is_granted());
    clock.advance(Duration::from_millis(4_999));
    sweep_all(&store);
    assert_eq!(store.stats().buckets, 1);
    clock.advance(Duration::from_millis(1));
    sweep_all(&store);
    assert_eq!(store.stats().buckets, 0);
}
