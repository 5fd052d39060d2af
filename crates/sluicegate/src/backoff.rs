//! Exponential backoff with jitter.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

/// Exponential backoff: the wait doubles after every failure in a row, up to a bound. Half of it is random, so that
/// processes that failed at the same time do not retry at the same time.
#[derive(Clone, Copy, Debug)]
pub struct Backoff {
    /// Longest wait after the first failure.
    pub first: Duration,
    /// Longest wait after any number of failures.
    pub longest: Duration,
}

impl Backoff {
    /// The wait after this number of failures in a row.
    #[must_use]
    pub fn after(self, failures: u32) -> Duration {
        let doublings = failures.saturating_sub(1).min(16);
        let full = self.first.saturating_mul(1 << doublings).min(self.longest);
        let half_us = full.as_micros() as u64 / 2;
        // Every `RandomState` has keys of its own.
        let random_us = RandomState::new().hash_one(failures) % (half_us + 1);
        Duration::from_micros(half_us + random_us)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_grow_up_to_a_maximum_and_have_jitter() {
        let backoff = Backoff { first: Duration::from_secs(1), longest: Duration::from_secs(10) };
        for (failures, longest) in [(0, 1), (1, 1), (2, 2), (4, 8), (5, 10), (u32::MAX, 10)] {
            let longest = Duration::from_secs(longest);
            let waits: Vec<_> = (0..100).map(|_| backoff.after(failures)).collect();
            assert!(waits.iter().all(|wait| (longest / 2..=longest).contains(wait)), "{failures}");
            assert!(waits.iter().any(|wait| *wait != waits[0]));
        }
    }
}
