//! Charged before, corrected after.

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use sluicegate::middleware::{OnFailure, RateLimitLayer};
use sluicegate::{Limiter, Request as LimitRequest};
use tower::{Layer, ServiceExt, service_fn};

use crate::middleware::support::{TestStore, call, field, get, guarding, limiter, rule};

fn left(limiter: &Limiter<TestStore>) -> Vec<u64> {
    let verdict = limiter.check_now(&LimitRequest::new().user_id("42").cost(0));
    verdict.tiers().map(|tier| tier.decision.remaining).collect()
}

/// Calls a service once that is charged 10 before and this after.
async fn after(layer: RateLimitLayer<TestStore>, true_cost: &'static str) -> Response<String> {
    let layer = layer
        .user_id(|_| Some("42".into()))
        .cost(|_| 10)
        .correct(|answer| answer.headers.get("x-cost")?.to_str().ok()?.parse().ok());
    let app = guarding(&layer, move || {
        Response::builder().header("x-cost", true_cost).body("ok".into()).unwrap()
    });
    call(&app, get("/")).await
}

fn two_tiers() -> (Limiter<TestStore>, RateLimitLayer<TestStore>) {
    let rules =
        vec![rule(1, "user:{user_id}", "1/hour burst 20"), rule(2, "global", "1/hour burst 100")];
    let (limiter, _) = limiter(rules);
    (limiter.clone(), RateLimitLayer::new(limiter))
}

#[tokio::test]
async fn an_excess_is_refunded() {
    let (limiter, layer) = two_tiers();
    let answer = after(layer, "3").await;
    assert_eq!(left(&limiter), [17, 97]);
    // The response shows it.
    assert_eq!(field(&answer, "x-ratelimit-remaining"), Some("17"));
}

#[tokio::test]
async fn a_shortfall_is_taken_as_far_as_tokens_are_left() {
    let (limiter, layer) = two_tiers();
    let answer = after(layer.clone(), "12").await;
    assert_eq!((left(&limiter), field(&answer, "x-ratelimit-remaining")), (vec![8, 88], Some("8")));
    assert_eq!(after(layer.clone(), "0").await.status(), StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(left(&limiter), [8, 88], "who is denied is not charged, and not given anything");

    let (limiter, layer) = two_tiers();
    let answer = after(layer.clone(), "50").await;
    assert_eq!(answer.status(), StatusCode::OK);
    assert_eq!(left(&limiter), [0, 50], "each as far as it has");
    assert_eq!(
        field(&answer, "ratelimit").unwrap().split(',').next(),
        Some(r#""user";r=0;t=3600"#)
    );
    assert_eq!(field(&answer, "retry-after"), None, "it was served");

    let (limiter, layer) = two_tiers();
    let _ = after(layer, "18446744073709551615").await;
    assert_eq!(left(&limiter), [0, 0]);
}

#[tokio::test]
async fn without_a_true_cost_the_charge_stays() {
    let (limiter, layer) = two_tiers();
    assert_eq!(field(&after(layer, "dear").await, "x-ratelimit-remaining"), Some("10"));
    assert_eq!(left(&limiter), [10, 90]);
}

#[tokio::test]
async fn in_shadow_mode_it_is_corrected_too() {
    let (limiter, layer) = two_tiers();
    let answer = after(layer.shadow(), "3").await;
    assert_eq!(answer.headers().len(), 1, "{answer:?}");
    assert_eq!(left(&limiter), [17, 97]);
}

#[tokio::test]
async fn a_service_that_fails_keeps_the_charge_or_gives_it_back() {
    for (on_failure, expected) in [(OnFailure::Keep, [19, 99]), (OnFailure::Refund, [20, 100])] {
        let (limiter, layer) = two_tiers();
        let layer =
            layer.user_id(|_| Some("42".into())).on_failure(on_failure).correct(|_| Some(7));
        let broken = service_fn(|_: Request<String>| async {
            Err::<Response<Full<Bytes>>, _>("the connection broke")
        });
        let error = layer.layer(broken).oneshot(get("/")).await.unwrap_err();
        assert_eq!(error, "the connection broke");
        assert_eq!(left(&limiter), expected, "{on_failure:?}");
    }
}

/// A response with an error status is corrected like any other.
#[tokio::test]
async fn a_bad_status_is_no_failure() {
    let (limiter, layer) = two_tiers();
    let layer = layer
        .user_id(|_| Some("42".into()))
        .on_failure(OnFailure::Refund)
        .correct(|answer| answer.status.is_server_error().then_some(0));
    let broken = guarding(&layer, || Response::builder().status(500).body("".into()).unwrap());
    assert_eq!(call(&broken, get("/")).await.status().as_u16(), 500);
    assert_eq!(left(&limiter), [20, 100]);
    let kept = two_tiers();
    let layer = kept.1.user_id(|_| Some("42".into())).on_failure(OnFailure::Refund);
    let broken = guarding(&layer, || Response::builder().status(500).body("".into()).unwrap());
    let _ = call(&broken, get("/")).await;
    assert_eq!(left(&kept.0), [19, 99]);
}
