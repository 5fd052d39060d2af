//! Writes queued violations to the database, within a rate limit, with retries.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use sluicegate::Backoff;
use tokio::sync::{Mutex, watch};
use tokio::time::{Instant, sleep, timeout_at};
use tracing::{info, warn};

use super::budget::Budget;
use super::queue::{Queue, WriteResult};
use crate::data::{DataError, DatabaseHandle, ViolationBatch, ViolationRow};
use crate::observe::metrics::audit::{AuditMetrics, Dropped};
use crate::time::Timestamp;

/// Interval of writes. A violation is written within twice this.
const WRITE_EVERY: Duration = Duration::from_millis(500);
/// Maximum number of rows in a batch.
const BATCH_ROWS_MAX: usize = 500;

/// Backoff of a failed batch. Its maximum is also the delay until writing resumes after an outage.
const RETRY: Backoff =
    Backoff { first: Duration::from_millis(250), longest: Duration::from_secs(2) };

/// Minimum time between two log lines about dropped violations.
const LOG_EVERY: Duration = Duration::from_secs(60);

/// Attempts to write the last batches on shutdown.
const LAST_TRIES: u32 = 3;

/// Destination of batches.
pub(super) trait Sink: Send + Sync + 'static {
    /// Writes a batch, all or nothing, and only once however often it is called with it.
    fn write(&self, batch: &ViolationBatch) -> impl Future<Output = Result<(), DataError>> + Send;
}

impl Sink for DatabaseHandle {
    async fn write(&self, batch: &ViolationBatch) -> Result<(), DataError> {
        self.get()?.write_violations(batch).await
    }
}

/// Moves rows from the queue to the sink.
#[derive(Debug)]
pub(super) struct Writer<S> {
    queue: Arc<Queue>,
    sink: S,
    metrics: AuditMetrics,
    /// Held while a batch is being written, and not between two attempts.
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
    pending: Option<ViolationBatch>,
    budget: Budget,
    /// Consecutive failures of the database.
    failures: u32,
    /// Violations dropped because of a full queue when that was logged last.
    dropped_full: u64,
    /// Time at which drops were logged last; `None` if never.
    drops_logged_at: Option<Instant>,
}

/// Result of a round of writing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Round {
    /// Nothing is left, or the rate limit is reached.
    Done,
    /// The database does not answer.
    Trouble,
}

impl<S: Sink> Writer<S> {
    /// Writer of this queue, at most `rows_per_second`.
    pub(super) fn new(
        queue: Arc<Queue>,
        sink: S,
        metrics: AuditMetrics,
        rows_per_second: usize,
    ) -> Self {
        let state = State {
            // Without randomness, the time distinguishes processes.
            writer: getrandom::u64().unwrap_or_else(|_| Timestamp::now().micros().cast_unsigned()),
            sequence: 0,
            pending: None,
            budget: Budget::new(rows_per_second),
            failures: 0,
            dropped_full: 0,
            drops_logged_at: None,
        };
        let (is_ending, _) = watch::channel(false);
        Self { queue, sink, metrics, state: Mutex::new(state), is_ending }
    }

    /// Writes periodically, until [`finish`](Self::finish) is called.
    pub(super) async fn run(&self) {
        let mut is_ending = self.is_ending.subscribe();
        let writing = async {
            loop {
                let wait = self.write().await;
                sleep(wait).await;
            }
        };
        tokio::select! {
            // An interrupted write is repeated with the same sequence number.
            _ = is_ending.wait_for(|is_ending| *is_ending) => {}
            () = writing => {}
        }
    }

    /// Writes queued rows one last time, until `deadline` at most. The rest is dropped and counted,
    /// and so is everything noted later.
    pub(super) async fn finish(&self, deadline: Instant) {
        self.is_ending.send_replace(true);
        let last = async {
            self.state.lock().await.budget.fill();
            for _ in 0..LAST_TRIES {
                if self.round(&mut *self.state.lock().await).await == Round::Done {
                    break;
                }
                sleep(RETRY.first).await;
            }
        };
        // An interrupted batch is still pending.
        let _ = timeout_at(deadline, last).await;
        self.drop_the_rest().await;
    }

