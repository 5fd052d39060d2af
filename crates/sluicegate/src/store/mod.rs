//! Stores of buckets, and the contract that every store keeps.
//!
//! A store charges several buckets in one atomic step, all of them or none, and reports every bucket's
//! decision. It knows nothing of requests, rules or plans.

#[cfg(feature = "redis")]
pub(crate) mod any;
pub(crate) mod memory;
#[cfg(feature = "redis")]
pub(crate) mod redis;

use std::fmt::Debug;
use std::future::Future;

use sluicegate_core::{Decision, Quota};
use smallvec::SmallVec;

use self::memory::ReservedRoom;
use crate::rules::{Mode, OnError, RuleSet};

/// Decisions of one charge, in the order of its parts; up to four without allocating.
pub type Decisions = SmallVec<[Decision; 4]>;

/// A family of buckets. Buckets of two spaces are never the same, whatever their names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Space<'a> {
    /// The buckets of the rule with this id, below 2^62.
    Rule(u64),
    /// Buckets without a rule, named by their key alone.
    Take,
    /// The buckets of a named in-process limiter.
    Named(&'a str),
}

/// One bucket's part in a charge.
#[derive(Debug)]
pub struct Charge<'a, K> {
    /// Key of the bucket, from [`Store::key`].
    pub key: &'a K,
    /// Capacity and refill of the bucket.
    pub quota: &'a Quota,
    /// Tokens to take; zero is a peek.
    pub cost: u64,
    /// A denial denies the whole charge in `Enforce` mode only.
    pub mode: Mode,
    /// Policy for this bucket while the store is unavailable.
    pub on_error: OnError,
    /// Probes only test whether the bucket would grant the cost: a probe can deny the whole charge, and is never
    /// charged itself.
    pub is_probe: bool,
}

// Written by hand: a derive would ask for `K: Clone`, and a charge only borrows its key.
impl<K> Clone for Charge<'_, K> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K> Copy for Charge<'_, K> {}

impl<'a, K> Charge<'a, K> {
    /// Takes `cost` tokens in `Enforce` mode, with the default policy for store errors.
    #[inline]
    #[must_use]
    pub const fn new(key: &'a K, quota: &'a Quota, cost: u64) -> Self {
        Self { key, quota, cost, mode: Mode::Enforce, on_error: OnError::Local, is_probe: false }
    }

    /// This charge in another mode.
    #[inline]
    #[must_use]
    pub const fn with_mode(self, mode: Mode) -> Self {
        Self { mode, ..self }
    }

    /// This charge with another policy for store errors.
    #[inline]
    #[must_use]
    pub const fn with_on_error(self, on_error: OnError) -> Self {
        Self { on_error, ..self }
    }

    /// This charge as a probe, or not: see [`is_probe`](Self::is_probe).
    #[inline]
    #[must_use]
    pub const fn with_is_probe(self, is_probe: bool) -> Self {
        Self { is_probe, ..self }
    }

    /// This charge of another bucket, under a quota of that bucket; everything else stays.
    #[cfg(feature = "redis")]
    #[inline]
    pub(crate) const fn with_bucket<'b, B>(self, key: &'b B, quota: &'b Quota) -> Charge<'b, B> {
        let Self { cost, mode, on_error, is_probe, .. } = self;
        Charge { key, quota, cost, mode, on_error, is_probe }
    }
}

/// Result of a charge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Charged {
    /// The decisions, in the order of the charges.
    pub decisions: Decisions,
    /// The store was unavailable: some decisions were made by their buckets' [`OnError`].
    pub degraded: bool,
}

