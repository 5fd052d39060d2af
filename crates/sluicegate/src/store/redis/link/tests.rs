#![cfg(test)]

use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

use super::connection::may_leave;
use super::task::{Warned, first_probe_call, serves};
use super::*;
use crate::store::redis::call::Op;
use crate::store::redis::flight::Batch;
use crate::store::redis::flight::tests::forget;

const BUDGET: Duration = Duration::from_millis(10);

/// A link without a task, and the receiver of its queue.
fn idle() -> (Link, mpsc::Receiver<Job>) {
    let (jobs, line) = mpsc::channel(QUEUE_MAX);
    let address = Address::Tcp { host: "h".into(), port: 1 };
    let shared = Arc::new(Shared::new(&Target::Node(address), Arc::default()));
    (Link { jobs, shared }, line)
}

async fn call(link: &Link) -> Result<Reply, TroubleKind> {
    let result = link.call(forget("k"), SendMode::Together, Instant::now() + BUDGET).await;
    result.map_err(|error| error.into_trouble().kind())
}

fn reply() -> Reply {
    let now = sluicegate_core::Micros::new(1);
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
    assert!(Batch::group(waiting.into_iter(), false).is_empty(), "no caller waits for them");
}

#[tokio::test(start_paused = true)]
async fn a_full_line_refuses_at_once() {
    let (link, _line) = idle();
    let waiting: Vec<_> = (0..QUEUE_MAX)
        .map(|_| {
            let (answer, answered) = oneshot::channel();
            let job = Job { call: forget("k"), manner: SendMode::Together, answer };
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
async fn replies_of_any_kind_are_successes() {
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
        let waited = tokio::time::timeout(Duration::from_millis(1), &mut call).await;
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
    assert_eq!(reconnect_delay(0), Duration::ZERO);
    let mut full = RECONNECT_MIN;
    for attempt in 1..100 {
        let wait = reconnect_delay(attempt);
        assert!(wait <= full && wait >= full / 2, "{wait:?} of {full:?}");
        full = (full * 2).min(RECONNECT_MAX);
    }
    assert!(reconnect_delay(u32::MAX) >= RECONNECT_MAX / 2);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_does_not_answer_is_given_up_at_first_try() {
    // No server listens on a path that does not exist.
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

#[test]
fn a_server_without_memory_or_a_permission_is_still_called() {
    let serves = |kind, detail| serves(&Trouble::new(kind, detail));
    assert!(serves(TroubleKind::OutOfMemory, "OOM command not allowed"));
    assert!(serves(TroubleKind::Auth, "NOPERM this user has no permissions"));
    assert!(!serves(TroubleKind::Auth, "NOAUTH Authentication required."));
    assert!(!serves(TroubleKind::ReadOnly, "NOREPLICAS Not enough good replicas"));
}

#[test]
fn a_server_is_warned_of_once_until_it_is_started_anew() {
    let (mut warned, at) = (Warned::default(), |port| Address::Tcp { host: "h".into(), port });
    assert!(warned.insert(&at(1), "a") && !warned.insert(&at(1), "a"));
    assert!(warned.insert(&at(2), "a") && warned.insert(&at(1), "b"));
    assert!(!warned.insert(&at(1), "a"), "it comes and goes");
    for run in 0..100 {
        assert!(warned.insert(&at(1), &run.to_string()));
    }
    assert_eq!(warned.0.len(), WARNED_MAX);
}

#[test]
fn probes_write_beside_the_buckets() {
    let settings = Settings::new("redis://h".parse().unwrap());
    let address = Address::Tcp { host: "h".into(), port: 1 };
    let call = first_probe_call(&Target::Node(address.clone()), &settings).unwrap();
    assert_eq!((call.op, call.parts[0].key.as_str()), (Op::Reset, "sg:{g}:p"));
    assert!(first_probe_call(&Target::Member(address), &settings).is_none());
}

// ===== fake server =====

const VERSION_7: &str = "redis_version:7.0.0\r\nrun_id:1\r\nrole:master\r\n";
const DONE: &str = "*2\r\n:1\r\n:1\r\n";

/// A server with this `INFO`, which replies to the script by the number of previous calls on the connection;
/// and the counter of its connections.
async fn fake(info: &'static str, script: fn(usize) -> &'static str) -> (Link, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let connections = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&connections);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            count.fetch_add(1, Ordering::Relaxed);
            tokio::spawn(answer(BufReader::new(stream), info, script));
        }
    });
    let settings = Settings::new(format!("redis://127.0.0.1:{port}").parse().unwrap());
    let settings = Settings { budget: Duration::from_secs(1), ..settings };
    let target = Target::Node(Address::Tcp { host: "127.0.0.1".into(), port });
    (Link::start(target, Arc::new(settings), Arc::default()), connections)
}

async fn answer(mut stream: BufReader<TcpStream>, info: &str, script: fn(usize) -> &'static str) {
    let mut calls = 0..;
    while let Some(command) = command(&mut stream).await {
        let answer = match command.as_str() {
            "INFO" => format!("${}\r\n{info}\r\n", info.len()),
            "SCRIPT" => "+OK\r\n".into(),
            _ => script(calls.next().unwrap()).into(),
        };
        stream.write_all(answer.as_bytes()).await.unwrap();
    }
}

/// The name of the next command; its arguments are skipped.
async fn command(stream: &mut BufReader<TcpStream>) -> Option<String> {
    let mut words = Vec::new();
    for _ in 0..number(stream).await? {
        let mut word = vec![0; number(stream).await? + 2];
        stream.read_exact(&mut word).await.ok()?;
        words.push(word);
    }
    Some(String::from_utf8_lossy(words.first()?).trim().to_owned())
}

/// Parses the number of a line such as `*3` or `$5`.
async fn number(stream: &mut BufReader<TcpStream>) -> Option<usize> {
    let mut line = String::new();
    stream.read_line(&mut line).await.ok()?;
    line.get(1..)?.trim().parse().ok()
}

async fn ask(link: &Link) -> Result<Reply, Trouble> {
    let deadline = Instant::now() + Duration::from_secs(1);
    link.call(forget("k"), SendMode::Together, deadline).await.map_err(CallError::into_trouble)
}

/// Counts the log lines of this thread.
#[derive(Clone, Default)]
struct Lines(Arc<AtomicUsize>);

impl tracing::Subscriber for Lines {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        metadata.target().starts_with("sluicegate")
    }

    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }

    fn event(&self, _: &tracing::Event<'_>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}
    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}
    fn enter(&self, _: &tracing::span::Id) {}
    fn exit(&self, _: &tracing::span::Id) {}
}

