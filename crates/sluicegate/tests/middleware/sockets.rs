//! Concurrent requests on real sockets: never more than the limit.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use axum::routing::get;
use futures_util::future::join_all;
use sluicegate::middleware::RateLimitLayer;
use sluicegate::{Limiter, MemoryStore, RuleSet};

use crate::middleware::support::{fetch, field, layer, listen, rule};

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_storm_of_connections_gets_the_limit_and_not_one_more() {
    const LIMIT: usize = 50;
    let served = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&served);
    let (layer, _) =
        layer(vec![rule(1, "ip:{ip}", "1/hour burst 50"), rule(2, "global", "1/hour burst 60")]);
    let handler = move || {
        counter.fetch_add(1, Ordering::Relaxed);
        async { "ok" }
    };
    let app = Router::new().route("/", get(handler)).layer(layer);
    let (listener, address) = listen().await;
    let app = app.into_make_service_with_connect_info::<SocketAddr>();
    let server = tokio::spawn(async move { axum::serve(listener, app).await });

    let calls = (0..4 * LIMIT).map(|_| tokio::spawn(async move { fetch(address, "/", &[]).await }));
    let answers = join_all(calls.collect::<Vec<_>>()).await;
    let passed = answers.iter().filter(|a| a.as_ref().unwrap().status().as_u16() == 200).count();
    let denied = answers.iter().filter(|a| a.as_ref().unwrap().status().as_u16() == 429).count();
    assert_eq!((passed, denied), (LIMIT, 3 * LIMIT));
    assert_eq!(served.load(Ordering::Relaxed), LIMIT);
    let mut left: Vec<u64> = answers
        .iter()
        .map(|answer| {
            field(answer.as_ref().unwrap(), "x-ratelimit-remaining").unwrap().parse().unwrap()
        })
        .collect();
    left.sort_unstable_by(|a, b| b.cmp(a));
    let expected: Vec<u64> = (0..50).rev().chain(std::iter::repeat_n(0, 3 * LIMIT)).collect();
    assert_eq!(left, expected, "every admitted request got another number");
    server.abort();
}

/// A client's header field changes nothing: the client is not a trusted proxy.
#[tokio::test]
async fn a_forged_address_on_a_real_socket_is_no_way_around() {
    let rules = RuleSet::new(vec![rule(1, "ip:{ip}", "1/hour")]).unwrap();
    let limits = RateLimitLayer::new(Limiter::new(MemoryStore::new(), rules));
    let app = Router::new().route("/", get(|| async { "ok" })).layer(limits);
    let (listener, address) = listen().await;
    let app = app.into_make_service_with_connect_info::<SocketAddr>();
    let server = tokio::spawn(async move { axum::serve(listener, app).await });
    assert_eq!(fetch(address, "/", &[]).await.status().as_u16(), 200);
    for forged in ["198.51.100.1", "198.51.100.2", "127.0.0.2, 198.51.100.3"] {
        let answer =
            fetch(address, "/", &[("x-forwarded-for", forged), ("x-real-ip", forged)]).await;
        assert_eq!(answer.status().as_u16(), 429);
    }
    server.abort();
}
