//! One charge of the memory store, from locks to decisions.

use smallvec::SmallVec;
use tollgate_core::{Decision, Micros, Outcome, Quota, decide};

use super::shard::{Glimpse, Locked};
use super::view::{View, Write};
use super::{MemoryKey, MemoryStore, OnFull, SWEEP_PER_INSERT, SWEEP_PER_LOCK};
use crate::clock::Clock;
use crate::rules::Mode;
use crate::store::{Charge, Decisions, is_granted};
use crate::sync::Ordering;

/// What a new key of a full store is told to wait where it is denied: nobody can know when there will
/// be room.
const FULL_RETRY_US: u64 = 1_000_000;

/// Where a bucket is to be found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Room {
    /// It is here, or only looked for.
    Held,
    /// It is new, and room for it is reserved.
    Reserved,
    /// It is new, and there is no room for it.
    None,
}

/// A charge's bucket in the shards that are locked for it.
#[derive(Debug)]
struct Part {
    /// Which of the locked shards.
    lock: usize,
    key: MemoryKey,
    room: Room,
    /// What all parts of this bucket cost together.
    cost: u64,
    /// An earlier part is the same bucket, and is charged for both.
    is_again: bool,
}

type Locks<'a> = SmallVec<[(usize, Locked<'a>); 4]>;
type Parts = SmallVec<[Part; 4]>;

impl<C: Clock> MemoryStore<C> {
    /// Charges one bucket: what `charge_many` does, without its lists.
    #[inline]
    pub(super) fn charge_one(&self, charge: &Charge<'_, MemoryKey>) -> Decision {
        let shard = &self.shards[self.shard_of(charge.key)];
        if shard.denied_last()
            && let Some(decisions) = self.deny_without_lock(&[*charge])
        {
            return decisions[0];
        }
        let mut locked = shard.lock();
        // Read under the lock: a charge that comes later never has an earlier time.
        let now = self.clock.now();
        let Some(index) = locked.find(charge.key.hash) else {
            return self.charge_new(locked, charge, now);
        };
        let (decision, write) =
            View::read(&locked, Some(index), charge.quota, now).decide(charge.cost);
        self.write(&mut locked, charge.key, Some(index), charge.quota, write);
        locked.set_denied_last(!decision.is_granted());
        decision
    }

