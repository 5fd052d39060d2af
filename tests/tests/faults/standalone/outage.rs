//! T14, T15: the server is killed and restarts empty; the server hangs and continues.

use std::time::Duration;

use sluicegate::{BreakerState, OnError, TroubleKind};
use sluicegate_tests::seed::Seed;
use sluicegate_tests::servers::{Flavour, RedisServer};
use tokio::time::{Instant, sleep};

use crate::faults::support::load::{Load, Plan, Shots, local_bound, share};
use crate::faults::support::tags::Tags;
use crate::faults::support::{
    AMPLE, BUDGET, DETECT_MAX, GRACE, LONG, Node, RECOVER_MAX, fired, health, ms, node, nodes,
    now_us, quota, report, sized, until_healthy, until_open, within,
};

const NODES: u8 = 3;

fn plan() -> Plan {
    Plan { quota: quota("20/s burst 40"), keys: 20, per_second: 400, on_error: OnError::Local }
}

/// Measurements of an outage.
struct Outage {
    shots: Shots,
    /// Time until the breakers of all nodes were open.
    opened: Duration,
    /// Time until the first degraded answer.
    degraded: Duration,
    /// Time from the server's first reply to ours, of the slowest node.
    recovered: Duration,
}

/// SIGKILL, and a restart without data after a while (1.5 s; full: 5 s). It is detected within 250 ms; no
/// check takes longer than the budget of 50 ms and 20 more; nodes with a third of the quota each admit no
/// more than that locally; the total is within 2B + R·t and the shares; and Redis is used again within a
/// second of its first PONG.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t14_kill_and_restart_empty() {
    let mut seed = Seed::announce("t14_kill_and_restart_empty");
    let server = RedisServer::start(Flavour::Redis70);
    let nodes = nodes(&server.url(), NODES, BUDGET);
    for node in &nodes {
        until_healthy(node, LONG).await;
    }
    let down = sized(Duration::from_millis(1500), Duration::from_secs(5));
    let out = outage(&nodes, &mut seed, down, || server.kill(), || server.restart()).await;
    let losses: Vec<u64> = nodes.iter().map(|node| health(node).stats.state_losses).collect();
    assert_eq!(losses, [1, 1, 1], "every node notices the loss once");
    check(&out, "t14_kill_and_restart_empty", &seed, "SIGKILL", plan().quota.capacity());
}

/// SIGSTOP for a while (1.5 s; full: 10 s), then SIGCONT: the same bounds as for a killed server, except that
/// its data is kept.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t15_stop_and_go_on() {
    let mut seed = Seed::announce("t15_stop_and_go_on");
    let server = RedisServer::start(Flavour::Valkey8);
    let nodes = nodes(&server.url(), NODES, BUDGET);
    for node in &nodes {
        until_healthy(node, LONG).await;
    }
    let down = sized(Duration::from_millis(1500), Duration::from_secs(10));
    let out = outage(&nodes, &mut seed, down, || server.stop(), || server.cont()).await;
    let timeouts: u64 =
        nodes.iter().map(|node| health(node).stats.errors(TroubleKind::Timeout)).sum();
    fired("a timeout", timeouts);
    check(&out, "t15_stop_and_go_on", &seed, &format!("SIGSTOP, {timeouts} timeouts"), 0);
}

/// Load, an outage of `down` in the middle of it, and its measurements.
async fn outage(
    nodes: &[Node],
    seed: &mut Seed,
    down: Duration,
    begin: impl FnOnce(),
    end: impl FnOnce(),
) -> Outage {
    let load = Load::start(nodes, plan(), seed);
    sleep(Duration::from_secs(1)).await;
    let (began_us, began) = (now_us(), Instant::now());
    begin();
    let opened = until_open(nodes, LONG).await;
    sleep(down.saturating_sub(began.elapsed())).await;
    end();
    let ended_us = now_us();
    sleep(RECOVER_MAX + Duration::from_millis(500)).await;
    let shots = load.stop().await;
    let degraded = shots.until_first(began_us, true);
    let recovered = shots.until_first(ended_us, false);
    Outage { shots, opened, degraded, recovered }
}

/// Checks the bounds of an outage in which this many tokens were lost.
fn check(out: &Outage, name: &str, seed: &Seed, fault: &str, forgotten: u64) {
    let Outage { shots, opened, degraded, recovered } = out;
    let noise = shots.noise;
    fired("a degraded answer", shots.degraded() as u64);
    assert!(*opened <= DETECT_MAX + noise, "noticed after {opened:?}, noise {noise:?}");
    let slowest = shots.slowest();
    assert!(slowest <= BUDGET + GRACE + noise, "{slowest:?} for a check, noise {noise:?}");
    assert!(*recovered <= RECOVER_MAX + noise, "used again after {recovered:?}");
    let of_node = |node| {
        let own = |shot: &crate::faults::support::load::Shot| shot.node == node && shot.degraded;
        shots.excess_of(&plan(), share(&plan().quota, NODES), own)
    };
    let local = (0..usize::from(NODES)).map(of_node).max().unwrap();
    assert!(local <= 0, "{local} above a node's share");
    let bound = i128::from(forgotten) + local_bound(&plan().quota, NODES, shots.outage());
    report(
        name,
        seed,
        fault,
        format!(
            "{}; {} checks, {} degraded over {}; breakers open after {}, first degraded answer {}, slowest check \
         {}, used again {} after the server's return; noise {}",
            within(shots.excess(&plan()), bound),
            shots.all.len(),
            shots.degraded(),
            ms(shots.outage()),
            ms(*opened),
            ms(*degraded),
            ms(slowest),
            ms(*recovered),
            ms(noise),
        ),
    );
}

/// Stops shorter and longer than the timeout of a connection, so that late replies arrive over connections
/// that are still open, and over dropped ones: none is ever taken for another's. Redis has charged every
/// check once at most.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t15_late_answers_are_never_anothers() {
    let mut seed = Seed::announce("t15_late_answers_are_never_anothers");
    let server = RedisServer::start(Flavour::Redis70);
    let (direct, asked) = (node(&server.url(), AMPLE), node(&server.url(), BUDGET));
    until_healthy(&asked, LONG).await;
    let tags = Tags::start(&direct, &asked).await;
    let stops = sized(6, 40);
    for stop in 0..stops {
        sleep(Duration::from_millis(50 + seed.below(100))).await;
        server.stop();
        // A connection is dropped after 250 ms.
        let shortest = if stop % 2 == 0 { 60 } else { 280 };
        sleep(Duration::from_millis(shortest + seed.below(100))).await;
        server.cont();
        until_healthy(&asked, LONG).await;
    }
    let breaker = health(&asked).breaker;
    let tally = tags.stop(&direct).await;
    fired("a check without an answer", tally.unanswered);
    assert_eq!(tally.mismatched, 0, "{tally:?}");
    assert_eq!(breaker, BreakerState::Closed);
    let stats = health(&asked).stats;
    fired("a new connection", stats.reconnects);
    report(
        "t15_late_answers_are_never_anothers",
        &seed,
        format!("{stops} stops of 60 to 380 ms"),
        format!(
            "over-admission 0 of at most 0 (on_error = deny); {} checks, {} unanswered, 0 mismatched, {} timeouts, \
         {} new connections",
            tally.asked, tally.unanswered, stats.timeouts, stats.reconnects,
        ),
    );
}
