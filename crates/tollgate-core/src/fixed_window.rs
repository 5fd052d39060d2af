//! Fixed windows, aligned to the Unix epoch: at most N in each, and so at most 2N in some stretch of
//! one period, across the edge between two.

use crate::bucket::Level;
use crate::{Micros, Quota, State};

/// What was spent in the window that `now` lies in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FixedWindow {
    count: u64,
    start: u64,
    left: u64,
    beyond: bool,
}

impl FixedWindow {
    /// Brings the stored state up to date: an earlier window's count is over.
    pub(crate) fn read(quota: &Quota, p: u64, state: Option<State>, now: Micros) -> Self {
        let elapsed = now.get() % p;
        let start = now.get() - elapsed;
        let (count, beyond) = match state {
            Some(state) if state.b == start => (state.a, false),
            // A window of the future: the clock stepped back. What was spent stays spent, here.
            Some(state) if state.b > start => (state.a, state.a > 0),
            _ => (0, false),
        };
        Self { count: count.min(quota.capacity()), start, left: p - elapsed, beyond }
    }
}

impl Level for FixedWindow {
    type Stored = State;

    fn is_beyond(&self) -> bool {
        self.beyond
    }

    fn take(&self, quota: &Quota, cost: u64) -> Result<(Self, u64), u64> {
        let count = self.count + cost;
        if count > quota.capacity() {
            return Err(self.left);
        }
        Ok((Self { count, beyond: false, ..*self }, 0))
    }

    fn give(&self, _: &Quota, amount: u64) -> Self {
        Self { count: self.count.saturating_sub(amount), ..*self }
    }

    fn remaining(&self, quota: &Quota) -> u64 {
        quota.capacity() - self.count
    }

    fn reset_after(&self, _: &Quota) -> u64 {
        if self.count == 0 { 0 } else { self.left }
    }

    fn store(&self, _: &Quota) -> Option<State> {
        (self.count > 0).then_some(State { a: self.count, b: self.start })
    }
}
