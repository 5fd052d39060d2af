//! The link to one server: a task that owns the connection, and a bounded line of calls in front of it.
//!
//! Whatever waits when the connection is free goes out at once, together; a lone call is free at once. What
//! was sent is never sent again, except where the server says that it did not run it. A connection that
//! does not answer is dropped, and late answers with it: they cannot meet a later request.
//!
//! While there is no connection the breaker is open, and calls are refused without waiting. Only two short
//! moments are waited through, within the callers' budgets: the first connection ever, and the first try
//! to replace one that just broke.

mod backoff;
mod prepare;
mod session;
mod task;

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::time::{Instant, timeout_at};

use self::task::Task;
use super::alarm::Story;
use super::breaker::{Breaker, BreakerState, Change};
use super::call::{Call, Reply};
use super::classify::CallError;
use super::flight::{Job, Manner};
use super::settings::Settings;
use super::stats::Stats;
use super::trouble::{Trouble, TroubleKind};
use super::url::Address;

/// The most calls that wait for one server. Any more are refused at once.
pub(super) const QUEUE_MAX: usize = 4096;

/// As many flights leave as soon as there is anything to send. Two keep a server busy, one being decided
/// while the other travels; what comes meanwhile makes the next batch.
pub(super) const IN_FLIGHT_EAGER: usize = 2;

/// The most flights of one connection. Those beyond the eager ones leave when they are full, because
/// waiting would not make their batches any larger, or when the last one left [`IN_FLIGHT_PACE`] ago,
/// because the server is far away: a call should not have to wait for the answers to others.
pub(super) const IN_FLIGHT_MAX: usize = 16;

/// See [`IN_FLIGHT_MAX`].
pub(super) const IN_FLIGHT_PACE: Duration = Duration::from_millis(1);

/// A connection that has not answered for as long, or for the budget if that is longer, is dropped.
pub(super) const STALL_AFTER: Duration = Duration::from_millis(250);

/// The first wait between two tries to connect, after one that is made at once.
pub(super) const RECONNECT_MIN: Duration = Duration::from_millis(20);

/// The longest wait between two tries to connect.
pub(super) const RECONNECT_MAX: Duration = Duration::from_millis(200);

/// For as long, calls wait for the first try to replace a connection that broke.
pub(super) const RECONNECT_GRACE: Duration = Duration::from_millis(5);

/// How often an open breaker is probed while there is a connection.
pub(super) const PROBE_EVERY: Duration = Duration::from_millis(100);

/// A connection that was not used for as long is probed: nothing else would notice that its peer died.
pub(super) const IDLE_AFTER: Duration = Duration::from_secs(1);

/// How often sentinels are asked whether the master is still the one that is connected.
pub(super) const SENTINEL_EVERY: Duration = Duration::from_secs(1);

/// For as long, calls wait for the first connection of all.
pub(super) const START_GRACE: Duration = Duration::from_secs(1);

/// A connection that lived for as long was a good one.
const HEALTHY_AFTER: Duration = Duration::from_secs(1);

/// Of so many servers, the last ones, it is remembered that they were warned of.
const WARNED_MAX: usize = 16;

/// To whom a link goes.
#[derive(Clone, Debug)]
pub(super) enum Target {
    /// A server.
    Node(Address),
    /// A node of a cluster: its scripts must not touch two slots.
    Member(Address),
    /// The master of this name, as these sentinels know it.
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

/// A handle to the link. When the last one is dropped, the link ends.
#[derive(Clone, Debug)]
pub(super) struct Link {
    jobs: mpsc::Sender<Job>,
    shared: Arc<Shared>,
}

/// How it stands with a server.
#[derive(Clone, Debug)]
pub(super) struct Standing {
    pub(super) breaker: BreakerState,
    /// The server, for people.
    pub(super) server: Arc<String>,
    /// Why it is not asked, if it is not.
    pub(super) trouble: Option<Arc<Trouble>>,
}

/// What callers and the task both see.
#[derive(Debug)]
struct Shared {
    breaker: Breaker,
    /// The breaker's time is counted from here.
    started: Instant,
    /// The task is told when a caller opened the breaker.
    opened: Notify,
    /// The server, for people.
    label: ArcSwap<String>,
    /// What refused calls are told: why the breaker is open.
    refusal: ArcSwap<Trouble>,
    story: Story,
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
            story: Story::default(),
            stats,
        }
    }

    fn now_us(&self) -> u64 {
        // 2^64 microseconds are half a million years.
        self.started.elapsed().as_micros() as u64
    }

    /// A request was not answered in time.
    fn failed(&self, trouble: &Trouble) {
        if self.breaker.failure(self.now_us()) == Change::Opened {
            self.refuse(trouble);
            self.opened.notify_one();
            self.story.open(&self.label.load(), trouble);
        }
    }

    /// The server cannot be asked now, or still cannot.
    fn trip(&self, trouble: &Trouble) {
        self.refuse(trouble);
        if self.breaker.trip() == Change::Opened {
            self.opened.notify_one();
        }
        self.story.open(&self.label.load(), trouble);
    }

    fn probed(&self, result: Result<(), &Trouble>) {
        // What changed is in the story: it knows what was told.
        let _ = self.breaker.probed(result.is_ok());
        let (label, is_closed) = (self.label.load(), self.breaker.is_closed());
        match result {
            Ok(()) if is_closed => {
                self.story.closed(&label);
            }
            Err(trouble) if !is_closed => {
                self.refuse(trouble);
                self.story.open(&label, trouble);
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
    /// Starts a link on the current tokio runtime. It connects by itself, for as long as it takes.
    pub(super) fn start(target: Target, settings: Arc<Settings>, stats: Arc<Stats>) -> Self {
        let (sender, jobs) = mpsc::channel(QUEUE_MAX);
        let shared = Arc::new(Shared::new(&target, stats));
        let task = Task::new(target, settings, Arc::clone(&shared), jobs);
        tokio::spawn(task.run());
        Self { jobs: sender, shared }
    }

    /// Makes one call. Refused at once while the breaker is open or too many calls wait. After a timeout or
    /// a lost connection the outcome is unknown: it is not tried again.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future before the call is sent charges nothing; after that, everything.
    ///
    /// # Errors
    ///
    /// Trouble, or where else to ask. [`CallError::NoScript`] is never among them.
    pub(super) async fn call(
        &self,
        call: Call,
        manner: Manner,
        deadline: Instant,
    ) -> Result<Reply, CallError> {
        if !self.shared.breaker.is_closed() {
            // Whoever tries again and again must not keep the runtime from probing.
            tokio::task::coop::consume_budget().await;
            return Err(CallError::Trouble(Trouble::clone(&self.shared.refusal.load())));
        }
        let (answer, answered) = oneshot::channel();
        self.jobs.try_send(Job { call, manner, answer }).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => {
                trouble(TroubleKind::Overloaded, "too many checks wait already")
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
                let trouble = Trouble::new(TroubleKind::Timeout, "no answer within the budget");
                self.shared.failed(&trouble);
                Err(CallError::Trouble(trouble))
            }
        }
    }

    pub(super) fn breaker_state(&self) -> BreakerState {
        self.shared.breaker.state()
    }

    /// How it stands with the server.
    pub(super) fn standing(&self) -> Standing {
        let breaker = self.breaker_state();
        let is_refusing = breaker != BreakerState::Closed;
        Standing {
            breaker,
            server: self.shared.label.load_full(),
            trouble: is_refusing.then(|| self.shared.refusal.load_full()),
        }
    }

    /// How many calls wait to be sent.
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

/// Whether a server that serves said this.
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
