//! One connection, from its first byte to its last.

use std::convert::Infallible;
use std::fmt::Display;
use std::future::{Future, poll_fn};
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderValue, Request, Response, StatusCode, Version, header};
use axum::response::IntoResponse;
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::{HttpService, service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep_until};
use tokio_rustls::TlsAcceptor;
use tracing::debug;

pub(super) use super::activity::Timeouts;
use super::activity::{Activity, InFlightBody};
use super::tls::ALPN_HTTP2;
use super::watched::Watched;
use crate::doors::dispatch::Dispatch;
use crate::doors::stream::Stream;
use crate::lifecycle::{PhaseWatch, QUIET};
use crate::observe::metrics::Metrics;

/// The most fields in a header: a browser's and several proxies' together, for some proxies pass all of them on.
const HEADERS_MAX: usize = 128;
/// The most bytes in a header, and in what is read ahead of a body. It is more than proxies take of their clients, or
/// else a client could send what its proxy takes and this does not: nginx takes 33 KiB, `HAProxy` 16, and Caddy, as
/// our example sets it, 36.
const HEADER_BYTES_MAX: usize = 64 * 1024;
/// The most requests that one HTTP/2 connection may have in flight.
const STREAMS_MAX: u32 = 128;
/// What an HTTP/2 client may send ahead: of one body, and of all of a connection's together.
const STREAM_BYTES_AHEAD: u32 = 64 * 1024;
const CONNECTION_BYTES_AHEAD: u32 = 256 * 1024;
/// After how long between requests an HTTP/1 connection gives its buffers back, nearly all that it
/// takes. Getting them again takes a microsecond or two, and whoever asks more often keeps them.
const REST_AFTER: Duration = Duration::from_millis(100);

/// HTTP/1 and HTTP/2, within bounds.
#[derive(Debug)]
pub(super) struct Protocols {
    http1: http1::Builder,
    http2: http2::Builder<TokioExecutor>,
}

/// A connection that is to be served.
pub(super) struct Connection {
    pub(super) stream: TcpStream,
    pub(super) peer: SocketAddr,
    pub(super) dispatch: Dispatch,
    pub(super) protocols: Arc<Protocols>,
    pub(super) timeouts: Timeouts,
    pub(super) phase: PhaseWatch,
    pub(super) metrics: Metrics,
}

