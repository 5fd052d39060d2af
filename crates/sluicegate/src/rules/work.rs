//! Bound of the work that matching one request may take, whatever the rules.
//!
//! Every comparison with a glob spends steps: one for itself and for each literal that it searches for, and one for
//! every [`BYTES_PER_STEP`] bytes that it reads. All comparisons of a request spend from one budget: those of the index,
//! of conditions on any attribute, and of their exceptions. Comparisons with plain text cost nothing.

use std::cell::Cell;

use crate::request::Request;

/// Steps that every request may take: ten thousand rules, each with a dozen exceptions that differ from a value at their
/// start or end.
const STEPS_MIN: usize = 1 << 17;

/// Steps in addition, for every byte of the request's values.
const STEPS_PER_BYTE: usize = 64;

/// Bytes of a value that one step reads.
const BYTES_PER_STEP: usize = 64;

/// Steps left to one request.
#[derive(Debug)]
pub(super) struct Work {
    /// Zero once they did not suffice.
    left: Cell<usize>,
}

/// Matching a request would take more work than it may: it is denied.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TooCostly;

impl Work {
    /// Enough for almost every request, whose bytes need not be counted.
    #[inline]
    pub(super) const fn usual() -> Self {
        Self { left: Cell::new(STEPS_MIN) }
    }

    /// All that this request may take.
    pub(super) fn of(request: &Request<'_>) -> Self {
        Self { left: Cell::new(STEPS_MIN + request.value_bytes() * STEPS_PER_BYTE) }
    }

    /// A budget that no comparison exhausts.
    #[inline]
    pub(super) const fn unlimited() -> Self {
        Self { left: Cell::new(usize::MAX) }
    }

    /// Spends this many steps. `None` if they are not left: then nothing else can be spent either.
    #[inline]
    pub(super) fn spend(&self, steps: usize) -> Option<()> {
        let left = self.left.get().saturating_sub(steps);
        self.left.set(left);
        (left > 0).then_some(())
    }

    /// Spends the steps of reading this many bytes.
    #[inline]
    pub(super) fn read(&self, bytes: usize) -> Option<()> {
        self.spend(1 + bytes / BYTES_PER_STEP)
    }

    /// Returns whether steps were missing. No comparison since then has a meaning.
    #[inline]
    pub(super) fn is_exhausted(&self) -> bool {
        self.left.get() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_budget_grows_with_the_request() {
        let request = Request::new().endpoint("/1234567").attribute("tenant", "t1");
        let work = Work::of(&request);
        work.spend(STEPS_MIN + 10 * STEPS_PER_BYTE - 1).unwrap();
        assert!(!work.is_exhausted());
        assert!(work.spend(1).is_none() && work.is_exhausted());
        assert!(work.spend(0).is_none());
        assert!(Work::unlimited().read(1 << 40).is_some());
    }
}
