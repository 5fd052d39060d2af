//! Writes what waits, as fast as the settings allow, and again until it is written.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use sluicegate::Backoff;
use tokio::sync::{Mutex, watch};
use tokio::time::{Instant, sleep, timeout_at};
use tracing::{info, warn};

use super::budget::Budget;
use super::queue::{Fate, Queue};
use crate::data::{DataError, DatabaseHandle, ViolationBatch, ViolationRow};
use crate::observe::metrics::audit::{AuditMetrics, Dropped};
use crate::time::Timestamp;

/// How often what waits is written. A violation is on record within twice this.
const WRITE_EVERY: Duration = Duration::from_millis(500);
/// The most rows that are written together.
const BATCH_ROWS_MAX: usize = 500;

/// How long to wait before a batch is tried again. The longest is also how soon writing resumes after trouble.
const RETRY: Backoff =
    Backoff { first: Duration::from_millis(250), longest: Duration::from_secs(2) };

/// How often the last batches are tried when the process ends.
const LAST_TRIES: u32 = 3;

/// Where batches are written.
pub(super) trait Sink: Send + Sync + 'static {
    /// Writes a batch, all or nothing, and once however often it is asked.
    fn write(&self, batch: &ViolationBatch) -> impl Future<Output = Result<(), DataError>> + Send;
}

impl Sink for DatabaseHandle {
    async fn write(&self, batch: &ViolationBatch) -> Result<(), DataError> {
        self.get()?.write_violations(batch).await
    }
}

/// Takes rows from a queue and writes them.
#[derive(Debug)]
pub(super) struct Writer<S> {
    queue: Arc<Queue>,
    sink: S,
    metrics: AuditMetrics,
    /// Held while a batch is being written, and not between two tries.
    state: Mutex<State>,
    /// Whether [`run`](Self::run) shall end.
    is_ending: watch::Sender<bool>,
}

#[derive(Debug)]
struct State {
    /// Tells this process from others that write.
    writer: u64,
    sequence: u64,
    /// What is being written. It stays, as it is, until it is known to be written or refused.
    pending: Option<ViolationBatch>,
    budget: Budget,
    /// How often in a row the database did not answer.
    failures: u32,
    /// Violations dropped for want of room when last looked at.
    dropped_full: u64,
    is_dropping: bool,
}

/// How a round of writing ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Round {
    /// Nothing is left, or nothing more may be written now.
    Done,
    /// The database does not answer.
    Trouble,
}

impl<S: Sink> Writer<S> {
    /// What writes rows of this queue, so many in a second.
    pub(super) fn new(
        queue: Arc<Queue>,
        sink: S,
        metrics: AuditMetrics,
        rows_per_second: usize,
    ) -> Self {
        let state = State {
            // Without randomness, the time tells processes from each other.
            writer: getrandom::u64().unwrap_or_else(|_| Timestamp::now().micros().cast_unsigned()),
            sequence: 0,
            pending: None,
            budget: Budget::new(rows_per_second),
            failures: 0,
            dropped_full: 0,
            is_dropping: false,
        };
        let (is_ending, _) = watch::channel(false);
        Self { queue, sink, metrics, state: Mutex::new(state), is_ending }
    }

    /// Writes what waits every now and then, until [`finish`](Self::finish) is called.
    pub(super) async fn run(&self) {
        let mut is_ending = self.is_ending.subscribe();
        let writing = async {
            loop {
                let wait = self.write().await;
                sleep(wait).await;
            }
        };
        tokio::select! {
            // A write that is cut off here is tried again with the same number.
            _ = is_ending.wait_for(|is_ending| *is_ending) => {}
            () = writing => {}
        }
    }

    /// Writes what waits one last time, until `deadline` at most. What is left is dropped and counted, and so
    /// is whatever comes later.
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
        // What is cut off is in the state still.
        let _ = timeout_at(deadline, last).await;
        self.drop_the_rest().await;
    }

    async fn drop_the_rest(&self) {
        if let Some(batch) = self.state.lock().await.pending.take() {
            self.queue.settle(&batch.rows, Fate::Dropped(Dropped::Shutdown));
        }
        self.queue.close();
        let dropped = self.metrics.dropped_for(Dropped::Shutdown);
        if dropped > 0 {
            warn!(violations = dropped, "violations not recorded: there was no time left");
        }
    }

    /// Drops what waits and `is_it` says, also what is being written: a try that is on its way is waited for.
    pub(super) async fn forget(&self, is_it: impl Fn(&ViolationRow) -> bool) {
        let mut state = self.state.lock().await;
        if let Some(batch) = &mut state.pending {
            let forgotten: Vec<_> = batch.rows.extract_if(.., |row| is_it(row)).collect();
            self.queue.settle(&forgotten, Fate::Dropped(Dropped::Deleted));
        }
        self.queue.forget(is_it);
    }

    /// Writes what may be written now, and says how long to wait until the next time.
    async fn write(&self) -> Duration {
        let mut state = self.state.lock().await;
        let wait = match self.round(&mut state).await {
            Round::Done => WRITE_EVERY,
            Round::Trouble => RETRY.after(state.failures),
        };
        state.tell_of_drops(self.metrics.dropped_for(Dropped::Full));
        wait
    }

    /// Writes batches until nothing is left, or as many rows are written as may be now.
    ///
    /// # Cancel safety
    ///
    /// What was not known to be written stays pending.
    async fn round(&self, state: &mut State) -> Round {
        state.budget.earn(Instant::now());
        loop {
            let Some(batch) = state.next_batch(&self.queue) else { return Round::Done };
            let fate = match self.sink.write(batch).await {
                Ok(()) => Fate::Written,
                Err(error) => {
                    self.metrics.errors.inc();
                    state.failed(&error);
                    if let DataError::Unavailable(_) = error {
                        return Round::Trouble;
                    }
                    Fate::Dropped(Dropped::Refused)
                }
            };
            if let Some(batch) = state.pending.take() {
                self.queue.settle(&batch.rows, fate);
            }
            if fate == Fate::Written {
                self.metrics.wrote_at(Timestamp::now());
                state.succeeded();
            }
        }
    }
}

impl State {
    /// The batch to be written: the one that was not, or else the oldest rows, as many as may be now.
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
            warn!(%error, "violations are not written");
        }
        self.failures = self.failures.saturating_add(1);
    }

    fn succeeded(&mut self) {
        if self.failures > 0 {
            info!(tries = self.failures, "violations are written again");
        }
        self.failures = 0;
    }

    /// Says when violations begin to be dropped for want of room, and when that is over.
    fn tell_of_drops(&mut self, dropped: u64) {
        let is_dropping = dropped > self.dropped_full;
        if is_dropping && !self.is_dropping {
            warn!(dropped, "violations are dropped: too many rows wait to be written");
        } else if !is_dropping && self.is_dropping {
            info!(dropped, "violations are no longer dropped");
        }
        (self.dropped_full, self.is_dropping) = (dropped, is_dropping);
    }
}

#[cfg(test)]
mod tests;
