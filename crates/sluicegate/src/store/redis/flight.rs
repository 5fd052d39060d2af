//! Calls in flight: grouped into batches, and batches into flights.
//!
//! A batch is one script call. A flight is one write and one round trip: a batch, or, in a cluster, where a
//! script must not touch two slots, a pipeline of batches.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use redis::aio::MultiplexedConnection;
use redis::{Cmd, RedisError, RedisResult, Value};
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::call::{BATCH_MAX, BATCH_PARTS_MAX, Call, Reply};
use super::classify::{CallError, classify};
use super::key::RedisKey;
use super::script::{Script, decode};
use super::trouble::{Trouble, TroubleKind};

/// Maximum of calls in one flight of a cluster: a server decides them within a millisecond.
pub(super) const FLIGHT_CALLS_MAX: usize = 64;

/// Channel for the reply to a call.
pub(super) type Answer = oneshot::Sender<Result<Reply, CallError>>;

/// A queued call.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) call: Call,
    pub(super) manner: SendMode,
    pub(super) answer: Answer,
}

/// Batching of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SendMode {
    /// In one script call with other queued calls of its slot.
    Together,
    /// In a script call of its own: the slot is migrating, and in a batch some keys would be missing.
    Alone,
    /// In a script call of its own after `ASKING`, to a node that does not own the slot yet.
    Asking,
}

/// Calls that are sent as one script call.
#[derive(Debug)]
pub(super) struct Batch {
    calls: Vec<Call>,
    answers: Vec<Answer>,
    /// Slot of all calls; zero outside of a cluster.
    slot: u16,
    manner: SendMode,
}

impl Batch {
    /// Groups jobs into as few batches as possible; by slot if `by_slot`. Jobs whose caller has gone are left
    /// out: nothing is charged for them.
    pub(super) fn group(jobs: impl Iterator<Item = Job>, by_slot: bool) -> Vec<Self> {
        let mut batches: Vec<Self> = Vec::new();
        for job in jobs.filter(|job| !job.answer.is_closed()) {
            let first = job.call.parts.first();
            let slot = first.filter(|_| by_slot).map_or(0, |part| part.key.slot());
            // The last shared batch of the slot: calls are decided in their order.
            let is_shared = |batch: &Self| batch.slot == slot && batch.manner == SendMode::Together;
            let last = batches.iter_mut().rev().find(|batch| is_shared(batch));
            let open = last.filter(|batch| batch.takes(&job));
            match open {
                Some(batch) => batch.push(job),
                None => batches.push(Self::of(job, slot)),
            }
        }
        batches
    }

    fn of(job: Job, slot: u16) -> Self {
        let Job { call, manner, answer } = job;
        Self { calls: vec![call], answers: vec![answer], slot, manner }
    }

    fn takes(&self, job: &Job) -> bool {
        let parts: usize = self.calls.iter().map(|call| call.parts.len()).sum();
        let has_room = parts + job.call.parts.len() <= BATCH_PARTS_MAX;
        job.manner == SendMode::Together && has_room && self.calls.len() < BATCH_MAX
    }

    fn push(&mut self, job: Job) {
        self.calls.push(job.call);
        self.answers.push(job.answer);
    }

    /// Number of calls.
    pub(super) fn len(&self) -> usize {
        self.calls.len()
    }

    /// A key of the batch; `None` if its slot is still migrating to this server.
    fn key(&self) -> Option<RedisKey> {
        let parts =
            self.calls.first().filter(|_| self.manner != SendMode::Asking).map(|call| &call.parts);
        parts?.first().map(|part| part.key.clone())
    }

    /// Sends the error to every caller.
    pub(super) fn fail(self, error: &CallError) {
        for answer in self.answers {
            // The caller may have gone.
            let _ = answer.send(Err(error.clone()));
        }
    }

    fn answer(self, replies: Vec<Reply>) {
        for (answer, reply) in self.answers.into_iter().zip(replies) {
            let _ = answer.send(Ok(reply));
        }
    }

    /// The error for each single call. Redis 6.2 replies `ASK` as soon as one key of the batch has migrated:
    /// a call whose keys are still here must not be sent elsewhere, where its buckets would start full.
    fn error_for_each(&self, error: CallError) -> CallError {
        match error {
            CallError::Ask { .. } if self.len() > 1 => CallError::TryAgain,
            error => error,
        }
    }

