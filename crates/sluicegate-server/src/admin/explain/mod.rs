//! `/v1/explain`: which rules apply to a request, and why others do not.

mod wait;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::Request as HttpRequest;
use axum::response::Response;
use axum::routing::post;
use futures_util::future::try_join_all;
use serde::Serialize;
use sluicegate::rules::Applies;
use sluicegate::{Mode, Override, Quota, Request, Rule, RuleSet};
use utoipa::{OpenApi, ToSchema};

use crate::app::App;
use crate::data::OverrideKind;
use crate::json::Plain;
use crate::json::schema::{ModeName, ScopeName};
use crate::web::access::Reader;
use crate::web::answer::answer;
use crate::web::body;
use crate::web::check_body::CheckBody;
use crate::web::openapi::parts::Wrong;
use crate::web::problem::Problem;
use crate::web::query::Query;

/// Maximum number of rules shown that apply, and of those that do not.
const EXPLAIN_RULES_MAX: usize = 1000;

/// Maximum number of rules that hints name.
const HINTS_MAX: usize = 8;

/// Maximum number of buckets read from the store concurrently.
const TOGETHER_MAX: usize = 16;

/// Rules that apply to a request, and the state of their buckets. Spends no tokens.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Explanation {
    /// True if a check would allow the request now.
    allowed: bool,
    /// Cost of the request in tokens.
    cost: u64,
    /// True if the store is unavailable and `on_error` answered for some rules; otherwise absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    degraded: Option<bool>,
    /// Rules that apply, then rules that do not, each by `rule_id`.
    rules: Vec<Explained>,
    /// Number of rules that are not shown.
    more: usize,
    /// Hints at rules that the request escapes or meets by mistake, as text.
    hints: Vec<String>,
}

/// One rule, and its bucket for the request.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Explained {
    rule_id: u64,
    #[schema(value_type = ScopeName)]
    scope: &'static str,
    key_pattern: String,
    /// Plan of the rule; null if it applies to every plan.
    plan: Option<String>,
    /// `enforce`, `shadow` or `unlimited`.
    #[schema(value_type = ModeName)]
    mode: &'static str,
    /// True if the rule applies to the request.
    applies: bool,
    /// `applies`, or the reason why it does not, as text.
    reason: String,
    /// Key of the request's bucket under this rule; null if the request lacks an attribute of the key pattern.
    bucket_key: Option<String>,
    /// Subject of that bucket; null if the request lacks the attribute.
    subject: Option<String>,
    /// Override of the subject; null if it has none.
    #[serde(rename = "override")]
    overridden: Option<Overridden>,
    /// Capacity of the bucket in tokens. This and the next two are null if the rule does not apply, or if the rule or
    /// the subject is unlimited.
    limit: Option<u64>,
    /// Tokens left.
    remaining: Option<u64>,
    /// Milliseconds until the bucket is full again.
    reset_after_ms: Option<u64>,
    /// Milliseconds until the bucket holds enough tokens: 0 if it does now; null if it never will, or with `limit`.
    retry_after_ms: Option<u64>,
    /// True if this rule would allow the request now; null if it does not apply.
    would_allow: Option<bool>,
}

/// Override of a subject.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Overridden {
    kind: OverrideKind,
    /// Tokens per `period`. This and the fields below are null unless `kind` is `quota`.
    tokens: Option<u64>,
    /// Period in seconds.
    #[schema(value_type = Option<f64>)]
    period: Option<Plain>,
    /// Capacity in tokens.
    burst_capacity: Option<u64>,
}

#[derive(OpenApi)]
#[openapi(paths(explain))]
struct Document;

/// Routes of `/v1/explain`.
pub(crate) fn routes() -> Router<Arc<App>> {
    Router::new().route("/v1/explain", post(explain))
}

/// OpenAPI document of `/v1/explain`.
pub(crate) fn document() -> utoipa::openapi::OpenApi {
    Document::openapi()
}

