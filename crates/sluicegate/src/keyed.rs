//! A limiter for keys of any type, in this process, without rules.

use std::fmt;
use std::hash::Hash;
use std::marker::PhantomData;
use std::sync::Arc;

use sluicegate_core::{Decision, Quota};

use crate::clock::{Clock, SystemClock};
use crate::store::memory::{MemoryKey, MemoryStore, ReservedRoom};
use crate::store::{Charge, LocalStore, Space, Store};

/// A limiter for keys of any type that can be hashed, in this process, without rules.
///
/// Two limiters over one store share their buckets if, and only if, they have the same name. Clones share state.
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
/// Keys are identified by the bytes that their `Hash` writes: two keys that write the same share a bucket.
///
/// # Panics
///
/// None of its methods panics, unless the key's `Hash` does.
pub struct KeyedLimiter<K: ?Sized, C = SystemClock> {
    store: Arc<MemoryStore<C>>,
    name: MemoryKey,
    quota: Quota,
    room: Arc<ReservedRoom>,
    keys: PhantomData<fn(&K)>,
}

impl<K: Hash + ?Sized> KeyedLimiter<K> {
    /// A limiter over a store of its own.
    #[must_use]
    pub fn new(name: &str, quota: Quota) -> Self {
        let store = MemoryStore::builder().take_buckets_max(0).build();
        Self::on(Arc::new(store), name, quota)
    }
}

impl<K: Hash + ?Sized, C: Clock> KeyedLimiter<K, C> {
    /// A limiter over a shared store. It has a reserve of room there, as a rule has.
    pub fn on(store: Arc<MemoryStore<C>>, name: &str, quota: Quota) -> Self {
        let name = store.key(Space::Named(name), &[]);
        let room = Arc::new(store.reserve_room_named(&name, &quota));
        Self { store, name, quota, room, keys: PhantomData }
    }

    /// Takes `cost` tokens from the bucket of a key.
    #[inline]
    #[must_use]
    pub fn take(&self, key: &K, cost: u64) -> Decision {
        self.take_as(key, &self.quota, cost)
    }

    /// Takes `cost` tokens from the bucket of a key under a quota of its own, such as that of a customer who pays for
    /// more. Tokens already spent stay spent when a key's quota changes.
    #[inline]
    #[must_use]
    pub fn take_as(&self, key: &K, quota: &Quota, cost: u64) -> Decision {
        let key = MemoryKey::of(&self.name, key);
        self.store.charge_one_now(Charge::new(&key, quota, cost))
    }

    /// Decision for a cost of zero: shows the bucket of a key and spends nothing.
    #[must_use]
    pub fn peek(&self, key: &K) -> Decision {
        self.take(key, 0)
    }

    /// Gives tokens back to the bucket of a key, capped at full. The decision shows the tokens left afterwards.
    pub fn refund(&self, key: &K, amount: u64) -> Decision {
        self.refund_as(key, &self.quota, amount)
    }

    /// Gives tokens back to the bucket of a key under the quota that they were [taken](Self::take_as) under. A smaller
    /// quota would drop tokens spent beyond its capacity.
    pub fn refund_as(&self, key: &K, quota: &Quota, amount: u64) -> Decision {
        self.store.refund_now(&MemoryKey::of(&self.name, key), quota, amount)
    }

    /// Deletes the bucket of a key: it is full again. Returns whether it was stored.
    pub fn reset(&self, key: &K) -> bool {
        self.store.reset_now(&MemoryKey::of(&self.name, key))
    }

    /// Quota of [`take`](Self::take).
    #[must_use]
    pub fn quota(&self) -> &Quota {
        &self.quota
    }

    /// Store of its buckets.
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
            room: Arc::clone(&self.room),
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
