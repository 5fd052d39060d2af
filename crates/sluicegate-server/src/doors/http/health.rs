//! `/livez`, `/readyz` and `/metrics`.

use std::sync::Arc;

use axum::extract::{RawQuery, State};
use axum::http::request::Parts;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};

use crate::app::App;
use crate::observe::ready::Check;
use crate::store;

/// `OpenMetrics`, the text format that Prometheus prefers.
const METRICS_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Liveness. Checks nothing else, because a restart would not fix anything else.
#[utoipa::path(
    get,
    path = "/livez",
    responses((status = 200, description = "The process runs", body = String, content_type = "text/plain"))
)]
pub(crate) async fn live() -> &'static str {
    "ok\n"
}

/// Readiness. `?verbose` describes every check; readers with a token, if tokens exist, also see
/// details of the store and the rules.
#[utoipa::path(
    get,
    path = "/readyz",
    params(("verbose" = Option<String>, Query, description = "Describe every check")),
    responses(
        (status = 200, description = "Ready", body = String, content_type = "text/plain"),
        (status = 503, description = "Not ready", body = String, content_type = "text/plain"),
    )
)]
pub(crate) async fn ready(
    State(app): State<Arc<App>>,
    RawQuery(query): RawQuery,
    parts: Parts,
) -> Response {
    let is_ready = app.ready.is_ready();
    let status = if is_ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let is_verbose = query.is_some_and(|query| {
        query.split('&').any(|part| part.split('=').next() == Some("verbose"))
    });
    let text = match (is_verbose, is_ready) {
        (true, _) => {
            let store = app.limiter.store();
            let notes = [store::note(store), app.overflow.note(store)].into_iter().flatten();
            let note = notes.reduce(|notes, note| format!("{notes}\n{note}"));
            app.ready.note(Check::Store, note);
            let is_in_trouble = store::is_in_trouble(store) || app.overflow.is_recent();
            app.ready.trouble(Check::Store, is_in_trouble);
            app.ready.describe(app.is_reader(&parts))
        }
        (false, true) => "ok\n".into(),
        (false, false) => "not ready\n".into(),
    };
    (status, [(header::CONTENT_TYPE, "text/plain; charset=utf-8")], text).into_response()
}

/// Metrics for Prometheus.
#[utoipa::path(
    get,
    path = "/metrics",
    responses((status = 200, description = "Metrics", body = String, content_type = METRICS_TYPE))
)]
pub(crate) async fn metrics(State(app): State<Arc<App>>) -> Response {
    let text = app.metrics.encode();
    ([(header::CONTENT_TYPE, METRICS_TYPE)], text).into_response()
}
