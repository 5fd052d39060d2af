//! The arithmetic of a rate-limit decision: pure integers, no clock, no I/O, no allocation.
//!
//! A decision takes four things and gives back two:
//!
//! ```text
//!   quota   10 tokens per second, at most 50      ─┐
//!   state   what is stored of the bucket, or none  ├─ decide ─▶  Decision   yes / not yet / never
//!   now     microseconds since the Unix epoch      │             Option<State>   what to store
//!   cost    tokens this request takes             ─┘
//! ```
//!
//! [`decide`] is total: it returns an answer, and never panics, for any quota that could be built, any
//! stored state (also a corrupt one), any time and any cost. It uses nothing but integers below 2^53,
//! so that a Lua script inside Redis, which only has doubles, computes the same answers bit for bit.
//!
//! ```
//! use sluicegate_core::{decide, Micros, Quota};
//!
//! let quota = Quota::per_second(10)?.with_capacity(2)?;
//! let now = Micros::new(1_700_000_000_000_000);
//!
//! let (first, state) = decide(&quota, None, now, 1);
//! let (second, state) = decide(&quota, state, now, 1);
//! let (third, _) = decide(&quota, state, now, 1);
//!
//! assert!(first.is_granted() && second.is_granted());
//! assert_eq!(third.retry_after_ms(), Some(100)); // exactly when the next token is there
//! # Ok::<(), sluicegate_core::QuotaError>(())
//! ```
//!
//! # How a bucket is counted
//!
//! A continuous quota is a ratio of integers, N tokens per P microseconds, reduced. Debt is counted in
//! units of 1/N microsecond; a token is P units. The one fact worth storing is when the bucket will be
//! full again, because everything else follows from it and from the time:
//!
//! ```text
//!   burst 3, 1/s      t: 0  0  0  0      1  2  2
//!                       ok ok ok no     ok ok no
//!   retry_after:                 1s              1s
//! ```
//!
//! A full bucket needs no record, so a store may forget a bucket as soon as it is full, and only then.
//! A denial stores nothing, so repeated requests do not extend the wait.
//!
//! One algorithm a module, all behind the same shape: `token_bucket`, `interval`, `fixed_window`,
//! `sliding_counter`, [`sliding_window`] (which keeps a log) and `queue` (the leaky bucket). `quota`
//! says what can be built, `rate` reads `10/s`, and `bucket` holds what all of them have in common.

#![no_std]

mod bucket;
mod decision;
mod fixed_window;
mod interval;
mod named_values;
mod queue;
mod quota;
mod rate;
mod sliding_counter;
pub mod sliding_window;
mod token_bucket;

pub use bucket::{clamp, credit, decide, is_full, spent};
pub use decision::{Decision, Outcome};
pub use named_values::UnknownName;
pub use quota::{Algorithm, Form, Quota, QuotaError, QuotaField, Refill};
pub use rate::{Decimal, DecimalError, Rate, RateError, parse_duration};

use core::time::Duration;

/// No integer that a decision computes exceeds this: up to it, doubles are exact.
pub const EXACT_MAX: u64 = 1 << 53;

/// The longest time to full, and the latest time, that a quota or a clock may have: 2^52 microseconds,
/// 142 years (as a time: the year 2112).
pub const MICROS_MAX: u64 = 1 << 52;

/// A point in time: whole microseconds since the Unix epoch.
///
/// Times at or beyond [`MICROS_MAX`] are taken as the last one before it, so that arithmetic on them
/// stays exact.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Micros(u64);

impl Micros {
    /// The given number of microseconds after the Unix epoch.
    #[must_use]
    pub const fn new(micros: u64) -> Self {
        if micros < MICROS_MAX { Self(micros) } else { Self(MICROS_MAX - 1) }
    }

    /// Microseconds since the Unix epoch.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// This time plus `wait`; saturates at the end of the domain.
    #[must_use]
    pub fn after(self, wait: Duration) -> Self {
        Self::new(self.0.saturating_add(micros_up(wait)))
    }

    /// Duration since `earlier`; zero if `earlier` is later.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(self.0.saturating_sub(earlier.0))
    }
}

/// A duration in whole microseconds, rounded up, so that waiting it out always suffices.
fn micros_up(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos().div_ceil(1000)).unwrap_or(u64::MAX)
}

/// The stored state of a bucket that is not full: two integers below 2^53.
///
/// Their meaning depends on the [`Form`] of the quota they were written under:
///
/// | form | `a` | `b` |
/// |---|---|---|
/// | continuous, N = 1 | the instant the bucket is full again | 0 |
/// | continuous, N > 1 | debt in units of 1/N microsecond | the instant it was counted |
/// | interval | missing tokens | the grid's anchor |
/// | fixed window | tokens spent in the window | the window's start |
/// | sliding counter | previous window's count · 2^26 + this window's | this window's start |
/// | leaky bucket | as continuous | as continuous |
///
/// The exact sliding window keeps a [`sliding_window::Log`] instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct State {
    /// Column `a` of the table above.
    pub a: u64,
    /// Column `b` of the table above.
    pub b: u64,
}
