//! Interface of all algorithms, and the rules that hold for all of them: the state that a grant, a denial and a peek
//! store, and the conversion of a bucket whose quota changed.

use crate::fixed_window::FixedWindow;
use crate::interval::Interval;
use crate::queue::Queue;
use crate::sliding_counter::SlidingCounter;
use crate::token_bucket::TokenBucket;
use crate::{Decision, Form, Micros, Outcome, Quota, State};

/// A bucket as it stands now: its stored state brought up to date under a quota.
///
/// An algorithm is a type with these six methods; [`decide_level`] turns them into decisions.
pub(crate) trait Level: Copy {
    /// Stored form of this level.
    type Stored;

    /// Returns whether the stored state lies beyond an empty bucket (the clock stepped back, the capacity was lowered),
    /// so that this level must replace it.
    fn is_beyond(&self) -> bool;
    /// Takes `cost` tokens, `1 <= cost <= capacity`: the charged level and the delay, or the exact wait.
    fn take(&self, quota: &Quota, cost: u64) -> Result<(Self, u64), u64>;
    /// Gives `amount` tokens back, capped at full.
    fn give(&self, quota: &Quota, amount: u64) -> Self;
    /// Whole tokens that could be taken now.
    fn remaining(&self, quota: &Quota) -> u64;
    /// Microseconds until it is full.
    fn reset_after(&self, quota: &Quota) -> u64;
    /// State to store; `None` when full.
    fn store(&self, quota: &Quota) -> Option<Self::Stored>;
}

/// The decision of a level, and what to store if anything: see [`decide`].
#[inline]
pub(crate) fn decide_level<L: Level>(
    level: L,
    quota: &Quota,
    cost: u64,
) -> (Decision, Option<L::Stored>) {
    let answer = |outcome, shown: &L| Decision {
        outcome,
        limit: quota.capacity(),
        remaining: shown.remaining(quota),
        reset_after: shown.reset_after(quota),
    };
    if cost == 0 {
        return (answer(Outcome::Granted { delay: 0 }, &level), None);
    }
    let refused = |outcome| (answer(outcome, &level), stale(level, quota));
    // Before any product is formed: a cost above the capacity may be arbitrarily large.
    if cost > quota.capacity() {
        return refused(Outcome::Never);
    }
    match level.take(quota, cost) {
        Ok((charged, delay)) => {
            (answer(Outcome::Granted { delay }, &charged), charged.store(quota))
        }
        Err(retry_after) => refused(Outcome::Denied { retry_after }),
    }
}

/// The clamped state where the stored one lies beyond an empty bucket: see [`clamp`].
#[inline]
pub(crate) fn stale<L: Level>(level: L, quota: &Quota) -> Option<L::Stored> {
    if level.is_beyond() { level.store(quota) } else { None }
}

/// Reads `$state` as the level of its quota's form and evaluates `$body` with it.
macro_rules! with_level {
    ($quota:expr, $state:expr, $now:expr, |$level:ident| $body:expr) => {
        match $quota.form() {
            Form::Continuous { n, p } => {
                let $level = TokenBucket::read($quota, n, p, $state, $now);
                $body
            }
            Form::LeakyBucket { n, p } => {
                let $level = Queue::read($quota, n, p, $state, $now);
                $body
            }
            Form::Interval { n, p } => {
                let $level = Interval::read($quota, n, p, $state, $now);
                $body
            }
            Form::SlidingCounter { p } => {
                let $level = SlidingCounter::read($quota, p, $state, $now);
                $body
            }
            // The exact log does not fit two integers: its callers use `sliding_window`. A pair that is read
            // under it all the same is read as a fixed window's.
            Form::FixedWindow { p } | Form::SlidingWindow { p } => {
                let $level = FixedWindow::read($quota, p, $state, $now);
                $body
            }
        }
    };
}

/// Decides whether `cost` tokens may be taken from a bucket now, and what to store if so.
///
/// `state` is what is stored under this quota's [`Form`], or `None` for a full bucket. The second part
/// of the answer is what must be stored from now on, or `None` if nothing is to be written:
///
/// - a grant stores the charged state;
/// - a denial stores nothing, with one exception: where the stored state lies beyond an empty bucket,
///   because the clock stepped back or the capacity was lowered, it stores the state clamped to empty.
///   That gives no credit, and tokens flow again after one `retry_after`;
/// - a cost of zero is a peek and stores nothing.
///
/// Quotas that [keep a log](Quota::keeps_log) are decided by
/// [`sliding_window::decide`](crate::sliding_window::decide) instead.
///
/// # Panics
///
/// Never, for any state, time or cost.
#[inline]
#[must_use]
pub fn decide(
    quota: &Quota,
    state: Option<State>,
    now: Micros,
    cost: u64,
) -> (Decision, Option<State>) {
    with_level!(quota, state, now, |level| decide_level(level, quota, cost))
}

/// The state to store in place of one that lies beyond an empty bucket, or `None` if `state` is sound.
///
/// This is what a bucket that would have granted its part of a charge stores when another bucket
/// denied the whole: the clamp that [`decide`] makes on a denial, without the charge.
#[inline]
#[must_use]
pub fn clamp(quota: &Quota, state: Option<State>, now: Micros) -> Option<State> {
    with_level!(quota, state, now, |level| stale(level, quota))
}

/// Gives back `amount` tokens, capped at full. Returns what to store; `None` means the bucket is full
/// and its record, if there is one, is to be forgotten.
///
/// With refunds a bucket admits at most what it admits without them plus what was refunded.
#[must_use]
pub fn credit(quota: &Quota, state: Option<State>, now: Micros, amount: u64) -> Option<State> {
    with_level!(quota, state, now, |level| level.give(quota, amount).store(quota))
}

/// Tokens of a bucket that are spent at `now`: whole tokens, rounded up, so that a quota change never gives any
/// away.
///
/// `form` is the one that `state` was written under. A bucket whose quota changed continues as a full
/// one charged with this number of tokens, or with its new capacity if that is less:
///
/// ```
/// use sluicegate_core::{decide, spent, Micros, Quota};
/// # let now = Micros::new(0);
/// let (old, new) = (Quota::per_hour(2)?, Quota::per_second(3)?);
/// let (_, state) = decide(&old, None, now, 2);
/// let carried = spent(old.form(), state.unwrap(), now).min(new.capacity());
/// let (_, state) = decide(&new, None, now, carried);
/// assert_eq!(decide(&new, state, now, 0).0.remaining, 1); // no free refill
/// # Ok::<(), sluicegate_core::QuotaError>(())
/// ```
#[must_use]
pub fn spent(form: Form, state: State, now: Micros) -> u64 {
    let widest = Quota::widest(form);
    let (figures, _) = decide(&widest, Some(state), now, 0);
    widest.capacity() - figures.remaining
}

/// Returns whether a bucket with this state is full at `now`, so that deleting it changes no later decision.
#[must_use]
pub fn is_full(form: Form, state: State, now: Micros) -> bool {
    decide(&Quota::widest(form), Some(state), now, 0).0.reset_after == 0
}
