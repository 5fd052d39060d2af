//! A charge that can be given back, once.

use std::sync::Arc;

use smallvec::SmallVec;
use tollgate_core::Quota;

use crate::store::{LocalStore, Store};
use crate::verdict::Verdict;

/// A charge that can still be given back: in part when the work turned out cheaper, or whole when it was
/// not done at all. If its [verdict](Self::verdict) is a denial, nothing was charged and there is nothing
/// to give back.
///
/// Giving back takes the handle, so nothing is ever given back twice. Dropping it keeps the charge.
///
/// ```
/// # use tollgate::{Limiter, MemoryStore, Quota, Request, Rule, RuleSet};
/// # let rules = RuleSet::new(vec![Rule::new(1, "user:{user_id}", Quota::per_minute(100)?)?])?;
/// # let limiter = Limiter::new(MemoryStore::new(), rules);
/// let request = Request::new().user_id("42").cost(80); // the most it can cost
/// let reservation = limiter.reserve_now(&request);
/// assert!(reservation.verdict().is_allowed());
/// reservation.commit_now(5); // what it did cost: 75 go back
/// assert!(limiter.check_now(&request).is_allowed());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "dropping a reservation keeps its charge"]
#[derive(Debug)]
pub struct Reservation<S: Store> {
    store: Arc<S>,
    verdict: Verdict,
    charged: Charged<S::Key>,
    cost: u64,
}

/// The buckets that were charged, and their quotas.
type Charged<K> = SmallVec<[(K, Quota); 4]>;

impl<S: Store> Reservation<S> {
    pub(crate) fn new(
        store: Arc<S>,
        verdict: Verdict,
        charged: Charged<S::Key>,
        cost: u64,
    ) -> Self {
        // In a denied charge the tiers that would have granted it were not charged either.
        let cost = if verdict.is_allowed() { cost } else { 0 };
        Self { store, verdict, charged, cost }
    }

    /// The verdict of the charge.
    #[must_use]
    pub fn verdict(&self) -> &Verdict {
        &self.verdict
    }

    /// Keeps `cost` of what was charged and gives the rest back, to every bucket; all is kept if `cost`
    /// is not less.
    ///
    /// # Errors
    ///
    /// Store trouble; what was not given back by then stays charged.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future part way gives back to some buckets and not to others; never twice.
    pub async fn commit(self, cost: u64) -> Result<(), S::Error> {
        let rest = self.cost.saturating_sub(cost);
        if rest > 0 {
            for (key, quota) in &self.charged {
                self.store.refund(key, quota, rest).await?;
            }
        }
        Ok(())
    }

    /// Gives everything back.
    ///
    /// # Errors
    ///
    /// As [`commit`](Self::commit).
    pub async fn refund(self) -> Result<(), S::Error> {
        self.commit(0).await
    }
}

impl<S: LocalStore> Reservation<S> {
    /// [`commit`](Self::commit), at once and without a runtime.
    pub fn commit_now(self, cost: u64) {
        let rest = self.cost.saturating_sub(cost);
        if rest > 0 {
            for (key, quota) in &self.charged {
                self.store.refund_now(key, quota, rest);
            }
        }
    }

    /// [`refund`](Self::refund), at once and without a runtime.
    pub fn refund_now(self) {
        self.commit_now(0);
    }
}
