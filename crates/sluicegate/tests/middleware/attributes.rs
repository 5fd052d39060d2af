//! Extraction of attributes, and policies for those that are missing or too long.

use http::{HeaderName, HeaderValue, Request, StatusCode};
use sluicegate::middleware::{OnMissing, OnOversized, Reason, VALUE_BYTES_MAX, extract};

use crate::middleware::support::{App, call, field, get, guarded, layer, rule, statuses};

#[derive(Clone)]
struct Account {
    name: &'static str,
    plan: &'static str,
}

fn from(name: &'static str, plan: &'static str) -> Request<String> {
    let mut request = get("/");
    request.extensions_mut().insert(Account { name, plan });
    request
}

fn with_header(name: &'static str, value: &[u8]) -> Request<String> {
    let mut request = get("/");
    let value = HeaderValue::from_bytes(value).unwrap();
    request.headers_mut().insert(name, value);
    request
}

async fn passes(app: &App, request: Request<String>) -> bool {
    call(app, request).await.status() == StatusCode::OK
}

#[tokio::test]
async fn users_and_plans_come_from_authentication() {
    let (layer, _) = layer(vec![
        rule(1, "user:{user_id}", "1/hour").with_plan("default").unwrap(),
        rule(2, "user:{user_id}", "1/hour burst 2").with_plan("pro").unwrap(),
    ]);
    let layer = layer
        .user_id(extract::extension(|account: &Account| Some(account.name.into())))
        .plan(extract::extension(|account: &Account| Some(account.plan.into())));
    let app = guarded(&layer);
    assert!(passes(&app, from("ann", "free")).await && !passes(&app, from("ann", "free")).await);
    for expected in [true, true, false] {
        assert_eq!(passes(&app, from("bob", "pro")).await, expected);
    }
    // An empty plan or user id counts as missing.
    assert!(passes(&app, from("carol", "")).await && !passes(&app, from("carol", "")).await);
    assert!(passes(&app, from("", "")).await && passes(&app, from("", "")).await);
}

#[tokio::test]
async fn header_fields_can_be_anything() {
    let (layer, _) = layer(vec![rule(1, "tenant:{tenant}", "1/hour")]);
    let tenant = extract::header(HeaderName::from_static("x-tenant"));
    let app = guarded(&layer.attribute("tenant", tenant));
    for value in [&b"acme"[..], "Åcme".as_bytes(), b"\xff", b"a{b}:c"] {
        assert!(passes(&app, with_header("x-tenant", value)).await, "{value:?}");
        assert!(!passes(&app, with_header("x-tenant", value)).await, "{value:?}");
    }
    // No such field, and an empty one: the rule does not apply.
    assert_eq!(statuses(&app, "/", 2).await, [200, 200]);
    assert!(passes(&app, with_header("x-tenant", b"")).await);
}

#[tokio::test]
async fn methods_and_paths_are_known() {
    let login = rule(1, "login", "1/hour").with_condition("endpoint", "/login").unwrap();
    let (layer, _) = layer(vec![login.with_condition("method", "POST").unwrap()]);
    let app = guarded(&layer);
    let post = |uri: &str| Request::post(uri).body(String::new()).unwrap();
    assert_eq!(statuses(&app, "/login", 2).await, [200, 200]);
    assert!(passes(&app, post("/login?next=/a")).await);
    assert!(!passes(&app, post("/login?next=/b")).await, "the query is no part of it");
    assert!(passes(&app, post("/logout")).await);
}

#[tokio::test]
async fn the_last_extractor_counts() {
    let (layer, _) = layer(vec![rule(1, "at:{endpoint}", "1/hour")]);
    let app = guarded(&layer.endpoint(|_| Some("a".into())).endpoint(|_| Some("all".into())));
    assert_eq!(statuses(&app, "/x", 1).await, [200]);
    assert_eq!(statuses(&app, "/y", 1).await, [429]);
}

#[tokio::test]
async fn a_request_without_an_attribute_may_pass_share_or_be_refused() {
    let with = |on_missing| {
        let (layer, _) = layer(vec![rule(1, "user:{user_id}", "1/hour")]);
        guarded(&layer.on_missing("user_id", on_missing))
    };
    assert_eq!(statuses(&with(OnMissing::Skip), "/", 3).await, [200, 200, 200]);
    let share = OnMissing::StandIn("anonymous".into());
    assert_eq!(statuses(&with(share), "/", 3).await, [200, 429, 429]);

    let app = with(OnMissing::Refuse(StatusCode::UNAUTHORIZED));
    let answer = call(&app, get("/")).await;
    assert_eq!(answer.status(), StatusCode::UNAUTHORIZED);
    assert_eq!(field(&answer, "content-type"), Some("application/problem+json"));
    assert_eq!(
        answer.body(),
        r#"{"type":"about:blank","title":"Unauthorized","status":401,"detail":"the request has no user_id"}"#
    );
}

#[tokio::test]
async fn a_refused_request_is_not_charged() {
    let (layer, _) = layer(vec![rule(1, "global", "1/hour burst 2")]);
    let refuse = OnMissing::Refuse(StatusCode::BAD_REQUEST);
    let layer = layer
        .user_id(extract::extension(|account: &Account| Some(account.name.into())))
        .on_missing("user_id", refuse)
        // This one is never missing.
        .on_missing("method", OnMissing::Refuse(StatusCode::BAD_REQUEST));
    let app = guarded(&layer);
    assert_eq!(statuses(&app, "/", 5).await, [400; 5]);
    assert!(passes(&app, from("ann", "")).await && passes(&app, from("bob", "")).await);
    assert!(!passes(&app, from("ann", "")).await);
}

#[tokio::test]
async fn values_that_are_too_long_are_refused_or_shared() {
    let user = || extract::header(HeaderName::from_static("x-user"));
    let long = |end: u8| {
        let mut value = vec![b'x'; VALUE_BYTES_MAX];
        value.push(end);
        with_header("x-user", &value)
    };
    let rules = || vec![rule(1, "user:{user_id}", "1/hour")];
    let app = guarded(&layer(rules()).0.user_id(user()));
    for _ in 0..2 {
        let answer = call(&app, long(b'1')).await;
        assert_eq!(answer.status(), StatusCode::BAD_REQUEST);
        assert!(answer.body().contains("the user_id of the request is too long"), "{answer:?}");
    }
    // Exactly the maximum length.
    assert!(passes(&app, with_header("x-user", &vec![b'x'; VALUE_BYTES_MAX])).await);

    let app = guarded(&layer(rules()).0.user_id(user()).on_oversized(OnOversized::Share));
    assert!(passes(&app, long(b'1')).await);
    assert!(!passes(&app, long(b'2')).await, "longer names create no further buckets");
    assert!(passes(&app, with_header("x-user", b"ann")).await);
}

#[tokio::test]
async fn the_hook_gets_the_reason_and_shadow_mode_refuses_nothing() {
    let refuse = OnMissing::Refuse(StatusCode::FORBIDDEN);
    let (layer, _) = layer(Vec::new());
    let layer = layer.on_missing("user_id", refuse).on_denied(|denied, answer| {
        assert!(
            matches!(denied.reason(), Reason::Missing("user_id")) && denied.verdict().is_none()
        );
        answer
    });
    assert_eq!(statuses(&guarded(&layer), "/", 1).await, [403]);
    assert_eq!(statuses(&guarded(&layer.shadow()), "/", 2).await, [200, 200]);
}
