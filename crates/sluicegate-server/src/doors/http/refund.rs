//! `/v1/refund`: tokens that were charged in vain are given back.

use std::sync::Arc;

use axum::Extension;
use axum::body::Body;
use axum::extract::State;
use axum::http::Request as HttpRequest;
use axum::response::Response;
use serde::{Deserialize, Serialize};
use sluicegate::{Algorithm, Decision, Refill, Verdict};
use utoipa::ToSchema;

use super::check::TierAnswer;
use super::take::TakeBody;
use crate::app::App;
use crate::auth::admission::Asker;
use crate::doors::refunds::{RefundRecord, RefundSource, has_bucket};
use crate::json::schema::{AlgorithmName, RefillName, address};
use crate::json::{Choice, Id, Number, Text, Whole};
use crate::observe::metrics::refunds::RefundDoor;
use crate::web::access::peer_in;
use crate::web::answer::answer;
use crate::web::body::{self, Object};
use crate::web::check_body::{Attributes, CheckBody, attributes};
use crate::web::openapi::parts::Wrong;
use crate::web::problem::Problem;

/// Path of the endpoint.
pub(crate) const PATH: &str = "/v1/refund";

/// Tokens to be given back: to the bucket of a key, named as for `/v1/take`; or to every bucket of a request, described as
/// for `/v1/check`. A body has either `key` and the fields of a quota, or attributes.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = Refund, example = json!({"user_id": "42", "endpoint": "/upload", "amount": 5}))]
#[serde(deny_unknown_fields)]
struct RefundBody<'a> {
    /// Number of tokens. No bucket ever holds more than its limit.
    #[schema(value_type = u64, minimum = 1)]
    amount: Whole,
    /// Name of the bucket.
    #[serde(borrow)]
    #[schema(value_type = Option<String>)]
    key: Option<Text<'a>>,
    /// The most it holds. Windows hold `refill_rate`, and need none.
    #[schema(value_type = Option<u64>)]
    capacity: Option<Whole>,
    /// Tokens per interval; required with `key`.
    #[schema(value_type = Option<f64>, exclusive_minimum = 0)]
    refill_rate: Option<Number>,
    /// Interval in seconds; 1 by default.
    #[schema(value_type = Option<f64>, exclusive_minimum = 0)]
    refill_interval: Option<Number>,
    /// Refill of a `token_bucket`; `continuous` by default.
    #[schema(value_type = Option<RefillName>)]
    refill: Option<Choice<Refill>>,
    /// Algorithm of the bucket; `token_bucket` by default.
    #[schema(value_type = Option<AlgorithmName>)]
    algorithm: Option<Choice<Algorithm>>,
    /// Longest delay in the queue of a `leaky_bucket`, in seconds.
    #[schema(value_type = Option<f64>, minimum = 0)]
    max_wait: Option<Number>,
    /// Id of the user: text or a whole number.
    user_id: Option<Id<'a>>,
    /// Address of the client.
    #[schema(schema_with = address)]
    ip: Option<Text<'a>>,
    /// Path of the request, or preferably the route's template.
    #[schema(value_type = Option<String>)]
    endpoint: Option<Text<'a>>,
    /// Method of the request.
    #[schema(value_type = Option<String>)]
    method: Option<Text<'a>>,
    /// Plan of the client.
    #[schema(value_type = Option<String>)]
    plan: Option<Text<'a>>,
    /// Any other attributes of rules.
    #[serde(default)]
    #[schema(schema_with = attributes)]
    attributes: Option<Attributes<'a>>,
}

/// Buckets that receive the tokens.
enum Target<'a> {
    Key(TakeBody<'a>),
    Request(CheckBody<'a>),
}

/// Answer of `/v1/refund`: the figures after it.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RefundAnswer<'a> {
    /// True if there was a bucket to give to. False if no rule limits the request, if it is blocked, or if it meets more
    /// rules than `limits.tiers_max`.
    refunded: bool,
    /// Capacity of the bucket; of the tier with the least remaining if a request was described. Null if there is no bucket.
    limit: Option<u64>,
    /// Tokens left in it.
    remaining: Option<u64>,
    /// Milliseconds until it is full again.
    reset_after_ms: Option<u64>,
    /// Every rule that applies, as in the answer of `/v1/check`; absent if a key was named.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    tiers: Option<Vec<TierAnswer<'a>>>,
}

/// Gives tokens back to the buckets that a take or a check has charged, each capped at its limit, all in one step. For
/// callers with the right `refund`.
#[utoipa::path(
    post,
    path = "/v1/refund",
    request_body = RefundBody,
    responses(
        (status = 200, description = "The buckets afterwards", body = RefundAnswer),
        Wrong,
        (status = 503, description = "The store failed: the tokens may or may not be refunded", body = Problem,
            content_type = "application/problem+json"),
    ),
    security(("token" = []))
)]
pub(crate) async fn refund(
    State(app): State<Arc<App>>,
    Extension(asker): Extension<Asker>,
    request: HttpRequest<Body>,
) -> Result<Response, Problem> {
    let (limits, peer) = (&app.limits, peer_in(request.extensions()));
    let bytes = body::read(&app, request, limits.body_bytes_max).await?;
    let Object(body): Object<RefundBody<'_>> = body::parse(&bytes)?;
    let amount = body.amount.0;
    if amount == 0 {
        return Err(Problem::field("amount", "must be at least 1"));
    }
    let source = RefundSource { asker: &asker, peer, door: RefundDoor::Http };
    match body.target()? {
        Target::Key(body) => refund_key(&app, source, &body, amount).await,
        Target::Request(body) => refund_request(&app, source, &body, amount).await,
    }
}

