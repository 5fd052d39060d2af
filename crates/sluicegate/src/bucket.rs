//! One bucket of a rule, for administration: peek, refund, grant, reset.

use std::sync::Arc;

use sluicegate_core::{Decision, Quota};

use crate::limiter::Limiter;
use crate::request::Request;
use crate::rules::{OnError, Override};
use crate::store::{Charge, Charged, LocalStore, Store};
use crate::tiers;

/// One bucket of a rule, to peek into, to give tokens to, or to reset.
///
/// It is counted by the quota that was in force when it was [obtained](Limiter::bucket); obtain it again after a
/// change of rules or overrides. A subject that is unlimited or blocked has a bucket too, which no check uses
/// meanwhile; it is counted by the rule's quota.
///
/// ```
/// # use sluicegate::{Limiter, MemoryStore, Quota, Request, Rule, RuleSet};
/// # let rules = RuleSet::new(vec![Rule::new(1, "user:{user_id}", Quota::per_minute(2)?)?])?;
/// # let limiter = Limiter::new(MemoryStore::new(), rules);
/// let request = Request::new().user_id("42");
/// while limiter.check_now(&request).is_allowed() {}
///
/// let bucket = limiter.bucket(1, &request).unwrap();
/// assert_eq!(bucket.key(), "user:42");
/// assert_eq!(bucket.peek_now().remaining, 0);
/// assert_eq!(bucket.grant_now(1).remaining, 1);
/// assert!(limiter.check_now(&request).is_allowed());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Bucket<S: Store> {
    store: Arc<S>,
    stored: S::Key,
    key: String,
    quota: Quota,
    overridden: Option<Override>,
    on_error: OnError,
}

impl<S: Store> Limiter<S> {
    /// The bucket that a rule has for a request, also if the rule does not apply to it: it may be inactive, for another
    /// plan, or have conditions that fail. `None` if no rule has this id, or if the request lacks an attribute of its
    /// key pattern.
    #[must_use]
    pub fn bucket(&self, rule_id: u64, request: &Request<'_>) -> Option<Bucket<S>> {
        let rules = self.rules();
        let position = rules.position(rule_id)?;
        let rule = rules.rule(position);
        let overridden = rules.overridden(position, request);
        Some(Bucket {
            key: rule.bucket_key(request)?,
            stored: tiers::key(&**self.store(), &rules, position, request),
            store: Arc::clone(self.store()),
            quota: *rules.quota(position, overridden),
            overridden: rules.numbered(overridden).copied(),
            on_error: rule.on_error(),
        })
    }
}

impl<S: Store> Bucket<S> {
    /// Readable name, such as `user:42`.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.key
    }

    /// The quota it is counted by: that of the override if it has one, else the rule's.
    #[must_use]
    pub fn quota(&self) -> &Quota {
        &self.quota
    }

    /// The override of its subject, if any.
    #[must_use]
    pub fn overridden(&self) -> Option<Override> {
        self.overridden
    }

    /// Decision for a cost of zero. A store in trouble answers by the rule's [`OnError`]; [`look`](Self::look) tells
    /// when it did.
    ///
    /// # Errors
    ///
    /// Store trouble only.
    pub async fn peek(&self) -> Result<Decision, S::Error> {
        Ok(self.look().await?.decisions[0])
    }

    /// [`peek`](Self::peek)s. The result has one decision and tells whether the store was in trouble.
    ///
    /// # Errors
    ///
    /// Store trouble only.
    pub async fn look(&self) -> Result<Charged, S::Error> {
        self.store.charge(&[self.nothing()]).await
    }

    /// Gives tokens back, capped at full. The decision shows the tokens left afterwards.
    ///
    /// # Errors
    ///
    /// Store trouble only.
    pub async fn refund(&self, amount: u64) -> Result<Decision, S::Error> {
        self.store.refund(&self.stored, &self.quota, amount).await
    }

    /// Gives tokens that were not charged before, capped at full. The same as a [`refund`](Self::refund): a credit never
    /// makes a bucket more than full. More than that needs another quota, by an [`Override`]. The decision shows the
    /// tokens left afterwards.
    ///
    /// # Errors
    ///
    /// Store trouble only.
    pub async fn grant(&self, amount: u64) -> Result<Decision, S::Error> {
        self.refund(amount).await
    }

    /// Deletes the stored bucket: it is full again. Returns whether it was stored.
    ///
    /// # Errors
    ///
    /// Store trouble only.
    pub async fn reset(&self) -> Result<bool, S::Error> {
        self.store.reset(&self.stored).await
    }

    /// A charge of zero tokens.
    fn nothing(&self) -> Charge<'_, S::Key> {
        Charge::new(&self.stored, &self.quota, 0).with_on_error(self.on_error)
    }
}

impl<S: LocalStore> Bucket<S> {
    /// [`peek`](Self::peek), at once and without a runtime.
    #[must_use]
    pub fn peek_now(&self) -> Decision {
        self.store.charge_one_now(self.nothing())
    }

    /// [`refund`](Self::refund), at once and without a runtime.
    pub fn refund_now(&self, amount: u64) -> Decision {
        self.store.refund_now(&self.stored, &self.quota, amount)
    }

    /// [`grant`](Self::grant), at once and without a runtime.
    pub fn grant_now(&self, amount: u64) -> Decision {
        self.refund_now(amount)
    }

    /// [`reset`](Self::reset), at once and without a runtime.
    pub fn reset_now(&self) -> bool {
        self.store.reset_now(&self.stored)
    }
}
