//! Status of the rules in force: their generation, age, and why newer ones were refused.

use std::sync::Arc;

use arc_swap::ArcSwap;

use crate::time::Timestamp;

/// The current [`Status`], written by the keeper of the snapshot and read by observers. Clones share state.
#[derive(Clone, Debug)]
pub struct SharedStatus(Arc<ArcSwap<Status>>);

impl SharedStatus {
    pub(crate) fn new(status: Status) -> Self {
        Self(Arc::new(ArcSwap::from_pointee(status)))
    }

    pub(crate) fn get(&self) -> Arc<Status> {
        self.0.load_full()
    }

    /// Applies a change, again if another came first.
    pub(crate) fn change(&self, change: impl Fn(&mut Status)) {
        self.0.rcu(|status| {
            let mut status = Status::clone(status);
            change(&mut status);
            status
        });
    }
}

/// Status of the rules in force.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// The generation of the database that they are; none if they never came from one.
    pub generation: Option<u64>,
    /// When the database last confirmed that this is its current one.
    pub confirmed_at: Option<Timestamp>,
    /// When the snapshot file was written that they came from, if they did.
    pub from_file: Option<Timestamp>,
    /// Why what is in the database now was refused.
    pub refused: Option<String>,
    /// Why what is in the file of rules now was refused.
    pub refused_file: Option<String>,
    /// The generation that was refused, where it is known.
    pub refused_generation: Option<u64>,
    /// Why the database does not answer.
    pub down: Option<String>,
    /// Overrides in force.
    pub overrides: usize,
}

impl Status {
    /// Why what is in the sources of rules now was refused, if any of it was.
    #[must_use]
    pub fn all_refused(&self) -> Option<String> {
        let reasons = [&self.refused_file, &self.refused].into_iter().flatten();
        let reasons: Vec<_> = reasons.map(String::as_str).collect();
        (!reasons.is_empty()).then(|| reasons.join("\n"))
    }

    /// What to know about the database, for people.
    pub(crate) fn note(&self) -> Option<String> {
        let mut lines = Vec::new();
        if let Some(down) = &self.down {
            lines.push(down.clone());
            lines.push("checks go on by the rules in force; the administration waits".into());
        }
        if let Some(written_at) = self.from_file {
            lines.push(format!("what is in force came from the snapshot file of {written_at}"));
        }
        (!lines.is_empty()).then(|| lines.join("\n"))
    }
}
