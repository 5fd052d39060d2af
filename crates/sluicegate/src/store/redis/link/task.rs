//! The task behind a link: connects, sends what waits, answers, probes, and gives up.

use std::collections::VecDeque;
use std::future::Future;
use std::ops::ControlFlow;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use redis::{RedisResult, Value};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until, timeout_at};

use super::backoff::Backoff;
use super::prepare::{Fresh, attempt, successor};
use super::session::{Probe, Question, Session, Watch, stall_after};
use super::{
    HEALTHY_AFTER, IN_FLIGHT_PACE, RECONNECT_GRACE, SENTINEL_EVERY, START_GRACE, Shared, Target,
    WARNED_MAX, lost, trouble,
};
use crate::store::Space;
use crate::store::redis::call::{BATCH_MAX, Call};
use crate::store::redis::classify::{CallError, classify, is_locked_out};
use crate::store::redis::flight::{Batch, FLIGHT_CALLS_MAX, Flight, Flights, Job};
use crate::store::redis::key::RedisKey;
use crate::store::redis::settings::Settings;
use crate::store::redis::trouble::{Trouble, TroubleKind};
use crate::store::redis::url::Address;

/// The task behind a link.
pub(super) struct Task {
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
    warned: Warned,
    /// What probes are to forget. Of a node of a cluster, none until a key is known whose slot it has:
    /// to any other it would point elsewhere, which says nothing about itself.
    forget: Option<Call>,
}

/// The servers, as processes, that were warned of: the last [`WARNED_MAX`] of them.
#[derive(Debug, Default)]
pub(super) struct Warned(pub(super) VecDeque<(Address, String)>);

