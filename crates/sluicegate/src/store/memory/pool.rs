//! Room that several accounts share: slots of buckets, or entries of logs.
//!
//! ```text
//!   max   reserve of one account | reserve of another | ... | common
//! ```
//!
//! An account takes from its reserve first and borrows from the common part beyond that. Reserves are never lent: an
//! account that has borrowed all of the common part takes nothing from another one's reserve.
//!
//! Room is counted when a bucket is added or removed and when a log changes its length, never on a charge of a stored
//! bucket. The counters are changed one after the other, in an order that keeps two bounds at every moment: `used` is at
//! most the sum of what accounts hold, and `common` is at least the sum of what they have borrowed. So no account finds
//! its reserve missing because of another thread that is about to fail; only a change of reserves can do that (see
//! [`Share::set_reserve`]).

use crate::sync::{AtomicU64, AtomicUsize, Ordering::Relaxed};

/// Room of all accounts together; see the module's documentation.
#[derive(Debug)]
pub(super) struct Pool {
    max: usize,
    used: AtomicUsize,
    /// Borrowed from the common part.
    common: AtomicUsize,
    common_max: AtomicUsize,
}

/// Part of a pool that one account holds.
#[derive(Debug, Default)]
pub(super) struct Share {
    /// Room within the reserve in the upper half, borrowed room in the lower half.
    held: AtomicU64,
    reserve: AtomicUsize,
}

/// Room that an account holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Held {
    own: usize,
    borrowed: usize,
}

// ===== impl Pool =====

impl Pool {
    /// A pool without reserves.
    pub(super) fn new(max: usize) -> Self {
        // What an account holds fits half a word.
        let max = max.min(u32::MAX as usize);
        Self {
            max,
            used: AtomicUsize::new(0),
            common: AtomicUsize::new(0),
            common_max: AtomicUsize::new(max),
        }
    }

    pub(super) fn max(&self) -> usize {
        self.max
    }

    pub(super) fn used(&self) -> usize {
        self.used.load(Relaxed)
    }

    /// Sets aside the reserves of all accounts together.
    pub(super) fn set_reserved(&self, reserved: usize) {
        self.common_max.store(self.max.saturating_sub(reserved), Relaxed);
    }

    fn use_one(&self) -> bool {
        one_more(&self.used, self.max)
    }

    fn borrow_one(&self) -> bool {
        one_more(&self.common, self.common_max.load(Relaxed))
    }
}

/// Adds one, up to a maximum. False if it is reached.
fn one_more(number: &AtomicUsize, max: usize) -> bool {
    number.fetch_update(Relaxed, Relaxed, |number| (number < max).then_some(number + 1)).is_ok()
}

// ===== impl Share =====

impl Share {
    /// Takes room for one. False if there is none for this account.
    pub(super) fn try_take(&self, pool: &Pool) -> bool {
        let reserve = self.reserve.load(Relaxed);
        let within_reserve =
            |Held { own, borrowed }| (own < reserve).then_some(Held { own: own + 1, borrowed });
        if self.update(within_reserve) {
            let is_used = pool.use_one();
            if !is_used {
                self.undo_own(pool);
            }
            return is_used;
        }
        if !pool.borrow_one() {
            return false;
        }
        let is_used = pool.use_one();
        if is_used {
            self.update(|held| Some(Held { borrowed: held.borrowed + 1, ..held }));
        } else {
            pool.common.fetch_sub(1, Relaxed);
        }
        is_used
    }

    /// Gives back one that was taken within the reserve. If the reserve has become smaller meanwhile, it may count as
    /// borrowed.
    fn undo_own(&self, pool: &Pool) {
        self.exchange(pool, |Held { own, borrowed }| match own {
            0 => Held { own, borrowed: borrowed.saturating_sub(1) },
            _ => Held { own: own - 1, borrowed },
        });
    }

    /// Is there room for this many more? Another account may take it meanwhile, unless it is within the reserve.
    pub(super) fn has_room(&self, pool: &Pool, more: usize) -> bool {
        let free = self.reserve.load(Relaxed).saturating_sub(self.held().own);
        let to_borrow = more.saturating_sub(free);
        let is_common_free =
            || pool.common.load(Relaxed) + to_borrow <= pool.common_max.load(Relaxed);
        (to_borrow == 0 || is_common_free()) && pool.used() + more <= pool.max
    }

    /// Takes room whether there is any or not: the caller has asked before.
    pub(super) fn take_anyway(&self, pool: &Pool, more: usize) {
        let reserve = self.reserve.load(Relaxed);
        self.exchange(pool, |Held { own, borrowed }| {
            let within_reserve = more.min(reserve.saturating_sub(own));
            Held { own: own + within_reserve, borrowed: borrowed + more - within_reserve }
        });
        pool.used.fetch_add(more, Relaxed);
    }

    /// Gives room back, borrowed room first.
    pub(super) fn release(&self, pool: &Pool, room: usize) {
        pool.used.fetch_sub(room, Relaxed);
        self.exchange(pool, |Held { own, borrowed }| {
            let returned = room.min(borrowed);
            Held { own: own.saturating_sub(room - returned), borrowed: borrowed - returned }
        });
    }

    pub(super) fn reserve(&self) -> usize {
        self.reserve.load(Relaxed)
    }

    /// Changes the reserve. Room held beyond a smaller one counts as borrowed from then on, until its buckets are
    /// evicted. If that exceeds the common part, nothing more is borrowed, and a reserve that has grown at the same time
    /// is available only as far as the pool has free room.
    pub(super) fn set_reserve(&self, pool: &Pool, reserve: usize) {
        self.reserve.store(reserve, Relaxed);
        self.exchange(pool, |Held { own, borrowed }| {
            let all = own + borrowed;
            Held { own: all.min(reserve), borrowed: all.saturating_sub(reserve) }
        });
    }

