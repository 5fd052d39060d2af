//! `/v1/events`: what happens now, second by second, as server-sent events.

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
use tokio::sync::watch;
use utoipa::OpenApi;

use self::view::{LiveHistory, LiveTick};
use crate::app::App;
use crate::auth::guard::{Guard, Pass};
use crate::data::Role;
use crate::observe::live::{TICK, Tick, WATCHERS_MAX, Watcher};
use crate::observe::ready::Standing;
use crate::web::access::Reader;
use crate::web::openapi::parts::Wrong;
use crate::web::problem::Problem;
use crate::web::query::Query;

const EVENT_STREAM: HeaderValue = HeaderValue::from_static("text/event-stream");

/// Proxies that gather answers before they pass them on are asked not to.
const BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// How long a client waits before it comes back, in milliseconds.
const RETRY: &str = "retry: 1000\n";

#[derive(OpenApi)]
#[openapi(paths(watch), components(schemas(LiveTick, LiveHistory)))]
struct Document;

/// Its routes.
pub(crate) fn routes() -> Router<Arc<App>> {
    Router::new().route("/v1/events", get(watch))
}

/// Its part of the API's document.
pub(crate) fn document() -> utoipa::openapi::OpenApi {
    Document::openapi()
}

/// Tells what happens in this process, second by second, as server-sent events.
///
/// First comes `history`, whose data is a `LiveHistory`, then every second a `tick`, whose data is a `LiveTick`.
/// Whoever reads slowly misses ticks. It ends when the process does, and when the token is revoked.
#[utoipa::path(
    get,
    operation_id = "watch_events",
    path = "/v1/events",
    responses(
        (status = 200, description = "Events, until either side ends it", body = String,
            content_type = "text/event-stream"),
        Wrong,
        (status = 503, description = "Too many watch already, or whose token it is is not known yet", body = Problem,
            content_type = "application/problem+json"),
    ),
    security(("token" = []))
)]
async fn watch(
    _: Reader,
    State(app): State<Arc<App>>,
    query: Query,
    parts: Parts,
) -> Result<Response, Problem> {
    query.only(&[])?;
    let too_many = || {
        let detail = format!("{WATCHERS_MAX} watch already, and more may not: try again");
        Problem::new(StatusCode::SERVICE_UNAVAILABLE, detail)
    };
    let mut watcher = app.live.watch().await.ok_or_else(too_many)?;
    let events = Events {
        // Taken: what is sent need not be kept for as long as the stream lasts.
        pending: history(&take(&mut watcher.history)).into(),
        watcher,
        guard: Arc::clone(&app.guard),
        pass: Pass::of(&parts.headers),
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

/// The events that one watcher is sent.
struct Events {
    /// What is to be sent first. It is nobody's copy: all are sent the same bytes.
    pending: VecDeque<Bytes>,
    watcher: Watcher,
    guard: Arc<Guard>,
    pass: Pass,
    standing: watch::Receiver<Standing>,
}

impl Events {
    /// What is to be sent next; nothing at the end. It is only asked for when what came before is sent.
    async fn next(&mut self) -> Option<Bytes> {
        if let Some(bytes) = self.pending.pop_front() {
            return Some(bytes);
        }
        let tick = tokio::select! {
            // Those who connect again go elsewhere.
            _ = self.standing.wait_for(|standing| *standing == Standing::Leaving) => return None,
            tick = self.watcher.next() => tick?,
        };
        self.guard.still_lets_in(&self.pass, Role::Read).then(|| tick.text(event))
    }
}

/// The event of a tick.
fn event(tick: &Tick) -> Bytes {
    let json = LiveTick::new(tick).json();
    format!("id: {}\nevent: tick\ndata: {json}\n\n", tick.number).into()
}

/// The event of what there was before, in pieces.
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