    /// Charges one bucket that is not in the store.
    #[cold]
    fn charge_new<'a>(
        &'a self,
        mut locked: Locked<'a>,
        charge: &Charge<'_, MemoryKey>,
        now: Micros,
    ) -> Decision {
        let room = self.make_room(&mut locked, charge.cost, now);
        let mut overflow;
        let (locked, key) = match room {
            Room::None if self.on_full == OnFull::Deny => return no_room(charge.quota),
            Room::None => {
                overflow = self.shards[self.overflow_shard()].lock();
                (&mut overflow, charge.key.overflow())
            }
            Room::Held | Room::Reserved => (&mut locked, *charge.key),
        };
        let index = locked.find(key.hash);
        let (decision, write) = View::read(locked, index, charge.quota, now).decide(charge.cost);
        let stored = self.write(locked, &key, index, charge.quota, write);
        if room == Room::Reserved && !stored {
            self.release(1);
        }
        decision
    }

    /// Charges all buckets or none.
    pub(super) fn charge_many(&self, charges: &[Charge<'_, MemoryKey>]) -> Decisions {
        let worth_a_look =
            charges.iter().any(|charge| self.shards[self.shard_of(charge.key)].denied_last());
        if worth_a_look && let Some(decisions) = self.deny_without_lock(charges) {
            return decisions;
        }
        let mut locks = self.lock_all(charges);
        let now = self.clock.now();
        let parts = self.find_room(&mut locks, charges, now);

        let decided: SmallVec<[(Decision, Write); 4]> = charges
            .iter()
            .zip(&parts)
            .map(|(charge, part)| match part.room {
                Room::None if self.on_full == OnFull::Deny => {
                    (no_room(charge.quota), Write::Nothing)
                }
                _ => view(&locks, part, charge.quota, now).decide(part.cost),
            })
            .collect();
        let decisions: Decisions = decided.iter().map(|(decision, _)| *decision).collect();
        let granted = is_granted(charges, &decisions);

        let mut answers = Decisions::new();
        for ((charge, part), (decision, write)) in charges.iter().zip(&parts).zip(decided) {
            let (answer, write) = if !granted && decision.is_granted() {
                let (figures, write) = view(&locks, part, charge.quota, now).hold();
                // A look stores nothing, not even the clamp.
                (figures, if part.cost == 0 { Write::Nothing } else { write })
            } else {
                (decision, write)
            };
            answers.push(answer);
            self.settle(&mut locks, part, charge.quota, write, granted || decision.is_granted());
        }
        answers
    }

    /// Answers from a look without locks if it shows a denial that would write nothing: every bucket
    /// is there, undisturbed while all of them were read, and none needs a clamp.
    #[inline]
    fn deny_without_lock(&self, charges: &[Charge<'_, MemoryKey>]) -> Option<Decisions> {
        let now = self.clock.now();
        let mut glimpses = SmallVec::<[Glimpse; 4]>::new();
        for charge in charges {
            let shard = &self.shards[self.shard_of(charge.key)];
            if charge.cost == 0 || charge.quota.keeps_log() {
                return None;
            }
            glimpses.push(shard.glimpse(charge.key.hash, charge.quota.form())?);
        }
        for (charge, glimpse) in charges.iter().zip(&glimpses) {
            if !self.shards[self.shard_of(charge.key)].is_current(*glimpse) {
                return None;
            }
        }
        let mut decisions = Decisions::new();
        let mut granted = true;
        for (charge, glimpse) in charges.iter().zip(&glimpses) {
            let (decision, write) = decide(charge.quota, Some(glimpse.state), now, charge.cost);
            if decision.is_granted() {
                decisions.push(decide(charge.quota, Some(glimpse.state), now, 0).0);
            } else {
                if write.is_some() {
                    return None;
                }
                granted &= charge.mode == Mode::Shadow;
                decisions.push(decision);
            }
        }
        (!granted && !has_twins(charges)).then_some(decisions)
    }

    /// Takes the locks of all shards involved, in the order of their numbers, so that two charges never
    /// wait for each other.
    fn lock_all(&self, charges: &[Charge<'_, MemoryKey>]) -> Locks<'_> {
        let mut numbers: SmallVec<[usize; 4]> =
            charges.iter().map(|charge| self.shard_of(charge.key)).collect();
        numbers.sort_unstable();
        numbers.dedup();
        numbers.into_iter().map(|number| (number, self.shards[number].lock())).collect()
    }

    /// Says for every charge in which locked shard its bucket is, making room for those that are new.
    fn find_room<'a>(
        &'a self,
        locks: &mut Locks<'a>,
        charges: &[Charge<'_, MemoryKey>],
        now: Micros,
    ) -> Parts {
        let mut parts = Parts::new();
        for charge in charges {
            let lock = lock_of(locks, self.shard_of(charge.key));
            let locked = &mut locks[lock].1;
            let twin = parts.iter().find(|part| part.key == *charge.key);
            let room = match twin {
                Some(twin) => twin.room,
                None if locked.find(charge.key.hash).is_some() => Room::Held,
                None => self.make_room(locked, charge.cost, now),
            };
            let (key, cost) = (*charge.key, charge.cost);
            parts.push(Part { lock, key, room, cost, is_again: false });
        }
        self.redirect(locks, &mut parts);
        join_twins(&mut parts);
        parts
    }

    /// Sends the parts that found no room to their overflow buckets, whose shard is the last in order.
    fn redirect<'a>(&'a self, locks: &mut Locks<'a>, parts: &mut Parts) {
        let no_room = |part: &&mut Part| part.room == Room::None;
        if self.on_full == OnFull::Deny || !parts.iter_mut().any(|part| no_room(&part)) {
            return;
        }
        let number = self.overflow_shard();
        locks.push((number, self.shards[number].lock()));
        for part in parts.iter_mut().filter(no_room) {
            part.lock = locks.len() - 1;
            part.key = part.key.overflow();
        }
    }

    /// Room for one more bucket in this shard; a look needs none.
    fn make_room(&self, locked: &mut Locked<'_>, cost: u64, now: Micros) -> Room {
        if cost == 0 {
            let is_full = self.held.load(Ordering::Relaxed) >= self.max_buckets;
            return if is_full { Room::None } else { Room::Held };
        }
        self.sweep_here(locked, SWEEP_PER_INSERT, now);
        if self.try_reserve() {
            return Room::Reserved;
        }
        self.sweep_here(locked, SWEEP_PER_LOCK, now);
        self.sweep_elsewhere(SWEEP_PER_LOCK);
        if self.try_reserve() {
            return Room::Reserved;
        }
        self.overflowed.fetch_add(1, Ordering::Relaxed);
        Room::None
    }

    /// Writes one part's outcome and gives back room that was not used.
    fn settle(
        &self,
        locks: &mut Locks<'_>,
        part: &Part,
        quota: &Quota,
        write: Write,
        granted: bool,
    ) {
        if part.is_again {
            return;
        }
        let locked = &mut locks[part.lock].1;
        let index = locked.find(part.key.hash);
        let stored = self.write(locked, &part.key, index, quota, write);
        if part.room == Room::Reserved && !stored {
            self.release(1);
        }
        locked.set_denied_last(!granted);
    }

    /// Writes what a view said; says whether a bucket was added.
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

/// The bucket of a part as its quota sees it.
fn view<'a>(locks: &'a Locks<'_>, part: &Part, quota: &'a Quota, now: Micros) -> View<'a> {
    let locked = &locks[part.lock].1;
    View::read(locked, locked.find(part.key.hash), quota, now)
}

/// Which of the locks is that of this shard. There is one for every shard involved.
fn lock_of(locks: &Locks<'_>, number: usize) -> usize {
    locks.iter().position(|(held, _)| *held == number).unwrap_or_default()
}

/// Adds up the costs of parts that are the same bucket; the first of them is charged for all.
fn join_twins(parts: &mut Parts) {
    for later in 1..parts.len() {
        let (before, rest) = parts.split_at_mut(later);
        let part = &mut rest[0];
        if let Some(first) = before.iter_mut().find(|first| first.key == part.key) {
            first.cost = first.cost.saturating_add(part.cost);
            part.is_again = true;
        }
    }
    for later in 1..parts.len() {
        if parts[later].is_again {
            let key = parts[later].key;
            parts[later].cost = parts.iter().find(|part| part.key == key).map_or(0, |p| p.cost);
        }
    }
}

/// Does any bucket appear twice?
fn has_twins(charges: &[Charge<'_, MemoryKey>]) -> bool {
    (1..charges.len()).any(|later| charges[..later].iter().any(|c| c.key == charges[later].key))
}

/// The answer to a new key of a full store where those are denied.
fn no_room(quota: &Quota) -> Decision {
    Decision {
        outcome: Outcome::Denied { retry_after: FULL_RETRY_US },
        limit: quota.capacity(),
        remaining: 0,
        reset_after: FULL_RETRY_US,
    }
}
