//! T22, T23: a server that runs out of memory.

use std::time::Duration;

use futures_util::future::join_all;
use sluicegate::{OnError, OnEviction, Quota, RedisStartError, TroubleKind, Unfit};
use sluicegate_tests::seed::Seed;
use sluicegate_tests::servers::{Flavour, RedisServer};

use crate::faults::support::load::{Load, Plan, local_bound};
use crate::faults::support::{
    AMPLE, LONG, Node, errors, fired, first_look, health, node, node_with, nodes, quota, report,
    sized, until_healthy, within,
};

const POLICIES: [&str; 8] = [
    "noeviction",
    "volatile-ttl",
    "volatile-lru",
    "volatile-lfu",
    "volatile-random",
    "allkeys-lru",
    "allkeys-lfu",
    "allkeys-random",
];

fn is_safe(policy: &str) -> bool {
    policy == "noeviction"
}

/// The probe of a server warns of every policy that may evict buckets, or refuses it, by name; and of no
/// other.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t22_unsafe_policies_are_named() {
    let seed = Seed::announce("t22_unsafe_policies_are_named");
    let server = RedisServer::builder(Flavour::Redis70).config("maxmemory 20mb").start();
    let warned = node(&server.url(), AMPLE);
    let refused = node_with(&server.url(), |builder| builder.on_eviction(OnEviction::Refuse));
    for policy in POLICIES {
        server.command(&["CONFIG", "SET", "maxmemory-policy", policy]);
        let warnings = first_look(&warned).await.unwrap();
        let refusal = first_look(&refused).await;
        if is_safe(policy) {
            assert!(warnings.is_empty() && refusal.is_ok(), "{policy}: {warnings:?}, {refusal:?}");
        } else {
            assert!(warnings.len() == 1 && warnings[0].contains(policy), "{policy}: {warnings:?}");
            let Err(RedisStartError::Unfit(Unfit::Evicts { policy: named })) = refusal else {
                panic!("{policy}: {refusal:?}")
            };
            assert_eq!(named, policy);
        }
    }
    server.command(&["CONFIG", "SET", "maxmemory", "0"]);
    assert!(first_look(&warned).await.unwrap().is_empty(), "without a limit nothing is evicted");
    report(
        "t22_unsafe_policies_are_named",
        &seed,
        format!("{} policies", POLICIES.len()),
        "7 named, 1 not",
    );
}

/// A flood of random keys, under each policy, with 50 exhausted buckets: without evictions every one of them
/// stays denied, and with `volatile-ttl` too, as long as the flood uses the same rule; a slower rule shows
/// why the policy is warned of. (400,000 keys against 20 MB; quick: 24,000 against 4 MB, and not every
/// policy.)
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t22_a_flood_does_not_free_a_victim() {
    let seed = Seed::announce("t22_a_flood_does_not_free_a_victim");
    let mut results = Vec::new();
    for &policy in sized(&["noeviction", "volatile-ttl", "allkeys-random"][..], &POLICIES[..]) {
        let found = flood(policy, VICTIMS_QUOTA).await;
        let holds = is_safe(policy) || policy == "volatile-ttl";
        assert!(found.freed == 0 || !holds, "{policy}: {found:?}");
        results.push(format!("{policy}: {found:?}"));
    }
    let slower = flood("volatile-ttl", "1/day burst 5").await;
    assert!(slower.freed > 0, "VACUOUS: no flood frees a victim, and the warning has no reason");
    let noeviction = flood("noeviction", "1/day burst 5").await;
    assert_eq!(noeviction.freed, 0, "{noeviction:?}");
    let fault = format!("{} keys against {}", flood_keys(), sized("4 MB", "20 MB"));
    report(
        "t22_a_flood_does_not_free_a_victim",
        &seed,
        fault,
        format!(
            "over-admission 0 of at most 0 without evictions; of {VICTIMS} victims: {}; through a slower rule, volatile-ttl: \
         {slower:?}, noeviction: {noeviction:?}",
            results.join("; "),
        ),
    );
}

/// Result of a flood.
#[derive(Debug)]
#[expect(dead_code, reason = "most fields are only printed")]
struct Found {
    evicted: u64,
    ooms: u64,
    /// Exhausted buckets that were granted again.
    freed: usize,
}

