//! The limiter: turns requests into charges of a store, and decisions into verdicts.

use std::sync::Arc;

use arc_swap::{ArcSwap, Guard};
use sluicegate_core::{Decision, Quota};
use smallvec::SmallVec;

use crate::request::Request;
use crate::reservation::{Paid, Reservation};
use crate::rules::{OnError, RuleSet};
use crate::store::memory::{MemoryStore, ReservedRoom};
use crate::store::{Charge, Charged, LocalStore, Store};
use crate::sync::Mutex;
use crate::tiers::Tiers;
use crate::verdict::Verdict;

/// Checks requests against a set of rules, and charges buckets that need no rule.
///
/// Clones share state. The rules can be [replaced](Self::replace_rules) at any time; every verdict is made by exactly
/// one set.
///
/// ```
/// use sluicegate::{Limiter, MemoryStore, Quota, Request, Rule, RuleSet};
///
/// let rules = RuleSet::new(vec![
///     Rule::new(1, "user:{user_id}", Quota::per_second(10)?.with_capacity(2)?)?,
///     Rule::new(2, "global", Quota::per_second(50_000)?)?,
/// ])?;
/// let limiter = Limiter::new(MemoryStore::new(), rules);
///
/// let request = Request::new().user_id("42");
/// assert!(limiter.check_now(&request).is_allowed());
/// assert!(limiter.check_now(&request).is_allowed());
/// let verdict = limiter.check_now(&request);
/// assert_eq!(verdict.violated().unwrap().rule.key_pattern().as_str(), "user:{user_id}");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Panics
///
/// None of its methods panics.
#[derive(Debug)]
pub struct Limiter<S = MemoryStore> {
    store: Arc<S>,
    rules: Arc<Rules>,
}

#[derive(Debug)]
struct Rules {
    current: ArcSwap<RuleSet>,
    /// Room in the store for the current set. Locked while a set replaces another, so that versions only grow.
    room: Mutex<ReservedRoom>,
}

impl<S> Clone for Limiter<S> {
    fn clone(&self) -> Self {
        Self { store: Arc::clone(&self.store), rules: Arc::clone(&self.rules) }
    }
}

impl<S: Store> Limiter<S> {
    /// A limiter over a store of its own.
    pub fn new(store: S, rules: RuleSet) -> Self {
        Self::on(Arc::new(store), rules)
    }

    /// A limiter over a shared store.
    pub fn on(store: Arc<S>, rules: RuleSet) -> Self {
        let room = Mutex::new(store.reserve_room(&rules));
        let current = ArcSwap::from_pointee(rules.with_version(1));
        Self { store, rules: Arc::new(Rules { current, room }) }
    }

    /// Store of its buckets.
    #[must_use]
    pub fn store(&self) -> &Arc<S> {
        &self.store
    }

    /// The rules in force now.
    #[must_use]
    pub fn rules(&self) -> Arc<RuleSet> {
        self.rules.current.load_full()
    }

    /// Puts another set of rules with its overrides in force, atomically, and returns its version. Spent tokens stay
    /// spent: a rule or a subject whose quota changed continues with the tokens that are left, without a free refill.
    pub fn replace_rules(&self, rules: RuleSet) -> u64 {
        let mut room = self.rules.room.lock();
        let version = self.rules.current.load().version() + 1;
        let new_room = self.store.reserve_room(&rules);
        self.rules.current.store(Arc::new(rules.with_version(version)));
        *room = new_room;
        version
    }

    /// Checks a request: charges every bucket that the rules give it, or none.
    ///
    /// # Errors
    ///
    /// Store trouble only; a store in memory has none.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future before it is done has charged everything or nothing.
    pub async fn check(&self, request: &Request<'_>) -> Result<Verdict, S::Error> {
        let tiers = self.tiers(request);
        let charged = self.store.charge(&charges(&tiers, request)).await?;
        Ok(tiers.verdict(charged.decisions, charged.degraded))
    }

    /// [`check`](Self::check)s a request and returns a handle that can give the charge back.
    ///
    /// # Errors
    ///
    /// Store trouble only.
    ///
    /// # Cancel safety
    ///
    /// As [`check`](Self::check).
    pub async fn reserve(&self, request: &Request<'_>) -> Result<Reservation<S>, S::Error> {
        let tiers = self.tiers(request);
        let charged = self.store.charge(&charges(&tiers, request)).await?;
        Ok(self.reservation(tiers, charged, request))
    }

    /// Takes `cost` tokens from the bucket of a key, without a rule. While the store is in trouble, a bucket in this
    /// process answers; [`take_or`](Self::take_or) tells when it did.
    ///
    /// # Errors
    ///
    /// Store trouble only.
    ///
    /// # Cancel safety
    ///
    /// As [`check`](Self::check).
    pub async fn take(&self, key: &str, quota: &Quota, cost: u64) -> Result<Decision, S::Error> {
        Ok(self.take_or(key, quota, cost, OnError::default()).await?.decisions[0])
    }

    /// [`take`](Self::take)s with a policy for store trouble. The result has one decision and tells whether the policy
    /// answered.
    ///
    /// # Errors
    ///
    /// Store trouble only.
    ///
    /// # Cancel safety
    ///
    /// As [`check`](Self::check).
    pub async fn take_or(
        &self,
        key: &str,
        quota: &Quota,
        cost: u64,
        on_error: OnError,
    ) -> Result<Charged, S::Error> {
        let key = self.take_key(key);
        let charge = Charge::new(&key, quota, cost).with_on_error(on_error);
        self.store.charge(&[charge]).await
    }

    /// Decision for a cost of zero: shows the bucket of a key and spends nothing.
    ///
    /// # Errors
    ///
    /// Store trouble only.
    pub async fn peek(&self, key: &str, quota: &Quota) -> Result<Decision, S::Error> {
        self.take(key, quota, 0).await
    }

