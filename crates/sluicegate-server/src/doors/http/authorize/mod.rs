//! `/v1/authorize`: for proxies that ask before they let a request through.
//!
//! A proxy understands little more than a status, so that everything here ends in one of two answers, whatever the
//! headers are like: most proxies make 500 of a 400, and those that go on without a limiter would let it pass.

mod document;
mod request;

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, HttpBody};
use axum::extract::State;
use axum::http::{HeaderName, HeaderValue, Method, Request, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use sluicegate::headers::{PROBLEM_JSON, Policies};
use sluicegate::{SystemClock, Verdict};
use tracing::warn;

pub(crate) use self::document::document;
use self::request::{Asked, Contradiction};
use super::check;
use crate::app::App;
use crate::web::answer::marked;
use crate::web::problem::Problem;
use crate::web::{access, body};

/// The path.
pub(crate) const PATH: &str = "/v1/authorize";

/// The header that says what the status says, for proxies that keep only headers.
const DECISION: HeaderName = HeaderName::from_static("x-sluicegate-decision");
/// Milliseconds that allowed work must wait in line.
const DELAY_MS: HeaderName = HeaderName::from_static("x-sluicegate-delay-ms");

/// The parameter that says which status denies.
const DENY: &str = "deny";

/// How long a body may take to arrive, that nobody reads. A proxy may announce its client's and never send it, and no
/// proxy waits much longer than this.
const BODY_PATIENCE: Duration = Duration::from_millis(20);

/// Its routes.
pub(crate) fn routes() -> Router<Arc<App>> {
    Router::new().route(PATH, any(authorize))
}

/// Checks the request that a proxy was sent.
async fn authorize(
    State(app): State<Arc<App>>,
    request: Request<Body>,
) -> Result<Response, Problem> {
    let (parts, sent) = request.into_parts();
    let peer = access::peer(&parts).unwrap_or(Ipv4Addr::UNSPECIFIED.into());
    let denied = denied_status(&parts.uri);
    let mut response = match Asked::read(&app, &parts, peer) {
        Ok(asked) => {
            let verdict = app.check(&asked.request()).await?;
            marked(respond(&app, &verdict, denied), verdict.is_degraded())
        }
        Err(contradiction) => refuse(&app, &contradiction, peer, denied),
    };
    let is_allowed = response.status() == StatusCode::OK;
    let decision = if is_allowed { "allowed" } else { "denied" };
    response.headers_mut().insert(DECISION, HeaderValue::from_static(decision));
    if parts.method == Method::HEAD {
        leave_out_body(&mut response);
    }
    body::discard(sent, app.limits.batch_bytes_max(), BODY_PATIENCE).await;
    Ok(response)
}

/// The status that denies. Anything may follow in the query, for proxies append their client's: so the first one
/// counts, what makes no sense is somebody else's, and no value makes a denial anything but a denial.
fn denied_status(uri: &Uri) -> StatusCode {
    let query = uri.query().unwrap_or_default();
    let deny = form_urlencoded::parse(query.as_bytes()).find(|(name, _)| name == DENY);
    match deny {
        Some((_, value)) if value == "403" => StatusCode::FORBIDDEN,
        _ => StatusCode::TOO_MANY_REQUESTS,
    }
}

/// What a proxy is told about a verdict.
fn respond(app: &App, verdict: &Verdict, denied: StatusCode) -> Response {
    let policies = Policies::of(verdict);
    let mut response = if verdict.is_allowed() {
        StatusCode::OK.into_response()
    } else {
        let kind = [(header::CONTENT_TYPE, PROBLEM_JSON)];
        (denied, kind, policies.problem_json(denied)).into_response()
    };
    app.headers.write(&policies, SystemClock::wall(), response.headers_mut());
    if let Some(delay_ms) = check::longest_delay_ms(verdict).filter(|_| verdict.is_allowed()) {
        response.headers_mut().insert(DELAY_MS, delay_ms.into());
    }
    response
}

/// `HEAD` is told how long the body would be.
fn leave_out_body(response: &mut Response) {
    let body = std::mem::take(response.body_mut());
    if let Some(length) = body.size_hint().exact() {
        response.headers_mut().insert(header::CONTENT_LENGTH, length.into());
    }
}

/// Denies what says two things at once. It is a denial and no 400, or else contradicting oneself would be the way
/// past a proxy that goes on without a limiter.
fn refuse(
    app: &App,
    Contradiction(name): &Contradiction,
    peer: IpAddr,
    denied: StatusCode,
) -> Response {
    app.metrics.contradicted();
    if app.guard.is_worth_a_line(peer) {
        // Then it passes on what its clients say.
        warn!(%peer, header = %name, "a proxy's headers contradict each other: denied");
    }
    let detail = format!("{name} contradicts what another header says of the same request");
    Problem::new(denied, detail).into_response()
}
