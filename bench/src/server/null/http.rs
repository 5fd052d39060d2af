//! HTTP: hyper and axum.

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use bytes::Bytes;
use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use sluicegate_server::floor;
use tokio::net::TcpListener;

/// The service's limits on headers.
const HEADERS_MAX: usize = 64;
const HEADER_BYTES_MAX: usize = 16 * 1024;

pub(super) async fn serve(listener: TcpListener, answer: Bytes) {
    let router = Router::new().route("/v1/check", post(check)).with_state(answer);
    let mut http1 = http1::Builder::new();
    http1
        .header_read_timeout(None)
        .max_headers(HEADERS_MAX)
        .max_header_size(HEADER_BYTES_MAX)
        .max_buf_size(2 * HEADER_BYTES_MAX);
    while let Ok(stream) = super::accept(&listener).await {
        let service = TowerToHyperService::new(router.clone());
        tokio::spawn(http1.serve_connection(TokioIo::new(stream), service));
    }
}

async fn check(State(answer): State<Bytes>, body: Bytes) -> Response {
    if !floor::is_check(&body) {
        return StatusCode::BAD_REQUEST.into_response();
    }
    ([(header::CONTENT_TYPE, "application/json")], answer).into_response()
}