    async fn drop_the_rest(&self) {
        if let Some(batch) = self.state.lock().await.pending.take() {
            self.queue.settle(&batch.rows, WriteResult::Dropped(Dropped::Shutdown));
        }
        self.queue.close();
        let dropped = self.metrics.dropped_for(Dropped::Shutdown);
        if dropped > 0 {
            warn!(
                violations = dropped,
                "violations dropped: the process stopped before they were written"
            );
        }
    }

    /// Drops rows that `matches` selects, also in the pending batch: waits for a write in progress.
    pub(super) async fn forget(&self, matches: impl Fn(&ViolationRow) -> bool) {
        let mut state = self.state.lock().await;
        if let Some(batch) = &mut state.pending {
            let forgotten: Vec<_> = batch.rows.extract_if(.., |row| matches(row)).collect();
            self.queue.settle(&forgotten, WriteResult::Dropped(Dropped::Deleted));
        }
        self.queue.forget(matches);
    }

    /// Writes what the rate limit allows, and returns the time until the next write.
    async fn write(&self) -> Duration {
        let mut state = self.state.lock().await;
        let wait = match self.round(&mut state).await {
            Round::Done => WRITE_EVERY,
            Round::Trouble => RETRY.after(state.failures),
        };
        state.log_drops(self.metrics.dropped_for(Dropped::Full), &self.queue);
        wait
    }

    /// Writes batches until nothing is left, or the rate limit is reached.
    ///
    /// # Cancel safety
    ///
    /// A batch not known to be written stays pending.
    async fn round(&self, state: &mut State) -> Round {
        state.budget.earn(Instant::now());
        loop {
            let Some(batch) = state.next_batch(&self.queue) else { return Round::Done };
            let result = match self.sink.write(batch).await {
                Ok(()) => WriteResult::Written,
                Err(error) => {
                    self.metrics.errors.inc();
                    state.failed(&error);
                    if let DataError::Unavailable(_) = error {
                        return Round::Trouble;
                    }
                    WriteResult::Dropped(Dropped::Refused)
                }
            };
            if let Some(batch) = state.pending.take() {
                self.queue.settle(&batch.rows, result);
            }
            if result == WriteResult::Written {
                self.metrics.wrote_at(Timestamp::now());
                state.succeeded();
            }
        }
    }
}

impl State {
    /// Batch to write: the pending one, or else the oldest rows within the rate limit.
    fn next_batch(&mut self, queue: &Queue) -> Option<&ViolationBatch> {
        if self.pending.as_ref().is_none_or(|batch| batch.rows.is_empty()) {
            let rows = queue.take(self.budget.rows().min(BATCH_ROWS_MAX));
            self.budget.spend(rows.len());
            self.sequence += 1;
            let batch = ViolationBatch { writer: self.writer, sequence: self.sequence, rows };
            self.pending = Some(batch).filter(|batch| !batch.rows.is_empty());
        }
        self.pending.as_ref()
    }

    fn failed(&mut self, error: &DataError) {
        if self.failures == 0 {
            warn!(%error, "cannot write violations");
        }
        self.failures = self.failures.saturating_add(1);
    }

    fn succeeded(&mut self) {
        if self.failures > 0 {
            info!(tries = self.failures, "violations are written again");
        }
        self.failures = 0;
    }

    /// Logs that violations are dropped because of a full queue, at most once per [`LOG_EVERY`].
    fn log_drops(&mut self, dropped: u64, queue: &Queue) {
        let is_due = self.drops_logged_at.is_none_or(|at| at.elapsed() >= LOG_EVERY);
        if dropped > self.dropped_full && is_due {
            let rule_id = queue.largest_rule();
            warn!(
                dropped = dropped - self.dropped_full,
                rule_id,
                "violations are dropped: the queue is full, mostly with those of this rule"
            );
            (self.dropped_full, self.drops_logged_at) = (dropped, Some(Instant::now()));
        }
    }
}

#[cfg(test)]
mod tests;
