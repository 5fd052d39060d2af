//! A bucket as in a store: holds exactly the state that decisions return.

use std::time::Duration;

use sluicegate_core::sliding_window::{self, Edit, Entry, Log};
use sluicegate_core::{
    Decision, Form, MICROS_MAX, Micros, Outcome, Quota, State, clamp, credit, decide, is_full,
    spent,
};

use crate::oracle::moved;

/// Stored form of a bucket.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Stored {
    State(Option<State>),
    Log { base: u64, entries: Vec<Entry> },
}

/// One bucket, its quota and its clock.
#[derive(Clone, Debug)]
pub(crate) struct Bucket {
    pub(crate) quota: Quota,
    pub(crate) now: u64,
    pub(crate) stored: Stored,
}

/// One step of a trace.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    Charge(Amount),
    Refund(Amount),
    Wait(Pause),
    /// The clock is set back.
    SetBack(Pause),
}

/// A number of tokens, said in terms of the bucket it is taken from, so that it is an interesting
/// one under every quota.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Amount {
    Exactly(u64),
    /// This many 255ths of the capacity, rounded up.
    Share(u8),
    /// The tokens left, plus this number.
    Left(u64),
}

/// A pause, in terms of the bucket that waits.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Pause {
    Micros(u64),
    /// This many 256ths of the time to full.
    Share(u16),
    /// Until it is full, less this.
    Full(u64),
    /// Until one more token than there is has come in, less this.
    Token(u64),
}

// ===== impl Stored =====

impl Stored {
    /// Stored form of a full bucket: no record.
    pub(crate) fn nothing(quota: &Quota) -> Self {
        if quota.keeps_log() {
            Self::Log { base: 0, entries: Vec::new() }
        } else {
            Self::State(None)
        }
    }

    /// Moves everything that happened in time, and counts a log's totals from zero: neither makes
    /// any difference, except to how many states there are.
    pub(crate) fn shift(&mut self, form: Form, by_us: i64) {
        match self {
            Self::State(None) => {}
            Self::State(Some(state)) => {
                let at = match form {
                    Form::Continuous { n: 1, .. } | Form::LeakyBucket { n: 1, .. } => &mut state.a,
                    _ => &mut state.b,
                };
                *at = moved(*at, by_us);
            }
            Self::Log { base, entries } => {
                for entry in entries {
                    (entry.at, entry.total) = (moved(entry.at, by_us), entry.total - *base);
                }
                *base = 0;
            }
        }
    }

    fn edit(&mut self, edit: &Edit) {
        let Self::Log { base, entries } = self else { panic!("a state has no log to edit") };
        entries.truncate(edit.keep.end);
        entries.drain(..edit.keep.start);
        entries.extend(edit.tail);
        *base = edit.base;
    }
}

// ===== impl Bucket =====

impl Bucket {
    pub(crate) fn new(quota: Quota, now: u64) -> Self {
        Self { quota, now, stored: Stored::nothing(&quota) }
    }

