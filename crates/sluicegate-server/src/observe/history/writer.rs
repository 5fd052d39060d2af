//! Writes sums to the database, with retries, or to the log where there is no database.

use std::sync::Arc;
use std::time::Duration;

use sluicegate::Backoff;
use tokio::sync::{Mutex, watch};
use tokio::time::{Instant, sleep, timeout_at};
use tracing::{info, warn};

use super::sums::Sums;
use crate::data::{DataError, DatabaseHandle, HistoryBatch, HistoryRow};
use crate::observe::audit::Pseudonyms;
use crate::observe::metrics::history::HistoryMetrics;
use crate::time::Timestamp;

/// Interval of writes. A sum is written within twice this after its minute.
const WRITE_EVERY: Duration = Duration::from_secs(1);
/// Maximum number of rows in a batch, and the most that are written at a time.
const BATCH_ROWS_MAX: usize = 500;

/// Backoff of a failed batch.
const RETRY: Backoff = Backoff { first: Duration::from_secs(1), longest: Duration::from_secs(10) };

/// Attempts to write the last batches on shutdown.
const LAST_TRIES: u32 = 3;

/// Pause between these attempts.
const LAST_PAUSE: Duration = Duration::from_millis(100);

/// Moves sums to the database.
#[derive(Debug)]
pub(super) struct Writer {
    sums: Arc<Sums>,
    pseudonyms: Pseudonyms,
    database: DatabaseHandle,
    metrics: HistoryMetrics,
    state: Mutex<State>,
    /// True when [`run`](Self::run) must end.
    is_ending: watch::Sender<bool>,
}

#[derive(Debug)]
struct State {
    /// Distinguishes this process from others that write.
    writer: u64,
    sequence: u64,
    /// Batch being written. It stays unchanged until it is known to be written or rejected.
    pending: Option<HistoryBatch>,
    /// Consecutive failures of the database.
    failures: u32,
}

impl Writer {
    pub(super) fn new(
        (sums, pseudonyms): (Arc<Sums>, Pseudonyms),
        database: DatabaseHandle,
        metrics: HistoryMetrics,
    ) -> Self {
        let writer = getrandom::u64().unwrap_or_else(|_| Timestamp::now().micros().cast_unsigned());
        let state = Mutex::new(State { writer, sequence: 0, pending: None, failures: 0 });
        let (is_ending, _) = watch::channel(false);
        Self { sums, pseudonyms, database, metrics, state, is_ending }
    }

    /// Writes periodically, until [`finish`](Self::finish) is called.
    pub(super) async fn run(&self) {
        let mut is_ending = self.is_ending.subscribe();
        let writing = async {
            loop {
                let failures = self.write(Timestamp::now()).await;
                let wait = if failures == 0 { WRITE_EVERY } else { RETRY.after(failures) };
                sleep(wait).await;
            }
        };
        tokio::select! {
            // An interrupted write is repeated with the same sequence number.
            _ = is_ending.wait_for(|is_ending| *is_ending) => {}
            () = writing => {}
        }
    }

    /// Writes all sums one last time, until `deadline` at most.
    pub(super) async fn finish(&self, deadline: Instant) {
        self.is_ending.send_replace(true);
        let last = async {
            for _ in 0..LAST_TRIES {
                if self.write(Timestamp::from_micros(i64::MAX)).await == 0 {
                    break;
                }
                sleep(LAST_PAUSE).await;
            }
        };
        // An interrupted batch is still pending.
        let _ = timeout_at(deadline, last).await;
        let pending = self.state.lock().await.pending.take();
        let pending: u64 = pending.iter().flat_map(|batch| &batch.rows).map(|row| row.count).sum();
        let dropped = pending + self.sums.clear();
        if dropped > 0 {
            self.metrics.dropped(dropped);
            warn!(events = dropped, "history dropped: the process stopped before it was written");
        }
    }

    /// Writes the sums of minutes before this time, and returns the number of consecutive failures.
    ///
    /// # Cancel safety
    ///
    /// A batch not known to be written stays pending.
    async fn write(&self, before: Timestamp) -> u32 {
        let mut state = self.state.lock().await;
        loop {
            if state.pending.is_none() {
                let rows = self.sums.take(before, BATCH_ROWS_MAX, &self.pseudonyms);
                if rows.is_empty() {
                    return 0;
                }
                if !self.database.is_configured() {
                    rows.iter().for_each(log);
                    continue;
                }
                state.sequence += 1;
                let (writer, sequence) = (state.writer, state.sequence);
                state.pending = Some(HistoryBatch { writer, sequence, rows });
            }
            let Some(batch) = &state.pending else { return 0 };
            let written = match self.database.get() {
                Ok(database) => database.write_history(batch).await,
                Err(error) => Err(error),
            };
            let events: u64 = batch.rows.iter().map(|row| row.count).sum();
            match written {
                Ok(()) => state.failures = 0,
                Err(error) => {
                    if state.failures == 0 {
                        warn!(%error, "cannot write the history");
                    }
                    state.failures = state.failures.saturating_add(1);
                    if let DataError::Unavailable(_) = error {
                        return state.failures;
                    }
                    self.metrics.dropped(events);
                }
            }
            state.pending = None;
        }
    }
}

/// Writes a sum to the log.
fn log(row: &HistoryRow) {
    let HistoryRow { who, act, target, address, count, .. } = row;
    info!(who, act = act.name(), target, address, count, "history");
}
