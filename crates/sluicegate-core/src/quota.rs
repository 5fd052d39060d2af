//! Quotas: capacity, rate and algorithm of a bucket. A quota that cannot be counted exactly cannot be built.

use core::fmt;
use core::str::FromStr;
use core::time::Duration;

use crate::rate::{Rate, RateError};
use crate::{MICROS_MAX, named_values, sliding_counter, sliding_window};

/// The most units that make a full bucket (units of 1/N microsecond), and the most tokens.
const UNITS_MAX: u64 = MICROS_MAX;

/// The largest numerator of a reduced rate: tokens per microsecond times its denominator.
const N_MAX: u64 = 1 << 32;

/// Algorithm that counts a limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Algorithm {
    /// Tokens refill at a rate, up to a capacity. In any interval of length t at most `capacity + rate * t` are
    /// admitted.
    #[default]
    TokenBucket,
    /// At most `tokens` in each window aligned to the Unix epoch; so at most twice that in some interval of one
    /// period, across the edge of two windows.
    FixedWindow,
    /// At most `tokens` in any interval of one period, exactly; memory grows with `tokens`.
    SlidingWindow,
    /// The sliding window estimated from two counters, in constant memory.
    SlidingCounter,
    /// A queue that work leaves at a steady rate: a grant carries the delay until the work may start.
    LeakyBucket,
}

/// Refill of a token bucket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Refill {
    /// Continuously, in proportion to the time that has passed.
    #[default]
    Continuous,
    /// All of a period's tokens at once, when it ends.
    Interval,
}

/// Unit of stored state: two quotas of one form read each other's buckets as they are, also if their capacities
/// differ. State of another form is converted by the tokens [`spent`](crate::spent).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "n tokens per p microseconds, reduced where refill is continuous")]
pub enum Form {
    /// A token bucket with continuous refill.
    Continuous { n: u64, p: u64 },
    /// A token bucket with interval refill.
    Interval { n: u64, p: u64 },
    /// A fixed window of `p` microseconds.
    FixedWindow { p: u64 },
    /// A sliding window of `p` microseconds, as a log.
    SlidingWindow { p: u64 },
    /// A sliding window of `p` microseconds, as two counters.
    SlidingCounter { p: u64 },
    /// A leaky bucket.
    LeakyBucket { n: u64, p: u64 },
}

/// Capacity, rate and algorithm of a bucket.
///
/// ```
/// use std::time::Duration;
/// use sluicegate_core::{Algorithm, Quota, Refill};
///
/// let api = Quota::per_second(10)?.with_capacity(50)?;              // bursts of 50, then 10 a second
/// let login: Quota = "5/minute".parse()?;                           // bursts of 5
/// let slow: Quota = "0.016/s burst 3".parse()?;                     // one every 62.5 s, exactly
/// let batch = Quota::new(100, Duration::from_secs(60))?.with_refill(Refill::Interval)?;
/// let strict = Quota::per_hour(1000)?.with_algorithm(Algorithm::SlidingWindow)?;
/// # Ok::<(), sluicegate_core::QuotaError>(())
/// ```
///
/// A quota that cannot be counted in integers below 2^53 is refused with the reason, never rounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Quota {
    form: Form,
    capacity: u64,
    /// Capacity times the units of a token, where debt is counted in units.
    units_to_full: u64,
    /// The longest wait of a leaky bucket, in units.
    units_to_wait: u64,
    rate: Rate,
}

/// Reason for refusing a quota.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum QuotaError {
    /// The rate is not valid.
    Rate(RateError),
    /// The capacity is zero: such a bucket would grant nothing.
    ZeroCapacity,
    /// The capacity is above 2^52.
    CapacityTooLarge,
    /// Empty to full takes more than 2^52 units of 1/N microsecond (142 years for most rates).
    TooSlowToFill,
    /// The rate, reduced, has a numerator above 2^32: it is too fine to be counted exactly.
    RateTooFine,
    /// Windows and interval refill need a whole number of tokens per period.
    FractionalTokens,
    /// Interval refill with an algorithm other than the token bucket.
    IntervalNeedsTokenBucket,
    /// A capacity other than its tokens for a window, which has no capacity of its own.
    WindowHasNoCapacity,
    /// More tokens in a window than this algorithm can count.
    WindowTooLarge {
        /// Largest number of tokens of this algorithm.
        max: u64,
    },
    /// A longest wait for an algorithm other than the leaky bucket, which alone delays grants.
    MaxWaitNeedsLeakyBucket,
    /// The wait is not a whole number of microseconds, or longer than can be counted exactly.
    MaxWaitNotExact,
}