    /// Gives tokens back to the bucket of a key, capped at full. The decision shows the tokens left afterwards.
    ///
    /// # Errors
    ///
    /// Store trouble only.
    pub async fn refund(
        &self,
        key: &str,
        quota: &Quota,
        amount: u64,
    ) -> Result<Decision, S::Error> {
        self.store.refund(&self.take_key(key), quota, amount).await
    }

    /// Deletes the bucket of a key: it is full again. Returns whether it was stored.
    ///
    /// # Errors
    ///
    /// Store trouble only.
    pub async fn reset(&self, key: &str) -> Result<bool, S::Error> {
        self.store.reset(&self.take_key(key)).await
    }

    /// Gives `amount` tokens back to every bucket of a request in one atomic step, each capped at full. The verdict shows
    /// the tokens left in each. A blocked request has no bucket to give to.
    ///
    /// # Errors
    ///
    /// Store trouble only. In a cluster, buckets in slots without trouble have received their tokens.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future credits all buckets or none; in a cluster, of each slot. Never twice.
    pub async fn refund_all(
        &self,
        request: &Request<'_>,
        amount: u64,
    ) -> Result<Verdict, S::Error> {
        self.give_back(self.tiers(request), amount).await
    }

    /// Gives tokens back to the buckets of all of these tiers.
    pub(crate) async fn give_back(
        &self,
        tiers: Tiers<S::Key>,
        amount: u64,
    ) -> Result<Verdict, S::Error> {
        let decisions = self.store.refund_many(&credits(&tiers, amount)).await?;
        Ok(tiers.verdict(decisions, false))
    }

    pub(crate) fn take_key(&self, key: &str) -> S::Key {
        self.store.take_key(key.as_bytes(), None)
    }

    #[inline]
    pub(crate) fn tiers(&self, request: &Request<'_>) -> Tiers<S::Key> {
        Tiers::new(&*self.store, self.rules_now(), request)
    }

    /// The rules in force now, borrowed.
    #[inline]
    pub(crate) fn rules_now(&self) -> Guard<Arc<RuleSet>> {
        self.rules.current.load()
    }

    pub(crate) fn reservation(
        &self,
        tiers: Tiers<S::Key>,
        charged: Charged,
        request: &Request<'_>,
    ) -> Reservation<S> {
        let granted = tiers.charged.iter().zip(&charged.decisions).filter(|(_, d)| d.is_granted());
        // The charges of a store in trouble are unknown: nothing of them can be given back.
        let paid = granted
            .filter(|_| !charged.degraded)
            .map(|(tier, _)| {
                let rule = tiers.rules.rule(tier.rule);
                Paid {
                    rule_id: rule.rule_id(),
                    subject: rule.subject(request).unwrap_or_default().as_bytes().into(),
                    key: tier.key.clone(),
                    quota: *tiers.rules.quota(tier.rule, tier.overridden),
                }
            })
            .collect();
        Reservation::new(
            self.clone(),
            tiers.verdict(charged.decisions, charged.degraded),
            paid,
            request.get_cost(),
        )
    }
}

impl<S: LocalStore> Limiter<S> {
    /// [`check`](Self::check), at once and without a runtime.
    #[inline]
    #[must_use]
    pub fn check_now(&self, request: &Request<'_>) -> Verdict {
        let tiers = self.tiers(request);
        let decisions = self.store.charge_now(&charges(&tiers, request));
        tiers.verdict(decisions, false)
    }

    /// [`reserve`](Self::reserve), at once and without a runtime.
    pub fn reserve_now(&self, request: &Request<'_>) -> Reservation<S> {
        let tiers = self.tiers(request);
        let decisions = self.store.charge_now(&charges(&tiers, request));
        let charged = Charged { decisions, degraded: false };
        self.reservation(tiers, charged, request)
    }

    /// [`take`](Self::take), at once and without a runtime.
    #[inline]
    #[must_use]
    pub fn take_now(&self, key: &str, quota: &Quota, cost: u64) -> Decision {
        let key = self.take_key(key);
        self.store.charge_one_now(Charge::new(&key, quota, cost))
    }

    /// [`peek`](Self::peek), at once and without a runtime.
    #[must_use]
    pub fn peek_now(&self, key: &str, quota: &Quota) -> Decision {
        self.take_now(key, quota, 0)
    }

    /// [`refund`](Self::refund), at once and without a runtime.
    pub fn refund_now(&self, key: &str, quota: &Quota, amount: u64) -> Decision {
        self.store.refund_now(&self.take_key(key), quota, amount)
    }

    /// [`refund_all`](Self::refund_all), at once and without a runtime.
    pub fn refund_all_now(&self, request: &Request<'_>, amount: u64) -> Verdict {
        let tiers = self.tiers(request);
        let decisions = self.store.refund_many_now(&credits(&tiers, amount));
        tiers.verdict(decisions, false)
    }

    /// [`reset`](Self::reset), at once and without a runtime.
    pub fn reset_now(&self, key: &str) -> bool {
        self.store.reset_now(&self.take_key(key))
    }
}

type Charges<'a, K> = SmallVec<[Charge<'a, K>; 4]>;

/// Charges of a request, one for each of its tiers.
#[inline]
pub(crate) fn charges<'a, K>(tiers: &'a Tiers<K>, request: &Request<'_>) -> Charges<'a, K> {
    tiers.charges(request.get_cost(), false).collect()
}

/// Refunds of this amount to the buckets of all tiers.
fn credits<K>(tiers: &Tiers<K>, amount: u64) -> Charges<'_, K> {
    tiers.charges(amount, false).collect()
}
