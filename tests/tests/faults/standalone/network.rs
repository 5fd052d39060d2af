//! T16, T17, T18: a network that is slow, that breaks, and that loses replies.

use std::time::Duration;

use futures_util::future::join_all;
use sluicegate::{OnError, TroubleKind};
use sluicegate_tests::proxy::{Direction, FaultProxy, Faults};
use sluicegate_tests::seed::Seed;
use sluicegate_tests::servers::{Flavour, RedisServer};
use tokio::time::{Instant, sleep};

use crate::faults::support::load::{Load, Plan, Shots, local_bound};
use crate::faults::support::tags::Tags;
use crate::faults::support::{
    AMPLE, BUDGET, DETECT_MAX, GRACE, LONG, Node, RECOVER_MAX, fired, health, ms, node, nodes,
    quota, report, sized, until_healthy, until_open, within,
};

/// Maximum of decisions in flight over one connection: 16 script calls of 32.
const IN_FLIGHT_MAX: u64 = 512;

fn plan(on_error: OnError) -> Plan {
    Plan { quota: quota("20/s burst 40"), keys: 10, per_second: 400, on_error }
}

/// A server and a node that reaches it through a proxy.
async fn proxied(seed: &Seed) -> (RedisServer, FaultProxy, Node) {
    let server = RedisServer::start(Flavour::Redis70);
    let proxy = FaultProxy::seeded(server.port(), seed);
    // One node: its share is the whole quota.
    let node = nodes(&proxy.url(), 1, BUDGET).remove(0);
    until_healthy(&node, LONG).await;
    (server, proxy, node)
}

/// 20 ms more latency are 20 ms more for a check, give or take 5; jitter of up to 40 ms stays within the
/// budget of 50. A kilobyte per second does not: the breaker opens within 250 ms of the first late reply, no
/// check waits longer than the budget, and no queue grows.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "full size: make test-faults"]
async fn t16_latency_jitter_and_bandwidth() {
    let mut seed = Seed::announce("t16_latency_jitter_and_bandwidth");
    let (_server, proxy, node) = proxied(&seed).await;
    let base = phase(&node, &mut seed).await;
    proxy.set(Direction::Down, Faults::latency(Duration::from_millis(20)));
    let later = phase(&node, &mut seed).await;
    let extra = median(&later).saturating_sub(median(&base));
    let (low, high) = (Duration::from_millis(19), Duration::from_millis(25));
    assert!((low..=high).contains(&extra), "20 ms more are {extra:?} more");
    let p99 = later.took(0..u64::MAX, 990).saturating_sub(base.took(0..u64::MAX, 990));
    assert!(p99 <= high + later.noise, "p99 {p99:?} more, noise {:?}", later.noise);
    assert_eq!(later.degraded(), 0, "{:?}", health(&node));
    proxy.set(Direction::Down, Faults { jitter: Duration::from_millis(40), ..Faults::NONE });
    let jittery = phase(&node, &mut seed).await;
    let (late, usual) = (jittery.took(0..u64::MAX, 990), base.took(0..u64::MAX, 990));
    let limit = Duration::from_millis(45) + usual + jittery.noise;
    assert!(late <= limit, "p99 {late:?} with jitter, {usual:?} without");
    let (narrow, opened) = narrow(&node, &proxy, &mut seed).await;
    let counts = proxy.counts();
    fired("a delay", counts.down.delayed_bytes);
    fired("a full line", counts.up.throttled_bytes + counts.down.throttled_bytes);
    let bound = local_bound(&plan(OnError::Local).quota, 1, narrow.outage());
    report(
        "t16_latency_jitter_and_bandwidth",
        &seed,
        format!(
            "{} bytes later, {} throttled",
            counts.down.delayed_bytes,
            counts.up.throttled_bytes + counts.down.throttled_bytes
        ),
        format!(
            "{}; median {} and {} more with +20 ms (p99 {} more); jitter of 40 ms: p99 {}, {} of {} degraded; 1 KB/s: \
         breaker open {} after the first late answer, slowest check {}, {} of {} degraded; noise {}",
            within(narrow.excess(&plan(OnError::Local)), bound),
            ms(median(&base)),
            ms(extra),
            ms(p99),
            ms(late),
            jittery.degraded(),
            jittery.all.len(),
            ms(opened),
            ms(narrow.slowest()),
            narrow.degraded(),
            narrow.all.len(),
            ms(narrow.noise),
        ),
    );
}

