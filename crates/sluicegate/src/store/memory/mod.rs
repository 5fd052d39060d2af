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

/// Default maximum of buckets in a store: about 50 MB of them.
pub const MAX_BUCKETS_DEFAULT: usize = 1_000_000;

/// Buckets per shard of a full store, about: few enough that copying a shard takes
/// microseconds, and enough that the headers of all shards stay in the CPU cache.
const BUCKETS_PER_SHARD: usize = 4096;
const SHARDS_MIN: usize = 64;
const SHARDS_MAX: usize = 1 << 16;
/// Separate shards for the buckets of rules without placeholders, which all requests share: charges of other
/// buckets do not wait for their locks. A power of two.
const SHARDS_SHARED: usize = 64;

/// Slots swept for every new bucket: full buckets are evicted faster than new ones are added.
const SWEEP_PER_INSERT: usize = 4;
/// Maximum of slots swept under one hold of a lock.
const SWEEP_PER_LOCK: usize = 256;
/// Number of other shards that a hard sweep visits.
const SWEEP_SHARDS: usize = 32;
/// Distance between the shards of successive sweeps, so that a few sweeps sample all kinds of shards.
/// A prime larger than the number of shards: every shard has its turn.
const SWEEP_STRIDE: usize = 1_000_003;
/// Pause after a hard sweep that evicted nothing. Charges that find the store full sweep hard, and during
/// a flood of new keys every charge would pay for that.
const SWEEP_PAUSE_US: u64 = 1000;

/// Upper limit of [`MemoryStoreBuilder::max_buckets`]. It leaves far more form ids in each shard than buckets, and
/// so than forms.
pub const MAX_BUCKETS_MAX: usize = 1 << 30;

const _: () = assert!(MAX_BUCKETS_MAX / SHARDS_MAX * 64 <= table::FORMS_MAX);

/// Maximum of overflow buckets: one for each quota of a rule, and for each quota that comes with a charge. Beyond
/// that, new keys are denied.
const OVERFLOW_BUCKETS_MAX: usize = 4096;

/// Maximum of entries in all logs of exact sliding windows together, per bucket of `max_buckets`. Beyond
/// that nothing is added to a log: its bucket denies.
const LOG_ENTRIES_PER_BUCKET: usize = 4;

/// Policy for a new key when the store is full and no bucket may be evicted. Keys that are
/// in the store are not affected (except exact sliding windows, whose logs share one bound).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum OnFull {
    /// New keys of a rule share one overflow bucket per quota: that of the rule, and that of each override.
    #[default]
    Overflow,
    /// New keys are denied.
    Deny,
}

/// Buckets in this process: sharded, bounded, and atomic over any number of them.
///
/// A charge takes the locks of its buckets' shards in order, decides, writes and releases them; no I/O happens
/// while a lock is held. A denial is usually answered without any lock.
///
/// # Memory
///
/// At most [`max_buckets`](MemoryStoreBuilder::max_buckets) are stored, at 40 to 50 bytes each.
/// Buckets of the exact sliding window also have a log, of 16 bytes an entry; all logs together have
/// at most four entries per bucket of `max_buckets`, and charges beyond that are denied.
///
/// Only full buckets are evicted, which changes no decision. When the store is full and no bucket is,
/// new keys share an overflow bucket of their rule and quota or are denied ([`OnFull`]), so a flood of random keys
/// can neither reset an exhausted bucket nor lift a limit.
///
/// # Panics
///
/// Never.
pub struct MemoryStore<C = SystemClock> {
    /// The regular shards, then those of buckets that all requests share, then one for overflow
    /// buckets. Locks are taken in this order.
    shards: Box<[Shard]>,
    /// Number of regular shards less one: a bit mask.
    regular: usize,
    clock: C,
    max_buckets: usize,
    on_full: OnFull,
    held: AtomicUsize,
    forgotten: AtomicU64,
    overflowed: AtomicU64,
    next_sweep: AtomicUsize,
    /// Time of the last hard sweep that evicted nothing.
    swept_in_vain_us: AtomicU64,
    /// Entries in all logs.
    log_entries: Arc<AtomicUsize>,
}