/// Part of a quota that a [`QuotaError`] concerns. Every interface has names of its own for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuotaField {
    /// Tokens per period.
    Tokens,
    /// The period of the rate.
    Period,
    /// Tokens and period together.
    Rate,
    /// The capacity.
    Capacity,
    /// Capacity and rate together: each is valid by itself.
    TimeToFull,
    /// The refill.
    Refill,
    /// The longest wait of a leaky bucket.
    MaxWait,
}

// ===== impl Quota =====

impl Quota {
    /// A token bucket of `tokens` per `period`, refilled continuously, that holds `tokens`.
    ///
    /// # Errors
    ///
    /// Zero tokens, a zero or fractional-microsecond period, and what cannot be counted exactly.
    pub fn new(tokens: u64, period: Duration) -> Result<Self, QuotaError> {
        Self::from_rate(Rate::new(tokens, period)?)
    }

    /// `tokens` per second, holding as many: see [`Quota::new`].
    ///
    /// # Errors
    ///
    /// As [`Quota::new`].
    pub fn per_second(tokens: u64) -> Result<Self, QuotaError> {
        Self::new(tokens, Duration::from_secs(1))
    }

    /// `tokens` per minute, holding as many: see [`Quota::new`].
    ///
    /// # Errors
    ///
    /// As [`Quota::new`].
    pub fn per_minute(tokens: u64) -> Result<Self, QuotaError> {
        Self::new(tokens, Duration::from_secs(60))
    }

    /// `tokens` per hour, holding as many: see [`Quota::new`].
    ///
    /// # Errors
    ///
    /// As [`Quota::new`].
    pub fn per_hour(tokens: u64) -> Result<Self, QuotaError> {
        Self::new(tokens, Duration::from_secs(3600))
    }

    /// `tokens` per day of 24 hours, holding as many: see [`Quota::new`].
    ///
    /// # Errors
    ///
    /// As [`Quota::new`].
    pub fn per_day(tokens: u64) -> Result<Self, QuotaError> {
        Self::new(tokens, Duration::from_secs(86_400))
    }

    /// A token bucket refilled continuously at `rate`, that holds the whole tokens of one period, at
    /// least one.
    ///
    /// # Errors
    ///
    /// Rates that cannot be counted exactly.
    pub fn from_rate(rate: Rate) -> Result<Self, QuotaError> {
        Self::build(rate, Algorithm::TokenBucket, Refill::Continuous, None, None)
    }

    /// A quota from all its parts at once, as a rule has them. Without a capacity it holds the whole
    /// tokens of one period, at least one.
    ///
    /// Every valid quota can be built this way. A chain of `with_...` builds intermediate quotas, each of which must be
    /// exact too: 1 000 003 a day is not a valid token bucket, but a valid window.
    ///
    /// # Errors
    ///
    /// As the `with_...` of each part.
    pub fn build(
        rate: Rate,
        algorithm: Algorithm,
        refill: Refill,
        capacity: Option<u64>,
        max_wait: Option<Duration>,
    ) -> Result<Self, QuotaError> {
        if max_wait.is_some() && algorithm != Algorithm::LeakyBucket {
            return Err(QuotaError::MaxWaitNeedsLeakyBucket);
        }
        let given = capacity.unwrap_or(rate.whole_tokens().max(1));
        let quota = Self::exact(rate, algorithm, refill, given, max_wait)?;
        if given != quota.capacity {
            return Err(QuotaError::WindowHasNoCapacity);
        }
        Ok(quota)
    }

    /// This quota with another capacity: the most that can be taken at once.
    ///
    /// # Errors
    ///
    /// A capacity of zero, one that cannot be counted exactly, and any for a window.
    pub fn with_capacity(self, capacity: u64) -> Result<Self, QuotaError> {
        let capacity = Some(capacity);
        Self::build(self.rate, self.algorithm(), self.refill(), capacity, self.max_wait())
    }

