//! `/v1/check` and `/v1/check/batch`: checks requests against the rules.

use std::net::IpAddr;
use std::sync::Arc;

use axum::Extension;
use axum::body::Body;
use axum::extract::State;
use axum::http::Request as HttpRequest;
use axum::response::Response;
use futures_util::future::try_join_all;
use hyper::body::Incoming;
use serde::Serialize;
use sluicegate::{Tier, Verdict};
use utoipa::ToSchema;

use crate::app::App;
use crate::auth::admission::Asker;
use crate::json::schema::{ModeName, ScopeName};
use crate::web::answer::{self, answer};
use crate::web::body;
use crate::web::check_body::CheckBody;
use crate::web::openapi::parts::Wrong;
use crate::web::problem::Problem;

/// Members of a batch in flight to the store at once. They are sent in order over one connection,
/// and so charged in order, without a round trip for each.
const TOGETHER_MAX: usize = 16;

/// Path of a single check.
pub(crate) const PATH: &str = "/v1/check";
/// Path of the endpoint for batches.
pub(crate) const BATCH_PATH: &str = "/v1/check/batch";

/// Answer of a check.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct CheckAnswer<'a> {
    /// True if the request is allowed.
    allowed: bool,
    /// Capacity of the denying tier, else of the one with the least remaining; null if no rule
    /// applies.
    limit: Option<u64>,
    /// Tokens left in that tier.
    remaining: Option<u64>,
    /// Milliseconds to wait, rounded up: 0 when allowed, null for never.
    retry_after_ms: Option<u64>,
    /// Milliseconds until that tier is full again.
    reset_after_ms: Option<u64>,
    /// Milliseconds that allowed work must wait in the queue, if a `leaky_bucket` rule applies.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    delay_ms: Option<u64>,
    /// True if the store was unavailable and some rules were answered by their `on_error` policy;
    /// else absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    degraded: Option<bool>,
    /// Number of the rules that apply, if they are more than `limits.tiers_max`: the request is then denied without asking
    /// any of them, and `tiers` is empty; else absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    too_many_rules: Option<u32>,
    /// True if comparing the request with the globs of the rules takes more work than it may: the request is then denied
    /// without asking any rule, and `tiers` is empty; else absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    too_costly: Option<bool>,
    /// Scope of the rule that denied it; null if allowed.
    #[schema(value_type = Option<ScopeName>)]
    violated_tier: Option<&'a str>,
    /// Key pattern of the rule that denied it; null if allowed.
    violated_rule: Option<&'a str>,
    /// Id of the rule that denied it; null if allowed.
    rule_id: Option<u64>,
    /// Every rule that applies.
    tiers: Vec<TierAnswer<'a>>,
}

/// Decision of a rule.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TierAnswer<'a> {
    rule_id: u64,
    #[schema(value_type = ScopeName)]
    scope: &'a str,
    key_pattern: &'a str,
    /// `enforce` or `shadow`.
    #[schema(value_type = ModeName)]
    mode: &'a str,
    allowed: bool,
    limit: u64,
    remaining: u64,
    retry_after_ms: Option<u64>,
    reset_after_ms: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    delay_ms: Option<u64>,
}

/// Answers of a batch, in order.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct BatchAnswer<'a> {
    results: Vec<CheckAnswer<'a>>,
}

/// Checks one request: charges every bucket that the rules assign to it, or none.
#[utoipa::path(
    post,
    path = "/v1/check",
    request_body = CheckBody,
    responses(
        (status = 200, description = "The verdict, allowed or not", body = CheckAnswer,
            headers(("x-sluicegate-degraded" = String, description = "`true` if decided without the store"))),
        Wrong,
        (status = 503, description = "The store is unavailable, and no policy may answer in its place", body = Problem,
            content_type = "application/problem+json"),
    ),
    security((), ("token" = []))
)]
pub(crate) async fn check(
    app: &App,
    request: HttpRequest<Incoming>,
    peer: IpAddr,
    asker: &Asker,
) -> Result<Response, Problem> {
    let limits = &app.limits;
    let bytes = body::read_from(app, request, Some(peer), limits.body_bytes_max).await?;
    let body = CheckBody::parse(&bytes, limits)?;
    body.validate(limits)?;
    let ip = body.ip()?;
    let verdict = app.check(&body.request_in(asker.namespace(), ip.as_deref())).await?;
    Ok(answer(&CheckAnswer::new(&verdict), verdict.is_degraded()))
}

