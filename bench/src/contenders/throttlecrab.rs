//! throttlecrab: its three stores. They are not thread-safe, so each is behind one lock, and the caller
//! passes the time.

use std::hint::black_box;
use std::time::SystemTime;

use parking_lot::Mutex;
use throttlecrab::{AdaptiveStore, PeriodicStore, ProbabilisticStore, RateLimiter, Store};

use super::Limiter;
use crate::workloads::{BURST, PERIOD_SECS};

/// One bucket per key.
pub(super) struct Single<S: Store>(Mutex<RateLimiter<S>>);

pub(super) fn adaptive(keys: u64) -> Single<AdaptiveStore> {
    Single::new(AdaptiveStore::with_capacity(keys as usize))
}

pub(super) fn periodic(keys: u64) -> Single<PeriodicStore> {
    Single::new(PeriodicStore::with_capacity(keys as usize))
}

pub(super) fn probabilistic(keys: u64) -> Single<ProbabilisticStore> {
    Single::new(ProbabilisticStore::with_capacity(keys as usize))
}

impl<S: Store> Single<S> {
    fn new(store: S) -> Self {
        Self(Mutex::new(RateLimiter::new(store)))
    }
}

impl<S: Store + Send> Limiter for Single<S> {
    type Key = String;

    #[inline]
    fn check(&self, key: &String, cost: u32) -> bool {
        let mut limiter = self.0.lock();
        let now = SystemTime::now();
        let (burst, period) = (i64::from(BURST), PERIOD_SECS as i64);
        let checked = limiter.rate_limit(key, burst, 1, period, cost.into(), now);
        black_box(checked).expect("the benchmark's limits are sound").0
    }
}
