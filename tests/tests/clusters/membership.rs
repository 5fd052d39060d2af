//! Nodes that a store knows: at start, after a failover, and when nodes are gone.

use std::sync::Arc;
use std::time::Duration;

use sluicegate::{OnError, RedisStore, Store as _};
use sluicegate_tests::cluster::Cluster;
use sluicegate_tests::proxy::{FaultProxy, Faults};
use sluicegate_tests::servers::free_port;
use sluicegate_tests::wait;

use crate::clusters::load::Shape;
use crate::clusters::resharding::redirections;
use crate::clusters::support::{
    SOON, Target, Trial, cluster_url, kinds, per_second, rounds, shared_cluster, users_of,
};

/// A silent seed delays the start by half a second.
const STARTED_WITHIN: Duration = Duration::from_secs(3);

/// One seed refuses, one is silent, and one replies: that is enough.
#[test]
fn cluster_starts_when_seeds_are_down() {
    let trial = Trial::new("cluster_starts_when_seeds_are_down");
    let (_, proxies) = shared_cluster();
    let silent = FaultProxy::start(proxies[0].port());
    silent.set_both(Faults::BLACK_HOLE);
    let url = cluster_url([free_port(), silent.port(), proxies[5].port()]);
    let store = trial.store(&url, |store| store);
    let from_us = trial.now_us();
    let names = (0..30).map(|number| format!("seeds {number}"));
    let targets: Vec<_> =
        names.map(|name| Target::one(&store, &name, per_second(10, 10), OnError::Deny)).collect();
    for target in &targets {
        wait::until("an answer", SOON, || {
            !trial.runtime.block_on(store.charge(&target.charges(1))).unwrap().degraded
        });
    }
    let started = Duration::from_micros(trial.now_us() - from_us);
    let swallowed = silent.counts().up.swallowed_bytes;
    trial.line(&format!(
        "seeds: 1 refuses, 1 is silent (swallowed {swallowed} bytes), 1 answers; all slots after {started:?} (3s)"
    ));
    trial.acted("a question to the silent seed", swallowed);
    assert!(started <= STARTED_WITHIN, "{started:?}");
}

/// Replicas take over from living masters under load, so that a third of all requests get MOVED at once: a
/// store always has one link to each master, none to former masters, and makes few connections.
#[test]
fn cluster_failover_leaves_one_link_to_each_master() {
    let mut trial = Trial::new("cluster_failover_leaves_one_link_to_each_master");
    let (cluster, proxies) = shared_cluster();
    let url = cluster_url(proxies.iter().map(FaultProxy::port));
    let stores: Vec<_> =
        (0..2).map(|_| trial.store(&url, |store| store.deny_cache_max(0))).collect();
    let targets = (0..300).map(|number| {
        Target::one(&stores[0], &format!("link {number}"), per_second(10, 10), OnError::Deny)
    });
    let shape = Shape { tasks: 16, pace: Duration::from_millis(10), ..Shape::default() };
    let load = trial.load(&stores, targets.collect(), shape);
    load.wait_good(500);
    let (accepted, moved, from_us) =
        (accepted(proxies), redirections(cluster)["MOVED"], trial.now_us());
    // Each pair fails over and back once: nodes ignore a replica that takes over twice within seconds.
    for &former in cluster.masters().iter().take(rounds(1, 3)) {
        let heir = cluster.replicas_of(former)[0];
        for replica in [heir, former] {
            let is_replica = || cluster.replicas().contains(&replica);
            wait::until("the old master to be a replica", SOON, is_replica);
            cluster.failover(replica);
            load.wait_good(200);
            wait_for_links(cluster, stores.len());
        }
    }
    let seconds = (trial.now_us() - from_us).div_ceil(1_000_000);
    let (made, moved) =
        (self::accepted(proxies) - accepted, redirections(cluster)["MOVED"] - moved);
    let log = load.finish(&trial);
    trial.line(&format!(
        "MOVED={moved} redirects={}; one link to each master and none to a replica; connections made in {seconds} s: \
         {made} (<= 50 a second); errors {} of {} ({})",
        redirects(&stores),
        log.degraded(),
        log.len(),
        kinds(&stores),
    ));
    trial.acted("MOVED", moved);
    // A refresh makes one connection, at most ten a second for each store; the replicas make some of their
    // own.
    assert!(made <= 50 * seconds, "{made}");
}

fn redirects(stores: &[Arc<RedisStore>]) -> u64 {
    stores.iter().map(|store| store.health().stats.redirects).sum()
}

fn accepted(proxies: &[FaultProxy]) -> u64 {
    proxies.iter().map(|proxy| proxy.counts().connections.accepted).sum()
}

/// Waits until every master has a link of every store, and no replica has one.
fn wait_for_links(cluster: &Cluster, stores: usize) {
    let masters = cluster.masters();
    wait::until("one link of each store to each master", SOON, || {
        let mut nodes = cluster.nodes().iter().enumerate();
        nodes.all(|(index, node)| {
            users_of(node) == if masters.contains(&index) { stores } else { 0 }
        })
    });
}
