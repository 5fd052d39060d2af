//! Buckets in this process: the embedded default.

mod charge;
mod key;
mod logs;
#[cfg(all(test, loom))]
mod model;
mod shard;
mod table;
mod view;

use std::convert::Infallible;
use std::fmt;

use tollgate_core::{Decision, Micros, Quota};

pub use self::key::MemoryKey;
use self::shard::{Locked, Shard};
use self::view::View;
use super::{Charge, Decisions, LocalStore, Space, Store, sealed};
use crate::clock::{Clock, SystemClock};
use crate::sync::{AtomicU64, AtomicUsize, Ordering};

/// How many buckets a store remembers unless told otherwise: some 50 MB of them.
pub const MAX_BUCKETS_DEFAULT: usize = 1_000_000;

/// A shard holds about this many buckets when the store is full, so that copying one takes microseconds.
const BUCKETS_PER_SHARD: usize = 1024;
const SHARDS_MIN: usize = 64;
const SHARDS_MAX: usize = 1 << 16;

/// Slots looked at for every new bucket: full ones are forgotten faster than new ones come.
const SWEEP_PER_INSERT: usize = 4;
/// The most slots looked at under one hold of a lock.
const SWEEP_PER_LOCK: usize = 256;

/// The most buckets a store can be told to remember. Each shard's forms, at most one per bucket, have
/// far more names than it then holds buckets.
pub const MAX_BUCKETS_MAX: usize = 1 << 30;

const _: () = assert!(MAX_BUCKETS_MAX / SHARDS_MAX * 64 <= table::FORMS_MAX);

/// What becomes of a new key when the store is full and nothing in it may be forgotten. Keys that are
/// in the store are unaffected either way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum OnFull {
    /// New keys of a rule share one bucket of that rule's quota.
    #[default]
    Overflow,
    /// New keys are denied.
    Deny,
}

/// Buckets in this process: sharded, bounded, and atomic over any number of them.
///
/// A charge takes the locks of its buckets' shards in order, decides, writes and lets go; nothing waits
/// while a lock is held. A denial is usually answered without any lock.
///
/// # Memory
///
/// At most [`max_buckets`](MemoryStoreBuilder::max_buckets) are remembered, at 40 to 50 bytes each
/// (buckets of the exact sliding window have a log besides). Only full buckets are forgotten, which nobody can notice. When
/// there is no more room and nothing is full, new keys share their rule's overflow bucket or are denied
/// ([`OnFull`]), so a flood of random keys can neither reset an exhausted bucket nor lift a limit.
///
/// # Panics
///
/// Never.
pub struct MemoryStore<C = SystemClock> {
    /// All regular shards, and after them one for overflow buckets, whose lock is so the last in order.
    shards: Box<[Shard]>,
    clock: C,
    max_buckets: usize,
    on_full: OnFull,
    held: AtomicUsize,
    forgotten: AtomicU64,
    overflowed: AtomicU64,
    next_sweep: AtomicUsize,
}

/// Figures of a [`MemoryStore`], for metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryStats {
    /// Buckets that are remembered now.
    pub buckets: usize,
    /// The most that may be.
    pub max_buckets: usize,
    /// Full buckets that were forgotten since the start.
    pub forgotten: u64,
    /// Charges of new keys that found the store full.
    pub overflowed: u64,
}

/// Builds a [`MemoryStore`].
#[derive(Clone, Debug)]
pub struct MemoryStoreBuilder<C = SystemClock> {
    clock: C,
    max_buckets: usize,
    on_full: OnFull,
}

// ===== impl MemoryStoreBuilder =====

impl Default for MemoryStoreBuilder {
    fn default() -> Self {
        let (max_buckets, on_full) = (MAX_BUCKETS_DEFAULT, OnFull::default());
        Self { clock: SystemClock::new(), max_buckets, on_full }
    }
}

impl<C: Clock> MemoryStoreBuilder<C> {
    /// The most buckets to remember: at least one, at most [`MAX_BUCKETS_MAX`].
    #[must_use]
    pub fn max_buckets(mut self, max_buckets: usize) -> Self {
        self.max_buckets = max_buckets.clamp(1, MAX_BUCKETS_MAX);
        self
    }

    /// What becomes of new keys when the store is full.
    #[must_use]
    pub fn on_full(mut self, on_full: OnFull) -> Self {
        self.on_full = on_full;
        self
    }

    /// Takes the time from another clock.
    #[must_use]
    pub fn clock<D: Clock>(self, clock: D) -> MemoryStoreBuilder<D> {
        MemoryStoreBuilder { clock, max_buckets: self.max_buckets, on_full: self.on_full }
    }

    /// The store.
    #[must_use]
    pub fn build(self) -> MemoryStore<C> {
        let shards = (self.max_buckets / BUCKETS_PER_SHARD).next_power_of_two();
        let shards = shards.clamp(SHARDS_MIN, SHARDS_MAX);
        MemoryStore {
            shards: (0..=shards).map(|_| Shard::new()).collect(),
            clock: self.clock,
            max_buckets: self.max_buckets,
            on_full: self.on_full,
            held: AtomicUsize::new(0),
            forgotten: AtomicU64::new(0),
            overflowed: AtomicU64::new(0),
            next_sweep: AtomicUsize::new(0),
        }
    }
}

