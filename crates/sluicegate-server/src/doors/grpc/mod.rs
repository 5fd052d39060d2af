//! The gRPC front door: Envoy's rate limit protocol, health and reflection.
//!
//! `ShouldRateLimit` goes through these in their order: [`codec`] makes a message of bytes, [`descriptors`] makes
//! requests of its descriptors, [`service`] asks, and [`answer`] and [`statuses`] make a message of what was answered.
//! `POST /json` is the same without gRPC, and begins at [`service`].

mod answer;
mod codec;
mod descriptors;
mod error;
mod health;
pub(crate) mod json;
pub(crate) mod rls;
pub(crate) mod service;
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

pub(crate) use self::error::Refused;
use self::health::Health;
pub(crate) use self::service::{PATH, call};
use crate::app::App;
use crate::observe::ready::Standing;

/// The most bytes of a message to the services about this one: there is room for a name, or two. Memory is taken for as
/// much as a message says that it has.
const QUESTION_BYTES_MAX: usize = 4096;

/// How the paths of the reflection services begin.
const REFLECTION: &str = "/grpc.reflection.";

/// Health and reflection. [`dispatch`](crate::doors::dispatch) answers `ShouldRateLimit` itself; other paths are
/// unimplemented, in the words of gRPC.
pub(crate) fn router(app: Arc<App>) -> Router {
    let health = HealthServer::new(Health::new(&app.ready));
    let routes = Routes::new(health.max_decoding_message_size(QUESTION_BYTES_MAX));
    let until_the_end = map_request_with_state(app, end_with_the_process);
    with_reflection(routes).into_axum_router().layer(until_the_end)
}

/// What is asked of the reflection services ends when this process is about to: whoever keeps a stream of questions
/// open would hold it up.
async fn end_with_the_process(State(app): State<Arc<App>>, request: Request) -> Request {
    if !request.uri().path().starts_with(REFLECTION) {
        return request;
    }
    let mut standing = app.ready.watch();
    let leaving = async move {
        let _ = standing.wait_for(|standing| *standing == Standing::Leaving).await;
    };
    request.map(|asked| Body::from_stream(asked.into_data_stream().take_until(Box::pin(leaving))))
}

/// Whether a request says that it is a call. What does not is refused: a page of another site can make a browser send
/// other kinds of content without asking anybody first.
pub(crate) fn is_call(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).map(HeaderValue::as_bytes);
    kind.is_some_and(|kind| kind.starts_with(b"application/grpc"))
}

/// The services with those that describe them, in both versions that clients ask for.
fn with_reflection(routes: Routes) -> Routes {
    let builder = || {
        Builder::configure()
            .register_encoded_file_descriptor_set(rls::FILE_DESCRIPTOR_SET)
            .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
    };
    match (builder().build_v1(), builder().build_v1alpha()) {
        (Ok(v1), Ok(v1alpha)) => routes
            .add_service(v1.max_decoding_message_size(QUESTION_BYTES_MAX))
            .add_service(v1alpha.max_decoding_message_size(QUESTION_BYTES_MAX)),
        // What they describe is part of this program, and a test has seen that they do.
        (Err(error), _) | (_, Err(error)) => {
            error!(%error, "no reflection");
            routes
        }
    }
}
