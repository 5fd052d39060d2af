//! Continuous refill: N tokens per P microseconds, a token a unit of P, never rounded.

use crate::bucket::Level;
use crate::{Micros, Quota, State};

/// The debt of a bucket now: units of 1/N microsecond missing from full, at most an empty bucket's.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TokenBucket {
    pub(crate) n: u64,
    pub(crate) p: u64,
    pub(crate) now: u64,
    pub(crate) debt: u64,
    beyond: bool,
}

impl TokenBucket {
    /// Brings the stored state up to date.
    #[inline]
    pub(crate) fn read(quota: &Quota, n: u64, p: u64, state: Option<State>, now: Micros) -> Self {
        let now = now.get();
        let debt = match state {
            None => 0,
            Some(state) if n == 1 => state.a.saturating_sub(now),
            Some(state) => debt_of_pair(n, state, now),
        };
        let empty = quota.units_to_full();
        Self { n, p, now, debt: debt.min(empty), beyond: debt > empty }
    }
}

impl TokenBucket {
    /// Microseconds until this number of units has refilled, rounded up.
    #[inline]
    pub(crate) fn micros(&self, units: u64) -> u64 {
        // For most quotas N is 1, and a division is expensive.
        if self.n == 1 { units } else { units.div_ceil(self.n) }
    }
}

/// The debt of a pair (debt, at) now: less the refill since, or more by the time that the clock stepped back. Equal
/// to `full_at * n - now * n`, without forming those products.
#[inline]
fn debt_of_pair(n: u64, State { a: debt, b: at }: State, now: u64) -> u64 {
    if at > now {
        return debt.saturating_add((at - now).saturating_mul(n));
    }
    let elapsed = now - at;
    // Clamped to the time to full before multiplying, so that the product is at most `debt`.
    if elapsed >= debt.div_ceil(n) { 0 } else { debt - elapsed * n }
}

impl Level for TokenBucket {
    type Stored = State;

    #[inline]
    fn is_beyond(&self) -> bool {
        self.beyond
    }

    #[inline]
    fn take(&self, quota: &Quota, cost: u64) -> Result<(Self, u64), u64> {
        let debt = self.debt + cost * self.p;
        match debt.checked_sub(quota.units_to_full()) {
            // Up: one microsecond less and the last unit would still be missing.
            Some(short @ 1..) => Err(self.micros(short)),
            _ => Ok((Self { debt, beyond: false, ..*self }, 0)),
        }
    }

    fn give(&self, quota: &Quota, amount: u64) -> Self {
        let units = amount.min(quota.capacity()) * self.p;
        Self { debt: self.debt.saturating_sub(units), ..*self }
    }

    #[inline]
    fn remaining(&self, quota: &Quota) -> u64 {
        (quota.units_to_full() - self.debt) / self.p
    }

    #[inline]
    fn reset_after(&self, _: &Quota) -> u64 {
        self.micros(self.debt)
    }

    #[inline]
    fn store(&self, _: &Quota) -> Option<State> {
        match self.debt {
            0 => None,
            debt if self.n == 1 => Some(State { a: self.now + debt, b: 0 }),
            debt => Some(State { a: debt, b: self.now }),
        }
    }
}