    /// Decodes the server's reply, and sends it to the callers. A batch that was not run because the script
    /// is not loaded is returned, with that error.
    fn settle(self, value: Option<Value>) -> Result<(), (CallError, Option<Self>)> {
        match read(&self.calls, value) {
            Ok(replies) => self.answer(replies),
            Err(CallError::NoScript) => return Err((CallError::NoScript, Some(self))),
            Err(error) => {
                let error = self.error_for_each(error);
                self.fail(&error);
                return Err((error, None));
            }
        }
        Ok(())
    }
}

fn read(calls: &[Call], value: Option<Value>) -> Result<Vec<Reply>, CallError> {
    match value {
        Some(Value::ServerError(error)) => Err(classify(&RedisError::from(error))),
        Some(value) => decode(calls, value).map_err(CallError::Trouble),
        None => Err(missing()),
    }
}

/// Decodes the reply to a probe. Only the time in it is checked.
fn read_probe(value: Option<Value>) -> Result<(), CallError> {
    match value {
        Some(Value::ServerError(error)) => Err(classify(&RedisError::from(error))),
        Some(Value::Array(values)) if matches!(values.first(), Some(Value::Int(_))) => Ok(()),
        Some(_) => decode(&[], Value::Nil).map(drop).map_err(CallError::Trouble),
        None => Err(missing()),
    }
}

/// Does the reply show that this server owns the slot? One that does not replies with a redirection first.
fn is_slot_owner(settled: &Result<(), (CallError, Option<Batch>)>) -> bool {
    match settled {
        Ok(()) => true,
        Err((CallError::Trouble(trouble), _)) => trouble.kind() == TroubleKind::ReadOnly,
        Err(_) => false,
    }
}

fn missing() -> CallError {
    CallError::Trouble(Trouble::new(TroubleKind::Unexpected, "fewer replies than commands"))
}

type Replies = Pin<Box<dyn Future<Output = RedisResult<Vec<Value>>> + Send>>;

/// Batches in flight; a flight without batches is a probe.
pub(super) struct Flight {
    batches: Vec<Batch>,
    /// Time of sending.
    pub(super) sent: Instant,
    /// Sent for the second and last time, with the script's source.
    resent: bool,
    replies: Replies,
}

/// Result of a flight.
pub(super) struct FlightResult {
    /// Batches that were not run, to be sent again with the script's source.
    pub(super) forgotten: Vec<Batch>,
    /// Number of batches that were run.
    pub(super) run: usize,
    /// Last error in the replies.
    pub(super) error: Option<CallError>,
    /// A key whose slot this server owns: it ran a call for it, or would have if it took writes.
    pub(super) served: Option<RedisKey>,
}

impl Flight {
    /// Sends batches by the script's hash.
    pub(super) fn launch(
        connection: &MultiplexedConnection,
        script: &Script,
        batches: Vec<Batch>,
    ) -> Self {
        Self::start(connection, batches, false, |calls| script.evalsha(calls))
    }

    /// Sends batches again, with the script's source.
    pub(super) fn relaunch(
        connection: &MultiplexedConnection,
        script: &Script,
        batches: Vec<Batch>,
    ) -> Self {
        Self::start(connection, batches, true, |calls| script.eval(calls))
    }

    /// Sends a probe: whether the server runs the script, and, with a call that removes a key that does not
    /// exist, whether it takes writes (servers before Redis 7 refuse no script before it writes). Neither
    /// changes anything.
    pub(super) fn probe(
        connection: &MultiplexedConnection,
        script: &Script,
        forget: Option<&Call>,
    ) -> Self {
        let calls = forget.map_or(&[][..], std::slice::from_ref);
        let replies = request(connection.clone(), vec![script.evalsha(calls)]);
        Self { batches: Vec::new(), sent: Instant::now(), resent: false, replies }
    }

    fn start(
        connection: &MultiplexedConnection,
        batches: Vec<Batch>,
        resent: bool,
        command: impl Fn(&[Call]) -> Cmd,
    ) -> Self {
        let mut commands = Vec::with_capacity(batches.len());
        for batch in &batches {
            if batch.manner == SendMode::Asking {
                commands.push(redis::cmd("ASKING"));
            }
            commands.push(command(&batch.calls));
        }
        let replies = request(connection.clone(), commands);
        Self { batches, sent: Instant::now(), resent, replies }
    }

