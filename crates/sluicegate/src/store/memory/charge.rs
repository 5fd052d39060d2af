//! Slow path: charges of buckets that are new, were written under another quota, keep
//! a log, or appear twice in one charge; and probes.

use std::sync::Arc;

use sluicegate_core::{Decision, Micros, Outcome, Quota};
use smallvec::SmallVec;

use super::account::{Account, Place};
use super::hot::Locks;
use super::shard::Locked;
use super::view::{View, Write};
use super::{MemoryKey, MemoryStore, OnFull, SWEEP_PER_LOCK};
use crate::clock::Clock;
use crate::store::{Charge, Decisions, is_granted};
use crate::sync::Ordering;

/// `retry_after` of a key that is denied because there is no room. The time at which there will be room is
/// unknown, so this is a guess.
const FULL_RETRY_US: u64 = 1_000_000;

/// Room of a bucket in the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Room {
    /// The bucket is stored, or is only peeked at, or is the only one of its rule: it needs no room.
    Held,
    /// The bucket is new, and room for it is taken.
    Taken,
    /// The bucket is new, and there is no room: its overflow bucket is charged instead.
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
    /// Account of a bucket that is not stored; `None` if it is stored.
    account: Option<Arc<Account>>,
    /// Sum of the costs of all charged parts of this bucket; of a probe, its own cost.
    cost: u64,
    is_probe: bool,
    /// Index of the first part of this bucket, whose quota applies to all of them.
    first: usize,
    /// Index of the part that writes for all parts of this bucket: the first that is charged, else the first.
    payer: usize,
}

type Parts = SmallVec<[Part; 4]>;

