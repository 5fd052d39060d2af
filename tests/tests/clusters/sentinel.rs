//! T26, T27: masters that die, and sentinels that name another.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use redis::from_redis_value;
use sluicegate::{OnError, Quota, RedisStore, TroubleKind};
use sluicegate_tests::proxy::Faults;
use sluicegate_tests::sentinel::{MASTER_NAME, SentinelSet};
use sluicegate_tests::servers::{Flavour, RedisServer};
use sluicegate_tests::wait;

use crate::clusters::load::Shape;
use crate::clusters::support::{SOON, Target, Trial, hardly_any, per_second, rounds, users_of};

/// Longest time without a master after its death: 1 s until it counts as down, the vote, and the replica's
/// promotion.
const GAP_MAX: Duration = Duration::from_secs(6);
/// Longest run of READONLY errors.
const READONLY_MAX: Duration = Duration::from_secs(1);

pub(crate) fn sentinel_url(set: &SentinelSet) -> String {
    let hosts: Vec<_> =
        set.sentinels().iter().map(|one| format!("127.0.0.1:{}", one.port())).collect();
    format!("redis+sentinel://{}/{MASTER_NAME}", hosts.join(","))
}

/// Stores of two processes without a deny cache, each with half of a quota as its local share.
pub(crate) fn two_stores(trial: &Trial, url: &str) -> Vec<Arc<RedisStore>> {
    let store = || trial.store(url, |store| store.deny_cache_max(0).local_share_percent(50));
    vec![store(), store()]
}

/// Waits until no sentinel is busy with the last failover: another failure meanwhile would go unnoticed.
fn wait_done(set: &SentinelSet) {
    let is_done = |sentinel: &RedisServer| {
        let master = sentinel.command(&["SENTINEL", "MASTER", MASTER_NAME]);
        let master: HashMap<String, String> = from_redis_value(master).unwrap();
        master["flags"] == "master"
    };
    wait::until("the sentinels to be done", SOON, || set.sentinels().iter().all(is_done));
}

/// Waits until the living replicas have all data of the master.
pub(crate) fn wait_replicated(set: &SentinelSet) {
    let master = set.master();
    let replicas = (0..set.servers().len()).filter(|&index| index != master);
    for replica in replicas.map(|index| &set.servers()[index]).filter(|one| one.is_running()) {
        wait_caught_up(&set.servers()[master], replica);
    }
}

/// A connected replica may not be in sync yet: a master sends nothing before the replica's first
/// acknowledgement, which may take a second.
pub(crate) fn wait_caught_up(master: &RedisServer, replica: &RedisServer) {
    let offset = master.info_number("replication", "master_repl_offset");
    wait::until("the replica to catch up", SOON, || {
        let text = replica.info("replication", "slave_repl_offset");
        text.is_some_and(|text| text.parse::<i64>().unwrap() >= offset)
    });
}

// ===== T26 =====

/// Result of one killed master.
#[derive(Clone, Copy, Debug)]
struct Death {
    gap: Duration,
    by_redis: i128,
    /// Excess of the local buckets.
    besides: i128,
    /// New masters: the sentinels may switch more than once.
    masters: i128,
    slack: i128,
}

