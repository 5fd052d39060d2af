//! `/v1/stats`: decisions by rule in the last minutes.

use std::sync::Arc;

use axum::extract::State;
use axum::routing::get;
use axum::{Json, Router};
use serde::Serialize;
use sluicegate::RuleSet;
use utoipa::{OpenApi, ToSchema};

use crate::app::App;
use crate::json::schema::ModeName;
use crate::observe::metrics::audit::AuditFigures;
use crate::observe::stats::{Counts, MINUTES, RuleStats};
use crate::time::Timestamp;
use crate::web::access::Reader;
use crate::web::openapi::parts::Wrong;
use crate::web::problem::Problem;
use crate::web::query::Query;

/// Decisions of this process in the last minutes.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Stats)]
pub(crate) struct StatsView {
    /// Time of the answer.
    #[schema(value_type = String, format = DateTime)]
    now: Timestamp,
    /// Number of minutes covered.
    minutes: usize,
    /// Every rule in force, by `rule_id`.
    rules: Vec<RuleDecisions>,
    /// Decisions on buckets without a rule (`/v1/take`).
    take: Decisions,
    /// Counts of violations since the process started.
    audit: AuditFigureView,
}

/// A rule and its decisions.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RuleDecisions {
    rule_id: u64,
    key_pattern: String,
    /// Plan of the rule; null if it applies to every plan.
    plan: Option<String>,
    /// `enforce`, `shadow` or `unlimited`.
    #[schema(value_type = ModeName)]
    mode: &'static str,
    #[serde(flatten)]
    decisions: Decisions,
}

/// Decisions in the last minutes.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Decisions {
    /// Decisions in all minutes covered.
    #[serde(flatten)]
    all: DecisionCounts,
    /// Decisions in the last minute.
    last_minute: DecisionCounts,
    /// Decisions in the last five minutes.
    last_5_minutes: DecisionCounts,
    /// Decisions in each minute, counted back from now; oldest first.
    per_minute: Vec<DecisionCounts>,
}

/// Number of decisions by outcome.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
pub(crate) struct DecisionCounts {
    granted: u64,
    denied: u64,
    /// Denials that no waiting can lift: the cost exceeds the bucket's capacity, or the subject is blocked.
    never: u64,
}

/// Counts of violations: every violation noted is written, dropped or waiting.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AuditFigureView {
    noted: u64,
    written: u64,
    dropped: u64,
    waiting: u64,
}

#[derive(OpenApi)]
#[openapi(paths(show))]
struct Document;

/// Routes of `/v1/stats`.
pub(crate) fn routes() -> Router<Arc<App>> {
    Router::new().route("/v1/stats", get(show))
}

/// OpenAPI document of `/v1/stats`.
pub(crate) fn document() -> utoipa::openapi::OpenApi {
    Document::openapi()
}

/// Counts the decisions of each rule in the last minutes, in this process.
#[utoipa::path(
    get,
    operation_id = "get_stats",
    path = "/v1/stats",
    responses(
        (status = 200, description = "Decisions by rule", body = StatsView),
        Wrong,
    ),
    security(("token" = []))
)]
async fn show(
    _: Reader,
    State(app): State<Arc<App>>,
    query: Query,
) -> Result<Json<StatsView>, Problem> {
    query.only(&[])?;
    let (rules, report) = (app.limiter.rules(), app.stats.report(&app.metrics));
    let take = report.last().map(|stats| Decisions::new(&stats.per_minute));
    Ok(Json(StatsView {
        now: Timestamp::now(),
        minutes: MINUTES,
        rules: report.iter().filter_map(|stats| RuleDecisions::new(&rules, stats)).collect(),
        take: take.unwrap_or_else(|| Decisions::new(&[])),
        audit: AuditFigureView::new(app.metrics.audit.figures()),
    }))
}

impl RuleDecisions {
    /// `None` for buckets without a rule, and for a rule that is no longer in force.
    fn new(rules: &RuleSet, stats: &RuleStats) -> Option<Self> {
        let rule = rules.get(stats.rule_id?)?;
        Some(Self {
            rule_id: rule.rule_id(),
            key_pattern: rule.key_pattern().as_str().into(),
            plan: rule.plan().map(Into::into),
            mode: rule.mode().name(),
            decisions: Decisions::new(&stats.per_minute),
        })
    }
}

impl Decisions {
    fn new(per_minute: &[Counts]) -> Self {
        let last = |minutes: usize| {
            let mut sum = Counts::default();
            for counts in per_minute.iter().rev().take(minutes) {
                sum += *counts;
            }
            sum.into()
        };
        Self {
            all: last(MINUTES),
            last_minute: last(1),
            last_5_minutes: last(5),
            per_minute: per_minute.iter().map(|counts| (*counts).into()).collect(),
        }
    }
}

impl From<Counts> for DecisionCounts {
    fn from(Counts { granted, denied, never }: Counts) -> Self {
        Self { granted, denied, never }
    }
}

impl AuditFigureView {
    pub(crate) fn new(figures: AuditFigures) -> Self {
        let AuditFigures { noted, written, dropped } = figures;
        Self { noted, written, dropped, waiting: figures.waiting() }
    }
}
