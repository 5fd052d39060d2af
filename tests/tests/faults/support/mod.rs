//! Shared helpers of fault tests: nodes, load, bounds, and the printed line.

pub(crate) mod child;
pub(crate) mod load;
pub(crate) mod tags;
pub(crate) mod windows;

use std::fmt::Display;
use std::future::Future;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use sluicegate::{
    Algorithm, BreakerState, Limiter, OnError, Quota, RedisHealth, RedisStartError, RedisStore,
    RedisStoreBuilder, Refill, RuleSet, Store as _, TroubleKind,
};
pub(crate) use sluicegate_tests::noise;
use sluicegate_tests::oracle;
use sluicegate_tests::seed::Seed;
use tokio::time::Instant;

/// A process that limits: here, a store of its own with a connection of its own.
pub(crate) type Node = Limiter<RedisStore>;

/// Budget of a check in outages.
pub(crate) const BUDGET: Duration = Duration::from_millis(50);
/// A budget that no busy machine exceeds: for tests in which nothing may be degraded.
pub(crate) const AMPLE: Duration = Duration::from_secs(5);
/// Allowance of a check above its budget.
pub(crate) const GRACE: Duration = Duration::from_millis(20);
/// Time in which an outage must be detected.
pub(crate) const DETECT_MAX: Duration = Duration::from_millis(250);
/// Time in which a recovered server must be used again.
pub(crate) const RECOVER_MAX: Duration = Duration::from_secs(1);
/// Timeout of all waiting.
pub(crate) const LONG: Duration = Duration::from_secs(20);

/// Is this the full run?
pub(crate) fn is_full() -> bool {
    std::env::var("SLUICEGATE_FAULTS").is_ok_and(|size| size == "full")
}

/// One of two sizes.
pub(crate) fn sized<T>(quick: T, full: T) -> T {
    if is_full() { full } else { quick }
}

/// Microseconds of the wall clock, which servers on this machine use.
pub(crate) fn now_us() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    u64::try_from(since.as_micros()).unwrap()
}

pub(crate) fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap()
}

/// Formats a time.
pub(crate) fn ms(duration: Duration) -> String {
    format!("{:.1} ms", duration.as_secs_f64() * 1e3)
}

/// Parses a quota such as `10/s burst 20`.
pub(crate) fn quota(text: &str) -> Quota {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// A quota of every algorithm: five tokens per period; one bucket has seven.
pub(crate) fn algorithms(period: Duration) -> Vec<(&'static str, Quota)> {
    let five = || Quota::new(5, period).unwrap();
    let by = |algorithm| five().with_algorithm(algorithm).unwrap();
    vec![
        ("token bucket", five()),
        ("token bucket of fractions", Quota::new(7, period).unwrap().with_capacity(5).unwrap()),
        ("interval", five().with_refill(Refill::Interval).unwrap()),
        ("fixed window", by(Algorithm::FixedWindow)),
        ("sliding window", by(Algorithm::SlidingWindow)),
        ("sliding counter", by(Algorithm::SlidingCounter)),
        ("leaky bucket", by(Algorithm::LeakyBucket).with_max_wait(period).unwrap()),
    ]
}

/// The same quota for the oracle.
pub(crate) fn exact(quota: &Quota) -> oracle::Quota {
    let (tokens, period_us) = quota.rate().tokens_and_period_us();
    oracle::Quota { capacity: quota.capacity(), tokens, period_us }
}

/// A node on the server at `url`.
pub(crate) fn node(url: &str, budget: Duration) -> Node {
    node_with(url, |builder| builder.budget(budget))
}

/// A node with settings of its own.
pub(crate) fn node_with(
    url: &str,
    set: impl FnOnce(RedisStoreBuilder) -> RedisStoreBuilder,
) -> Node {
    let store = set(RedisStore::builder(url).unwrap()).build().unwrap();
    Limiter::new(store, RuleSet::new(Vec::new()).unwrap())
}

/// Several nodes that share a limit, each with its share of it in an outage.
pub(crate) fn nodes(url: &str, count: u8, budget: Duration) -> Vec<Node> {
    let node = |_| node_with(url, |b| b.budget(budget).local_share_percent(100 / count));
    (0..count).map(node).collect()
}

pub(crate) fn health(node: &Node) -> RedisHealth {
    node.store().health()
}

pub(crate) fn errors(node: &Node, kind: TroubleKind) -> u64 {
    health(node).stats.errors(kind)
}

/// The key of a bucket in Redis.
pub(crate) fn redis_key(node: &Node, key: &str) -> String {
    node.store().key(sluicegate::Space::Take, &[key.as_bytes()]).as_str().to_owned()
}

/// Waits for a condition; returns the time that took, less the longest scheduling delay. It must not exceed
/// the limit.
pub(crate) async fn until<F: Future<Output = bool>>(
    what: &str,
    limit: Duration,
    mut condition: impl FnMut() -> F,
) -> Duration {
    let started = Instant::now();
    noise::listen();
    while !condition().await {
        assert!(
            started.elapsed() < 2 * limit + LONG,
            "waited {limit:?} and longer in vain for {what}"
        );
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let took = started.elapsed();
    if took <= limit {
        return took;
    }
    let took = took.saturating_sub(noise::since(started));
    assert!(took <= limit, "waited {took:?} for {what}, and at most {limit:?} is allowed");
    took
}

/// Waits until Redis answers a node in time; returns the time that took.
pub(crate) async fn until_healthy(node: &Node, limit: Duration) -> Duration {
    until("an answer of Redis", limit, || is_healthy(node)).await
}

/// Does Redis answer a node now?
pub(crate) async fn is_healthy(node: &Node) -> bool {
    let looked = node.take_or("a look", &quota("1/s"), 0, OnError::Deny).await.unwrap();
    !looked.degraded && health(node).breaker == BreakerState::Closed
}

/// Waits until the breakers of all nodes have opened; returns the time that took.
pub(crate) async fn until_open(nodes: &[Node], limit: Duration) -> Duration {
    let is_open = || async { nodes.iter().all(|n| health(n).breaker != BreakerState::Closed) };
    until("the breakers to open", limit, is_open).await
}

/// Probes a server, and retries while the error may pass: on a busy machine, a handshake of an unoptimised
/// build may take longer than the timeout of connecting.
pub(crate) async fn first_look(node: &Node) -> Result<Vec<String>, RedisStartError> {
    let started = Instant::now();
    loop {
        match node.store().probe().await {
            Err(error) if error.is_passing() && started.elapsed() < LONG => {}
            settled => return settled,
        }
    }
}

/// Fails if a fault never acted: the test would have proven nothing.
pub(crate) fn fired(what: &str, times: u64) {
    assert!(times > 0, "VACUOUS: {what} never happened");
}

/// Prints the line of a test.
pub(crate) fn report(name: &str, seed: &Seed, fault: impl Display, measured: impl Display) {
    println!("{name}: seed {} | fault: {fault} | {measured}", seed.seed());
}

/// Formats an excess and its bound.
pub(crate) fn within(excess: i128, bound: i128) -> String {
    assert!(excess <= bound, "{excess} tokens above B + R·t, and {bound} are allowed");
    format!("over-admission {excess} of at most {bound}")
}
