//! T30: masters of a cluster that die, and the effect on clients of the others.

use std::sync::Arc;
use std::time::Duration;

use sluicegate::{OnError, RedisStore, RedisStoreBuilder, TroubleKind};
use sluicegate_tests::cluster::Cluster;
use sluicegate_tests::servers::{Flavour, RedisServer};

use crate::clusters::load::Shape;
use crate::clusters::log::Log;
use crate::clusters::support::{
    BUDGET_LONG, Target, Trial, cluster_url, errors, key, per_second, users_of,
};

/// Three times the node timeout of two seconds.
const GAP_MAX: Duration = Duration::from_secs(6);
/// One of each flavour.
const CLUSTERS: usize = 5;
const ROUNDS: usize = 4;
const NAMES_PER_MASTER: usize = 4;

/// Result of one killed master.
#[derive(Clone, Copy, Debug)]
struct Death {
    gap: Duration,
    checks_elsewhere: u64,
    failed_elsewhere: u64,
    excess: i128,
    slack: i128,
}

/// A master of a cluster is killed under load, repeatedly (`cluster-require-full-coverage no`, otherwise the
/// nodes themselves refuse everything). Its slots have no replies for three node timeouts at most; slots of
/// other masters see no error at all; no bucket admits more than B above its quota.
#[test]
#[ignore = "full size: make test-faults"]
fn t30_a_killed_master_of_a_cluster_is_replaced() {
    let mut trial = Trial::new("t30_a_killed_master_of_a_cluster_is_replaced");
    let (mut deaths, mut redirects) = (Vec::new(), 0);
    for cluster in 0..CLUSTERS {
        let cluster = Cluster::start_with(trial.flavour(cluster), |_, node| {
            node.config("cluster-require-full-coverage no")
        });
        let special = |store: RedisStoreBuilder| store.deny_cache_max(0).budget(BUDGET_LONG);
        let url = cluster_url(cluster.nodes().iter().map(RedisServer::port));
        let stores: Vec<_> = (0..2).map(|_| trial.store(&url, special)).collect();
        for round in 0..ROUNDS {
            deaths.push(death(&mut trial, &cluster, &stores, round));
        }
        redirects += stores.iter().map(|store| store.health().stats.redirects).sum::<u64>();
        assert_eq!(errors(&stores, TroubleKind::Unexpected), 0, "{:?}", stores[0].health());
    }
    let gap = deaths.iter().map(|death| death.gap).max().unwrap();
    let excess = deaths.iter().map(|death| death.excess).max().unwrap();
    let failed: u64 = deaths.iter().map(|death| death.failed_elsewhere).sum();
    let checks: u64 = deaths.iter().map(|death| death.checks_elsewhere).sum();
    trial.line(&format!(
        "kills={} redirects={redirects} gap<={gap:?} (6s) over-admission {excess} (<= 100 + slack) errors in other slots \
         {failed} of {checks} (0)",
        deaths.len(),
    ));
    trial.acted("an answer elsewhere", checks);
    assert!(gap <= GAP_MAX, "{deaths:?}");
    assert_eq!(failed, 0, "{deaths:?}");
    assert!(deaths.iter().all(|death| death.excess <= 100 + death.slack), "{deaths:?}");
}

fn death(trial: &mut Trial, cluster: &Cluster, stores: &[Arc<RedisStore>], round: usize) -> Death {
    let quota = per_second(50, 100);
    let masters = cluster.masters();
    let victim = masters[trial.seed.below(masters.len() as u64) as usize];
    let (mut targets, mut hit) = (Vec::new(), Vec::new());
    for &master in &masters {
        for name in names_at(cluster, &stores[0], master, round) {
            targets.push(Target::one(&stores[0], &name, quota, OnError::Deny));
            hit.push(master == victim);
        }
    }
    let load = trial.load(stores, targets, Shape::default());
    load.wait_good(200);
    let replicas = cluster.replicas_of(victim);
    cluster.kill(victim);
    cluster.wait_for_failover(&replicas);
    load.wait_good(200);
    let log = load.finish(trial);
    cluster.nodes()[victim].restart();
    cluster.wait_ok();

    let theirs = log.only(|answer| hit[answer.target]);
    let others = log.only(|answer| !hit[answer.target]);
    trial.acted("a degraded answer", theirs.degraded());
    let of = |log: &Log, target| log.only(|answer| answer.target == target).by_redis();
    let excesses = (0..hit.len()).map(|target| of(&log, target).excess(&quota));
    let worst = excesses.max_by_key(|excess| excess.tokens - excess.slack).unwrap();
    Death {
        gap: theirs.gap_max(),
        checks_elsewhere: others.len(),
        failed_elsewhere: others.degraded(),
        excess: worst.tokens,
        slack: worst.slack,
    }
}

/// A master of a cluster is stopped, replaced, and continued: its clients get MOVED at most, and no bucket
/// admits more than B above its quota.
#[test]
#[ignore = "full size: make test-faults"]
fn t30_a_stopped_master_of_a_cluster_is_not_gone_back_to() {
    let name = "t30_a_stopped_master_of_a_cluster_is_not_gone_back_to";
    let mut trial = Trial::new(name);
    let quota = per_second(10, 100);
    let cluster = Cluster::start(Flavour::Valkey9);
    let url = cluster_url(cluster.nodes().iter().map(RedisServer::port));
    let stores: Vec<_> =
        (0..2).map(|_| trial.store(&url, |store| store.deny_cache_max(0))).collect();
    for round in 0..2 {
        let victim = cluster.masters()[0];
        let name = &names_at(&cluster, &stores[0], victim, round)[0];
        let target = Target::one(&stores[0], name, quota, OnError::Deny);
        let load = trial.load(&stores, vec![target], Shape::default());
        load.wait_good(200);
        let replicas = cluster.replicas_of(victim);
        cluster.nodes()[victim].stop();
        cluster.wait_for_failover(&replicas);
        load.wait_good(100);
        let woken_us = trial.now_us();
        cluster.nodes()[victim].cont();
        load.wait_good(400);
        let log = load.finish(&trial);
        cluster.wait_ok();
        let after = log.only(|answer| answer.sent_us > woken_us);
        let (gap, excess) = (log.gap_max(), log.by_redis().excess(&quota));
        trial.line(&format!(
            "stops=1 degraded={} gap {gap:?} (6s); after the waking errors {} of {} (0); left at the old master {}; \
             over-admission {} (<= 100 + {})",
            log.degraded(),
            after.degraded(),
            after.len(),
            users_of(&cluster.nodes()[victim]),
            excess.tokens,
            excess.slack,
        ));
        trial.acted("a degraded answer", log.degraded());
        assert!(gap <= GAP_MAX, "{gap:?}");
        assert_eq!(after.degraded(), 0);
        assert!(excess.tokens <= 100 + excess.slack, "{excess:?}");
    }
}

/// Names whose buckets this master has.
pub(crate) fn names_at(
    cluster: &Cluster,
    store: &RedisStore,
    master: usize,
    round: usize,
) -> Vec<String> {
    let names = (0..).map(|number| format!("{round}/{number}"));
    let is_here = |name: &String| cluster.owner_of(key(store, name).slot()) == master;
    names.filter(is_here).take(NAMES_PER_MASTER).collect()
}