async fn refund_key(
    app: &App,
    source: RefundSource<'_>,
    body: &TakeBody<'_>,
    amount: u64,
) -> Result<Response, Problem> {
    let (quota, key) = (body.checked_quota(&app.limits)?, &*body.key.0);
    let mut record = begin(app, source, Some(key), amount).await?;
    let namespace = source.asker.namespace();
    let given = app.refund_key(key.as_bytes(), namespace, &quota, amount).await;
    if given.is_ok() {
        record.note(amount);
    }
    record.end().await;
    Ok(answer(&RefundAnswer::of_bucket(&given?), false))
}

async fn refund_request(
    app: &App,
    source: RefundSource<'_>,
    body: &CheckBody<'_>,
    amount: u64,
) -> Result<Response, Problem> {
    body.validate(&app.limits)?;
    let ip = body.ip()?;
    let mut record = begin(app, source, None, amount).await?;
    let request = body.request_in(source.asker.namespace(), ip.as_deref());
    let given = app.refund(&request, amount).await;
    if given.as_ref().is_ok_and(has_bucket) {
        record.note(amount);
    }
    record.end().await;
    Ok(answer(&RefundAnswer::of_request(&given?), false))
}

/// Begins the record of a refund.
async fn begin<'a>(
    app: &'a App,
    source: RefundSource<'a>,
    key: Option<&str>,
    amount: u64,
) -> Result<RefundRecord<'a>, Problem> {
    let begun = RefundRecord::begin(app, source, key, amount).await;
    begun.map_err(|error| Problem::unrecorded(&error))
}

impl<'a> RefundBody<'a> {
    /// The buckets that the body names in one of the two ways, or the field that belongs to the other.
    fn target(self) -> Result<Target<'a>, Problem> {
        let Some(key) = self.key else { return self.request().map(Target::Request) };
        let attributes = [
            ("user_id", self.user_id.is_some()),
            ("ip", self.ip.is_some()),
            ("endpoint", self.endpoint.is_some()),
            ("method", self.method.is_some()),
            ("plan", self.plan.is_some()),
            ("attributes", self.attributes.is_some()),
        ];
        refuse_present(
            attributes,
            "cannot be combined with `key`: name a key or describe a request",
        )?;
        let missing = || Problem::field("refill_rate", "missing field `refill_rate`");
        Ok(Target::Key(TakeBody {
            key,
            capacity: self.capacity,
            refill_rate: self.refill_rate.ok_or_else(missing)?,
            refill_interval: self.refill_interval,
            refill: self.refill,
            algorithm: self.algorithm,
            max_wait: self.max_wait,
            cost: None,
        }))
    }

    /// The request that the body describes.
    fn request(self) -> Result<CheckBody<'a>, Problem> {
        let of_quota = [
            ("capacity", self.capacity.is_some()),
            ("refill_rate", self.refill_rate.is_some()),
            ("refill_interval", self.refill_interval.is_some()),
            ("refill", self.refill.is_some()),
            ("algorithm", self.algorithm.is_some()),
            ("max_wait", self.max_wait.is_some()),
        ];
        refuse_present(of_quota, "needs a `key`: rules have quotas of their own")?;
        Ok(CheckBody {
            user_id: self.user_id,
            ip: self.ip,
            endpoint: self.endpoint,
            method: self.method,
            plan: self.plan,
            cost: None,
            attributes: self.attributes.unwrap_or_default(),
        })
    }
}

/// Rejects the first of these fields that is present.
fn refuse_present(fields: [(&str, bool); 6], reason: &str) -> Result<(), Problem> {
    match fields.into_iter().find(|(_, is_present)| *is_present) {
        Some((field, _)) => Err(Problem::field(field, reason)),
        None => Ok(()),
    }
}

impl<'a> RefundAnswer<'a> {
    fn of_bucket(decision: &Decision) -> Self {
        Self {
            refunded: true,
            limit: Some(decision.limit),
            remaining: Some(decision.remaining),
            reset_after_ms: Some(decision.reset_after_ms()),
            tiers: None,
        }
    }

    fn of_request(verdict: &'a Verdict) -> Self {
        let tightest = verdict.tightest();
        Self {
            refunded: has_bucket(verdict),
            limit: tightest.map(|tier| tier.decision.limit),
            remaining: tightest.map(|tier| tier.decision.remaining),
            reset_after_ms: tightest.map(|tier| tier.decision.reset_after_ms()),
            tiers: Some(verdict.tiers().map(|tier| TierAnswer::new(&tier)).collect()),
        }
    }
}
