//! T24: the server loses its data under load.

use std::time::Duration;

use sluicegate::OnError;
use sluicegate_tests::seed::Seed;
use sluicegate_tests::servers::{Flavour, RedisServer};
use tokio::time::sleep;

use crate::faults::support::load::{Load, Plan};
use crate::faults::support::{
    BUDGET, LONG, Node, fired, health, ms, node, quota, report, sized, until_healthy, within,
};

fn plan() -> Plan {
    Plan { quota: quota("10/s burst 30"), keys: 20, per_second: 400, on_error: OnError::Deny }
}

/// FLUSHALL, several times: every key gets one B more for each, at most. Redis does not report it, so it is
/// not counted.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "full size: make test-faults"]
async fn t24_flushall_under_load() {
    let mut seed = Seed::announce("t24_flushall_under_load");
    let server = RedisServer::start(Flavour::Redis70);
    let nodes = started(&server).await;
    let load = Load::start(&nodes, plan(), &mut seed);
    let events = sized(2, 5);
    for _ in 0..events {
        sleep(Duration::from_secs(2)).await;
        let keys: u64 = redis::from_redis_value(server.command(&["DBSIZE"])).unwrap();
        fired("a key to forget", keys);
        server.command(&["FLUSHALL"]);
    }
    sleep(Duration::from_secs(1)).await;
    let shots = load.stop().await;
    let excess = shots.excess(&plan());
    assert!(excess > 0, "VACUOUS: nothing was over-admitted");
    let bound = events * i128::from(plan().quota.capacity());
    report(
        "t24_flushall_under_load",
        &seed,
        format!("{events} times FLUSHALL"),
        format!(
            "{}; {} checks, {} degraded",
            within(excess, bound),
            shots.all.len(),
            shots.degraded(),
        ),
    );
}

/// A restart without data: one B more for each key, and one loss counted by every node.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "full size: make test-faults"]
async fn t24_restart_under_load() {
    let mut seed = Seed::announce("t24_restart_under_load");
    let server = RedisServer::start(Flavour::Valkey9);
    let nodes = started(&server).await;
    let load = Load::start(&nodes, plan(), &mut seed);
    let events = sized(2, 5);
    for event in 1..=events {
        sleep(Duration::from_secs(2)).await;
        server.restart();
        for node in &nodes {
            until_healthy(node, LONG).await;
            assert_eq!(health(node).stats.state_losses, event, "a loss is counted once");
        }
    }
    sleep(Duration::from_secs(1)).await;
    let shots = load.stop().await;
    let excess = shots.excess(&plan());
    assert!(excess > 0, "VACUOUS: nothing was over-admitted");
    let bound = i128::from(events) * i128::from(plan().quota.capacity());
    report(
        "t24_restart_under_load",
        &seed,
        format!("{events} restarts"),
        format!(
            "{}; {} checks, {} degraded, {events} losses counted by each node; slowest check {}",
            within(excess, bound),
            shots.all.len(),
            shots.degraded(),
            ms(shots.slowest()),
        ),
    );
}

async fn started(server: &RedisServer) -> Vec<Node> {
    let nodes: Vec<Node> = (0..2).map(|_| node(&server.url(), BUDGET)).collect();
    for node in &nodes {
        until_healthy(node, LONG).await;
    }
    nodes
}