impl Warned {
    /// Whether it was not among them; now it is.
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

/// Why a session ended.
enum End {
    /// All handles are gone.
    Unwanted,
    /// The connection is of no use any more. If `brief`, another one probably works.
    Lost { trouble: Trouble, brief: bool },
    /// There is another master, and this is a connection to it.
    Replaced(Box<Fresh>),
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
            forget: forget_nothing(&target, &settings),
            target,
            settings,
            shared,
            jobs,
            gathered: Vec::with_capacity(FLIGHT_CALLS_MAX),
            backoff: Backoff::new(),
            served: None,
            told: false,
            warned: Warned::default(),
        }
    }

    pub(super) async fn run(mut self) {
        let mut patience = Instant::now() + START_GRACE;
        while let Some(mut session) = self.connected(patience).await {
            let (trouble, brief) = loop {
                match self.serve(session).await {
                    End::Unwanted => return,
                    End::Lost { trouble, brief } => break (trouble, brief),
                    End::Replaced(fresh) => session = self.replaced(*fresh),
                }
            };
            patience = Instant::now();
            if brief && self.backoff.is_fresh() {
                patience += self.grace();
            } else {
                self.give_up(&trouble);
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
                Ok(fresh) => return Some(self.session(fresh)),
                Err(trouble) => {
                    // Decisions that are refused from now on count as such: this is where the reason is.
                    self.shared.stats.trouble(&trouble);
                    self.tell_credentials(&trouble);
                    self.give_up(&trouble);
                    if trouble.kind() == TroubleKind::Unexpected {
                        // It is no server for us, and does not become one by being asked again.
                        self.backoff.slow_down();
                    }
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

    fn session(&mut self, fresh: Fresh) -> Session {
        let Fresh { connected, script, address, warnings } = fresh;
        self.shared.label.store(Arc::new(address.to_string()));
        self.warn(&address, &connected.server.run_id, &warnings);
        self.note_process(&address, connected.server.run_id);
        let now = Instant::now();
        let is_watched = matches!(self.target, Target::Master { .. });
        Session {
            connection: connected.connection,
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

    /// Goes on with another master.
    fn replaced(&mut self, fresh: Fresh) -> Session {
        let old = self.shared.label.load_full();
        let session = self.session(fresh);
        tracing::info!(%old, new = %session.address, "there is a new master");
        session
    }

    /// Tells what is doubtful about a server: once, until it is started anew.
    fn warn(&mut self, address: &Address, run_id: &str, warnings: &[String]) {
        if !warnings.is_empty() && self.warned.insert(address, run_id) {
            for warning in warnings {
                tracing::warn!(server = %address, "{warning}");
            }
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
            self.told = self.shared.story.locked_out(&self.shared.label.load(), trouble);
        }
        self.told &= is_ours;
    }

    /// A connection that was of use, and did not end with our being sent away, was a good one: the next
    /// is tried at once.
    fn note_end(&mut self, session: &Session, trouble: &Trouble) {
        let was_of_use = session.proven || session.since.elapsed() >= HEALTHY_AFTER;
        if was_of_use && !is_locked_out(trouble) {
            self.backoff.reset();
            self.told = false;
        }
    }

    async fn serve(&mut self, mut session: Session) -> End {
        let end = loop {
            if let ControlFlow::Break(end) = self.step(&mut session).await {
                break end;
            }
        };
        let error = match &end {
            End::Lost { trouble, .. } => {
                self.note_end(&session, trouble);
                CallError::Trouble(trouble.clone())
            }
            End::Replaced(_) => {
                self.see_off(&mut session).await;
                let text = format!("{} is not the master any more", session.address);
                trouble(TroubleKind::Connection, &text)
            }
            End::Unwanted => lost(),
        };
        for flight in session.flights.drain() {
            self.shared.stats.landed(flight.calls());
            flight.fail(&error);
        }
        end
    }

    /// Waits for what is on its way to a server that is left, as long as those who wait for the next one
    /// can bear.
    async fn see_off(&mut self, session: &mut Session) {
        let until = Instant::now() + self.grace();
        while session.flights.oldest().is_some() {
            let Ok((flight, replies)) = timeout_at(until, session.flights.next()).await else {
                return;
            };
            // What it means for the connection is of no interest any more.
            let _ = self.landed(session, flight, replies);
        }
    }

    /// How long calls can wait for another connection.
    fn grace(&self) -> Duration {
        RECONNECT_GRACE.min(self.settings.budget / 2)
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
            successor = session.watch.answer() => self.watched(successor),
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
        session.proven |= landing.run > 0;
        if self.forget.is_none() {
            self.forget = landing.served.as_ref().and_then(forget_beside);
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
            // Whoever may not do one thing may do others: then only the callers are told.
            TroubleKind::Auth if is_locked_out(trouble) => {
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
    fn probed(&mut self, session: &mut Session, error: Option<&CallError>) {
        if let Some(CallError::Moved { .. } | CallError::Ask { .. }) = error {
            // The slot has gone elsewhere.
            self.forget = None;
        }
        let was_awaited = std::mem::take(&mut session.probe.awaited);
        session.probe.flying = false;
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
        if session.watch.is_due(now) {
            session.watch.next = Some(now + SENTINEL_EVERY);
            session.watch.asking = self.question();
        }
        ControlFlow::Continue(())
    }

    /// Asks the sentinels whether there is another master than the one that is connected.
    fn question(&self) -> Option<Pin<Box<Question>>> {
        let Target::Master { sentinels, name } = &self.target else { return None };
        let (sentinels, name) = (Arc::clone(sentinels), Arc::clone(name));
        let (settings, current) = (Arc::clone(&self.settings), self.served.clone()?);
        Some(Box::pin(async move { successor(&settings, &sentinels, &name, &current).await }))
    }

    /// Sends a probe: of an open breaker, or of a connection that was idle.
    fn probe(&self, session: &mut Session, now: Instant) {
        // Nobody else probes: if this is refused, the breaker is closed.
        let _ = self.shared.breaker.probe();
        session.probe = Probe { sent: Some(now), awaited: true, flying: true };
        let forget = self.forget.as_ref();
        session.flights.push(Flight::probe(&session.connection, &session.script, forget));
    }

    /// Sentinels were asked for another master. If there is none that can be used, it stays the one that
    /// answers.
    fn watched(&self, successor: Result<Option<Fresh>, Trouble>) -> ControlFlow<End> {
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

/// Whether a server that answers a probe like this is worth asking.
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

/// What the probes of a link are to forget from the first on.
pub(super) fn forget_nothing(target: &Target, settings: &Settings) -> Option<Call> {
    let key = RedisKey::new(&settings.prefix, Space::Take, &[]);
    if target.by_slot() { None } else { forget_beside(&key) }
}

/// A call that forgets what is never stored, in the slot of this key.
fn forget_beside(key: &RedisKey) -> Option<Call> {
    Call::forget(key.reserved()).ok()
}

/// What broke a connection, as trouble.
pub(super) fn as_lost(error: CallError) -> Trouble {
    match error {
        CallError::Trouble(trouble) => trouble,
        CallError::Moved { .. }
        | CallError::Ask { .. }
        | CallError::TryAgain
        | CallError::NoScript => Trouble::new(TroubleKind::Connection, "the connection was lost"),
    }
}
