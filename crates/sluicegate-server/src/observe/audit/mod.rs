//! Violations: recorded off the request path, within bounds.
//!
//! A denied request is one violation, of the tier that the verdict names, so that recorded counts
//! add up to denied requests. Each shadow rule that would have denied a request is one more
//! violation, marked and counted separately.
//!
//! [`Audit::note`] aggregates them in memory (`queue`) in their recorded form (`record`,
//! `privacy`); [`Audit::run`] writes them (`writer`, within `budget`) and deletes old ones
//! (`retention`).

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

pub(crate) use self::privacy::Pseudonyms;
use self::queue::Queue;
use self::retention::Retention;
pub(in crate::observe) use self::retention::in_batches;
use self::writer::Writer;
use crate::config::{self, Record};
use crate::data::{DataError, Database, DatabaseHandle, ViolationFilter, ViolationRow};
use crate::observe::metrics::Metrics;
use crate::time::Timestamp;

/// Records violations. Clones share state.
#[derive(Clone, Debug)]
pub(crate) struct Audit {
    record: Record,
    queue: Arc<Queue>,
    writer: Arc<Writer<DatabaseHandle>>,
    database: DatabaseHandle,
    retention: Retention,
    pseudonyms: Pseudonyms,
}

impl Audit {
    /// An audit with these settings that writes to `database`. Nothing is written before it
    /// [runs](Self::run).
    #[must_use]
    pub(crate) fn new(
        settings: &config::Audit,
        database: DatabaseHandle,
        metrics: &Metrics,
    ) -> Self {
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

    /// Records a verdict that denied, or that a shadow rule would have denied. Never waits for the
    /// database.
    pub(crate) fn note(&self, request: &Request<'_>, verdict: &Verdict) {
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

    /// Writes violations and deletes old ones, until [`finish`](Self::finish) is called.
    pub(crate) async fn run(self) {
        tokio::select! {
            () = self.writer.run() => {}
            () = self.retention.run() => {}
        }
    }

    /// Writes queued violations one last time, until `deadline` at most. The rest is dropped and
    /// counted. Called on shutdown, after the last decision.
    pub(crate) async fn finish(&self, deadline: Instant) {
        self.writer.finish(deadline).await;
    }

    /// Recorded forms of addresses and ids.
    #[must_use]
    pub(crate) fn pseudonyms(&self) -> &Pseudonyms {
        &self.pseudonyms
    }

    /// Deletes every violation of a subject, also queued ones, and returns the number of rows
    /// deleted from the database. An empty filter deletes nothing there.
    ///
    /// # Errors
    ///
    /// The database failed. Queued violations are dropped all the same.
    pub(crate) async fn delete(&self, of: &ViolationFilter) -> Result<u64, DataError> {
        // The queue first, or its rows would be written after the deletion.
        self.writer.forget(|row| is_of(of, row)).await;
        delete(&*self.database.get()?, of).await
    }
}

/// Deletes the violations of a subject from a database, and returns the number of rows.
///
/// # Errors
///
/// The database failed. Some rows may be deleted.
pub(crate) async fn delete(database: &Database, of: &ViolationFilter) -> Result<u64, DataError> {
    in_batches(|rows| database.delete_violations(of, rows), |_| {}).await
}

/// True for a shadow rule that would have denied the request.
pub(crate) fn would_have_denied(tier: &Tier<'_>) -> bool {
    !tier.is_enforced() && !tier.decision.is_granted()
}

/// True if the row is of that subject.
fn is_of(subject: &ViolationFilter, row: &ViolationRow) -> bool {
    let is = |wanted: &Option<String>, value: Option<&String>| {
        wanted.as_ref().is_none_or(|wanted| Some(wanted) == value)
    };
    is(&subject.user_id, row.user_id.as_ref())
        && is(&subject.ip_address, row.ip_address.as_ref())
        && is(&subject.bucket_key, Some(&row.bucket_key))
}
