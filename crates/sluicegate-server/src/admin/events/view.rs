//! What the events say.

use serde::Serialize;
use sluicegate::Scope;
use utoipa::ToSchema;

use crate::admin::stats::{AuditFigureView, DecisionCounts};
use crate::observe::live::{self, Tick};
use crate::observe::stats::Counts;
use crate::time::Timestamp;
use crate::web::openapi::values::{ModeName, ScopeName};
use crate::web::scalar::Plain;

/// What happened in the last seconds: at most 120, oldest first, without `limited` and `shared`, and with fewer
/// `rules`.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes an event that is put together of what is written already")]
pub(crate) struct LiveHistory {
    /// Milliseconds from tick to tick.
    every_ms: u64,
    ticks: Vec<LiveTick<'static>>,
}

/// What happened in one second, in this process.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct LiveTick<'a> {
    /// When it ended.
    #[schema(value_type = String, format = DateTime)]
    now: Timestamp,
    /// How long it was: what the counts are of.
    seconds: f64,
    requests: LiveRequests,
    /// What enforced rules decided, by scope: all scopes, always.
    tiers: Vec<LiveTier>,
    /// What single rules decided, of those that decided anything: the 50 that decided most, first the most.
    rules: Vec<LiveRule<'a>>,
    /// What the others decided.
    other_rules: DecisionCounts,
    /// What was decided on buckets without a rule: `/v1/take`.
    take: DecisionCounts,
    /// Whom rules denied most in the last minute, first the most, and then whom they would have in shadow mode: 20
    /// at most.
    limited: Vec<LimitedSubject<'a>>,
    /// The buckets that everybody shares: those of active rules without placeholders; the first 20 by `rule_id`.
    shared: Vec<SharedTier<'a>>,
    latency: LiveLatency,
    /// Decisions that were made without the store.
    degraded: u64,
    store: LiveStore,
    database: LiveDatabase,
    /// Why what is in the source of the rules now was refused, if it was: then the last good set stays in force.
    rules_refused: Option<&'a str>,
    /// What became of violations since the start.
    audit: AuditFigureView,
}

/// What became of requests, of rules and of `/v1/take`, at every door. One is several decisions where several rules
/// apply.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct LiveRequests {
    allowed: u64,
    denied: u64,
}

/// What enforced rules of a scope decided.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct LiveTier {
    #[schema(value_type = ScopeName)]
    scope: &'static str,
    granted: u64,
    denied: u64,
    /// The cost was more than the bucket can hold, or the subject is blocked.
    never: u64,
}

/// What a rule decided.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct LiveRule<'a> {
    rule_id: u64,
    key_pattern: &'a str,
    #[schema(value_type = ScopeName)]
    scope: &'static str,
    /// The plan it is for; null for every plan.
    plan: Option<&'a str>,
    #[schema(value_type = ModeName)]
    mode: &'static str,
    granted: u64,
    denied: u64,
    /// The cost was more than the bucket can hold, or the subject is blocked.
    never: u64,
}

/// Somebody whom a rule denied, or would have in shadow mode. What is told of requests is what violations record.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct LimitedSubject<'a> {
    rule_id: u64,
    key_pattern: &'a str,
    #[schema(value_type = ScopeName)]
    scope: &'static str,
    /// The plan the rule is for; null for every plan.
    plan: Option<&'a str>,
    #[schema(value_type = ModeName)]
    mode: &'static str,
    bucket_key: &'a str,
    /// Whose bucket it is: the value of the rule's subject attribute; without one, its key pattern.
    subject: &'a str,
    /// What the first of those requests was for, and by whom.
    endpoint: Option<&'a str>,
    user_id: Option<&'a str>,
    ip_address: Option<&'a str>,
    /// How often in the last minute, never more than it was.
    denied: u64,
    #[schema(value_type = String, format = DateTime)]
    last_at: Timestamp,
}

/// A bucket that everybody shares. Its figures are null if the store did not answer.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SharedTier<'a> {
    rule_id: u64,
    key_pattern: &'a str,
    #[schema(value_type = ScopeName)]
    scope: &'static str,
    /// The plan the rule is for; null for every plan.
    plan: Option<&'a str>,
    #[schema(value_type = ModeName)]
    mode: &'static str,
    /// How fast it fills: what may be used of it in the long run.
    #[schema(value_type = f64)]
    rate_per_second: Plain,
    /// The most it holds.
    limit: Option<u64>,
    /// What is left in it.
    remaining: Option<u64>,
    /// How much of it is spent: 0 if it is full, 1 if it is empty.
    utilisation: Option<f64>,
}

