//! axum's route templates.

use std::convert::Infallible;

use axum::Router;
use axum::body::Body;
use axum::routing::get;
use http::Request;
use sluicegate::middleware::{OnMissing, extract};
use tower::ServiceExt;

use crate::middleware::support::{layer, rule, text};

async fn status(app: &Router, path: &str) -> u16 {
    let request = Request::get(path).body(Body::empty()).unwrap();
    let answer: Result<_, Infallible> = app.clone().oneshot(request).await;
    text(answer.unwrap()).await.status().as_u16()
}

#[tokio::test]
async fn two_users_are_one_endpoint() {
    let (layer, _) = layer(vec![rule(1, "at:{endpoint}", "1/hour burst 2")]);
    let app = Router::new()
        .route("/users/{id}", get(|| async { "user" }))
        .route("/teams/{id}", get(|| async { "team" }))
        .layer(layer);
    let paths = ["/users/1", "/users/2", "/users/3", "/teams/1", "/teams/1", "/teams/2"];
    let mut statuses = Vec::new();
    for path in paths {
        statuses.push(status(&app, path).await);
    }
    assert_eq!(statuses, [200, 200, 429, 200, 200, 429]);
}

/// In a condition as they are; in a key pattern, where braces are placeholders, by a glob.
#[tokio::test]
async fn rules_name_templates() {
    let condition =
        rule(1, "users", "1/hour").with_condition("endpoint", "/api/users/{id}").unwrap();
    for rule in [condition, rule(1, "endpoint:/api/users/*", "1/hour")] {
        let (layer, _) = layer(vec![rule]);
        let api = Router::new().route("/users/{id}", get(|| async { "user" })).layer(layer);
        let app = Router::new().nest("/api", api);
        assert_eq!(status(&app, "/api/users/1").await, 200);
        assert_eq!(status(&app, "/api/users/2").await, 429);
    }
}

#[tokio::test]
async fn where_no_route_matched_it_is_the_path_or_nothing() {
    let rules = || vec![rule(1, "at:{endpoint}", "1/hour")];
    let app = |layer| Router::<()>::new().route("/a", get(|| async {})).layer(layer);
    let paths = app(layer(rules()).0);
    assert_eq!([status(&paths, "/x").await, status(&paths, "/y").await], [404, 404]);
    assert_eq!(status(&paths, "/x").await, 429);

    // Invented paths create no buckets.
    let unknown = OnMissing::StandIn("unknown".into());
    let layer = layer(rules()).0.endpoint(extract::matched_path).on_missing("endpoint", unknown);
    let templates = app(layer);
    assert_eq!([status(&templates, "/x").await, status(&templates, "/y").await], [404, 429]);
    assert_eq!(status(&templates, "/a").await, 200);
}
