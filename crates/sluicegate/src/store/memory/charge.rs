//! Slow path: charges of buckets that are new, were written under another quota, keep
//! a log, or appear twice in one charge; and probes.

use sluicegate_core::{Decision, Micros, Outcome, Quota};
use smallvec::SmallVec;

use super::hot::Locks;
use super::shard::Locked;
use super::view::{View, Write};
use super::{
    LOG_ENTRIES_PER_BUCKET, MemoryKey, MemoryStore, OVERFLOW_BUCKETS_MAX, OnFull, SWEEP_PER_LOCK,
};
use crate::clock::Clock;
use crate::store::{Charge, Decisions, is_granted};
use crate::sync::Ordering;

/// `retry_after` of a new key that is denied because the store is full. The time at which there will be room is
/// unknown, so this is a guess.
const FULL_RETRY_US: u64 = 1_000_000;

/// Room of a bucket in the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Room {
    /// The bucket is stored, or only peeked at, which needs no room.
    Held,
    /// The bucket is new, and room for it is reserved.
    Reserved,
    /// The bucket is new, and the store is full: its overflow bucket is charged instead.
    None,
    /// There is no room for an overflow bucket either, or new keys are denied.
    Refused,
}

/// A charge's bucket in the shards that are locked for it.
#[derive(Debug)]
struct Part {
    /// Index of its shard in the locks.
    lock: usize,
    key: MemoryKey,
    room: Room,
    /// Sum of the costs of all charged parts of this bucket; of a probe, its own cost.
    cost: u64,
    is_probe: bool,
    /// Index of the first part of this bucket, whose quota applies to all of them.
    first: usize,
    /// Index of the part that writes for all parts of this bucket: the first that is charged, else the first.
    payer: usize,
}

type Parts = SmallVec<[Part; 4]>;

