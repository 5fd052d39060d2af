//! T11, T12: the server's clock steps under load.

use std::time::Duration;

use sluicegate::{OnError, Quota};
use sluicegate_tests::seed::Seed;
use sluicegate_tests::servers::{Flavour, RedisServer};
use sluicegate_tests::shim::{ClockShim, Step};
use tokio::time::{Instant, sleep};

use crate::faults::support::load::{Load, Plan, Shots};
use crate::faults::support::{
    AMPLE, Node, algorithms, health, node, now_us, quota, report, sized, until, within,
};

const STEP: Duration = Duration::from_secs(3600);
const PLAN_KEYS: u64 = 20;

fn plan() -> Plan {
    Plan {
        quota: quota("10/s burst 20"),
        keys: PLAN_KEYS,
        per_second: 400,
        on_error: OnError::Deny,
    }
}

/// A step of an hour forward is like an hour of idleness: every key gets at most one B more, once, and no
/// check fails.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "full size: make test-faults"]
async fn t11_an_hour_forward() {
    let mut seed = Seed::announce("t11_an_hour_forward");
    let (server, shim) = shimmed(Flavour::Redis70);
    let nodes = [node(&server.url(), AMPLE), node(&server.url(), AMPLE)];
    let (shots, _) = stepped(&server, &shim, Step::Forward, &nodes, &mut seed).await;
    let worst = shots.excess(&plan());
    assert!(worst > 0, "VACUOUS: the step granted nothing");
    let bound = i128::from(plan().quota.capacity());
    report(
        "t11_an_hour_forward",
        &seed,
        "server's clock +3600 s",
        format!("{}; {} checks, none degraded", within(worst, bound), shots.all.len()),
    );
}

/// A step of an hour back: no key gets anything more, and every key admits again within three seconds, with
/// every algorithm. (Keeping the later time would admit nothing for an hour.)
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t12_an_hour_back() {
    let mut seed = Seed::announce("t12_an_hour_back");
    let (server, shim) = shimmed(Flavour::Redis70);
    let nodes = [node(&server.url(), AMPLE), node(&server.url(), AMPLE)];
    let kinds = algorithms(Duration::from_secs(1));
    for (name, quota) in &kinds {
        exhaust(&nodes[0], name, quota).await;
    }
    let (shots, stepped_us) = stepped(&server, &shim, Step::Back, &nodes, &mut seed).await;
    let back = Instant::now();
    for (name, quota) in &kinds {
        let admits = || async { nodes[0].take(name, quota, 1).await.unwrap().is_granted() };
        until(name, Duration::from_secs(3), admits).await;
    }
    let all_back = back.elapsed();
    let resumed = slowest_key(&shots, stepped_us);
    assert!(resumed <= Duration::from_secs(3), "a key waited {resumed:?}");
    report(
        "t12_an_hour_back",
        &seed,
        "server's clock -3600 s",
        format!(
            "{}; {} checks, none degraded; longest wait of a key {resumed:?}; {} algorithms admit after {all_back:?}",
            within(shots.excess(&plan()), 0),
            shots.all.len(),
            kinds.len(),
        ),
    );
}

fn shimmed(flavour: Flavour) -> (RedisServer, ClockShim) {
    let shim = ClockShim::new();
    (RedisServer::builder(flavour).preload(&shim).start(), shim)
}

/// Load, with a step of the server's clock in the middle; and the time of the step.
async fn stepped(
    server: &RedisServer,
    shim: &ClockShim,
    way: Step,
    nodes: &[Node],
    seed: &mut Seed,
) -> (Shots, u64) {
    let half = sized(Duration::from_millis(1500), Duration::from_secs(5));
    let load = Load::start(nodes, plan(), seed);
    sleep(half).await;
    let before = server_seconds(server);
    shim.step(STEP, way);
    let stepped_us = now_us();
    let moved = server_seconds(server) - before;
    assert!(moved.abs() >= 3590, "VACUOUS: the server's clock moved by {moved} s");
    sleep(half).await;
    let shots = load.stop().await;
    assert_eq!(shots.degraded(), 0, "{:?}", health(&nodes[0]));
    (shots, stepped_us)
}

fn server_seconds(server: &RedisServer) -> i64 {
    let time: (i64, i64) = redis::from_redis_value(server.command(&["TIME"])).unwrap();
    time.0
}

/// The longest time until a key's first admission after `since`.
fn slowest_key(shots: &Shots, since: u64) -> Duration {
    let first = |key| {
        let own = shots.all.iter().filter(|shot| shot.key == key && shot.granted);
        own.map(|shot| shot.sent_us).find(|&sent| sent > since).expect("an admission") - since
    };
    Duration::from_micros((0..PLAN_KEYS).map(first).max().unwrap())
}

async fn exhaust(node: &Node, name: &str, quota: &Quota) {
    while node.take(name, quota, 1).await.unwrap().is_granted() {}
}
