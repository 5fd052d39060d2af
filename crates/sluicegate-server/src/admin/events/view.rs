//! Data of the events as JSON.

use serde::Serialize;
use sluicegate::{AnyStore, Scope};
use utoipa::openapi::schema::{ArrayBuilder, Object, ObjectBuilder, Schema, Type};
use utoipa::openapi::{Ref, RefOr};
use utoipa::{PartialSchema, ToSchema};

use crate::admin::stats::{AuditFigureView, DecisionCounts};
use crate::json::Plain;
use crate::json::schema::{ModeName, ScopeName};
use crate::observe::live::{self, Tick};
use crate::observe::stats::Counts;
use crate::time::Timestamp;

/// Schema of the first event, which is assembled from serialized ticks.
pub(crate) struct LiveHistory;

impl PartialSchema for LiveHistory {
    fn schema() -> RefOr<Schema> {
        let RefOr::T(Schema::Object(mut every_ms)) = u64::schema() else { return u64::schema() };
        every_ms.description = Some("Milliseconds between ticks.".into());
        let ticks = ArrayBuilder::new().items(Ref::from_schema_name(LiveTick::name()));
        ObjectBuilder::new()
            .description(Some(
                "Figures of the last seconds: at most 120 ticks, oldest first, without `limited` and `shared`, and \
                 with fewer `rules`.",
            ))
            .property("every_ms", every_ms)
            .required("every_ms")
            .property("ticks", ticks)
            .required("ticks")
            .into()
    }
}

impl ToSchema for LiveHistory {}

/// Figures of one second in this process.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct LiveTick<'a> {
    /// End of the second.
    #[schema(value_type = String, format = DateTime)]
    now: Timestamp,
    /// Time in seconds that the counts cover.
    seconds: f64,
    requests: LiveRequests,
    /// Decisions of enforced rules by scope. Every scope is present.
    tiers: Vec<LiveTier>,
    /// Decisions of the 50 rules with the most decisions, in descending order. Rules without decisions are omitted.
    rules: Vec<LiveRule<'a>>,
    /// Decisions of all other rules.
    other_rules: DecisionCounts,
    /// Decisions on buckets without a rule (`/v1/take`).
    take: DecisionCounts,
    /// Subjects denied most in the last minute, in descending order, then subjects that rules in shadow mode would have
    /// denied. At most 20.
    limited: Vec<LimitedSubject<'a>>,
    /// Shared buckets: those of active rules without placeholders. The first 20 by `rule_id`.
    shared: Vec<SharedTier<'a>>,
    latency: LiveLatency,
    /// Number of decisions made without the store.
    degraded: u64,
    store: LiveStore,
    database: LiveDatabase,
    /// Reason why the latest version of the rules was rejected, while the last valid set stays in force; null if it was
    /// not rejected.
    rules_refused: Option<&'a str>,
    /// Counts of violations since the process started.
    audit: AuditFigureView,
}

/// Number of requests by outcome, over every protocol, `/v1/take` included. A request counts once here, however many
/// rules decide on it.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct LiveRequests {
    allowed: u64,
    denied: u64,
}

/// Decisions of the enforced rules of a scope.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct LiveTier {
    #[schema(value_type = ScopeName)]
    scope: &'static str,
    granted: u64,
    denied: u64,
    /// Denials that no waiting can lift: the cost exceeds the bucket's capacity, or the subject is blocked.
    never: u64,
}

/// Decisions of a rule.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct LiveRule<'a> {
    rule_id: u64,
    key_pattern: &'a str,
    #[schema(value_type = ScopeName)]
    scope: &'static str,
    /// Plan of the rule; null if it applies to every plan.
    plan: Option<&'a str>,
    #[schema(value_type = ModeName)]
    mode: &'static str,
    granted: u64,
    denied: u64,
    /// Denials that no waiting can lift: the cost exceeds the bucket's capacity, or the subject is blocked.
    never: u64,
}

/// Subject that a rule denied, or would have denied in shadow mode. Ids and addresses are pseudonymised as in
/// violations.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct LimitedSubject<'a> {
    rule_id: u64,
    key_pattern: &'a str,
    #[schema(value_type = ScopeName)]
    scope: &'static str,
    /// Plan of the rule; null if it applies to every plan.
    plan: Option<&'a str>,
    #[schema(value_type = ModeName)]
    mode: &'static str,
    bucket_key: &'a str,
    /// Value of the rule's subject attribute; the key pattern if the rule has none.
    subject: &'a str,
    /// Endpoint of the first of these requests; null if it had none. The same holds for `user_id` and `ip_address`.
    endpoint: Option<&'a str>,
    user_id: Option<&'a str>,
    ip_address: Option<&'a str>,
    /// Number of denials in the last minute; a lower bound.
    denied: u64,
    #[schema(value_type = String, format = DateTime)]
    last_at: Timestamp,
}

/// Bucket shared by all requests. `limit`, `remaining` and `utilisation` are null if the store did not answer.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SharedTier<'a> {
    rule_id: u64,
    key_pattern: &'a str,
    #[schema(value_type = ScopeName)]
    scope: &'static str,
    /// Plan of the rule; null if it applies to every plan.
    plan: Option<&'a str>,
    #[schema(value_type = ModeName)]
    mode: &'static str,
    /// Refill rate in tokens per second.
    #[schema(value_type = f64)]
    rate_per_second: Plain,
    /// Capacity in tokens.
    limit: Option<u64>,
    /// Tokens left.
    remaining: Option<u64>,
    /// Share of the tokens that is spent: 0 if the bucket is full, 1 if it is empty.
    utilisation: Option<f64>,
}

/// Durations of decisions.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct LiveLatency {
    /// Number of decisions.
    count: u64,
    /// Median in microseconds, rounded up to a bucket bound of the histogram in `/metrics`; the last bound, one second,
    /// also stands for longer times. Null if there were no decisions.
    p50_us: Option<u64>,
    /// 99th percentile in microseconds, likewise.
    p99_us: Option<u64>,
}

/// State of the store.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct LiveStore {
    #[schema(schema_with = store_kind)]
    kind: &'static str,
    /// True if the store is unavailable and its fallback answers.
    is_in_trouble: bool,
}

/// State of the database.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct LiveDatabase {
    /// True if the database does not answer.
    is_in_trouble: bool,
}

/// Names of the kinds of stores.
fn store_kind() -> Object {
    let kinds = Some(AnyStore::KINDS);
    ObjectBuilder::new().schema_type(Type::String).enum_values(kinds).build()
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
        // Serializing numbers and strings cannot fail.
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
        let live::LimitedSubject { rule, bucket, denied, last_at } = subject;
        Self {
            rule_id: rule.rule_id,
            key_pattern: &rule.key_pattern,
            scope: rule.scope.name(),
            plan: rule.plan.as_deref(),
            mode: rule.mode.name(),
            bucket_key: &bucket.bucket_key,
            subject: &bucket.subject,
            endpoint: bucket.endpoint.as_deref(),
            user_id: bucket.user_id.as_deref(),
            ip_address: bucket.ip_address.as_deref(),
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