impl Protocols {
    pub(super) fn new() -> Self {
        let mut http1 = http1::Builder::new();
        http1
            // Its own would cut connections that wait for their next request as well.
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

impl Connection {
    /// Answers its requests until it ends, stalls, or everything ends.
    // Not `async fn`: a connection would be kept twice, whole and in parts, for as long as it is open.
    pub(super) fn serve(self) -> impl Future<Output = ()> {
        let (stream, mut answering) = self.begin();
        async move {
            let mut io = Watched::new(stream, Arc::clone(&answering.supervisor.activity));
            let is_http2 = answering.supervisor.watch(pin!(io.is_http2()), None, |_| {}).await;
            if let Outcome::Done(is_http2) = is_http2 {
                answering.answer(io, is_http2).await;
            }
        }
    }

    /// The same over TLS. The time for the first header begins before the handshake, and so bounds it, too.
    pub(super) fn serve_tls(self, acceptor: TlsAcceptor) -> impl Future<Output = ()> {
        let (stream, mut answering) = self.begin();
        async move {
            let accepting = pin!(acceptor.accept(stream));
            let accepted = answering.supervisor.watch(accepting, None, |_| {}).await;
            if let Outcome::Done(stream) = accepted {
                let is_http2 = stream.get_ref().1.alpn_protocol() == Some(ALPN_HTTP2);
                let io = Watched::new(stream, Arc::clone(&answering.supervisor.activity));
                answering.answer(io, is_http2).await;
            }
        }
    }

    fn begin(self) -> (TcpStream, Answering) {
        let Self { stream, peer, dispatch, protocols, timeouts, phase, metrics } = self;
        let activity = Arc::new(Activity::new());
        let front = Arc::new(Front {
            peer,
            dispatch,
            activity: Arc::clone(&activity),
            phase: phase.clone(),
            metrics,
        });
        let supervisor = Supervisor { peer, activity, timeouts, phase, is_draining: false };
        (stream, Answering { front, protocols, supervisor })
    }
}

/// What answers the requests of one connection.
struct Answering {
    front: Arc<Front>,
    protocols: Arc<Protocols>,
    supervisor: Supervisor,
}

impl Answering {
    async fn answer<S: Stream>(&mut self, mut io: Watched<S>, is_http2: bool) {
        let Self { front, protocols, supervisor } = self;
        let service = || {
            let front = Arc::clone(front);
            service_fn(move |request| Arc::clone(&front).answer(request))
        };
        if is_http2 {
            let serving = protocols.http2.serve_connection(TokioIo::new(io), service());
            let go_away = |serving: Pin<&mut http2::Connection<_, _, _>>| {
                serving.graceful_shutdown();
            };
            supervisor.watch(Box::pin(serving).as_mut(), None, go_away).await;
            return;
        }
        loop {
            // ## Resting => Serving: something has come.
            let serving = protocols.http1.serve_connection(TokioIo::new(io), service());
            let mut serving = Box::pin(serving);
            // ## Serving => (Resting | the end)
            // At the end nothing is said: HTTP/1 can only close after an answer, which then says so.
            let outcome = supervisor.watch(serving.as_mut(), Some(REST_AFTER), |_| {}).await;
            let Outcome::Quiet = outcome else { return };
            io = without_buffers(*Pin::into_inner(serving));
            let outcome = supervisor.watch(pin!(io.readable()), None, |_| {}).await;
            let Outcome::Done(()) = outcome else { return };
        }
    }
}

/// The stream alone, with what was read of it and not used.
fn without_buffers<S: Stream, A: HttpService<Incoming, ResBody = InFlightBody>>(
    serving: http1::Connection<TokioIo<Watched<S>>, A>,
) -> Watched<S> {
    let parts = serving.into_parts();
    let mut io = parts.io.into_inner();
    io.put_back(&parts.read_buf);
    io
}

/// Sees to it that a connection does not take longer than it may.
struct Supervisor {
    peer: SocketAddr,
    activity: Arc<Activity>,
    timeouts: Timeouts,
    phase: PhaseWatch,
    is_draining: bool,
}

/// What became of something that a connection did.
enum Outcome<T> {
    Done(T),
    /// It has been between requests for a while.
    Quiet,
    /// It failed, took too long, or everything ends.
    Over,
}

impl Supervisor {
    /// Lets a connection do something, as long as it may. `on_draining` tells it about the end. One
    /// that may rest is checked on for headers that begin; others only do one thing at a time.
    async fn watch<T, E: Display, F: Future<Output = Result<T, E>>>(
        &mut self,
        mut doing: Pin<&mut F>,
        rest_after: Option<Duration>,
        on_draining: impl Fn(Pin<&mut F>),
    ) -> Outcome<T> {
        loop {
            let deadline = self.activity.deadline(self.timeouts);
            let look_after = match rest_after {
                _ if self.is_draining => QUIET,
                // A header may begin at any time, and must then be noticed before its time is up.
                Some(rest_after) => rest_after.min(self.timeouts.header / 2),
                None => self.timeouts.idle,
            };
            tokio::select! {
                // The connection first: what it has read by now is not cut off.
                biased;
                done = doing.as_mut() => match done {
                    Ok(done) => return Outcome::Done(done),
                    Err(error) => {
                        debug!(peer = %self.peer, %error, "connection broken");
                        return Outcome::Over;
                    }
                },
                () = self.phase.draining(), if !self.is_draining => {
                    self.is_draining = true;
                    on_draining(doing.as_mut());
                }
                () = sleep_until(deadline.min(Instant::now() + look_after)) => {
                    if self.is_draining && self.activity.is_between_requests() {
                        return Outcome::Over;
                    }
                    if self.activity.deadline(self.timeouts) <= Instant::now() {
                        debug!(peer = %self.peer, "connection cut: nothing came in time");
                        return Outcome::Over;
                    }
                    if rest_after.is_some_and(|after| self.activity.is_quiet_for(after)) {
                        return Outcome::Quiet;
                    }
                }
            }
        }
    }
}

/// What the requests of one connection share.
struct Front {
    peer: SocketAddr,
    dispatch: Dispatch,
    activity: Arc<Activity>,
    phase: PhaseWatch,
    metrics: Metrics,
}

impl Front {
    /// Answers a request. A panic is answered, too, and ends nothing but this.
    async fn answer(
        self: Arc<Self>,
        request: Request<Incoming>,
    ) -> Result<Response<InFlightBody>, Infallible> {
        let is_http2 = request.version() == Version::HTTP_2;
        let in_flight = self.activity.request(is_http2);
        let mut answering = pin!(self.dispatch.answer(request, self.peer));
        let outcome = poll_fn(|cx| {
            match catch_unwind(AssertUnwindSafe(|| answering.as_mut().poll(cx))) {
                Ok(poll) => poll.map(Ok),
                // The hook has logged it. The future is not touched again.
                Err(_) => Poll::Ready(Err(())),
            }
        });
        let mut response = match outcome.await {
            Ok(response) => response,
            Err(()) => {
                self.metrics.panicked();
                panicked()
            }
        };
        if !is_http2 && self.phase.is_leaving() {
            response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        Ok(response.map(|body| InFlightBody::new(body, in_flight)))
    }
}

fn panicked() -> Response<Body> {
    let body = concat!(
        r#"{"type":"about:blank","title":"Internal Server Error","status":500,"#,
        r#""detail":"this is a mistake of the service, and it is in its log"}"#
    );
    let kind = [(header::CONTENT_TYPE, "application/problem+json")];
    (StatusCode::INTERNAL_SERVER_ERROR, kind, body).into_response()
}
