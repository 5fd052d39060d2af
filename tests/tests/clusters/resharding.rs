//! T31: the hot slot migrates from node to node under load.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use sluicegate::{OnError, Quota, RedisStore, RedisStoreBuilder, Space, Store as _, TroubleKind};
use sluicegate_tests::cluster::Cluster;
use sluicegate_tests::proxy::FaultProxy;
use sluicegate_tests::wait;

use crate::clusters::load::Shape;
use crate::clusters::support::{
    BUDGET_LONG, Target, Trial, cluster_url, errors, kinds, on_clusters, per_second, rounds,
    undos_lost,
};

/// Time for which a slot is held half migrated until a client notices.
const NOTICED_WITHIN: Duration = Duration::from_millis(100);
/// Errors in ten thousand answers.
const ERRORS_PER_10_000_MAX: u64 = 1;

/// A slot with the tiers of one subject migrates there and back under load, key by key, so that requests get
/// every reply of a migrating slot: MOVED, ASK, and TRYAGAIN if only some of their keys have migrated.
/// Callers see no error, and nothing is admitted above the limits.
#[test]
fn t31_a_hot_slot_moves_under_load() {
    let mut trial = Trial::new("t31_a_hot_slot_moves_under_load");
    let mut errors = Vec::new();
    on_clusters(|cluster, proxies| {
        let stores = two_stores(&trial, proxies);
        errors.push(move_hot_slot(&mut trial, cluster, &stores));
    });
    assert_few(&errors);
}

fn move_hot_slot(trial: &mut Trial, cluster: &Cluster, stores: &[Arc<RedisStore>]) -> (u64, u64) {
    // None of them is ever full under this load: all three keys exist.
    let quotas = [per_second(60, 100), per_second(50, 400), per_second(50, 50)];
    let target = subject(&stores[0], &format!("hot {}", trial.seed.seed()), &quotas);
    let slot = target.tiers[0].0.slot();
    assert!(target.tiers.iter().all(|(key, _)| key.slot() == slot), "one subject, one slot");
    let home = cluster.owner_of(slot);
    let before = redirections(cluster);

    let load = trial.load(stores, vec![target.clone()], Shape { cost_max: 3, ..Shape::default() });
    load.wait_good(200);
    let moves = 2 * rounds(3, 10);
    for number in 0..moves {
        let to = if number % 2 == 0 { (home + 1) % 3 } else { home };
        let migration = cluster.begin_migration(slot, to);
        load.wait_good(10);
        // Some of the keys first, and the others when a client has noticed.
        let again = redirections(cluster)["TRYAGAIN"];
        migration.step(1 + trial.seed.below(2) as usize);
        wait::within(NOTICED_WITHIN, || redirections(cluster)["TRYAGAIN"] > again);
        migration.step(3);
        load.wait_good(10);
        migration.finish();
        load.wait_good(10);
    }
    let log = load.finish(trial);
    let redirects: u64 = stores.iter().map(|store| store.health().stats.redirects).sum();
    let counts: BTreeMap<_, _> = redirections(cluster)
        .into_iter()
        .map(|(word, count)| (word, count - before[word]))
        .collect();
    let worst = quotas.iter().map(|quota| log.by_redis().excess(quota));
    let worst = worst.max_by_key(|excess| excess.tokens - excess.slack).unwrap();
    trial.line(&format!(
        "{} moves={moves} redirects={redirects} error replies {counts:?}; errors {} of {} answers (<= 0.01 %), slowest {} \
         us; over-admission {} (<= {})",
        flavour(cluster),
        log.degraded(),
        log.len(),
        log.slowest_us(),
        worst.tokens,
        worst.slack,
    ));
    trial.acted("a redirection", redirects);
    for (word, count) in &counts {
        // Redis 6.2 replies ASK where others reply TRYAGAIN.
        if *word != "TRYAGAIN" || cluster.nodes()[0].flavour().is_7_or_later() {
            trial.acted(word, *count);
        }
    }
    assert!(worst.tokens <= worst.slack, "{worst:?}");
    // An undo uses the clock of the node that charged: it is dropped on a redirection.
    assert!(errors(stores, TroubleKind::Unexpected) <= undos_lost(stores), "{}", kinds(stores));
    (log.degraded(), log.len())
}

/// A slot that is half migrated for a long time, as one with many keys is. Full buckets are not stored, so
/// that requests with several buckets find some of their keys and miss others, on both nodes, for the whole
/// time; and so do requests with one bucket each that are sent in a batch. All are answered all the while.
#[test]
fn t31_a_slot_takes_long_to_move() {
    let mut trial = Trial::new("t31_a_slot_takes_long_to_move");
    let mut errors = Vec::new();
    on_clusters(|cluster, proxies| {
        let stores = two_stores(&trial, proxies);
        errors.push(hold_slot(&mut trial, cluster, &stores));
    });
    assert_few(&errors);
}