    pub(super) fn is_probe(&self) -> bool {
        self.batches.is_empty()
    }

    /// Number of calls.
    pub(super) fn calls(&self) -> usize {
        self.batches.iter().map(Batch::len).sum()
    }

    /// Number of script calls.
    pub(super) fn batches(&self) -> usize {
        self.batches.len()
    }

    /// Sends the error to every caller.
    pub(super) fn fail(self, error: &CallError) {
        for batch in self.batches {
            batch.fail(error);
        }
    }

    /// Sends the replies to the callers. Errors of the connection are handled by the caller of this.
    pub(super) fn land(self, values: Vec<Value>) -> FlightResult {
        let mut landing = FlightResult { forgotten: Vec::new(), run: 0, error: None, served: None };
        let mut values = values.into_iter();
        if self.is_probe() {
            landing.error = read_probe(values.next()).err();
            return landing;
        }
        for batch in self.batches {
            if batch.manner == SendMode::Asking {
                // If `ASKING` was refused, so is the script call after it.
                let _ = values.next();
            }
            let key = batch.key().filter(|_| landing.served.is_none());
            let settled = batch.settle(values.next());
            landing.served = landing.served.or_else(|| key.filter(|_| is_slot_owner(&settled)));
            match settled {
                Ok(()) => landing.run += 1,
                Err((_, Some(batch))) if !self.resent => landing.forgotten.push(batch),
                Err((error, batch)) => {
                    if let Some(batch) = batch {
                        batch.fail(&noscript_after_eval());
                    }
                    landing.error = Some(error);
                }
            }
        }
        landing
    }
}

/// `NOSCRIPT` although the source was sent.
fn noscript_after_eval() -> CallError {
    CallError::Trouble(Trouble::new(TroubleKind::Unexpected, "NOSCRIPT in reply to EVAL"))
}

/// Sends commands in one round trip.
fn request(mut connection: MultiplexedConnection, mut commands: Vec<Cmd>) -> Replies {
    Box::pin(async move {
        if commands.len() == 1
            && let Some(command) = commands.pop()
        {
            return connection.send_packed_command(&command).await.map(|value| vec![value]);
        }
        let count = commands.len();
        let mut pipeline = redis::Pipeline::with_capacity(count);
        for command in commands {
            pipeline.add_command(command);
        }
        connection.send_packed_commands(&pipeline, 0, count).await
    })
}

/// Flights of one connection, the oldest first. Bounded by the link.
#[derive(Default)]
pub(super) struct Flights(Vec<Flight>);

impl Flights {
    pub(super) fn push(&mut self, flight: Flight) {
        self.0.push(flight);
    }

    /// Number of flights, without the probe.
    pub(super) fn len(&self) -> usize {
        self.0.iter().filter(|flight| !flight.is_probe()).count()
    }

    pub(super) fn oldest(&self) -> Option<Instant> {
        self.0.first().map(|flight| flight.sent)
    }

    pub(super) fn drain(&mut self) -> impl Iterator<Item = Flight> {
        self.0.drain(..)
    }

