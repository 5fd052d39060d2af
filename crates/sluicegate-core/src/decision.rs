//! Decision of one bucket about one charge.

use core::time::Duration;

/// Result of a charge: granted, denied with a wait, or never. Times are whole microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// The cost was taken. With a `leaky_bucket` quota the work may start after `delay`; otherwise it is zero.
    Granted {
        /// Wait before the work may start, in microseconds.
        delay: u64,
    },
    /// Not enough tokens yet: the same charge is granted after exactly this wait if no other charge comes between, and
    /// not one microsecond earlier.
    Denied {
        /// The wait in microseconds, at least 1.
        retry_after: u64,
    },
    /// The cost is more than the bucket can hold: no wait suffices.
    Never,
}

/// The answer of one bucket to one charge.
///
/// On a grant the figures are those after the charge, on a denial those without it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Decision {
    /// Granted, denied, or never.
    pub outcome: Outcome,
    /// The most that can be taken at once: the capacity, or a window's tokens.
    pub limit: u64,
    /// Whole tokens left.
    pub remaining: u64,
    /// Microseconds until the bucket is full again: the time to live of its record in a store.
    pub reset_after: u64,
}

impl Decision {
    /// Returns whether the charge was granted, perhaps after a [`delay`](Self::delay).
    #[must_use]
    pub const fn is_granted(&self) -> bool {
        matches!(self.outcome, Outcome::Granted { .. })
    }

    /// Returns whether no wait suffices for this charge.
    #[must_use]
    pub const fn is_never(&self) -> bool {
        matches!(self.outcome, Outcome::Never)
    }

    /// Wait before the same charge is granted: zero when granted, `None` for never.
    #[must_use]
    pub const fn retry_after(&self) -> Option<Duration> {
        match self.outcome {
            Outcome::Granted { .. } => Some(Duration::ZERO),
            Outcome::Denied { retry_after } => Some(Duration::from_micros(retry_after)),
            Outcome::Never => None,
        }
    }

    /// [`retry_after`](Self::retry_after) in whole milliseconds, rounded up.
    #[must_use]
    pub const fn retry_after_ms(&self) -> Option<u64> {
        match self.outcome {
            Outcome::Granted { .. } => Some(0),
            Outcome::Denied { retry_after } => Some(retry_after.div_ceil(1000)),
            Outcome::Never => None,
        }
    }

    /// Wait of granted work in the queue of a `leaky_bucket`; zero for every other algorithm and for every charge that
    /// was not granted.
    #[must_use]
    pub const fn delay(&self) -> Duration {
        match self.outcome {
            Outcome::Granted { delay } => Duration::from_micros(delay),
            Outcome::Denied { .. } | Outcome::Never => Duration::ZERO,
        }
    }

    /// [`delay`](Self::delay) in whole milliseconds, rounded up.
    #[must_use]
    pub const fn delay_ms(&self) -> u64 {
        match self.outcome {
            Outcome::Granted { delay } => delay.div_ceil(1000),
            Outcome::Denied { .. } | Outcome::Never => 0,
        }
    }

    /// Time until the bucket is full again.
    #[must_use]
    pub const fn reset_after(&self) -> Duration {
        Duration::from_micros(self.reset_after)
    }

    /// [`reset_after`](Self::reset_after) in whole milliseconds, rounded up.
    #[must_use]
    pub const fn reset_after_ms(&self) -> u64 {
        self.reset_after.div_ceil(1000)
    }
}

impl Outcome {
    /// Wait of this outcome in microseconds, with never as the longest.
    #[must_use]
    pub const fn wait(&self) -> u64 {
        match self {
            Self::Granted { .. } => 0,
            Self::Denied { retry_after } => *retry_after,
            Self::Never => u64::MAX,
        }
    }
}
