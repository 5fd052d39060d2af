//! K3: charges that Redis did not make are not refunded to it.

use std::time::Duration;

use sluicegate::{Limiter, OnError, RedisStore, Request, Rule, RuleSet};
use sluicegate_tests::servers::{Flavour, RedisServer};

#[tokio::test]
async fn k3_a_reservation_that_redis_did_not_answer_for_gives_nothing_back() {
    let server = RedisServer::start(Flavour::Redis70);
    let store = RedisStore::builder(&server.url()).unwrap().deny_cache_max(0);
    let store = store.budget(Duration::from_secs(2)).build().unwrap();
    let rule = Rule::new(1, "user:{user_id}", "1/hour burst 5".parse().unwrap()).unwrap();
    let rules = RuleSet::new(vec![rule.with_on_error(OnError::Allow)]).unwrap();
    let limiter = Limiter::new(store, rules);
    let request = Request::new().user_id("42").cost(5);
    let first = limiter.check(&request).await.unwrap();
    assert!(first.is_allowed() && !first.is_degraded());

    server.stop();
    let reservation = loop {
        let reservation = limiter.reserve(&request).await.unwrap();
        if reservation.verdict().is_degraded() {
            break reservation;
        }
    };
    assert!(reservation.verdict().is_allowed());
    server.cont();
    let look = Request::new().user_id("42").cost(0);
    while limiter.check(&look).await.unwrap().is_degraded() {
        tokio::task::yield_now().await;
    }
    reservation.refund().await.unwrap();
    let verdict = limiter.check(&look).await.unwrap();
    assert_eq!(verdict.tiers().next().unwrap().decision.remaining, 0);

    // A reservation that Redis answered refunds its charge.
    assert!(limiter.store().health().stats.calls > 0);
    let other = Request::new().user_id("43").cost(5);
    limiter.reserve(&other).await.unwrap().refund().await.unwrap();
    assert!(limiter.check(&other).await.unwrap().is_allowed());
}
