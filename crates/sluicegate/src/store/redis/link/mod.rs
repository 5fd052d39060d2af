//! The link to one server: a task that owns the connection, and a bounded queue of calls.
//!
//! All queued calls are sent together as soon as the connection is free; a single call is sent at once. A
//! call that was sent is never sent again, unless the server replies that it did not run it. A connection
//! that does not reply is dropped, and late replies with it: they cannot be taken for replies to later
//! requests.
//!
//! Without a connection the breaker is open, and calls are refused without waiting. Calls wait, within their
//! budgets, in two cases only: for the first connection after the start, and for the first attempt to replace
//! a lost connection.

mod connection;
mod prepare;
mod task;

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::time::{Instant, timeout_at};

use self::task::Task;
use super::alarm::BreakerLog;
use super::breaker::{Breaker, BreakerState, Change};
use super::call::{Call, Reply};
use super::classify::CallError;
use super::flight::{Job, SendMode};
use super::settings::Settings;
use super::stats::Stats;
use super::trouble::{Trouble, TroubleKind};
use super::url::Address;
use crate::backoff::Backoff;

/// Maximum of queued calls per server. Further calls are refused at once.
pub(super) const QUEUE_MAX: usize = 4096;

/// Number of flights that are sent without delay. Two keep a server busy: one is decided while the other is
/// on the network; calls that arrive meanwhile form the next batch.
pub(super) const IN_FLIGHT_EAGER: usize = 2;

/// Maximum of flights per connection. Those beyond the eager ones are sent when they are full, because
/// waiting would not make their batches larger, or when the last one was sent [`IN_FLIGHT_PACE`] ago, because
/// the server is far away: a call should not wait for the replies to others.
pub(super) const IN_FLIGHT_MAX: usize = 16;

/// Pace of flights beyond the eager ones: see [`IN_FLIGHT_MAX`].
pub(super) const IN_FLIGHT_PACE: Duration = Duration::from_millis(1);

/// Time without a reply after which a connection is dropped; the budget if that is longer.
pub(super) const STALL_AFTER: Duration = Duration::from_millis(250);

/// First wait between two attempts to connect; the first retry is immediate.
pub(super) const RECONNECT_MIN: Duration = Duration::from_millis(20);

/// Longest wait between two attempts to connect.
pub(super) const RECONNECT_MAX: Duration = Duration::from_millis(200);

/// Wait before this attempt to connect, counted from 0 since the last healthy connection.
fn reconnect_delay(attempt: u32) -> Duration {
    let backoff = Backoff { first: RECONNECT_MIN, longest: RECONNECT_MAX };
    if attempt == 0 { Duration::ZERO } else { backoff.after(attempt) }
}

/// Time for which calls wait for the first attempt to replace a lost connection.
pub(super) const RECONNECT_GRACE: Duration = Duration::from_millis(5);

/// Interval of probes of an open breaker while there is a connection.
pub(super) const PROBE_EVERY: Duration = Duration::from_millis(100);

/// Idle time after which a connection is probed: nothing else would detect that its peer died.
pub(super) const IDLE_AFTER: Duration = Duration::from_secs(1);

/// Interval of asking sentinels whether the connected server is still the master.
pub(super) const SENTINEL_EVERY: Duration = Duration::from_secs(1);

/// Time for which calls wait for the first connection.
pub(super) const START_GRACE: Duration = Duration::from_secs(1);

/// Lifetime after which a connection counts as healthy.
const HEALTHY_AFTER: Duration = Duration::from_secs(1);

/// Number of servers for which it is recorded that their warnings were logged.
const WARNED_MAX: usize = 16;

/// Target of a link.
#[derive(Clone, Debug)]
pub(super) enum Target {
    /// A standalone server.
    Node(Address),
    /// A node of a cluster: its scripts must not touch two slots.
    Member(Address),
    /// The master of this name, as known to these sentinels.
    Master { sentinels: Arc<[Address]>, name: Arc<str> },
}

impl Target {
    fn label(&self) -> String {
        match self {
            Self::Node(address) | Self::Member(address) => address.to_string(),
            Self::Master { name, .. } => format!("master {name}"),
        }
    }

    fn by_slot(&self) -> bool {
        matches!(self, Self::Member(_))
    }
}

/// Handle of a link. The link ends when the last handle is dropped.
#[derive(Clone, Debug)]
pub(super) struct Link {
    jobs: mpsc::Sender<Job>,
    shared: Arc<Shared>,
}

/// Status of a server.
#[derive(Clone, Debug)]
pub(super) struct ServerStatus {
    pub(super) breaker: BreakerState,
    /// Name of the server, for operators.
    pub(super) server: Arc<String>,
    /// Reason why calls are refused; `None` if they are not.
    pub(super) trouble: Option<Arc<Trouble>>,
}

/// State shared by callers and the task.
#[derive(Debug)]
struct Shared {
    breaker: Breaker,
    /// Origin of the breaker's time.
    started: Instant,
    /// Notifies the task that a caller opened the breaker.
    opened: Notify,
    /// Name of the server, for operators.
    label: ArcSwap<String>,
    /// Error of refused calls: the reason why the breaker is open.
    refusal: ArcSwap<Trouble>,
    breaker_log: BreakerLog,
    stats: Arc<Stats>,
}

