//! The HTTP front door: JSON in, the limiter's answer out. It translates and never decides.

mod access;
mod authorize;
mod body;
mod buckets;
mod check;
mod etag;
mod events;
mod explain;
mod guard;
mod health;
mod json;
mod openapi;
mod overrides;
mod page;
mod preview;
mod problem;
mod query;
pub(crate) mod rules;
mod scalar;
mod stats;
mod subject;
mod take;
pub(crate) mod violations;

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::DefaultBodyLimit;
use axum::http::{HeaderName, HeaderValue, Method, StatusCode, Uri, header};
use axum::middleware::{from_fn_with_state, map_response};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, delete, get, post};
use serde::Serialize;
use sluicegate::{Algorithm, Decision, Quota};

pub use self::check::is_check;
pub(crate) use self::check::{PATH as CHECK_PATH, check_now as check};
pub use self::guard::Guard;
use self::problem::Problem;
use crate::app::{App, RequestLimits};

/// How much larger a batch may be than a single request.
const BATCH_BYTES_FACTOR: usize = 16;

/// Room for an answer: nearly all of them fit, and those that do not get more.
const ANSWER_BYTES: usize = 1024;

const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// The header of answers that were made without the store.
const DEGRADED: HeaderName = HeaderName::from_static("x-sluicegate-degraded");

/// The routes, and what stands in front of them.
pub fn router(app: Arc<App>) -> Router {
    Router::new()
        .route(check::PATH, post(check::check))
        .route("/v1/check/batch", post(check::check_batch))
        .route("/v1/take", post(take::take))
        .route("/v1/buckets/{key}", delete(take::forget))
        .route("/livez", get(health::live))
        .route("/healthz", get(health::live))
        .route("/readyz", get(health::ready))
        .route("/metrics", get(health::metrics))
        .route("/openapi.json", get(openapi::document))
        .merge(page::routes())
        .merge(authorize::routes())
        .merge(json::routes())
        .merge(
            administration()
                .layer(from_fn_with_state(Arc::clone(&app), body::let_arrive))
                .layer(map_response(for_one_reader)),
        )
        .merge(rules::import_routes())
        .fallback(any(not_found))
        .method_not_allowed_fallback(method_not_allowed)
        // Bodies are bounded where they are read.
        .layer(DefaultBodyLimit::disable())
        .layer(from_fn_with_state(Arc::clone(&app), guard::own_site_only))
        .with_state(app)
}

/// The routes of those who look after it.
fn administration() -> Router<Arc<App>> {
    Router::new()
        .merge(rules::routes())
        .merge(explain::routes())
        .merge(preview::routes())
        .merge(overrides::routes())
        .merge(buckets::routes())
        .merge(violations::routes())
        .merge(stats::routes())
        .merge(events::routes())
}

/// Marks an answer of the administration: it has texts in it that others have chosen, and is of this moment.
async fn for_one_reader(mut response: Response) -> Response {
    let headers = response.headers_mut();
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}

async fn not_found(uri: Uri) -> Problem {
    Problem::new(StatusCode::NOT_FOUND, format!("there is nothing at {}", uri.path()))
}

async fn method_not_allowed(method: Method, uri: Uri) -> Problem {
    let detail = format!("{} does not take {method}", uri.path());
    Problem::new(StatusCode::METHOD_NOT_ALLOWED, detail)
}

/// The answer as JSON, [`marked`] if it was made without the store.
fn answer(body: &impl Serialize, degraded: bool) -> Response {
    let mut bytes = Vec::with_capacity(ANSWER_BYTES);
    if let Err(error) = serde_json::to_writer(&mut bytes, body) {
        // Numbers and texts can all be written.
        return Problem::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response();
    }
    let mut response = Response::new(Body::from(bytes));
    response.headers_mut().insert(header::CONTENT_TYPE, JSON);
    marked(response, degraded)
}

/// The answer, with a header that says so if it was made without the store.
fn marked(mut response: Response, degraded: bool) -> Response {
    if degraded {
        response.headers_mut().insert(DEGRADED, HeaderValue::from_static("true"));
    }
    response
}

impl RequestLimits {
    fn batch_bytes_max(&self) -> usize {
        self.body_bytes_max.saturating_mul(BATCH_BYTES_FACTOR)
    }

    fn check_length(&self, field: &str, bytes: usize) -> Result<(), Problem> {
        if bytes > self.value_bytes_max {
            let most = format!("has more than {} bytes", self.value_bytes_max);
            return Err(Problem::field(field, most));
        }
        Ok(())
    }
}

/// Milliseconds in line, rounded up, where the algorithm is a queue.
fn delay_ms(quota: &Quota, decision: &Decision) -> Option<u64> {
    let is_queue = quota.algorithm() == Algorithm::LeakyBucket;
    is_queue.then(|| decision.delay_ms())
}
