//! A limiter for keys of any type, in this process, without rules.

use std::fmt;
use std::hash::Hash;
use std::marker::PhantomData;
use std::sync::Arc;

use sluicegate_core::{Decision, Quota};

use crate::clock::{Clock, SystemClock};
use crate::store::memory::{MemoryKey, MemoryStore};
use crate::store::{Charge, LocalStore, Space, Store};

/// A limiter for keys of any type that can be hashed, in this process, without rules.
///
/// It has a name: two of them over one store share their buckets if, and only if, they have the same one.
/// Clones share everything.
///
/// ```
/// use std::net::IpAddr;
/// use sluicegate::{KeyedLimiter, Quota};
///
/// let logins = KeyedLimiter::<IpAddr>::new("login", Quota::per_minute(5)?);
/// let ip = IpAddr::from([203, 0, 113, 9]);
/// for _ in 0..5 {
///     assert!(logins.take(&ip, 1).is_granted());
/// }
/// let denied = logins.take(&ip, 1);
/// assert!(denied.retry_after().unwrap().as_secs() < 13); // one every 12 s
/// # Ok::<(), sluicegate::QuotaError>(())
/// ```
///
/// Keys are told apart by what their `Hash` writes: two keys that hash alike share a bucket.
///
/// # Panics
///
/// None of its methods does, unless the key's `Hash` does.
pub struct KeyedLimiter<K: ?Sized, C = SystemClock> {
    store: Arc<MemoryStore<C>>,
    name: MemoryKey,
    quota: Quota,
    keys: PhantomData<fn(&K)>,
}

impl<K: Hash + ?Sized> KeyedLimiter<K> {
    /// A limiter over a store of its own.
    #[must_use]
    pub fn new(name: &str, quota: Quota) -> Self {
        Self::on(Arc::new(MemoryStore::new()), name, quota)
    }
}

impl<K: Hash + ?Sized, C: Clock> KeyedLimiter<K, C> {
    /// A limiter over a store that others use too.
    pub fn on(store: Arc<MemoryStore<C>>, name: &str, quota: Quota) -> Self {
        let name = store.key(Space::Named(name), &[]);
        Self { store, name, quota, keys: PhantomData }
    }

    /// Takes `cost` tokens from the bucket of a key.
    #[inline]
    #[must_use]
    pub fn take(&self, key: &K, cost: u64) -> Decision {
        self.take_as(key, &self.quota, cost)
    }

    /// Takes `cost` tokens from the bucket of a key under a quota of its own: a customer who pays for
    /// more, say. The tokens already spent stay spent when a key's quota changes.
    #[inline]
    #[must_use]
    pub fn take_as(&self, key: &K, quota: &Quota, cost: u64) -> Decision {
        let key = MemoryKey::of(&self.name, key);
        self.store.charge_one_now(Charge::new(&key, quota, cost))
    }

    /// Looks at the bucket of a key, spending nothing.
    #[must_use]
    pub fn peek(&self, key: &K) -> Decision {
        self.take(key, 0)
    }

    /// Gives tokens back to the bucket of a key, capped at full, and reports what is left then.
    pub fn refund(&self, key: &K, amount: u64) -> Decision {
        self.refund_as(key, &self.quota, amount)
    }

    /// Gives tokens back to the bucket of a key under a quota of its own: the one that they were
    /// [taken](Self::take_as) under. A smaller one would forget what was spent beyond its capacity.
    pub fn refund_as(&self, key: &K, quota: &Quota, amount: u64) -> Decision {
        self.store.refund_now(&MemoryKey::of(&self.name, key), quota, amount)
    }

    /// Forgets the bucket of a key: it is full again. Says whether there was anything to forget.
    pub fn reset(&self, key: &K) -> bool {
        self.store.reset_now(&MemoryKey::of(&self.name, key))
    }

    /// The quota of keys that have none of their own.
    #[must_use]
    pub fn quota(&self) -> &Quota {
        &self.quota
    }

    /// Its store.
    #[must_use]
    pub fn store(&self) -> &Arc<MemoryStore<C>> {
        &self.store
    }
}

impl<K: ?Sized, C> Clone for KeyedLimiter<K, C> {
    fn clone(&self) -> Self {
        Self {
            store: Arc::clone(&self.store),
            name: self.name,
            quota: self.quota,
            keys: PhantomData,
        }
    }
}

impl<K: ?Sized, C: Clock> fmt::Debug for KeyedLimiter<K, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyedLimiter")
            .field("store", &self.store)
            .field("quota", &self.quota)
            .finish_non_exhaustive()
    }
}