#[tokio::test]
async fn a_breaker_that_flaps_does_not_fill_the_log() {
    let lines = Lines::default();
    let _guard = tracing::subscriber::set_default(lines.clone());
    // Probes are answered, and nothing else is.
    let (link, _) = fake(VERSION_7, |calls| match calls {
        0 => DONE,
        _ => "-NOREPLICAS Not enough good replicas to write.\r\n",
    })
    .await;
    let (start, mut refused) = (Instant::now(), 0);
    while start.elapsed() < Duration::from_secs(1) {
        let kind = ask(&link).await.err().map(|trouble| trouble.kind());
        refused += usize::from(kind == Some(TroubleKind::ReadOnly));
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let lines_logged = lines.0.load(Ordering::Relaxed);
    assert!(refused > 2, "vacuous: it opened {refused} times");
    assert!((1..=2).contains(&lines_logged), "{lines_logged} lines");
}

#[tokio::test]
async fn a_missing_permission_is_reported_and_the_connection_stays() {
    let (link, connections) = fake(VERSION_7, |calls| match calls % 2 {
        0 => "-NOPERM this user has no permissions to run the 'zadd' command\r\n",
        _ => DONE,
    })
    .await;
    for _ in 0..10 {
        assert_eq!(ask(&link).await.unwrap_err().kind(), TroubleKind::Auth);
        assert!(ask(&link).await.is_ok());
    }
    assert_eq!(connections.load(Ordering::Relaxed), 1);
    assert_eq!(link.breaker_state(), BreakerState::Closed);
}

#[tokio::test]
async fn refused_credentials_reconnect_with_growing_backoff() {
    let lines = Lines::default();
    let _guard = tracing::subscriber::set_default(lines.clone());
    let (link, connections) = fake(VERSION_7, |calls| match calls {
        0..2 => DONE,
        _ => "-NOAUTH Authentication required.\r\n",
    })
    .await;
    let (start, mut kinds) = (Instant::now(), Vec::new());
    while start.elapsed() < Duration::from_secs(1) {
        kinds.extend(ask(&link).await.err().map(|trouble| trouble.kind()));
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert!(kinds.contains(&TroubleKind::Auth) && kinds.contains(&TroubleKind::Open));
    // At once, after 20 ms, 40, 80, 160, and then every 200; half of it with the largest jitter.
    let count = connections.load(Ordering::Relaxed);
    assert!((3..=14).contains(&count), "{count} connections");
    // Three events: refused, breaker open, and closed by the next probe.
    let lines_logged = lines.0.load(Ordering::Relaxed);
    assert!((2..=3).contains(&lines_logged), "{lines_logged} lines");
}

#[tokio::test]
async fn an_unusable_server_is_reported_and_retried_rarely() {
    for (info, text) in [
        ("redis_version:6.0.16\r\nrole:master\r\n", "6.2.0 or later is needed"),
        ("redis_version:7.0.0\r\nrole:master\r\ncluster_enabled:1\r\n", "redis+cluster"),
    ] {
        let (link, connections) = fake(info, |_| DONE).await;
        assert_eq!(ask(&link).await.unwrap_err().kind(), TroubleKind::Unexpected);
        tokio::time::sleep(Duration::from_secs(1)).await;
        let refused = ask(&link).await.unwrap_err();
        assert_eq!(refused.kind(), TroubleKind::Open);
        assert!(refused.detail().contains(text), "{refused}");
        let count = connections.load(Ordering::Relaxed);
        assert!((3..=11).contains(&count), "{count} connections");
        let counted = link.shared.stats.snapshot(0).errors(TroubleKind::Unexpected);
        assert!(counted.abs_diff(count as u64) <= 1, "{counted} of {count}");
    }
}
