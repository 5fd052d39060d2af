//! `/v1/take` and `/v1/buckets/{key}`: a bucket without a rule.

use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::body::Body;
use axum::extract::State;
use axum::http::{Request as HttpRequest, StatusCode, Uri};
use axum::response::Response;
use serde::{Deserialize, Serialize};
use sluicegate::headers::{Policies, Policy};
use sluicegate::{Algorithm, Decision, Quota, QuotaError, QuotaField, Rate, Refill, SystemClock};
use utoipa::ToSchema;

use crate::app::{App, RequestLimits};
use crate::auth::admission::Asker;
use crate::json::schema::{AlgorithmName, RefillName};
use crate::json::{Choice, Number, Text, Whole};
use crate::web::answer::{self, answer};
use crate::web::body::{self, Object, choice};
use crate::web::openapi::parts::{Deny, Wrong};
use crate::web::problem::Problem;
use crate::web::query::Query;

/// Path of the endpoint.
pub(crate) const PATH: &str = "/v1/take";

/// Query parameter with the status of a denial.
const DENY: &str = "deny";

/// Name of the bucket's policy in the headers.
const POLICY: &str = "take";

/// Tokens to be taken from the bucket of a key.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = Take, example = json!({"key": "user:123", "capacity": 10, "refill_rate": 1}))]
#[serde(deny_unknown_fields)]
pub(crate) struct TakeBody<'a> {
    /// Name of the bucket.
    #[serde(borrow)]
    #[schema(value_type = String)]
    pub(super) key: Text<'a>,
    /// The most it holds. Windows hold `refill_rate`, and need none.
    #[schema(value_type = Option<u64>)]
    pub(super) capacity: Option<Whole>,
    /// Tokens per interval.
    #[schema(value_type = f64, exclusive_minimum = 0)]
    pub(super) refill_rate: Number,
    /// Interval in seconds.
    #[schema(value_type = Option<f64>, default = 1, exclusive_minimum = 0)]
    pub(super) refill_interval: Option<Number>,
    /// Refill of a `token_bucket`.
    #[schema(value_type = Option<RefillName>, default = "continuous")]
    pub(super) refill: Option<Choice<Refill>>,
    /// Algorithm of the bucket.
    #[schema(value_type = Option<AlgorithmName>, default = "token_bucket")]
    pub(super) algorithm: Option<Choice<Algorithm>>,
    /// Longest delay in the queue of a `leaky_bucket`, in seconds.
    #[schema(value_type = Option<f64>, minimum = 0)]
    pub(super) max_wait: Option<Number>,
    /// Number of tokens to take; 0 only peeks.
    #[schema(value_type = Option<u64>, default = 1)]
    pub(super) cost: Option<Whole>,
}

/// Answer of `/v1/take`.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TakeAnswer {
    /// True if the tokens were taken.
    allowed: bool,
    /// Capacity of the bucket.
    limit: u64,
    /// Tokens left.
    remaining: u64,
    /// Milliseconds to wait, rounded up: 0 when allowed, null for never.
    retry_after_ms: Option<u64>,
    /// Milliseconds until the bucket is full again.
    reset_after_ms: u64,
    /// Milliseconds that allowed work must wait in the queue of a `leaky_bucket`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    delay_ms: Option<u64>,
    /// True if the store was unavailable and a bucket of this process answered; else absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    degraded: Option<bool>,
}

/// Takes tokens from the bucket of a key, under a quota sent with the request.
#[utoipa::path(
    post,
    path = "/v1/take",
    params(Deny),
    request_body = TakeBody,
    responses(
        (status = 200, description = "Granted or denied; only granted, with the parameter `deny`", body = TakeAnswer, headers(
            ("x-sluicegate-degraded" = String, description = "`true` if decided without the store"),
            ("ratelimit-policy" = String, description = "Limit. Present with the parameter `deny`, as the following headers"),
            ("ratelimit" = String, description = "Remaining tokens"),
            ("x-ratelimit-limit" = u64, description = "Capacity of the bucket"),
            ("x-ratelimit-remaining" = u64, description = "Remaining tokens"),
            ("x-ratelimit-reset" = u64, description = "Time until it is full again in seconds, or that time in Unix seconds"),
        )),
        (status = 429, description = "Denied, if `deny` is 429; or too many wrong tokens from this address",
            content((TakeAnswer = "application/json"), (Problem = "application/problem+json")), headers(
            ("x-sluicegate-degraded" = String, description = "`true` if decided without the store"),
            ("ratelimit-policy" = String, description = "Limit"),
            ("ratelimit" = String, description = "Remaining tokens"),
            ("x-ratelimit-limit" = u64, description = "Capacity of the bucket"),
            ("x-ratelimit-remaining" = u64, description = "Remaining tokens"),
            ("x-ratelimit-reset" = u64, description = "Time until it is full again in seconds, or that time in Unix seconds"),
            ("retry-after" = u64, description = "Whole seconds to wait, at least 1; absent if waiting does not help"),
        )),
        (status = 403, description = "Denied, if `deny` is 403; or the caller lacks the right `take`, or a page of another site asks",
            content((TakeAnswer = "application/json"), (Problem = "application/problem+json"))),
        Wrong,
        (status = 503, description = "The store is unavailable, and no policy may answer in its place", body = Problem,
            content_type = "application/problem+json"),
    ),
    security((), ("token" = []))
)]
pub(crate) async fn take(
    State(app): State<Arc<App>>,
    Extension(asker): Extension<Asker>,
    request: HttpRequest<Body>,
) -> Result<Response, Problem> {
    let limits = &app.limits;
    let denied = denied_status(request.uri());
    // The body is read before any rejection: a client that is answered while it still sends sees a
    // broken connection.
    let bytes = body::read(&app, request, limits.body_bytes_max).await?;
    let denied = denied?;
    let Object(body): Object<TakeBody<'_>> = body::parse(&bytes)?;
    let quota = body.checked_quota(limits)?;
    let cost = body.cost.map_or(1, |cost| cost.0);
    let (decision, degraded) =
        app.take(body.key.0.as_bytes(), asker.namespace(), &quota, cost).await?;
    let mut response = answer(&TakeAnswer::new(&quota, &decision, degraded), degraded);
    if let Some(denied) = denied {
        write_policy(&app, &quota, &decision, denied, &mut response);
    }
    Ok(response)
}

