//! Fast path: every bucket is stored, was written under the form of its
//! quota, keeps no log, and is charged. All other charges take the slow path in `charge`.
//!
//! Memory access dominates the time, so each bucket is looked up once, and before the next lock in order
//! is taken: the locks of buckets that all requests share come last and are held only to decide and write.

use sluicegate_core::{Decision, Micros, State, clamp, decide};
use smallvec::SmallVec;

use super::shard::{Glimpse, Locked, Shard};
use super::table::Record;
use super::{MemoryKey, MemoryStore};
use crate::clock::Clock;
use crate::rules::Mode;
use crate::store::{Charge, Decisions, is_granted};

/// Shards by number, their locks held.
pub(super) type Locks<'a> = SmallVec<[(usize, Locked<'a>); 4]>;

/// Position and content of a charge's bucket.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    /// Index of its shard in the locks.
    lock: usize,
    index: usize,
    record: Record,
}

impl<C: Clock> MemoryStore<C> {
    /// Charges one bucket.
    #[inline]
    pub(super) fn charge_one(&self, charge: &Charge<'_, MemoryKey>) -> Decision {
        let shard = &self.shards[self.shard_of(charge.key)];
        if shard.denied_last()
            && let Some(decision) = self.deny_one_without_lock(shard, charge)
        {
            return decision;
        }
        let mut locked = shard.lock();
        let found = locked.record_of(charge.key.hash, charge.quota).filter(|_| !charge.is_probe);
        let Some((index, record)) = found else {
            return self.charge_one_unusual(locked, charge);
        };
        let now = self.now(&mut locked);
        let (decision, state) = decide(charge.quota, Some(record.state), now, charge.cost);
        if let Some(state) = state {
            locked.set_record(index, Record { state, ..record });
        }
        locked.set_denied_last(!decision.is_granted());
        decision
    }

