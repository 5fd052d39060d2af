//! T13: a server that loses the script repeatedly.

use std::time::Duration;

use sluicegate::OnError;
use sluicegate_tests::seed::Seed;
use sluicegate_tests::servers::{Flavour, RedisServer};
use tokio::time::{Instant, sleep};

use crate::faults::support::load::{Load, Plan};
use crate::faults::support::{AMPLE, Node, fired, health, node, quota, report, sized, within};

/// Maximum of script calls in flight over one connection.
const IN_FLIGHT_MAX: u64 = 16;

/// `SCRIPT FLUSH` every 100 ms at thousands of checks a second, for 20 s (quick: 2.5 s): no check fails,
/// nothing is over-admitted, every script call is sent again once at most, and that is counted.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t13_script_flush_under_load() {
    let mut seed = Seed::announce("t13_script_flush_under_load");
    let server = RedisServer::start(Flavour::Redis70);
    let nodes: Vec<Node> = (0..2).map(|_| node(&server.url(), AMPLE)).collect();
    let plan = Plan {
        quota: quota("5/s burst 10"),
        keys: 60,
        per_second: sized(1000, 2500),
        on_error: OnError::Deny,
    };
    let load = Load::start(&nodes, plan, &mut seed);
    let (started, mut flushes) = (Instant::now(), 0);
    while started.elapsed() < sized(Duration::from_millis(2500), Duration::from_secs(20)) {
        server.command(&["SCRIPT", "FLUSH"]);
        flushes += 1;
        sleep(Duration::from_millis(100)).await;
    }
    let shots = load.stop().await;
    assert_eq!(shots.degraded(), 0, "{:?}", health(&nodes[0]));
    let stats: Vec<_> = nodes.iter().map(|node| health(node).stats).collect();
    let reloads: u64 = stats.iter().map(|stats| stats.script_reloads).sum();
    fired("a reload", reloads);
    let (calls, batches) = (
        stats.iter().map(|stats| stats.calls).sum::<u64>(),
        stats.iter().map(|stats| stats.batches).sum::<u64>(),
    );
    assert!(calls <= 2 * shots.all.len() as u64, "{calls} sent for {} checks", shots.all.len());
    assert!(
        reloads <= flushes * IN_FLIGHT_MAX * nodes.len() as u64,
        "{reloads} reloads, {flushes} flushes"
    );
    report(
        "t13_script_flush_under_load",
        &seed,
        format!("{flushes} flushes"),
        format!(
            "{}; {} checks, none degraded, {calls} calls in {batches} scripts, {reloads} reloads; p99 {:?}, noise {:?}",
            within(shots.excess(&plan), 0),
            shots.all.len(),
            shots.took(0..u64::MAX, 990),
            shots.noise,
        ),
    );
}
