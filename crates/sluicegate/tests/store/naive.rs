//! The model: a map from names to states, and the arithmetic applied in the obvious way. It knows nothing of
//! shards, slots, locks, room or sweeps.

use std::collections::HashMap;

use sluicegate::Mode;
use sluicegate_core::sliding_window::{self, Edit, Entry, Log};
use sluicegate_core::{
    Decision, Form, Micros, Quota, State, clamp, credit, decide, is_full, spent,
};

/// One part of a charge: a bucket's name in place of its key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part {
    pub(crate) name: usize,
    pub(crate) quota: Quota,
    pub(crate) cost: u64,
    pub(crate) mode: Mode,
    pub(crate) is_probe: bool,
}

/// Buckets by name; see the module's documentation.
#[derive(Clone, Debug, Default)]
pub(crate) struct Naive {
    pub(crate) now: Micros,
    buckets: HashMap<usize, (Form, Stored)>,
}

/// Stored content of a bucket.
#[derive(Clone, Debug)]
enum Stored {
    State(Option<State>),
    Log { base: u64, entries: Vec<Entry> },
}

// ===== impl Naive =====

impl Naive {
    pub(crate) fn charge(&mut self, parts: &[Part]) -> Vec<Decision> {
        let total = |name| {
            let charged = parts.iter().filter(|part| part.name == name && !part.is_probe);
            charged.map(|part| part.cost).fold(0, u64::saturating_add)
        };
        let now = self.now;
        let decided: Vec<_> = parts
            .iter()
            .map(|part| {
                let (bucket, _) = self.settled(part.name, &part.quota);
                let cost = if part.is_probe { part.cost } else { total(part.name) };
                bucket.decide(&part.quota, now, cost)
            })
            .collect();
        let granted = parts
            .iter()
            .zip(&decided)
            .all(|(part, (decision, _))| part.mode == Mode::Shadow || decision.is_granted());
        // Read before anything is written: parts of the same bucket show the same.
        let uncharged: Vec<_> =
            parts.iter().map(|part| self.peek(part.name, &part.quota)).collect();
        let mut answers = Vec::new();
        for ((part, (decision, charged)), uncharged) in parts.iter().zip(decided).zip(uncharged) {
            let (bucket, carried) = self.settled(part.name, &part.quota);
            let spared = (!granted || part.is_probe) && decision.is_granted();
            answers.push(if spared { uncharged } else { decision });
            let is_look = if part.is_probe { part.cost == 0 } else { total(part.name) == 0 };
            // A charge writes for the probes of its bucket too.
            if is_look || part.is_probe && total(part.name) > 0 {
                continue;
            }
            if !part.is_probe && decision.is_granted() && granted {
                self.buckets.insert(part.name, (part.quota.form(), charged));
            } else if let Some(clamped) = bucket.clamp(&part.quota, now, carried) {
                self.buckets.insert(part.name, (part.quota.form(), clamped));
            }
        }
        answers
    }

    pub(crate) fn refund(&mut self, name: usize, quota: &Quota, amount: u64) -> Decision {
        if self.buckets.contains_key(&name) {
            let (bucket, _) = self.settled(name, quota);
            let credited = bucket.credit(quota, self.now, amount);
            self.buckets.insert(name, (quota.form(), credited));
        }
        self.peek(name, quota)
    }

    pub(crate) fn reset(&mut self, name: usize) {
        self.buckets.remove(&name);
    }

    pub(crate) fn peek(&self, name: usize, quota: &Quota) -> Decision {
        self.settled(name, quota).0.decide(quota, self.now, 0).0
    }

    /// May a store drop this bucket?
    pub(crate) fn is_full(&self, name: usize) -> bool {
        self.buckets.get(&name).is_none_or(|(form, stored)| stored.spent(*form, self.now) == 0)
    }

    pub(crate) fn names(&self) -> Vec<usize> {
        self.buckets.keys().copied().collect()
    }

    /// A bucket under this quota, and whether it was written under another form: then it is a full one, less
    /// the spent tokens.
    fn settled(&self, name: usize, quota: &Quota) -> (Stored, bool) {
        match self.buckets.get(&name) {
            None => (Stored::full(quota), false),
            Some((form, stored)) if *form == quota.form() => (stored.clone(), false),
            Some((form, stored)) => {
                let spent = stored.spent(*form, self.now).min(quota.capacity());
                (Stored::full(quota).decide(quota, self.now, spent).1, true)
            }
        }
    }
}

// ===== impl Stored =====

impl Stored {
    fn full(quota: &Quota) -> Self {
        if quota.keeps_log() {
            Self::Log { base: 0, entries: Vec::new() }
        } else {
            Self::State(None)
        }
    }

    /// The decision, and the bucket after a grant.
    fn decide(&self, quota: &Quota, now: Micros, cost: u64) -> (Decision, Self) {
        match self {
            Self::State(state) => {
                let (decision, charged) = decide(quota, *state, now, cost);
                (decision, Self::State(charged.or(*state)))
            }
            Self::Log { base, entries } => {
                let log = Log { base: *base, entries };
                let (decision, edit) = sliding_window::decide(quota, log, now, cost);
                (decision, edit.map_or_else(|| self.clone(), |edit| edited(entries, &edit)))
            }
        }
    }

    /// The write of a charge that takes nothing: the bucket converted from another form, or clamped to empty.
    fn clamp(&self, quota: &Quota, now: Micros, carried: bool) -> Option<Self> {
        let clamped = match self {
            Self::State(state) => clamp(quota, *state, now).map(|state| Self::State(Some(state))),
            Self::Log { base, entries } => {
                let log = Log { base: *base, entries };
                sliding_window::clamp(quota, log, now).map(|edit| edited(entries, &edit))
            }
        };
        clamped.or_else(|| carried.then(|| self.clone()))
    }

    fn credit(&self, quota: &Quota, now: Micros, amount: u64) -> Self {
        match self {
            Self::State(state) => Self::State(credit(quota, *state, now, amount)),
            Self::Log { base, entries } => {
                let log = Log { base: *base, entries };
                let edit = sliding_window::credit(quota, log, now, amount);
                edit.map_or_else(|| Self::full(quota), |edit| edited(entries, &edit))
            }
        }
    }

    fn spent(&self, form: Form, now: Micros) -> u64 {
        match self {
            Self::State(None) => 0,
            Self::State(Some(state)) => {
                let spent = spent(form, *state, now);
                assert_eq!(spent == 0, is_full(form, *state, now));
                spent
            }
            Self::Log { base, entries } => {
                sliding_window::spent(form, Log { base: *base, entries }, now)
            }
        }
    }
}

/// The log after an edit.
fn edited(entries: &[Entry], edit: &Edit) -> Stored {
    let mut kept = entries[edit.keep.clone()].to_vec();
    kept.extend(edit.tail);
    Stored::Log { base: edit.base, entries: kept }
}
