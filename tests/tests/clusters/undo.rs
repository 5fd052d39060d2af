//! Undos: a charge over several slots is denied by one of them.
//!
//! The clock is manual. Two buckets live on two nodes: one that has enough, and one that denies. The denying
//! node's reply is held back, so that the undo comes as late as the test needs.

use std::sync::Arc;
use std::time::Duration;

use sluicegate::{
    Algorithm, Charge, Charged, Clock as _, Decision, ManualClock, Micros, OnError, Quota,
    RedisKey, RedisStore, Refill, Store as _,
};
use sluicegate_tests::cluster::Cluster;
use sluicegate_tests::proxy::{Direction, FaultProxy, Faults};
use sluicegate_tests::wait;
use tokio::task::JoinHandle;

use crate::clusters::failover::names_at;
use crate::clusters::support::{
    SOON, Trial, cluster_url, hardly_any, key, micros, on_clusters, per_second, shared_cluster,
};

/// About the year 2100, at the start of a minute: keys expire by the servers' clocks, which must not come
/// near.
const START_US: u64 = 4_102_444_800_000_000;
/// Cost of the denied request, in both buckets.
const COST: u64 = 2;
/// Distance between cases: no quota here takes longer to fill.
const CASE_US: u64 = 60_000_000;

/// Two buckets on two nodes, and two processes that charge them.
struct Pair<'a> {
    trial: &'a Trial,
    clock: ManualClock,
    /// The store that is denied.
    store: Arc<RedisStore>,
    /// The store that peeks.
    other: Arc<RedisStore>,
    spare: (RedisKey, Quota),
    drained: (RedisKey, Quota),
    proxies: (&'a FaultProxy, &'a FaultProxy),
}

impl<'a> Pair<'a> {
    fn new(
        trial: &'a Trial,
        (cluster, proxies): (&'a Cluster, &'a [FaultProxy]),
        number: usize,
        quota: Quota,
        budget: Duration,
    ) -> Self {
        let start_us = START_US + CASE_US * number as u64;
        let clock = ManualClock::new(Micros::new(start_us));
        let url = cluster_url(proxies.iter().map(FaultProxy::port));
        let store = || {
            let prefix = format!("undo-{}-{number}", trial.seed.seed());
            trial.store(&url, |store| {
                store.clock(clock.clone()).deny_cache_max(0).budget(budget).prefix(&prefix)
            })
        };
        let (store, other) = (store(), store());
        let masters = cluster.masters();
        let at = |master| key(&store, &names_at(cluster, &store, masters[master], 0)[0]);
        let (spare, drained) = ((at(0), quota), (at(1), hardly_any(COST)));
        let proxies = (&proxies[masters[0]], &proxies[masters[1]]);
        let pair = Self { trial, clock, store, other, spare, drained, proxies };
        pair.wait_ready();
        pair.charge(&pair.drained, COST);
        pair
    }

    /// Waits until both have links to both nodes.
    fn wait_ready(&self) {
        for store in [&self.store, &self.other] {
            wait::until("both nodes to answer", SOON, || {
                let look = [charge_of(&self.spare, 0), charge_of(&self.drained, 0)];
                !self.trial.runtime.block_on(store.charge(&look)).unwrap().degraded
            });
        }
    }

    fn charge(&self, tier: &(RedisKey, Quota), cost: u64) {
        let charges = [charge_of(tier, cost)];
        let charged = self.trial.runtime.block_on(self.other.charge(&charges)).unwrap();
        assert!(!charged.degraded && charged.decisions[0].is_granted(), "{charged:?}");
    }

    /// A peek at the bucket that has enough.
    fn look(&self) -> Decision {
        let charges = [charge_of(&self.spare, 0)];
        let mut charged = None;
        wait::until("an answer", SOON, || {
            let answer = self.trial.runtime.block_on(self.other.charge(&charges)).unwrap();
            let is_real = !answer.degraded;
            charged = Some(answer);
            is_real
        });
        charged.unwrap().decisions[0]
    }

    /// Charges both, while the denying node's reply is held back, until the other bucket is charged.
    fn ask(&self) -> JoinHandle<Charged> {
        let before = self.look();
        self.proxies.1.set(Direction::Down, Faults::STALL);
        let (store, spare, drained) =
            (Arc::clone(&self.store), self.spare.clone(), self.drained.clone());
        let pending = self.trial.runtime.spawn(async move {
            let charges = [charge_of(&spare, COST), charge_of(&drained, COST)];
            store.charge(&charges).await.unwrap()
        });
        wait::until("the charge", SOON, || self.look() != before);
        pending
    }

    /// Lets the denial through.
    fn deny(&self, pending: JoinHandle<Charged>) -> Charged {
        self.proxies.1.heal();
        let charged = self.trial.runtime.block_on(pending).unwrap();
        assert!(!charged.degraded, "{:?}", self.store.health());
        assert!(!charged.decisions[1].is_granted(), "{charged:?}");
        charged
    }

