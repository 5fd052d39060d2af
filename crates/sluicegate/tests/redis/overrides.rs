//! Overrides and single buckets of rules, with a real server and the deny cache in front of it: an increase
//! takes effect at once in the process that made it, and a block never reaches the server.

use std::time::Duration;

use sluicegate::{
    AnyStore, Limiter, OnError, Override, Overrides, Quota, RedisStore, Request, Rule, RuleSet,
};
use sluicegate_tests::servers::{Flavour, RedisServer};
use tokio::time::Instant;

fn store(server: &RedisServer) -> RedisStore {
    let store = RedisStore::builder(&server.url()).unwrap();
    store.budget(Duration::from_secs(5)).build().unwrap()
}

fn quota(text: &str) -> Quota {
    text.parse().unwrap()
}

fn rules() -> RuleSet {
    let user = Rule::new(1, "user:{user_id}", quota("1/hour burst 3")).unwrap();
    let global = Rule::new(2, "global", quota("1/hour burst 1000")).unwrap();
    RuleSet::new(vec![user, global]).unwrap()
}

fn limiter(server: &RedisServer) -> Limiter<AnyStore> {
    Limiter::new(AnyStore::from(store(server)), rules())
}

fn user(user_id: &str) -> Request<'_> {
    Request::new().user_id(user_id)
}

fn change(limiter: &Limiter<AnyStore>, of: &[(u64, &str, Override)]) {
    let of = of.iter().map(|(rule_id, subject, one)| (*rule_id, (*subject).to_owned(), *one));
    let overrides = Overrides::new(of).unwrap();
    limiter.replace_rules(limiter.rules().as_ref().clone().with_overrides(overrides));
}

async fn is_allowed(limiter: &Limiter<AnyStore>, request: &Request<'_>) -> bool {
    limiter.check(request).await.unwrap().is_allowed()
}

fn calls(limiter: &Limiter<AnyStore>) -> u64 {
    limiter.store().redis().unwrap().health().stats.calls
}

/// Spends all tokens of a user, so that the denial is cached.
async fn exhaust(limiter: &Limiter<AnyStore>, request: &Request<'_>) {
    while is_allowed(limiter, request).await {}
    let before = calls(limiter);
    for _ in 0..10 {
        assert!(!is_allowed(limiter, request).await);
    }
    assert_eq!(calls(limiter), before, "vacuous: the denial is not cached");
}

#[tokio::test]
async fn buckets_of_rules_are_filled_through_the_deny_cache() {
    let server = RedisServer::start(Flavour::Redis70);
    let limiter = limiter(&server);
    let request = user("42");
    let bucket = limiter.bucket(1, &request).unwrap();
    assert_eq!(bucket.key(), "user:42");

    exhaust(&limiter, &request).await;
    assert_eq!(bucket.peek().await.unwrap().remaining, 0);
    assert_eq!(bucket.grant(1).await.unwrap().remaining, 1);
    assert!(is_allowed(&limiter, &request).await, "after a grant");
    exhaust(&limiter, &request).await;
    assert_eq!(bucket.refund(2).await.unwrap().remaining, 2);
    assert!(is_allowed(&limiter, &request).await, "after a refund");
    exhaust(&limiter, &request).await;
    assert!(bucket.reset().await.unwrap());
    assert_eq!(bucket.peek().await.unwrap().remaining, 3);
    assert!(is_allowed(&limiter, &request).await, "after a reset");
    assert_eq!(bucket.grant(1000).await.unwrap().remaining, 3, "capped at full");
    assert!(!bucket.reset().await.unwrap());
}

#[tokio::test]
async fn overrides_take_effect_through_the_deny_cache() {
    let server = RedisServer::start(Flavour::Redis70);
    let limiter = limiter(&server);
    let request = user("42");
    exhaust(&limiter, &request).await;
    change(&limiter, &[(1, "42", Override::Quota(quota("1/hour burst 5")))]);
    let verdict = limiter.check(&request).await.unwrap();
    let tier = verdict.tiers().next().unwrap();
    assert_eq!((tier.decision.limit, tier.decision.remaining), (5, 1), "U1: three are spent");
    exhaust(&limiter, &request).await;
    // A quota of another form, too.
    change(&limiter, &[(1, "42", Override::Quota(quota("7/day burst 6")))]);
    assert!(is_allowed(&limiter, &request).await);
    exhaust(&limiter, &request).await;
    change(&limiter, &[(1, "42", Override::Unlimited)]);
    let verdict = limiter.check(&request).await.unwrap();
    assert!(verdict.is_allowed());
    assert_eq!(verdict.tiers().map(|tier| tier.rule.rule_id()).collect::<Vec<_>>(), [2]);

    // A reduction takes effect at once, and spent tokens stay spent.
    change(&limiter, &[]);
    assert!(!is_allowed(&limiter, &request).await);
    assert_eq!(limiter.bucket(1, &request).unwrap().peek().await.unwrap().remaining, 0);
}

#[tokio::test]
async fn a_block_never_reaches_the_server_and_holds_without_one() {
    let server = RedisServer::start(Flavour::Redis70);
    // A busy machine answers the first call well within it; the stopped server takes it up once.
    let budget = Duration::from_secs(2);
    let store = RedisStore::builder(&server.url()).unwrap().budget(budget);
    let rules = rules().rules().to_vec().into_iter();
    let rules =
        RuleSet::new(rules.map(|rule| rule.with_on_error(OnError::Allow)).collect()).unwrap();
    let limiter = Limiter::new(AnyStore::from(store.build().unwrap()), rules);
    let first = limiter.check(&user("42")).await.unwrap();
    assert!(first.is_allowed() && !first.is_degraded());
    change(&limiter, &[(1, "out", Override::Blocked)]);
    let before = calls(&limiter);
    let denied = async || {
        for _ in 0..100 {
            let verdict = limiter.check(&user("out")).await.unwrap();
            assert_eq!((verdict.retry_after(), verdict.is_degraded()), (None, false));
            assert_eq!(verdict.tiers().len(), 1);
        }
    };
    denied().await;
    assert_eq!(calls(&limiter), before);
    let global = limiter.bucket(2, &user("out")).unwrap();
    assert_eq!(global.peek().await.unwrap().remaining, 999, "M1: only the other one took a token");

    // An unavailable store changes nothing about that.
    server.stop();
    while !limiter.check(&user("42")).await.unwrap().is_degraded() {}
    let started = Instant::now();
    denied().await;
    assert!(started.elapsed() < budget, "the server was not waited for");
    let look = global.look().await.unwrap();
    assert!(look.degraded, "a peek is marked as degraded");
    assert!(global.grant(1).await.is_err() && global.reset().await.is_err());
    server.cont();
}

#[tokio::test]
async fn another_process_hears_of_a_grant_within_a_second() {
    let server = RedisServer::start(Flavour::Redis70);
    let (one, other) = (limiter(&server), limiter(&server));
    let request = user("42");
    exhaust(&one, &request).await;
    exhaust(&other, &request).await;
    one.bucket(1, &request).unwrap().grant(1).await.unwrap();
    let granted_at = Instant::now();
    while !is_allowed(&other, &request).await {
        assert!(granted_at.elapsed() < Duration::from_secs(1));
    }
}