impl<C: Clock> MemoryStore<C> {
    /// Charges one bucket that is new, was written under another form, or keeps a log.
    #[cold]
    pub(super) fn charge_one_unusual<'a>(
        &'a self,
        mut locked: Locked<'a>,
        charge: &Charge<'_, MemoryKey>,
    ) -> Decision {
        let Some(index) = locked.find(charge.key.hash) else {
            return self.charge_new(locked, charge);
        };
        let now = self.now(&mut locked);
        let view = View::read(&locked, Some(index), charge.quota, now);
        let (decision, write) = self.judge(&view, charge.quota, charge.cost, charge.is_probe);
        self.write(&mut locked, charge.key, Some(index), charge.quota, write);
        locked.set_denied_last(!decision.is_granted());
        decision
    }

    /// Charges one bucket that is not in the store.
    fn charge_new<'a>(
        &'a self,
        mut locked: Locked<'a>,
        charge: &Charge<'_, MemoryKey>,
    ) -> Decision {
        if charge.cost > 0 {
            self.sweep_for(&mut locked, 1);
        }
        let room = self.take_room(is_charged(charge));
        let mut overflow;
        let (locked, key) = match room {
            Room::Refused => return no_room(charge.quota, charge.cost),
            Room::None => {
                overflow = self.shards[self.overflow_shard()].lock();
                let key = charge.key.overflow(charge.quota);
                if !self.has_overflow_room(&mut overflow, &key) {
                    return no_room(charge.quota, charge.cost);
                }
                (&mut overflow, key)
            }
            Room::Held | Room::Reserved => (&mut locked, *charge.key),
        };
        let now = self.now(locked);
        let index = locked.find(key.hash);
        let view = View::read(locked, index, charge.quota, now);
        let (decision, write) = self.judge(&view, charge.quota, charge.cost, charge.is_probe);
        let stored = self.write(locked, &key, index, charge.quota, write);
        if room == Room::Reserved && !stored {
            self.release(locked, 1);
        }
        decision
    }

    /// Charges all buckets or none, with any kind of bucket among them.
    #[cold]
    pub(super) fn charge_unusual<'a>(
        &'a self,
        locks: &mut Locks<'a>,
        charges: &[Charge<'_, MemoryKey>],
    ) -> Decisions {
        let parts = self.find_room(locks, charges);
        // Read under all locks, including that of the overflow shard.
        let now = self.now_of_all(locks);

        let decided: SmallVec<[(Decision, Write); 4]> = parts
            .iter()
            .map(|part| {
                let quota = charges[part.first].quota;
                if part.room == Room::Refused {
                    return (no_room(quota, part.cost), Write::Nothing);
                }
                self.judge(&view(locks, part, quota, now), quota, part.cost, part.is_probe)
            })
            .collect();
        let decisions: Decisions = decided.iter().map(|(decision, _)| *decision).collect();
        let granted = is_granted(charges, &decisions);

        let mut answers = Decisions::new();
        for (number, (part, (decision, write))) in parts.iter().zip(decided).enumerate() {
            let quota = charges[part.first].quota;
            let is_spared = !granted && decision.is_granted() && part.cost > 0;
            let (answer, write) =
                if is_spared { view(locks, part, quota, now).hold() } else { (decision, write) };
            answers.push(answer);
            // If no part of this bucket is charged, each writes for itself: peeks and probes write clamps only.
            if part.payer == number || parts[part.payer].cost == 0 {
                self.settle(locks, part, quota, write, granted || decision.is_granted());
            }
        }
        answers
    }

    /// Finds the locked shard of every bucket, and reserves room for new ones.
    fn find_room<'a>(&'a self, locks: &mut Locks<'a>, charges: &[Charge<'_, MemoryKey>]) -> Parts {
        // All sweeps come first: they may evict a full bucket of this charge, which is new then.
        let mut new = 0;
        for charge in charges {
            let lock = lock_of(locks, self.shard_of(charge.key));
            let locked = &mut locks[lock].1;
            if charge.cost > 0 && locked.find(charge.key.hash).is_none() {
                new += 1;
                self.sweep_for(locked, new);
            }
        }
        let mut parts = Parts::new();
        for (number, charge) in charges.iter().enumerate() {
            let lock = lock_of(locks, self.shard_of(charge.key));
            let twin = parts.iter().find(|part| part.key == *charge.key);
            let room = match twin {
                Some(twin) => twin.room,
                None if locks[lock].1.find(charge.key.hash).is_some() => Room::Held,
                // A peek needs room too if a later part charges the same bucket.
                None => {
                    self.take_room(charges.iter().any(|c| c.key == charge.key && is_charged(c)))
                }
            };
            let Charge { key, cost, is_probe, .. } = *charge;
            parts.push(Part {
                lock,
                key: *key,
                room,
                cost,
                is_probe,
                first: number,
                payer: number,
            });
        }
        self.redirect(locks, &mut parts, charges);
        join_twins(&mut parts);
        parts
    }

    /// Redirects the parts without room to their overflow buckets, whose shard is the last in lock order.
    fn redirect<'a>(
        &'a self,
        locks: &mut Locks<'a>,
        parts: &mut Parts,
        charges: &[Charge<'_, MemoryKey>],
    ) {
        if parts.iter().all(|part| part.room != Room::None) {
            return;
        }
        let number = self.overflow_shard();
        locks.push((number, self.shards[number].lock()));
        let lock = locks.len() - 1;
        for (part, charge) in parts.iter_mut().zip(charges) {
            if part.room == Room::None {
                let key = part.key.overflow(charge.quota);
                if self.has_overflow_room(&mut locks[lock].1, &key) {
                    (part.lock, part.key) = (lock, key);
                } else {
                    part.room = Room::Refused;
                }
            }
        }
    }

    /// Is this overflow bucket stored, or is there room for it? There are few of them: one for each quota of a
    /// rule, and for each quota that comes with a charge.
    fn has_overflow_room(&self, locked: &mut Locked<'_>, key: &MemoryKey) -> bool {
        if locked.find(key.hash).is_some() || locked.buckets() < OVERFLOW_BUCKETS_MAX {
            return true;
        }
        self.sweep_here(locked, SWEEP_PER_LOCK);
        locked.buckets() < OVERFLOW_BUCKETS_MAX
    }

    /// Decides on one part. A granted probe takes nothing.
    fn judge(
        &self,
        view: &View<'_>,
        quota: &Quota,
        cost: u64,
        is_probe: bool,
    ) -> (Decision, Write) {
        let (decision, write) = self.decide_within_logs(view, quota, cost);
        let is_spared = is_probe && decision.is_granted() && cost > 0;
        if is_spared { view.hold() } else { (decision, write) }
    }

    /// Decides, and denies a grant that would grow a log while all logs together are at their
    /// maximum.
    fn decide_within_logs(&self, view: &View<'_>, quota: &Quota, cost: u64) -> (Decision, Write) {
        let (decision, write) = view.decide(cost);
        let grows = matches!(&write, Write::Log(edit)
            if edit.keep.len() + usize::from(edit.tail.is_some()) > view.log_len());
        if grows && !self.has_log_room() {
            self.overflowed.fetch_add(1, Ordering::Relaxed);
            return (no_room(quota, cost), Write::Nothing);
        }
        (decision, write)
    }

    /// May logs grow? Sweeps first if they may not, so that expired logs do not block others.
    fn has_log_room(&self) -> bool {
        let entries_max = self.max_buckets.saturating_mul(LOG_ENTRIES_PER_BUCKET);
        let has_room = || self.log_entries.load(Ordering::Relaxed) < entries_max;
        has_room() || {
            self.sweep_hard(None);
            has_room()
        }
    }

    /// Room for one more bucket; a peek reserves none.
    fn take_room(&self, is_charged: bool) -> Room {
        if !is_charged {
            let is_full = self.held.load(Ordering::Relaxed) >= self.max_buckets;
            return if is_full { self.no_room() } else { Room::Held };
        }
        if self.try_reserve() {
            return Room::Reserved;
        }
        self.overflowed.fetch_add(1, Ordering::Relaxed);
        self.no_room()
    }

    fn no_room(&self) -> Room {
        match self.on_full {
            OnFull::Overflow => Room::None,
            OnFull::Deny => Room::Refused,
        }
    }

    /// Writes one part's outcome and releases room that was not used.
    fn settle(
        &self,
        locks: &mut Locks<'_>,
        part: &Part,
        quota: &Quota,
        write: Write,
        granted: bool,
    ) {
        let locked = &mut locks[part.lock].1;
        let index = locked.find(part.key.hash);
        let stored = self.write(locked, &part.key, index, quota, write);
        if part.room == Room::Reserved && !stored {
            self.release(locked, 1);
        }
        locked.set_denied_last(!granted);
    }

    /// Applies a write. Returns whether a bucket was added.
    #[inline]
    pub(super) fn write(
        &self,
        locked: &mut Locked<'_>,
        key: &MemoryKey,
        index: Option<usize>,
        quota: &Quota,
        write: Write,
    ) -> bool {
        let form = quota.form();
        let same_form = index.filter(|index| locked.stored_as(*index, form).is_some());
        match (write, same_form) {
            (Write::Nothing, _) => false,
            (Write::State(state), Some(index)) => {
                locked.update(index, state);
                false
            }
            (Write::State(state), None) => locked.put(key.hash, form, state),
            (Write::Log(edit), Some(index)) => {
                locked.edit(index, &edit);
                false
            }
            (Write::Log(edit), None) => locked.put_log(key.hash, form, &edit),
            (Write::Forget, _) => {
                self.forget(locked, key);
                false
            }
        }
    }
}