/// Checks several requests, each by itself, in order. All are validated before anything is charged.
#[utoipa::path(
    post,
    path = "/v1/check/batch",
    request_body = Vec<CheckBody>,
    responses(
        (status = 200, description = "The verdicts, in order", body = BatchAnswer,
            headers(("x-sluicegate-degraded" = String, description = "`true` if any was decided without the store"))),
        (status = "4XX", description = "Error, with the position of the member", body = Problem,
            content_type = "application/problem+json"),
        (status = 503, description = "The store is unavailable, and no policy may answer in its place", body = Problem,
            content_type = "application/problem+json"),
    ),
    security((), ("token" = []))
)]
pub(crate) async fn check_batch(
    State(app): State<Arc<App>>,
    Extension(asker): Extension<Asker>,
    request: HttpRequest<Body>,
) -> Result<Response, Problem> {
    let limits = &app.limits;
    let bytes = body::read(&app, request, limits.batch_bytes_max()).await?;
    let members = CheckBody::parse_batch(&bytes, limits)?;
    let mut ips = Vec::with_capacity(members.len());
    for (position, member) in members.iter().enumerate() {
        member.validate(limits).map_err(|problem| problem.within(position))?;
        ips.push(member.ip().map_err(|problem| problem.within(position))?);
    }
    let (requests, namespace) = (members.iter().zip(&ips), asker.namespace());
    let requests: Vec<_> =
        requests.map(|(member, ip)| member.request_in(namespace, ip.as_deref())).collect();
    let mut verdicts = Vec::with_capacity(members.len());
    for together in requests.chunks(TOGETHER_MAX) {
        verdicts.extend(try_join_all(together.iter().map(|request| app.check(request))).await?);
    }
    let degraded = verdicts.iter().any(Verdict::is_degraded);
    let results = verdicts.iter().map(CheckAnswer::new).collect();
    Ok(answer(&BatchAnswer { results }, degraded))
}

// ===== impl CheckAnswer =====

impl<'a> CheckAnswer<'a> {
    fn new(verdict: &'a Verdict) -> Self {
        let (violated, tightest) = (verdict.violated(), verdict.tightest());
        let tiers: Vec<_> = verdict.tiers().map(|tier| TierAnswer::new(&tier)).collect();
        Self {
            allowed: verdict.is_allowed(),
            limit: tightest.map(|tier| tier.decision.limit),
            remaining: tightest.map(|tier| tier.decision.remaining),
            retry_after_ms: match violated {
                Some(tier) => tier.decision.retry_after_ms(),
                None => verdict.is_allowed().then_some(0),
            },
            reset_after_ms: tightest.map(|tier| tier.decision.reset_after_ms()),
            delay_ms: longest_delay_ms(verdict),
            degraded: verdict.is_degraded().then_some(true),
            too_many_rules: verdict.too_many_rules(),
            too_costly: verdict.is_too_costly().then_some(true),
            violated_tier: violated.map(|tier| tier.rule.scope().name()),
            violated_rule: violated.map(|tier| tier.rule.key_pattern().as_str()),
            rule_id: violated.map(|tier| tier.rule.rule_id()),
            tiers,
        }
    }
}

impl<'a> TierAnswer<'a> {
    pub(super) fn new(Tier { rule, decision, quota, .. }: &Tier<'a>) -> Self {
        Self {
            rule_id: rule.rule_id(),
            scope: rule.scope().name(),
            key_pattern: rule.key_pattern().as_str(),
            mode: rule.mode().name(),
            allowed: decision.is_granted(),
            limit: decision.limit,
            remaining: decision.remaining,
            retry_after_ms: decision.retry_after_ms(),
            reset_after_ms: decision.reset_after_ms(),
            delay_ms: answer::delay_ms(quota, decision),
        }
    }
}

/// Longest wait of the enforced tiers with a queue; `None` without a queue, zero if it was denied.
pub(crate) fn longest_delay_ms(verdict: &Verdict) -> Option<u64> {
    let delays = verdict.tiers().filter(Tier::is_enforced).filter_map(|tier| {
        let delay_ms = answer::delay_ms(tier.rule.quota(), tier.decision)?;
        Some(if verdict.is_allowed() { delay_ms } else { 0 })
    });
    delays.max()
}
