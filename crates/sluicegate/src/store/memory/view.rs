//! A stored bucket under a quota: unchanged if it was written under the same form, else converted by the
//! number of tokens spent.

use sluicegate_core::sliding_window::{self, Edit, Entry, Log};
use sluicegate_core::{Decision, Micros, Quota, State, clamp, credit, decide, spent};

use super::shard::{Locked, Stored};

/// Change of a stored bucket.
#[derive(Debug)]
pub(super) enum Write {
    /// No change.
    Nothing,
    /// Replaces the state.
    State(State),
    /// Edits the log.
    Log(Edit),
    /// Removes the bucket, which is full.
    Forget,
}

/// A bucket under a quota at a time; see the module's documentation.
#[derive(Debug)]
pub(super) struct View<'a> {
    quota: &'a Quota,
    now: Micros,
    bucket: Bucket<'a>,
    /// The bucket was written under another form: the first charge must write it under this one, granted or
    /// not, or the old rate would stay in effect.
    carried: bool,
}

#[derive(Debug)]
enum Bucket<'a> {
    State(Option<State>),
    Log(Log<'a>),
    /// Log of a bucket that had none: all that was spent counts as spent now.
    NewLog([Entry; 1]),
}

impl<'a> View<'a> {
    /// Reads a slot; `None` is a full bucket.
    #[inline]
    pub(super) fn read(
        locked: &'a Locked<'_>,
        index: Option<usize>,
        quota: &'a Quota,
        now: Micros,
    ) -> Self {
        let bucket = match index {
            None => full(quota),
            Some(index) => match locked.stored_as(index, quota.form()) {
                Some(Stored::State(state)) => Bucket::State(Some(state)),
                Some(Stored::Log(log)) => Bucket::Log(log),
                None => {
                    let bucket = carry_over(locked, index, quota, now);
                    return Self { quota, now, bucket, carried: true };
                }
            },
        };
        Self { quota, now, bucket, carried: false }
    }

    /// The decision on a charge, and its write if the charge is granted.
    #[inline]
    pub(super) fn decide(&self, cost: u64) -> (Decision, Write) {
        let (decision, write) = match &self.bucket {
            Bucket::State(state) => {
                let (decision, state) = decide(self.quota, *state, self.now, cost);
                (decision, state.map_or(Write::Nothing, Write::State))
            }
            Bucket::Log(log) => self.decide_log(*log, cost),
            Bucket::NewLog(entries) => self.decide_log(Log { base: 0, entries }, cost),
        };
        match write {
            Write::Nothing if self.carried && cost > 0 => (decision, self.carried_write()),
            write => (decision, write),
        }
    }

    fn decide_log(&self, log: Log<'_>, cost: u64) -> (Decision, Write) {
        let (decision, edit) = sliding_window::decide(self.quota, log, self.now, cost);
        (decision, edit.map_or(Write::Nothing, Write::Log))
    }

    /// Number of entries in its log; zero if it keeps none.
    pub(super) fn log_len(&self) -> usize {
        match &self.bucket {
            Bucket::Log(log) => log.entries.len(),
            Bucket::State(_) | Bucket::NewLog(_) => 0,
        }
    }

    /// Decision and write of a bucket that would have granted its part, when another bucket denied the charge:
    /// its uncharged figures, and no write but the clamp.
    pub(super) fn hold(&self) -> (Decision, Write) {
        let (figures, _) = self.decide(0);
        let write = match &self.bucket {
            _ if self.carried => self.carried_write(),
            Bucket::State(state) => {
                clamp(self.quota, *state, self.now).map_or(Write::Nothing, Write::State)
            }
            Bucket::Log(log) => {
                sliding_window::clamp(self.quota, *log, self.now).map_or(Write::Nothing, Write::Log)
            }
            Bucket::NewLog(_) => Write::Nothing,
        };
        (figures, write)
    }

    /// The write of a refund of `amount` tokens.
    pub(super) fn credit(&self, amount: u64) -> Write {
        let edit = |log| {
            let edit = sliding_window::credit(self.quota, log, self.now, amount);
            edit.map_or(Write::Forget, Write::Log)
        };
        match &self.bucket {
            Bucket::State(state) => {
                credit(self.quota, *state, self.now, amount).map_or(Write::Forget, Write::State)
            }
            Bucket::Log(log) => edit(*log),
            // An edit that keeps the entry would need a stored log.
            Bucket::NewLog(_) if amount == 0 => self.carried_write(),
            Bucket::NewLog(entries) => edit(Log { base: 0, entries }),
        }
    }

    fn carried_write(&self) -> Write {
        match &self.bucket {
            Bucket::State(Some(state)) => Write::State(*state),
            Bucket::NewLog([entry]) => Write::Log(Edit { base: 0, keep: 0..0, tail: Some(*entry) }),
            Bucket::State(None) | Bucket::Log(_) => Write::Forget,
        }
    }
}

/// A full bucket of this quota.
#[inline]
fn full<'a>(quota: &Quota) -> Bucket<'a> {
    if quota.keeps_log() { Bucket::Log(Log::default()) } else { Bucket::State(None) }
}

/// A bucket whose quota has changed: full, less the tokens that were spent. A change of quota refills nothing.
fn carry_over<'a>(locked: &Locked<'_>, index: usize, quota: &Quota, now: Micros) -> Bucket<'a> {
    let spent = match locked.stored(index) {
        Some((form, Stored::State(state))) => spent(form, state, now),
        Some((form, Stored::Log(log))) => sliding_window::spent(form, log, now),
        None => 0,
    };
    let spent = spent.min(quota.capacity());
    if spent == 0 {
        return full(quota);
    }
    if quota.keeps_log() {
        return Bucket::NewLog([Entry { at: now.get(), total: spent }]);
    }
    Bucket::State(decide(quota, None, now, spent).1)
}
