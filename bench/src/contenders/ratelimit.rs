//! The `ratelimit` crate: one bucket, lock-free, no keys.

use std::hint::black_box;
use std::time::Duration;

use ratelimit::Ratelimiter;

use super::Limiter;
use crate::workloads::{BURST, PERIOD_SECS};

pub(super) struct One(Ratelimiter);

impl One {
    pub(super) fn new() -> Self {
        let limiter = Ratelimiter::builder(1)
            .period(Duration::from_secs(PERIOD_SECS))
            .max_tokens(BURST.into())
            .initial_available(BURST.into())
            .build()
            .expect("the benchmark's limit is sound");
        Self(limiter)
    }
}

impl Limiter for One {
    type Key = u64;

    #[inline]
    fn check(&self, _: &u64, cost: u32) -> bool {
        black_box(self.0.try_wait_n(cost.into())).is_ok()
    }
}
