//! A charge split into calls: one per slot in a cluster, one in total elsewhere.

use sluicegate_core::Decision;
use smallvec::SmallVec;

use super::call::{Call, Op, Part, Parts, Reply};
use super::decide::{decide_seen, decisions};
use super::key::RedisKey;
use super::trouble::Trouble;
use crate::rules::Mode;
use crate::store::{Charge, Decisions};

pub(super) type Groups = SmallVec<[Group; 2]>;

/// Buckets that one call charges.
#[derive(Debug)]
pub(super) struct Group {
    /// Each bucket once, and once for each probed cost.
    pub(super) parts: Parts,
    /// Index of each charge in this group, and that of its part.
    members: SmallVec<[(usize, usize); 4]>,
}

/// Reply of Redis to a group.
#[derive(Debug)]
pub(super) struct GroupReply {
    pub(super) reply: Reply,
    pub(super) decisions: Decisions,
}

/// Splits a charge. Costs of the same bucket are added, under the quota of its first part.
pub(super) fn split(charges: &[Charge<'_, RedisKey>], by_slot: bool) -> Groups {
    let mut groups = Groups::new();
    for (number, charge) in charges.iter().enumerate() {
        let is_here = |group: &&mut Group| {
            !by_slot || group.parts.first().is_some_and(|part| part.key.slot() == charge.key.slot())
        };
        match groups.iter_mut().find(is_here) {
            Some(group) => group.add(number, charge),
            None => {
                let mut group = Group { parts: Parts::new(), members: SmallVec::new() };
                group.add(number, charge);
                groups.push(group);
            }
        }
    }
    groups
}

impl Group {
    fn add(&mut self, number: usize, charge: &Charge<'_, RedisKey>) {
        let Charge { key, quota, cost, mode, is_probe, .. } = *charge;
        let is_twin = |part: &Part| {
            part.key == *key && part.is_probe == is_probe && (!is_probe || part.cost == cost)
        };
        let position = self.parts.iter().position(is_twin).unwrap_or(self.parts.len());
        if let Some(part) = self.parts.get_mut(position) {
            if !is_probe {
                part.cost = part.cost.saturating_add(cost);
            }
            if mode == Mode::Enforce {
                part.mode = Mode::Enforce;
            }
        } else {
            let first = self.parts.iter().find(|part| part.key == *key);
            let quota = first.map_or(*quota, |first| first.quota);
            self.parts.push(Part { key: key.clone(), quota, cost, mode, is_probe });
        }
        self.members.push((number, position));
    }

    /// Splits the group into one per bucket.
    pub(super) fn apart(&self) -> Groups {
        let mut groups = Groups::new();
        for (position, part) in self.parts.iter().enumerate() {
            let is_here = |group: &&mut Self| group.parts[0].key == part.key;
            let members = self.members.iter().filter(|(_, own)| *own == position);
            let numbers = members.map(|(number, _)| *number);
            match groups.iter_mut().find(is_here) {
                Some(group) => {
                    let position = group.parts.len();
                    group.members.extend(numbers.map(|number| (number, position)));
                    group.parts.push(part.clone());
                }
                None => groups.push(Self {
                    parts: Parts::from_iter([part.clone()]),
                    members: numbers.map(|number| (number, 0)).collect(),
                }),
            }
        }
        groups
    }

    /// The call that charges the group.
    pub(super) fn charge(&self) -> Call {
        Call { op: Op::Charge, parts: self.parts.clone() }
    }

    /// The call that refunds the costs of the group.
    pub(super) fn refund(&self) -> Call {
        Call { op: Op::Refund, parts: self.parts.clone() }
    }

    /// The decisions of a reply to the charge.
    ///
    /// # Errors
    ///
    /// A reply that does not match the call.
    pub(super) fn read(&self, reply: Reply) -> Result<GroupReply, Trouble> {
        let decisions = decisions(&self.parts, &reply)?;
        Ok(GroupReply { reply, decisions })
    }

    /// The charges of this group.
    pub(super) fn charges<'a>(
        &self,
        charges: &[Charge<'a, RedisKey>],
    ) -> SmallVec<[Charge<'a, RedisKey>; 4]> {
        self.members.iter().map(|(number, _)| charges[*number]).collect()
    }

    /// Number of charges in this group.
    pub(super) fn len(&self) -> usize {
        self.members.len()
    }

    /// Copies the decisions on its parts to the positions of its charges.
    pub(super) fn spread(&self, decisions: &[Decision], all: &mut [Option<Decision>]) {
        for (number, part) in &self.members {
            all[*number] = decisions.get(*part).copied();
        }
    }

    /// Copies decisions, one per charge, to the positions of its charges.
    pub(super) fn spread_each(&self, decisions: &[Decision], all: &mut [Option<Decision>]) {
        for ((number, _), decision) in self.members.iter().zip(decisions) {
            all[*number] = Some(*decision);
        }
    }

    /// The calls that undo a granted reply, because another group denied the charge. Also replaces the
    /// decisions by uncharged figures.
    pub(super) fn undo(&self, answered: &mut GroupReply) -> SmallVec<[Call; 4]> {
        let mut calls = SmallVec::new();
        let (at, seen) = (answered.reply.now, &answered.reply.seen);
        for ((part, seen), decision) in self.parts.iter().zip(seen).zip(&mut answered.decisions) {
            if part.cost == 0 || part.is_probe || !decision.is_granted() {
                continue;
            }
            calls.push(Call { op: Op::Undo { at }, parts: Parts::from_iter([part.clone()]) });
            if let Ok(uncharged) = decide_seen(&part.quota, *seen, at, 0) {
                *decision = uncharged;
            }
        }
        calls
    }
}

#[cfg(test)]
mod tests {
    use sluicegate_core::{Micros, Quota, State};

    use super::super::call::Seen;
    use super::*;
    use crate::store::Space;

    fn key(name: &str) -> RedisKey {
        RedisKey::new("sg", Space::Take, &[name.as_bytes()])
    }

    /// Charges of these keys and costs, with a flag for probes.
    fn charges<'a>(
        specs: &[(&'a RedisKey, u64, bool)],
        quota: &'a Quota,
    ) -> Vec<Charge<'a, RedisKey>> {
        let charge = |&(key, cost, is_probe)| Charge::new(key, quota, cost).with_is_probe(is_probe);
        specs.iter().map(charge).collect()
    }

    fn costs(group: &Group) -> Vec<(u64, bool)> {
        group.parts.iter().map(|part| (part.cost, part.is_probe)).collect()
    }

    #[test]
    fn costs_are_added_and_those_of_probes_are_not() {
        let (a, b, quota) = (key("a"), key("b"), Quota::per_second(10).unwrap());
        let specs = [(&a, 5, true), (&a, 1, false), (&b, 1, false), (&a, 2, false), (&a, 5, true)];
        let mut charges = charges(&specs, &quota);
        let other = Quota::per_second(7).unwrap();
        charges[1].quota = &other;
        let groups = split(&charges, false);
        assert_eq!(groups.len(), 1);
        assert_eq!(costs(&groups[0]), [(5, true), (3, false), (1, false)]);
        // The quota of a bucket's first part applies to all of them.
        assert!(groups[0].parts.iter().all(|part| part.quota == quota));
        assert_eq!(groups[0].members.as_slice(), [(0, 0), (1, 1), (2, 2), (3, 1), (4, 0)]);
    }

    #[test]
    fn a_bucket_and_its_probes_stay_together() {
        let (a, b, quota) = (key("a"), key("b"), Quota::per_second(10).unwrap());
        let charges = charges(&[(&a, 1, false), (&b, 1, false), (&a, 5, true)], &quota);
        let apart = split(&charges, false)[0].apart();
        let shapes: Vec<_> = apart.iter().map(costs).collect();
        assert_eq!(shapes, [vec![(1, false), (5, true)], vec![(1, false)]]);
        let members: Vec<_> = apart.iter().map(|group| group.members.to_vec()).collect();
        assert_eq!(members, [vec![(0, 0), (2, 1)], vec![(1, 0)]]);
        assert!(!apart[0].charge().has_several_keys());
    }

    #[test]
    fn a_probe_is_not_undone() {
        let (a, quota) = (key("a"), Quota::per_second(10).unwrap());
        let group = &split(&charges(&[(&a, 5, true), (&a, 1, false)], &quota), false)[0];
        let now = Micros::new(1_700_000_000_000_000);
        let seen = [Seen::State(State { a: now.get(), b: 0 }); 2].into_iter().collect();
        let reply = Reply { now, done: true, repaired: 0, seen };
        let mut answered = group.read(reply).unwrap();
        let undos = group.undo(&mut answered);
        assert_eq!(undos.len(), 1);
        assert_eq!((undos[0].parts[0].cost, undos[0].parts[0].is_probe), (1, false));
        assert!(answered.decisions.iter().all(|decision| decision.remaining == 10));
    }
}
