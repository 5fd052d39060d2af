//! The deny cache in front of a real server.

use std::time::Duration;

use sluicegate::{Limiter, Quota, RedisStore, Request, Rule, RuleSet};
use sluicegate_tests::servers::{Flavour, RedisServer};
use tokio::time::Instant;

fn store(server: &RedisServer) -> RedisStore {
    let store = RedisStore::builder(&server.url()).unwrap();
    store.budget(Duration::from_secs(5)).build().unwrap()
}

fn calls(limiter: &Limiter<RedisStore>) -> u64 {
    limiter.store().health().stats.calls
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_attack_on_one_key_hardly_reaches_redis_and_the_first_after_the_wait_is_let_through() {
    let server = RedisServer::start(Flavour::Redis70);
    let limiter = Limiter::new(store(&server), RuleSet::default());
    let quota: Quota = "1 per 700ms burst 1".parse().unwrap();
    assert!(limiter.take("k", &quota, 1).await.unwrap().is_granted());
    let before = calls(&limiter);
    let (mut denied, mut last) = (0_u64, None);
    let granted_at = loop {
        let asked_at = Instant::now();
        let decision = limiter.take("k", &quota, 1).await.unwrap();
        if decision.is_granted() {
            break asked_at;
        }
        denied += 1;
        last = Some(asked_at + decision.retry_after().unwrap());
    };
    let reached = calls(&limiter) - before;
    let told = last.unwrap();
    let late = granted_at.saturating_duration_since(told);
    println!("{denied} denials, {reached} calls; granted {late:?} after the told instant");
    assert!(denied > 1000, "vacuous: {denied} denials");
    assert!(reached * 100 <= denied, "{reached} calls for {denied} denials");
    // The exact wait is proven on a manual clock; here only its order of magnitude is checked.
    assert!(late < Duration::from_millis(500), "{late:?}");
}

#[tokio::test]
async fn waits_are_counted_down_for_any_cost() {
    let server = RedisServer::start(Flavour::Redis70);
    let limiter = Limiter::new(store(&server), RuleSet::default());
    let quota: Quota = "6/minute burst 10".parse().unwrap();
    assert!(limiter.take("k", &quota, 10).await.unwrap().is_granted());
    assert!(!limiter.take("k", &quota, 10).await.unwrap().is_granted());
    let before = calls(&limiter);
    let mut last = Duration::from_secs(101);
    for cost in [10, 10, 7, 5, 3, 1] {
        let wait = limiter.take("k", &quota, cost).await.unwrap().retry_after().unwrap();
        let most = Duration::from_secs(10 * cost);
        assert!(wait <= most && wait + Duration::from_secs(2) > most, "{cost}: {wait:?}");
        assert!(wait < last, "{cost}: {wait:?}");
        last = wait;
    }
    assert_eq!(calls(&limiter), before);
}

#[tokio::test]
async fn a_refund_or_reset_removes_the_entry_at_once() {
    let server = RedisServer::start(Flavour::Redis70);
    let limiter = Limiter::new(store(&server), RuleSet::default());
    let quota: Quota = "1/hour burst 3".parse().unwrap();
    assert!(limiter.take("k", &quota, 3).await.unwrap().is_granted());
    assert!(!limiter.take("k", &quota, 1).await.unwrap().is_granted());
    limiter.refund("k", &quota, 1).await.unwrap();
    assert!(limiter.take("k", &quota, 1).await.unwrap().is_granted());
    assert!(!limiter.take("k", &quota, 1).await.unwrap().is_granted());
    assert!(limiter.reset("k").await.unwrap());
    assert!(limiter.take("k", &quota, 3).await.unwrap().is_granted());
    assert!(!limiter.take("k", &quota, 1).await.unwrap().is_granted());
    // Another quota is another version of the rule.
    let raised = quota.with_capacity(5).unwrap();
    assert!(limiter.take("k", &raised, 1).await.unwrap().is_granted());
}

#[tokio::test]
async fn another_process_hears_of_a_reset_within_a_second() {
    let server = RedisServer::start(Flavour::Redis70);
    let one = Limiter::new(store(&server), RuleSet::default());
    let other = Limiter::new(store(&server), RuleSet::default());
    let quota: Quota = "1/hour burst 1".parse().unwrap();
    assert!(one.take("k", &quota, 1).await.unwrap().is_granted());
    assert!(!other.take("k", &quota, 1).await.unwrap().is_granted());
    assert!(one.reset("k").await.unwrap());
    let reset_at = Instant::now();
    while !other.take("k", &quota, 1).await.unwrap().is_granted() {
        assert!(reset_at.elapsed() < Duration::from_secs(1));
    }
}

#[tokio::test]
async fn a_known_denial_names_its_tier_and_keeps_the_shared_one_out_of_it() {
    let server = RedisServer::start(Flavour::Redis70);
    let rules = RuleSet::new(vec![
        Rule::new(1, "user:{user_id}", "1/hour burst 2".parse().unwrap()).unwrap(),
        Rule::new(2, "global", "1/hour burst 100".parse().unwrap()).unwrap(),
    ]);
    let limiter = Limiter::new(store(&server), rules.unwrap());
    let request = Request::new().user_id("42");
    for _ in 0..2 {
        assert!(limiter.check(&request).await.unwrap().is_allowed());
    }
    for _ in 0..50 {
        let verdict = limiter.check(&request).await.unwrap();
        assert_eq!(verdict.violated().unwrap().rule.rule_id(), 1);
        let remaining: Vec<_> = verdict.tiers().map(|tier| tier.decision.remaining).collect();
        assert_eq!(remaining, [0, 98]);
    }
    assert!(calls(&limiter) <= 4, "{} calls", calls(&limiter));
}
