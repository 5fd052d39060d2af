//! `/v1/rules/preview`: replays recent requests against a rule.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::{Request as HttpRequest, StatusCode};
use axum::routing::post;
use axum::{Json, Router};
use serde::{Deserialize, Serialize};
use sluicegate::{Mode, Rule, RuleSet};
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;
use utoipa::{OpenApi, ToSchema};

use crate::app::App;
use crate::json::rule::Columns;
use crate::json::{Object, Whole};
use crate::observe::recent::{self, Figures, RecentRequests, replay};
use crate::time::Timestamp;
use crate::web::access::Reader;
use crate::web::body;
use crate::web::openapi::parts::Wrong;
use crate::web::problem::Problem;
use crate::web::query::Query;

/// A rule to be evaluated on recent requests.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(
    as = Preview,
    example = json!({"rule": {"key_pattern": "user:{user_id}", "rate_per_second": 5}, "replaces": 1})
)]
#[serde(deny_unknown_fields)]
struct PreviewBody<'a> {
    /// The rule.
    #[serde(borrow)]
    #[schema(value_type = Columns)]
    rule: Object<Columns<'a>>,
    /// The rule in force whose place it would take.
    #[schema(value_type = Option<u64>, minimum = 1)]
    replaces: Option<Whole>,
}

/// Decisions of the rule alone on recent requests: buckets start full, and denials by other rules are ignored.
#[derive(Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct PreviewAnswer {
    /// Number of requests replayed.
    requests: u64,
    /// Number of them that any rule denied when they arrived.
    were_denied: u64,
    /// Number of requests not recorded since the process started: too long, or too many at once.
    left_out: u64,
    /// Time of the first request; null if there are none.
    #[schema(value_type = Option<String>, format = DateTime)]
    from: Option<Timestamp>,
    /// Time of the last request; null if there are none.
    #[schema(value_type = Option<String>, format = DateTime)]
    to: Option<Timestamp>,
    #[serde(flatten)]
    figures: Figures,
    /// The same figures for the rule in `replaces`; null if there is none.
    before: Option<Figures>,
    /// Limitation of these figures, as text; null if there is none.
    note: Option<&'static str>,
}

#[derive(OpenApi)]
#[openapi(paths(preview))]
struct Document;

/// Routes of `/v1/rules/preview`.
pub(crate) fn routes() -> Router<Arc<App>> {
    Router::new().route("/v1/rules/preview", post(preview))
}

/// OpenAPI document of `/v1/rules/preview`.
pub(crate) fn document() -> utoipa::openapi::OpenApi {
    Document::openapi()
}

/// Replays recent requests against a rule, as if it were active and enforced. Spends no tokens and changes no rule.
#[utoipa::path(
    post,
    operation_id = "preview_rule",
    path = "/v1/rules/preview",
    request_body = PreviewBody,
    responses(
        (status = 200, description = "Decisions of the rule on recent requests", body = PreviewAnswer),
        Wrong,
        (status = 503, description = "Another preview is running, or the process is shutting down", body = Problem,
            content_type = "application/problem+json"),
    ),
    security(("token" = []))
)]
async fn preview(
    _: Reader,
    State(app): State<Arc<App>>,
    query: Query,
    request: HttpRequest<Body>,
) -> Result<Json<PreviewAnswer>, Problem> {
    query.only(&[])?;
    let Ok(_turn) = PREVIEWS.try_acquire() else {
        let detail = "another preview is running: try again";
        return Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, detail));
    };
    let limits = &app.limits;
    let bytes = body::read(&app, request, limits.body_bytes_max).await?;
    let Object(body): Object<PreviewBody<'_>> = body::parse(&bytes)?;
    let rules = app.limiter.rules();
    let replaced = body.replaces.map(|Whole(rule_id)| {
        let none = || Problem::field("replaces", "there is no such rule");
        rules.get(rule_id).cloned().ok_or_else(none)
    });
    let candidate = Candidate::new(&body.rule.0, &rules, replaced.transpose()?)?;
    // Off the runtime's threads: replaying tens of thousands of requests would delay other answers.
    let recent = app.recent.clone();
    let answer = spawn_blocking(move || candidate.preview(&recent.list())).await;
    let ending = |_| Problem::new(StatusCode::SERVICE_UNAVAILABLE, "the process is shutting down");
    answer.map(Json).map_err(ending)
}

/// Allows one preview at a time: each keeps a processor busy, and checks have priority.
static PREVIEWS: Semaphore = Semaphore::const_new(1);

/// The rule to try, the rules it is tried among, and the rule it replaces.
struct Candidate {
    rule: Rule,
    among: RuleSet,
    replaced: Option<(Rule, RuleSet)>,
}

impl Candidate {
    fn new(
        columns: &Columns<'_>,
        rules: &RuleSet,
        replaced: Option<Rule>,
    ) -> Result<Self, Problem> {
        let wrong = |wrong: Vec<_>| Problem::fields(&wrong).inside("rule");
        let own_id = columns.rule_id().or(replaced.as_ref().map(Rule::rule_id));
        let spec = columns.rule(own_id.unwrap_or_default()).map_err(wrong)?;
        let rule = in_effect(spec.build().map_err(wrong)?);
        let among = with(rules, &rule, replaced.as_ref());
        let replaced = replaced.map(in_effect).map(|replaced| {
            let among = with(rules, &replaced, None);
            (replaced, among)
        });
        Ok(Self { rule, among, replaced })
    }

    fn preview(&self, remembered: &RecentRequests) -> PreviewAnswer {
        let RecentRequests { requests, left_out, note } = remembered;
        let time_of = |request: Option<&recent::RecentRequest>| {
            request.map(|request| recent::timestamp(request.at()))
        };
        let before = self.replaced.as_ref();
        PreviewAnswer {
            requests: requests.len() as u64,
            were_denied: requests.iter().filter(|request| !request.was_allowed()).count() as u64,
            left_out: *left_out,
            from: time_of(requests.first()),
            to: time_of(requests.last()),
            figures: replay(&self.rule, &self.among, requests),
            before: before.map(|(rule, among)| replay(rule, among, requests)),
            note: *note,
        }
    }
}

/// The rule as active and enforced, so that the preview counts denials of a rule that is switched off or in shadow
/// mode. An unlimited rule stays unlimited.
fn in_effect(rule: Rule) -> Rule {
    let mode = if rule.mode() == Mode::Unlimited { Mode::Unlimited } else { Mode::Enforce };
    rule.with_is_active(true).with_mode(mode)
}

/// The rules in force plus `rule`, without `replaced` and without any rule that `rule` conflicts with.
fn with(rules: &RuleSet, rule: &Rule, replaced: Option<&Rule>) -> RuleSet {
    let stays = |other: &&Rule| {
        other.rule_id() != rule.rule_id()
            && Some(other.rule_id()) != replaced.map(Rule::rule_id)
            && (other.key_pattern(), other.plan()) != (rule.key_pattern(), rule.plan())
    };
    let others = rules.rules().iter().filter(stays).cloned();
    let set = RuleSet::bounded(others.chain([rule.clone()]).collect(), rules.tiers_max());
    // Conflicts were removed above: the only possible errors are too many rules.
    let set = set.or_else(|_| RuleSet::new(vec![rule.clone()])).unwrap_or_default();
    set.with_overrides(rules.overrides().clone())
}
