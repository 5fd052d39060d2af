//! Backoff of reconnecting.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use super::{RECONNECT_MAX, RECONNECT_MIN};

/// Exponential backoff with jitter.
#[derive(Debug)]
pub(super) struct Backoff {
    pub(super) tries: u32,
    pub(super) random: u64,
}

impl Backoff {
    pub(super) fn new() -> Self {
        // Not zero, where xorshift would stay at zero.
        Self { tries: 0, random: RandomState::new().hash_one(0) | 1 }
    }

    pub(super) fn reset(&mut self) {
        self.tries = 0;
    }

    pub(super) fn is_fresh(&self) -> bool {
        self.tries == 0
    }

    /// Continues with the longest wait.
    pub(super) fn slow_down(&mut self) {
        self.tries = self.tries.max(u32::BITS);
    }

    /// Zero at first, then doubled each time, less up to a half as jitter: clients that lost a server at the
    /// same time do not reconnect at the same time.
    pub(super) fn next(&mut self) -> Duration {
        let doublings = self.tries.checked_sub(1);
        self.tries = self.tries.saturating_add(1);
        let Some(doublings) = doublings else { return Duration::ZERO };
        let full = RECONNECT_MIN.saturating_mul(1 << doublings.min(16)).min(RECONNECT_MAX);
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        full - full.mul_f64((self.random % 1000) as f64 / 2000.0)
    }
}
