//! Makes ticks from the differences of counters.

use std::cmp::Reverse;
use std::sync::OnceLock;

use sluicegate::{AnyStore, Limiter, Mode, RuleSet, Scope};
use tokio::time::Instant;

use super::most_limited::MostLimited;
use super::tick::RULES_MAX;
use super::{Latency, Requests, RuleCounts, Tick, TierCounts, Troubles, shared_tiers};
use crate::observe::metrics::{Metrics, Observed};
use crate::observe::snapshot_status::SharedStatus;
use crate::observe::stats::{Counts, LastDecided, RuleId};
use crate::store;
use crate::time::Timestamp;

/// Maximum bytes of the reason why rules were rejected: the whole report is with the rules.
const REFUSED_BYTES_MAX: usize = 2048;

/// Source of ticks.
pub(super) trait Source: Send {
    /// Starts counting.
    fn begin(&mut self, now: Instant);

    /// Figures since the last tick. With `limited`, also the most denied subjects and the levels of
    /// shared buckets.
    fn tick(
        &mut self,
        now: Instant,
        limited: Option<&MostLimited>,
    ) -> impl Future<Output = Tick> + Send;
}

/// Sources of the figures in a tick.
#[derive(Clone, Debug)]
pub(crate) struct Sources {
    /// Buckets of shared tiers, and the rules in force.
    pub limiter: Limiter<AnyStore>,
    /// Counters of decisions, durations and the audit.
    pub metrics: Metrics,
    /// Status of the rules in force.
    pub status: SharedStatus,
}

/// Samples the counters of a service and keeps their last values.
#[derive(Debug)]
pub(super) struct Sampler {
    sources: Sources,
    at: Instant,
    decided: LastDecided,
    durations: Observed,
    denied: u64,
    degraded: u64,
}

/// Decisions by rule.
#[derive(Debug, Default)]
pub(super) struct ByRule {
    pub(super) tiers: TierCounts,
    pub(super) rules: Vec<RuleCounts>,
    pub(super) other_rules: Counts,
    pub(super) take: Counts,
}

impl Sampler {
    pub(super) fn new(sources: Sources) -> Self {
        let (decided, durations) = (LastDecided::default(), sources.metrics.durations());
        Self { sources, at: Instant::now(), decided, durations, denied: 0, degraded: 0 }
    }

    fn by_rule(&mut self) -> ByRule {
        let decided = self.sources.metrics.decided_by_rule();
        let added = self.decided.added(&decided, &self.decided.gone(&decided.rules));
        let by_rule = ByRule::new(&decided.rules, added);
        self.decided.replace(decided);
        by_rule
    }

    fn latency(&mut self) -> Latency {
        let durations = self.sources.metrics.durations();
        let added = durations.since(&self.durations);
        self.durations = durations;
        Latency {
            count: added.count(),
            p50_us: added.percentile_us(50),
            p99_us: added.percentile_us(99),
        }
    }
}

impl Source for Sampler {
    fn begin(&mut self, now: Instant) {
        let metrics = &self.sources.metrics;
        self.at = now;
        self.decided.replace(metrics.decided_by_rule());
        self.durations = metrics.durations();
        self.denied = metrics.denied();
        self.degraded = metrics.degraded();
    }

    async fn tick(&mut self, now: Instant, limited: Option<&MostLimited>) -> Tick {
        // Before any await, because the counts are read now.
        let ended = Timestamp::now();
        let (by_rule, latency, sources) = (self.by_rule(), self.latency(), &self.sources);
        let (denied, degraded) = (sources.metrics.denied(), sources.metrics.degraded());
        let requests = Requests::new(latency.count, denied - self.denied);
        let shared = match limited {
            Some(_) => shared_tiers::read(&sources.limiter).await,
            None => Vec::new(),
        };
        let tick = Tick {
            number: 0,
            now: ended,
            length: now - self.at,
            requests,
            tiers: by_rule.tiers,
            rules: by_rule.rules,
            other_rules: by_rule.other_rules,
            take: by_rule.take,
            limited: limited.map_or_else(Vec::new, |limited| limited.top(&sources.limiter.rules())),
            shared,
            latency,
            degraded: degraded - self.degraded,
            troubles: Troubles::of(sources),
            audit: sources.metrics.audit.figures(),
            text: OnceLock::new(),
        };
        (self.at, self.denied, self.degraded) = (now, denied, degraded);
        tick
    }
}

impl ByRule {
    /// Groups decisions by rules of this set.
    pub(super) fn new(rules: &RuleSet, mut decided: Vec<(RuleId, Counts)>) -> Self {
        let mut by_rule = Self::default();
        decided.sort_unstable_by_key(|(rule_id, counts)| (Reverse(counts.all()), *rule_id));
        for (rule_id, counts) in decided {
            let Some(rule_id) = rule_id else {
                by_rule.take = counts;
                continue;
            };
            let Some(rule) = rules.get(rule_id) else { continue };
            if rule.mode() == Mode::Enforce {
                let scope = Scope::ALL.into_iter().position(|scope| scope == rule.scope());
                by_rule.tiers[scope.unwrap_or_default()] += counts;
            }
            if by_rule.rules.len() < RULES_MAX {
                by_rule.rules.push(RuleCounts { rule: rule.into(), counts });
            } else {
                by_rule.other_rules += counts;
            }
        }
        by_rule
    }
}

impl Requests {
    /// The counters are read one after the other, so that `denied` may be slightly ahead.
    fn new(all: u64, denied: u64) -> Self {
        Self { allowed: all.saturating_sub(denied), denied }
    }
}

impl Troubles {
    fn of(sources: &Sources) -> Self {
        let (store, status) = (sources.limiter.store(), sources.status.get());
        let cut = |mut why: String| {
            why.truncate(why.floor_char_boundary(REFUSED_BYTES_MAX));
            why
        };
        Self {
            store: store.kind(),
            is_store_in_trouble: store::is_in_trouble(store),
            is_database_in_trouble: status.down.is_some(),
            rules_refused: status.all_refused().map(cut),
        }
    }
}
