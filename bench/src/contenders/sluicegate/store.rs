//! The memory store: the name of a bucket is hashed and the bucket charged.

use std::hint::black_box;

use sluicegate::{
    Charge, Clock, LocalStore, ManualClock, MemoryKey, MemoryStore, Quota, Space, Store,
    SystemClock,
};

use super::{memory, quota};
use crate::contenders::Limiter;

/// Rule ids of the three tiers.
const USER: Space<'static> = Space::Rule(1);
const ENDPOINT: Space<'static> = Space::Rule(2);
const GLOBAL: Space<'static> = Space::Rule(3);

/// One bucket per key.
pub(in crate::contenders) struct Single<C> {
    store: MemoryStore<C>,
    quota: Quota,
}

/// A user's bucket, an endpoint's and the global one, in one atomic charge.
pub(in crate::contenders) struct Three {
    store: MemoryStore,
    quota: Quota,
    global: MemoryKey,
}

impl Single<SystemClock> {
    pub(in crate::contenders) fn new(keys: u64) -> Self {
        Self { store: memory(SystemClock::new(), keys), quota: quota() }
    }
}

impl Single<ManualClock> {
    pub(in crate::contenders) fn with_stopped_clock(keys: u64) -> Self {
        let now = SystemClock::new().now();
        Self { store: memory(ManualClock::new(now), keys), quota: quota() }
    }
}

impl Three {
    pub(in crate::contenders) fn new(keys: u64) -> Self {
        let store = memory(SystemClock::new(), keys);
        let global = store.key(GLOBAL, &[]);
        Self { store, quota: quota(), global }
    }
}

#[inline]
fn charge<'a>(key: &'a MemoryKey, quota: &'a Quota, cost: u32) -> Charge<'a, MemoryKey> {
    Charge::new(key, quota, cost.into())
}

impl<C: Clock> Limiter for Single<C> {
    type Key = String;

    #[inline]
    fn check(&self, key: &String, cost: u32) -> bool {
        let key = self.store.key(USER, &[key.as_bytes()]);
        let charge = charge(&key, &self.quota, cost);
        black_box(self.store.charge_one_now(charge)).is_granted()
    }
}

impl Limiter for Three {
    type Key = String;

    #[inline]
    fn check(&self, key: &String, cost: u32) -> bool {
        let user = self.store.key(USER, &[key.as_bytes()]);
        let endpoint = self.store.key(ENDPOINT, &[b"/api/search"]);
        let charge = |key| charge(key, &self.quota, cost);
        let charges = [charge(&user), charge(&endpoint), charge(&self.global)];
        let decisions = black_box(self.store.charge_now(&charges));
        decisions.iter().all(|decision| decision.is_granted())
    }
}