/// Lists the rules that apply to a request with the state of their buckets, and the others with the reason why they
/// do not apply. Spends no tokens.
#[utoipa::path(
    post,
    operation_id = "explain",
    path = "/v1/explain",
    request_body = CheckBody,
    responses(
        (status = 200, description = "The rules and their buckets", body = Explanation,
            headers(("x-sluicegate-degraded" = String, description = "`true` if some rules were answered without the store"))),
        Wrong,
        (status = 503, description = "The store is unavailable", body = Problem,
            content_type = "application/problem+json"),
    ),
    security(("token" = []))
)]
async fn explain(
    _: Reader,
    State(app): State<Arc<App>>,
    query: Query,
    request: HttpRequest<Body>,
) -> Result<Response, Problem> {
    query.only(&[])?;
    let limits = &app.limits;
    let bytes = body::read(&app, request, limits.body_bytes_max).await?;
    let body = CheckBody::parse(&bytes, limits)?;
    body.validate(limits)?;
    let ip = body.ip()?;
    let explanation = app.explain(&body.request(ip.as_deref())).await?;
    let degraded = explanation.degraded.is_some();
    Ok(answer(&explanation, degraded))
}

impl App {
    /// # Errors
    ///
    /// If the store fails and `on_error` allows no answer.
    async fn explain(&self, request: &Request<'_>) -> Result<Explanation, Problem> {
        let rules = self.limiter.rules();
        if rules.is_too_costly(request) {
            return Ok(Explanation::too_costly(&rules, request));
        }
        let (mut shown, mut others, mut more) = (Vec::new(), Vec::new(), 0);
        for (rule, applies) in rules.explain(request) {
            match applies {
                Applies::Yes => shown.push(rule),
                _ if others.len() == EXPLAIN_RULES_MAX => more += 1,
                not => others.push(Explained::new(rule, &not, request)),
            }
        }
        let mut hints = escape_hints(&rules, request);
        let is_too_many = shown.len() > rules.tiers_max();
        if is_too_many {
            let (met, tiers_max) = (shown.len(), rules.tiers_max());
            hints.push(format!(
                "{met} rules apply, and limits.tiers_max is {tiers_max}: every check of this request is denied"
            ));
            more += met.saturating_sub(EXPLAIN_RULES_MAX);
            shown.truncate(EXPLAIN_RULES_MAX);
        }
        let mut explained = Vec::with_capacity(shown.len() + others.len());
        let mut is_degraded = false;
        for together in shown.chunks(TOGETHER_MAX) {
            let looks = together.iter().map(|rule| self.look(rule, request));
            for (rule, degraded) in try_join_all(looks).await? {
                is_degraded |= degraded;
                explained.push(rule);
            }
        }
        let denies =
            |rule: &Explained| rule.mode == Mode::Enforce.name() && rule.would_allow == Some(false);
        Ok(Explanation {
            allowed: !is_too_many && !explained.iter().any(denies),
            cost: request.get_cost(),
            degraded: is_degraded.then_some(true),
            rules: explained.into_iter().chain(others).collect(),
            more,
            hints,
        })
    }

    /// Explains a rule that applies, with the state of its bucket. The flag is true if the answer is degraded.
    async fn look(&self, rule: &Rule, request: &Request<'_>) -> Result<(Explained, bool), Problem> {
        let mut explained = Explained::new(rule, &Applies::Yes, request);
        if rule.mode() == Mode::Unlimited {
            explained.would_allow = Some(true);
            return Ok((explained, false));
        }
        // The rule was deleted meanwhile: it is shown without its bucket.
        let Some(bucket) = self.limiter.bucket(rule.rule_id(), request) else {
            return Ok((explained, false));
        };
        explained.overridden = bucket.overridden().as_ref().map(Overridden::new);
        match bucket.overridden() {
            Some(Override::Unlimited) => {
                explained.would_allow = Some(true);
                return Ok((explained, false));
            }
            Some(Override::Blocked) => {
                (explained.limit, explained.remaining) = (Some(0), Some(0));
                (explained.reset_after_ms, explained.would_allow) = (Some(0), Some(false));
                return Ok((explained, false));
            }
            Some(Override::Quota(_)) | None => {}
        }
        let peek = bucket.look().await?;
        let (decision, cost) = (&peek.decisions[0], request.get_cost());
        let wait = wait::wait(bucket.quota(), decision, cost);
        explained.limit = Some(decision.limit);
        explained.remaining = Some(decision.remaining);
        explained.reset_after_ms = Some(decision.reset_after_ms());
        explained.retry_after_ms = wait.map(|wait| ms_rounded_up(wait.as_micros()));
        // In a degraded answer, `on_error` may deny although tokens seem to be left.
        explained.would_allow = Some(decision.is_granted() && wait::would_grant(decision, cost));
        Ok((explained, peek.degraded))
    }
}

