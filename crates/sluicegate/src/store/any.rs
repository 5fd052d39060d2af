//! A store that is chosen when the program runs.

use sluicegate_core::{Decision, Quota};
use smallvec::SmallVec;

use super::memory::{MemoryKey, MemoryStore};
use super::redis::{RedisKey, RedisStore, Trouble, TroubleKind};
use super::{Charge, Charged, LocalStore, Space, Store, sealed};

/// One of the stores there are, chosen when the program runs.
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
    /// The store in this process, if it is that.
    #[must_use]
    pub fn memory(&self) -> Option<&MemoryStore> {
        match self {
            Self::Memory(store) => Some(store),
            Self::Redis(_) => None,
        }
    }

    /// The store in Redis, if it is that.
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
    Trouble::new(TroubleKind::Unexpected, "the key is another store's")
}

/// The charges with the keys of one store.
fn with_keys<'a, K>(
    charges: &[Charge<'a, AnyKey>],
    key: fn(&'a AnyKey) -> Result<&'a K, Trouble>,
) -> Result<SmallVec<[Charge<'a, K>; 4]>, Trouble> {
    let convert =
        |charge: &Charge<'a, AnyKey>| Ok(charge.with_bucket(key(charge.key)?, charge.quota));
    charges.iter().map(convert).collect()
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

    fn is_local(&self) -> bool {
        matches!(self, Self::Memory(_))
    }

    async fn charge(&self, charges: &[Charge<'_, AnyKey>]) -> Result<Charged, Trouble> {
        match self {
            Self::Memory(store) => {
                let decisions = store.charge_now(&with_keys(charges, AnyKey::memory)?);
                Ok(Charged { decisions, degraded: false })
            }
            Self::Redis(store) => {
                // Boxed, so that whoever charges memory carries no room for a call to Redis around.
                Box::pin(async { store.charge(&with_keys(charges, AnyKey::redis)?).await }).await
            }
        }
    }

    async fn refund(&self, key: &AnyKey, quota: &Quota, amount: u64) -> Result<Decision, Trouble> {
        match self {
            Self::Memory(store) => Ok(store.refund_now(key.memory()?, quota, amount)),
            Self::Redis(store) => store.refund(key.redis()?, quota, amount).await,
        }
    }

    async fn reset(&self, key: &AnyKey) -> Result<bool, Trouble> {
        match self {
            Self::Memory(store) => Ok(store.reset_now(key.memory()?)),
            Self::Redis(store) => store.reset(key.redis()?).await,
        }
    }
}
