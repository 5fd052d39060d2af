//! A charge split into calls: one for each slot in a cluster, one in all elsewhere.

use smallvec::SmallVec;
use tollgate_core::Decision;

use super::call::{Call, Op, Part, Parts, Reply};
use super::decide::{decide_seen, decisions};
use super::key::RedisKey;
use super::trouble::Trouble;
use crate::rules::Mode;
use crate::store::{Charge, Decisions};

pub(super) type Groups = SmallVec<[Group; 2]>;

/// The buckets that one call charges.
#[derive(Debug)]
pub(super) struct Group {
    /// Each bucket once.
    pub(super) parts: Parts,
    /// Of every charge that went into it: its number, and that of its part.
    members: SmallVec<[(usize, usize); 4]>,
}

/// What Redis said about a group.
#[derive(Debug)]
pub(super) struct Answered {
    pub(super) reply: Reply,
    pub(super) decisions: Decisions,
}

/// Splits a charge. The same bucket twice: its costs are added, under the quota of the first of the two.
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
        let twin = self.parts.iter().position(|part| part.key == *charge.key);
        let position = twin.unwrap_or(self.parts.len());
        if let Some(part) = self.parts.get_mut(position) {
            part.cost = part.cost.saturating_add(charge.cost);
            if charge.mode == Mode::Enforce {
                part.mode = Mode::Enforce;
            }
        } else {
            let (key, quota) = (charge.key.clone(), *charge.quota);
            self.parts.push(Part { key, quota, cost: charge.cost, mode: charge.mode });
        }
        self.members.push((number, position));
    }

    /// Its buckets, each in a group of its own.
    pub(super) fn apart(&self) -> Groups {
        let alone = |(position, part): (usize, &Part)| {
            let members = self.members.iter().filter(|(_, own)| *own == position);
            Self {
                parts: Parts::from_iter([part.clone()]),
                members: members.map(|(number, _)| (*number, 0)).collect(),
            }
        };
        self.parts.iter().enumerate().map(alone).collect()
    }

    /// The call that charges it.
    pub(super) fn charge(&self) -> Call {
        Call { op: Op::Charge, parts: self.parts.clone() }
    }

    /// What a reply to that call says.
    ///
    /// # Errors
    ///
    /// A reply that makes no sense.
    pub(super) fn read(&self, reply: Reply) -> Result<Answered, Trouble> {
        let decisions = decisions(&self.parts, &reply)?;
        Ok(Answered { reply, decisions })
    }

    /// The charges that went into it.
    pub(super) fn charges<'a>(
        &self,
        charges: &[Charge<'a, RedisKey>],
    ) -> SmallVec<[Charge<'a, RedisKey>; 4]> {
        self.members.iter().map(|(number, _)| charges[*number]).collect()
    }

    /// How many those are.
    pub(super) fn len(&self) -> usize {
        self.members.len()
    }

    /// Puts decisions on its parts where the charges are that they answer.
    pub(super) fn spread(&self, decisions: &[Decision], all: &mut [Option<Decision>]) {
        for (number, part) in &self.members {
            all[*number] = decisions.get(*part).copied();
        }
    }

    /// Puts decisions on its charges, one for each, where those are.
    pub(super) fn spread_each(&self, decisions: &[Decision], all: &mut [Option<Decision>]) {
        for ((number, _), decision) in self.members.iter().zip(decisions) {
            all[*number] = Some(*decision);
        }
    }

    /// The calls that take back what a granted reply charged, because another group denied the whole; and
    /// the figures without it.
    pub(super) fn undo(&self, answered: &mut Answered) -> SmallVec<[Call; 4]> {
        let mut calls = SmallVec::new();
        let (at, seen) = (answered.reply.now, &answered.reply.seen);
        for ((part, seen), decision) in self.parts.iter().zip(seen).zip(&mut answered.decisions) {
            if part.cost == 0 || !decision.is_granted() {
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
