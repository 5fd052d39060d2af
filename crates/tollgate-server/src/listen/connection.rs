//! One connection, from its first byte to its last.

use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::{HeaderValue, Request, Response, StatusCode, Version, header};
use axum::response::IntoResponse;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep_until};
use tower::ServiceExt;
use tracing::debug;

pub(super) use super::activity::Timeouts;
use super::activity::{Activity, InFlightBody, Watched};
use crate::shutdown::{Phase, PhaseWatch};

/// The most fields in a header.
const HEADERS_MAX: usize = 64;
/// The most bytes in a header, and in what is read ahead of a body.
const HEADER_BYTES_MAX: usize = 16 * 1024;
/// The most requests that one HTTP/2 connection may have in flight.
const STREAMS_MAX: u32 = 128;
/// What an HTTP/2 client may send ahead: of one body, and of all of a connection's together.
const STREAM_BYTES_AHEAD: u32 = 64 * 1024;
const CONNECTION_BYTES_AHEAD: u32 = 256 * 1024;
/// At the end, how long a connection must have been between requests to be closed: what is on its way
/// through this machine arrives in less.
const QUIET: Duration = Duration::from_millis(50);

/// A connection that is to be served.
pub(super) struct Connection {
    pub(super) stream: TcpStream,
    pub(super) peer: SocketAddr,
    pub(super) router: Router,
    pub(super) protocols: Arc<Protocols>,
    pub(super) timeouts: Timeouts,
    pub(super) phase: PhaseWatch,
}

/// HTTP/1 and HTTP/2, told apart by their first bytes.
pub(super) type Protocols = Builder<TokioExecutor>;

/// Both protocols, within bounds.
pub(super) fn protocols() -> Protocols {
    let mut protocols = Builder::new(TokioExecutor::new());
    protocols
        .http1()
        // Its own would cut connections that wait for their next request as well.
        .header_read_timeout(None)
        .max_headers(HEADERS_MAX)
        .max_buf_size(HEADER_BYTES_MAX);
    protocols
        .http2()
        .max_concurrent_streams(STREAMS_MAX)
        .max_header_list_size(HEADER_BYTES_MAX as u32)
        .initial_stream_window_size(STREAM_BYTES_AHEAD)
        .initial_connection_window_size(CONNECTION_BYTES_AHEAD);
    protocols
}

impl Connection {
    /// Answers its requests until it ends, stalls, or everything ends.
    pub(super) async fn serve(self) {
        let Self { stream, peer, router, protocols, timeouts, mut phase } = self;
        let activity = Arc::new(Activity::new());
        let io = TokioIo::new(Watched::new(stream, Arc::clone(&activity)));
        let answering = Arc::clone(&activity);
        let service = service_fn(move |request: Request<Incoming>| {
            answer(request, peer, router.clone(), Arc::clone(&answering))
        });
        let mut serving = pin!(protocols.serve_connection(io, service));
        let mut is_draining = false;
        loop {
            // A header may begin at any time, and must then be noticed before its time is up.
            let look_after = if is_draining { QUIET } else { timeouts.header / 2 };
            let look_at = activity.deadline(timeouts).min(Instant::now() + look_after);
            tokio::select! {
                // The connection first: what it has read by now is not cut off.
                biased;
                ended = serving.as_mut() => {
                    if let Err(error) = ended {
                        debug!(%peer, error, "connection broken");
                    }
                    return;
                }
                changed = phase.changed() => {
                    activity.leave();
                    // Without a sender everything has ended.
                    is_draining = changed.is_err() || *phase.borrow() == Phase::Draining;
                    // HTTP/1 has no way to say that no request will be read but to close after an answer.
                    if is_draining && activity.is_http2() {
                        serving.as_mut().graceful_shutdown();
                    }
                }
                () = sleep_until(look_at) => {
                    if is_draining && activity.is_between_requests() {
                        return;
                    }
                    if activity.deadline(timeouts) <= Instant::now() {
                        debug!(%peer, "connection cut: nothing came in time");
                        return;
                    }
                }
            }
        }
    }
}

/// Answers a request. A panic is answered, too, and ends nothing but this.
async fn answer(
    mut request: Request<Incoming>,
    peer: SocketAddr,
    router: Router,
    activity: Arc<Activity>,
) -> Result<Response<InFlightBody>, Infallible> {
    let is_http2 = request.version() == Version::HTTP_2;
    let in_flight = activity.request(is_http2);
    request.extensions_mut().insert(ConnectInfo(peer));
    let mut answering = pin!(router.oneshot(request.map(Body::new)));
    let outcome = poll_fn(|cx| {
        match catch_unwind(AssertUnwindSafe(|| answering.as_mut().poll(cx))) {
            Ok(poll) => poll.map(Ok),
            // The hook has logged it. The future is not touched again.
            Err(_) => Poll::Ready(Err(())),
        }
    });
    let mut response = match outcome.await {
        Ok(Ok(response)) => response,
        Err(()) => panicked(),
    };
    if !is_http2 && activity.is_leaving() {
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    Ok(response.map(|body| InFlightBody::new(body, in_flight)))
}

fn panicked() -> Response<Body> {
    let body = r#"{"type":"about:blank","title":"Internal Server Error","status":500,"detail":"this is a mistake of the service, and it is in its log"}"#;
    let kind = [(header::CONTENT_TYPE, "application/problem+json")];
    (StatusCode::INTERNAL_SERVER_ERROR, kind, body).into_response()
}