/// Figures of a [`MemoryStore`], for metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryStats {
    /// Buckets in the store now.
    pub buckets: usize,
    /// Maximum of buckets in the store.
    pub max_buckets: usize,
    /// Full buckets that were evicted since the start.
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
    /// Sets the maximum of buckets, clamped to between one and [`MAX_BUCKETS_MAX`].
    #[must_use]
    pub fn max_buckets(mut self, max_buckets: usize) -> Self {
        self.max_buckets = max_buckets.clamp(1, MAX_BUCKETS_MAX);
        self
    }

    /// Sets the policy for new keys when the store is full.
    #[must_use]
    pub fn on_full(mut self, on_full: OnFull) -> Self {
        self.on_full = on_full;
        self
    }

    /// Replaces the clock.
    #[must_use]
    pub fn clock<D: Clock>(self, clock: D) -> MemoryStoreBuilder<D> {
        MemoryStoreBuilder { clock, max_buckets: self.max_buckets, on_full: self.on_full }
    }

    /// Builds the store.
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
    /// A store with the defaults: [`MAX_BUCKETS_DEFAULT`] and [`OnFull::Overflow`].
    #[must_use]
    pub fn new() -> Self {
        Self::builder().build()
    }

    /// A builder with the defaults.
    #[must_use]
    pub fn builder() -> MemoryStoreBuilder {
        MemoryStoreBuilder::default()
    }
}

impl<C: Clock> MemoryStore<C> {
    /// The clock that charges are made by.
    pub fn clock(&self) -> &C {
        &self.clock
    }

    /// Current figures.
    pub fn stats(&self) -> MemoryStats {
        MemoryStats {
            buckets: self.held.load(Ordering::Relaxed),
            max_buckets: self.max_buckets,
            forgotten: self.forgotten.load(Ordering::Relaxed),
            overflowed: self.overflowed.load(Ordering::Relaxed),
        }
    }

    /// Visits about `slots` more slots of the store and evicts the full buckets among them, holding
    /// a lock for at most a few hundred slots at a time. Every new key sweeps too, so calling this is only
    /// needed to free memory while no new keys come: from a timer, for example.
    pub fn sweep(&self, slots: usize) {
        let mut left = slots;
        while left > 0 {
            let step = left.min(SWEEP_PER_LOCK);
            self.sweep_elsewhere(step);
            left -= step;
        }
    }

    /// Sweeps a part of the shard whose turn it is, unless it is locked. Returns the number of evicted buckets.
    fn sweep_elsewhere(&self, slots: usize) -> usize {
        let turn = self.next_sweep.fetch_add(1, Ordering::Relaxed);
        let number = turn.wrapping_mul(SWEEP_STRIDE) % self.shards.len();
        self.shards[number].try_lock().map_or(0, |mut locked| self.sweep_here(&mut locked, slots))
    }

    /// Sweeps a part of this shard. Returns the number of evicted buckets.
    fn sweep_here(&self, locked: &mut Locked<'_>, slots: usize) -> usize {
        let forgotten = locked.sweep(self.clock.now(), slots);
        if forgotten > 0 {
            self.forgotten.fetch_add(forgotten as u64, Ordering::Relaxed);
            self.release(locked, forgotten);
        }
        forgotten
    }

    /// Evicts full buckets to make room for `new` more: a few of this shard with every new bucket,
    /// and many when the store is full.
    fn sweep_for(&self, locked: &mut Locked<'_>, new: usize) {
        self.sweep_here(locked, SWEEP_PER_INSERT);
        if self.held.load(Ordering::Relaxed) + new > self.max_buckets {
            self.sweep_hard(Some(locked));
        }
    }

    /// Sweeps hard: many slots of this shard, if one is given, and as many of others.
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

    /// Reserves room for one bucket. False if the store is full.
    fn try_reserve(&self) -> bool {
        let one_more = |held| (held < self.max_buckets).then_some(held + 1);
        self.held.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more).is_ok()
    }

    /// Releases the room of buckets of this shard that were removed, or reserved and not stored.
    fn release(&self, locked: &Locked<'_>, buckets: usize) {
        if locked.is_bounded() {
            self.held.fetch_sub(buckets, Ordering::Relaxed);
        }
    }

    /// Removes a bucket. False if there was none.
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