    /// Waits for the next reply; for ever if nothing is in flight. New flights are written when this is
    /// polled.
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost: flights live in `self`.
    pub(super) async fn next(&mut self) -> (Flight, RedisResult<Vec<Value>>) {
        std::future::poll_fn(|context| self.poll_next(context)).await
    }

    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<(Flight, RedisResult<Vec<Value>>)> {
        // Few flights, answered in order: polling all of them is cheaper than a waker for each.
        for index in 0..self.0.len() {
            if let Poll::Ready(replies) = self.0[index].replies.as_mut().poll(context) {
                return Poll::Ready((self.0.remove(index), replies));
            }
        }
        Poll::Pending
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::time::Duration;

    use sluicegate_core::{Algorithm, Quota, Rate, Refill};

    use super::*;
    use crate::rules::Mode;
    use crate::store::Space;
    use crate::store::redis::call::{Op, Part};
    use crate::store::redis::key::RedisKey;

    type Answered = oneshot::Receiver<Result<Reply, CallError>>;

    /// A call that removes one bucket.
    pub(in crate::store::redis) fn forget(name: &str) -> Call {
        let rate = Rate::new(1, Duration::from_secs(1)).unwrap();
        let quota =
            Quota::build(rate, Algorithm::TokenBucket, Refill::Continuous, None, None).unwrap();
        let key = RedisKey::new("sg", Space::Take, &[name.as_bytes()]);
        let part = Part { key, quota, cost: 0, mode: Mode::Enforce, is_probe: false };
        Call { op: Op::Reset, parts: [part].into_iter().collect() }
    }

    fn job(name: &str, asking: bool) -> (Job, Answered) {
        let (answer, answered) = oneshot::channel();
        let manner = if asking { SendMode::Asking } else { SendMode::Together };
        (Job { call: forget(name), manner, answer }, answered)
    }

    fn group(jobs: Vec<(Job, Answered)>, by_slot: bool) -> (Vec<Batch>, Vec<Answered>) {
        let (jobs, answered): (Vec<_>, Vec<_>) = jobs.into_iter().unzip();
        (Batch::group(jobs.into_iter(), by_slot), answered)
    }

    fn flight(batches: Vec<Batch>, resent: bool) -> Flight {
        let replies = Box::pin(std::future::pending());
        Flight { batches, sent: Instant::now(), resent, replies }
    }

    fn noscript() -> Value {
        error("NOSCRIPT")
    }

    fn error(code: &str) -> Value {
        server_error(code, "text of the server")
    }

    fn server_error(code: &str, detail: &str) -> Value {
        let error = redis::make_extension_error(code.into(), Some(detail.into()));
        let errors = error.into_server_errors().unwrap();
        Value::ServerError(errors[0].1.clone())
    }

    /// The script's reply to this many removals: the time, and that each bucket existed.
    fn forgotten(calls: usize) -> Value {
        let done = (0..calls).map(|_| Value::Int(1));
        Value::Array(std::iter::once(Value::Int(1_000_000)).chain(done).collect())
    }

    #[test]
    fn one_server_takes_everything_in_one_batch() {
        let jobs = (0..BATCH_MAX + 1).map(|i| job(&i.to_string(), false)).collect();
        let (batches, _answered) = group(jobs, false);
        let sizes: Vec<_> = batches.iter().map(Batch::len).collect();
        assert_eq!(sizes, [BATCH_MAX, 1]);
    }

    #[test]
    fn large_decisions_make_small_batches_in_order() {
        let of_parts = |parts: usize| {
            let (mut job, answered) = job("a", false);
            job.call.parts = vec![job.call.parts[0].clone(); parts].into();
            (job, answered)
        };
        let sizes = [100, 28, 1, 200, 1];
        let (batches, _answered) = group(sizes.into_iter().map(of_parts).collect(), false);
        assert_eq!(batches.iter().map(Batch::len).collect::<Vec<_>>(), [2, 1, 1, 1]);
    }

    #[test]
    fn batches_of_a_cluster_have_one_slot() {
        let (batches, _answered) =
            group(vec![job("a", false), job("b", false), job("a", false)], true);
        assert_eq!(batches.len(), 2);
        for batch in &batches {
            assert!(batch.calls.iter().all(|call| call.parts[0].key.slot() == batch.slot));
        }
        assert_eq!(batches[0].len(), 2);
    }

    #[test]
    fn calls_of_a_moving_slot_go_alone() {
        let mut jobs = vec![job("a", false), job("a", false), job("a", false)];
        jobs[1].0.manner = SendMode::Alone;
        let (batches, _answered) = group(jobs, true);
        assert_eq!(batches.iter().map(Batch::len).collect::<Vec<_>>(), [2, 1]);
    }

    /// Behaviour of Redis 6.2.
    #[test]
    fn a_batch_that_is_sent_elsewhere_asks_again_one_by_one() {
        let jobs = vec![job("a", false), job("a", false), job("b", false)];
        let (batches, mut answered) = group(jobs, true);
        flight(batches, false)
            .land(vec![server_error("ASK", "7 h:1"), server_error("ASK", "9 h:1")]);
        for index in [0, 1] {
            assert_eq!(answered[index].try_recv().unwrap().unwrap_err(), CallError::TryAgain);
        }
        let alone = answered[2].try_recv().unwrap().unwrap_err();
        assert!(matches!(alone, CallError::Ask { slot: 9, .. }), "{alone:?}");
    }

    #[test]
    fn asking_is_sent_for_one_call() {
        let (batches, _answered) =
            group(vec![job("a", true), job("a", false), job("a", true), job("a", false)], true);
        let shapes: Vec<_> =
            batches.iter().map(|batch| (batch.manner == SendMode::Asking, batch.len())).collect();
        assert_eq!(shapes, [(true, 1), (false, 2), (true, 1)]);
    }

    #[test]
    fn calls_without_a_caller_are_left_out() {
        let (jobs, mut answered): (Vec<_>, Vec<_>) =
            vec![job("a", false), job("b", false)].into_iter().unzip();
        answered.remove(0);
        let batches = Batch::group(jobs.into_iter(), false);
        assert_eq!(batches.len(), 1);
        assert_eq!(batches[0].calls[0].parts[0].key, forget("b").parts[0].key);
    }

    #[test]
    fn a_lost_script_is_sent_again_once_and_callers_do_not_notice() {
        let (batches, mut answered) = group(vec![job("a", false), job("b", false)], true);
        let landing = flight(batches, false).land(vec![forgotten(1), noscript()]);
        assert_eq!((landing.run, landing.forgotten.len()), (1, 1));
        assert_eq!(landing.error, None);
        assert!(answered[0].try_recv().unwrap().is_ok());
        assert!(answered[1].try_recv().is_err(), "not answered yet");

        let landing = flight(landing.forgotten, true).land(vec![noscript()]);
        assert!(landing.forgotten.is_empty());
        let error = answered[1].try_recv().unwrap().unwrap_err();
        assert_eq!(error.into_trouble().kind(), TroubleKind::Unexpected);
    }

    #[test]
    fn an_error_answers_its_batch_and_no_other() {
        let (batches, mut answered) =
            group(vec![job("a", false), job("b", false), job("a", false)], true);
        let landing = flight(batches, false).land(vec![error("OOM"), forgotten(1)]);
        assert_eq!(landing.run, 1);
        for index in [0, 2] {
            let error = answered[index].try_recv().unwrap().unwrap_err();
            assert_eq!(error.into_trouble().kind(), TroubleKind::OutOfMemory);
        }
        assert!(answered[1].try_recv().unwrap().is_ok());
    }

    #[test]
    fn the_answer_to_asking_is_passed_over() {
        let (batches, mut answered) = group(vec![job("a", true), job("b", false)], true);
        let landing = flight(batches, false).land(vec![Value::Okay, forgotten(1), error("OOM")]);
        assert_eq!(landing.run, 1);
        assert!(answered[0].try_recv().unwrap().is_ok());
        assert!(answered[1].try_recv().unwrap().is_err());
    }

    #[test]
    fn a_flight_reports_a_key_whose_slot_the_server_owns() {
        let served = |asking, answer: Value| {
            let (batches, _answered) = group(vec![job("a", asking)], true);
            let values = if asking { vec![Value::Okay, answer] } else { vec![answer] };
            flight(batches, false).land(values).served
        };
        let key = Some(forget("a").parts[0].key.clone());
        assert_eq!(served(false, forgotten(1)), key);
        assert_eq!(served(false, error("NOREPLICAS")), key);
        assert_eq!(served(true, forgotten(1)), None, "the slot is not here yet");
        for code in ["CLUSTERDOWN", "TRYAGAIN", "NOSCRIPT", "LOADING"] {
            assert_eq!(served(false, error(code)), None, "{code}");
        }
    }

    #[test]
    fn a_probe_is_answered_with_the_time() {
        let land = |value| flight(Vec::new(), false).land(vec![value]).error;
        for calls in 0..2 {
            assert_eq!(land(forgotten(calls)), None);
        }
        for strange in [Value::Nil, Value::Okay, Value::Array(Vec::new())] {
            assert!(matches!(land(strange), Some(CallError::Trouble(_))));
        }
        assert!(matches!(land(error("READONLY")), Some(CallError::Trouble(_))));
    }

    #[test]
    fn missing_answers_are_trouble() {
        let (batches, mut answered) = group(vec![job("a", false), job("b", false)], true);
        let landing = flight(batches, false).land(vec![forgotten(1)]);
        assert!(landing.error.is_some());
        let error = answered[1].try_recv().unwrap().unwrap_err();
        assert_eq!(error.into_trouble().kind(), TroubleKind::Unexpected);
    }
}
