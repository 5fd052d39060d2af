//! Stores that only exist here, as the trait is sealed: one that fails, one that is pending first, and one whose
//! futures are never ready.

use std::convert::Infallible;
use std::future::{pending, ready};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use http::{Request, Response, StatusCode};
use thiserror::Error;
use tokio::task::yield_now;
use tokio::time::timeout;
use tower::{Layer, ServiceExt, service_fn};

use super::{OnFailure, OnStoreError, OutgoingError, OutgoingLayer, RateLimitLayer, Reason};
use crate::limiter::Limiter;
use crate::rules::{Rule, RuleSet};
use crate::store::memory::{MemoryKey, MemoryStore};
use crate::store::{Charge, Charged, Decisions, InProcess, LocalStore, Space, Store, sealed};

#[derive(Debug)]
struct Broken;

#[derive(Debug, Error)]
#[error("broken")]
struct Trouble;

impl sealed::Sealed for Broken {}

impl Store for Broken {
    type Key = ();
    type Error = Trouble;

    fn key(&self, _: Space<'_>, _: &[&[u8]]) {}

    async fn charge(&self, _: &[Charge<'_, ()>]) -> Result<Charged, Trouble> {
        Err(Trouble)
    }

    async fn refund_many(&self, _: &[Charge<'_, ()>]) -> Result<Decisions, Trouble> {
        Err(Trouble)
    }

    async fn reset(&self, (): &()) -> Result<bool, Trouble> {
        Err(Trouble)
    }
}

/// A store that counts its charges, and says in which way they come.
#[derive(Debug)]
struct Counting {
    store: MemoryStore,
    /// In this process, with futures that are never ready; else elsewhere, with futures that are pending first.
    is_in_process: bool,
    charges: AtomicUsize,
}

impl Counting {
    fn new(is_in_process: bool) -> Self {
        Self { store: MemoryStore::new(), is_in_process, charges: AtomicUsize::new(0) }
    }

    fn count(&self, charges: &[Charge<'_, MemoryKey>]) -> Charged {
        self.charges.fetch_add(1, Ordering::Relaxed);
        Charged { decisions: self.store.charge_now(charges), degraded: false }
    }
}

impl sealed::Sealed for Counting {}

impl InProcess<MemoryKey, Infallible> for Counting {
    fn charge_in_process(&self, charges: &[Charge<'_, MemoryKey>]) -> Result<Charged, Infallible> {
        Ok(self.count(charges))
    }
}

impl Store for Counting {
    type Key = MemoryKey;
    type Error = Infallible;

    fn key(&self, space: Space<'_>, parts: &[&[u8]]) -> MemoryKey {
        self.store.key(space, parts)
    }

    fn in_process(&self) -> Option<&dyn InProcess<MemoryKey, Infallible>> {
        self.is_in_process.then_some(self)
    }

    async fn charge(&self, charges: &[Charge<'_, MemoryKey>]) -> Result<Charged, Infallible> {
        // A caller that polled once, dropped the future and charged again would be counted twice.
        let charged = self.count(charges);
        if self.is_in_process {
            pending::<()>().await;
        }
        yield_now().await;
        Ok(charged)
    }

    async fn refund_many(
        &self,
        credits: &[Charge<'_, MemoryKey>],
    ) -> Result<Decisions, Infallible> {
        Ok(self.store.refund_many_now(credits))
    }

    async fn reset(&self, key: &MemoryKey) -> Result<bool, Infallible> {
        Ok(self.store.reset_now(key))
    }
}

fn limiter() -> Limiter<Broken> {
    limiter_on(Broken)
}

fn limiter_on<S: Store>(store: S) -> Limiter<S> {
    let rule = Rule::new(1, "global", "1/h".parse().unwrap()).unwrap();
    Limiter::new(store, RuleSet::new(vec![rule]).unwrap())
}

async fn answer<S: Store>(layer: RateLimitLayer<S>, content_type: &str) -> Response<()> {
    let service = service_fn(|_: Request<()>| ready(Ok::<_, Infallible>(Response::new(()))));
    let request = Request::post("/").header("content-type", content_type).body(()).unwrap();
    layer.layer(service).oneshot(request).await.unwrap().map(drop)
}

/// The statuses of two requests of which the limit grants one, and how often the store was charged for them.
async fn two_of_one(store: Counting, on_failure: OnFailure) -> ([StatusCode; 2], usize) {
    let limiter = limiter_on(store);
    let store = Arc::clone(limiter.store());
    let layer = RateLimitLayer::new(limiter).on_failure(on_failure);
    let mut statuses = [StatusCode::IM_A_TEAPOT; 2];
    for status in &mut statuses {
        let answered = answer(layer.clone(), "text/plain");
        *status = timeout(Duration::from_secs(5), answered).await.unwrap().status();
    }
    (statuses, store.charges.load(Ordering::Relaxed))
}

#[tokio::test]
async fn a_store_in_this_process_is_charged_once_without_a_future() {
    for on_failure in [OnFailure::Keep, OnFailure::Refund] {
        let (statuses, charges) = two_of_one(Counting::new(true), on_failure).await;
        assert_eq!(statuses, [StatusCode::OK, StatusCode::TOO_MANY_REQUESTS]);
        assert_eq!(charges, 2);
    }
}

#[tokio::test]
async fn a_store_elsewhere_that_is_pending_is_charged_once() {
    for on_failure in [OnFailure::Keep, OnFailure::Refund] {
        let (statuses, charges) = two_of_one(Counting::new(false), on_failure).await;
        assert_eq!(statuses, [StatusCode::OK, StatusCode::TOO_MANY_REQUESTS]);
        assert_eq!(charges, 2);
    }
}

#[tokio::test]
async fn a_store_that_fails_is_a_503_that_says_so() {
    let layer = RateLimitLayer::new(limiter()).on_denied(|denied, answer| {
        assert!(matches!(denied.reason(), Reason::StoreError));
        assert!(answer.body().ends_with(br#""detail":"limits cannot be checked at the moment"}"#));
        answer
    });
    let refused = answer(layer.clone(), "text/plain").await;
    assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(refused.headers()["retry-after"], "1");
    let refused = answer(layer.clone().on_failure(OnFailure::Refund), "text/plain").await;
    assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
    // Shadow mode rejects nothing.
    assert_eq!(answer(layer.shadow(), "text/plain").await.status(), StatusCode::OK);
}

#[tokio::test]
async fn or_unavailable_in_grpc() {
    let refused = answer(RateLimitLayer::new(limiter()), "application/grpc").await;
    assert_eq!(
        (refused.status(), &refused.headers()["grpc-status"]),
        (StatusCode::OK, &"14".parse().unwrap())
    );
}

#[tokio::test]
async fn or_lets_requests_pass() {
    let layer = RateLimitLayer::new(limiter()).on_store_error(OnStoreError::Allow);
    let passed = answer(layer, "text/plain").await;
    assert_eq!((passed.status(), passed.headers().len()), (StatusCode::OK, 0));
}

#[tokio::test]
async fn clients_get_the_error_of_the_store() {
    let layer = OutgoingLayer::new(limiter(), Duration::ZERO);
    let client =
        layer.layer(service_fn(|_: Request<()>| ready(Ok::<_, Infallible>(Response::new(())))));
    let error = client.oneshot(Request::get("/").body(()).unwrap()).await.unwrap_err();
    assert!(
        matches!(&error, OutgoingError::Store(trouble) if trouble.to_string() == "broken"),
        "{error}"
    );
}
