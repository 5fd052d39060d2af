//! `/v1/events`: live figures once per second, as server-sent events.

mod view;

use std::collections::VecDeque;
use std::convert::Infallible;
use std::mem::take;
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::request::Parts;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::Response;
use axum::routing::get;
use futures_util::stream::unfold;
use sluicegate::client_ip::canonical;
use tokio::sync::watch;
use utoipa::OpenApi;

use self::view::{LiveHistory, LiveTick};
use crate::app::App;
use crate::auth::guard::{Guard, LOCAL, Pass};
use crate::data::Role;
use crate::observe::live::{
    TICK, Tick, TooManyWatchers, WATCHERS_MAX, WATCHERS_PER_CLIENT_MAX, Watcher,
};
use crate::observe::ready::Standing;
use crate::web::access::{Reader, peer, source};
use crate::web::openapi::parts::Wrong;
use crate::web::problem::Problem;
use crate::web::query::Query;

const EVENT_STREAM: HeaderValue = HeaderValue::from_static("text/event-stream");

/// Header that turns off response buffering in proxies.
const BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// Reconnection delay for clients, in milliseconds.
const RETRY: &str = "retry: 1000\n";

#[derive(OpenApi)]
#[openapi(paths(watch), components(schemas(LiveTick, LiveHistory)))]
struct Document;

/// Routes of `/v1/events`.
pub(crate) fn routes() -> Router<Arc<App>> {
    Router::new().route("/v1/events", get(watch))
}

/// OpenAPI document of `/v1/events`.
pub(crate) fn document() -> utoipa::openapi::OpenApi {
    Document::openapi()
}

/// Streams live figures of this process as server-sent events.
///
/// The first event is `history`, whose data is a `LiveHistory`; then follows a `tick` every second, whose data is a
/// `LiveTick`. A client that reads slowly misses ticks. The stream ends when the process shuts down and when the
/// token is revoked. At most 64 streams are open at once, and 16 of one token, or of one address where no token is
/// needed; more are answered with 503 and 429.
#[utoipa::path(
    get,
    operation_id = "watch_events",
    path = "/v1/events",
    responses(
        (status = 200, description = "Events, until either side closes the stream", body = String,
            content_type = "text/event-stream"),
        Wrong,
        (status = 503, description = "Too many watchers, or the tokens are not loaded yet", body = Problem,
            content_type = "application/problem+json"),
    ),
    security(("token" = []))
)]
async fn watch(
    Reader(name): Reader,
    State(app): State<Arc<App>>,
    query: Query,
    parts: Parts,
) -> Result<Response, Problem> {
    query.only(&[])?;
    let mut watcher = app.live.watch(&client(name, &parts)).await?;
    let events = Events {
        // Moved out: the history is not needed once it is sent.
        pending: history(&take(&mut watcher.history)).into(),
        watcher,
        guard: Arc::clone(&app.guard),
        pass: Pass::of(&parts.headers, source(&parts)),
        standing: app.ready.watch(),
    };
    let events = unfold(events, async |mut events| {
        let next = events.next().await?;
        Some((Ok::<_, Infallible>(next), events))
    });
    let mut response = Response::new(Body::from_stream(events));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, EVENT_STREAM);
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(BUFFERING, HeaderValue::from_static("no"));
    Ok(response)
}

/// Client whose watchers are counted together: a token, or an address where no token is needed. There, the token of a
/// request is not checked, and any could be sent.
fn client(name: String, parts: &Parts) -> String {
    match peer(parts) {
        Some(peer) if name == LOCAL => canonical(peer).to_string(),
        _ => name,
    }
}

impl From<TooManyWatchers> for Problem {
    fn from(too_many: TooManyWatchers) -> Self {
        match too_many {
            TooManyWatchers::OfClient => {
                let detail = format!(
                    "this token or address has {WATCHERS_PER_CLIENT_MAX} watchers, the maximum: close one of them"
                );
                Self::new(StatusCode::TOO_MANY_REQUESTS, detail).retry_after(TICK)
            }
            TooManyWatchers::OfAll => {
                let detail = format!("the limit of {WATCHERS_MAX} watchers is reached: try again");
                Self::new(StatusCode::SERVICE_UNAVAILABLE, detail)
            }
        }
    }
}

/// Event stream of one watcher.
struct Events {
    /// Events to send before the next tick. The bytes are shared by all watchers.
    pending: VecDeque<Bytes>,
    watcher: Watcher,
    guard: Arc<Guard>,
    pass: Pass,
    standing: watch::Receiver<Standing>,
}

impl Events {
    /// Next bytes to send; `None` at the end of the stream. Called once the previous bytes are sent.
    async fn next(&mut self) -> Option<Bytes> {
        if let Some(bytes) = self.pending.pop_front() {
            return Some(bytes);
        }
        let tick = tokio::select! {
            // Clients that reconnect reach another process.
            _ = self.standing.wait_for(|standing| *standing == Standing::Leaving) => return None,
            tick = self.watcher.next() => tick?,
        };
        self.guard.still_authorizes(&self.pass, Role::Read).then(|| tick.text(event))
    }
}

/// Formats a tick as a `tick` event.
fn event(tick: &Tick) -> Bytes {
    let json = LiveTick::new(tick).json();
    format!("id: {}\nevent: tick\ndata: {json}\n\n", tick.number).into()
}

/// Formats earlier ticks as a `history` event, in pieces that share the bytes of each tick.
fn history(ticks: &[Arc<Tick>]) -> Vec<Bytes> {
    let every_ms = TICK.as_millis();
    let mut pieces =
        vec![format!("{RETRY}event: history\ndata: {{\"every_ms\":{every_ms},\"ticks\":[").into()];
    for (position, tick) in ticks.iter().enumerate() {
        if position > 0 {
            pieces.push(Bytes::from_static(b","));
        }
        pieces.push(tick.text(|tick| LiveTick::new(tick).json().into()));
    }
    pieces.push(Bytes::from_static(b"]}\n\n"));
    pieces
}