    /// A request that is denied `after` its charge on the other node, and undone.
    fn denied(&self, after: Duration) -> Charged {
        let calls = self.store.health().stats.calls;
        let pending = self.ask();
        self.clock.advance(after);
        let charged = self.deny(pending);
        wait::until("the undo", SOON, || {
            let stats = self.store.health().stats;
            stats.calls == calls + 3 && stats.in_flight == 0
        });
        assert!(self.proxies.1.counts().down.stalled_bytes > 0, "VACUOUS: nothing was held back");
        charged
    }
}

fn charge_of<'a>((key, quota): &'a (RedisKey, Quota), cost: u64) -> Charge<'a, RedisKey> {
    Charge::new(key, quota, cost).with_on_error(OnError::Deny)
}

fn ten(algorithm: Algorithm) -> Quota {
    Quota::per_second(10).unwrap().with_algorithm(algorithm).unwrap()
}

// ===== refunded tokens =====

/// A bucket from which `spent` was taken, a charge that is undone after `after_ms`, and the expected tokens
/// then.
struct Case {
    name: &'static str,
    quota: Quota,
    spent: u64,
    after_ms: u64,
    remaining: u64,
    full_in_ms: u64,
}

/// For every algorithm, an immediate undo, which is exact, a later one, and one too late. Later, tokens that
/// were refilled since are not refunded: the bucket has what it had when it was charged.
fn cases() -> Vec<Case> {
    let case = |name, quota, spent, [after_ms, remaining, full_in_ms]: [u64; 3]| Case {
        name,
        quota,
        spent,
        after_ms,
        remaining,
        full_in_ms,
    };
    let bucket = ten(Algorithm::TokenBucket);
    let three = Quota::new(3, Duration::from_secs(10)).unwrap().with_capacity(10).unwrap();
    let interval = Quota::per_second(4).unwrap().with_capacity(10).unwrap();
    let interval = interval.with_refill(Refill::Interval).unwrap();
    let (window, counter) = (ten(Algorithm::FixedWindow), ten(Algorithm::SlidingCounter));
    let (log, queue) = (ten(Algorithm::SlidingWindow), ten(Algorithm::LeakyBucket));
    vec![
        case("bucket at once", bucket, 3, [0, 7, 300]),
        case("bucket later", bucket, 3, [150, 7, 300]),
        case("bucket too late", bucket, 3, [250, 7, 250]),
        case("thirds at once", three, 3, [0, 7, 10_000]),
        case("thirds later", three, 3, [1_000, 7, 10_000]),
        case("interval at once", interval, 6, [0, 4, 2_000]),
        case("interval later", interval, 6, [500, 4, 1_500]),
        case("interval too late", interval, 6, [1_500, 6, 500]),
        case("fixed window at once", window, 3, [0, 7, 1_000]),
        case("fixed window later", window, 3, [400, 7, 600]),
        case("fixed window too late", window, 3, [1_200, 10, 0]),
        case("sliding counter at once", counter, 3, [0, 7, 2_000]),
        case("sliding counter later", counter, 3, [400, 7, 1_600]),
        case("sliding counter, a window later", counter, 3, [1_500, 8, 500]),
        case("sliding window at once", log, 3, [0, 7, 1_000]),
        case("sliding window later", log, 3, [400, 7, 600]),
        case("sliding window too late", log, 3, [1_200, 10, 0]),
        // A place in a queue is not taken back from those behind it: it passes as the queue drains.
        case("queue", queue, 3, [0, 5, 500]),
        case("queue later", queue, 3, [150, 6, 350]),
    ]
}

#[test]
fn undo_refunds_tokens_that_were_not_refilled() {
    let trial = Trial::new("undo_refunds_tokens_that_were_not_refilled");
    let cases = cases();
    on_clusters(|cluster, proxies| {
        for (number, case) in cases.iter().enumerate() {
            let budget = Duration::from_secs(5);
            let pair = Pair::new(&trial, (cluster, proxies), number, case.quota, budget);
            pair.charge(&pair.spare, case.spent);
            let before = pair.look();
            let charged = pair.denied(Duration::from_millis(case.after_ms));
            let after = pair.look();
            let (is, must_be) = (after.reset_after, case.full_in_ms * 1000);
            assert_eq!((after.remaining, is), (case.remaining, must_be), "{}", case.name);
            // The denied request's decision shows the tokens before it.
            assert_eq!(charged.decisions[0].remaining, before.remaining, "{}", case.name);
        }
        let (flavour, undos) = (cluster.nodes()[0].flavour().name(), cases.len());
        trial.line(&format!("{flavour} undos={undos} all as they should be, to the microsecond"));
    });
}

