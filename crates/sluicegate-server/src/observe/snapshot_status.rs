//! Status of the rules in force: their generation, age, and why newer ones were refused.

use std::sync::Arc;

use arc_swap::ArcSwap;

use crate::time::Timestamp;

/// The current [`Status`], written by the keeper of the snapshot and read by observers. Clones share state.
#[derive(Clone, Debug)]
pub(crate) struct SharedStatus(Arc<ArcSwap<Status>>);

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
pub(crate) struct Status {
    /// Generation of the database that they have; `None` if they never came from one.
    pub generation: Option<u64>,
    /// Time at which the database last confirmed that this generation is current.
    pub confirmed_at: Option<Timestamp>,
    /// Time at which the snapshot file was written that they came from; `None` if they did not.
    pub from_file: Option<Timestamp>,
    /// Reason why the database's current contents were rejected.
    pub refused: Option<String>,
    /// Reason why the current file of rules was rejected.
    pub refused_file: Option<String>,
    /// Generation that was rejected, if known.
    pub refused_generation: Option<u64>,
    /// Reason why the database does not answer.
    pub down: Option<String>,
    /// Overrides in force.
    pub overrides: usize,
}

impl Status {
    /// Reasons why current sources were rejected, one per line; `None` if none was.
    #[must_use]
    pub(crate) fn all_refused(&self) -> Option<String> {
        let reasons = [&self.refused_file, &self.refused].into_iter().flatten();
        let reasons: Vec<_> = reasons.map(String::as_str).collect();
        (!reasons.is_empty()).then(|| reasons.join("\n"))
    }

    /// Description of the database's state for `/readyz?verbose`.
    pub(crate) fn note(&self) -> Option<String> {
        let mut lines = Vec::new();
        if let Some(down) = &self.down {
            lines.push(down.clone());
            lines.push(
                "checks continue with the rules in force; the administration is unavailable".into(),
            );
        }
        if let Some(written_at) = self.from_file {
            lines.push(format!("the rules in force came from the snapshot file of {written_at}"));
        }
        (!lines.is_empty()).then(|| lines.join("\n"))
    }
}
