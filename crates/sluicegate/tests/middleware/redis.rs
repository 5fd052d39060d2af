//! The same over a real Redis, with calls over the network.

use std::time::Duration;

use http::{Response, StatusCode};
use sluicegate::middleware::RateLimitLayer;
use sluicegate::{Limiter, OnError, RedisStore, Request as LimitRequest, RuleSet};
use sluicegate_tests::servers::{Flavour, RedisServer};

use crate::middleware::support::{call, field, get, guarded, guarding, rule, statuses};

fn limiter(server: &RedisServer) -> Limiter<RedisStore> {
    let store = RedisStore::builder(&server.url()).unwrap().deny_cache_max(0);
    // Enough for a busy machine.
    let store = store.budget(Duration::from_secs(2)).build().unwrap();
    let rules =
        vec![rule(1, "user:{user_id}", "1/hour burst 20"), rule(2, "global", "1/hour burst 25")];
    Limiter::new(store, RuleSet::new(rules).unwrap())
}

async fn left(limiter: &Limiter<RedisStore>) -> Vec<u64> {
    let verdict = limiter.check(&LimitRequest::new().user_id("42").cost(0)).await.unwrap();
    verdict.tiers().map(|tier| tier.decision.remaining).collect()
}

#[tokio::test]
async fn it_limits_and_corrects() {
    let server = RedisServer::start(Flavour::Redis70);
    let limiter = limiter(&server);
    let layer = RateLimitLayer::new(limiter.clone()).user_id(|_| Some("42".into())).cost(|_| 10);
    let corrected =
        layer.clone().correct(|answer| answer.headers.get("x-cost")?.to_str().ok()?.parse().ok());
    let app = |cost: &'static str| {
        guarding(&corrected, move || {
            Response::builder().header("x-cost", cost).body("ok".into()).unwrap()
        })
    };
    let answer = call(&app("3"), get("/")).await;
    assert_eq!(left(&limiter).await, [17, 22]);
    assert_eq!(field(&answer, "x-ratelimit-remaining"), Some("17"));
    let _ = call(&app("18"), get("/")).await;
    assert_eq!(left(&limiter).await, [0, 4], "each as far as it has");
    let denied = call(&guarded(&layer), get("/")).await;
    assert_eq!(denied.status(), StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(left(&limiter).await, [0, 4]);
}

/// Each rule has its policy for an unavailable store.
#[tokio::test]
async fn without_redis_rules_are_kept_by_their_policies() {
    for (on_error, expected) in [
        (OnError::Local, [200, 200, 429]),
        (OnError::Allow, [200, 200, 200]),
        (OnError::Deny, [429, 429, 429]),
    ] {
        // No server listens there.
        let store = RedisStore::builder("redis://127.0.0.1:1").unwrap();
        let store = store.budget(Duration::from_millis(100)).build().unwrap();
        let rules = vec![rule(1, "global", "1/hour burst 2").with_on_error(on_error)];
        let limiter = Limiter::new(store, RuleSet::new(rules).unwrap());
        let app = guarded(&RateLimitLayer::new(limiter).correct(|_| Some(9)));
        assert_eq!(statuses(&app, "/", 3).await, expected, "{on_error:?}");
    }
}