// ===== impl MemoryStore =====

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new()
    }
}

impl MemoryStore {
    /// A store with the defaults: a million buckets, overflow buckets beyond.
    #[must_use]
    pub fn new() -> Self {
        Self::builder().build()
    }

    /// Makes other choices.
    #[must_use]
    pub fn builder() -> MemoryStoreBuilder {
        MemoryStoreBuilder::default()
    }
}

impl<C: Clock> MemoryStore<C> {
    /// Its clock.
    pub fn clock(&self) -> &C {
        &self.clock
    }

    /// Its figures now.
    pub fn stats(&self) -> MemoryStats {
        MemoryStats {
            buckets: self.held.load(Ordering::Relaxed),
            max_buckets: self.max_buckets,
            forgotten: self.forgotten.load(Ordering::Relaxed),
            overflowed: self.overflowed.load(Ordering::Relaxed),
        }
    }

    /// Looks at about `slots` more slots of the store and forgets the full buckets among them, holding
    /// a lock for at most a few hundred at a time. New keys sweep as they come, so calling this is only
    /// needed to give memory back when there are no new ones: now and then, from a timer.
    pub fn sweep(&self, slots: usize) {
        let mut left = slots;
        while left > 0 {
            let step = left.min(SWEEP_PER_LOCK);
            self.sweep_elsewhere(step);
            left -= step;
        }
    }

    /// Sweeps a part of whichever shard is next, unless somebody is using it.
    fn sweep_elsewhere(&self, slots: usize) {
        let number = self.next_sweep.fetch_add(1, Ordering::Relaxed) % self.overflow_shard();
        if let Some(mut locked) = self.shards[number].try_lock() {
            let now = self.clock.now();
            self.sweep_here(&mut locked, slots, now);
        }
    }

    fn sweep_here(&self, locked: &mut Locked<'_>, slots: usize, now: Micros) {
        let forgotten = locked.sweep(now, slots);
        self.release(forgotten);
        if forgotten > 0 {
            self.forgotten.fetch_add(forgotten as u64, Ordering::Relaxed);
        }
    }

    #[inline]
    fn shard_of(&self, key: &MemoryKey) -> usize {
        // The number of regular shards is a power of two, and the table uses the other half of the hash.
        key.hash[1] as usize & (self.shards.len() - 2)
    }

    fn overflow_shard(&self) -> usize {
        self.shards.len() - 1
    }

    /// Takes one bucket's worth of room, if there is any.
    fn try_reserve(&self) -> bool {
        let one_more = |held| (held < self.max_buckets).then_some(held + 1);
        self.held.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more).is_ok()
    }

    fn release(&self, buckets: usize) {
        if buckets > 0 {
            self.held.fetch_sub(buckets, Ordering::Relaxed);
        }
    }

    /// Forgets a bucket, and says whether there was one.
    fn forget(&self, locked: &mut Locked<'_>, key: &MemoryKey) -> bool {
        let forgotten = locked.remove(key.hash);
        self.release(usize::from(forgotten));
        forgotten
    }
}

impl<C: Clock> sealed::Sealed for MemoryStore<C> {}

impl<C: Clock> Store for MemoryStore<C> {
    type Key = MemoryKey;
    type Error = Infallible;

    #[inline]
    fn key(&self, space: Space<'_>, parts: &[&[u8]]) -> MemoryKey {
        MemoryKey::new(space, parts)
    }

    async fn charge(&self, charges: &[Charge<'_, MemoryKey>]) -> Result<Decisions, Infallible> {
        Ok(self.charge_now(charges))
    }

    async fn refund(
        &self,
        key: &MemoryKey,
        quota: &Quota,
        amount: u64,
    ) -> Result<Decision, Infallible> {
        Ok(self.refund_now(key, quota, amount))
    }

    async fn reset(&self, key: &MemoryKey) -> Result<bool, Infallible> {
        Ok(self.reset_now(key))
    }
}

impl<C: Clock> LocalStore for MemoryStore<C> {
    #[inline]
    fn charge_now(&self, charges: &[Charge<'_, MemoryKey>]) -> Decisions {
        match charges {
            [] => Decisions::new(),
            [charge] => Decisions::from_slice(&[self.charge_one(charge)]),
            charges => self.charge_many(charges),
        }
    }

    #[inline]
    fn charge_one_now(&self, charge: Charge<'_, MemoryKey>) -> Decision {
        self.charge_one(&charge)
    }

    fn refund_now(&self, key: &MemoryKey, quota: &Quota, amount: u64) -> Decision {
        let mut locked = self.shards[self.shard_of(key)].lock();
        let now = self.clock.now();
        if let Some(index) = locked.find(key.hash) {
            let write = View::read(&locked, Some(index), quota, now).credit(amount);
            self.write(&mut locked, key, Some(index), quota, write);
        }
        View::read(&locked, locked.find(key.hash), quota, now).decide(0).0
    }

    fn reset_now(&self, key: &MemoryKey) -> bool {
        self.forget(&mut self.shards[self.shard_of(key)].lock(), key)
    }
}

impl<C: Clock> fmt::Debug for MemoryStore<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryStore")
            .field("clock", &self.clock)
            .field("stats", &self.stats())
            .finish_non_exhaustive()
    }
}
