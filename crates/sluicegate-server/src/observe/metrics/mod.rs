//! Prometheus metrics. Labels never hold a key or another value that a client chose.

pub(crate) mod audit;
pub(crate) mod callers;
mod durations;
pub(crate) mod grpc;
pub(crate) mod history;
pub(crate) mod refunds;
pub(crate) mod resp;
mod snapshot;
mod store;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use arc_swap::ArcSwap;
use ipnet::IpNet;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;
use sluicegate::{
    Answer, AnyStore, Ask, Decision, OnError, Outcome, RuleSet, Tier, Together, Verdict,
};
use tokio::time::Instant;

use self::audit::AuditMetrics;
use self::callers::CallerMetrics;
use self::durations::Durations;
pub(crate) use self::durations::Observed;
use self::grpc::GrpcMetrics;
use self::history::HistoryMetrics;
use self::refunds::RefundMetrics;
use self::resp::RespMetrics;
use self::snapshot::SnapshotFigures;
use self::store::StoreFigures;
use crate::body_budget::BodyBudget;
use crate::observe::snapshot_status::Status;
use crate::observe::stats::{Counts, Decided};

/// All metrics of the service. Clones share their counters.
#[derive(Clone, Debug)]
pub(crate) struct Metrics {
    registry: Arc<Registry>,
    decisions: Family<DecisionLabels, Counter>,
    /// Counters of the rules in force, so that a decision looks no label up.
    rules: Arc<ArcSwap<RuleCounters>>,
    duration: Durations,
    denied: Counter,
    degraded: Family<DegradedLabels, Counter>,
    /// Counters of `degraded`, in the order of [`POLICIES`].
    by_policy: [Counter; 3],
    reloads: Family<ReloadLabels, Counter>,
    last_reload: Gauge<f64, AtomicU64>,
    rule_count: Gauge,
    rule_version: Gauge,
    connections: Gauge,
    connections_refused: Counter,
    body_bytes: Gauge,
    bodies_refused: Counter,
    /// Bytes of answers over HTTP/2 that clients have not read.
    pub(crate) unsent_bytes: Gauge,
    connections_evicted: Family<ListenerLabels, Counter>,
    auth_failures: Family<AuthLabels, Counter>,
    foreign_sites: Counter,
    contradictions: Counter,
    untrusted: Counter,
    proxies_refused: Family<ProxyLabels, Counter>,
    panics: Counter,
    too_many_rules: Counter,
    /// Violations recorded, written and dropped.
    pub(crate) audit: AuditMetrics,
    /// Callers of the data doors.
    pub(crate) callers: CallerMetrics,
    /// Figures of the history.
    pub(crate) history: HistoryMetrics,
    /// Envoy's rate limit protocol.
    pub(crate) grpc: GrpcMetrics,
    /// Refunds over the data doors.
    pub(crate) refunds: RefundMetrics,
    /// Redis protocol.
    pub(crate) resp: RespMetrics,
    snapshot: SnapshotFigures,
    live_watchers: Gauge,
    live_refused: Counter,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct DecisionLabels {
    /// The rule's id; `take` for buckets without a rule.
    rule_id: String,
    /// Key pattern of the rule, as the operator wrote it.
    rule: String,
    plan: String,
    mode: &'static str,
    outcome: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct DegradedLabels {
    /// Policy that answered in place of the store.
    on_error: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ReloadLabels {
    result: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ListenerLabels {
    listener: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct AuthLabels {
    reason: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ProxyLabels {
    reason: &'static str,
}

/// Counters of granted, denied and never, for every rule in force.
#[derive(Debug)]
struct RuleCounters {
    rules: RuleSet,
    by_rule: HashMap<u64, [Counter; 3]>,
    take: [Counter; 3],
    /// Labels to remove when another rule set takes over.
    labels: HashSet<DecisionLabels>,
}

impl Metrics {
    /// Metrics of a service with this store.
    pub(crate) fn new(store: Arc<AnyStore>) -> Self {
        let mut registry = Registry::with_prefix("sluicegate");
        let decisions = Family::default();
        let degraded = Family::<DegradedLabels, Counter>::default();
        let metrics = Self {
            registry: Arc::default(),
            rules: Arc::new(ArcSwap::from_pointee(RuleCounters::new(
                &decisions,
                &RuleSet::default(),
            ))),
            decisions,
            duration: Durations::default(),
            denied: Counter::default(),
            // Every policy exists from the start, so that rates are right from the first failure
            // on.
            by_policy: POLICIES.map(|policy| {
                degraded.get_or_create_owned(&DegradedLabels { on_error: policy.name() })
            }),
            degraded,
            reloads: Family::default(),
            last_reload: Gauge::default(),
            rule_count: Gauge::default(),
            rule_version: Gauge::default(),
            connections: Gauge::default(),
            connections_refused: Counter::default(),
            body_bytes: Gauge::default(),
            bodies_refused: Counter::default(),
            unsent_bytes: Gauge::default(),
            connections_evicted: Family::default(),
            auth_failures: Family::default(),
            foreign_sites: Counter::default(),
            contradictions: Counter::default(),
            untrusted: Counter::default(),
            proxies_refused: Family::default(),
            panics: Counter::default(),
            too_many_rules: Counter::default(),
            audit: AuditMetrics::default(),
            callers: CallerMetrics::default(),
            history: HistoryMetrics::default(),
            grpc: GrpcMetrics::default(),
            refunds: RefundMetrics::default(),
            resp: RespMetrics::default(),
            snapshot: SnapshotFigures::default(),
            live_watchers: Gauge::default(),
            live_refused: Counter::default(),
        };
        metrics.register(&mut registry);
        registry.register_collector(Box::new(StoreFigures::of(store)));
        Self { registry: Arc::new(registry), ..metrics }
    }

    fn register(&self, registry: &mut Registry) {
        let build = Info::new([("version", env!("CARGO_PKG_VERSION"))]);
        registry.register("build", "Version of the running build", build);
        let decisions = self.decisions.clone();
        registry.register("decisions", "Decisions by rule and outcome", decisions);
        let duration = self.duration.clone();
        registry.register("decision_duration_seconds", "Time from request to verdict", duration);
        registry.register("requests_denied", "Requests that were denied", self.denied.clone());
        let degraded = self.degraded.clone();
        registry.register("degraded", "Decisions in answers made without the store", degraded);
        registry.register("rules_reloads", "Reloads of the rules by result", self.reloads.clone());
        registry.register(
            "rules_last_reload_success_timestamp_seconds",
            "Unix time at which the rules in force were loaded",
            self.last_reload.clone(),
        );
        registry.register("rules", "Rules in force", self.rule_count.clone());
        registry.register("rules_version", "Version of the rules", self.rule_version.clone());
        registry.register("connections", "Open connections", self.connections.clone());
        registry.register(
            "connections_refused",
            "Connections closed at once because the limit was reached",
            self.connections_refused.clone(),
        );
        registry.register(
            "connections_evicted",
            "Idle connections of the largest network closed to make room, by listener",
            self.connections_evicted.clone(),
        );
        registry.register(
            "body_bytes",
            "Bytes of request bodies that have not arrived completely",
            self.body_bytes.clone(),
        );
        registry.register(
            "bodies_refused",
            "Request bodies refused because limits.bodies_bytes_max, or the part of a network, was reached",
            self.bodies_refused.clone(),
        );
        registry.register(
            "unsent_bytes",
            "Bytes of answers over HTTP/2 that clients have not read",
            self.unsent_bytes.clone(),
        );
        registry.register(
            "auth_failures",
            "Rejected requests to the administration, by reason",
            self.auth_failures.clone(),
        );
        registry.register(
            "foreign_sites_refused",
            "Rejected requests of pages of other sites",
            self.foreign_sites.clone(),
        );
        registry.register(
            "authorize_contradictions",
            "Requests of proxies denied because of contradictory headers",
            self.contradictions.clone(),
        );
        registry.register(
            "authorize_untrusted",
            "Requests to /v1/authorize whose user, plan or attributes were ignored because the peer is not trusted",
            self.untrusted.clone(),
        );
        registry.register(
            "proxy_protocol_refused",
            "Connections closed because of a missing or invalid PROXY protocol header, by reason",
            self.proxies_refused.clone(),
        );
        let panics = self.panics.clone();
        registry.register("panics", "Requests ended by a panic", panics);
        registry.register(
            "too_many_rules",
            "Requests denied because they meet more rules than limits.tiers_max, or take too much work to match",
            self.too_many_rules.clone(),
        );
        registry.register(
            "live_watchers",
            "Open streams of live events",
            self.live_watchers.clone(),
        );
        registry.register(
            "live_watchers_refused",
            "Streams of live events rejected because the limit was reached",
            self.live_refused.clone(),
        );
        self.audit.register(registry);
        self.callers.register(registry);
        self.history.register(registry);
        self.grpc.register(registry);
        self.refunds.register(registry);
        self.resp.register(registry);
        self.snapshot.register(registry);
    }

    /// Encodes all metrics in the OpenMetrics text format.
    pub(crate) fn encode(&self) -> String {
        self.snapshot.update_age();
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = encode(&mut text, &self.registry);
        text
    }

    /// Budget for unfinished bodies that these metrics show.
    pub(crate) fn body_budget(&self, bytes_max: usize, trusted: &[IpNet]) -> BodyBudget {
        let (held, refused) = (self.body_bytes.clone(), self.bodies_refused.clone());
        BodyBudget::new(bytes_max, trusted, held, refused)
    }

    /// Starts timing a decision.
    pub(crate) fn start(&self) -> Instant {
        Instant::now()
    }

    /// Counts a verdict.
    pub(crate) fn decided(&self, started: Instant, verdict: &Verdict) {
        self.answered(started, verdict.is_allowed());
        self.count(&self.rules.load(), verdict, verdict.is_allowed());
    }

    /// Counts decisions made in one step, except those of cost zero.
    pub(crate) fn decided_together(
        &self,
        started: Instant,
        asks: &[Ask<'_, '_>],
        together: &Together,
    ) {
        let is_allowed = together.is_allowed();
        if asks.iter().all(is_read) {
            return;
        }
        self.answered(started, is_allowed);
        let counters = self.rules.load();
        let answered = asks.iter().zip(together.answers());
        for (ask, answer) in answered.filter(|(ask, _)| !is_read(ask)) {
            match (ask, answer) {
                (_, Answer::Verdict(verdict)) => self.count(&counters, verdict, is_allowed),
                (Ask::Take { on_error, .. }, Answer::Decision(decision)) => {
                    if together.is_degraded() {
                        self.by_policy[*on_error as usize].inc();
                    }
                    if is_allowed || !decision.is_granted() {
                        counters.take[outcome_of(decision)].inc();
                    }
                }
                (Ask::Blocked, Answer::Decision(decision)) => {
                    counters.take[outcome_of(decision)].inc();
                }
                // A request is answered by a verdict, never by a single decision.
                (Ask::Request { .. }, Answer::Decision(_)) => {}
            }
        }
    }

    /// Counts a request and its duration.
    fn answered(&self, started: Instant, is_allowed: bool) {
        self.duration.observe(started.elapsed(), 1);
        if !is_allowed {
            self.denied.inc();
        }
    }

    fn count(&self, counters: &RuleCounters, verdict: &Verdict, is_allowed: bool) {
        for Tier { rule, decision, .. } in verdict.tiers() {
            if verdict.is_degraded() {
                self.by_policy[rule.on_error() as usize].inc();
            }
            // A tier that granted charged nothing if another tier denied.
            if decision.is_granted() && !is_allowed {
                continue;
            }
            // Not found while the rules are being reloaded: not counted.
            if let Some(counters) = counters.by_rule.get(&rule.rule_id()) {
                counters[outcome_of(decision)].inc();
            }
        }
    }

    /// Counts a decision on a bucket without a rule, and the policy that made it if the store did
    /// not answer.
    pub(crate) fn took(&self, started: Instant, decision: &Decision, degraded: Option<OnError>) {
        self.answered(started, decision.is_granted());
        self.rules.load().take[outcome_of(decision)].inc();
        if let Some(on_error) = degraded {
            self.by_policy[on_error as usize].inc();
        }
    }

    /// Counts consecutive decisions of the store on buckets without a rule.
    pub(crate) fn took_many(&self, started: Instant, taken: &Taken) {
        let count = taken.0.iter().sum();
        if count == 0 {
            return;
        }
        self.duration.observe(started.elapsed(), count);
        let [_, denied, never] = taken.0;
        self.denied.inc_by(denied + never);
        let counters = self.rules.load();
        for (counter, count) in counters.take.iter().zip(taken.0).filter(|(_, count)| *count > 0) {
            counter.inc_by(count);
        }
    }

    /// Decisions so far by each rule in force.
    pub(crate) fn decided_by_rule(&self) -> Decided {
        let counters = self.rules.load();
        let read = |[granted, denied, never]: &[Counter; 3]| Counts {
            granted: granted.get(),
            denied: denied.get(),
            never: never.get(),
        };
        let by_rule = counters.by_rule.iter().map(|(id, counters)| (Some(*id), read(counters)));
        let by_rule = by_rule.chain([(None, read(&counters.take))]).collect();
        Decided { rules: counters.rules.clone(), by_rule }
    }

    /// Histogram of decision times so far.
    pub(crate) fn durations(&self) -> Observed {
        self.duration.read()
    }

    /// Requests denied so far.
    pub(crate) fn denied(&self) -> u64 {
        self.denied.get()
    }

    /// Decisions made without the store so far.
    pub(crate) fn degraded(&self) -> u64 {
        self.by_policy.iter().map(Counter::get).sum()
    }

    /// Gauge of open streams of live events.
    pub(crate) fn live_watchers(&self) -> Gauge {
        self.live_watchers.clone()
    }

    /// Counter of rejected streams of live events.
    pub(crate) fn live_refused(&self) -> Counter {
        self.live_refused.clone()
    }

    /// Records the rules in force and their load time (Unix seconds).
    pub(crate) fn reloaded(&self, rules: &RuleSet, at: f64) {
        self.reloads.get_or_create(&ReloadLabels { result: "success" }).inc();
        self.last_reload.set(at);
        self.rule_count.set(rules.rules().len() as i64);
        self.rule_version.set(i64::try_from(rules.version()).unwrap_or(i64::MAX));
        let counters = Arc::new(RuleCounters::new(&self.decisions, rules));
        let before = self.rules.swap(Arc::clone(&counters));
        for labels in before.labels.difference(&counters.labels) {
            self.decisions.remove(labels);
        }
    }

    /// Records how up to date the rules in force are.
    pub(crate) fn snapshot(&self, status: &Status) {
        self.snapshot.set(status);
    }

    /// Counts a rule set that was rejected.
    pub(crate) fn reload_failed(&self) {
        self.reloads.get_or_create(&ReloadLabels { result: "failure" }).inc();
    }

    /// Counts an open connection until the guard is dropped.
    pub(crate) fn connection(&self) -> ConnectionGuard {
        self.connections.inc();
        ConnectionGuard(self.connections.clone())
    }

    /// Counts a rejected request to the administration.
    pub(crate) fn refused(&self, reason: &'static str) {
        self.auth_failures.get_or_create(&AuthLabels { reason }).inc();
    }

    /// Counts a rejected request of another site's page.
    pub(crate) fn foreign_site_refused(&self) {
        self.foreign_sites.inc();
    }

    /// Counts a proxy's request with contradictory headers.
    pub(crate) fn contradicted(&self) {
        self.contradictions.inc();
    }

    /// Counts a request whose configured headers were ignored because its peer is not trusted.
    pub(crate) fn untrusted(&self) {
        self.untrusted.inc();
    }

    /// Counts a connection without a valid PROXY protocol header.
    pub(crate) fn proxy_refused(&self, reason: &'static str) {
        self.proxies_refused.get_or_create(&ProxyLabels { reason }).inc();
    }

    /// Counts a request that was denied because it meets too many rules.
    pub(crate) fn met_too_many_rules(&self) {
        self.too_many_rules.inc();
    }

    /// Counts a request ended by a panic.
    pub(crate) fn panicked(&self) {
        self.panics.inc();
    }

    /// Counts a connection closed because the limit was reached.
    pub(crate) fn connection_refused(&self) {
        self.connections_refused.inc();
    }

    /// Counter of evicted connections of a listener.
    pub(crate) fn evictions(&self, listener: &'static str) -> Counter {
        self.connections_evicted.get_or_create_owned(&ListenerLabels { listener })
    }
}

impl RuleCounters {
    fn new(decisions: &Family<DecisionLabels, Counter>, rules: &RuleSet) -> Self {
        let mut all = HashSet::new();
        let mut counters = |rule_id: &str, rule: &str, plan: &str, mode: &'static str| {
            OUTCOMES.map(|outcome| {
                let (rule_id, rule, plan) = (rule_id.into(), rule.into(), plan.into());
                let labels = DecisionLabels { rule_id, rule, plan, mode, outcome };
                all.insert(labels.clone());
                decisions.get_or_create_owned(&labels)
            })
        };
        let by_rule = rules
            .rules()
            .iter()
            .map(|rule| {
                let (id, pattern) = (rule.rule_id(), rule.key_pattern().as_str());
                let plan = rule.plan().unwrap_or_default();
                (id, counters(&id.to_string(), pattern, plan, rule.mode().name()))
            })
            .collect();
        let take = counters("take", "", "", "enforce");
        Self { rules: rules.clone(), by_rule, take, labels: all }
    }
}

/// Policies in the order of their numbers.
const POLICIES: [OnError; 3] = [OnError::Local, OnError::Allow, OnError::Deny];

const OUTCOMES: [&str; 3] = ["granted", "denied", "never"];

/// The position of a decision's outcome in [`OUTCOMES`].
fn outcome_of(decision: &Decision) -> usize {
    match decision.outcome {
        Outcome::Granted { .. } => 0,
        Outcome::Denied { .. } => 1,
        Outcome::Never => 2,
    }
}

/// Decisions to be counted together, in the order of [`OUTCOMES`].
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Taken([u64; 3]);

impl Taken {
    /// Counts one.
    #[inline]
    pub(crate) fn note(&mut self, decision: &Decision) {
        self.0[outcome_of(decision)] += 1;
    }
}

/// Returns whether this only reads the bucket (cost zero).
fn is_read(ask: &Ask<'_, '_>) -> bool {
    match ask {
        Ask::Request { request, .. } => request.get_cost() == 0,
        Ask::Take { cost, .. } => *cost == 0,
        Ask::Blocked => false,
    }
}

/// Counts the connection as closed when dropped.
#[derive(Debug)]
pub(crate) struct ConnectionGuard(Gauge);

impl Drop for ConnectionGuard {
    fn drop(&mut self) {
        self.0.dec();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_stand_in_their_order() {
        for (position, policy) in POLICIES.into_iter().enumerate() {
            assert_eq!(policy as usize, position);
        }
    }
}
