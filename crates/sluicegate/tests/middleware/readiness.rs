//! Backpressure: the layer is ready when the service is, and calls the clone whose readiness was polled.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use sluicegate::middleware::{OutgoingLayer, RateLimitLayer};
use sluicegate::{Algorithm, Rule, Store};
use tower::{Layer, Service};

use crate::middleware::support::{get, layer, ms, on_runtime_time, quota, rule};

/// A service that is ready once it has a permit, which a call uses up, and that panics if it is called
/// without: as `ConcurrencyLimit` and `Buffer` do.
struct Picky {
    permits: Arc<AtomicUsize>,
    is_ready: bool,
    calls: Arc<AtomicUsize>,
}

impl Picky {
    fn new(permits: usize) -> Self {
        let [permits, calls] = [permits, 0].map(|n| Arc::new(AtomicUsize::new(n)));
        Self { permits, is_ready: false, calls }
    }
}

impl Clone for Picky {
    fn clone(&self) -> Self {
        let (permits, calls) = (Arc::clone(&self.permits), Arc::clone(&self.calls));
        // Clones do not inherit readiness.
        Self { permits, is_ready: false, calls }
    }
}

impl Service<Request<String>> for Picky {
    type Response = Response<Full<Bytes>>;
    type Error = Infallible;
    type Future = Ready<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        let take = |permits: usize| permits.checked_sub(1);
        self.is_ready = self.is_ready
            || self.permits.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok();
        if self.is_ready { Poll::Ready(Ok(())) } else { Poll::Pending }
    }

    fn call(&mut self, _: Request<String>) -> Self::Future {
        assert!(self.is_ready, "called without being ready");
        self.is_ready = false;
        self.calls.fetch_add(1, Ordering::Relaxed);
        ready(Ok(Response::new("ok".into())))
    }
}

fn is_ready<S: Service<Request<String>>>(service: &mut S) -> bool {
    service.poll_ready(&mut Context::from_waker(Waker::noop())).is_ready()
}

/// Makes three calls through a service with two permits.
async fn two_of_three<S: Store>(layer: RateLimitLayer<S>) {
    let picky = Picky::new(2);
    let (permits, calls) = (Arc::clone(&picky.permits), Arc::clone(&picky.calls));
    let mut service = layer.layer(picky);
    for _ in 0..2 {
        assert!(is_ready(&mut service));
        let answer = service.call(get("/")).await.unwrap();
        assert_eq!(answer.status(), StatusCode::OK);
    }
    assert!(!is_ready(&mut service), "nor is the layer, if the service is not");
    permits.store(1, Ordering::Relaxed);
    assert!(is_ready(&mut service));
    assert_eq!(service.call(get("/")).await.unwrap().status(), StatusCode::OK);
    assert_eq!(calls.load(Ordering::Relaxed), 3);
}

#[tokio::test]
async fn the_service_is_called_when_it_is_ready() {
    let rules = || vec![rule(1, "global", "1/hour burst 10")];
    two_of_three(layer(rules()).0).await;
    two_of_three(layer(rules()).0.skip(|_| true)).await;
    two_of_three(layer(rules()).0.correct(|_| Some(2))).await;
}

#[tokio::test(start_paused = true)]
async fn a_queued_request_keeps_the_ready_service() {
    let queue = quota("10/s burst 100").with_algorithm(Algorithm::LeakyBucket).unwrap();
    let rules = vec![Rule::new(1, "global", queue).unwrap()];
    two_of_three(RateLimitLayer::new(on_runtime_time(rules))).await;
}

/// A denial does not reach the service, which stays ready.
#[tokio::test]
async fn a_denial_uses_up_no_readiness() {
    let picky = Picky::new(2);
    let calls = Arc::clone(&picky.calls);
    let mut service = layer(vec![rule(1, "global", "1/hour")]).0.layer(picky);
    for expected in [200, 429, 429, 429] {
        assert!(is_ready(&mut service));
        assert_eq!(service.call(get("/")).await.unwrap().status().as_u16(), expected);
    }
    assert_eq!(calls.load(Ordering::Relaxed), 1);
}

#[tokio::test(start_paused = true)]
async fn clients_are_called_when_they_are_ready() {
    let picky = Picky::new(2);
    let calls = Arc::clone(&picky.calls);
    let mut client =
        OutgoingLayer::new(on_runtime_time(vec![rule(1, "global", "10/s")]), ms(500)).layer(picky);
    for _ in 0..2 {
        assert!(is_ready(&mut client));
        client.call(get("/")).await.unwrap();
    }
    assert!(!is_ready(&mut client));
    assert_eq!(calls.load(Ordering::Relaxed), 2);
}
