//! Buckets in this process: the embedded default.

mod charge;
mod hot;
mod key;
mod logs;
#[cfg(test)]
#[cfg(loom)]
mod model;
mod sequence;
mod shard;
mod table;
mod view;

use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;

use sluicegate_core::{Decision, Quota};

pub use self::key::MemoryKey;
use self::shard::{Locked, Shard};
use self::view::View;
use super::{Charge, Charged, Decisions, InProcess, LocalStore, Space, Store, sealed};
use crate::clock::{Clock, SystemClock};
use crate::sync::{AtomicU64, AtomicUsize, Ordering};

/// How many buckets a store remembers unless told otherwise: some 50 MB of them.
pub const MAX_BUCKETS_DEFAULT: usize = 1_000_000;

/// A shard holds about this many buckets when the store is full: few enough that copying one takes
/// microseconds, and enough that what is known of each shard stays in the cache.
const BUCKETS_PER_SHARD: usize = 4096;
const SHARDS_MIN: usize = 64;
const SHARDS_MAX: usize = 1 << 16;
/// Shards for the buckets of rules without placeholders, which all requests share: nobody else waits for
/// their locks. A power of two.
const SHARDS_SHARED: usize = 64;

/// Slots looked at for every new bucket: full ones are forgotten faster than new ones come.
const SWEEP_PER_INSERT: usize = 4;
/// The most slots looked at under one hold of a lock.
const SWEEP_PER_LOCK: usize = 256;
/// A hard look for buckets to forget goes to this many shards besides.
const SWEEP_SHARDS: usize = 32;
/// From each shard the sweep goes to one this many further on, so that a few in a row are some of all kinds.
/// It is a prime, and there are never as many: all shards have their turn.
const SWEEP_STRIDE: usize = 1_000_003;
/// Charges that find no room look hard for buckets to forget, but not within this time of having looked
/// in vain: a flood must cost whoever is flooded no more than other charges do.
const SWEEP_PAUSE_US: u64 = 1000;

/// The most buckets a store can be told to remember. Each shard's forms, at most one per bucket, have
/// far more names than it then holds buckets.
pub const MAX_BUCKETS_MAX: usize = 1 << 30;

const _: () = assert!(MAX_BUCKETS_MAX / SHARDS_MAX * 64 <= table::FORMS_MAX);

/// The most overflow buckets: one for each quota of a rule, and for each that comes with the charges. Beyond
/// that new keys are denied.
const OVERFLOW_BUCKETS_MAX: usize = 4096;

/// How many entries the logs of exact sliding windows may have together, for each bucket that may be
/// remembered. Beyond that nothing is added to a log: its bucket denies.
const LOG_ENTRIES_PER_BUCKET: usize = 4;

