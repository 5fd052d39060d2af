//! Admission and responses.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use sluicegate::headers::{Draft, Headers, Legacy, Reset};
use sluicegate::middleware::Reason;
use sluicegate::{Mode, Request as LimitRequest};
use tower::{Layer, service_fn};

use crate::middleware::support::{
    call, field, get, guarded, guarding, layer, limiter, rule, statuses,
};

#[tokio::test]
async fn a_limit_admits_exactly_its_quota() {
    let (layer, clock) = layer(vec![rule(1, "global", "1/s burst 3")]);
    let app = guarded(&layer);
    assert_eq!(statuses(&app, "/", 5).await, [200, 200, 200, 429, 429]);
    clock.advance(Duration::from_secs(2));
    assert_eq!(statuses(&app, "/", 3).await, [200, 200, 429]);
}

#[tokio::test]
async fn every_limited_response_has_the_limit_fields() {
    let (layer, _) = layer(vec![rule(1, "global", "1/s burst 2")]);
    let app = guarded(&layer);
    let answer = call(&app, get("/")).await;
    assert_eq!((answer.status(), answer.body().as_str()), (StatusCode::OK, "ok"));
    assert_eq!(field(&answer, "ratelimit-policy"), Some(r#""global";q=2;w=2"#));
    assert_eq!(field(&answer, "ratelimit"), Some(r#""global";r=1;t=1"#));
    assert_eq!(field(&answer, "x-ratelimit-limit"), Some("2"));
    assert_eq!(field(&answer, "x-ratelimit-remaining"), Some("1"));
    assert_eq!(field(&answer, "retry-after"), None);

    let _ = call(&app, get("/")).await;
    let answer = call(&app, get("/")).await;
    assert_eq!(answer.status(), StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(field(&answer, "ratelimit"), Some(r#""global";r=0;t=1"#));
    assert_eq!(field(&answer, "retry-after"), Some("1"));
    assert_eq!(field(&answer, "content-type"), Some("application/problem+json"));
    let body = answer.body();
    assert!(
        body.contains("quota-exceeded") && body.contains(r#""violated-policies":["global"]"#),
        "{body}"
    );
}

/// `tower_governor` 0.8 answers `retry-after: 0` here.
#[tokio::test]
async fn a_wait_below_a_second_is_a_second() {
    let (layer, clock) = layer(vec![rule(1, "global", "1/s")]);
    let app = guarded(&layer);
    let _ = call(&app, get("/")).await;
    clock.advance(Duration::from_millis(100));
    let answer = call(&app, get("/")).await;
    assert_eq!(field(&answer, "retry-after"), Some("1"));
    clock.advance(Duration::from_millis(900));
    assert_eq!(call(&app, get("/")).await.status(), StatusCode::OK);
}

#[tokio::test]
async fn never_has_no_retry_after() {
    let (layer, _) = layer(vec![rule(1, "global", "1/s burst 2")]);
    let answer = call(&guarded(&layer.cost(|_| 3)), get("/")).await;
    assert_eq!(answer.status(), StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(field(&answer, "retry-after"), None);
}

#[tokio::test]
async fn requests_without_a_rule_are_not_changed() {
    let (layer, _) = layer(vec![rule(1, "user:{user_id}", "1/s")]);
    let app = guarded(&layer);
    for _ in 0..3 {
        let answer = call(&app, get("/")).await;
        assert_eq!((answer.status(), answer.headers().len()), (StatusCode::OK, 0));
    }
}

#[tokio::test]
async fn header_fields_are_to_be_chosen() {
    let rules = || vec![rule(1, "global", "1/s burst 5")];
    let epoch = Headers { draft: Draft::Off, legacy: Legacy::XRateLimit(Reset::Epoch) };
    let answer = call(&guarded(&layer(rules()).0.headers(epoch)), get("/")).await;
    assert_eq!(field(&answer, "ratelimit"), None);
    let reset: u64 = field(&answer, "x-ratelimit-reset").unwrap().parse().unwrap();
    assert!(reset > 1_700_000_000, "{reset}");

    let none = Headers { draft: Draft::Off, legacy: Legacy::Off };
    let answer = call(&guarded(&layer(rules()).0.headers(none)), get("/")).await;
    assert!(answer.headers().is_empty());
}

#[tokio::test]
async fn costs_are_a_function_of_the_request() {
    let (layer, _) = layer(vec![rule(1, "global", "1/hour burst 10")]);
    let app = guarded(&layer.cost(|request| match request.uri.path() {
        "/look" => 0,
        "/export" => 6,
        _ => 1,
    }));
    assert_eq!(statuses(&app, "/export", 2).await, [200, 429]);
    assert_eq!(statuses(&app, "/", 5).await, [200, 200, 200, 200, 429]);
    assert_eq!(statuses(&app, "/look", 3).await, [200, 200, 200]);
}

#[tokio::test]
async fn skipped_requests_are_not_limited() {
    let (layer, _) = layer(vec![rule(1, "global", "1/hour")]);
    let app = guarded(&layer.skip(|request| request.method == Method::OPTIONS));
    for _ in 0..3 {
        let preflight = Request::options("/").body(String::new()).unwrap();
        let answer = call(&app, preflight).await;
        assert_eq!((answer.status(), answer.headers().len()), (StatusCode::OK, 0));
    }
    assert_eq!(statuses(&app, "/", 2).await, [200, 429]);
}

/// tower's own limit is per clone, and axum clones for every connection: it limits nothing.
#[tokio::test]
async fn clones_and_services_of_one_layer_share_everything() {
    let (layer, _) = layer(vec![rule(1, "global", "1/hour burst 4")]);
    let (one, two) = (guarded(&layer), guarded(&layer.clone()));
    let three = two.clone();
    assert_eq!(statuses(&one, "/", 2).await, [200, 200]);
    assert_eq!(statuses(&two, "/", 1).await, [200]);
    assert_eq!(statuses(&three, "/", 2).await, [200, 429]);
    assert_eq!(statuses(&one, "/", 1).await, [429]);
}

#[tokio::test]
async fn rules_can_be_replaced_under_a_running_layer() {
    let (limiter, _) = limiter(vec![rule(1, "global", "1/hour")]);
    let app = guarded(&sluicegate::middleware::RateLimitLayer::new(limiter.clone()));
    assert_eq!(statuses(&app, "/", 2).await, [200, 429]);
    limiter.replace_rules(
        sluicegate::RuleSet::new(vec![rule(2, "global", "1/hour burst 2")]).unwrap(),
    );
    assert_eq!(statuses(&app, "/", 3).await, [200, 200, 429]);
}

#[tokio::test]
async fn the_hook_may_replace_the_answer() {
    let (layer, _) = layer(vec![rule(7, "global", "1/hour")]);
    let app = guarded(&layer.on_denied(|denied, answer| {
        assert!(!denied.is_shadow());
        let Reason::Limit(verdict) = denied.reason() else { panic!("{denied:?}") };
        assert_eq!(verdict.violated().unwrap().rule.rule_id(), 7);
        let text = format!("{} is busy", denied.request().uri.path());
        let mut answer = answer.map(|_| Bytes::from(text));
        *answer.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
        answer
    }));
    assert_eq!(call(&app, get("/a")).await.body(), "ok");
    let answer = call(&app, get("/a")).await;
    assert_eq!((answer.status().as_u16(), answer.body().as_str()), (503, "/a is busy"));
    // With the fields that it would have had.
    assert_eq!(field(&answer, "retry-after"), Some("3600"));
}

#[tokio::test]
async fn in_shadow_mode_all_pass_without_a_trace() {
    let (limiter, _) = limiter(vec![rule(1, "global", "1/hour burst 2")]);
    let watched = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&watched);
    let layer = sluicegate::middleware::RateLimitLayer::new(limiter.clone()).shadow();
    let app = guarded(&layer.on_denied(move |denied, answer| {
        assert!(denied.is_shadow() && denied.verdict().is_some());
        assert_eq!(answer.status(), StatusCode::TOO_MANY_REQUESTS);
        counter.fetch_add(1, Ordering::Relaxed);
        answer
    }));
    for _ in 0..5 {
        let answer = call(&app, get("/")).await;
        assert_eq!((answer.status(), answer.headers().len()), (StatusCode::OK, 0));
    }
    assert_eq!(watched.load(Ordering::Relaxed), 3);
    // An admitted request was charged.
    assert!(!limiter.check_now(&LimitRequest::new()).is_allowed());
}

#[tokio::test]
async fn shadow_rules_are_in_no_answer() {
    let (layer, _) = layer(vec![rule(1, "global", "1/hour").with_mode(Mode::Shadow)]);
    for _ in 0..2 {
        let answer = call(&guarded(&layer), get("/")).await;
        assert_eq!((answer.status(), answer.headers().len()), (StatusCode::OK, 0));
    }
}

#[tokio::test]
async fn nested_layers_all_report_their_policies() {
    let (outer, _) = layer(vec![rule(1, "global", "1/s burst 9")]);
    let (inner, _) = layer(vec![rule(2, "endpoint:/", "1/s burst 5")]);
    let service = service_fn(|_: Request<String>| async {
        Ok::<_, std::convert::Infallible>(Response::new(http_body_util::Full::<Bytes>::from("ok")))
    });
    let answer = call(&outer.layer(inner.layer(service)), get("/")).await;
    let policies: Vec<_> = answer.headers().get_all("ratelimit-policy").iter().collect();
    assert_eq!(policies, [r#""endpoint";q=5;w=5"#, r#""global";q=9;w=9"#]);
    // The innermost layer wins where only one value fits.
    assert_eq!(field(&answer, "x-ratelimit-limit"), Some("5"));
    assert_eq!(answer.headers().get_all("x-ratelimit-limit").iter().count(), 1);
}

#[tokio::test]
async fn fields_of_the_service_stay() {
    let (layer, _) = layer(vec![rule(1, "global", "1/s burst 9")]);
    let app = guarding(&layer, || {
        Response::builder()
            .status(503)
            .header("retry-after", "77")
            .header("x-ratelimit-remaining", "upstream")
            .body("no".into())
            .unwrap()
    });
    let answer = call(&app, get("/")).await;
    assert_eq!((answer.status().as_u16(), answer.body().as_str()), (503, "no"));
    assert_eq!(field(&answer, "retry-after"), Some("77"));
    assert_eq!(field(&answer, "x-ratelimit-remaining"), Some("upstream"));
    assert_eq!(field(&answer, "x-ratelimit-limit"), Some("9"));
}
