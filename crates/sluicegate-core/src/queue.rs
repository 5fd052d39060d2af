//! The leaky bucket as a queue: work leaves at a steady N per P, and a grant carries the delay until the work may
//! start.
//!
//! ```text
//!   queue of 3, 1/s    t: 0    0      0      0        1
//!                         ok   ok     ok     no       ok
//!                  delay: 0s   1s     2s     -        2s
//! ```

use crate::bucket::Level;
use crate::token_bucket::TokenBucket;
use crate::{Micros, Quota, State};

/// Length of the queue. It is counted as a token bucket's debt: the units of work that were admitted and have not
/// left yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Queue(TokenBucket);

impl Queue {
    #[inline]
    pub(crate) fn read(quota: &Quota, n: u64, p: u64, state: Option<State>, now: Micros) -> Self {
        Self(TokenBucket::read(quota, n, p, state, now))
    }
}

impl Level for Queue {
    type Stored = State;

    fn is_beyond(&self) -> bool {
        self.0.is_beyond()
    }

    /// Both the room in the queue and the longest acceptable wait must allow it.
    fn take(&self, quota: &Quota, cost: u64) -> Result<(Self, u64), u64> {
        let too_late = self.0.micros(self.0.debt.saturating_sub(quota.units_to_wait()));
        match self.0.take(quota, cost) {
            Ok((charged, _)) if too_late == 0 => Ok((Self(charged), self.0.micros(self.0.debt))),
            Ok(_) => Err(too_late),
            Err(no_room) => Err(no_room.max(too_late)),
        }
    }

    fn give(&self, quota: &Quota, amount: u64) -> Self {
        Self(self.0.give(quota, amount))
    }

    fn remaining(&self, quota: &Quota) -> u64 {
        if self.0.debt > quota.units_to_wait() { 0 } else { self.0.remaining(quota) }
    }

    fn reset_after(&self, quota: &Quota) -> u64 {
        self.0.reset_after(quota)
    }

    fn store(&self, quota: &Quota) -> Option<State> {
        self.0.store(quota)
    }
}
