//! Queued charges are sent as one call; a single check is sent at once; a dropped charge leaves no trace.

use std::sync::Arc;
use std::time::Duration;

use sluicegate::{Limiter, Quota, RedisStore, Request, Rule, RuleSet};
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

/// A refund of all tiers of a request is one call, and so atomic.
#[tokio::test]
async fn a_refund_of_several_buckets_is_one_call() {
    let server = RedisServer::start(Flavour::Redis70);
    let limiter = limiter(&server);
    let patterns = ["user:{user_id}", "ip:{ip}", "global"];
    let rule = |(id, pattern): (u64, &str)| Rule::new(id, pattern, tokens(10)).unwrap();
    let rules = (1..).zip(patterns).map(rule).collect();
    limiter.replace_rules(RuleSet::new(rules).unwrap());
    let request = Request::new().user_id("42").ip("192.0.2.1").cost(8);
    assert!(limiter.check(&request).await.unwrap().is_allowed());
    let calls = limiter.store().health().stats.calls;
    let verdict = limiter.refund_all(&request, 5).await.unwrap();
    assert_eq!(limiter.store().health().stats.calls, calls + 1);
    let left: Vec<_> = verdict.tiers().map(|tier| tier.decision.remaining).collect();
    assert_eq!(left, [7, 7, 7]);
    assert!(
        limiter
            .refund_all(&request, u64::MAX)
            .await
            .unwrap()
            .tiers()
            .all(|tier| { (tier.decision.remaining, tier.decision.reset_after) == (10, 0) })
    );
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