/// How long decisions took.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct LiveLatency {
    /// How many there were.
    count: u64,
    /// Half of them took no longer, in microseconds: a bound of the histogram in `/metrics`, whose last, a second,
    /// also stands for more. Null if there were none.
    p50_us: Option<u64>,
    /// Of a hundred, all but one took no longer.
    p99_us: Option<u64>,
}

/// How the store fares.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct LiveStore {
    #[schema(value_type = StoreKind)]
    kind: &'static str,
    /// Something else answers in its place.
    is_in_trouble: bool,
}

/// How the database fares.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct LiveDatabase {
    /// It does not answer.
    is_in_trouble: bool,
}

/// A kind of store.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[expect(dead_code, reason = "describes a value and is never made")]
enum StoreKind {
    Memory,
    Redis,
}

impl<'a> LiveTick<'a> {
    pub(super) fn new(tick: &'a Tick) -> Self {
        let tiers = Scope::ALL.into_iter().zip(tick.tiers);
        let troubles = &tick.troubles;
        Self {
            now: tick.now,
            seconds: tick.length.as_millis() as f64 / 1000.0,
            requests: LiveRequests { allowed: tick.requests.allowed, denied: tick.requests.denied },
            tiers: tiers.map(|(scope, counts)| LiveTier::new(scope, counts)).collect(),
            rules: tick.rules.iter().map(LiveRule::new).collect(),
            other_rules: tick.other_rules.into(),
            take: tick.take.into(),
            limited: tick.limited.iter().map(LimitedSubject::new).collect(),
            shared: tick.shared.iter().map(SharedTier::new).collect(),
            latency: LiveLatency {
                count: tick.latency.count,
                p50_us: tick.latency.p50_us,
                p99_us: tick.latency.p99_us,
            },
            degraded: tick.degraded,
            store: LiveStore { kind: troubles.store, is_in_trouble: troubles.is_store_in_trouble },
            database: LiveDatabase { is_in_trouble: troubles.is_database_in_trouble },
            rules_refused: troubles.rules_refused.as_deref(),
            audit: AuditFigureView::new(tick.audit),
        }
    }

    /// As JSON, in one line.
    pub(super) fn json(&self) -> String {
        // Numbers and texts can all be written.
        serde_json::to_string(self).unwrap_or_default()
    }
}

impl LiveTier {
    fn new(scope: Scope, counts: Counts) -> Self {
        let Counts { granted, denied, never } = counts;
        Self { scope: scope.name(), granted, denied, never }
    }
}

impl<'a> LiveRule<'a> {
    fn new(live::RuleCounts { rule, counts }: &'a live::RuleCounts) -> Self {
        let Counts { granted, denied, never } = *counts;
        Self {
            rule_id: rule.rule_id,
            key_pattern: &rule.key_pattern,
            scope: rule.scope.name(),
            plan: rule.plan.as_deref(),
            mode: rule.mode.name(),
            granted,
            denied,
            never,
        }
    }
}

impl<'a> LimitedSubject<'a> {
    fn new(subject: &'a live::LimitedSubject) -> Self {
        let live::LimitedSubject { rule, who, denied, last_at } = subject;
        Self {
            rule_id: rule.rule_id,
            key_pattern: &rule.key_pattern,
            scope: rule.scope.name(),
            plan: rule.plan.as_deref(),
            mode: rule.mode.name(),
            bucket_key: &who.bucket_key,
            subject: &who.subject,
            endpoint: who.endpoint.as_deref(),
            user_id: who.user_id.as_deref(),
            ip_address: who.ip_address.as_deref(),
            denied: *denied,
            last_at: *last_at,
        }
    }
}

impl<'a> SharedTier<'a> {
    fn new(live::SharedTier { rule, rate_per_second, figures }: &'a live::SharedTier) -> Self {
        let spent = |(limit, remaining): (u64, u64)| {
            limit.saturating_sub(remaining) as f64 / limit.max(1) as f64
        };
        Self {
            rule_id: rule.rule_id,
            key_pattern: &rule.key_pattern,
            scope: rule.scope.name(),
            plan: rule.plan.as_deref(),
            mode: rule.mode.name(),
            rate_per_second: Plain(*rate_per_second),
            limit: figures.map(|(limit, _)| limit),
            remaining: figures.map(|(_, remaining)| remaining),
            utilisation: figures.map(spent),
        }
    }
}
