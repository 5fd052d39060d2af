//! Interval refill: N tokens at once every P microseconds, on a grid that starts with the first charge
//! of a full bucket and advances by whole periods only: no drift, no starvation.

use crate::bucket::Level;
use crate::{Micros, Quota, State};

/// Missing tokens, and the grid point they were counted at.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Interval {
    n: u64,
    p: u64,
    now: u64,
    missing: u64,
    anchor: u64,
    beyond: bool,
}

impl Interval {
    /// Brings the stored state up to date.
    pub(crate) fn read(quota: &Quota, n: u64, p: u64, state: Option<State>, now: Micros) -> Self {
        let now = now.get();
        let State { a: missing, b: anchor } = state.unwrap_or(State { a: 0, b: now });
        // An anchor in the future means that the clock stepped back: the grid starts again here.
        let (anchor, stepped_back) = (anchor.min(now), anchor > now);
        let periods = (now - anchor) / p;
        // Compared before multiplying: `periods * n` may not fit.
        let missing = if periods >= missing.div_ceil(n) { 0 } else { missing - periods * n };
        Self {
            n,
            p,
            now,
            missing: missing.min(quota.capacity()),
            anchor: if missing == 0 { now } else { anchor + periods * p },
            beyond: missing > 0 && (stepped_back || missing > quota.capacity()),
        }
    }

    /// Microseconds until `tokens` more have come in.
    fn wait_for(&self, tokens: u64) -> u64 {
        // The anchor is at most one period ago, so the next grid point is never in the past.
        self.anchor + tokens.div_ceil(self.n) * self.p - self.now
    }
}

impl Level for Interval {
    type Stored = State;

    fn is_beyond(&self) -> bool {
        self.beyond
    }

    fn take(&self, quota: &Quota, cost: u64) -> Result<(Self, u64), u64> {
        let missing = self.missing + cost;
        match missing.checked_sub(quota.capacity()) {
            Some(short @ 1..) => Err(self.wait_for(short)),
            _ => Ok((Self { missing, beyond: false, ..*self }, 0)),
        }
    }

    fn give(&self, _: &Quota, amount: u64) -> Self {
        Self { missing: self.missing.saturating_sub(amount), ..*self }
    }

    fn remaining(&self, quota: &Quota) -> u64 {
        quota.capacity() - self.missing
    }

    fn reset_after(&self, _: &Quota) -> u64 {
        if self.missing == 0 { 0 } else { self.wait_for(self.missing) }
    }

    fn store(&self, _: &Quota) -> Option<State> {
        (self.missing > 0).then_some(State { a: self.missing, b: self.anchor })
    }
}
