//! The task of a link: connects, sends queued calls, passes on replies, probes, and reconnects.

use std::collections::VecDeque;
use std::future::Future;
use std::ops::ControlFlow;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use redis::{RedisResult, Value};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until, timeout_at};

use super::connection::{LinkConnection, Probe, Question, Watch, stall_after};
use super::prepare::{ReadyConnection, attempt, successor};
use super::{
    HEALTHY_AFTER, IN_FLIGHT_PACE, RECONNECT_GRACE, SENTINEL_EVERY, START_GRACE, Shared, Target,
    WARNED_MAX, lost, reconnect_delay, trouble,
};
use crate::store::Space;
use crate::store::redis::call::{BATCH_MAX, Call};
use crate::store::redis::classify::{CallError, classify, is_locked_out};
use crate::store::redis::flight::{Batch, FLIGHT_CALLS_MAX, Flight, Flights, Job};
use crate::store::redis::key::RedisKey;
use crate::store::redis::settings::Settings;
use crate::store::redis::trouble::{Trouble, TroubleKind};
use crate::store::redis::url::Address;

/// The task of a link.
pub(super) struct Task {
    target: Target,
    settings: Arc<Settings>,
    shared: Arc<Shared>,
    jobs: mpsc::Receiver<Job>,
    /// Jobs taken off the queue for the next flight. Empty between two steps.
    gathered: Vec<Job>,
    /// Attempts to connect since the last healthy connection.
    attempts: u32,
    /// Address and run id of the last connected process.
    served: Option<(Address, String)>,
    /// The refusal of credentials or certificates is logged.
    is_logged: bool,
    warned: Warned,
    /// The call that probes send: it removes a key that does not exist. For a node of a cluster, `None` until
    /// a key is known whose slot it owns: it would redirect any other, which is no sign of its health.
    forget: Option<Call>,
}

/// Processes whose warnings were logged: the last [`WARNED_MAX`] of them.
#[derive(Debug, Default)]
pub(super) struct Warned(pub(super) VecDeque<(Address, String)>);

impl Warned {
    /// Adds a process. False if it was recorded already.
    pub(super) fn insert(&mut self, address: &Address, run_id: &str) -> bool {
        if self.0.iter().any(|(at, id)| at == address && id == run_id) {
            return false;
        }
        if self.0.len() >= WARNED_MAX {
            self.0.pop_front();
        }
        self.0.push_back((address.clone(), run_id.into()));
        true
    }
}

/// Reason for the end of a connection.
enum End {
    /// All handles were dropped.
    Unwanted,
    /// The connection failed. If `brief`, a new one probably works.
    Lost { trouble: Trouble, brief: bool },
    /// Sentinels name another master; this is a connection to it.
    Replaced(Box<ReadyConnection>),
}

impl End {
    fn lost(trouble: &Trouble, brief: bool) -> ControlFlow<Self> {
        ControlFlow::Break(Self::Lost { trouble: trouble.clone(), brief })
    }
}

impl Task {
    pub(super) fn new(
        target: Target,
        settings: Arc<Settings>,
        shared: Arc<Shared>,
        jobs: mpsc::Receiver<Job>,
    ) -> Self {
        Self {
            forget: first_probe_call(&target, &settings),
            target,
            settings,
            shared,
            jobs,
            gathered: Vec::with_capacity(FLIGHT_CALLS_MAX),
            attempts: 0,
            served: None,
            is_logged: false,
            warned: Warned::default(),
        }
    }

    pub(super) async fn run(mut self) {
        let mut patience = Instant::now() + START_GRACE;
        while let Some(mut connection) = self.connected(patience).await {
            let (trouble, brief) = loop {
                match self.serve(connection).await {
                    End::Unwanted => return,
                    End::Lost { trouble, brief } => break (trouble, brief),
                    End::Replaced(fresh) => connection = self.replaced(*fresh),
                }
            };
            patience = Instant::now();
            if brief && self.attempts == 0 {
                patience += self.grace();
            } else {
                self.give_up(&trouble);
            }
        }
    }