/// Account and place of a bucket, whose log may grow.
type LogRoom<'a> = (Option<&'a Account>, Place);

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
        let logs = (locked.account(index).map(|account| &**account), locked.place());
        let (decision, write) = self.judge(&view, charge.quota, charge.cost, charge.is_probe, logs);
        self.write(&mut locked, charge.key, Some(index), charge.quota, write, None);
        locked.set_denied_last(!decision.is_granted());
        decision
    }

    /// Charges one bucket that is not in the store.
    fn charge_new<'a>(
        &'a self,
        mut locked: Locked<'a>,
        charge: &Charge<'_, MemoryKey>,
    ) -> Decision {
        let account = self.room.account(charge.key);
        if charge.cost > 0 {
            self.sweep_for(&mut locked, &account, 1);
        }
        let room = self.take_room(charge.key, &account, is_charged(charge));
        let mut overflow;
        let (locked, key) = match room {
            Room::Refused => return no_room(charge.quota, charge.cost),
            Room::None => {
                overflow = self.shards[self.overflow_shard(charge.key)].lock();
                let key = charge.key.overflow(charge.quota);
                if !self.has_overflow_room(&mut overflow, &key, &account) {
                    return no_room(charge.quota, charge.cost);
                }
                (&mut overflow, key)
            }
            Room::Held | Room::Taken => (&mut locked, *charge.key),
        };
        let now = self.now(locked);
        let index = locked.find(key.hash);
        let view = View::read(locked, index, charge.quota, now);
        let logs = (Some(&*account), locked.place());
        let (decision, write) = self.judge(&view, charge.quota, charge.cost, charge.is_probe, logs);
        let stored = self.write(locked, &key, index, charge.quota, write, Some(&account));
        if room == Room::Taken && !stored {
            account.release_bucket();
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
                let locked = &locks[part.lock].1;
                let stored = locked.find(part.key.hash);
                let account = stored.and_then(|index| locked.account(index));
                let account = account.or(part.account.as_ref()).map(|account| &**account);
                let view = View::read(locked, stored, quota, now);
                self.judge(&view, quota, part.cost, part.is_probe, (account, locked.place()))
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

    /// Refunds the costs of these charges. A bucket that is not stored is full, and stays so.
    pub(super) fn credit(&self, credits: &[Charge<'_, MemoryKey>]) -> Decisions {
        let (mut locks, _) = self.lock_and_find(credits);
        let now = self.now_of_all(&mut locks);
        let place = |credit: &Charge<'_, MemoryKey>| {
            // The same bucket twice has the quota of the first.
            let first = credits.iter().find(|first| first.key == credit.key);
            let lock = lock_of(&locks, self.shard_of(credit.key));
            (lock, *first.unwrap_or(credit).quota)
        };
        let places: SmallVec<[(usize, Quota); 4]> = credits.iter().map(place).collect();
        for (Charge { key, cost, .. }, (lock, quota)) in credits.iter().zip(&places) {
            let locked = &mut locks[*lock].1;
            if let Some(index) = locked.find(key.hash) {
                let write = View::read(locked, Some(index), quota, now).credit(*cost);
                self.write(locked, key, Some(index), quota, write, None);
            }
        }
        let figures = |(credit, (lock, quota)): (&Charge<'_, MemoryKey>, &(usize, Quota))| {
            let locked = &locks[*lock].1;
            View::read(locked, locked.find(credit.key.hash), quota, now).decide(0).0
        };
        credits.iter().zip(&places).map(figures).collect()
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
                self.sweep_for(locked, &self.room.account(charge.key), new);
            }
        }
        let mut parts = Parts::new();
        for (number, charge) in charges.iter().enumerate() {
            let lock = lock_of(locks, self.shard_of(charge.key));
            let twin = parts.iter().find(|part| part.key == *charge.key);
            let (room, account) = match twin {
                Some(twin) => (twin.room, twin.account.clone()),
                None if locks[lock].1.find(charge.key.hash).is_some() => (Room::Held, None),
                None => {
                    let account = self.room.account(charge.key);
                    // A peek needs room too if a later part charges the same bucket.
                    let needs_room = charges.iter().any(|c| c.key == charge.key && is_charged(c));
                    (self.take_room(charge.key, &account, needs_room), Some(account))
                }
            };
            let Charge { key, cost, is_probe, .. } = *charge;
            parts.push(Part {
                lock,
                key: *key,
                room,
                account,
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

    /// Redirects the parts without room to their overflow buckets, whose shards are the last in lock order.
    fn redirect<'a>(
        &'a self,
        locks: &mut Locks<'a>,
        parts: &mut Parts,
        charges: &[Charge<'_, MemoryKey>],
    ) {
        let without_room = parts.iter().filter(|part| part.room == Room::None);
        let mut shards: SmallVec<[usize; 2]> =
            without_room.map(|part| self.overflow_shard(&part.key)).collect();
        shards.sort_unstable();
        shards.dedup();
        locks.extend(shards.into_iter().map(|number| (number, self.shards[number].lock())));
        for (part, charge) in parts.iter_mut().zip(charges) {
            if let (Room::None, Some(account)) = (part.room, &part.account) {
                let lock = lock_of(locks, self.overflow_shard(&part.key));
                let key = part.key.overflow(charge.quota);
                if self.has_overflow_room(&mut locks[lock].1, &key, account) {
                    (part.lock, part.key) = (lock, key);
                } else {
                    part.room = Room::Refused;
                }
            }
        }
    }

    /// Is this overflow bucket stored, or is there room for it?
    fn has_overflow_room(
        &self,
        locked: &mut Locked<'_>,
        key: &MemoryKey,
        account: &Account,
    ) -> bool {
        let has_room = || account.has_overflow_room(key.hash);
        locked.find(key.hash).is_some() || has_room() || {
            self.sweep_here(locked, SWEEP_PER_LOCK);
            has_room()
        }
    }

    /// Decides on one part. A granted probe takes nothing.
    fn judge(
        &self,
        view: &View<'_>,
        quota: &Quota,
        cost: u64,
        is_probe: bool,
        logs: LogRoom<'_>,
    ) -> (Decision, Write) {
        let (decision, write) = self.decide_within_logs(view, quota, cost, logs);
        let is_spared = is_probe && decision.is_granted() && cost > 0;
        if is_spared { view.hold() } else { (decision, write) }
    }

    /// Decides, and denies a grant that would grow a log while there is no room for that.
    fn decide_within_logs(
        &self,
        view: &View<'_>,
        quota: &Quota,
        cost: u64,
        logs: LogRoom<'_>,
    ) -> (Decision, Write) {
        let (decision, write) = view.decide(cost);
        let grows = matches!(&write, Write::Log(edit)
            if edit.keep.len() + usize::from(edit.tail.is_some()) > view.log_len());
        if let (true, (Some(account), place)) = (grows, logs)
            && !self.has_log_room(account, place)
        {
            self.note_overflow(account);
            return (no_room(quota, cost), Write::Nothing);
        }
        (decision, write)
    }

    /// May logs of this account grow? Sweeps first if they may not, so that expired logs do not block others.
    fn has_log_room(&self, account: &Account, place: Place) -> bool {
        account.has_log_room(place) || {
            self.sweep_hard(None, account);
            account.has_log_room(place)
        }
    }

    /// Room for one more bucket; a peek takes none. The only bucket of a rule needs none.
    fn take_room(&self, key: &MemoryKey, account: &Account, is_charged: bool) -> Room {
        if key.is_shared() {
            return Room::Held;
        }
        if !is_charged {
            return if account.has_room(1) { Room::Held } else { self.no_room() };
        }
        if account.try_take_bucket() {
            return Room::Taken;
        }
        self.note_overflow(account);
        self.no_room()
    }

    /// Counts a charge that found no room.
    fn note_overflow(&self, account: &Account) {
        self.overflowed.fetch_add(1, Ordering::Relaxed);
        account.note_overflow();
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
        let stored = self.write(locked, &part.key, index, quota, write, part.account.as_ref());
        if let (Room::Taken, false, Some(account)) = (part.room, stored, &part.account) {
            account.release_bucket();
        }
        locked.set_denied_last(!granted);
    }

    /// Applies a write. A bucket that is not stored needs an account. Returns whether a bucket was added.
    #[inline]
    pub(super) fn write(
        &self,
        locked: &mut Locked<'_>,
        key: &MemoryKey,
        index: Option<usize>,
        quota: &Quota,
        write: Write,
        account: Option<&Arc<Account>>,
    ) -> bool {
        let form = quota.form();
        let same_form = index.filter(|index| locked.stored_as(*index, form).is_some());
        match (write, same_form) {
            (Write::Nothing, _) => false,
            (Write::State(state), Some(index)) => {
                locked.update(index, state);
                false
            }
            (Write::State(state), None) => locked.put(key.hash, form, state, account),
            (Write::Log(edit), Some(index)) => {
                locked.edit(index, &edit);
                false
            }
            (Write::Log(edit), None) => locked.put_log(key.hash, form, &edit, account),
            (Write::Forget, _) => {
                locked.remove(key.hash);
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