/// A flood through a rule, against a server with this policy.
async fn flood(policy: &str, rule: &str) -> Found {
    let server = RedisServer::builder(Flavour::Redis70)
        .config(format!("maxmemory {}", sized("4mb", "20mb")))
        .config(format!("maxmemory-policy {policy}"))
        .start();
    let node = node_with(&server.url(), |builder| builder.budget(AMPLE).deny_cache_max(0));
    let freed = flooded(&node, &quota(rule)).await;
    let evicted = u64::try_from(server.info_number("stats", "evicted_keys")).unwrap();
    let ooms = errors(&node, TroubleKind::OutOfMemory);
    fired("an eviction or a refusal", ooms + evicted);
    Found { evicted, ooms, freed }
}

const VICTIMS_QUOTA: &str = "1/hour burst 5";
const VICTIMS: usize = 50;

fn flood_keys() -> usize {
    sized(24_000, 400_000)
}

/// Exhausts some buckets, charges this many other keys, and counts the exhausted ones that are granted again.
async fn flooded(node: &Node, rule: &Quota) -> usize {
    const AT_ONCE: usize = 250;
    let slow = quota(VICTIMS_QUOTA);
    let victim = |number: usize| format!("victim {number}");
    for number in 0..VICTIMS {
        let charged = node.take_or(&victim(number), &slow, 5, OnError::Deny).await.unwrap();
        assert!(charged.decisions[0].is_granted() && !charged.degraded);
    }
    for first in (0..flood_keys()).step_by(AT_ONCE) {
        let flood = |number| async move {
            let key = format!("flood {}", first + number);
            node.take_or(&key, rule, 1, OnError::Deny).await.unwrap()
        };
        join_all((0..AT_ONCE).map(flood)).await;
    }
    let mut freed = 0;
    for number in 0..VICTIMS {
        freed += usize::from(is_admitted(node, &victim(number), &slow).await);
    }
    freed
}

async fn is_admitted(node: &Node, key: &str, quota: &Quota) -> bool {
    let looked = node.take_or(key, quota, 1, OnError::Deny).await.unwrap();
    looked.decisions[0].is_granted()
}

/// Without memory nothing can be charged. That is its own kind of error, and the local buckets limit: three
/// nodes admit no more than their shares, never everything; and Redis is used again when it has memory.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t23_out_of_memory_still_limits() {
    let mut seed = Seed::announce("t23_out_of_memory_still_limits");
    let server = RedisServer::start(Flavour::Redis70);
    let nodes = nodes(&server.url(), 3, AMPLE);
    for node in &nodes {
        until_healthy(node, LONG).await;
    }
    let plan =
        Plan { quota: quota("10/s burst 20"), keys: 10, per_second: 200, on_error: OnError::Local };
    let load = Load::start(&nodes, plan, &mut seed);
    tokio::time::sleep(Duration::from_secs(1)).await;
    server.command(&["CONFIG", "SET", "maxmemory", "1"]);
    tokio::time::sleep(sized(Duration::from_millis(1500), Duration::from_secs(8))).await;
    server.command(&["CONFIG", "SET", "maxmemory", "0"]);
    for node in &nodes {
        until_healthy(node, Duration::from_secs(1)).await;
    }
    tokio::time::sleep(Duration::from_millis(500)).await;
    let shots = load.stop().await;
    let ooms: u64 = nodes.iter().map(|node| errors(node, TroubleKind::OutOfMemory)).sum();
    fired("OOM", ooms);
    let others = shots.degraded() as u64 - ooms;
    assert_eq!(others, 0, "{:?}", health(&nodes[0]));
    assert!(shots.granted() < shots.all.len(), "VACUOUS: nothing was denied");
    let bound = local_bound(&plan.quota, 3, shots.outage());
    report(
        "t23_out_of_memory_still_limits",
        &seed,
        format!("{ooms} times OOM"),
        format!(
            "{}; {} checks, {} granted, {} degraded, all counted as oom",
            within(shots.excess(&plan), bound),
            shots.all.len(),
            shots.granted(),
            shots.degraded(),
        ),
    );
}
