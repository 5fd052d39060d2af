//! Waiting for tokens.

use std::future::Future;
use std::hash::Hash;
use std::time::Duration;

use sluicegate_core::{Algorithm, Decision, Outcome, Quota};
use thiserror::Error;
use tokio::time::{Instant, sleep_until};

use crate::clock::Clock;
use crate::keyed::KeyedLimiter;
use crate::limiter::Limiter;
use crate::request::Request;
use crate::store::Store;
use crate::verdict::Verdict;

/// Reason why waiting did not help.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum WaitError<E> {
    /// The tokens refill too late.
    #[error("the wait of {} ms exceeds the deadline", retry_after.as_micros().div_ceil(1000))]
    TooLate {
        /// Least wait that would be needed.
        retry_after: Duration,
    },
    /// The cost is more than the bucket can hold.
    #[error("the cost is more than the bucket can hold")]
    Never,
    /// The store is in trouble.
    #[error(transparent)]
    Store(E),
}

impl<S: Store> Limiter<S> {
    /// Takes `cost` tokens from the bucket of a key as soon as it has enough, but not later than `within` from now. With
    /// a `leaky_bucket` the work may also start within that time: its delay is part of it.
    ///
    /// # Errors
    ///
    /// Immediately, if the wait is known to be too long, or never suffices; later, if other charges take the tokens
    /// meanwhile; and store trouble.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future while it waits spends nothing.
    pub async fn until_granted(
        &self,
        key: &str,
        quota: &Quota,
        cost: u64,
        within: Duration,
    ) -> Result<Decision, WaitError<S::Error>> {
        until_granted(quota, within, |quota| async move { self.take(key, &quota, cost).await })
            .await
    }

    /// [`check`](Self::check)s a request as soon as all of its tiers grant it, but not later than `within`
    /// from now. With `leaky_bucket` tiers the work may start within that time too: the verdict's
    /// [delay](Verdict::delay), which the caller has yet to wait, is part of it.
    ///
    /// # Errors
    ///
    /// As [`until_granted`](Self::until_granted). A request that would be delayed for too long is refunded.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future while it waits spends nothing.
    pub async fn until_allowed(
        &self,
        request: &Request<'_>,
        within: Duration,
    ) -> Result<Verdict, WaitError<S::Error>> {
        let started = now();
        loop {
            let left = within.saturating_sub(now().saturating_duration_since(started));
            let reservation = self.reserve(request).await.map_err(WaitError::Store)?;
            let verdict = reservation.verdict();
            if verdict.is_allowed() {
                let retry_after = verdict.delay();
                if retry_after <= left {
                    return Ok(reservation.keep());
                }
                reservation.refund().await.map_err(WaitError::Store)?;
                return Err(WaitError::TooLate { retry_after });
            }
            let retry_after = verdict.retry_after().ok_or(WaitError::Never)?;
            if retry_after > left {
                return Err(WaitError::TooLate { retry_after });
            }
            // The rules may have changed by then.
            drop(reservation);
            sleep_until(now() + retry_after).await;
        }
    }
}

impl<K: Hash + Sync + ?Sized, C: Clock> KeyedLimiter<K, C> {
    /// Takes `cost` tokens from the bucket of a key as soon as there are enough, but not later than
    /// `within` from now. With a `leaky_bucket` the work may start within that time too: its delay is
    /// part of it.
    ///
    /// # Errors
    ///
    /// Immediately, if the wait is known to be too long, or never suffices; later, if other charges take the tokens
    /// meanwhile.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future while it waits spends nothing.
    pub async fn until_granted(
        &self,
        key: &K,
        cost: u64,
        within: Duration,
    ) -> Result<Decision, WaitError<std::convert::Infallible>> {
        let take = |quota: Quota| std::future::ready(Ok(self.take_as(key, &quota, cost)));
        until_granted(self.quota(), within, take).await
    }
}

/// Tries, sleeps for the wait of the denial, and tries again. Nothing is spent before it returns.
async fn until_granted<E, F>(
    quota: &Quota,
    within: Duration,
    mut take: impl FnMut(Quota) -> F,
) -> Result<Decision, WaitError<E>>
where
    F: Future<Output = Result<Decision, E>>,
{
    let is_queue = quota.algorithm() == Algorithm::LeakyBucket;
    let started = now();
    loop {
        let left = within.saturating_sub(now().saturating_duration_since(started));
        let decision = take(starting_within(quota, left)).await.map_err(WaitError::Store)?;
        let retry_after = match decision.outcome {
            Outcome::Granted { .. } => return Ok(decision),
            Outcome::Denied { retry_after } => Duration::from_micros(retry_after),
            Outcome::Never => return Err(WaitError::Never),
        };
        // Work leaves a queue after all work before it, independently of the time of its own admission.
        let earliest = if is_queue { decision.reset_after() } else { retry_after };
        if earliest.max(retry_after) > left {
            return Err(WaitError::TooLate { retry_after: earliest.max(retry_after) });
        }
        sleep_until(now() + retry_after).await;
    }
}

/// The quota; for a queue, with a longest wait, so that it denies work that could not start in time.
fn starting_within(quota: &Quota, left: Duration) -> Quota {
    if quota.algorithm() != Algorithm::LeakyBucket {
        return *quota;
    }
    let left = Duration::from_micros(u64::try_from(left.as_micros()).unwrap_or(u64::MAX));
    let max_wait = quota.max_wait().map_or(left, |max_wait| max_wait.min(left));
    // A wait that is too long to be counted exactly bounds nothing.
    quota.with_max_wait(max_wait).unwrap_or(*quota)
}

/// Time of the runtime, which its timers follow and its tests can pause.
fn now() -> Instant {
    Instant::now()
}