    fn log(&self) -> Log<'_> {
        match &self.stored {
            Stored::Log { base, entries } => Log { base: *base, entries },
            Stored::State(_) => panic!("a state is no log"),
        }
    }

    /// The answer to a charge, stored as it says.
    pub(crate) fn charge(&mut self, cost: u64) -> Decision {
        let now = Micros::new(self.now);
        if let Stored::State(state) = &mut self.stored {
            let (decision, write) = decide(&self.quota, *state, now, cost);
            *state = write.or(*state);
            return decision;
        }
        let (decision, edit) = sliding_window::decide(&self.quota, self.log(), now, cost);
        if let Some(edit) = edit {
            self.stored.edit(&edit);
        }
        decision
    }

    /// Decision of a charge at `at`, without any step until then.
    pub(crate) fn would(&self, at: u64, cost: u64) -> Decision {
        let at = Micros::new(at);
        match &self.stored {
            Stored::State(state) => decide(&self.quota, *state, at, cost).0,
            Stored::Log { .. } => sliding_window::decide(&self.quota, self.log(), at, cost).0,
        }
    }

    pub(crate) fn peek(&self) -> Decision {
        self.would(self.now, 0)
    }

    /// The store's step for a bucket when another bucket denied their common charge.
    pub(crate) fn clamp(&mut self) {
        let now = Micros::new(self.now);
        if let Stored::State(state) = &mut self.stored {
            *state = clamp(&self.quota, *state, now).or(*state);
        } else if let Some(edit) = sliding_window::clamp(&self.quota, self.log(), now) {
            self.stored.edit(&edit);
        }
    }

    pub(crate) fn refund(&mut self, amount: u64) {
        let now = Micros::new(self.now);
        if let Stored::State(state) = &mut self.stored {
            *state = credit(&self.quota, *state, now, amount);
            return;
        }
        match sliding_window::credit(&self.quota, self.log(), now, amount) {
            Some(edit) => self.stored.edit(&edit),
            None => self.stored = Stored::nothing(&self.quota),
        }
    }

    pub(crate) fn spent(&self) -> u64 {
        let (form, now) = (self.quota.form(), Micros::new(self.now));
        match &self.stored {
            Stored::State(None) => 0,
            Stored::State(Some(state)) => spent(form, *state, now),
            Stored::Log { .. } => sliding_window::spent(form, self.log(), now),
        }
    }

    pub(crate) fn is_full(&self) -> bool {
        match &self.stored {
            Stored::State(None) => true,
            Stored::State(Some(state)) => is_full(self.quota.form(), *state, Micros::new(self.now)),
            Stored::Log { .. } => self.spent() == 0,
        }
    }

    /// Puts the bucket under another quota: as it is if the form stays, else by what was spent.
    pub(crate) fn change(&mut self, quota: Quota) {
        if quota.form() != self.quota.form() {
            let carried = self.spent().min(quota.capacity());
            *self = Self::new(quota, self.now);
            self.charge(carried);
        }
        self.quota = quota;
    }

    /// Lets time pass; the clock stops at the end of its domain.
    pub(crate) fn wait(&mut self, pause_us: u64) {
        self.now = Micros::new(self.now.saturating_add(pause_us)).get();
    }

    /// Sets the clock back, not beyond 1970.
    pub(crate) fn step_back(&mut self, pause_us: u64) {
        self.now = self.now.saturating_sub(pause_us);
    }

    pub(crate) fn step(&mut self, step: Step) {
        match step {
            Step::Charge(amount) => drop(self.charge(amount.of(self))),
            Step::Refund(amount) => self.refund(amount.of(self)),
            Step::Wait(pause) => self.wait(pause.of(self)),
            Step::SetBack(pause) => self.step_back(pause.of(self)),
        }
    }

    /// Returns whether a clock can show this instant.
    pub(crate) fn can_reach(&self, wait_us: u64) -> bool {
        self.now.saturating_add(wait_us) < MICROS_MAX
    }
}

// ===== impl Amount, Pause =====

impl Amount {
    pub(crate) fn of(self, bucket: &Bucket) -> u64 {
        match self {
            Self::Exactly(amount) => amount,
            Self::Share(share) => {
                let amount = u128::from(bucket.quota.capacity()) * u128::from(share);
                u64::try_from(amount.div_ceil(255)).unwrap()
            }
            Self::Left(more) => bucket.peek().remaining + more,
        }
    }
}

impl Pause {
    pub(crate) fn of(self, bucket: &Bucket) -> u64 {
        match self {
            Self::Micros(micros) => micros,
            Self::Share(share) => {
                let micros = micros(bucket.quota.time_to_full());
                u64::try_from(u128::from(micros) * u128::from(share) / 256).unwrap()
            }
            Self::Full(less) => bucket.peek().reset_after.saturating_sub(less),
            Self::Token(less) => {
                let one_more = bucket.peek().remaining + 1;
                match bucket.would(bucket.now, one_more).outcome {
                    Outcome::Denied { retry_after } => retry_after - less,
                    Outcome::Granted { .. } | Outcome::Never => 0,
                }
            }
        }
    }
}

pub(crate) fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap()
}