/// The bucket of a part under its quota.
fn view<'a>(locks: &'a Locks<'_>, part: &Part, quota: &'a Quota, now: Micros) -> View<'a> {
    let locked = &locks[part.lock].1;
    View::read(locked, locked.find(part.key.hash), quota, now)
}

/// Index of this shard in the locks, which hold every shard involved.
fn lock_of(locks: &Locks<'_>, number: usize) -> usize {
    locks.iter().position(|(held, _)| *held == number).unwrap_or_default()
}

/// Does the charge take tokens, if granted?
fn is_charged(charge: &Charge<'_, MemoryKey>) -> bool {
    charge.cost > 0 && !charge.is_probe
}

/// Adds up the costs of parts of the same bucket, except probes; the first of them is charged for all.
fn join_twins(parts: &mut Parts) {
    for later in 1..parts.len() {
        let Part { key, cost, is_probe, .. } = parts[later];
        let Some(first) = parts[..later].iter().position(|part| part.key == key) else { continue };
        parts[later].first = first;
        let payer = parts[first].payer;
        if parts[payer].is_probe && !is_probe {
            parts[first].payer = later;
        } else if !is_probe {
            parts[payer].cost = parts[payer].cost.saturating_add(cost);
        }
    }
    for number in 0..parts.len() {
        let payer = parts[parts[number].first].payer;
        parts[number].payer = payer;
        if !parts[number].is_probe {
            parts[number].cost = parts[payer].cost;
        }
    }
}

/// Decision on a new key that is denied because the store is full. A peek is granted, and shows
/// no remaining tokens.
fn no_room(quota: &Quota, cost: u64) -> Decision {
    let outcome = match cost {
        0 => Outcome::Granted { delay: 0 },
        cost if cost > quota.capacity() => Outcome::Never,
        _ => Outcome::Denied { retry_after: FULL_RETRY_US },
    };
    Decision { outcome, limit: quota.capacity(), remaining: 0, reset_after: FULL_RETRY_US }
}
