//! The gRPC front door: Envoy's rate limit protocol, health and reflection.
//!
//! A call of `ShouldRateLimit` passes these in order: [`codec`] decodes the message,
//! [`descriptors`] turns its descriptors into requests, [`service`] decides, and [`answer`] and
//! [`statuses`] build the reply. `POST /json` is the same without gRPC, and begins at [`service`].

mod answer;
pub(crate) mod codec;
pub(crate) mod descriptors;
mod error;
mod health;
pub(crate) mod json;
pub(crate) mod rls;
pub(crate) mod service;
mod size;
mod statuses;

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, header};
use axum::middleware::map_request_with_state;
use futures_util::StreamExt;
use tonic::service::Routes;
use tonic_health::pb::health_server::HealthServer;
use tonic_reflection::server::Builder;
use tracing::error;

pub(crate) use self::error::CallError;
use self::health::Health;
pub(crate) use self::service::{PATH, call};
use crate::app::App;
use crate::auth::guard::SEC_FETCH_SITE;
use crate::observe::ready::Standing;
use crate::web::access::peer_in;

/// Maximum bytes of a message to the health and reflection services: enough for one or two names.
const META_MESSAGE_BYTES_MAX: usize = 4096;

/// Path prefix of the reflection services.
const REFLECTION: &str = "/grpc.reflection.";

/// Health and reflection. [`dispatch`](crate::doors::dispatch) answers `ShouldRateLimit` itself;
/// other paths have the gRPC status `UNIMPLEMENTED`.
pub(crate) fn router(app: Arc<App>) -> Router {
    let health = HealthServer::new(Health::new(&app.ready));
    let routes = Routes::new(health.max_decoding_message_size(META_MESSAGE_BYTES_MAX));
    let bounded = map_request_with_state(app, bounded);
    with_reflection(routes).into_axum_router().layer(bounded)
}

/// Counts the memory of bodies, bounds the time of their messages, and ends streams of the reflection services when the process shuts
/// down, because an open stream would delay it.
async fn bounded(State(app): State<Arc<App>>, request: Request) -> Request {
    let (peer, within) = (peer_in(request.extensions()), Some(app.limits.body_timeout));
    let request = request.map(|body| Body::new(service::counted(&app, body, peer, within)));
    if !request.uri().path().starts_with(REFLECTION) {
        return request;
    }
    let mut standing = app.ready.watch();
    let leaving = async move {
        let _ = standing.wait_for(|standing| *standing == Standing::Leaving).await;
    };
    request.map(|body| Body::from_stream(body.into_data_stream().take_until(Box::pin(leaving))))
}

/// True if a request is a gRPC call by its content type. Others are rejected: a page of another
/// site can make a browser send other content types without a preflight request.
pub(crate) fn is_call(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).map(HeaderValue::as_bytes);
    kind.is_some_and(|kind| kind.starts_with(b"application/grpc"))
}

/// True if a browser sent the request for a page: only browsers send these fields, and no page calls this listener. The
/// authority does not tell, because Envoy sends the name of its cluster there.
pub(crate) fn is_from_page(headers: &HeaderMap) -> bool {
    headers.contains_key(header::ORIGIN) || headers.contains_key(SEC_FETCH_SITE)
}

/// Adds the reflection services, in both versions that clients use.
fn with_reflection(routes: Routes) -> Routes {
    let builder = || {
        Builder::configure()
            .register_encoded_file_descriptor_set(rls::FILE_DESCRIPTOR_SET)
            .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
    };
    match (builder().build_v1(), builder().build_v1alpha()) {
        (Ok(v1), Ok(v1alpha)) => routes
            .add_service(v1.max_decoding_message_size(META_MESSAGE_BYTES_MAX))
            .add_service(v1alpha.max_decoding_message_size(META_MESSAGE_BYTES_MAX)),
        // Cannot fail: the descriptors are part of this program, and a test checks them.
        (Err(error), _) | (_, Err(error)) => {
            error!(%error, "reflection is not available");
            routes
        }
    }
}