    fn held(&self) -> Held {
        Held::from(self.held.load(Relaxed))
    }

    /// Changes the held room, unless the change refuses. Returns whether it was changed.
    fn update(&self, change: impl Fn(Held) -> Option<Held>) -> bool {
        let change = |word| change(Held::from(word)).map(u64::from);
        self.held.fetch_update(Relaxed, Relaxed, change).is_ok()
    }

    /// Changes the held room, and what of the common part is borrowed with it: that is raised before and lowered
    /// afterwards.
    fn exchange(&self, pool: &Pool, change: impl Fn(Held) -> Held) {
        loop {
            let word = self.held.load(Relaxed);
            let (before, after) = (Held::from(word), change(Held::from(word)));
            let more = after.borrowed.saturating_sub(before.borrowed);
            let less = before.borrowed.saturating_sub(after.borrowed);
            // Most exchanges are within a reserve, and leave the shared word alone.
            if more > 0 {
                pool.common.fetch_add(more, Relaxed);
            }
            let is_done = self.held.compare_exchange(word, after.into(), Relaxed, Relaxed).is_ok();
            let returned = if is_done { less } else { more };
            if returned > 0 {
                pool.common.fetch_sub(returned, Relaxed);
            }
            if is_done {
                return;
            }
        }
    }
}

// ===== impl Held =====

impl From<u64> for Held {
    fn from(word: u64) -> Self {
        Self { own: (word >> 32) as usize, borrowed: (word & u64::from(u32::MAX)) as usize }
    }
}

impl From<Held> for u64 {
    fn from(Held { own, borrowed }: Held) -> Self {
        (own as Self) << 32 | borrowed as Self
    }
}

#[cfg(test)]
#[cfg(not(any(loom, shuttle)))]
mod tests {
    use super::*;

    /// Takes as much as there is, at most a thousand.
    fn take_all(share: &Share, pool: &Pool) -> usize {
        (0..1000).filter(|_| share.try_take(pool)).count()
    }

    #[test]
    fn a_reserve_is_never_lent() {
        let pool = Pool::new(10);
        let [flood, quiet] = [(); 2].map(|()| Share::default());
        pool.set_reserved(6);
        flood.set_reserve(&pool, 3);
        quiet.set_reserve(&pool, 3);
        assert_eq!(take_all(&flood, &pool), 3 + 4);
        assert!(quiet.has_room(&pool, 3) && !quiet.has_room(&pool, 4) && !flood.has_room(&pool, 1));
        assert_eq!(take_all(&quiet, &pool), 3);
        assert_eq!(pool.used(), 10);
        // What it borrowed is returned first, so that the other one may borrow it.
        flood.release(&pool, 4);
        assert_eq!(take_all(&quiet, &pool), 4);
        quiet.release(&pool, 7);
        flood.release(&pool, 3);
        assert_eq!((pool.used(), pool.common.load(Relaxed)), (0, 0));
    }

    #[test]
    fn room_beyond_a_smaller_reserve_counts_as_borrowed() {
        let pool = Pool::new(10);
        let [old, new] = [(); 2].map(|()| Share::default());
        pool.set_reserved(6);
        old.set_reserve(&pool, 6);
        assert_eq!(take_all(&old, &pool), 10);
        old.set_reserve(&pool, 3);
        new.set_reserve(&pool, 3);
        assert_eq!(old.held(), Held { own: 3, borrowed: 7 });
        assert_eq!(take_all(&new, &pool), 0, "the pool has no free room");
        old.release(&pool, 2);
        assert!(!old.try_take(&pool), "five are borrowed of four");
        assert_eq!(take_all(&new, &pool), 2);
        old.release(&pool, 8);
        new.release(&pool, 2);
        assert_eq!((pool.used(), pool.common.load(Relaxed)), (0, 0));
        // A reserve that grows takes in what was borrowed.
        pool.set_reserved(0);
        old.set_reserve(&pool, 0);
        assert_eq!(take_all(&old, &pool), 10);
        old.set_reserve(&pool, 4);
        assert_eq!(old.held(), Held { own: 4, borrowed: 6 });
        assert_eq!(pool.common.load(Relaxed), 6);
    }

    #[test]
    fn room_is_given_back_after_its_reserve_is_gone() {
        let pool = Pool::new(1);
        let share = Share::default();
        share.set_reserve(&pool, 1);
        // The first step of `try_take`; then the rule is deleted, and the pool turns out to be full.
        assert!(share.update(|held| Some(Held { own: held.own + 1, ..held })));
        share.set_reserve(&pool, 0);
        assert_eq!(pool.common.load(Relaxed), 1);
        share.undo_own(&pool);
        assert_eq!((share.held(), pool.common.load(Relaxed)), (Held { own: 0, borrowed: 0 }, 0));
    }

    #[test]
    fn room_that_was_taken_anyway_is_counted() {
        let pool = Pool::new(4);
        let share = Share::default();
        pool.set_reserved(2);
        share.set_reserve(&pool, 2);
        share.take_anyway(&pool, 7);
        assert_eq!(share.held(), Held { own: 2, borrowed: 5 });
        assert!(!share.has_room(&pool, 1));
        share.release(&pool, 6);
        assert!(share.has_room(&pool, 3) && !share.has_room(&pool, 4));
    }
}
