//! `/v1/authorize`: external authorization for proxies.
//!
//! Proxies understand little more than a status, so every request ends in one of two answers,
//! whatever its headers: most proxies turn a 400 into a 500, and those that fail open would let the
//! request pass.

mod document;
pub(crate) mod request;

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, HttpBody};
use axum::extract::State;
use axum::http::{HeaderName, HeaderValue, Method, Request, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use axum::{Extension, Router};
use sluicegate::headers::{PROBLEM_JSON, Policies};
use sluicegate::{SystemClock, Verdict};
use tracing::warn;

use self::document::QuotaExceeded;
pub(crate) use self::document::document;
use self::request::{Contradiction, ProxiedRequest};
use super::check;
use crate::app::App;
use crate::auth::admission::Asker;
use crate::log_limit::LogLimit;
use crate::web::answer::marked;
use crate::web::problem::Problem;
use crate::web::{access, body};

pub(crate) const PATH: &str = "/v1/authorize";

/// Repeats the decision for proxies that keep only headers.
const DECISION: HeaderName = HeaderName::from_static("x-sluicegate-decision");
/// Milliseconds that allowed work must wait in the queue.
const DELAY_MS: HeaderName = HeaderName::from_static("x-sluicegate-delay-ms");

/// Query parameter with the status of a denial.
const DENY: &str = "deny";

/// Timeout for a body, which is discarded. A proxy may announce its client's body and never send
/// it, and waits little longer than this itself.
pub(crate) const BODY_TIMEOUT: Duration = Duration::from_millis(20);

/// Limit on lines about contradictory headers.
static CONTRADICTION_LINES: LogLimit = LogLimit::new();

pub(crate) fn routes() -> Router<Arc<App>> {
    Router::new().route(PATH, any(authorize))
}

/// Checks the request that a proxy received, described by its headers. Any method is accepted, and
/// no body is needed.
#[utoipa::path(
    get,
    operation_id = "authorize",
    path = "/v1/authorize",
    params(
        ("deny" = Option<String>, Query,
            description = "`403` for denials with status 403 instead of 429. The first value counts; anything else is ignored"),
        ("X-Forwarded-Uri" = Option<String>, Header,
            description = "Path and query of the request, or its whole URI. All of these headers are read from trusted peers only"),
        ("X-Forwarded-Method" = Option<String>, Header, description = "Method of the request"),
        ("X-Forwarded-Host" = Option<String>, Header, description = "Host of the request"),
        ("X-Forwarded-For" = Option<String>, Header, description = "Address of the client"),
        ("X-Original-URI" = Option<String>, Header, description = "Same as `X-Forwarded-Uri`"),
        ("X-Original-Method" = Option<String>, Header, description = "Same as `X-Forwarded-Method`"),
    ),
    responses(
        (status = 200, description = "Allowed", headers(
            ("x-sluicegate-decision" = String, description = "`allowed`"),
            ("x-sluicegate-degraded" = String, description = "`true` if decided without the store"),
            ("ratelimit-policy" = String, description = "Limits"),
            ("ratelimit" = String, description = "Remaining tokens"),
            ("x-ratelimit-limit" = u64, description = "`q` of the tightest policy"),
            ("x-ratelimit-remaining" = u64, description = "Remaining tokens of the tightest policy"),
            ("x-ratelimit-reset" = u64, description = "Time until it is full again in seconds, or that time in Unix seconds"),
            ("x-sluicegate-delay-ms" = u64,
                description = "Milliseconds to wait in the queue; present if a `leaky_bucket` rule applies"),
        )),
        (status = 429, description = "Denied; or too many wrong tokens from this address", body = QuotaExceeded, content_type = "application/problem+json", headers(
            ("x-sluicegate-decision" = String, description = "`denied`"),
            ("x-sluicegate-degraded" = String, description = "`true` if decided without the store"),
            ("ratelimit-policy" = String, description = "Limits"),
            ("ratelimit" = String, description = "Remaining tokens"),
            ("x-ratelimit-limit" = u64, description = "`q` of the tightest policy"),
            ("x-ratelimit-remaining" = u64, description = "Remaining tokens of the tightest policy"),
            ("x-ratelimit-reset" = u64, description = "Time until it is full again in seconds, or that time in Unix seconds"),
            ("retry-after" = u64, description = "Whole seconds to wait, at least 1; absent if waiting does not help"),
        )),
        (status = 401, description = "Denied: no caller, or an unknown token", body = Problem,
            content_type = "application/problem+json", headers(
            ("x-sluicegate-decision" = String, description = "`denied`"),
            ("www-authenticate" = String, description = "`Bearer`"),
        )),
        (status = 431, description = "Denied: the header is too long. Without a body"),
        (status = 503, description = "The store is unavailable, and no policy may answer in its place", body = Problem,
            content_type = "application/problem+json"),
    ),
    security((), ("caller_token" = []))
)]
async fn authorize(
    State(app): State<Arc<App>>,
    Extension(asker): Extension<Asker>,
    request: Request<Body>,
) -> Result<Response, Problem> {
    let (parts, sent) = request.into_parts();
    let peer = access::peer(&parts).unwrap_or(Ipv4Addr::UNSPECIFIED.into());
    let denied = denied_status(&parts.uri);
    let mut response = match ProxiedRequest::read(&app, &parts, peer) {
        Ok(proxied) => {
            let verdict = app.check(&proxied.request(asker.namespace())).await?;
            marked(respond(&app, &verdict, denied), verdict.is_degraded())
        }
        Err(contradiction) => refuse(&app, &contradiction, peer, denied),
    };
    finish(&mut response, &parts.method);
    body::discard(sent, app.limits.batch_bytes_max(), BODY_TIMEOUT).await;
    Ok(response)
}

/// Repeats the decision in a header, and leaves out the body of an answer to `HEAD`.
pub(crate) fn finish(response: &mut Response, method: &Method) {
    let is_allowed = response.status() == StatusCode::OK;
    let decision = if is_allowed { "allowed" } else { "denied" };
    response.headers_mut().insert(DECISION, HeaderValue::from_static(decision));
    if method == Method::HEAD {
        leave_out_body(response);
    }
}

/// Status of a denial. Proxies append their client's query, so the first value counts, invalid ones
/// are ignored, and no value turns a denial into an approval.
fn denied_status(uri: &Uri) -> StatusCode {
    let query = uri.query().unwrap_or_default();
    let deny = form_urlencoded::parse(query.as_bytes()).find(|(name, _)| name == DENY);
    match deny {
        Some((_, value)) if value == "403" => StatusCode::FORBIDDEN,
        _ => StatusCode::TOO_MANY_REQUESTS,
    }
}

/// Answer to a proxy for a verdict.
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

/// `HEAD` is answered with the body's length.
fn leave_out_body(response: &mut Response) {
    let body = std::mem::take(response.body_mut());
    if let Some(length) = body.size_hint().exact() {
        response.headers_mut().insert(header::CONTENT_LENGTH, length.into());
    }
}

/// Denies a request with contradictory headers. Not 400: a proxy that fails open would let it pass.
fn refuse(
    app: &App,
    Contradiction(name): &Contradiction,
    peer: IpAddr,
    denied: StatusCode,
) -> Response {
    app.metrics.contradicted();
    // The proxy passes on its clients' headers: worth a warning.
    if let Some(suppressed) = app.guard.admit_line(peer, &CONTRADICTION_LINES) {
        warn!(%peer, header = %name, suppressed, "a proxy's headers contradict each other: denied");
    }
    let detail = format!("{name} contradicts another header of the same request");
    Problem::new(denied, detail).into_response()
}