impl Shared {
    fn new(target: &Target, stats: Arc<Stats>) -> Self {
        Self {
            breaker: Breaker::new(),
            started: Instant::now(),
            opened: Notify::new(),
            label: ArcSwap::from_pointee(target.label()),
            refusal: ArcSwap::from_pointee(Trouble::new(TroubleKind::Open, "not connected yet")),
            breaker_log: BreakerLog::default(),
            stats,
        }
    }

    fn now_us(&self) -> u64 {
        // 2^64 microseconds are half a million years.
        self.started.elapsed().as_micros() as u64
    }

    /// Records a call without a reply in time.
    fn failed(&self, trouble: &Trouble) {
        if self.breaker.failure(self.now_us()) == Change::Opened {
            self.refuse(trouble);
            self.opened.notify_one();
            self.breaker_log.open(&self.label.load(), trouble);
        }
    }

    /// Opens the breaker, or keeps it open with a new reason.
    fn trip(&self, trouble: &Trouble) {
        self.refuse(trouble);
        if self.breaker.trip() == Change::Opened {
            self.opened.notify_one();
        }
        self.breaker_log.open(&self.label.load(), trouble);
    }

    fn probed(&self, result: Result<(), &Trouble>) {
        // The transition is ignored: the log compares with its last message.
        let _ = self.breaker.probed(result.is_ok());
        let (label, is_closed) = (self.label.load(), self.breaker.is_closed());
        match result {
            Ok(()) if is_closed => {
                self.breaker_log.closed(&label);
            }
            Err(trouble) if !is_closed => {
                self.refuse(trouble);
                self.breaker_log.open(&label, trouble);
            }
            _ => {}
        }
    }

    fn refuse(&self, trouble: &Trouble) {
        let label = self.label.load();
        let is_named = trouble.detail().contains(label.as_str());
        let text = if is_named { trouble.to_string() } else { format!("{label}: {trouble}") };
        self.refusal.store(Arc::new(Trouble::new(TroubleKind::Open, text)));
    }
}

impl Link {
    /// Starts a link on the current tokio runtime. It connects by itself, and retries for ever.
    pub(super) fn start(target: Target, settings: Arc<Settings>, stats: Arc<Stats>) -> Self {
        let (sender, jobs) = mpsc::channel(QUEUE_MAX);
        let shared = Arc::new(Shared::new(&target, stats));
        let task = Task::new(target, settings, Arc::clone(&shared), jobs);
        tokio::spawn(task.run());
        Self { jobs: sender, shared }
    }

    /// Sends one call. Refused at once while the breaker is open or the queue is full. After a timeout or a
    /// lost connection the outcome is unknown, and the call is not retried.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future before the call is sent charges nothing; after that, everything.
    ///
    /// # Errors
    ///
    /// Store errors and redirections. Never [`CallError::NoScript`].
    pub(super) async fn call(
        &self,
        call: Call,
        manner: SendMode,
        deadline: Instant,
    ) -> Result<Reply, CallError> {
        if !self.shared.breaker.is_closed() {
            // A caller that retries in a loop must not starve the task that probes.
            tokio::task::coop::consume_budget().await;
            return Err(CallError::Trouble(Trouble::clone(&self.shared.refusal.load())));
        }
        let (answer, answered) = oneshot::channel();
        self.jobs.try_send(Job { call, manner, answer }).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => {
                trouble(TroubleKind::Overloaded, "the queue is full")
            }
            mpsc::error::TrySendError::Closed(_) => lost(),
        })?;
        match timeout_at(deadline, answered).await {
            Ok(Ok(result)) => {
                if result.as_ref().err().is_none_or(is_answer) {
                    self.shared.breaker.success();
                }
                result
            }
            Ok(Err(_)) => Err(lost()),
            Err(_) => {
                let trouble = Trouble::new(TroubleKind::Timeout, "no reply within the budget");
                self.shared.failed(&trouble);
                Err(CallError::Trouble(trouble))
            }
        }
    }

    pub(super) fn breaker_state(&self) -> BreakerState {
        self.shared.breaker.state()
    }

    /// Status of the server.
    pub(super) fn status(&self) -> ServerStatus {
        let breaker = self.breaker_state();
        let is_refusing = breaker != BreakerState::Closed;
        ServerStatus {
            breaker,
            server: self.shared.label.load_full(),
            trouble: is_refusing.then(|| self.shared.refusal.load_full()),
        }
    }

    /// Number of queued calls.
    pub(super) fn queued(&self) -> usize {
        self.jobs.max_capacity() - self.jobs.capacity()
    }
}

fn trouble(kind: TroubleKind, detail: &str) -> CallError {
    CallError::Trouble(Trouble::new(kind, detail))
}

fn lost() -> CallError {
    trouble(TroubleKind::Connection, "the connection was lost")
}

/// Did a server that serves requests send this?
fn is_answer(error: &CallError) -> bool {
    match error {
        CallError::Trouble(trouble) => !matches!(
            trouble.kind(),
            TroubleKind::Connection
                | TroubleKind::Timeout
                | TroubleKind::Open
                | TroubleKind::Overloaded
                | TroubleKind::Loading
        ),
        CallError::Moved { .. } | CallError::Ask { .. } => true,
        CallError::TryAgain | CallError::NoScript => true,
    }
}

#[cfg(test)]
mod tests;
