//! Fixed windows, aligned to the Unix epoch: at most N in each, and so at most 2N in some interval of one period,
//! across the edge between two.

use crate::bucket::Level;
use crate::{Micros, Quota, State};

/// Tokens spent in the window that `now` lies in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FixedWindow {
    count: u64,
    /// Start of the window that the count belongs to, and its remaining time: the current window or, after the clock
    /// stepped back, the next.
    start: u64,
    left: u64,
    beyond: bool,
}

impl FixedWindow {
    /// Brings the stored state up to date: the count of an earlier window is dropped.
    pub(crate) fn read(quota: &Quota, p: u64, state: Option<State>, now: Micros) -> Self {
        let elapsed = now.get() % p;
        let (start, left) = (now.get() - elapsed, p - elapsed);
        let spent = |state: State| state.a.min(quota.capacity());
        match state {
            Some(state) if state.b == start => {
                Self { count: spent(state), start, left, beyond: false }
            }
            // A window of the future: the clock stepped back over its edge and will pass that edge again. The tokens
            // stay spent until after the window that begins there.
            Some(state) if state.b > start && state.a > 0 => {
                let next = start + p;
                Self { count: spent(state), start: next, left: left + p, beyond: state.b != next }
            }
            _ => Self { count: 0, start, left, beyond: false },
        }
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
