//! gRPC: tonic over hyper and axum.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::hint::black_box;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::{Request, Response};
use axum::routing::post;
use bytes::Bytes;
use hyper::server::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::service::TowerToHyperService;
use prost::Message;
use sluicegate_server::floor::RateLimitRequest;
use tokio::net::TcpListener;
use tonic::server::{Grpc, UnaryService};
use tonic_prost::ProstCodec;

use crate::messages::EnvoyAnswer;

/// The service's limits on connections.
const HEADER_BYTES_MAX: u32 = 16 * 1024;
const STREAMS_MAX: u32 = 128;
const STREAM_BYTES_AHEAD: u32 = 64 * 1024;
const CONNECTION_BYTES_AHEAD: u32 = 256 * 1024;

const PATH: &str = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit";

pub(super) async fn serve(listener: TcpListener, answer: Bytes) {
    let answer = EnvoyAnswer::of_length(answer.len());
    let router = Router::new().route(PATH, post(should_rate_limit)).with_state(answer);
    let mut http2 = http2::Builder::new(TokioExecutor::new());
    http2
        .max_concurrent_streams(STREAMS_MAX)
        .max_header_list_size(HEADER_BYTES_MAX)
        .initial_stream_window_size(STREAM_BYTES_AHEAD)
        .initial_connection_window_size(CONNECTION_BYTES_AHEAD);
    while let Ok(stream) = super::accept(&listener).await {
        let service = TowerToHyperService::new(router.clone());
        tokio::spawn(http2.serve_connection(TokioIo::new(stream), service));
    }
}

async fn should_rate_limit(
    State(answer): State<EnvoyAnswer>,
    request: Request<Body>,
) -> Result<Response<tonic::body::Body>, Infallible> {
    let codec = ProstCodec::<EnvoyAnswer, RateLimitRequest>::default();
    Ok(Grpc::new(codec).unary(Same(answer), request).await)
}

/// Service that always sends the same answer.
struct Same(EnvoyAnswer);

impl UnaryService<RateLimitRequest> for Same {
    type Response = EnvoyAnswer;
    type Future = Ready<Result<tonic::Response<EnvoyAnswer>, tonic::Status>>;

    fn call(&mut self, request: tonic::Request<RateLimitRequest>) -> Self::Future {
        black_box(request.get_ref());
        ready(Ok(tonic::Response::new(self.0.clone())))
    }
}

impl EnvoyAnswer {
    /// OK in a message of this length, if possible.
    fn of_length(bytes: usize) -> Self {
        let of = |body: usize| Self { overall_code: 1, raw_body: vec![b' '; body].into() };
        let around = of(bytes).encoded_len() - bytes;
        of(bytes.saturating_sub(around))
    }
}
