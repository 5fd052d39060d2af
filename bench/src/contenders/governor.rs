//! governor: its default keyed limiter, on dashmap, with its default clock (quanta).

use std::hash::Hash;
use std::hint::black_box;
use std::num::NonZeroU32;
use std::time::Duration;

use governor::clock::{Clock, DefaultClock, FakeRelativeClock};
use governor::middleware::NoOpMiddleware;
use governor::state::keyed::DefaultKeyedStateStore;
use governor::{DefaultDirectRateLimiter, DefaultKeyedRateLimiter, Quota, RateLimiter};

use super::Limiter;
use crate::workloads::{BURST, Key, PERIOD_SECS};

type Keyed<K, C> =
    RateLimiter<K, DefaultKeyedStateStore<K>, C, NoOpMiddleware<<C as Clock>::Instant>>;

/// One bucket per key.
pub(super) struct Single<K: Clone + Eq + Hash, C: Clock>(Keyed<K, C>);

/// Three checks in sequence: tokens taken by the first are lost if the last denies. The global limit is a
/// direct limiter, without a map.
pub(super) struct Three {
    users: DefaultKeyedRateLimiter<String>,
    endpoints: DefaultKeyedRateLimiter<&'static str>,
    global: DefaultDirectRateLimiter,
}

impl<K: Clone + Eq + Hash> Single<K, DefaultClock> {
    pub(super) fn new() -> Self {
        Self(RateLimiter::keyed(quota()))
    }
}

impl<K: Clone + Eq + Hash> Single<K, FakeRelativeClock> {
    pub(super) fn with_stopped_clock() -> Self {
        let state = DefaultKeyedStateStore::default();
        Self(RateLimiter::new(quota(), state, FakeRelativeClock::default()))
    }
}

impl Three {
    pub(super) fn new() -> Self {
        Self {
            users: RateLimiter::keyed(quota()),
            endpoints: RateLimiter::keyed(quota()),
            global: RateLimiter::direct(quota()),
        }
    }
}

impl<K, C> Limiter for Single<K, C>
where
    K: Key + Clone + Eq + Hash + Send,
    C: Clock + Sync,
    C::Instant: Sync,
{
    type Key = K;

    #[inline]
    fn check(&self, key: &K, cost: u32) -> bool {
        check(&self.0, key, cost)
    }
}

impl Limiter for Three {
    type Key = String;

    #[inline]
    fn check(&self, key: &String, cost: u32) -> bool {
        check(&self.users, key, cost)
            && black_box(self.endpoints.check_key(&"/api/search")).is_ok()
            && black_box(self.global.check()).is_ok()
    }
}

/// A cost of one token has a faster method.
#[inline]
fn check<K: Clone + Eq + Hash, C: Clock>(limiter: &Keyed<K, C>, key: &K, cost: u32) -> bool {
    match NonZeroU32::new(cost) {
        Some(NonZeroU32::MIN) | None => black_box(limiter.check_key(key)).is_ok(),
        Some(cost) => matches!(black_box(limiter.check_key_n(key, cost)), Ok(Ok(()))),
    }
}

fn quota() -> Quota {
    let burst = NonZeroU32::new(BURST).expect("the burst is not zero");
    Quota::with_period(Duration::from_secs(PERIOD_SECS))
        .expect("the period is not zero")
        .allow_burst(burst)
}