    /// This quota with another refill.
    ///
    /// # Errors
    ///
    /// Interval refill for anything but a token bucket, or of fractional tokens.
    pub fn with_refill(self, refill: Refill) -> Result<Self, QuotaError> {
        let capacity = Some(self.capacity);
        Self::build(self.rate, self.algorithm(), refill, capacity, self.max_wait())
    }

    /// This quota with another algorithm. A window's capacity is its tokens; a leaky bucket's capacity is the length of
    /// its queue.
    ///
    /// # Errors
    ///
    /// Fractional tokens or too many of them for a window, and interval refill for anything but a token
    /// bucket.
    pub fn with_algorithm(self, algorithm: Algorithm) -> Result<Self, QuotaError> {
        Self::exact(self.rate, algorithm, self.refill(), self.capacity, None)
    }

    /// This leaky bucket with a bound on the delay of granted work.
    ///
    /// # Errors
    ///
    /// Any other algorithm, and waits that cannot be counted exactly.
    pub fn with_max_wait(self, max_wait: Duration) -> Result<Self, QuotaError> {
        let capacity = Some(self.capacity);
        Self::build(self.rate, self.algorithm(), self.refill(), capacity, Some(max_wait))
    }

    /// Checks that everything can be counted exactly, and makes the quota: no other function does. The capacity of a
    /// window is its tokens, whatever was given.
    fn exact(
        rate: Rate,
        algorithm: Algorithm,
        refill: Refill,
        capacity: u64,
        max_wait: Option<Duration>,
    ) -> Result<Self, QuotaError> {
        if refill == Refill::Interval && algorithm != Algorithm::TokenBucket {
            return Err(QuotaError::IntervalNeedsTokenBucket);
        }
        let (n, p) = rate.reduced();
        let whole = || rate.written().ok_or(QuotaError::FractionalTokens);
        let (form, capacity) = match (algorithm, refill) {
            (Algorithm::TokenBucket, Refill::Continuous) => (Form::Continuous { n, p }, capacity),
            (Algorithm::TokenBucket, Refill::Interval) => {
                let (n, p) = whole()?;
                (Form::Interval { n, p }, capacity)
            }
            (Algorithm::LeakyBucket, _) => (Form::LeakyBucket { n, p }, capacity),
            (Algorithm::FixedWindow, _) => {
                let (tokens, p) = whole()?;
                (Form::FixedWindow { p }, tokens)
            }
            (Algorithm::SlidingWindow, _) => {
                let (tokens, p) = whole()?;
                (Form::SlidingWindow { p }, tokens)
            }
            (Algorithm::SlidingCounter, _) => {
                let (tokens, p) = whole()?;
                (Form::SlidingCounter { p }, tokens)
            }
        };
        let units_to_full = units_to_full(form, capacity)?;
        let units_to_wait = match max_wait {
            None => UNITS_MAX,
            Some(wait) => Some(wait.as_nanos())
                .filter(|nanos| nanos.is_multiple_of(1000))
                .and_then(|nanos| u64::try_from(nanos / 1000).ok())
                .and_then(|micros| micros.checked_mul(n))
                .filter(|units| *units <= UNITS_MAX)
                .ok_or(QuotaError::MaxWaitNotExact)?,
        };
        Ok(Self { form, capacity, units_to_full, units_to_wait, rate })
    }

    /// The quota of a form with the largest possible capacity: tokens spent under any quota of that form are the same
    /// under this one.
    pub(crate) const fn widest(form: Form) -> Self {
        let (capacity, p) = match form {
            Form::Continuous { p, .. } | Form::LeakyBucket { p, .. } => (UNITS_MAX / p, p),
            Form::Interval { n, p } => (n.saturating_mul(UNITS_MAX / p), p),
            Form::FixedWindow { p } => (UNITS_MAX, p),
            Form::SlidingCounter { p } => (UNITS_MAX / p, p),
            Form::SlidingWindow { p } => (sliding_window::TOKENS_MAX, p),
        };
        let capacity = match form {
            Form::SlidingCounter { .. } if capacity > sliding_counter::TOKENS_MAX => {
                sliding_counter::TOKENS_MAX
            }
            _ if capacity > UNITS_MAX => UNITS_MAX,
            _ => capacity,
        };
        let units_to_full = match form {
            Form::Continuous { p, .. } | Form::LeakyBucket { p, .. } => capacity * p,
            _ => 0,
        };
        let rate = Rate::whole(1, p);
        Self { form, capacity, units_to_full, units_to_wait: UNITS_MAX, rate }
    }

