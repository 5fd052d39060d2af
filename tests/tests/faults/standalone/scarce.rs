//! T19: no connection, a full queue, no file descriptor left.

use std::fs::File;
use std::time::Duration;

use futures_util::future::join_all;
use redis::{Connection, cmd};
use rustix::process::{Resource, Rlimit, setrlimit};
use sluicegate::{BreakerState, OnError, TroubleKind};
use sluicegate_tests::seed::Seed;
use sluicegate_tests::servers::{Flavour, RedisServer};
use tokio::time::Instant;

use crate::faults::support::child::{Child, Job};
use crate::faults::support::load::{Load, Plan};
use crate::faults::support::{
    BUDGET, GRACE, LONG, Node, errors, fired, health, ms, node, noise, quota, report,
    until_healthy, until_open,
};

/// Time in which Redis must be used again when the resource is available again.
const RELEASE_MAX: Duration = Duration::from_secs(2);

/// A server with its maximum of clients: policies decide, at once, and Redis is used again within two seconds
/// of a free place.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "full size: make test-faults"]
async fn t19_the_server_takes_no_more_clients() {
    let seed = Seed::announce("t19_the_server_takes_no_more_clients");
    let server = RedisServer::start(Flavour::Redis70);
    let node = node(&server.url(), BUDGET);
    until_healthy(&node, LONG).await;
    let mut admin = server.connection().unwrap();
    cmd("CONFIG").arg("SET").arg("maxclients").arg(1).exec(&mut admin).unwrap();
    disconnect_others(&mut admin);
    until_open(std::slice::from_ref(&node), LONG).await;
    let slowest = slowest_check(&node).await;
    let refused = rejected(&mut admin);
    fired("a refused connection", refused);
    cmd("CONFIG").arg("SET").arg("maxclients").arg(100).exec(&mut admin).unwrap();
    let recovered = until_healthy(&node, RELEASE_MAX).await;
    report(
        "t19_the_server_takes_no_more_clients",
        &seed,
        format!("{refused} connections refused"),
        format!(
            "over-admission 0 of at most 0 (on_error = deny); slowest check {}; used again after {}",
            ms(slowest),
            ms(recovered),
        ),
    );
}

fn disconnect_others(admin: &mut Connection) {
    let words = ["KILL", "TYPE", "normal", "SKIPME", "yes"];
    let killed: u64 = cmd("CLIENT").arg(&words).query(admin).unwrap();
    fired("a connection to end", killed);
}

fn rejected(admin: &mut Connection) -> u64 {
    let info: String = cmd("INFO").arg("stats").query(admin).unwrap();
    let line = info.lines().find_map(|line| line.strip_prefix("rejected_connections:")).unwrap();
    line.trim().parse().unwrap()
}

/// Checks for a second, all of them answered by policy; returns the slowest time.
async fn slowest_check(node: &Node) -> Duration {
    let plan = Plan { quota: quota("10/s"), keys: 5, per_second: 400, on_error: OnError::Deny };
    let nodes = std::slice::from_ref(node);
    let shots = Load::run(nodes, plan, &mut Seed::new(0), Duration::from_secs(1)).await;
    assert_eq!((shots.degraded(), shots.granted()), (shots.all.len(), 0), "{:?}", health(node));
    let slowest = shots.slowest();
    assert!(slowest <= BUDGET + GRACE + shots.noise, "{slowest:?}, noise {:?}", shots.noise);
    slowest
}

/// More concurrent checks than the queue holds, on a server that hangs: those beyond the bound are answered
/// at once, the others when their budget ends.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "full size: make test-faults"]
async fn t19_more_checks_than_may_wait() {
    const AT_ONCE: usize = 6000;
    let seed = Seed::announce("t19_more_checks_than_may_wait");
    let server = RedisServer::start(Flavour::Redis70);
    // Longer, so that all are sent before the first times out.
    let budget = Duration::from_millis(500);
    let node = node(&server.url(), budget);
    until_healthy(&node, LONG).await;
    server.stop();
    let checks = (0..AT_ONCE).map(|_| async {
        let started = Instant::now();
        let charged = node.take_or("key", &quota("10/s"), 1, OnError::Deny).await.unwrap();
        assert!(charged.degraded);
        started.elapsed()
    });
    let began = Instant::now();
    let slowest = join_all(checks).await.into_iter().max().unwrap();
    let overloaded = errors(&node, TroubleKind::Overloaded);
    server.cont();
    fired("a full line", overloaded);
    // Thousands of timers of one task end together: a tenth of a second for all of them.
    assert!(slowest <= budget + GRACE * 5 + noise::since(began), "{slowest:?} for a check");
    let recovered = until_healthy(&node, RELEASE_MAX).await;
    report(
        "t19_more_checks_than_may_wait",
        &seed,
        format!("{AT_ONCE} checks at once on a server that hangs"),
        format!(
            "over-admission 0 of at most 0 (on_error = deny); {overloaded} refused at once, slowest check {} with a budget \
         of {}; used again after {}",
            ms(slowest),
            ms(budget),
            ms(recovered),
        ),
    );
}

/// A process at its limit of 256 open files cannot connect: it keeps running, answers by policy, and uses
/// Redis again within two seconds of a free descriptor.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "full size: make test-faults"]
async fn t19_no_file_descriptor_left() {
    let seed = Seed::announce("t19_no_file_descriptor_left");
    let server = RedisServer::start(Flavour::Redis70);
    let answer = Child::start(&["files", &server.url()], None).finish(LONG);
    report("t19_no_file_descriptor_left", &seed, "256 files of 256 open", answer.trim());
}

pub(crate) async fn child(job: &mut Job) {
    let url: String = job.next();
    let node = node(&url, BUDGET);
    until_healthy(&node, LONG).await;
    let mut admin = redis::Client::open(url).unwrap().get_connection().unwrap();
    setrlimit(Resource::Nofile, Rlimit { current: Some(256), maximum: Some(256) }).unwrap();
    // The descriptor of the lost connection is taken too, before or after the attempt to reconnect.
    let mut files = Vec::new();
    let mut disconnected = false;
    let started = Instant::now();
    while !disconnected || health(&node).breaker == BreakerState::Closed {
        files.extend(std::iter::from_fn(|| File::open("/dev/null").ok()));
        if !disconnected {
            disconnect_others(&mut admin);
            disconnected = true;
        }
        assert!(started.elapsed() < LONG, "VACUOUS: it always finds a descriptor");
        tokio::task::yield_now().await;
    }
    files.extend(std::iter::from_fn(|| File::open("/dev/null").ok()));
    let slowest = slowest_check(&node).await;
    let count = files.len();
    drop(files);
    let recovered = until_healthy(&node, RELEASE_MAX).await;
    job.answer(&format!(
        "over-admission 0 of at most 0 (on_error = deny); {count} files taken, slowest check {}, used again after {}",
        ms(slowest),
        ms(recovered),
    ));
}