    /// Connects, with any number of attempts. Calls wait until `patience` ends or an attempt fails; from then
    /// on they are refused. `None`: all handles were dropped.
    async fn connected(&mut self, mut patience: Instant) -> Option<LinkConnection> {
        loop {
            let delay = reconnect_delay(self.attempts);
            self.attempts = self.attempts.saturating_add(1);
            let attempt = attempt(delay, self.target.clone(), Arc::clone(&self.settings));
            match self.refuse_during(attempt, patience).await? {
                Ok(fresh) => return Some(self.connection(fresh)),
                Err(trouble) => {
                    // Decisions that are refused from now on are counted by this reason.
                    self.shared.stats.trouble(&trouble);
                    self.log_credentials(&trouble);
                    self.give_up(&trouble);
                    if trouble.kind() == TroubleKind::Unexpected {
                        // The server cannot be used, and retrying sooner does not change that.
                        self.attempts = u32::MAX;
                    }
                }
            }
            patience = Instant::now();
        }
    }

    /// Waits for a future, and refuses calls from `patience` on.
    async fn refuse_during<T>(
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
                    // `None`: all handles were dropped. `Some`: a call that passed the breaker just before it
                    // opened.
                    let refusal = Trouble::clone(&self.shared.refusal.load());
                    let _ = job?.answer.send(Err(CallError::Trouble(refusal)));
                }
            }
        }
    }

    /// Opens the breaker and fails all queued calls.
    fn give_up(&mut self, trouble: &Trouble) {
        self.shared.trip(trouble);
        // Later calls are refused by the breaker, except a few that passed it just before.
        while let Ok(job) = self.jobs.try_recv() {
            let _ = job.answer.send(Err(CallError::Trouble(trouble.clone())));
        }
    }

    fn connection(&mut self, fresh: ReadyConnection) -> LinkConnection {
        let ReadyConnection { connected, script, address, warnings } = fresh;
        self.shared.label.store(Arc::new(address.to_string()));
        self.warn(&address, &connected.server.run_id, &warnings);
        self.note_process(&address, connected.server.run_id);
        let now = Instant::now();
        let is_watched = matches!(self.target, Target::Master { .. });
        LinkConnection {
            wire: connected.connection,
            script,
            address,
            since: now,
            proven: false,
            flights: Flights::default(),
            probe: Probe { sent: None, awaited: false, flying: false },
            used: now,
            paced: now,
            watch: Watch { next: is_watched.then(|| now + SENTINEL_EVERY), asking: None },
            timer: Box::pin(sleep_until(now)),
        }
    }

    /// Switches to another master.
    fn replaced(&mut self, fresh: ReadyConnection) -> LinkConnection {
        let old = self.shared.label.load_full();
        let connection = self.connection(fresh);
        tracing::info!(%old, new = %connection.address, "switched to the new master");
        connection
    }

    /// Logs the warnings about a server once per process.
    fn warn(&mut self, address: &Address, run_id: &str, warnings: &[String]) {
        if !warnings.is_empty() && self.warned.insert(address, run_id) {
            for warning in warnings {
                tracing::warn!(server = %address, "{warning}");
            }
        }
    }

    /// Detects that a server has restarted as another process.
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

    /// Logs that credentials or certificates are refused: once, until another result.
    fn log_credentials(&mut self, trouble: &Trouble) {
        let is_ours = matches!(trouble.kind(), TroubleKind::Auth | TroubleKind::Tls);
        if is_ours && !self.is_logged {
            self.is_logged = self.shared.breaker_log.locked_out(&self.shared.label.load(), trouble);
        }
        self.is_logged &= is_ours;
    }

    /// A connection that was used, and was not refused by the server, counts as healthy: the next attempt is
    /// immediate.
    fn note_end(&mut self, connection: &LinkConnection, trouble: &Trouble) {
        let was_of_use = connection.proven || connection.since.elapsed() >= HEALTHY_AFTER;
        if was_of_use && !is_locked_out(trouble) {
            self.attempts = 0;
            self.is_logged = false;
        }
    }

    async fn serve(&mut self, mut connection: LinkConnection) -> End {
        let end = loop {
            if let ControlFlow::Break(end) = self.step(&mut connection).await {
                break end;
            }
        };
        let error = match &end {
            End::Lost { trouble, .. } => {
                self.note_end(&connection, trouble);
                CallError::Trouble(trouble.clone())
            }
            End::Replaced(_) => {
                self.drain_replies(&mut connection).await;
                let text = format!("{} is not the master any more", connection.address);
                trouble(TroubleKind::Connection, &text)
            }
            End::Unwanted => lost(),
        };
        for flight in connection.flights.drain() {
            self.shared.stats.landed(flight.calls());
            flight.fail(&error);
        }
        end
    }

    /// Waits for pending replies of a server that is replaced, within the budget of the calls that are queued
    /// for the next one.
    async fn drain_replies(&mut self, connection: &mut LinkConnection) {
        let until = Instant::now() + self.grace();
        while connection.flights.oldest().is_some() {
            let Ok((flight, replies)) = timeout_at(until, connection.flights.next()).await else {
                return;
            };
            // The connection is being dropped, so the result does not matter.
            let _ = self.landed(connection, flight, replies);
        }
    }

    /// Time for which calls can wait for another connection.
    fn grace(&self) -> Duration {
        RECONNECT_GRACE.min(self.settings.budget / 2)
    }

    /// Waits for the next event and handles it.
    async fn step(&mut self, connection: &mut LinkConnection) -> ControlFlow<End> {
        connection.arm(self.shared.breaker.state(), self.settings.budget);
        let full = self.flight_max();
        tokio::select! {
            // Replies first: they make room.
            biased;
            (flight, replies) = connection.flights.next() => {
                let is_crowd = flight.calls() > 1;
                let next = self.landed(connection, flight, replies);
                if is_crowd {
                    // Many callers were answered and may call again: yielding lets those calls form one
                    // batch.
                    tokio::task::yield_now().await;
                }
                next
            }
            count = self.jobs.recv_many(&mut self.gathered, full),
                if connection.has_room(self.jobs.len(), full) =>
            {
                if count == 0 {
                    return ControlFlow::Break(End::Unwanted);
                }
                self.send(connection);
                ControlFlow::Continue(())
            }
            () = connection.timer.as_mut() => self.on_timer(connection),
            successor = connection.watch.answer() => self.watched(successor),
            // The timer is reset after this.
            () = self.shared.opened.notified() => ControlFlow::Continue(()),
        }
    }

    /// Number of calls that makes a flight full.
    fn flight_max(&self) -> usize {
        if self.target.by_slot() { FLIGHT_CALLS_MAX } else { BATCH_MAX }
    }

    fn send(&mut self, connection: &mut LinkConnection) {
        let batches = Batch::group(self.gathered.drain(..), self.target.by_slot());
        if !batches.is_empty() {
            let flight = Flight::launch(&connection.wire, &connection.script, batches);
            self.launched(connection, flight);
        }
    }

    fn launched(&self, connection: &mut LinkConnection, flight: Flight) {
        self.shared.stats.sent(flight.calls(), flight.batches());
        connection.used = flight.sent;
        connection.paced = flight.sent + IN_FLIGHT_PACE;
        connection.flights.push(flight);
    }

    fn landed(
        &mut self,
        connection: &mut LinkConnection,
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
        connection.proven |= landing.run > 0;
        if self.forget.is_none() {
            self.forget = landing.served.as_ref().and_then(probe_call_near);
        }
        if !landing.forgotten.is_empty() {
            self.shared.stats.script_reloads(landing.forgotten.len());
            let flight = Flight::relaunch(&connection.wire, &connection.script, landing.forgotten);
            self.launched(connection, flight);
        }
        if is_probe {
            self.probed(connection, landing.error.as_ref());
        }
        landing.error.map_or(ControlFlow::Continue(()), |error| self.react(&error))
    }

    /// Consequence of an error for the connection.
    fn react(&mut self, error: &CallError) -> ControlFlow<End> {
        let CallError::Trouble(trouble) = error else { return ControlFlow::Continue(()) };
        match trouble.kind() {
            // Another server may have become the master; a new connection finds out.
            TroubleKind::ReadOnly | TroubleKind::Connection => End::lost(trouble, false),
            // A missing permission concerns single calls: only their callers get the error.
            TroubleKind::Auth if is_locked_out(trouble) => {
                self.log_credentials(trouble);
                End::lost(trouble, false)
            }
            TroubleKind::Loading => {
                self.shared.trip(trouble);
                ControlFlow::Continue(())
            }
            _ => ControlFlow::Continue(()),
        }
    }

    /// Ends a probe that was answered. A late one has ended already.
    fn probed(&mut self, connection: &mut LinkConnection, error: Option<&CallError>) {
        if let Some(CallError::Moved { .. } | CallError::Ask { .. }) = error {
            // The slot has migrated.
            self.forget = None;
        }
        let was_awaited = std::mem::take(&mut connection.probe.awaited);
        connection.probe.flying = false;
        if !was_awaited {
            return;
        }
        match error {
            Some(CallError::Trouble(trouble)) if !serves(trouble) => {
                self.shared.probed(Err(trouble));
            }
            _ => {
                self.shared.probed(Ok(()));
                self.shared.breaker.success();
            }
        }
    }

    fn on_timer(&mut self, connection: &mut LinkConnection) -> ControlFlow<End> {
        let now = Instant::now();
        let stall = stall_after(self.settings.budget);
        if connection.flights.oldest().is_some_and(|sent| now >= sent + stall) {
            let text = format!("no reply for {} ms", stall.as_millis());
            return End::lost(&Trouble::new(TroubleKind::Connection, text), false);
        }
        if connection.probe.is_late(now, self.settings.budget) {
            connection.probe.awaited = false;
            let trouble = Trouble::new(TroubleKind::Timeout, "no reply to a probe");
            self.shared.probed(Err(&trouble));
            self.shared.failed(&trouble);
        }
        if now >= connection.probe_due(self.shared.breaker.state()) {
            self.probe(connection, now);
        }
        if connection.watch.is_due(now) {
            connection.watch.next = Some(now + SENTINEL_EVERY);
            connection.watch.asking = self.question();
        }
        ControlFlow::Continue(())
    }

    /// A query of the sentinels for another master than the connected one.
    fn question(&self) -> Option<Pin<Box<Question>>> {
        let Target::Master { sentinels, name } = &self.target else { return None };
        let (sentinels, name) = (Arc::clone(sentinels), Arc::clone(name));
        let (settings, current) = (Arc::clone(&self.settings), self.served.clone()?);
        Some(Box::pin(async move { successor(&settings, &sentinels, &name, &current).await }))
    }

    /// Sends a probe: of an open breaker, or of an idle connection.
    fn probe(&self, connection: &mut LinkConnection, now: Instant) {
        // Only this task probes: if the breaker refuses, it is closed.
        let _ = self.shared.breaker.probe();
        connection.probe = Probe { sent: Some(now), awaited: true, flying: true };
        let forget = self.forget.as_ref();
        connection.flights.push(Flight::probe(&connection.wire, &connection.script, forget));
    }

    /// Handles the reply of the sentinels. Without another usable master, the connection stays.
    fn watched(&self, successor: Result<Option<ReadyConnection>, Trouble>) -> ControlFlow<End> {
        match successor {
            Ok(Some(fresh)) => ControlFlow::Break(End::Replaced(Box::new(fresh))),
            Ok(None) => ControlFlow::Continue(()),
            Err(trouble) => {
                self.shared.stats.trouble(&trouble);
                tracing::debug!(%trouble, "sentinels name a master that cannot be used");
                ControlFlow::Continue(())
            }
        }
    }
}

/// May a server that replies to a probe with this error be used?
pub(super) fn serves(trouble: &Trouble) -> bool {
    match trouble.kind() {
        TroubleKind::Connection
        | TroubleKind::Timeout
        | TroubleKind::Loading
        | TroubleKind::ReadOnly
        | TroubleKind::Busy => false,
        TroubleKind::Auth => !is_locked_out(trouble),
        _ => true,
    }
}

/// The call that the probes of a link send at first.
pub(super) fn first_probe_call(target: &Target, settings: &Settings) -> Option<Call> {
    let key = RedisKey::new(&settings.prefix, Space::Take, &[]);
    if target.by_slot() { None } else { probe_call_near(&key) }
}

/// A call that removes a key which is never stored, in the slot of this key.
fn probe_call_near(key: &RedisKey) -> Option<Call> {
    Call::forget(key.reserved()).ok()
}

/// Converts the error that broke a connection.
pub(super) fn as_lost(error: CallError) -> Trouble {
    match error {
        CallError::Trouble(trouble) => trouble,
        CallError::Moved { .. }
        | CallError::Ask { .. }
        | CallError::TryAgain
        | CallError::NoScript => Trouble::new(TroubleKind::Connection, "the connection was lost"),
    }
}
