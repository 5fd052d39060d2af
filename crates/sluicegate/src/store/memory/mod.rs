//! Buckets in this process: the embedded default.

mod account;
mod charge;
mod hot;
mod key;
mod logs;
#[cfg(test)]
#[cfg(loom)]
mod model;
mod pool;
mod room;
mod sequence;
mod shard;
mod table;
mod view;

use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;

use sluicegate_core::{Decision, Quota};

pub use self::account::RoomOwner;
use self::account::{Account, Place};
pub use self::key::MemoryKey;
pub use self::room::ReservedRoom;
use self::room::Room;
use self::shard::{Locked, Shard};
use super::{Charge, Charged, Decisions, InProcess, LocalStore, Space, Store, sealed};
use crate::clock::{Clock, SystemClock};
use crate::rules::RuleSet;
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
/// Pause after a hard sweep for an account that evicted nothing. Charges that find no room sweep hard, and during
/// a flood of new keys every charge would pay for that.
const SWEEP_PAUSE_US: u64 = 1000;

/// Upper limit of [`MemoryStoreBuilder::max_buckets`]. It leaves far more form ids in each shard than buckets, and
/// so than forms.
pub const MAX_BUCKETS_MAX: usize = 1 << 30;

const _: () = assert!(MAX_BUCKETS_MAX / SHARDS_MAX * 64 <= table::FORMS_MAX);

/// Part of [`MemoryStoreBuilder::max_buckets`] that is for buckets without a rule by default: a quarter.
const TAKE_BUCKETS_PART: usize = 4;

/// Policy for a new key when there is no room for its rule and no bucket may be evicted. Keys that are
/// in the store are not affected (except exact sliding windows, whose logs share the room of their rule).
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
/// At most [`max_buckets`](MemoryStoreBuilder::max_buckets) are stored, at 40 to 50 bytes each, besides one bucket for
/// every rule without placeholders and the overflow buckets. Buckets of the exact sliding window also have a log; all
/// logs together have at most four entries per bucket of `max_buckets`, and charges beyond that are denied. An entry has
/// 16 bytes. Entries that have left the window are not counted and are removed from memory later: a log of a constant
/// number of entries takes memory for about twice as many, and no log for more than four times as many.
///
/// Only full buckets are evicted, which changes no decision. When there is no room and no bucket is full,
/// new keys share an overflow bucket of their rule and quota or are denied ([`OnFull`]), so a flood of random keys
/// can neither reset an exhausted bucket nor lift a limit.
///
/// # Room
///
/// A flood of one kind of key takes no room from another kind: buckets without a rule have a budget of their own
/// ([`take_buckets_max`](MemoryStoreBuilder::take_buckets_max)); half of the rest is reserved for the rules in force and
/// for [named limiters](crate::KeyedLimiter), in equal parts, and the other half is common. The bucket of a rule without
/// placeholders and the overflow bucket of each rule's quota are always available. Entries of logs are divided
/// likewise, among the rules with exact sliding windows.
///
/// # Panics
///
/// Never.
pub struct MemoryStore<C = SystemClock> {
    /// The regular shards, then those of buckets that all requests share, then one for overflow
    /// buckets without a rule, then one for all other overflow buckets. Locks are taken in this order.
    shards: Box<[Shard]>,
    /// Number of regular shards less one: a bit mask.
    regular: usize,
    clock: C,
    on_full: OnFull,
    room: Arc<Room>,
    forgotten: AtomicU64,
    overflowed: AtomicU64,
    next_sweep: AtomicUsize,
}

/// Figures of a [`MemoryStore`], for metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryStats {
    /// Buckets in the store now, except overflow buckets and those of rules without placeholders.
    pub buckets: usize,
    /// Maximum of these buckets.
    pub max_buckets: usize,
    /// Buckets without a rule among them.
    pub take_buckets: usize,
    /// Maximum of buckets without a rule.
    pub take_buckets_max: usize,
    /// Full buckets that were evicted since the start.
    pub forgotten: u64,
    /// Charges that found no room: of new keys, and of logs that could not grow.
    pub overflowed: u64,
}

/// Builds a [`MemoryStore`].
#[derive(Clone, Debug)]
pub struct MemoryStoreBuilder<C = SystemClock> {
    clock: C,
    max_buckets: usize,
    /// A quarter of `max_buckets`, if `None`.
    take_buckets_max: Option<usize>,
    on_full: OnFull,
}

// ===== impl MemoryStoreBuilder =====

impl Default for MemoryStoreBuilder {
    fn default() -> Self {
        let (max_buckets, on_full) = (MAX_BUCKETS_DEFAULT, OnFull::default());
        Self { clock: SystemClock::new(), max_buckets, take_buckets_max: None, on_full }
    }
}

impl<C: Clock> MemoryStoreBuilder<C> {
    /// Sets the maximum of buckets, clamped to between one and [`MAX_BUCKETS_MAX`].
    #[must_use]
    pub fn max_buckets(mut self, max_buckets: usize) -> Self {
        self.max_buckets = max_buckets.clamp(1, MAX_BUCKETS_MAX);
        self
    }