/// What becomes of a new key when the store is full and nothing in it may be forgotten. Keys that are
/// in the store are unaffected either way (but for exact sliding windows, whose logs share one bound).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum OnFull {
    /// New keys of a rule share one bucket of that rule's quota; those whose quota is another, one of that.
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
/// At most [`max_buckets`](MemoryStoreBuilder::max_buckets) are remembered, at 40 to 50 bytes each.
/// Buckets of the exact sliding window have a log besides, of 16 bytes an entry; all logs together have
/// at most four entries for each of the `max_buckets`, and deny what they have no room for.
///
/// Only full buckets are forgotten, which nobody can notice. When there is no more room and nothing is
/// full, new keys share an overflow bucket of their rule and quota or are denied ([`OnFull`]), so a flood of random keys
/// can neither reset an exhausted bucket nor lift a limit.
///
/// # Panics
///
/// Never.
pub struct MemoryStore<C = SystemClock> {
    /// The regular shards, then those for buckets that all requests share, and last one for overflow
    /// buckets. This is the order in which their locks are taken.
    shards: Box<[Shard]>,
    /// How many of them are regular, less one: a power of two less one.
    regular: usize,
    clock: C,
    max_buckets: usize,
    on_full: OnFull,
    held: AtomicUsize,
    forgotten: AtomicU64,
    overflowed: AtomicU64,
    next_sweep: AtomicUsize,
    /// When a hard look for buckets to forget last found none.
    swept_in_vain_us: AtomicU64,
    /// Entries in all logs.
    log_entries: Arc<AtomicUsize>,
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
        let log_entries = Arc::new(AtomicUsize::new(0));
        let shard = |bounded| Shard::new(bounded, Arc::clone(&log_entries));
        let all = (0..shards + SHARDS_SHARED).map(|_| shard(true)).chain([shard(false)]).collect();
        MemoryStore {
            shards: all,
            regular: shards - 1,
            clock: self.clock,
            max_buckets: self.max_buckets,
            on_full: self.on_full,
            held: AtomicUsize::new(0),
            forgotten: AtomicU64::new(0),
            overflowed: AtomicU64::new(0),
            next_sweep: AtomicUsize::new(0),
            swept_in_vain_us: AtomicU64::new(u64::MAX),
            log_entries,
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
    fn sweep_elsewhere(&self, slots: usize) -> usize {
        let turn = self.next_sweep.fetch_add(1, Ordering::Relaxed);
        let number = turn.wrapping_mul(SWEEP_STRIDE) % self.shards.len();
        self.shards[number].try_lock().map_or(0, |mut locked| self.sweep_here(&mut locked, slots))
    }

    /// Sweeps a part of this shard, and says how many buckets were forgotten.
    fn sweep_here(&self, locked: &mut Locked<'_>, slots: usize) -> usize {
        let forgotten = locked.sweep(self.clock.now(), slots);
        if forgotten > 0 {
            self.forgotten.fetch_add(forgotten as u64, Ordering::Relaxed);
            self.release(locked, forgotten);
        }
        forgotten
    }

    /// Forgets full buckets, so that there is room for `new` more: a few of this shard wherever a bucket
    /// is added, and many when the store is full.
    fn sweep_for(&self, locked: &mut Locked<'_>, new: usize) {
        self.sweep_here(locked, SWEEP_PER_INSERT);
        if self.held.load(Ordering::Relaxed) + new > self.max_buckets {
            self.sweep_hard(Some(locked));
        }
    }

    /// Looks hard for buckets to forget: at many slots of this shard, if there is one, and at as many
    /// of others.
    fn sweep_hard(&self, locked: Option<&mut Locked<'_>>) {
        let now_us = self.clock.now().get();
        if now_us.abs_diff(self.swept_in_vain_us.load(Ordering::Relaxed)) < SWEEP_PAUSE_US {
            return;
        }
        let here = locked.map_or(0, |locked| self.sweep_here(locked, SWEEP_PER_LOCK));
        let elsewhere = |_| self.sweep_elsewhere(SWEEP_PER_LOCK / SWEEP_SHARDS);
        if here + (0..SWEEP_SHARDS).map(elsewhere).sum::<usize>() == 0 {
            self.swept_in_vain_us.store(now_us, Ordering::Relaxed);
        }
    }

    #[inline]
    fn shard_of(&self, key: &MemoryKey) -> usize {
        // The table uses the other half of the hash.
        let hash = key.hash[1] as usize;
        if key.is_shared() {
            self.regular + 1 + (hash & (SHARDS_SHARED - 1))
        } else {
            hash & self.regular
        }
    }

    fn overflow_shard(&self) -> usize {
        self.shards.len() - 1
    }

    /// Takes one bucket's worth of room, if there is any.
    fn try_reserve(&self) -> bool {
        let one_more = |held| (held < self.max_buckets).then_some(held + 1);
        self.held.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more).is_ok()
    }

    /// Gives back the room of buckets of this shard that are no more, or never came to be.
    fn release(&self, locked: &Locked<'_>, buckets: usize) {
        if locked.is_bounded() {
            self.held.fetch_sub(buckets, Ordering::Relaxed);
        }
    }

    /// Forgets a bucket, and says whether there was one.
    fn forget(&self, locked: &mut Locked<'_>, key: &MemoryKey) -> bool {
        let forgotten = locked.remove(key.hash);
        if forgotten {
            self.release(locked, 1);
        }
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

    fn in_process(&self) -> Option<&dyn InProcess<MemoryKey, Infallible>> {
        Some(self)
    }

    async fn charge(&self, charges: &[Charge<'_, MemoryKey>]) -> Result<Charged, Infallible> {
        Ok(Charged { decisions: self.charge_now(charges), degraded: false })
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

impl<C: Clock> InProcess<MemoryKey, Infallible> for MemoryStore<C> {
    fn charge_in_process(&self, charges: &[Charge<'_, MemoryKey>]) -> Result<Charged, Infallible> {
        Ok(Charged { decisions: self.charge_now(charges), degraded: false })
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
        let now = self.now(&mut locked);
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
