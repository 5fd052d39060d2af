//! `POST /json`: Envoy's rate limit protocol without gRPC, as in envoyproxy/ratelimit, in
//! protobuf's JSON mapping.

pub(crate) mod call;
mod reply;

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::{Request, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Json, Router};
use utoipa::OpenApi;

use self::call::Call;
use self::reply::Reply;
use crate::app::App;
use crate::data::Role;
use crate::doors::grpc::CallError;
use crate::doors::grpc::service::{has_refund, should_rate_limit};
use crate::web::body::{self, Object};
use crate::web::openapi::parts::Wrong;
use crate::web::problem::Problem;

#[derive(OpenApi)]
#[openapi(paths(answer))]
struct Document;

/// OpenAPI document of the route.
pub(crate) fn document() -> utoipa::openapi::OpenApi {
    Document::openapi()
}

/// Its route.
pub(crate) fn routes() -> Router<Arc<App>> {
    Router::new().route("/json", post(answer))
}

/// Envoy's rate limit protocol without gRPC.
#[utoipa::path(
    post,
    operation_id = "should_rate_limit",
    path = "/json",
    request_body = Call,
    responses(
        (status = 200, description = "Allowed", body = Reply),
        (status = 429, description = "Denied", body = Reply),
        Wrong,
        (status = 503, description = "The store is unavailable, and no policy may answer in its place", body = Problem,
            content_type = "application/problem+json"),
    )
)]
async fn answer(State(app): State<Arc<App>>, request: Request<Body>) -> Result<Response, Problem> {
    let limits = &app.limits;
    let (parts, sent) = request.into_parts();
    let request = Request::from_parts(parts.clone(), sent);
    let bytes = body::read(&app, request, limits.body_bytes_max).await?;
    let Object(call): Object<Call<'_>> = body::parse(&bytes)?;
    let call = call.message()?;
    // A refund requires an admin token, as for any bucket.
    if has_refund(&app, &call)? {
        app.require(&parts, Role::Admin)?;
    }
    let message = should_rate_limit(&app, &call, None).await?;
    let reply = Reply::new(&message);
    let status = if reply.is_over_limit() { StatusCode::TOO_MANY_REQUESTS } else { StatusCode::OK };
    Ok((status, Json(reply)).into_response())
}

impl From<CallError> for Problem {
    fn from(error: CallError) -> Self {
        match error {
            CallError::Field { field, reason } => Self::field(field, reason),
            CallError::Store(trouble) => trouble.into(),
        }
    }
}
