//! The HTTP front door: JSON in, the limiter's answer out. It translates and never decides.

pub(crate) mod authorize;
pub(crate) mod check;
pub(crate) mod health;
pub(crate) mod openapi;
pub(crate) mod page;
pub(crate) mod refund;
pub(crate) mod take;

use std::sync::Arc;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::http::{Method, StatusCode, Uri};
use axum::routing::{any, get, post};

use crate::admin;
use crate::app::App;
use crate::config::HttpRoutes;
use crate::doors::grpc::json;
use crate::web::problem::Problem;

/// Routes of an HTTP listener, except the one that `doors::dispatch` answers itself, after its guard.
pub(crate) fn router(app: Arc<App>, routes: HttpRoutes) -> Router {
    let mut router = Router::new()
        .route(check::BATCH_PATH, post(check::check_batch))
        .route(take::PATH, post(take::take))
        .route(refund::PATH, post(refund::refund))
        .route("/openapi.json", get(openapi::document))
        .merge(authorize::routes())
        .merge(json::routes());
    if routes.has_health {
        router = router
            .route("/livez", get(health::live))
            .route("/healthz", get(health::live))
            .route("/readyz", get(health::ready))
            .route("/healthcheck", get(health::ready));
    }
    if routes.has_metrics {
        router = router.route("/metrics", get(health::metrics));
    }
    if routes.has_admin {
        router = router.merge(page::routes()).merge(admin::routes(&app));
    }
    router
        .fallback(any(not_found))
        .method_not_allowed_fallback(method_not_allowed)
        // Handlers bound the bodies they read.
        .layer(DefaultBodyLimit::disable())
        .with_state(app)
}

/// Beginning of the detail of an answer to a path that a listener does not have.
pub(crate) const NO_SUCH_PATH: &str = "no such path: ";

pub(crate) async fn not_found(uri: Uri) -> Problem {
    Problem::new(StatusCode::NOT_FOUND, format!("{NO_SUCH_PATH}{}", uri.path()))
}

pub(crate) async fn method_not_allowed(method: Method, uri: Uri) -> Problem {
    let detail = format!("{method} is not allowed for {}", uri.path());
    Problem::new(StatusCode::METHOD_NOT_ALLOWED, detail)
}