fn hold_slot(trial: &mut Trial, cluster: &Cluster, stores: &[Arc<RedisStore>]) -> (u64, u64) {
    let name = format!("long {}", trial.seed.seed());
    // The second is full again as soon as it was charged.
    let quotas = [per_second(60, 100), per_second(100_000, 1_000), per_second(50, 50)];
    let mut targets = vec![subject(&stores[0], &name, &quotas)];
    for (rule, quota) in (11..).zip([quotas, quotas].concat()) {
        let key = stores[0].key(Space::Rule(rule), &[name.as_bytes()]);
        targets.push(Target { tiers: vec![(key, quota)], on_error: OnError::Deny });
    }
    let slot = targets[0].tiers[0].0.slot();
    let (home, before) = (cluster.owner_of(slot), redirections(cluster));
    let load = trial.load(stores, targets.clone(), Shape { tasks: 8, ..Shape::default() });
    load.wait_good(200);
    let migration = cluster.begin_migration(slot, (home + 1) % 3);
    load.wait_good(100 * rounds(1, 10) as u64);
    migration.step(2);
    load.wait_good(100 * rounds(1, 10) as u64);
    migration.finish();
    load.wait_good(100);
    let log = load.finish(trial);
    cluster.migrate_slot(slot, home);
    let after = redirections(cluster);
    let again = after["TRYAGAIN"] - before["TRYAGAIN"];
    let ask = after["ASK"] - before["ASK"];
    let worst = targets.iter().enumerate().flat_map(|(number, target)| {
        let log = log.only(|answer| answer.target == number).by_redis();
        target.tiers.iter().map(move |(_, quota)| log.excess(quota))
    });
    let worst = worst.max_by_key(|excess| excess.tokens - excess.slack).unwrap();
    trial.line(&format!(
        "{} TRYAGAIN={again} ASK={ask}; errors {} of {} answers (<= 0.01 %: {}), slowest {} us; over-admission {} (<= {})",
        flavour(cluster),
        log.degraded(),
        log.len(),
        kinds(stores),
        log.slowest_us(),
        worst.tokens,
        worst.slack,
    ));
    trial.acted("TRYAGAIN", again);
    trial.acted("ASK", ask);
    assert!(worst.tokens <= worst.slack, "{worst:?}");
    (log.degraded(), log.len())
}

/// Errors and answers of several runs: counted together, because one has too few answers to tell.
fn assert_few(runs: &[(u64, u64)]) {
    let (errors, answers) = runs.iter().fold((0, 0), |sum, run| (sum.0 + run.0, sum.1 + run.1));
    assert!(errors * 10_000 <= answers * ERRORS_PER_10_000_MAX, "errors and answers: {runs:?}");
}

/// Stores of two processes without a deny cache.
fn two_stores(trial: &Trial, proxies: &[FaultProxy]) -> Vec<Arc<RedisStore>> {
    let url = cluster_url(proxies.iter().map(FaultProxy::port));
    let special = |store: RedisStoreBuilder| store.deny_cache_max(0).budget(BUDGET_LONG);
    (0..2).map(|_| trial.store(&url, special)).collect()
}

/// The tiers of one subject, one per rule.
fn subject(store: &Arc<RedisStore>, name: &str, quotas: &[Quota]) -> Target {
    let key = |rule| store.key(Space::Rule(rule), &[name.as_bytes()]);
    let tiers = (1..).zip(quotas).map(|(rule, quota)| (key(rule), *quota)).collect();
    Target { tiers, on_error: OnError::Deny }
}

fn flavour(cluster: &Cluster) -> &'static str {
    cluster.nodes()[0].flavour().name()
}

/// Number of error replies of the nodes that a migrating slot causes, by code.
pub(crate) fn redirections(cluster: &Cluster) -> BTreeMap<&'static str, u64> {
    let count = |word: &str| {
        let nodes = cluster.nodes().iter().filter(|node| node.is_running());
        nodes.map(|node| error_count(&node.text(&["INFO", "errorstats"]), word)).sum()
    };
    ["ASK", "MOVED", "TRYAGAIN"].into_iter().map(|word| (word, count(word))).collect()
}

/// A count of `INFO errorstats`: `errorstat_ASK:count=3`.
pub(crate) fn error_count(errorstats: &str, word: &str) -> u64 {
    let start = format!("errorstat_{word}:count=");
    let line = errorstats.lines().find_map(|line| line.strip_prefix(start.as_str()));
    line.map_or(0, |count| count.trim().parse().unwrap())
}
