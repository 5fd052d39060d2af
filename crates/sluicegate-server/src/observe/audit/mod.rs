//! Violations: recorded off the request path, within bounds.
//!
//! A denied request is one violation, of the tier that the verdict names, so that the counts on record add up
//! to the requests that were denied. Each rule in shadow mode that would have denied a request, denied or not,
//! is one more, marked as such and counted apart.
//!
//! [`Audit::note`] sums them up in memory (`queue`), as what is to be recorded of them (`recorded`, `privacy`);
//! [`Audit::run`] writes them (`writer`, at the pace of `budget`) and deletes what is old (`retention`).

mod budget;
mod privacy;
mod queue;
pub(crate) mod record;
mod retention;
#[cfg(test)]
pub(crate) mod test_support;
mod writer;

use std::sync::Arc;

use sluicegate::{Request, Tier, Verdict};
use tokio::time::Instant;

pub use self::privacy::Pseudonyms;
use self::queue::Queue;
use self::retention::Retention;
use self::writer::Writer;
use crate::config::{self, Record};
use crate::data::{DataError, Database, DatabaseHandle, ViolationFilter, ViolationRow};
use crate::observe::metrics::Metrics;
use crate::time::Timestamp;

/// Takes note of violations and records them. Clones are the same.
#[derive(Clone, Debug)]
pub struct Audit {
    record: Record,
    queue: Arc<Queue>,
    writer: Arc<Writer<DatabaseHandle>>,
    database: DatabaseHandle,
    retention: Retention,
    pseudonyms: Pseudonyms,
}

impl Audit {
    /// An audit with these settings, on record in `database`. Nothing is written before it [runs](Self::run).
    #[must_use]
    pub fn new(settings: &config::Audit, database: DatabaseHandle, metrics: &Metrics) -> Self {
        let (pseudonyms, metrics) = (Pseudonyms::new(settings), metrics.audit.clone());
        let queue = Queue::new(settings.queue_max, pseudonyms.clone(), metrics.clone());
        let queue = Arc::new(queue);
        let (ours, sink) = (Arc::clone(&queue), database.clone());
        Self {
            record: settings.record,
            queue,
            writer: Arc::new(Writer::new(ours, sink, metrics.clone(), settings.rows_per_second)),
            retention: Retention::new(database.clone(), settings.retention_days, metrics),
            database,
            pseudonyms,
        }
    }

    /// Takes note of a verdict that denied, or that a rule in shadow mode would have denied. Never waits for
    /// the database.
    pub fn note(&self, request: &Request<'_>, verdict: &Verdict) {
        if self.record == Record::Nothing || verdict.tiers().all(|tier| tier.decision.is_granted())
        {
            return;
        }
        let at = Timestamp::now();
        if let Some(tier) = verdict.violated() {
            self.queue.note(request, &tier, at);
        }
        if self.record == Record::All {
            for tier in verdict.tiers().filter(would_have_denied) {
                self.queue.note(request, &tier, at);
            }
        }
    }

    /// Writes what is noted, and deletes what is old, until [`finish`](Self::finish) is called.
    pub async fn run(self) {
        tokio::select! {
            () = self.writer.run() => {}
            () = self.retention.run() => {}
        }
    }

    /// Writes what waits one last time, until `deadline` at most. What is left then is dropped and counted.
    /// For the end, when nothing is decided any more.
    pub async fn finish(&self, deadline: Instant) {
        self.writer.finish(deadline).await;
    }

    /// What is recorded in place of addresses and ids.
    #[must_use]
    pub fn pseudonyms(&self) -> &Pseudonyms {
        &self.pseudonyms
    }

    /// Deletes every violation of a subject, on record or not yet, and says how many rows were on record.
    /// A filter without anything in it deletes nothing on record.
    ///
    /// # Errors
    ///
    /// If the database does not do it. What waited is dropped all the same.
    pub async fn delete(&self, of: &ViolationFilter) -> Result<u64, DataError> {
        // First what waits, or it would be written after the rest is deleted.
        self.writer.forget(|row| is_of(of, row)).await;
        delete(&*self.database.get()?, of).await
    }
}

/// Deletes what a database has on record of a subject, and says how many rows that was.
///
/// # Errors
///
/// If the database does not do it. Some may be deleted.
pub(crate) async fn delete(database: &Database, of: &ViolationFilter) -> Result<u64, DataError> {
    retention::in_batches(|rows| database.delete_violations(of, rows), |_| {}).await
}

/// Is this a rule in shadow mode that would have denied the request?
pub(crate) fn would_have_denied(tier: &Tier<'_>) -> bool {
    !tier.is_enforced() && !tier.decision.is_granted()
}

/// Is this row of that subject?
fn is_of(subject: &ViolationFilter, row: &ViolationRow) -> bool {
    let is = |wanted: &Option<String>, value: Option<&String>| {
        wanted.as_ref().is_none_or(|wanted| Some(wanted) == value)
    };
    is(&subject.user_id, row.user_id.as_ref())
        && is(&subject.ip_address, row.ip_address.as_ref())
        && is(&subject.bucket_key, Some(&row.bucket_key))
}