/// In an exact log, an entry followed by others is undone as well, if those are few. If they are many it
/// leaves with its period, and so costs no more than a lost undo.
#[test]
fn undo_of_an_entry_in_the_middle_of_a_log() {
    let trial = Trial::new("undo_of_an_entry_in_the_middle_of_a_log");
    let log = per_second(1_000, 1_000).with_algorithm(Algorithm::SlidingWindow).unwrap();
    for (number, (later, undone)) in (100..).zip([(1, COST), (127, COST), (128, 0)]) {
        let pair = Pair::new(&trial, shared_cluster(), number, log, Duration::from_secs(5));
        pair.charge(&pair.spare, 3);
        pair.clock.advance(Duration::from_millis(1));
        let pending = pair.ask();
        for _ in 0..later {
            pair.clock.advance(Duration::from_millis(1));
            pair.charge(&pair.spare, 1);
        }
        let calls = pair.store.health().stats.calls;
        pair.deny(pending);
        wait::until("the undo", SOON, || pair.store.health().stats.calls == calls + 1);
        wait::until("its answer", SOON, || pair.store.health().stats.in_flight == 0);
        let left = 1_000 - 3 - COST - later;
        assert_eq!(pair.look().remaining, left + undone, "{later} came later");
        // Entries leave after one period: the first one, the undone one, and the later ones.
        pair.clock.advance(Duration::from_millis(1_000 - later - 1));
        assert_eq!(pair.look().remaining, left + undone + 3);
        pair.clock.advance(Duration::from_millis(1));
        assert_eq!(pair.look().remaining, left + COST + 3);
        pair.clock.advance(Duration::from_millis(later));
        assert_eq!(pair.look().remaining, 1_000);
    }
    trial.line(
        "undos=3: with 1 and 127 entries behind it at once, with 128 after its period of 1 s",
    );
}

/// The undo is lost in a black hole: the bucket lacks its cost until that is refilled, and never more.
#[test]
fn undo_that_is_lost_costs_no_more_than_the_charge() {
    let trial = Trial::new("undo_that_is_lost_costs_no_more_than_the_charge");
    let bucket = ten(Algorithm::TokenBucket);
    let pair = Pair::new(&trial, shared_cluster(), 105, bucket, Duration::from_millis(1_500));
    pair.charge(&pair.spare, 3);
    let pending = pair.ask();
    pair.proxies.0.set_both(Faults::BLACK_HOLE);
    pair.deny(pending);
    wait::until("the undo to be lost", SOON, || pair.store.health().stats.undo_lost == 1);
    let swallowed = pair.proxies.0.counts().up.swallowed_bytes;
    pair.proxies.0.heal();
    assert_eq!(pair.look().remaining, 10 - 3 - COST);
    pair.clock.advance(Duration::from_millis(199));
    assert_eq!(pair.look().remaining, 10 - 3 - 1);
    pair.clock.advance(Duration::from_millis(1));
    let refilled = pair.look();
    assert_eq!((refilled.remaining, refilled.reset_after), (10 - 3, 300_000));
    let now_us = pair.clock.now().get();
    assert_eq!(now_us, START_US + 105 * CASE_US + micros(Duration::from_millis(200)));
    trial.line(&format!(
        "undos lost=1 swallowed={swallowed} bytes; {COST} tokens missing for the 200 ms that they take to refill"
    ));
    trial.acted("a swallowed byte", swallowed);
}

/// A node is silent, and its bucket's policy decides. If that denies, the grant of the other node is undone;
/// if it allows, the other bucket stays charged, once.
#[test]
fn undo_follows_the_policy_of_a_silent_node() {
    let trial = Trial::new("undo_follows_the_policy_of_a_silent_node");
    let policies = [(OnError::Deny, 7), (OnError::Allow, 5)];
    for (number, (on_error, remaining)) in (110..).zip(policies) {
        let (bucket, budget) = (ten(Algorithm::TokenBucket), Duration::from_millis(300));
        let pair = Pair::new(&trial, shared_cluster(), number, bucket, budget);
        pair.charge(&pair.spare, 3);
        pair.proxies.1.set(Direction::Down, Faults::STALL);
        let silent = charge_of(&pair.drained, 1).with_on_error(on_error);
        let charges = [charge_of(&pair.spare, COST), silent];
        let charged = trial.runtime.block_on(pair.store.charge(&charges)).unwrap();
        let is_allowed = charged.decisions.iter().all(Decision::is_granted);
        assert_eq!((charged.degraded, is_allowed), (true, on_error == OnError::Allow));
        let is_settled = || pair.look().remaining == remaining;
        assert!(wait::within(SOON, is_settled), "{on_error:?}: {:?}", pair.look());
        trial.acted("a held byte", pair.proxies.1.counts().down.stalled_bytes);
        pair.proxies.1.heal();
    }
    trial.line("silent=2: denied and undone; allowed and charged once");
}
