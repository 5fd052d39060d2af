//! Answers of stores, and their excess over the quota.

use std::time::Duration;

use sluicegate::Quota;
use sluicegate_tests::oracle::{self, Event};

/// One answer, as received by its task.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answer {
    pub(crate) sent_us: u64,
    pub(crate) at_us: u64,
    /// Index of the store.
    pub(crate) store: usize,
    /// Index of the target.
    pub(crate) target: usize,
    pub(crate) cost: u64,
    pub(crate) granted: bool,
    pub(crate) degraded: bool,
}

/// Answers in the order of arrival.
#[derive(Clone, Debug, Default)]
pub(crate) struct Log(pub(crate) Vec<Answer>);

/// Excess over the quota, in tokens.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Excess {
    /// That of the worst window; at or below zero nothing was over-admitted.
    pub(crate) tokens: i128,
    /// A reply arrives later than its decision was made: the refill of that time.
    pub(crate) slack: i128,
}

impl Log {
    /// A part of the log.
    pub(crate) fn only(&self, is: impl Fn(&Answer) -> bool) -> Self {
        Self(self.0.iter().filter(|answer| is(answer)).copied().collect())
    }

    /// Answers that Redis itself gave.
    pub(crate) fn by_redis(&self) -> Self {
        self.only(|answer| !answer.degraded)
    }

    /// Granted tokens.
    pub(crate) fn granted(&self) -> u64 {
        self.0.iter().filter(|answer| answer.granted).map(|answer| answer.cost).sum()
    }

    pub(crate) fn len(&self) -> u64 {
        self.0.len() as u64
    }

    pub(crate) fn degraded(&self) -> u64 {
        self.only(|answer| answer.degraded).len()
    }

    pub(crate) fn slowest_us(&self) -> u64 {
        self.0.iter().map(|answer| answer.at_us - answer.sent_us).max().unwrap_or_default()
    }

    /// Compares the grants with the oracle, for one bucket with this quota.
    pub(crate) fn excess(&self, quota: &Quota) -> Excess {
        let (tokens, period_us) = quota.rate().tokens_and_period_us();
        let quota = oracle::Quota { capacity: quota.capacity(), tokens, period_us };
        let granted = self.0.iter().filter(|answer| answer.granted);
        let events: Vec<_> =
            granted.map(|answer| Event { time_us: answer.at_us, cost: answer.cost }).collect();
        let worst = oracle::over_admission(quota, &events);
        let late = u128::from(self.slowest_us()) * u128::from(tokens);
        Excess {
            tokens: worst.map_or(-i128::from(quota.capacity), |worst| worst.tokens),
            slack: late.div_ceil(u128::from(period_us)).cast_signed(),
        }
    }

    /// The longest time that a store was without an answer by Redis.
    pub(crate) fn gap(&self, store: usize) -> Duration {
        let good = self.only(|answer| answer.store == store && !answer.degraded).0;
        let gaps = good.windows(2).map(|pair| pair[1].at_us - pair[0].at_us);
        Duration::from_micros(gaps.max().unwrap_or(u64::MAX))
    }

    /// The longest of all stores.
    pub(crate) fn gap_max(&self) -> Duration {
        let stores = self.0.iter().map(|answer| answer.store).max().map_or(0, |last| last + 1);
        (0..stores).map(|store| self.gap(store)).max().unwrap_or(Duration::MAX)
    }
}
