//! The room of one kind of key: of one rule, of all buckets without a rule, or of all others together.

use std::sync::Arc;

use super::pool::{Pool, Share};
use crate::sync::{AtomicU64, AtomicUsize, Ordering::Relaxed};

/// Maximum of overflow buckets of one account: of a rule, one for its quota and one for each quota of its overrides; of
/// buckets without a rule, one for each quota that comes with a charge. Beyond that, new keys of the account are denied.
const OVERFLOW_BUCKETS_MAX: usize = 4096;

/// Pools of buckets and of log entries that a group of accounts shares.
#[derive(Debug)]
pub(super) struct Budget {
    pub(super) buckets: Pool,
    pub(super) logs: Pool,
}

/// Keys that overflowed together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum RoomOwner {
    /// Keys of the rule with this id.
    Rule(u64),
    /// Keys without a rule.
    Take,
    /// Keys of named limiters, and of rules that are not in force.
    Other,
}

/// Place of a bucket, which determines the room that it takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// A bucket of its own key, within the budget.
    Keyed,
    /// The only bucket of a rule without placeholders: outside of the budget, always available.
    Keyless,
    /// An overflow bucket: outside of the budget.
    Overflow,
}

/// Room of one kind of key.
#[derive(Debug)]
pub(super) struct Account {
    owner: RoomOwner,
    budget: Arc<Budget>,
    buckets: Share,
    /// Entries in logs of buckets of their own key.
    logs: Share,
    /// Entries in logs of the keyless bucket and of overflow buckets.
    logs_apart: Share,
    overflow_buckets: AtomicUsize,
    /// First half of the key of the overflow bucket that is always available: that of the rule's quota.
    overflow_always: AtomicU64,
    /// Charges that found no room.
    overflowed: AtomicU64,
    /// Time of the last hard sweep for this account that evicted nothing.
    swept_in_vain_us: AtomicU64,
}

/// Reserves of an account.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Reserves {
    pub(super) buckets: usize,
    pub(super) logs: usize,
    pub(super) logs_apart: usize,
}

impl Account {
    /// An account without reserves.
    pub(super) fn new(owner: RoomOwner, budget: &Arc<Budget>) -> Arc<Self> {
        Arc::new(Self {
            owner,
            budget: Arc::clone(budget),
            buckets: Share::default(),
            logs: Share::default(),
            logs_apart: Share::default(),
            overflow_buckets: AtomicUsize::new(0),
            overflow_always: AtomicU64::new(0),
            overflowed: AtomicU64::new(0),
            swept_in_vain_us: AtomicU64::new(u64::MAX),
        })
    }

    pub(super) fn owner(&self) -> RoomOwner {
        self.owner
    }

    // ===== buckets =====

    /// Takes room for one bucket of its own key. False if there is none.
    pub(super) fn try_take_bucket(&self) -> bool {
        self.buckets.try_take(&self.budget.buckets)
    }

    /// Is there room for this many more buckets?
    pub(super) fn has_room(&self, more: usize) -> bool {
        self.buckets.has_room(&self.budget.buckets, more)
    }

    /// Releases the room of a bucket of its own key.
    pub(super) fn release_bucket(&self) {
        self.buckets.release(&self.budget.buckets, 1);
    }

    /// Counts a bucket that was added. Room for one of its own key was taken before.
    pub(super) fn added(&self, place: Place) {
        if place == Place::Overflow {
            self.overflow_buckets.fetch_add(1, Relaxed);
        }
    }

    /// Releases the room of a bucket that was removed.
    pub(super) fn removed(&self, place: Place) {
        match place {
            Place::Keyed => self.release_bucket(),
            Place::Keyless => {}
            Place::Overflow => {
                self.overflow_buckets.fetch_sub(1, Relaxed);
            }
        }
    }

    /// May the overflow bucket with this key be added?
    pub(super) fn has_overflow_room(&self, [first, _]: [u64; 2]) -> bool {
        self.overflow_buckets.load(Relaxed) < OVERFLOW_BUCKETS_MAX
            || self.overflow_always.load(Relaxed) == first
    }

    /// Makes the overflow bucket with this key available always.
    pub(super) fn set_overflow_always(&self, [first, _]: [u64; 2]) {
        self.overflow_always.store(first, Relaxed);
    }

    // ===== logs =====

    fn logs(&self, place: Place) -> &Share {
        match place {
            Place::Keyed => &self.logs,
            Place::Keyless | Place::Overflow => &self.logs_apart,
        }
    }

    /// May a log of this place grow by one entry?
    pub(super) fn has_log_room(&self, place: Place) -> bool {
        self.logs(place).has_room(&self.budget.logs, 1)
    }

    /// Counts the entries of a log that has changed its length.
    pub(super) fn log_changed(&self, place: Place, before: usize, after: usize) {
        if after > before {
            self.logs(place).take_anyway(&self.budget.logs, after - before);
        } else if after < before {
            self.logs(place).release(&self.budget.logs, before - after);
        }
    }

    // ===== reserves =====

    /// Lowers the reserves to these, where they are higher.
    pub(super) fn lower_reserves(&self, to: Reserves) {
        self.change_reserves(to, |now, to| to < now);
    }

    /// Raises the reserves to these, where they are lower.
    pub(super) fn raise_reserves(&self, to: Reserves) {
        self.change_reserves(to, |now, to| to > now);
    }

    fn change_reserves(&self, to: Reserves, is_changed: fn(usize, usize) -> bool) {
        let Budget { buckets, logs } = &*self.budget;
        let shares = [
            (&self.buckets, buckets, to.buckets),
            (&self.logs, logs, to.logs),
            (&self.logs_apart, logs, to.logs_apart),
        ];
        for (share, pool, reserve) in shares {
            if is_changed(share.reserve(), reserve) {
                share.set_reserve(pool, reserve);
            }
        }
    }

    // ===== figures =====

    /// Counts a charge that found no room.
    pub(super) fn note_overflow(&self) {
        self.overflowed.fetch_add(1, Relaxed);
    }

    pub(super) fn overflowed(&self) -> u64 {
        self.overflowed.load(Relaxed)
    }

    /// Has a hard sweep for this account evicted nothing less than this long ago?
    pub(super) fn swept_in_vain(&self, now_us: u64, pause_us: u64) -> bool {
        now_us.abs_diff(self.swept_in_vain_us.load(Relaxed)) < pause_us
    }

    pub(super) fn note_swept_in_vain(&self, now_us: u64) {
        self.swept_in_vain_us.store(now_us, Relaxed);
    }
}