fn median(shots: &Shots) -> Duration {
    shots.took(0..u64::MAX, 500)
}

async fn phase(node: &Node, seed: &mut Seed) -> Shots {
    let time = sized(Duration::from_millis(1500), Duration::from_secs(5));
    let nodes = std::slice::from_ref(node);
    let shots = Load::run(nodes, plan(OnError::Local), seed, time).await;
    let slowest = shots.slowest();
    assert!(slowest <= BUDGET + GRACE + shots.noise, "{slowest:?}, noise {:?}", shots.noise);
    shots
}

/// Load over a kilobyte per second: its checks, and the time from the first late reply until the breaker
/// opened.
async fn narrow(node: &Node, proxy: &FaultProxy, seed: &mut Seed) -> (Shots, Duration) {
    proxy.heal();
    until_healthy(node, LONG).await;
    let load = Load::start(std::slice::from_ref(node), plan(OnError::Local), seed);
    let timeouts = health(node).stats.timeouts;
    proxy.set_both(Faults::bandwidth(1000));
    let started = Instant::now();
    while health(node).stats.timeouts == timeouts {
        assert!(started.elapsed() < LONG, "VACUOUS: nothing is late");
        sleep(Duration::from_millis(1)).await;
    }
    let opened = until_open(std::slice::from_ref(node), DETECT_MAX).await;
    let ends = Instant::now() + Duration::from_secs(2);
    while Instant::now() < ends {
        let stats = health(node).stats;
        assert!(stats.in_flight <= IN_FLIGHT_MAX && stats.queued <= IN_FLIGHT_MAX, "{stats:?}");
        sleep(Duration::from_millis(5)).await;
    }
    let shots = load.stop().await;
    let slowest = shots.slowest();
    assert!(slowest <= BUDGET + GRACE + shots.noise, "{slowest:?}, noise {:?}", shots.noise);
    proxy.heal();
    until_healthy(node, RECOVER_MAX).await;
    (shots, opened)
}

/// Connections are reset every 100 ms, and both directions closed in turn: no reply is ever taken for
/// another's, no check is charged twice, a check without a reply counts as spent (so with `on_error = deny`
/// nothing is over-admitted), and the client reconnects at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "full size: make test-faults"]
async fn t17_resets_and_half_closes() {
    let mut seed = Seed::announce("t17_resets_and_half_closes");
    let (server, proxy, asked) = proxied(&seed).await;
    let direct = node(&server.url(), AMPLE);
    let tags = Tags::start(&direct, &asked).await;
    let load = Load::start(std::slice::from_ref(&asked), plan(OnError::Deny), &mut seed);
    let time = sized(Duration::from_secs(2), Duration::from_secs(10));
    proxy.reset_every(Some(Duration::from_millis(100)));
    sleep(time).await;
    proxy.heal();
    let resets = proxy.counts().connections.reset;
    let mut closes = 0;
    for round in 0..sized(4, 20) {
        until_healthy(&asked, RECOVER_MAX).await;
        sleep(Duration::from_millis(50)).await;
        proxy.half_close(if round % 2 == 0 { Direction::Up } else { Direction::Down });
        closes += 1;
        sleep(Duration::from_millis(50)).await;
    }
    until_healthy(&asked, RECOVER_MAX).await;
    let (shots, tally) = (load.stop().await, tags.stop(&direct).await);
    let counts = proxy.counts();
    fired("a reset", resets);
    fired("a half-close", counts.up.half_closed + counts.down.half_closed);
    fired("a check without an answer", tally.unanswered);
    assert_eq!(tally.mismatched, 0, "{tally:?}");
    let each = shots.degraded() as u64 / (resets + closes);
    report(
        "t17_resets_and_half_closes",
        &seed,
        format!("{resets} resets, {closes} half-closes"),
        format!(
            "{}; {} checks, {} degraded ({each} for each fault), {} tagged, {} unanswered, 0 mismatched, none charged \
         twice; {} connections; slowest check {}, noise {}",
            within(shots.excess(&plan(OnError::Deny)), 0),
            shots.all.len(),
            shots.degraded(),
            tally.asked,
            tally.unanswered,
            counts.connections.accepted,
            ms(shots.slowest()),
            ms(shots.noise),
        ),
    );
}