    /// Charges all buckets or none.
    pub(super) fn charge_many(&self, charges: &[Charge<'_, MemoryKey>]) -> Decisions {
        let denied_last =
            |charge: &Charge<'_, _>| self.shards[self.shard_of(charge.key)].denied_last();
        if charges.iter().any(denied_last)
            && let Some(decisions) = self.deny_without_lock(charges)
        {
            return decisions;
        }
        let (mut locks, found) = self.lock_and_find(charges);
        if found.len() < charges.len() || has_probes(charges) || has_twins(charges) {
            return self.charge_unusual(&mut locks, charges);
        }
        let now = self.now_of_all(&mut locks);
        let decided: SmallVec<[(Decision, Option<State>); 4]> = charges
            .iter()
            .zip(&found)
            .map(|(charge, found)| decide(charge.quota, Some(found.record.state), now, charge.cost))
            .collect();
        let granted = charges
            .iter()
            .zip(&decided)
            .all(|(charge, (decision, _))| charge.mode != Mode::Enforce || decision.is_granted());
        let mut answers = Decisions::new();
        for ((charge, found), (decision, state)) in charges.iter().zip(&found).zip(decided) {
            let is_spared = !granted && decision.is_granted() && charge.cost > 0;
            let (answer, state) =
                if is_spared { spare(charge, found.record.state, now) } else { (decision, state) };
            let locked = &mut locks[found.lock].1;
            if let Some(state) = state {
                locked.set_record(found.index, Record { state, ..found.record });
            }
            locked.set_denied_last(!granted && !decision.is_granted());
            answers.push(answer);
        }
        answers
    }

    /// Takes the locks of all shards involved, in the order of their numbers, so that two charges never
    /// deadlock; and finds the buckets, in the order of the charges. Buckets that need the slow path
    /// are left out.
    pub(super) fn lock_and_find(
        &self,
        charges: &[Charge<'_, MemoryKey>],
    ) -> (Locks<'_>, SmallVec<[Found; 4]>) {
        let numbers = charges.iter().map(|charge| self.shard_of(charge.key));
        let mut order: SmallVec<[(usize, usize); 4]> = numbers.zip(0..).collect();
        order.sort_unstable();
        let mut locks = Locks::new();
        let mut found: SmallVec<[(usize, Found); 4]> = SmallVec::new();
        for (number, position) in order {
            if locks.last().is_none_or(|(last, _)| *last != number) {
                locks.push((number, self.shards[number].lock()));
            }
            let (lock, charge) = (locks.len() - 1, &charges[position]);
            if let Some((index, record)) = locks[lock].1.record_of(charge.key.hash, charge.quota) {
                found.push((position, Found { lock, index, record }));
            }
        }
        found.sort_unstable_by_key(|(position, _)| *position);
        (locks, found.into_iter().map(|(_, found)| found).collect())
    }

    /// Answers from an optimistic read without a lock, if that shows a denial that writes nothing.
    #[inline]
    fn deny_one_without_lock(
        &self,
        shard: &Shard,
        charge: &Charge<'_, MemoryKey>,
    ) -> Option<Decision> {
        if charge.cost == 0 || charge.quota.keeps_log() {
            return None;
        }
        let glimpse = shard.glimpse(charge.key.hash, charge.quota.form())?;
        let now = self.clock.now();
        if !shard.is_current(glimpse) {
            return None;
        }
        let (decision, state) = decide(charge.quota, Some(glimpse.state), now, charge.cost);
        (!decision.is_granted() && state.is_none()).then_some(decision)
    }

    /// The same for several buckets: every bucket is stored, none was written while all of them were read, and
    /// none needs a clamp.
    fn deny_without_lock(&self, charges: &[Charge<'_, MemoryKey>]) -> Option<Decisions> {
        let mut glimpses = SmallVec::<[Glimpse; 4]>::new();
        for charge in charges {
            let shard = &self.shards[self.shard_of(charge.key)];
            if charge.cost == 0 || charge.quota.keeps_log() {
                return None;
            }
            glimpses.push(shard.glimpse(charge.key.hash, charge.quota.form())?);
        }
        // Read between the glimpses and the check that they are current, as if under all locks: no
        // bucket was charged at a later time, and none changes at this time.
        let now = self.clock.now();
        for (charge, glimpse) in charges.iter().zip(&glimpses) {
            if !self.shards[self.shard_of(charge.key)].is_current(*glimpse) {
                return None;
            }
        }
        let mut answers = Decisions::new();
        for (charge, Glimpse { state, .. }) in charges.iter().zip(&glimpses) {
            let (decision, write) = decide(charge.quota, Some(*state), now, charge.cost);
            let (answer, write) =
                if decision.is_granted() { spare(charge, *state, now) } else { (decision, write) };
            if write.is_some() {
                return None;
            }
            answers.push(answer);
        }
        (!is_granted(charges, &answers) && !has_twins(charges)).then_some(answers)
    }

    /// The time of a charge of one shard's buckets. It is read under the lock, so that a later charge
    /// never has an earlier time.
    #[inline]
    pub(super) fn now(&self, locked: &mut Locked<'_>) -> Micros {
        let now = self.clock.now();
        if C::SKEW_US == 0 {
            return now;
        }
        let now = locked.no_earlier(now, C::SKEW_US);
        locked.set_latest(now);
        now
    }

    /// The time of a charge of several shards' buckets.
    #[inline]
    pub(super) fn now_of_all(&self, locks: &mut Locks<'_>) -> Micros {
        let mut now = self.clock.now();
        if C::SKEW_US > 0 {
            for (_, locked) in &*locks {
                now = locked.no_earlier(now, C::SKEW_US);
            }
            for (_, locked) in locks {
                locked.set_latest(now);
            }
        }
        now
    }
}

/// Decision and write of a bucket that would have granted its part, when another bucket denied the charge.
fn spare(charge: &Charge<'_, MemoryKey>, state: State, now: Micros) -> (Decision, Option<State>) {
    let (figures, _) = decide(charge.quota, Some(state), now, 0);
    (figures, clamp(charge.quota, Some(state), now))
}

/// Is any part a probe?
fn has_probes(charges: &[Charge<'_, MemoryKey>]) -> bool {
    charges.iter().any(|charge| charge.is_probe)
}

/// Does any bucket appear twice?
fn has_twins(charges: &[Charge<'_, MemoryKey>]) -> bool {
    (1..charges.len()).any(|later| charges[..later].iter().any(|c| c.key == charges[later].key))
}