/// A master is killed under load, repeatedly. Clients are without one for 6 s at most and need no restart. A
/// bucket admits at most B too much by the data lost with the master, and besides at most the two local
/// halves, and the refill at the new master meanwhile. While one process has reconnected earlier than the
/// other, for a second at most, both kinds grant.
#[test]
fn t26_a_killed_master_is_replaced() {
    let mut trial = Trial::new("t26_a_killed_master_is_replaced");
    let quota = per_second(10, 100);
    // Of three servers two can die.
    let (sets, kills) = (rounds(1, 10), rounds(1, 2));
    let (mut deaths, mut readonly, mut reconnects) = (Vec::new(), Duration::ZERO, 0);
    for set in 0..sets {
        let set = SentinelSet::start(trial.flavour(set));
        let stores = two_stores(&trial, &sentinel_url(&set));
        let watch = trial.watch(&stores, TroubleKind::ReadOnly);
        for kill in 0..kills {
            deaths.push(death(&mut trial, &set, &stores, &format!("kill {kill}"), &quota));
        }
        readonly = readonly.max(watch.longest(&trial));
        reconnects += stores.iter().map(|store| store.health().stats.reconnects).sum::<u64>();
    }
    let most = |of: fn(&Death) -> i128| deaths.iter().map(of).max().unwrap();
    let gap = deaths.iter().map(|death| death.gap).max().unwrap();
    let (by_redis, besides) = (most(|death| death.by_redis), most(|death| death.besides));
    let slack = most(|death| death.slack);
    trial.line(&format!(
        "kills={} new masters={} reconnects={reconnects} gap<={gap:?} (6s) over-admission by redis {by_redis} (<= 100 each + {slack}), \
         besides {besides} (<= 100 + 10 * (gap + 1s) + {slack}) longest READONLY {readonly:?} (1s)",
        deaths.len(),
        deaths.iter().map(|death| death.masters).sum::<i128>(),
    ));
    trial.acted("a reconnection", reconnects);
    assert!(gap <= GAP_MAX, "{deaths:?}");
    let is_bounded = |death: &Death| death.by_redis <= 100 * death.masters + death.slack;
    assert!(deaths.iter().all(is_bounded), "{deaths:?}");
    let besides_max = |gap: Duration| 100 + 10 * (gap.as_millis() as i128 + 1_000) / 1_000 + 1;
    let is_bounded = |death: &Death| death.besides <= besides_max(death.gap) + death.slack;
    assert!(deaths.iter().all(is_bounded), "{deaths:?}");
    assert!(readonly <= READONLY_MAX, "{readonly:?}");
}

fn death(
    trial: &mut Trial,
    set: &SentinelSet,
    stores: &[Arc<RedisStore>],
    name: &str,
    quota: &Quota,
) -> Death {
    let target = Target::one(&stores[0], name, *quota, OnError::Local);
    let load = trial.load(stores, vec![target], Shape::default());
    load.wait_good(100);
    wait_replicated(set);
    let before = switches(set);
    let former = set.kill_master();
    set.wait_for_failover(former);
    wait_done(set);
    load.wait_good(200);
    let log = load.finish(trial);
    trial.acted("a degraded answer", log.degraded());
    let (redis, all) = (log.by_redis().excess(quota), log.excess(quota));
    let besides = all.tokens - redis.tokens.max(0);
    let masters = switches(set) - before;
    Death { gap: log.gap_max(), by_redis: redis.tokens, besides, masters, slack: all.slack }
}

/// Number of times a sentinel has switched the master.
fn switches(set: &SentinelSet) -> i128 {
    let count = |sentinel: &RedisServer| sentinel.log().matches("+switch-master").count();
    set.sentinels().iter().map(count).max().unwrap() as i128
}

/// A master is stopped, replaced, and continued, with pending requests and its old role. No request waits for
/// it, and no client returns to it.
#[test]
#[ignore = "full size: make test-faults"]
fn t26_a_stopped_master_is_not_gone_back_to() {
    let mut trial = Trial::new("t26_a_stopped_master_is_not_gone_back_to");
    let quota = per_second(10, 100);
    for flavour in Flavour::ALL {
        let set = SentinelSet::start(flavour);
        let stores = two_stores(&trial, &sentinel_url(&set));
        let target = Target::one(&stores[0], "stopped", quota, OnError::Deny);
        let load = trial.load(&stores, vec![target], Shape::default());
        load.wait_good(100);
        wait_replicated(&set);
        let former = set.master();
        set.servers()[former].stop();
        set.wait_for_failover(former);
        load.wait_good(100);
        let woken_us = trial.now_us();
        set.servers()[former].cont();
        load.wait_good(400);
        wait::until("all clients to leave the old master", SOON, || {
            users_of(&set.servers()[former]) == 0
        });
        let log = load.finish(&trial);
        let after = log.only(|answer| answer.sent_us > woken_us);
        let (gap, excess) = (log.gap_max(), log.by_redis().excess(&quota));
        trial.line(&format!(
            "{} stops=1 degraded={} gap {gap:?} (6s); after the waking errors {} of {} (0), slowest {} us; \
             over-admission {} (<= 100 + {})",
            flavour.name(),
            log.degraded(),
            after.degraded(),
            after.len(),
            log.slowest_us(),
            excess.tokens,
            excess.slack,
        ));
        trial.acted("a degraded answer", log.degraded());
        assert!(gap <= GAP_MAX, "{gap:?}");
        assert_eq!(after.degraded(), 0);
        assert!(excess.tokens <= 100 + excess.slack, "{excess:?}");
    }
}

// ===== T27 =====