/// Every byte arrives alone, in both directions: nothing is degraded, and no reply is mistaken.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "full size: make test-faults"]
async fn t17_single_bytes() {
    let seed = Seed::announce("t17_single_bytes");
    let server = RedisServer::start(Flavour::Redis70);
    let proxy = FaultProxy::seeded(server.port(), &seed);
    let (direct, asked) = (node(&server.url(), AMPLE), node(&proxy.url(), AMPLE));
    until_healthy(&asked, LONG).await;
    // Not before: a connection must be ready, with its script, within a quarter of a second.
    proxy.set_both(Faults::slices(1, Duration::ZERO));
    let tags = Tags::start(&direct, &asked).await;
    sleep(Duration::from_secs(3)).await;
    let tally = tags.stop(&direct).await;
    let counts = proxy.counts();
    fired("a slice", counts.up.slices.min(counts.down.slices));
    assert_eq!((tally.unanswered, tally.mismatched), (0, 0), "{tally:?}");
    report(
        "t17_single_bytes",
        &seed,
        format!("{} and {} slices", counts.up.slices, counts.down.slices),
        format!(
            "over-admission 0 of at most 0; {} checks, all answered, 0 mismatched, slowest {}",
            tally.asked,
            ms(tally.slowest),
        ),
    );
}

/// Requests arrive and replies are lost. Each check has a key of its own, so that its bucket shows how often
/// it was charged: once at most.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t18_lost_answers_are_not_asked_for_again() {
    const AT_ONCE: usize = 40;
    let seed = Seed::announce("t18_lost_answers_are_not_asked_for_again");
    let (server, proxy, asked) = proxied(&seed).await;
    let direct = node(&server.url(), AMPLE);
    let slow = quota("1/day burst 10");
    let (rounds, mut names) = (sized(5, 40), Vec::new());
    for round in 0..rounds {
        until_healthy(&asked, LONG).await;
        proxy.set(Direction::Down, Faults::BLACK_HOLE);
        let new: Vec<String> = (0..AT_ONCE).map(|check| format!("{round} {check}")).collect();
        let checks = new.iter().map(|name| asked.take_or(name, &slow, 1, OnError::Deny));
        let answers = join_all(checks).await;
        assert!(answers.iter().all(|answer| answer.as_ref().unwrap().degraded));
        names.extend(new);
        sleep(Duration::from_millis(20)).await;
        proxy.heal();
    }
    until_healthy(&asked, LONG).await;
    let mut spent = [0_u64; 3];
    for name in &names {
        let looked = direct.peek(name, &slow).await.unwrap();
        spent[usize::try_from(10 - looked.remaining).unwrap().min(2)] += 1;
    }
    let [never, once, more] = spent;
    let (counts, stats) = (proxy.counts(), health(&asked).stats);
    fired("a lost answer", counts.down.swallowed_bytes.min(once));
    assert_eq!(more, 0, "charged more than once: {spent:?}");
    assert!(once <= stats.calls, "{once} charged, {} sent", stats.calls);
    report(
        "t18_lost_answers_are_not_asked_for_again",
        &seed,
        format!("{} bytes of answers lost", counts.down.swallowed_bytes),
        format!(
            "over-admission 0 of at most 0 (on_error = deny); {} checks without an answer: {once} charged once, {never} \
         never, 0 twice; {} timeouts, {} connections lost",
            names.len(),
            stats.timeouts,
            stats.errors(TroubleKind::Connection),
        ),
    );
}