/// A store of buckets.
///
/// # The contract of `charge`
///
/// - All buckets in `Enforce` mode grant their cost, and all of them are charged, and so is every one
///   in `Shadow` mode that has enough; or none is charged at all. No other charge sees anything between.
/// - The decisions are in the order of the charges. In a denied charge every decision shows what is
///   really left, uncharged; one that would have been granted says so.
/// - The same bucket twice in one charge: its costs are added, under the quota of the first of the two.
/// - A probe is judged by itself: on what its bucket held before the charge, and by its own cost, which is not
///   added to others'. One that is granted shows what was left then.
/// - Only full buckets are evicted.
/// - An unavailable store answers by each bucket's [`OnError`], and sets [`degraded`](Charged::degraded).
///
/// This trait is sealed: it will still change before 1.0.
pub trait Store: sealed::Sealed + Debug + Send + Sync + 'static {
    /// Key of a bucket in this store.
    type Key: Clone + Debug + Send + Sync + 'static;
    /// Store error. [`Infallible`](std::convert::Infallible) for stores that cannot fail.
    type Error: std::error::Error + Send + Sync + 'static;

    /// The key of the bucket with this name: a space and any number of parts, of arbitrary bytes. Two
    /// different names never share a key.
    fn key(&self, space: Space<'_>, parts: &[&[u8]]) -> Self::Key;

    /// The key of a bucket without a rule, in a namespace or in none. The key comes first: where the name determines the
    /// place in the store, as in a Redis cluster, one namespace is spread.
    #[inline]
    fn take_key(&self, key: &[u8], namespace: Option<&str>) -> Self::Key {
        match namespace {
            None => self.key(Space::Take, &[key]),
            Some(namespace) => self.key(Space::Take, &[key, namespace.as_bytes()]),
        }
    }

    /// The same store without futures; `None` unless it is in this process.
    fn in_process(&self) -> Option<&dyn InProcess<Self::Key, Self::Error>> {
        None
    }

    /// Reserves room for the buckets of these rules, as long as the returned value lives. [`Limiter`](crate::Limiter)
    /// does it for the rules in force. With Redis, the room is that of its local buckets.
    fn reserve_room(&self, _rules: &RuleSet) -> ReservedRoom {
        ReservedRoom::default()
    }

    /// Charges all buckets or none, in one atomic step.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future before it resolves charges either everything or nothing.
    fn charge(
        &self,
        charges: &[Charge<'_, Self::Key>],
    ) -> impl Future<Output = Result<Charged, Self::Error>> + Send;

    /// Refunds `amount` tokens, capped at the capacity, and reports the bucket's figures after that.
    fn refund(
        &self,
        key: &Self::Key,
        quota: &Quota,
        amount: u64,
    ) -> impl Future<Output = Result<Decision, Self::Error>> + Send {
        async move { Ok(self.refund_many(&[Charge::new(key, quota, amount)]).await?[0]) }
    }

    /// Refunds the cost of every charge in one atomic step, each capped at the capacity of its bucket, and reports the
    /// figures after that, in their order. Modes and policies have no effect: a store in trouble is an error. In a
    /// cluster, every slot takes a step of its own.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future before it resolves refunds everything or nothing; in a cluster, of each slot.
    fn refund_many(
        &self,
        credits: &[Charge<'_, Self::Key>],
    ) -> impl Future<Output = Result<Decisions, Self::Error>> + Send;

    /// Removes a bucket, so that it is full again. False if it was not stored.
    fn reset(&self, key: &Self::Key) -> impl Future<Output = Result<bool, Self::Error>> + Send;
}

/// A store in this process by the keys and errors of a [`Store`], which may be one that is chosen at run time.
///
/// Having this value is the proof that nothing has to be waited for: no future is polled once in the hope
/// that it is ready.
pub trait InProcess<K, E>: sealed::Sealed + Sync {
    /// [`Store::charge`], without waiting.
    ///
    /// # Errors
    ///
    /// Those of [`Store::charge`].
    fn charge_in_process(&self, charges: &[Charge<'_, K>]) -> Result<Charged, E>;
}

/// A store in this process: the same contract without waiting, and without a runtime.
pub trait LocalStore: Store<Error = std::convert::Infallible> {
    /// [`Store::charge`], without waiting.
    fn charge_now(&self, charges: &[Charge<'_, Self::Key>]) -> Decisions;

    /// [`Store::charge`] of a single bucket, without waiting.
    fn charge_one_now(&self, charge: Charge<'_, Self::Key>) -> Decision;

    /// [`Store::refund`], without waiting.
    fn refund_now(&self, key: &Self::Key, quota: &Quota, amount: u64) -> Decision {
        self.refund_many_now(&[Charge::new(key, quota, amount)])[0]
    }

    /// [`Store::refund_many`], without waiting.
    fn refund_many_now(&self, credits: &[Charge<'_, Self::Key>]) -> Decisions;

    /// [`Store::reset`], without waiting.
    fn reset_now(&self, key: &Self::Key) -> bool;
}

/// Did every enforced part of the charge grant, and so the whole charge?
pub(crate) fn is_granted<K>(charges: &[Charge<'_, K>], decisions: &[Decision]) -> bool {
    charges
        .iter()
        .zip(decisions)
        .all(|(charge, decision)| charge.mode != Mode::Enforce || decision.is_granted())
}

pub(crate) mod sealed {
    /// Sealed: only stores of this crate can keep the contract.
    pub trait Sealed {}
}
