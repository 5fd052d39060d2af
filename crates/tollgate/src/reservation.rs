//! A charge that can be given back, once.

use smallvec::SmallVec;
use tollgate_core::Quota;

use crate::limiter::Limiter;
use crate::rules::Override;
use crate::store::{LocalStore, Store};
use crate::verdict::Verdict;

/// A charge that can still be given back: in part when the work turned out cheaper, or whole when it was
/// not done at all. If its [verdict](Self::verdict) is a denial, nothing was charged and there is nothing
/// to give back.
///
/// Nothing is given back either of a [degraded](Verdict::is_degraded) verdict: the store was in trouble,
/// and what it charged is not known.
///
/// Giving back takes the handle, so nothing is ever given back twice: that does not compile. Dropping it
/// keeps the charge.
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
///
/// ```compile_fail,E0382
/// # use tollgate::{Limiter, MemoryStore, Request, RuleSet};
/// # let limiter = Limiter::new(MemoryStore::new(), RuleSet::default());
/// let reservation = limiter.reserve_now(&Request::new());
/// reservation.refund_now();
/// reservation.refund_now(); // error: use of moved value
/// ```
#[must_use = "dropping a reservation keeps its charge"]
#[derive(Debug)]
pub struct Reservation<S: Store> {
    limiter: Limiter<S>,
    verdict: Verdict,
    paid: SmallVec<[Paid<S::Key>; 4]>,
    cost: u64,
}

/// A bucket that was charged.
#[derive(Debug)]
pub(crate) struct Paid<K> {
    pub(crate) rule_id: u64,
    /// Text, of which a short one is not allocated.
    pub(crate) subject: SmallVec<[u8; 32]>,
    pub(crate) key: K,
    pub(crate) quota: Quota,
}

impl<S: Store> Reservation<S> {
    pub(crate) fn new(
        limiter: Limiter<S>,
        verdict: Verdict,
        paid: SmallVec<[Paid<S::Key>; 4]>,
        cost: u64,
    ) -> Self {
        // In a denied charge the tiers that would have granted it were not charged either.
        let cost = if verdict.is_allowed() { cost } else { 0 };
        Self { limiter, verdict, paid, cost }
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
    /// Store trouble, the first there was. Buckets that it did not hit have been given back to; in the others
    /// the charge stays.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future part way gives back to some buckets and not to others; never twice.
    pub async fn commit(self, cost: u64) -> Result<(), S::Error> {
        let rest = self.cost.saturating_sub(cost);
        let mut result = Ok(());
        if rest > 0 {
            for bucket in &self.paid {
                let quota = self.quota(bucket);
                let refunded = self.limiter.store().refund(&bucket.key, &quota, rest).await;
                result = result.and(refunded.map(drop));
            }
        }
        result
    }

    /// Gives everything back.
    ///
    /// # Errors
    ///
    /// As [`commit`](Self::commit).
    pub async fn refund(self) -> Result<(), S::Error> {
        self.commit(0).await
    }

    /// The quota that the bucket is counted by now. Giving back under the one it was charged by would
    /// forget what was spent since beyond that one's capacity.
    fn quota(&self, bucket: &Paid<S::Key>) -> Quota {
        let rules = self.limiter.rules();
        let Some(rule) = rules.get(bucket.rule_id) else { return bucket.quota };
        let subject = std::str::from_utf8(&bucket.subject).unwrap_or_default();
        match rules.overrides().get(bucket.rule_id, subject) {
            None => *rule.quota(),
            Some(Override::Quota(quota)) => *quota,
            // Nobody counts it now, so the last who did was this charge, as far as is known.
            Some(Override::Unlimited | Override::Blocked) => bucket.quota,
        }
    }
}

impl<S: LocalStore> Reservation<S> {
    /// [`commit`](Self::commit), at once and without a runtime.
    pub fn commit_now(self, cost: u64) {
        let rest = self.cost.saturating_sub(cost);
        if rest > 0 {
            for bucket in &self.paid {
                self.limiter.store().refund_now(&bucket.key, &self.quota(bucket), rest);
            }
        }
    }

    /// [`refund`](Self::refund), at once and without a runtime.
    pub fn refund_now(self) {
        self.commit_now(0);
    }
}