/// Status of a denial; `None` without the parameter. Clients that only look at the status need it.
fn denied_status(uri: &Uri) -> Result<Option<StatusCode>, Problem> {
    let Some(query) = uri.query() else { return Ok(None) };
    let query = Query::read(query)?.only(&[DENY])?;
    match query.text(DENY) {
        None => Ok(None),
        Some("429") => Ok(Some(StatusCode::TOO_MANY_REQUESTS)),
        Some("403") => Ok(Some(StatusCode::FORBIDDEN)),
        Some(_) => Err(Problem::field(DENY, "must be one of 429, 403")),
    }
}

/// Writes status and headers according to the decision.
fn write_policy(
    app: &App,
    quota: &Quota,
    decision: &Decision,
    denied: StatusCode,
    response: &mut Response,
) {
    let mut policies = Policies::default();
    policies.add(Policy::new(POLICY, quota, decision));
    app.headers.write(&policies, SystemClock::wall(), response.headers_mut());
    if !decision.is_granted() {
        *response.status_mut() = denied;
    }
}

impl TakeBody<'_> {
    /// The quota, if it and the key are within the limits; or the field that is not.
    pub(super) fn checked_quota(&self, limits: &RequestLimits) -> Result<Quota, Problem> {
        limits.check_length("key", self.key.0.len())?;
        let quota = self.quota()?;
        limits.check_take(&quota).map_err(|error| Problem::field(slow_field(&quota), error))?;
        Ok(quota)
    }

    /// The quota, or the field that makes it invalid.
    pub(crate) fn quota(&self) -> Result<Quota, Problem> {
        let refill = choice("refill", self.refill)?.unwrap_or_default();
        let algorithm = choice("algorithm", self.algorithm)?.unwrap_or_default();
        let seconds = |field, number: Option<Number>| {
            let seconds = number.map(|Number(number)| number.seconds()).transpose();
            seconds.map_err(|error| Problem::field(field, error))
        };
        let period = seconds("refill_interval", self.refill_interval)?;
        let period = period.unwrap_or(Duration::from_secs(1));
        let rate = Rate::from_decimal(self.refill_rate.0, period)
            .map_err(|error| quota_problem(error.into()))?;
        let max_wait = seconds("max_wait", self.max_wait)?;
        if algorithm.has_capacity() && self.capacity.is_none() {
            return Err(Problem::field("capacity", "missing field `capacity`"));
        }
        // The capacity of a window is its number of tokens, whatever is given here.
        let capacity = self.capacity.filter(|_| algorithm.has_capacity());
        let capacity = capacity.map(|Whole(capacity)| capacity);
        Quota::build(rate, algorithm, refill, capacity, max_wait).map_err(quota_problem)
    }
}

/// The field of the body to lower where a bucket takes too long to fill.
fn slow_field(quota: &Quota) -> &'static str {
    if quota.algorithm().has_capacity() { "capacity" } else { "refill_interval" }
}

/// Names the field of the body that a quota error concerns.
fn quota_problem(error: QuotaError) -> Problem {
    let field = match error.field() {
        QuotaField::Capacity | QuotaField::TimeToFull => "capacity",
        QuotaField::Refill => "refill",
        QuotaField::MaxWait => "max_wait",
        QuotaField::Period => "refill_interval",
        QuotaField::Tokens | QuotaField::Rate => "refill_rate",
    };
    Problem::field(field, error)
}

impl TakeAnswer {
    fn new(quota: &Quota, decision: &Decision, degraded: bool) -> Self {
        Self {
            allowed: decision.is_granted(),
            limit: decision.limit,
            remaining: decision.remaining,
            retry_after_ms: decision.retry_after_ms(),
            reset_after_ms: decision.reset_after_ms(),
            delay_ms: answer::delay_ms(quota, decision),
            degraded: degraded.then_some(true),
        }
    }
}
