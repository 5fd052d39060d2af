//! Waiting for tokens.

use std::future::Future;
use std::hash::Hash;
use std::time::Duration;

use thiserror::Error;
use tokio::time::{Instant, sleep_until};
use tollgate_core::{Decision, Outcome, Quota};

use crate::clock::Clock;
use crate::keyed::KeyedLimiter;
use crate::limiter::Limiter;
use crate::store::Store;

/// Why waiting was no use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum WaitError<E> {
    /// The tokens would come too late: not before this long.
    #[error("not before {} ms, which is too late", retry_after.as_micros().div_ceil(1000))]
    TooLate {
        /// How long it would take at least.
        retry_after: Duration,
    },
    /// The cost is more than the bucket can hold.
    #[error("the cost is more than the bucket can hold")]
    Never,
    /// Store trouble.
    #[error(transparent)]
    Store(E),
}

impl<S: Store> Limiter<S> {
    /// Takes `cost` tokens from the bucket of a key as soon as there are enough, but not later than
    /// `within` from now.
    ///
    /// # Errors
    ///
    /// At once, if it cannot be done in time (as far as is known: others may take tokens meanwhile, and
    /// then it fails later), or never; and store trouble.
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
        until_granted(within, || self.take(key, quota, cost)).await
    }
}

impl<K: Hash + Sync + ?Sized, C: Clock> KeyedLimiter<K, C> {
    /// Takes `cost` tokens from the bucket of a key as soon as there are enough, but not later than
    /// `within` from now.
    ///
    /// # Errors
    ///
    /// At once, if it cannot be done in time (as far as is known: others may take tokens meanwhile, and
    /// then it fails later), or never.
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
        until_granted(within, || std::future::ready(Ok(self.take(key, cost)))).await
    }
}

/// Tries, sleeps exactly as long as it was told, and tries again. Nothing is spent before it returns.
async fn until_granted<E, F>(
    within: Duration,
    mut take: impl FnMut() -> F,
) -> Result<Decision, WaitError<E>>
where
    F: Future<Output = Result<Decision, E>>,
{
    let started = now();
    loop {
        let decision = take().await.map_err(WaitError::Store)?;
        let retry_after = match decision.outcome {
            Outcome::Granted { .. } => return Ok(decision),
            Outcome::Denied { retry_after } => Duration::from_micros(retry_after),
            Outcome::Never => return Err(WaitError::Never),
        };
        let waited = now().saturating_duration_since(started);
        if waited.saturating_add(retry_after) > within {
            return Err(WaitError::TooLate { retry_after });
        }
        sleep_until(now() + retry_after).await;
    }
}

/// The runtime's time, which its timers go by and its tests can pause.
fn now() -> Instant {
    Instant::now()
}
