//! The administration: rules, overrides, buckets, callers, violations, history, statistics, explain and preview over HTTP.

pub(crate) mod buckets;
pub(crate) mod callers;
pub(crate) mod events;
mod expiry;
pub(crate) mod explain;
pub(crate) mod history;
pub(crate) mod overrides;
mod perform;
pub(crate) mod preview;
pub(crate) mod rules;
pub(crate) mod stats;
pub(crate) mod subject;
pub(crate) mod violations;

use std::sync::Arc;

use axum::Router;
use axum::http::{HeaderValue, header};
use axum::middleware::{from_fn_with_state, map_response};
use axum::response::Response;
use utoipa::openapi::OpenApi;

use crate::app::App;
use crate::web::body;

/// Routes of the administration, with their common layers.
pub(crate) fn routes(app: &Arc<App>) -> Router<Arc<App>> {
    Router::new()
        .merge(rules::routes())
        .merge(explain::routes())
        .merge(preview::routes())
        .merge(overrides::routes())
        .merge(buckets::routes())
        .merge(callers::routes())
        .merge(violations::routes())
        .merge(history::routes())
        .merge(stats::routes())
        .merge(events::routes())
        .layer(from_fn_with_state(Arc::clone(app), body::let_arrive))
        .layer(map_response(forbid_caching))
        .merge(rules::import_routes())
}

/// Forbids caching and content sniffing: answers change from request to request and quote text chosen by clients.
async fn forbid_caching(mut response: Response) -> Response {
    let headers = response.headers_mut();
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}

/// OpenAPI documents of all endpoints of the administration.
pub(crate) fn documents() -> [OpenApi; 10] {
    [
        rules::document(),
        explain::document(),
        preview::document(),
        overrides::document(),
        buckets::document(),
        callers::document(),
        violations::document(),
        history::document(),
        stats::document(),
        events::document(),
    ]
}
