//! History of the administration: records acts before they are done, and sums of what clients do.
//!
//! Changes in the database are recorded there, in their own transaction. [`History::record`] records acts on the store
//! and deletions of violations before they are done. [`History::sign_in_failed`] and [`History::refunded`] only add in
//! memory (`sums`); [`History::run`] writes what a minute summed up (`writer`), and deletes old rows (`retention`).
//! Without a database the log is the history.

mod recording;
mod retention;
mod sums;
mod writer;

use std::net::IpAddr;
use std::sync::Arc;

use serde_json::Value;
use sluicegate::{AnyStore, Limiter};
use tokio::time::Instant;
use tracing::warn;

use self::recording::Private;
use self::retention::Retention;
use self::sums::{Source, Sums};
use self::writer::Writer;
use crate::config::{self, Door};
use crate::data::{Act, Author, DataError, DatabaseHandle, HistoryRow};
use crate::log_limit::LogLimit;
use crate::observe::audit::Pseudonyms;
use crate::observe::metrics::Metrics;
use crate::time::Timestamp;

/// Log lines about acts and results that could not be recorded.
static REFUSED_LINES: LogLimit = LogLimit::new();
static RESULT_LINES: LogLimit = LogLimit::new();

/// Records the history. Clones share state.
#[derive(Clone, Debug)]
pub(crate) struct History {
    database: DatabaseHandle,
    pseudonyms: Pseudonyms,
    sums: Arc<Sums>,
    writer: Arc<Writer>,
    retention: Retention,
    recording: Arc<Private>,
}

/// Act on something outside the database.
#[derive(Debug)]
pub(crate) struct Recorded {
    pub(crate) act: Act,
    pub(crate) rule_id: Option<u64>,
    /// Subject in its recorded form.
    pub(crate) subject: Option<String>,
    /// Target in its recorded form.
    pub(crate) target: Option<String>,
    /// State before and arguments, as JSON objects.
    pub(crate) before: Option<Value>,
    pub(crate) after: Option<Value>,
}

/// Failure of a recorded act.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Failed;

/// Row of an act that is about to be done; `None` without a database.
#[derive(Clone, Copy, Debug)]
#[must_use]
pub(crate) struct Receipt(Option<u64>);

impl History {
    /// A history with these settings.
    pub(crate) fn new(
        settings: &config::History,
        database: DatabaseHandle,
        pseudonyms: Pseudonyms,
        limiter: Limiter<AnyStore>,
        metrics: &Metrics,
    ) -> Self {
        let metrics = metrics.history.clone();
        let recording = Private::new(pseudonyms.clone(), limiter, metrics.clone());
        let sums = Arc::new(Sums::new(settings.queue_max, metrics.clone()));
        let rows = (Arc::clone(&sums), pseudonyms.clone());
        Self {
            writer: Arc::new(Writer::new(rows, database.clone(), metrics.clone())),
            retention: Retention::new(settings, database.clone(), &pseudonyms, metrics),
            recording: Arc::new(recording),
            database,
            pseudonyms,
            sums,
        }
    }

    /// Makes the database apply the privacy setting to its records. Without it, they are masked later by a process that
    /// knows the setting.
    pub(crate) fn apply_privacy(&self) {
        self.database.set_recording(Arc::<Private>::clone(&self.recording));
    }

    /// Recorded form of an author's address.
    pub(crate) fn address(&self, by: &Author) -> Option<String> {
        by.address.map(|address| self.pseudonyms.ip(&address.to_string()).into_owned())
    }

    /// Records an act that is about to be done.
    ///
    /// # Errors
    ///
    /// The act could not be recorded, and must not be done.
    pub(crate) async fn record(
        &self,
        by: &Author,
        recorded: Recorded,
    ) -> Result<Receipt, DataError> {
        if !self.database.is_configured() {
            return Ok(Receipt(None));
        }
        let Recorded { act, rule_id, subject, target, before, after } = recorded;
        let row = HistoryRow {
            at: Timestamp::now(),
            who: by.name.clone(),
            act,
            rule_id,
            subject,
            target,
            before,
            after,
            address: self.address(by),
            reason: by.reason.clone(),
            count: 1,
        };
        let written = match self.database.get() {
            Ok(database) => database.record_act(&row).await,
            Err(error) => Err(error),
        };
        if let Err(error) = &written
            && let Some(suppressed) = REFUSED_LINES.admit()
        {
            let act = act.name();
            warn!(act, %error, suppressed, "act refused: it cannot be recorded in the history");
        }
        written.map(|id| Receipt(Some(id)))
    }

    /// Records the result of an act, if the database answers: the state after it, or that it failed.
    pub(crate) async fn settle(&self, receipt: Receipt, result: Result<Value, Failed>) {
        let Receipt(Some(history_id)) = receipt else { return };
        let after = result.ok();
        let written = match self.database.get() {
            Ok(database) => database.record_result(history_id, after.as_ref()).await,
            Err(error) => Err(error),
        };
        if let Err(error) = written
            && let Some(suppressed) = RESULT_LINES.admit()
        {
            let failed = after.is_none();
            warn!(history_id, failed, %error, suppressed, "the result of an act is not in the history");
        }
    }

    /// Adds a failed sign-in: a wrong token or password. Only names of existing callers: one that a client made up
    /// would be a row of its own. Never waits.
    pub(crate) fn sign_in_failed(&self, door: Door, peer: IpAddr, name: Option<&str>) {
        let source = Source::sign_in(door, peer, name);
        self.sums.add(source, 0, Timestamp::now());
    }

    /// Adds a refund of this many tokens over a data door, by a caller or without one. Never waits.
    pub(crate) fn refunded(&self, caller: Option<&str>, tokens: u64) {
        self.sums.add(Source::refund(caller), tokens, Timestamp::now());
    }

    /// Writes sums and deletes old rows, until [`finish`](Self::finish) is called.
    pub(crate) async fn run(self) {
        tokio::select! {
            () = self.writer.run() => {}
            () = self.retention.run() => {}
        }
    }

    /// Writes the sums of the unfinished minute, until `deadline` at most. The rest is dropped and counted.
    pub(crate) async fn finish(&self, deadline: Instant) {
        self.writer.finish(deadline).await;
    }
}