const HOLES: usize = 10;
/// Grants this shortly before the partition may not have left the master yet.
const LAG_US: u64 = 50_000;

/// Result of one gap in replication.
#[derive(Clone, Copy, Debug)]
struct Hole {
    /// Grants of the old master while nothing was replicated.
    acked: u64,
    /// Grants of Redis in total that the new master does not know.
    lost: i128,
    /// Excess above B + R t, of a bucket that was first charged in the gap.
    excess: i128,
    slack: i128,
    swallowed: u64,
}

/// The worst case: replication is black-holed for a second, then the master is killed. The grants in the gap
/// are lost, and no bucket admits more than B + R λ above its quota.
#[test]
#[ignore = "full size: make test-faults"]
fn t27_what_was_not_replicated_is_lost_and_no_more() {
    let mut trial = Trial::new("t27_what_was_not_replicated_is_lost_and_no_more");
    let mut holes = Vec::new();
    for round in 0..HOLES {
        let set = SentinelSet::start(trial.flavour(round));
        let stores = two_stores(&trial, &sentinel_url(&set));
        holes.push(hole(&mut trial, &set, &stores));
    }
    let mut lost: Vec<_> = holes.iter().map(|hole| hole.lost).collect();
    lost.sort_unstable();
    let excess = holes.iter().map(|hole| hole.excess).max().unwrap();
    let acked: Vec<_> = holes.iter().map(|hole| hole.acked).collect();
    trial.line(&format!(
        "holes={} swallowed={} bytes; lost (sorted) {lost:?} of acked in the hole {acked:?}; over-admission {excess} (<= \
         50 + R λ)",
        holes.len(),
        holes.iter().map(|hole| hole.swallowed).sum::<u64>(),
    ));
    trial.acted("a lost grant", lost.iter().filter(|lost| **lost > 0).count() as u64);
    for hole in &holes {
        assert!(hole.lost <= i128::from(hole.acked), "{hole:?}");
        // λ: the gap of a second, and the time until the master was killed.
        assert!(hole.excess <= 50 + 2 * 2 + hole.slack, "{hole:?}");
    }
}

fn hole(trial: &mut Trial, set: &SentinelSet, stores: &[Arc<RedisStore>]) -> Hole {
    // The first is never refilled, so that all spent tokens can be counted; the second is first charged in
    // the gap, which is the worst case.
    let (lasting, worst) = (hardly_any(1_000_000), per_second(2, 50));
    let lasting_target = Target::one(&stores[0], "lasting", lasting, OnError::Deny);
    let worst_target = Target::one(&stores[0], "worst", worst, OnError::Deny);
    let before = trial.load(stores, vec![lasting_target.clone()], Shape::default());
    before.wait_good(100);
    wait_replicated(set);
    let proxies = set.interpose();
    let opened_us = trial.now_us() - LAG_US;
    proxies.iter().for_each(|proxy| proxy.set_both(Faults::BLACK_HOLE));
    let mut log = before.finish(trial);
    let load = trial.load(stores, vec![lasting_target.clone(), worst_target], Shape::default());
    wait::until("a second in the hole", SOON, || trial.now_us() >= opened_us + 1_000_000);
    let former = set.kill_master();
    let killed_us = trial.now_us();
    set.wait_for_failover(former);
    load.wait_good(200);
    log.0.extend(load.finish(trial).0);
    let swallowed = proxies.iter().map(|proxy| proxy.counts().down.swallowed_bytes).sum();
    trial.acted("a swallowed byte", swallowed);
    let log = log.by_redis();
    let kept_log = log.only(|answer| answer.target == 0);
    let acked = kept_log.only(|answer| (opened_us..=killed_us).contains(&answer.at_us)).granted();
    let lost =
        i128::from(kept_log.granted()) - i128::from(spent(trial, &stores[0], &lasting_target));
    let excess = log.only(|answer| answer.target == 1).excess(&worst);
    Hole { acked, lost, excess: excess.tokens, slack: excess.slack, swallowed }
}

/// Whole tokens missing in a bucket that does not refill.
fn spent(trial: &Trial, store: &RedisStore, target: &Target) -> u64 {
    use sluicegate::Store as _;
    let charged = trial.runtime.block_on(store.charge(&target.charges(0))).unwrap();
    assert!(!charged.degraded, "{:?}", store.health());
    charged.decisions[0].limit - charged.decisions[0].remaining
}
