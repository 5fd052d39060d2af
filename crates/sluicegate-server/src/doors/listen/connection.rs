//! A connection of HTTP/1 or HTTP/2.

use std::convert::Infallible;
use std::fmt::Display;
use std::future::{Future, poll_fn};
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use axum::body::{Body, HttpBody};
use axum::http::{HeaderValue, Request, Response, StatusCode, Version, header};
use axum::response::IntoResponse;
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::{HttpService, service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::pki_types::CertificateDer;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_rustls::TlsAcceptor;
use tracing::debug;

pub(super) use super::activity::Timeouts;
use super::activity::{Activity, InFlightBody};
use super::tls::{ALPN_HTTP2, client_certificate};
use super::tracked_stream::TrackedStream;
use super::unsent::Unsent;
use crate::auth::connection::{ConnectionInfo, ListenerTraits};
use crate::doors::answer_bytes::AnswerBytes;
use crate::doors::dispatch::Dispatch;
use crate::doors::progress::Progress;
use crate::doors::socket::Socket;
use crate::doors::stream::Stream;
use crate::lifecycle::{PhaseWatch, QUIET};
use crate::observe::metrics::Metrics;

/// Maximum number of header fields: some proxies pass on all of a browser's and other proxies'
/// fields.
const HEADERS_MAX: usize = 128;
/// Maximum bytes of a header, and of a body read ahead. More than proxies accept, because otherwise
/// a client could send a header that its proxy accepts and this listener rejects: nginx accepts 33
/// KiB, `HAProxy` 16, and Caddy, as our example configures it, 36.
const HEADER_BYTES_MAX: usize = 64 * 1024;
/// Maximum number of concurrent HTTP/2 streams per connection.
const STREAMS_MAX: u32 = 128;
/// HTTP/2 flow-control windows: per stream, and per connection.
const STREAM_BYTES_AHEAD: u32 = 64 * 1024;
const CONNECTION_BYTES_AHEAD: u32 = 256 * 1024;
/// Idle time after which an HTTP/1 connection releases its buffers, nearly all of its memory.
/// Allocating them again takes a microsecond or two; busier connections keep them.
const REST_AFTER: Duration = Duration::from_millis(100);

/// HTTP/1 and HTTP/2 servers with their limits.
#[derive(Debug)]
pub(super) struct Protocols {
    http1: http1::Builder,
    http2: http2::Builder<TokioExecutor>,
}

/// An accepted connection.
pub(super) struct HttpConnection {
    pub(super) stream: Socket,
    pub(super) peer: SocketAddr,
    pub(super) listener: ListenerTraits,
    pub(super) progress: Arc<Progress>,
    pub(super) dispatch: Dispatch,
    pub(super) protocols: Arc<Protocols>,
    pub(super) timeouts: Timeouts,
    pub(super) phase: PhaseWatch,
    pub(super) metrics: Metrics,
    /// Bytes of unsent answers of all connections from which on each gets one large answer at a time.
    pub(super) unsent_bytes_max: usize,
}

impl Protocols {
    pub(super) fn new() -> Self {
        let mut http1 = http1::Builder::new();
        http1
            // Hyper's own timeout would also close connections that wait for their next request.
            .header_read_timeout(None)
            .max_headers(HEADERS_MAX)
            .max_header_size(HEADER_BYTES_MAX)
            .max_buf_size(HEADER_BYTES_MAX);
        let mut http2 = http2::Builder::new(TokioExecutor::new());
        http2
            .max_concurrent_streams(STREAMS_MAX)
            .max_header_list_size(HEADER_BYTES_MAX as u32)
            .initial_stream_window_size(STREAM_BYTES_AHEAD)
            .initial_connection_window_size(CONNECTION_BYTES_AHEAD);
        Self { http1, http2 }
    }
}

impl HttpConnection {
    /// Answers requests until the connection ends, times out, or the process shuts down.
    // Not `async fn`: its future would hold the connection twice, whole and in parts.
    pub(super) fn serve(self) -> impl Future<Output = ()> {
        let (stream, mut server) = self.begin();
        async move {
            let mut io = TrackedStream::new(stream, Arc::clone(&server.supervisor.activity));
            let is_http2 = server.supervisor.watch(pin!(io.is_http2()), None, |_| {}).await;
            if let Supervised::Done(is_http2) = is_http2 {
                server.answer(io, is_http2).await;
            }
        }
    }

    /// Serves over TLS. The timeout of the first header starts before the handshake, and bounds it,
    /// too.
    pub(super) fn serve_tls(self, acceptor: TlsAcceptor) -> impl Future<Output = ()> {
        let (stream, mut server) = self.begin();
        async move {
            let accepting = pin!(acceptor.accept(stream));
            let accepted = server.supervisor.watch(accepting, None, |_| {}).await;
            if let Supervised::Done(stream) = accepted {
                let session = stream.get_ref().1;
                let is_http2 = session.alpn_protocol() == Some(ALPN_HTTP2);
                server.set_certificate(client_certificate(session));
                let io = TrackedStream::new(stream, Arc::clone(&server.supervisor.activity));
                server.answer(io, is_http2).await;
            }
        }
    }

    fn begin(self) -> (Socket, ConnectionServer) {
        let Self { stream, peer, progress, dispatch, protocols, timeouts, phase, metrics, .. } =
            self;
        let connection = Arc::new(ConnectionInfo::new(peer, self.listener));
        let unsent = Unsent::new(metrics.unsent_bytes.clone(), self.unsent_bytes_max);
        let activity = Arc::new(Activity::new(progress, unsent));
        let handler = Arc::new(RequestHandler {
            connection,
            dispatch,
            activity: Arc::clone(&activity),
            phase: phase.clone(),
            metrics,
        });
        let supervisor = Supervisor { peer, activity, timeouts, phase, is_draining: false };
        (stream, ConnectionServer { handler, protocols, supervisor })
    }
}

/// Serves the requests of one connection.
struct ConnectionServer {
    handler: Arc<RequestHandler>,
    protocols: Arc<Protocols>,
    supervisor: Supervisor,
}

impl ConnectionServer {
    /// Sets the client certificate of the connection, before its first request.
    fn set_certificate(&mut self, certificate: Option<&CertificateDer<'_>>) {
        if let (Some(certificate), Some(handler)) = (certificate, Arc::get_mut(&mut self.handler)) {
            let ConnectionInfo { peer, listener, .. } = *handler.connection;
            let connection = ConnectionInfo::new(peer, listener).with_certificate(certificate);
            handler.connection = Arc::new(connection);
        }
    }

    async fn answer<S: Stream>(&mut self, mut io: TrackedStream<S>, is_http2: bool) {
        let Self { handler, protocols, supervisor } = self;
        let service = || {
            let handler = Arc::clone(handler);
            service_fn(move |request| Arc::clone(&handler).answer(request))
        };
        if is_http2 {
            io.follow_frames();
            let serving = protocols.http2.serve_connection(TokioIo::new(io), service());
            let go_away = |serving: Pin<&mut http2::Connection<_, _, _>>| {
                serving.graceful_shutdown();
            };
            let mut serving = Box::pin(serving);
            let supervised = supervisor.watch(serving.as_mut(), None, go_away).await;
            if let Supervised::Late = supervised {
                // A client that has nothing in flight reconnects without an error.
                go_away(serving.as_mut());
                let _ = timeout(QUIET, serving).await;
            }
            return;
        }
        loop {
            // ## Resting => Serving: bytes arrived.
            let serving = protocols.http1.serve_connection(TokioIo::new(io), service());
            let mut serving = Box::pin(serving);
            // ## Serving => (Resting | the end)
            // On shutdown nothing is sent: HTTP/1 can only close after an answer, which then says
            // so.
            let supervised = supervisor.watch(serving.as_mut(), Some(REST_AFTER), |_| {}).await;
            let Supervised::Quiet = supervised else { return };
            io = without_buffers(*Pin::into_inner(serving));
            let supervised = supervisor.watch(pin!(io.readable()), None, |_| {}).await;
            let Supervised::Done(()) = supervised else { return };
        }
    }
}

/// Takes the stream back, with bytes that were read but not used.
fn without_buffers<S: Stream, A: HttpService<Incoming, ResBody = InFlightBody>>(
    serving: http1::Connection<TokioIo<TrackedStream<S>>, A>,
) -> TrackedStream<S> {
    let parts = serving.into_parts();
    let mut io = parts.io.into_inner();
    io.put_back(&parts.read_buf);
    io
}

/// Enforces a connection's timeouts and the shutdown.
struct Supervisor {
    peer: SocketAddr,
    activity: Arc<Activity>,
    timeouts: Timeouts,
    phase: PhaseWatch,
    is_draining: bool,
}

/// Result of a supervised operation.
enum Supervised<T> {
    Done(T),
    /// The connection has been between requests for a while.
    Quiet,
    /// Nothing has happened before its deadline.
    Late,
    /// It failed, or the process shuts down.
    Over,
}

impl Supervisor {
    /// Runs an operation of the connection within its timeouts. `on_draining` is called when the
    /// shutdown begins. With `rest_after`, the connection is checked for headers that have begun;
    /// without it, it does one thing at a time.
    async fn watch<T, E: Display, F: Future<Output = Result<T, E>>>(
        &mut self,
        mut doing: Pin<&mut F>,
        rest_after: Option<Duration>,
        on_draining: impl Fn(Pin<&mut F>),
    ) -> Supervised<T> {
        loop {
            let deadline = self.activity.deadline(self.timeouts);
            let look_after = match rest_after {
                _ if self.is_draining => QUIET,
                // A header may begin at any time, and its timeout must be noticed.
                Some(rest_after) => rest_after.min(self.timeouts.header / 2),
                None => self.timeouts.idle,
            };
            tokio::select! {
                // The connection first: bytes it has already received are not lost.
                biased;
                done = doing.as_mut() => match done {
                    Ok(done) => return Supervised::Done(done),
                    Err(error) => {
                        debug!(peer = %self.peer, %error, "connection broken");
                        return Supervised::Over;
                    }
                },
                () = self.phase.draining(), if !self.is_draining => {
                    self.is_draining = true;
                    on_draining(doing.as_mut());
                }
                () = sleep_until(deadline.min(Instant::now() + look_after)) => {
                    if self.is_draining && self.activity.is_between_requests() {
                        return Supervised::Over;
                    }
                    if self.activity.deadline(self.timeouts) <= Instant::now() {
                        debug!(peer = %self.peer, "connection closed: timeout");
                        return Supervised::Late;
                    }
                    if rest_after.is_some_and(|after| self.activity.is_quiet_for(after)) {
                        return Supervised::Quiet;
                    }
                }
            }
        }
    }
}

/// State shared by the requests of one connection.
struct RequestHandler {
    connection: Arc<ConnectionInfo>,
    dispatch: Dispatch,
    activity: Arc<Activity>,
    phase: PhaseWatch,
    metrics: Metrics,
}

impl RequestHandler {
    /// Answers a request. A panic is answered with 500 and ends only this request.
    async fn answer(
        self: Arc<Self>,
        request: Request<Incoming>,
    ) -> Result<Response<InFlightBody>, Infallible> {
        let is_http2 = request.version() == Version::HTTP_2;
        let in_flight = self.activity.request(is_http2);
        let room = if is_http2 {
            let size = self.dispatch.answer_size(request.uri().path());
            Some(self.activity.unsent().room(size).await)
        } else {
            None
        };
        let mut answer = pin!(self.dispatch.answer(request, &self.connection));
        let caught = poll_fn(|cx| {
            match catch_unwind(AssertUnwindSafe(|| answer.as_mut().poll(cx))) {
                Ok(poll) => poll.map(Ok),
                // The panic hook has logged it. The future is not polled again.
                Err(_) => Poll::Ready(Err(())),
            }
        });
        let mut response = match caught.await {
            Ok(response) => response,
            Err(()) => {
                self.metrics.panicked();
                panicked()
            }
        };
        if !is_http2 && self.phase.is_leaving() {
            response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        let unsent = room.filter(|_| !response.body().is_end_stream()).map(|room| {
            let stated = response.extensions().get().map(|AnswerBytes(bytes)| *bytes);
            let bytes = stated.unwrap_or_else(|| response.body().size_hint().lower() as usize);
            // A body of unknown length holds something, too.
            room.count(bytes.max(1))
        });
        Ok(response.map(|body| InFlightBody::new(body, unsent, in_flight)))
    }
}

fn panicked() -> Response<Body> {
    let body = concat!(
        r#"{"type":"about:blank","title":"Internal Server Error","status":500,"#,
        r#""detail":"internal error; see the log of the service"}"#
    );
    let kind = [(header::CONTENT_TYPE, "application/problem+json")];
    (StatusCode::INTERNAL_SERVER_ERROR, kind, body).into_response()
}
