//! A limiter that answers without waiting, because its store is in this process.

use std::fmt;

use crate::limiter::{Limiter, charges};
use crate::request::Request;
use crate::reservation::Reservation;
use crate::store::{InProcess, Store};
use crate::verdict::Verdict;

/// View of a [`Limiter`] whose store is in this process, from [`Limiter::in_process`]: the same answers and
/// charges, without a future.
///
/// [`Limiter::check_now`] does the same where the type of the store says that it is in this process. This view
/// is for code that is generic over stores, or whose store is chosen at run time.
pub struct InProcessLimiter<'a, S: Store> {
    limiter: &'a Limiter<S>,
    store: &'a dyn InProcess<S::Key, S::Error>,
}

impl<S: Store> Limiter<S> {
    /// View of this limiter that answers without waiting; `None` if its store is not in this process.
    #[must_use]
    pub fn in_process(&self) -> Option<InProcessLimiter<'_, S>> {
        let store = self.store().in_process()?;
        Some(InProcessLimiter { limiter: self, store })
    }
}

impl<S: Store> InProcessLimiter<'_, S> {
    /// [`Limiter::check`], without waiting.
    ///
    /// # Errors
    ///
    /// Store errors only; a store in memory has none.
    #[inline]
    pub fn check(&self, request: &Request<'_>) -> Result<Verdict, S::Error> {
        let tiers = self.limiter.tiers(request);
        let charged = self.store.charge_in_process(&charges(&tiers, request))?;
        Ok(tiers.verdict(charged.decisions, charged.degraded))
    }

    /// [`Limiter::reserve`], without waiting.
    ///
    /// # Errors
    ///
    /// Store errors only; a store in memory has none.
    pub fn reserve(&self, request: &Request<'_>) -> Result<Reservation<S>, S::Error> {
        let tiers = self.limiter.tiers(request);
        let charged = self.store.charge_in_process(&charges(&tiers, request))?;
        Ok(self.limiter.reservation(tiers, charged, request))
    }
}

impl<S: Store> fmt::Debug for InProcessLimiter<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InProcessLimiter").field("limiter", self.limiter).finish_non_exhaustive()
    }
}
