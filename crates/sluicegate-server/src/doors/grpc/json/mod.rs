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
use axum::{Extension, Json, Router};
use utoipa::OpenApi;

use self::call::Call;
use self::reply::Reply;
use crate::app::App;
use crate::auth::admission::{Asker, CredentialField};
use crate::config::Door;
use crate::data::Role;
use crate::doors::admission::problem;
use crate::doors::grpc::CallError;
use crate::doors::grpc::service::{require_rights, should_rate_limit};
use crate::doors::refunds::RefundSource;
use crate::observe::metrics::refunds::RefundDoor;
use crate::web::access::peer;
use crate::web::body::{self, Object};
use crate::web::openapi::parts::Wrong;
use crate::web::problem::Problem;

/// Path of the endpoint.
pub(crate) const PATH: &str = "/json";

#[derive(OpenApi)]
#[openapi(paths(answer))]
struct Document;

/// OpenAPI document of the route.
pub(crate) fn document() -> utoipa::openapi::OpenApi {
    Document::openapi()
}

/// Its route.
pub(crate) fn routes() -> Router<Arc<App>> {
    Router::new().route(PATH, post(answer))
}

/// Envoy's rate limit protocol without gRPC.
#[utoipa::path(
    post,
    operation_id = "should_rate_limit",
    path = "/json",
    request_body = Call,
    responses(
        (status = 200, description = "Allowed", body = Reply),
        (status = 429, description = "Denied; or too many wrong tokens from this address",
            content((Reply = "application/json"), (Problem = "application/problem+json"))),
        Wrong,
        (status = 503, description = "The store is unavailable, and no policy may answer in its place", body = Problem,
            content_type = "application/problem+json"),
    ),
    security((), ("token" = []))
)]
async fn answer(
    State(app): State<Arc<App>>,
    Extension(mut asker): Extension<Asker>,
    request: Request<Body>,
) -> Result<Response, Problem> {
    let limits = &app.limits;
    let (parts, sent) = request.into_parts();
    let request = Request::from_parts(parts.clone(), sent);
    let bytes = body::read(&app, request, limits.body_bytes_max).await?;
    let Object(call): Object<Call<'_>> = body::parse(&bytes)?;
    let call = call.message()?;
    let is_anonymous_refund = require_rights(&app, &call, &asker).inspect_err(|error| {
        if let (CallError::Refused(refused), Some(peer)) = (error, peer(&parts)) {
            app.note_refused(Door::Http, peer, *refused);
        }
    })?;
    // Without a caller, a refund requires an admin token, as for any bucket.
    if is_anonymous_refund {
        asker = Asker::Administrator(app.require(&parts, Role::Admin)?.into());
    }
    let source = RefundSource { asker: &asker, peer: peer(&parts), door: RefundDoor::Http };
    let message = should_rate_limit(&app, &call, source).await?;
    let reply = Reply::new(&message);
    let status = if reply.is_over_limit() { StatusCode::TOO_MANY_REQUESTS } else { StatusCode::OK };
    Ok((status, Json(reply)).into_response())
}

impl From<CallError> for Problem {
    fn from(error: CallError) -> Self {
        match error {
            CallError::Field { field, reason } => Self::field(field, reason),
            CallError::Refused(refused) => problem(refused, CredentialField::Authorization),
            CallError::Store(trouble) => trouble.into(),
            CallError::Unrecorded(error) => Self::unrecorded(&error),
        }
    }
}
