//! Shared by the proofs: a store on a manual clock, short names for charges, and threads that start together.

use std::sync::Barrier;
use std::thread;

use proptest::prelude::ProptestConfig;
use sluicegate::{
    Charge, Clock, Decision, LocalStore, ManualClock, MemoryKey, MemoryStore, Micros, Mode, Quota,
    Space, Store,
};

/// A day in November 2023.
pub(crate) const NOON: Micros = Micros::new(1_700_000_000_000_000);

/// A store whose time stands still until the test moves it.
pub(crate) type ManualStore = MemoryStore<ManualClock>;

/// A store of this many buckets of rules, and its clock.
pub(crate) fn manual_store(max_buckets: usize) -> (ManualStore, ManualClock) {
    store_with_take(max_buckets, 0)
}

/// A store of this many buckets, of which so many may be without a rule, and its clock.
pub(crate) fn store_with_take(
    max_buckets: usize,
    take_buckets_max: usize,
) -> (ManualStore, ManualClock) {
    let clock = ManualClock::new(NOON);
    let builder = MemoryStore::builder().max_buckets(max_buckets);
    let store = builder.take_buckets_max(take_buckets_max).clock(clock.clone()).build();
    (store, clock)
}

/// `capacity` tokens that are not refilled while a test runs.
pub(crate) fn tokens(capacity: u64) -> Quota {
    Quota::per_day(1).unwrap().with_capacity(capacity).unwrap()
}

/// The key of a bucket of rule 1.
pub(crate) fn key<C: Clock>(store: &MemoryStore<C>, name: &str) -> MemoryKey {
    store.key(Space::Rule(1), &[name.as_bytes()])
}

/// An enforced part of a charge.
pub(crate) fn part<'a>(key: &'a MemoryKey, quota: &'a Quota, cost: u64) -> Charge<'a, MemoryKey> {
    Charge::new(key, quota, cost)
}

/// A part of a charge in shadow mode: its denial does not count.
pub(crate) fn shadow<'a>(key: &'a MemoryKey, quota: &'a Quota, cost: u64) -> Charge<'a, MemoryKey> {
    Charge::new(key, quota, cost).with_mode(Mode::Shadow)
}

/// A part of a charge that can deny and is not charged.
pub(crate) fn probe<'a>(key: &'a MemoryKey, quota: &'a Quota, cost: u64) -> Charge<'a, MemoryKey> {
    Charge::new(key, quota, cost).with_is_probe(true)
}

/// Decision of a peek at a bucket.
pub(crate) fn peek<C: Clock>(store: &MemoryStore<C>, key: &MemoryKey, quota: &Quota) -> Decision {
    store.charge_one_now(part(key, quota, 0))
}

/// Whole tokens left in a bucket.
pub(crate) fn remaining<C: Clock>(store: &MemoryStore<C>, key: &MemoryKey, quota: &Quota) -> u64 {
    peek(store, key, quota).remaining
}

/// Sweeps until every slot has been visited, of a store of up to a million buckets: 256 slots of each shard
/// at a time.
pub(crate) fn sweep_all<C: Clock>(store: &MemoryStore<C>) {
    store.sweep(1 << 22);
}

/// Runs `work` on this many threads, started together, and collects the results.
pub(crate) fn on_threads<T: Send>(threads: usize, work: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let barrier = Barrier::new(threads);
    let (barrier, work) = (&barrier, &work);
    thread::scope(|scope| {
        let spawn = |number| {
            scope.spawn(move || {
                barrier.wait();
                work(number)
            })
        };
        let handles: Vec<_> = (0..threads).map(spawn).collect();
        handles.into_iter().map(|handle| handle.join().unwrap()).collect()
    })
}

/// This many cases per property, multiplied as `PROPTEST_CASES` is above proptest's default of 256.
pub(crate) fn config(cases: u32) -> ProptestConfig {
    let default = ProptestConfig::default();
    ProptestConfig { cases: (cases * default.cases / 256).max(1), ..default }
}