    /// Sets the maximum of buckets without a rule, which are part of `max_buckets`; the others are for rules and named
    /// limiters. A quarter by default.
    #[must_use]
    pub fn take_buckets_max(mut self, take_buckets_max: usize) -> Self {
        self.take_buckets_max = Some(take_buckets_max);
        self
    }

    /// Sets the policy for new keys when there is no room.
    #[must_use]
    pub fn on_full(mut self, on_full: OnFull) -> Self {
        self.on_full = on_full;
        self
    }

    /// Replaces the clock.
    #[must_use]
    pub fn clock<D: Clock>(self, clock: D) -> MemoryStoreBuilder<D> {
        let Self { max_buckets, take_buckets_max, on_full, .. } = self;
        MemoryStoreBuilder { clock, max_buckets, take_buckets_max, on_full }
    }

    /// Builds the store.
    #[must_use]
    pub fn build(self) -> MemoryStore<C> {
        let shards = (self.max_buckets / BUCKETS_PER_SHARD).next_power_of_two();
        let shards = shards.clamp(SHARDS_MIN, SHARDS_MAX);
        let regular = (0..shards).map(|_| Place::Keyed);
        let shared = (0..SHARDS_SHARED).map(|_| Place::Keyless);
        let places = regular.chain(shared).chain([Place::Overflow; 2]);
        let take_buckets_max =
            self.take_buckets_max.unwrap_or(self.max_buckets / TAKE_BUCKETS_PART);
        MemoryStore {
            shards: places.map(Shard::new).collect(),
            regular: shards - 1,
            clock: self.clock,
            on_full: self.on_full,
            room: Arc::new(Room::new(self.max_buckets, take_buckets_max)),
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
            buckets: self.room.buckets(),
            max_buckets: self.room.max_buckets(),
            take_buckets: self.room.take_buckets(),
            take_buckets_max: self.room.take_buckets_max(),
            forgotten: self.forgotten.load(Ordering::Relaxed),
            overflowed: self.overflowed.load(Ordering::Relaxed),
        }
    }

    /// Charges that found no room, by the keys that needed it, in order, with every rule in force. The count of a rule
    /// ends with the rule.
    pub fn overflows(&self) -> Vec<(RoomOwner, u64)> {
        self.room.overflows()
    }

    /// Reserves room for the keys of a named limiter.
    pub(crate) fn reserve_room_named(&self, name: &MemoryKey, quota: &Quota) -> ReservedRoom {
        self.room.reserve_for_named(name, quota)
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
        }
        forgotten
    }

    /// Evicts full buckets to make room for `new` more of an account: a few of this shard with every new bucket,
    /// and many when there is no room.
    fn sweep_for(&self, locked: &mut Locked<'_>, account: &Account, new: usize) {
        self.sweep_here(locked, SWEEP_PER_INSERT);
        if locked.place() == Place::Keyed && !account.has_room(new) {
            self.sweep_hard(Some(locked), account);
        }
    }

    /// Sweeps hard for an account: many slots of this shard, if one is given, and as many of others.
    fn sweep_hard(&self, locked: Option<&mut Locked<'_>>, account: &Account) {
        let now_us = self.clock.now().get();
        if account.swept_in_vain(now_us, SWEEP_PAUSE_US) {
            return;
        }
        let here = locked.map_or(0, |locked| self.sweep_here(locked, SWEEP_PER_LOCK));
        let elsewhere = |_| self.sweep_elsewhere(SWEEP_PER_LOCK / SWEEP_SHARDS);
        if here + (0..SWEEP_SHARDS).map(elsewhere).sum::<usize>() == 0 {
            account.note_swept_in_vain(now_us);
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

    /// Shard of the overflow bucket that this key uses when there is no room. Clients choose the quotas of buckets
    /// without a rule: their overflow buckets are apart, so that others are not slowed down by their number.
    fn overflow_shard(&self, key: &MemoryKey) -> usize {
        self.shards.len() - 1 - usize::from(key.is_take())
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

    fn reserve_room(&self, rules: &RuleSet) -> ReservedRoom {
        self.room.reserve_for_rules(rules)
    }

    async fn charge(&self, charges: &[Charge<'_, MemoryKey>]) -> Result<Charged, Infallible> {
        Ok(Charged { decisions: self.charge_now(charges), degraded: false })
    }

    async fn refund_many(
        &self,
        credits: &[Charge<'_, MemoryKey>],
    ) -> Result<Decisions, Infallible> {
        Ok(self.refund_many_now(credits))
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

    fn refund_many_now(&self, credits: &[Charge<'_, MemoryKey>]) -> Decisions {
        self.credit(credits)
    }

    fn reset_now(&self, key: &MemoryKey) -> bool {
        self.shards[self.shard_of(key)].lock().remove(key.hash)
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
