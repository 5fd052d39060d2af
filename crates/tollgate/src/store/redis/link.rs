//! The link to one server: a task that owns the connection, and a bounded line of calls in front of it.
//!
//! Whatever waits when the connection is free goes out at once, together; a lone call is free at once. What
//! was sent is never sent again, except where the server says that it did not run it. A connection that
//! does not answer is dropped, and late answers with it: they cannot meet a later request.
//!
//! While there is no connection the breaker is open, and calls are refused without waiting. Only two short
//! moments are waited through, within the callers' budgets: the first connection ever, and the first try
//! to replace one that just broke.

use std::future::Future;
use std::hash::{BuildHasher, RandomState};
use std::ops::ControlFlow;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use redis::{RedisResult, Value};
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::time::{Instant, Sleep, sleep_until, timeout, timeout_at};

use super::breaker::{Breaker, BreakerState, Change};
use super::call::{BATCH_MAX, Call, Reply};
use super::classify::{CallError, classify};
use super::connect::{Connected, Role, Wire, connect};
use super::flight::{Batch, FLIGHT_CALLS_MAX, Flight, Flights, Job};
use super::script::Script;
use super::sentinel::{connect_master, find_master};
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
            stats,
        }
    }

    fn now_us(&self) -> u64 {
        // 2^64 microseconds are half a million years.
        self.started.elapsed().as_micros() as u64
    }

    /// A request was not answered in time.
    fn failed(&self, trouble: &Trouble) {
        let change = self.breaker.failure(self.now_us());
        self.tell(change, trouble);
    }

    /// The server cannot be asked now.
    fn trip(&self, trouble: &Trouble) {
        self.refuse(trouble);
        let change = self.breaker.trip();
        self.tell(change, trouble);
    }

    fn probed(&self, result: Result<(), &Trouble>) {
        let change = self.breaker.probed(result.is_ok());
        match (change, result) {
            (Change::Closed, _) => {
                tracing::info!(server = %self.label.load(), "the store answers again");
            }
            (_, Err(trouble)) => self.refuse(trouble),
            (_, Ok(())) => {}
        }
    }

    fn tell(&self, change: Change, trouble: &Trouble) {
        if change == Change::Opened {
            self.refuse(trouble);
            self.opened.notify_one();
            tracing::warn!(
                server = %self.label.load(), kind = %trouble.kind(), detail = trouble.detail(),
                "the store does not answer: its breaker is open"
            );
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
        let task = Task {
            target,
            settings,
            shared: Arc::clone(&shared),
            jobs,
            gathered: Vec::with_capacity(FLIGHT_CALLS_MAX),
            backoff: Backoff::new(),
            served: None,
            told: false,
        };
        tokio::spawn(task.run());
        Self { jobs: sender, shared }
    }

    /// Makes one call; `asking` says that the server does not own its slot yet. Refused at once while the
    /// breaker is open or too many calls wait. After a timeout or a lost connection the outcome is unknown:
    /// it is not tried again.
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
        asking: bool,
        deadline: Instant,
    ) -> Result<Reply, CallError> {
        if !self.shared.breaker.is_closed() {
            // Whoever tries again and again must not keep the runtime from probing.
            tokio::task::coop::consume_budget().await;
            return Err(CallError::Trouble(Trouble::clone(&self.shared.refusal.load())));
        }
        let (answer, answered) = oneshot::channel();
        self.jobs.try_send(Job { call, asking, answer }).map_err(|error| match error {
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

    /// The server, for people.
    pub(super) fn label(&self) -> Arc<String> {
        self.shared.label.load_full()
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

/// The task behind a link.
struct Task {
    target: Target,
    settings: Arc<Settings>,
    shared: Arc<Shared>,
    jobs: mpsc::Receiver<Job>,
    /// Jobs taken off the line, about to leave. Empty between two steps.
    gathered: Vec<Job>,
    backoff: Backoff,
    /// The process that was connected last, and where.
    served: Option<(Address, String)>,
    /// It was told that credentials or certificates are wrong.
    told: bool,
}

/// A connection, as far as it has come.
struct Session {
    connection: Wire,
    script: Script,
    address: Address,
    since: Instant,
    flights: Flights,
    probe: Probe,
    /// When anything was last sent.
    used: Instant,
    /// When a flight beyond the eager ones may leave that is not full.
    paced: Instant,
    watch: Watch,
    /// Fires at the next thing to do, or before.
    timer: Pin<Box<Sleep>>,
}

/// The probe of a connection.
#[derive(Clone, Copy)]
struct Probe {
    /// When the last one was sent.
    sent: Option<Instant>,
    /// It is on its way, and within the budget.
    awaited: bool,
    /// It is on its way.
    flying: bool,
}

/// What sentinels are asked while their master is connected.
struct Watch {
    next: Option<Instant>,
    asking: Option<Pin<Box<Question>>>,
}

type Question = dyn Future<Output = Result<Address, Trouble>> + Send;

/// Why a session ended.
enum End {
    /// All handles are gone.
    Unwanted,
    /// The connection is of no use any more. If `brief`, another one probably works.
    Lost { trouble: Trouble, brief: bool },
}

impl End {
    fn lost(trouble: &Trouble, brief: bool) -> ControlFlow<Self> {
        ControlFlow::Break(Self::Lost { trouble: trouble.clone(), brief })
    }
}

impl Task {
    async fn run(mut self) {
        let mut patience = Instant::now() + START_GRACE;
        while let Some(session) = self.connected(patience).await {
            let since = session.since;
            match self.serve(session).await {
                End::Unwanted => return,
                End::Lost { trouble, brief } => {
                    if since.elapsed() >= HEALTHY_AFTER {
                        self.backoff.reset();
                    }
                    patience = Instant::now();
                    if brief && self.backoff.is_fresh() {
                        patience += RECONNECT_GRACE.min(self.settings.budget / 2);
                    } else {
                        self.give_up(&trouble);
                    }
                }
            }
        }
    }

    /// Connects, however often that must be tried. Calls wait until `patience` ends or a try fails; from
    /// then on they are refused. `None`: nobody is left to serve.
    async fn connected(&mut self, mut patience: Instant) -> Option<Session> {
        loop {
            let delay = self.backoff.next();
            let attempt = attempt(delay, self.target.clone(), Arc::clone(&self.settings));
            match self.meanwhile(attempt, patience).await? {
                Ok((connected, script, address)) => {
                    return Some(self.session(connected, script, address));
                }
                Err(trouble) => {
                    self.tell_credentials(&trouble);
                    self.give_up(&trouble);
                }
            }
            patience = Instant::now();
        }
    }

    /// Waits for something, and refuses calls from `patience` on.
    async fn meanwhile<T>(
        &mut self,
        attempt: impl Future<Output = T>,
        patience: Instant,
    ) -> Option<T> {
        let mut attempt = pin!(attempt);
        if let Ok(done) = timeout_at(patience, &mut attempt).await {
            return Some(done);
        }
        if self.shared.breaker.is_closed() {
            self.give_up(&Trouble::new(TroubleKind::Connection, "not connected in time"));
        }
        loop {
            tokio::select! {
                done = &mut attempt => return Some(done),
                job = self.jobs.recv() => {
                    // None: all handles are gone. Some: it passed the breaker just before it opened.
                    let refusal = Trouble::clone(&self.shared.refusal.load());
                    let _ = job?.answer.send(Err(CallError::Trouble(refusal)));
                }
            }
        }
    }

    /// Opens the breaker and sends everybody away who waits.
    fn give_up(&mut self, trouble: &Trouble) {
        self.shared.trip(trouble);
        // What comes now is refused by the breaker, but for a few that passed it just before.
        while let Ok(job) = self.jobs.try_recv() {
            let _ = job.answer.send(Err(CallError::Trouble(trouble.clone())));
        }
    }

    fn session(&mut self, connected: Connected, script: Script, address: Address) -> Session {
        self.shared.label.store(Arc::new(address.to_string()));
        self.note_process(&address, connected.server.run_id);
        let now = Instant::now();
        let is_watched = matches!(self.target, Target::Master { .. });
        Session {
            connection: connected.connection,
            script,
            address,
            since: now,
            flights: Flights::default(),
            probe: Probe { sent: None, awaited: false, flying: false },
            used: now,
            paced: now,
            watch: Watch { next: is_watched.then(|| now + SENTINEL_EVERY), asking: None },
            timer: Box::pin(sleep_until(now)),
        }
    }

    /// Notices that a server came back as another process.
    fn note_process(&mut self, address: &Address, run_id: String) {
        if let Some((last, last_id)) = &self.served {
            self.shared.stats.reconnected();
            if last == address && *last_id != run_id && !run_id.is_empty() {
                self.shared.stats.state_lost();
                tracing::warn!(server = %address, "the server was restarted: its buckets may be lost");
            }
        }
        self.served = Some((address.clone(), run_id));
    }

    /// Tells that an operator is needed: once, until something else happens.
    fn tell_credentials(&mut self, trouble: &Trouble) {
        let is_ours = matches!(trouble.kind(), TroubleKind::Auth | TroubleKind::Tls);
        if is_ours && !self.told {
            let (server, kind) = (self.shared.label.load(), trouble.kind());
            tracing::error!(%server, %kind, detail = trouble.detail(), "the store does not let us in");
        }
        self.told = is_ours;
    }

    async fn serve(&mut self, mut session: Session) -> End {
        let end = loop {
            if let ControlFlow::Break(end) = self.step(&mut session).await {
                break end;
            }
        };
        let error = match &end {
            End::Lost { trouble, .. } => CallError::Trouble(trouble.clone()),
            End::Unwanted => lost(),
        };
        for flight in session.flights.drain() {
            self.shared.stats.landed(flight.calls());
            flight.fail(&error);
        }
        end
    }

    /// Waits for the next thing to happen, and does what it asks for.
    async fn step(&mut self, session: &mut Session) -> ControlFlow<End> {
        session.arm(self.shared.breaker.state(), self.settings.budget);
        let full = self.flight_max();
        tokio::select! {
            // Answers first: they make room.
            biased;
            (flight, replies) = session.flights.next() => {
                let is_crowd = flight.calls() > 1;
                let next = self.landed(session, flight, replies);
                if is_crowd {
                    // Many were answered, and many may ask again: together, if they are let first.
                    tokio::task::yield_now().await;
                }
                next
            }
            count = self.jobs.recv_many(&mut self.gathered, full),
                if session.has_room(self.jobs.len(), full) =>
            {
                if count == 0 {
                    return ControlFlow::Break(End::Unwanted);
                }
                self.send(session);
                ControlFlow::Continue(())
            }
            () = session.timer.as_mut() => self.on_timer(session),
            master = session.watch.answer() => self.watched(session, master),
            // The timer is set anew.
            () = self.shared.opened.notified() => ControlFlow::Continue(()),
        }
    }

    /// How many calls make a flight full.
    fn flight_max(&self) -> usize {
        if self.target.by_slot() { FLIGHT_CALLS_MAX } else { BATCH_MAX }
    }

    fn send(&mut self, session: &mut Session) {
        let batches = Batch::group(self.gathered.drain(..), self.target.by_slot());
        if !batches.is_empty() {
            let flight = Flight::launch(&session.connection, &session.script, batches);
            self.launched(session, flight);
        }
    }

    fn launched(&self, session: &mut Session, flight: Flight) {
        self.shared.stats.sent(flight.calls(), flight.batches());
        session.used = flight.sent;
        session.paced = flight.sent + IN_FLIGHT_PACE;
        session.flights.push(flight);
    }

    fn landed(
        &mut self,
        session: &mut Session,
        flight: Flight,
        replies: RedisResult<Vec<Value>>,
    ) -> ControlFlow<End> {
        self.shared.stats.landed(flight.calls());
        let is_probe = flight.is_probe();
        let values = match replies {
            Ok(values) => values,
            Err(error) => {
                let error = classify(&error);
                flight.fail(&error);
                return End::lost(&as_lost(error), true);
            }
        };
        let landing = flight.land(values);
        if landing.run > 0 {
            self.backoff.reset();
            self.told = false;
        }
        if !landing.forgotten.is_empty() {
            self.shared.stats.script_reloads(landing.forgotten.len());
            let flight = Flight::relaunch(&session.connection, &session.script, landing.forgotten);
            self.launched(session, flight);
        }
        if is_probe {
            self.probed(session, landing.error.as_ref());
        }
        landing.error.map_or(ControlFlow::Continue(()), |error| self.react(&error))
    }

    /// What an error means for the connection.
    fn react(&mut self, error: &CallError) -> ControlFlow<End> {
        let CallError::Trouble(trouble) = error else { return ControlFlow::Continue(()) };
        match trouble.kind() {
            // Another server may have become the master; this one knows it when it is asked anew.
            TroubleKind::ReadOnly | TroubleKind::Connection => End::lost(trouble, false),
            TroubleKind::Auth => {
                self.tell_credentials(trouble);
                End::lost(trouble, false)
            }
            TroubleKind::Loading => {
                self.shared.trip(trouble);
                ControlFlow::Continue(())
            }
            _ => ControlFlow::Continue(()),
        }
    }

    /// Ends a probe that was answered. One that was late has ended already.
    fn probed(&self, session: &mut Session, error: Option<&CallError>) {
        let was_awaited = std::mem::take(&mut session.probe.awaited);
        session.probe.flying = false;
        if !was_awaited {
            return;
        }
        match error {
            Some(CallError::Trouble(trouble)) if !serves(trouble.kind()) => {
                self.shared.probed(Err(trouble));
            }
            _ => {
                self.shared.probed(Ok(()));
                self.shared.breaker.success();
            }
        }
    }

    fn on_timer(&mut self, session: &mut Session) -> ControlFlow<End> {
        let now = Instant::now();
        let stall = stall_after(self.settings.budget);
        if session.flights.oldest().is_some_and(|sent| now >= sent + stall) {
            let text = format!("no answer for {} ms", stall.as_millis());
            return End::lost(&Trouble::new(TroubleKind::Connection, text), false);
        }
        if session.probe.is_late(now, self.settings.budget) {
            session.probe.awaited = false;
            let trouble = Trouble::new(TroubleKind::Timeout, "no answer to a probe");
            self.shared.probed(Err(&trouble));
            self.shared.failed(&trouble);
        }
        if now >= session.probe_due(self.shared.breaker.state()) {
            self.probe(session, now);
        }
        if let Target::Master { sentinels, name } = &self.target
            && session.watch.is_due(now)
        {
            let (sentinels, name) = (Arc::clone(sentinels), Arc::clone(name));
            let settings = Arc::clone(&self.settings);
            session.watch.next = Some(now + SENTINEL_EVERY);
            session.watch.asking =
                Some(Box::pin(async move { find_master(&settings, &sentinels, &name).await }));
        }
        ControlFlow::Continue(())
    }

    /// Sends a probe: of an open breaker, or of a connection that was idle.
    fn probe(&self, session: &mut Session, now: Instant) {
        // Nobody else probes: if this is refused, the breaker is closed.
        let _ = self.shared.breaker.probe();
        session.probe = Probe { sent: Some(now), awaited: true, flying: true };
        session.flights.push(Flight::probe(&session.connection, &session.script));
    }

    /// Sentinels said who is master. If they cannot be asked, it stays the one that answers.
    fn watched(&self, session: &mut Session, master: Result<Address, Trouble>) -> ControlFlow<End> {
        match master {
            Ok(address) if address != session.address => {
                tracing::info!(old = %session.address, new = %address, "there is a new master");
                let text = format!("{} is not the master any more", session.address);
                End::lost(&Trouble::new(TroubleKind::Connection, text), true)
            }
            _ => ControlFlow::Continue(()),
        }
    }
}

/// Whether a server that answers a probe like this is worth asking.
fn serves(kind: TroubleKind) -> bool {
    !matches!(
        kind,
        TroubleKind::Connection
            | TroubleKind::Timeout
            | TroubleKind::Loading
            | TroubleKind::ReadOnly
            | TroubleKind::Auth
            | TroubleKind::Busy
    )
}

/// What broke a connection, as trouble.
fn as_lost(error: CallError) -> Trouble {
    match error {
        CallError::Trouble(trouble) => trouble,
        CallError::Moved { .. }
        | CallError::Ask { .. }
        | CallError::TryAgain
        | CallError::NoScript => Trouble::new(TroubleKind::Connection, "the connection was lost"),
    }
}

/// One try to connect, after a delay: to whom, and with the script loaded.
async fn attempt(
    delay: Duration,
    target: Target,
    settings: Arc<Settings>,
) -> Result<(Connected, Script, Address), Trouble> {
    if !delay.is_zero() {
        tokio::time::sleep(delay).await;
    }
    let (address, mut connected) = match target {
        Target::Node(address) => {
            let connected = connect(&settings, &address).await?;
            if connected.server.role == Role::Replica {
                let text = format!("{address} is a replica");
                return Err(Trouble::new(TroubleKind::ReadOnly, text));
            }
            (address, connected)
        }
        // A replica of a cluster knows who its master is, and says it to every call.
        Target::Member(address) => {
            let connected = connect(&settings, &address).await?;
            (address, connected)
        }
        Target::Master { sentinels, name } => connect_master(&settings, &sentinels, &name).await?,
    };
    let script = Script::new(connected.server.version.major.into(), settings.clock.clone());
    let load = script.load();
    match timeout(STALL_AFTER, connected.connection.send_packed_command(&load)).await {
        Ok(Ok(Value::ServerError(error))) => match classify(&error.into()) {
            // Busy, loading, not allowed: the script calls would say the same.
            CallError::Trouble(trouble) => Err(trouble),
            _ => Err(Trouble::new(TroubleKind::Unexpected, "the script cannot be loaded")),
        },
        Ok(Ok(_)) => Ok((connected, script, address)),
        Ok(Err(error)) => Err(as_lost(classify(&error))),
        Err(_) => Err(Trouble::new(TroubleKind::Connection, "the script was not loaded in time")),
    }
}

/// When a connection is given up: not before the callers are.
fn stall_after(budget: Duration) -> Duration {
    STALL_AFTER.max(budget)
}

/// Whether another flight may leave with as many on their way: see [`IN_FLIGHT_MAX`].
fn may_leave(flying: usize, is_full: bool, is_paced: impl Fn() -> bool) -> bool {
    flying < IN_FLIGHT_EAGER || flying < IN_FLIGHT_MAX && (is_full || is_paced())
}

impl Session {
    /// Whether another flight may leave, with as many calls waiting.
    fn has_room(&self, waiting: usize, full: usize) -> bool {
        may_leave(self.flights.len(), waiting >= full, || Instant::now() >= self.paced)
    }

    /// When the next probe is to be sent.
    fn probe_due(&self, breaker: BreakerState) -> Instant {
        if self.probe.flying {
            return self.used.max(Instant::now()) + IDLE_AFTER;
        }
        match (breaker, self.probe.sent) {
            (BreakerState::Closed, sent) => self.used.max(sent.unwrap_or(self.used)) + IDLE_AFTER,
            (_, Some(sent)) => sent + PROBE_EVERY,
            (_, None) => self.since,
        }
    }

    /// Sets the timer, if it would fire too late. One that fires early does no harm, and setting it for
    /// every flight would cost more.
    fn arm(&mut self, breaker: BreakerState, budget: Duration) {
        let mut due = self.probe_due(breaker);
        if let Some(sent) = self.flights.oldest() {
            due = due.min(sent + stall_after(budget));
        }
        let flying = self.flights.len();
        if (IN_FLIGHT_EAGER..IN_FLIGHT_MAX).contains(&flying) && Instant::now() < self.paced {
            due = due.min(self.paced);
        }
        if let Some(sent) = self.probe.sent.filter(|_| self.probe.awaited) {
            due = due.min(sent + budget);
        }
        if let Some(next) = self.watch.next.filter(|_| self.watch.asking.is_none()) {
            due = due.min(next);
        }
        if self.timer.is_elapsed() || due < self.timer.deadline() {
            self.timer.as_mut().reset(due);
        }
    }
}

impl Probe {
    fn is_late(&self, now: Instant, budget: Duration) -> bool {
        self.awaited && self.sent.is_some_and(|sent| now >= sent + budget)
    }
}

impl Watch {
    fn is_due(&self, now: Instant) -> bool {
        self.asking.is_none() && self.next.is_some_and(|next| now >= next)
    }

    /// Waits for the sentinels' answer; for ever if they were not asked.
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost: the question lives in `self`.
    async fn answer(&mut self) -> Result<Address, Trouble> {
        match &mut self.asking {
            Some(asking) => {
                let answer = asking.await;
                self.asking = None;
                answer
            }
            None => std::future::pending().await,
        }
    }
}

/// How long to wait before the next try to connect.
#[derive(Debug)]
struct Backoff {
    tries: u32,
    random: u64,
}

impl Backoff {
    fn new() -> Self {
        // Never zero, of which xorshift makes nothing else.
        Self { tries: 0, random: RandomState::new().hash_one(0) | 1 }
    }

    fn reset(&mut self) {
        self.tries = 0;
    }

    fn is_fresh(&self) -> bool {
        self.tries == 0
    }

    /// Nothing at first, then twice as much each time, less up to a half: clients that lost a server
    /// together do not come back together.
    fn next(&mut self) -> Duration {
        let doublings = self.tries.checked_sub(1);
        self.tries = self.tries.saturating_add(1);
        let Some(doublings) = doublings else { return Duration::ZERO };
        let full = RECONNECT_MIN.saturating_mul(1 << doublings.min(16)).min(RECONNECT_MAX);
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        full - full.mul_f64((self.random % 1000) as f64 / 2000.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::redis::flight::tests::forget;

    const BUDGET: Duration = Duration::from_millis(10);

    /// A link without a task, and the other end of its line.
    fn idle() -> (Link, mpsc::Receiver<Job>) {
        let (jobs, line) = mpsc::channel(QUEUE_MAX);
        let address = Address::Tcp { host: "h".into(), port: 1 };
        let shared = Arc::new(Shared::new(&Target::Node(address), Arc::default()));
        (Link { jobs, shared }, line)
    }

    async fn call(link: &Link) -> Result<Reply, TroubleKind> {
        let result = link.call(forget("k"), false, Instant::now() + BUDGET).await;
        result.map_err(|error| error.into_trouble().kind())
    }

    fn reply() -> Reply {
        let now = tollgate_core::Micros::new(1);
        Reply { now, done: true, repaired: 0, seen: smallvec::SmallVec::new() }
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_that_is_not_answered_ends_with_its_budget() {
        let (link, _line) = idle();
        let start = Instant::now();
        assert_eq!(call(&link).await, Err(TroubleKind::Timeout));
        let took = start.elapsed();
        assert!(took >= BUDGET && took <= BUDGET + Duration::from_millis(1), "{took:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn ten_timeouts_open_the_breaker_and_then_nothing_is_tried() {
        let (link, mut line) = idle();
        for _ in 0..10 {
            assert_eq!(call(&link).await, Err(TroubleKind::Timeout));
        }
        let start = Instant::now();
        assert_eq!(call(&link).await, Err(TroubleKind::Open));
        assert_eq!(start.elapsed(), Duration::ZERO);
        assert_eq!(link.breaker_state(), BreakerState::Open);
        let mut waiting = Vec::new();
        line.recv_many(&mut waiting, 100).await;
        assert_eq!(waiting.len(), 10);
        assert!(Batch::group(waiting.into_iter(), false).is_empty(), "nobody waits for them");
    }

    #[tokio::test(start_paused = true)]
    async fn a_full_line_refuses_at_once() {
        let (link, _line) = idle();
        let waiting: Vec<_> = (0..QUEUE_MAX)
            .map(|_| {
                let (answer, answered) = oneshot::channel();
                let job = Job { call: forget("k"), asking: false, answer };
                link.jobs.try_send(job).unwrap();
                answered
            })
            .collect();
        assert_eq!(link.queued(), QUEUE_MAX);
        let start = Instant::now();
        assert_eq!(call(&link).await, Err(TroubleKind::Overloaded));
        assert_eq!(start.elapsed(), Duration::ZERO);
        assert_eq!(link.breaker_state(), BreakerState::Closed, "that is not the server's fault");
        drop(waiting);
    }

    #[tokio::test(start_paused = true)]
    async fn answers_are_successes_whatever_they_say() {
        let (link, mut line) = idle();
        for _ in 0..9 {
            assert_eq!(call(&link).await, Err(TroubleKind::Timeout));
        }
        while line.try_recv().is_ok() {}
        let oom = || trouble(TroubleKind::OutOfMemory, "OOM");
        let server = async { line.recv().await.unwrap().answer.send(Err(oom())) };
        assert_eq!(tokio::join!(call(&link), server).0, Err(TroubleKind::OutOfMemory));
        for _ in 0..9 {
            assert_eq!(call(&link).await, Err(TroubleKind::Timeout));
        }
        assert_eq!(link.breaker_state(), BreakerState::Closed);
    }

    #[tokio::test(start_paused = true)]
    async fn answers_reach_their_calls() {
        let (link, mut line) = idle();
        let server = async { line.recv().await.unwrap().answer.send(Ok(reply())) };
        assert_eq!(tokio::join!(call(&link), server).0, Ok(reply()));
        drop(line);
        assert_eq!(call(&link).await, Err(TroubleKind::Connection), "the task is gone");
    }

    #[tokio::test(start_paused = true)]
    async fn a_dropped_call_that_was_not_sent_is_not_sent() {
        let (link, mut line) = idle();
        {
            let mut call = pin!(call(&link));
            let waited = timeout(Duration::from_millis(1), &mut call).await;
            assert!(waited.is_err());
        }
        let job = line.recv().await.unwrap();
        assert!(Batch::group(std::iter::once(job), false).is_empty());
    }

    #[test]
    fn a_lone_call_leaves_at_once_and_more_make_batches() {
        let leaves = |flying, is_full, is_paced| may_leave(flying, is_full, || is_paced);
        for flying in 0..IN_FLIGHT_EAGER {
            assert!(leaves(flying, false, false));
        }
        for flying in IN_FLIGHT_EAGER..IN_FLIGHT_MAX {
            assert!(!leaves(flying, false, false));
            assert!(leaves(flying, true, false));
            assert!(leaves(flying, false, true));
        }
        assert!(!leaves(IN_FLIGHT_MAX, true, true));
    }

    #[test]
    fn tries_to_connect_back_off_and_never_rest_long() {
        let mut backoff = Backoff::new();
        assert_eq!(backoff.next(), Duration::ZERO);
        assert!(!backoff.is_fresh());
        let mut full = RECONNECT_MIN;
        for _ in 0..100 {
            let wait = backoff.next();
            assert!(wait <= full && wait >= full / 2, "{wait:?} of {full:?}");
            full = (full * 2).min(RECONNECT_MAX);
        }
        backoff.reset();
        assert!(backoff.is_fresh());
        assert_eq!(backoff.next(), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_does_not_answer_is_given_up_at_first_try() {
        // Nobody listens on a path that does not exist.
        let url = "unix:/nonexistent/redis.sock".parse().unwrap();
        let settings = Arc::new(Settings::new(url));
        let target = Target::Node(Address::Unix("/nonexistent/redis.sock".into()));
        let link = Link::start(target, settings, Arc::default());
        assert_eq!(call(&link).await, Err(TroubleKind::Connection));
        assert_eq!(call(&link).await, Err(TroubleKind::Open));
        assert_eq!(link.breaker_state(), BreakerState::Open);
    }

    #[tokio::test(start_paused = true)]
    async fn the_task_ends_with_its_last_handle() {
        let url = "unix:/nonexistent/redis.sock".parse().unwrap();
        let settings = Arc::new(Settings::new(url));
        let target = Target::Node(Address::Unix("/nonexistent/redis.sock".into()));
        let link = Link::start(target, settings, Arc::default());
        let shared = Arc::downgrade(&link.shared);
        let other = link.clone();
        drop(link);
        tokio::time::sleep(RECONNECT_MAX * 10).await;
        assert!(shared.upgrade().is_some());
        drop(other);
        tokio::time::sleep(RECONNECT_MAX * 2).await;
        assert!(shared.upgrade().is_none());
    }
}
