//! How long to wait before something that failed is tried again.

use std::time::Duration;

/// Twice as long after every failure in a row, up to a bound; and of that at least half, by chance, so that
/// processes that fail together do not come back together.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Backoff {
    /// After the first failure.
    pub(crate) first: Duration,
    /// At most.
    pub(crate) longest: Duration,
}

impl Backoff {
    /// The wait after so many failures in a row.
    pub(crate) fn after(self, failures: u32) -> Duration {
        let doublings = failures.saturating_sub(1).min(16);
        let full = self.first.saturating_mul(1 << doublings).min(self.longest);
        let half_us = full.as_micros() as u64 / 2;
        let random_us = getrandom::u64().unwrap_or(half_us) % (half_us + 1);
        Duration::from_micros(half_us + random_us)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_up_to_a_bound_and_are_not_all_the_same() {
        let backoff = Backoff { first: Duration::from_secs(1), longest: Duration::from_secs(10) };
        for (failures, longest) in [(0, 1), (1, 1), (2, 2), (4, 8), (5, 10), (u32::MAX, 10)] {
            let longest = Duration::from_secs(longest);
            let waits: Vec<_> = (0..100).map(|_| backoff.after(failures)).collect();
            assert!(waits.iter().all(|wait| (longest / 2..=longest).contains(wait)), "{failures}");
            assert!(waits.iter().any(|wait| *wait != waits[0]));
        }
    }
}
