//! The sliding counter: two aligned windows, the earlier one weighted by how much of it the sliding
//! window still covers. Its formula exactly, in integers:
//!
//! ```text
//!   granted if   previous * (P - elapsed) + (current + cost) * P  <=  N * P
//! ```
//!
//! It estimates the exact sliding window, in constant memory, as if the earlier window's requests had
//! been spread evenly over it. At most N are admitted in each aligned window, so at most 2N in some
//! interval of one period.

use crate::bucket::Level;
use crate::{Micros, Quota, State};

/// Both counts share one stored integer: this many bits for the current one.
const COUNT_BITS: u32 = 26;
const COUNT_MASK: u64 = (1 << COUNT_BITS) - 1;

/// The most tokens per window: two counts must fit one integer below 2^53.
pub(crate) const TOKENS_MAX: u64 = COUNT_MASK;

const _: () = assert!(1 << (2 * COUNT_BITS) <= crate::EXACT_MAX);

/// The counts of the window that `now` lies in and of the one before it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SlidingCounter {
    p: u64,
    previous: u64,
    current: u64,
    start: u64,
    left: u64,
    beyond: bool,
}

impl SlidingCounter {
    /// Brings the stored state up to date: a window later, the current count becomes the previous one.
    pub(crate) fn read(quota: &Quota, p: u64, state: Option<State>, now: Micros) -> Self {
        let elapsed = now.get() % p;
        let start = now.get() - elapsed;
        let (previous, current, beyond) = match state {
            Some(State { a, b }) => {
                let (previous, current) = (a >> COUNT_BITS & COUNT_MASK, a & COUNT_MASK);
                if b == start {
                    (previous, current, false)
                } else if b > start {
                    // The clock stepped back over an edge. The faded part of the earlier count is unknown, so
                    // all of it stays spent, up to an empty bucket.
                    (0, (previous + current).min(quota.capacity()), a > 0)
                } else if start - b == p {
                    (current, 0, false)
                } else {
                    (0, 0, false)
                }
            }
            None => (0, 0, false),
        };
        Self { p, previous, current, start, left: p - elapsed, beyond }
    }

    /// Units (1/P of a token) that still fit the sliding window. Counts above the limit, which was
    /// lowered, are taken as they are: they fade like any other. Only corrupt ones saturate.
    fn room(&self, quota: &Quota) -> u64 {
        let fading = self.previous.saturating_mul(self.left);
        let used = self.current.saturating_mul(self.p).saturating_add(fading);
        (quota.capacity() * self.p).saturating_sub(used)
    }
}

impl Level for SlidingCounter {
    type Stored = State;

    fn is_beyond(&self) -> bool {
        self.beyond
    }

    fn take(&self, quota: &Quota, cost: u64) -> Result<(Self, u64), u64> {
        let current = self.current + cost;
        if cost * self.p <= self.room(quota) {
            return Ok((Self { current, beyond: false, ..*self }, 0));
        }
        // It fits as soon as little enough is left of the window that fades. Divided down: that much
        // of it may be left, and not a microsecond more. Neither divisor is zero, or it would fit.
        let limit = quota.capacity();
        if current <= limit {
            let left = (limit - current) * self.p / self.previous;
            Err(self.left - left)
        } else {
            // Not in this window, whose own count will be the one that fades in the next.
            let left = (limit - cost) * self.p / self.current;
            Err(self.left + self.p - left)
        }
    }

    fn give(&self, _: &Quota, amount: u64) -> Self {
        let rest = amount.saturating_sub(self.current);
        let current = self.current.saturating_sub(amount);
        Self { previous: self.previous.saturating_sub(rest), current, ..*self }
    }

    fn remaining(&self, quota: &Quota) -> u64 {
        self.room(quota) / self.p
    }

    fn reset_after(&self, _: &Quota) -> u64 {
        match (self.previous, self.current) {
            (0, 0) => 0,
            (_, 0) => self.left,
            _ => self.left + self.p,
        }
    }

    fn store(&self, _: &Quota) -> Option<State> {
        let a = self.previous << COUNT_BITS | self.current;
        (a > 0).then_some(State { a, b: self.start })
    }
}