#[expect(clippy::cast_possible_truncation, reason = "no wait is longer than 142 years")]
fn ms_rounded_up(micros: u128) -> u64 {
    micros.div_ceil(1000) as u64
}

impl Explanation {
    /// The denial of a request that takes too much work to match. No rule is shown: showing them takes more work.
    fn too_costly(rules: &RuleSet, request: &Request<'_>) -> Self {
        let hint = "comparing this request with the globs of the rules takes too much work: \
                    every check of it is denied; use fewer globs with several `*`";
        Self {
            allowed: false,
            cost: request.get_cost(),
            degraded: None,
            rules: Vec::new(),
            more: rules.rules().len(),
            hints: vec![hint.into()],
        }
    }
}

impl Explained {
    /// A rule without the state of its bucket.
    fn new(rule: &Rule, applies: &Applies, request: &Request<'_>) -> Self {
        Self {
            rule_id: rule.rule_id(),
            scope: rule.scope().name(),
            key_pattern: rule.key_pattern().as_str().into(),
            plan: rule.plan().map(Into::into),
            mode: rule.mode().name(),
            applies: *applies == Applies::Yes,
            reason: reason(rule, applies, request),
            bucket_key: rule.bucket_key(request),
            subject: rule.subject(request).map(Into::into),
            overridden: None,
            limit: None,
            remaining: None,
            reset_after_ms: None,
            retry_after_ms: None,
            would_allow: None,
        }
    }
}

/// Hints at rules that the request escapes by the spelling of its path.
fn escape_hints(rules: &RuleSet, request: &Request<'_>) -> Vec<String> {
    let folded = request.folded_endpoint().unwrap_or_default();
    let hint = |rule: &Rule| {
        let (rule_id, pattern) = (rule.rule_id(), rule.key_pattern());
        format!(
            "rule {rule_id}, {pattern}, would apply if the path were written `{folded}`: \
             if your application treats both as the same, set the rule's path to folded"
        )
    };
    rules.escaped(request).take(HINTS_MAX).map(hint).collect()
}

/// Reason why a rule applies or does not, as text.
fn reason(rule: &Rule, applies: &Applies, request: &Request<'_>) -> String {
    match applies {
        Applies::Yes => "applies".into(),
        Applies::SwitchedOff => "switched off".into(),
        Applies::OtherPlan => format!("is for plan `{}`", rule.plan().unwrap_or_default()),
        Applies::Superseded { rule_id } => format!("rule {rule_id} names this plan"),
        Applies::ConditionFails { attribute } => match request.get(attribute) {
            Some(value) => format!("condition on {attribute} fails: `{value}` does not match"),
            None => format!("condition on {attribute} fails: the request has no {attribute}"),
        },
        Applies::AttributeMissing { attribute } => format!("the request has no {attribute}"),
        Applies::Replaced { rule_id } => format!("rule {rule_id} replaces it"),
        _ => "does not apply".into(),
    }
}

impl Overridden {
    fn new(overridden: &Override) -> Self {
        let quota = match overridden {
            Override::Quota(quota) => Some(quota),
            Override::Unlimited | Override::Blocked => None,
        };
        let rate = quota.map(|quota| quota.rate().tokens_and_period_us());
        Self {
            kind: overridden.into(),
            tokens: rate.map(|(tokens, _)| tokens),
            period: rate
                .map(|(_, period_us)| Plain(Duration::from_micros(period_us).as_secs_f64())),
            burst_capacity: quota.map(Quota::capacity),
        }
    }
}