    /// Unit of its buckets' stored state.
    #[inline]
    #[must_use]
    pub const fn form(&self) -> Form {
        self.form
    }

    /// The most that can be taken at once: the burst; for a window, its tokens.
    #[inline]
    #[must_use]
    pub const fn capacity(&self) -> u64 {
        self.capacity
    }

    /// The rate as it was written.
    #[must_use]
    pub const fn rate(&self) -> Rate {
        self.rate
    }

    /// Its algorithm.
    #[must_use]
    pub const fn algorithm(&self) -> Algorithm {
        match self.form {
            Form::Continuous { .. } | Form::Interval { .. } => Algorithm::TokenBucket,
            Form::FixedWindow { .. } => Algorithm::FixedWindow,
            Form::SlidingWindow { .. } => Algorithm::SlidingWindow,
            Form::SlidingCounter { .. } => Algorithm::SlidingCounter,
            Form::LeakyBucket { .. } => Algorithm::LeakyBucket,
        }
    }

    /// Its refill; `Continuous` for every algorithm other than the token bucket.
    #[must_use]
    pub const fn refill(&self) -> Refill {
        match self.form {
            Form::Interval { .. } => Refill::Interval,
            _ => Refill::Continuous,
        }
    }

    /// The longest delay of a leaky bucket, if it has a bound besides its capacity.
    #[must_use]
    pub const fn max_wait(&self) -> Option<Duration> {
        match self.form {
            Form::LeakyBucket { n, .. } if self.units_to_wait < UNITS_MAX => {
                Some(Duration::from_micros(self.units_to_wait / n))
            }
            _ => None,
        }
    }

    /// Returns whether its buckets are stored as a [`sliding_window::Log`] rather than a [`State`](crate::State).
    #[inline]
    #[must_use]
    pub const fn keeps_log(&self) -> bool {
        matches!(self.form, Form::SlidingWindow { .. })
    }

    /// Time from empty to full; for a window, its period. Rounded up to the microsecond.
    #[must_use]
    pub const fn time_to_full(&self) -> Duration {
        Duration::from_micros(match self.form {
            Form::Continuous { n, .. } | Form::LeakyBucket { n, .. } => {
                self.units_to_full.div_ceil(n)
            }
            Form::Interval { n, p } => self.capacity.div_ceil(n) * p,
            Form::FixedWindow { p } | Form::SlidingWindow { p } | Form::SlidingCounter { p } => p,
        })
    }

    /// Microseconds of its period, as its form has it.
    #[inline]
    pub(crate) const fn p(&self) -> u64 {
        match self.form {
            Form::Continuous { p, .. }
            | Form::Interval { p, .. }
            | Form::FixedWindow { p }
            | Form::SlidingWindow { p }
            | Form::SlidingCounter { p }
            | Form::LeakyBucket { p, .. } => p,
        }
    }

    #[inline]
    pub(crate) const fn units_to_full(&self) -> u64 {
        self.units_to_full
    }

    #[inline]
    pub(crate) const fn units_to_wait(&self) -> u64 {
        self.units_to_wait
    }
}

/// Checks that everything a decision computes under this form and capacity is exact, and returns the units of a full
/// bucket.
fn units_to_full(form: Form, capacity: u64) -> Result<u64, QuotaError> {
    match capacity {
        0 => return Err(QuotaError::ZeroCapacity),
        1..=UNITS_MAX => {}
        _ => return Err(QuotaError::CapacityTooLarge),
    }
    let within = |product: Option<u64>| {
        product.filter(|units| *units <= UNITS_MAX).ok_or(QuotaError::TooSlowToFill)
    };
    let window = |max: u64| {
        if capacity > max { Err(QuotaError::WindowTooLarge { max }) } else { Ok(0) }
    };
    match form {
        Form::Continuous { n, p } | Form::LeakyBucket { n, p } => {
            if n > N_MAX {
                return Err(QuotaError::RateTooFine);
            }
            within(capacity.checked_mul(p))
        }
        Form::Interval { n, p } => {
            if n > N_MAX {
                return Err(QuotaError::RateTooFine);
            }
            within(capacity.div_ceil(n).checked_mul(p))
        }
        Form::FixedWindow { p } => within(Some(p)),
        Form::SlidingWindow { p } => within(Some(p)).and(window(sliding_window::TOKENS_MAX)),
        // Both counts are multiplied by the period.
        Form::SlidingCounter { p } => {
            within(Some(p)).and(window((UNITS_MAX / p).min(sliding_counter::TOKENS_MAX)))
        }
    }
}

