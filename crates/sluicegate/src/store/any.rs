//! A store that is chosen at run time.

use smallvec::SmallVec;

use super::memory::{MemoryKey, MemoryStats, MemoryStore, ReservedRoom, RoomOwner};
use super::redis::{RedisKey, RedisStore, Trouble, TroubleKind};
use super::{Charge, Charged, Decisions, InProcess, LocalStore, Space, Store, sealed};
use crate::rules::RuleSet;

/// A store in memory or in Redis, chosen at run time.
#[derive(Debug)]
pub enum AnyStore {
    /// In this process.
    Memory(MemoryStore),
    /// In Redis.
    Redis(RedisStore),
}

/// The key of a bucket in one of the stores.
#[derive(Clone, Debug)]
pub enum AnyKey {
    /// In this process.
    Memory(MemoryKey),
    /// In Redis.
    Redis(RedisKey),
}

impl AnyStore {
    /// Names of the kinds of stores, for people.
    pub const KINDS: [&'static str; 2] = ["memory", "redis"];

    /// Name of its kind: one of [`KINDS`](Self::KINDS).
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Memory(_) => "memory",
            Self::Redis(_) => "redis",
        }
    }

    /// Statistics of the buckets in this process; with Redis, of its local fallback.
    #[must_use]
    pub fn local_stats(&self) -> MemoryStats {
        match self {
            Self::Memory(store) => store.stats(),
            Self::Redis(store) => store.health().local,
        }
    }

    /// Charges that found no room in this process, by the keys that needed it.
    #[must_use]
    pub fn overflows(&self) -> Vec<(RoomOwner, u64)> {
        match self {
            Self::Memory(store) => store.overflows(),
            Self::Redis(store) => store.overflows(),
        }
    }

    /// Evicts full buckets among the next `slots` of this process.
    pub fn sweep(&self, slots: usize) {
        match self {
            Self::Memory(store) => store.sweep(slots),
            Self::Redis(store) => store.sweep(slots),
        }
    }

    /// The store in this process; `None` if this one is in Redis.
    #[must_use]
    pub fn memory(&self) -> Option<&MemoryStore> {
        match self {
            Self::Memory(store) => Some(store),
            Self::Redis(_) => None,
        }
    }

    /// The store in Redis; `None` if this one is in this process.
    #[must_use]
    pub fn redis(&self) -> Option<&RedisStore> {
        match self {
            Self::Memory(_) => None,
            Self::Redis(store) => Some(store),
        }
    }
}

impl From<MemoryStore> for AnyStore {
    fn from(store: MemoryStore) -> Self {
        Self::Memory(store)
    }
}

impl From<RedisStore> for AnyStore {
    fn from(store: RedisStore) -> Self {
        Self::Redis(store)
    }
}

impl AnyKey {
    /// # Errors
    ///
    /// A key of another store.
    fn memory(&self) -> Result<&MemoryKey, Trouble> {
        match self {
            Self::Memory(key) => Ok(key),
            Self::Redis(_) => Err(foreign()),
        }
    }

    /// # Errors
    ///
    /// A key of another store.
    fn redis(&self) -> Result<&RedisKey, Trouble> {
        match self {
            Self::Redis(key) => Ok(key),
            Self::Memory(_) => Err(foreign()),
        }
    }
}

fn foreign() -> Trouble {
    Trouble::new(TroubleKind::Unexpected, "the key belongs to another store")
}

/// Converts the keys of charges to those of one store.
fn with_keys<'a, K>(
    charges: &[Charge<'a, AnyKey>],
    key: fn(&'a AnyKey) -> Result<&'a K, Trouble>,
) -> Result<SmallVec<[Charge<'a, K>; 4]>, Trouble> {
    let convert =
        |charge: &Charge<'a, AnyKey>| Ok(charge.with_bucket(key(charge.key)?, charge.quota));
    charges.iter().map(convert).collect()
}

// The store in memory by the keys and errors of `AnyStore`.
impl InProcess<AnyKey, Trouble> for MemoryStore {
    fn charge_in_process(&self, charges: &[Charge<'_, AnyKey>]) -> Result<Charged, Trouble> {
        let decisions = self.charge_now(&with_keys(charges, AnyKey::memory)?);
        Ok(Charged { decisions, degraded: false })
    }
}

impl sealed::Sealed for AnyStore {}

impl Store for AnyStore {
    type Key = AnyKey;
    type Error = Trouble;

    #[inline]
    fn key(&self, space: Space<'_>, parts: &[&[u8]]) -> AnyKey {
        match self {
            Self::Memory(store) => AnyKey::Memory(store.key(space, parts)),
            Self::Redis(store) => AnyKey::Redis(store.key(space, parts)),
        }
    }

    fn in_process(&self) -> Option<&dyn InProcess<AnyKey, Trouble>> {
        match self {
            Self::Memory(store) => Some(store),
            Self::Redis(_) => None,
        }
    }

    fn reserve_room(&self, rules: &RuleSet) -> ReservedRoom {
        match self {
            Self::Memory(store) => store.reserve_room(rules),
            Self::Redis(store) => store.reserve_room(rules),
        }
    }

    async fn charge(&self, charges: &[Charge<'_, AnyKey>]) -> Result<Charged, Trouble> {
        match self {
            Self::Memory(store) => store.charge_in_process(charges),
            Self::Redis(store) => {
                // Boxed: the future of a charge in memory does not include that of a call to Redis.
                Box::pin(async { store.charge(&with_keys(charges, AnyKey::redis)?).await }).await
            }
        }
    }

    async fn refund_many(&self, credits: &[Charge<'_, AnyKey>]) -> Result<Decisions, Trouble> {
        match self {
            Self::Memory(store) => Ok(store.refund_many_now(&with_keys(credits, AnyKey::memory)?)),
            Self::Redis(store) => store.refund_many(&with_keys(credits, AnyKey::redis)?).await,
        }
    }

    async fn reset(&self, key: &AnyKey) -> Result<bool, Trouble> {
        match self {
            Self::Memory(store) => Ok(store.reset_now(key.memory()?)),
            Self::Redis(store) => store.reset(key.redis()?).await,
        }
    }
}
