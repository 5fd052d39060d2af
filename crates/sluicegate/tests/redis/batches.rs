//! Queued charges are sent as one call; a single check is sent at once; a dropped charge leaves no trace.

use std::sync::Arc;
use std::time::Duration;

use sluicegate::{Limiter, Quota, RedisStore, RuleSet};
use sluicegate_tests::seed::Seed;
use sluicegate_tests::servers::{Flavour, RedisServer};
use sluicegate_tests::wait;

fn limiter(server: &RedisServer) -> Limiter<RedisStore> {
    let store = RedisStore::builder(&server.url()).unwrap().budget(Duration::from_secs(5));
    Limiter::new(store.deny_cache_max(0).build().unwrap(), RuleSet::default())
}

fn tokens(capacity: u64) -> Quota {
    Quota::per_hour(1).unwrap().with_capacity(capacity).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_at_once_share_calls_and_one_alone_does_not_wait() {
    let server = RedisServer::start(Flavour::Redis70);
    let limiter = limiter(&server);
    let quota = tokens(1_000_000);
    for _ in 0..100 {
        assert!(limiter.take("alone", &quota, 1).await.unwrap().is_granted());
    }
    let alone = limiter.store().health().stats;
    assert_eq!((alone.calls, alone.batches), (100, 100));
    let tasks = (0..256).map(|task| {
        let limiter = limiter.clone();
        tokio::spawn(async move {
            for turn in 0..20 {
                let key = format!("{}", (task * 20 + turn) % 50);
                assert!(limiter.take(&key, &quota, 1).await.unwrap().is_granted());
            }
        })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.unwrap();
    }
    let stats = limiter.store().health().stats;
    let (calls, batches) = (stats.calls - alone.calls, stats.batches - alone.batches);
    println!("{calls} decisions in {batches} calls");
    assert_eq!(calls, 5120);
    assert!(batches * 4 < calls, "{batches} calls for {calls} decisions");
    assert!(batches * 32 >= calls, "{batches} calls for {calls} decisions");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t48_a_check_that_is_dropped_is_charged_once_or_not_at_all() {
    let mut seed = Seed::announce("t48_a_check_that_is_dropped_is_charged_once_or_not_at_all");
    let server = RedisServer::start(Flavour::Redis70);
    let limiter = Arc::new(limiter(&server));
    let quota = tokens(100_000);
    let mut finished = 0;
    for _ in 0..2000 {
        let patience = Duration::from_micros(seed.below(400));
        let check = limiter.take("k", &quota, 1);
        if let Ok(decision) = tokio::time::timeout(patience, check).await {
            assert!(decision.unwrap().is_granted());
            finished += 1;
        }
    }
    let stats = || limiter.store().health().stats;
    wait::until("nothing is under way", Duration::from_secs(5), || {
        stats().in_flight == 0 && stats().queued == 0
    });
    let spent = 100_000 - limiter.peek("k", &quota).await.unwrap().remaining;
    println!("2000 checks, {finished} finished, {spent} charged");
    assert!(finished <= spent && spent <= 2000, "{finished} finished, {spent} charged");
    assert!(finished > 0 && finished < 2000, "vacuous: {finished} finished");
}
