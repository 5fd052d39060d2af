//! A store that has no answer at all, which no store outside this crate can be.

use std::convert::Infallible;
use std::future::ready;

use http::{Request, Response, StatusCode};
use sluicegate_core::{Decision, Quota};
use thiserror::Error;
use tower::{Layer, ServiceExt, service_fn};

use super::{OnFailure, OnStoreError, OutgoingError, OutgoingLayer, RateLimitLayer, Reason};
use crate::limiter::Limiter;
use crate::rules::{Rule, RuleSet};
use crate::store::{Charge, Charged, Space, Store, sealed};

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

    async fn refund(&self, (): &(), _: &Quota, _: u64) -> Result<Decision, Trouble> {
        Err(Trouble)
    }

    async fn reset(&self, (): &()) -> Result<bool, Trouble> {
        Err(Trouble)
    }
}

fn limiter() -> Limiter<Broken> {
    let rule = Rule::new(1, "global", "1/s".parse().unwrap()).unwrap();
    Limiter::new(Broken, RuleSet::new(vec![rule]).unwrap())
}

async fn answer(layer: RateLimitLayer<Broken>, content_type: &str) -> Response<()> {
    let service = service_fn(|_: Request<()>| ready(Ok::<_, Infallible>(Response::new(()))));
    let request = Request::post("/").header("content-type", content_type).body(()).unwrap();
    layer.layer(service).oneshot(request).await.unwrap().map(drop)
}

#[tokio::test]
async fn a_store_without_an_answer_is_a_503_that_says_so() {
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
    // Watching does no harm.
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
async fn clients_are_told() {
    let layer = OutgoingLayer::new(limiter(), std::time::Duration::ZERO);
    let client =
        layer.layer(service_fn(|_: Request<()>| ready(Ok::<_, Infallible>(Response::new(())))));
    let error = client.oneshot(Request::get("/").body(()).unwrap()).await.unwrap_err();
    assert!(
        matches!(&error, OutgoingError::Store(trouble) if trouble.to_string() == "broken"),
        "{error}"
    );
}
