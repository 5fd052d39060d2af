//! The HTTP front door: JSON in, the limiter's answer out. It translates and never decides.

mod access;
mod body;
mod buckets;
mod check;
mod etag;
mod explain;
mod guard;
mod health;
mod openapi;
mod overrides;
mod preview;
mod problem;
mod query;
pub(crate) mod rules;
mod scalar;
mod stats;
mod subject;
mod take;
pub(crate) mod violations;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::http::{HeaderName, HeaderValue, Method, StatusCode, Uri};
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use axum::routing::{any, delete, get, post};
use tollgate::{Algorithm, AnyStore, Charged, Decision, Limiter, OnError, Quota, Request, Verdict};

pub use self::guard::Guard;
use self::problem::Problem;
use crate::audit::Audit;
use crate::metrics::Metrics;
use crate::ready::Readiness;
use crate::recent::Recent;
use crate::snapshot::Keeper;
use crate::stats::Stats;

/// How much larger a batch may be than a single request.
const BATCH_BYTES_FACTOR: usize = 16;

/// The header of answers that were made without the store.
const DEGRADED: HeaderName = HeaderName::from_static("x-tollgate-degraded");

/// What answers for buckets without a rule while the store is in trouble.
const TAKE_ON_ERROR: OnError = OnError::Local;

/// Everything that the handlers need.
#[derive(Debug)]
pub struct App {
    /// What decides.
    pub limiter: Limiter<AnyStore>,
    /// What counts.
    pub metrics: Metrics,
    /// Whether requests may be sent here.
    pub ready: Readiness,
    /// Who may ask.
    pub guard: Arc<Guard>,
    /// How much may be asked at once.
    pub limits: HttpLimits,
    /// What keeps the rules in force up to date.
    pub keeper: Keeper,
    /// What records violations.
    pub audit: Audit,
    /// The last requests.
    pub recent: Recent,
    /// What the rules decided in the last minutes.
    pub stats: Stats,
}

/// Bounds on what a client may send.
#[derive(Clone, Debug)]
pub struct HttpLimits {
    /// Bytes in the body of one request; a batch may have sixteen times as many.
    pub body_bytes_max: usize,
    /// How long a body may take to arrive.
    pub body_timeout: Duration,
    /// Members of a batch.
    pub batch_max: usize,
    /// Attributes of a request.
    pub attributes_max: usize,
    /// Bytes in a key or the value of an attribute.
    pub value_bytes_max: usize,
}

/// The routes, and what stands in front of them.
pub fn router(app: Arc<App>) -> Router {
    Router::new()
        .route("/v1/check", post(check::check))
        .route("/v1/check/batch", post(check::check_batch))
        .route("/v1/take", post(take::take))
        .route("/v1/buckets/{key}", delete(take::forget))
        .route("/livez", get(health::live))
        .route("/healthz", get(health::live))
        .route("/readyz", get(health::ready))
        .route("/metrics", get(health::metrics))
        .route("/openapi.json", get(openapi::document))
        .merge(administration().layer(from_fn_with_state(Arc::clone(&app), body::let_arrive)))
        .merge(rules::import_routes())
        .fallback(any(not_found))
        .method_not_allowed_fallback(method_not_allowed)
        // Bodies are bounded where they are read.
        .layer(DefaultBodyLimit::disable())
        .layer(from_fn_with_state(Arc::clone(&app), guard::own_site_only))
        .with_state(app)
}

/// The routes of those who look after it.
fn administration() -> Router<Arc<App>> {
    Router::new()
        .merge(rules::routes())
        .merge(explain::routes())
        .merge(preview::routes())
        .merge(overrides::routes())
        .merge(buckets::routes())
        .merge(violations::routes())
        .merge(stats::routes())
}

async fn not_found(uri: Uri) -> Problem {
    Problem::new(StatusCode::NOT_FOUND, format!("there is nothing at {}", uri.path()))
}

async fn method_not_allowed(method: Method, uri: Uri) -> Problem {
    let detail = format!("{} does not take {method}", uri.path());
    Problem::new(StatusCode::METHOD_NOT_ALLOWED, detail)
}

impl App {
    /// # Errors
    ///
    /// Store trouble that no policy could answer for.
    async fn check(&self, request: &Request<'_>) -> Result<Verdict, Problem> {
        let timer = self.metrics.start();
        let verdict = self.limiter.check(request).await;
        let verdict = verdict.map_err(|trouble| Problem::store(&trouble))?;
        self.metrics.decided(timer, &verdict);
        self.recent.note(request, &verdict);
        self.audit.note(request, &verdict);
        Ok(verdict)
    }

    /// # Errors
    ///
    /// As [`check`](Self::check).
    async fn take(&self, key: &str, quota: &Quota, cost: u64) -> Result<(Decision, bool), Problem> {
        let timer = self.metrics.start();
        let charged = self.limiter.take_or(key, quota, cost, TAKE_ON_ERROR).await;
        let charged = charged.map_err(|trouble| Problem::store(&trouble))?;
        let Charged { decisions, degraded } = charged;
        self.metrics.took(timer, &decisions[0], degraded.then_some(TAKE_ON_ERROR));
        Ok((decisions[0], degraded))
    }
}

/// The answer, with a header that says so if it was made without the store.
fn answer(body: impl IntoResponse, degraded: bool) -> Response {
    let mut response = body.into_response();
    if degraded {
        response.headers_mut().insert(DEGRADED, HeaderValue::from_static("true"));
    }
    response
}

impl HttpLimits {
    fn batch_bytes_max(&self) -> usize {
        self.body_bytes_max.saturating_mul(BATCH_BYTES_FACTOR)
    }

    fn check_length(&self, field: &str, bytes: usize) -> Result<(), Problem> {
        if bytes > self.value_bytes_max {
            let most = format!("has more than {} bytes", self.value_bytes_max);
            return Err(Problem::field(field, most));
        }
        Ok(())
    }
}

/// Milliseconds in line, rounded up, where the algorithm is a queue.
fn delay_ms(quota: &Quota, decision: &Decision) -> Option<u64> {
    let is_queue = quota.algorithm() == Algorithm::LeakyBucket;
    is_queue.then(|| decision.delay_ms())
}