/// Reads a rate and, if it is given, a burst: `10/s`, `100/minute`, `5 per 2s`, `0.016/s burst 3`.
impl FromStr for Quota {
    type Err = QuotaError;

    fn from_str(text: &str) -> Result<Self, QuotaError> {
        let Some((rate, burst)) = text.split_once(" burst ") else {
            return Self::from_rate(text.parse()?);
        };
        let capacity = burst.trim().parse().map_err(|_| RateError::BadBurst)?;
        let rate = rate.parse::<Rate>()?;
        Self::build(rate, Algorithm::TokenBucket, Refill::Continuous, Some(capacity), None)
    }
}

impl fmt::Display for Quota {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} burst {}", self.rate, self.capacity)
    }
}

// ===== impl Algorithm, Refill =====

named_values! {
    Algorithm:
    TokenBucket = "token_bucket",
    FixedWindow = "fixed_window",
    SlidingWindow = "sliding_window",
    SlidingCounter = "sliding_counter",
    LeakyBucket = "leaky_bucket",
}

named_values! {
    Refill:
    Continuous = "continuous",
    Interval = "interval",
}

impl Algorithm {
    /// Returns whether quotas of this algorithm have a capacity apart from their tokens. The capacity of a window is its
    /// tokens.
    #[must_use]
    pub const fn has_capacity(self) -> bool {
        matches!(self, Self::TokenBucket | Self::LeakyBucket)
    }
}

// ===== impl QuotaError =====

impl QuotaError {
    /// Part of the quota to change.
    #[must_use]
    pub const fn field(&self) -> QuotaField {
        match self {
            Self::Rate(RateError::ZeroTokens) | Self::WindowTooLarge { .. } => QuotaField::Tokens,
            Self::Rate(RateError::BadBurst)
            | Self::ZeroCapacity
            | Self::CapacityTooLarge
            | Self::WindowHasNoCapacity => QuotaField::Capacity,
            Self::Rate(
                RateError::ZeroPeriod
                | RateError::PeriodTooFine
                | RateError::PeriodTooLong
                | RateError::UnknownUnit,
            ) => QuotaField::Period,
            Self::Rate(RateError::Number(_) | RateError::Syntax)
            | Self::RateTooFine
            | Self::FractionalTokens => QuotaField::Rate,
            Self::TooSlowToFill => QuotaField::TimeToFull,
            Self::IntervalNeedsTokenBucket => QuotaField::Refill,
            Self::MaxWaitNeedsLeakyBucket | Self::MaxWaitNotExact => QuotaField::MaxWait,
        }
    }
}

impl From<RateError> for QuotaError {
    fn from(error: RateError) -> Self {
        Self::Rate(error)
    }
}

impl fmt::Display for QuotaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rate(error) => error.fmt(f),
            Self::ZeroCapacity => f.write_str("a capacity of zero grants nothing"),
            Self::CapacityTooLarge => f.write_str("the capacity is above 2^52"),
            Self::TooSlowToFill => f.write_str(
                "an empty bucket would take too long to fill to be counted exactly \
                 (capacity times microseconds per token above 2^52)",
            ),
            Self::RateTooFine => f.write_str(
                "the rate is too fine to be counted exactly (its reduced numerator is above 2^32)",
            ),
            Self::FractionalTokens => {
                f.write_str("windows and interval refill need a whole number of tokens per period")
            }
            Self::IntervalNeedsTokenBucket => {
                f.write_str("interval refill needs the token_bucket algorithm")
            }
            Self::WindowHasNoCapacity => f.write_str(
                "a window admits its tokens per period and has no other capacity: leave it out",
            ),
            Self::WindowTooLarge { max } => {
                write!(f, "more tokens in a window than this algorithm can keep exactly ({max})")
            }
            Self::MaxWaitNeedsLeakyBucket => {
                f.write_str("max_wait needs the leaky_bucket algorithm")
            }
            Self::MaxWaitNotExact => {
                f.write_str("max_wait cannot be counted exactly in microseconds")
            }
        }
    }
}

impl core::error::Error for QuotaError {}
