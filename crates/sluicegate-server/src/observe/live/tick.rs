//! Figures of one second.

use std::sync::OnceLock;
use std::time::Duration;

use axum::body::Bytes;
use sluicegate::{Mode, Rule, Scope};

use super::{LimitedSubject, SharedTier};
use crate::observe::metrics::audit::AuditFigures;
use crate::observe::stats::Counts;
use crate::time::Timestamp;

/// Maximum number of rules listed in a tick, and in a tick of the history.
pub(super) const RULES_MAX: usize = 50;
pub(super) const RULES_IN_SHORT_MAX: usize = 20;

/// Figures of one second.
#[derive(Debug)]
pub(crate) struct Tick {
    /// Sequence number, set when the tick is published.
    pub(crate) number: u64,
    /// End of the second.
    pub(crate) now: Timestamp,
    /// Time since the previous tick.
    pub(crate) length: Duration,
    pub(crate) requests: Requests,
    /// Decisions of enforced rules, by scope.
    pub(crate) tiers: TierCounts,
    /// Decisions of the busiest rules, in descending order.
    pub(crate) rules: Vec<RuleCounts>,
    /// Decisions of the other rules.
    pub(crate) other_rules: Counts,
    /// Decisions on buckets without a rule.
    pub(crate) take: Counts,
    /// Subjects denied most in the last minute.
    pub(crate) limited: Vec<LimitedSubject>,
    /// Buckets shared by all requests.
    pub(crate) shared: Vec<SharedTier>,
    pub(crate) latency: Latency,
    /// Decisions made without the store.
    pub(crate) degraded: u64,
    pub(crate) troubles: Troubles,
    /// Totals since the start.
    pub(crate) audit: AuditFigures,
    /// Serialized form, made on first use.
    pub(super) text: OnceLock<Bytes>,
}

/// Counts by scope, in the order of [`Scope::ALL`].
pub(crate) type TierCounts = [Counts; Scope::ALL.len()];

/// Identifying columns of a rule.
#[derive(Clone, Debug)]
pub(crate) struct RuleName {
    pub(crate) rule_id: u64,
    pub(crate) key_pattern: String,
    pub(crate) scope: Scope,
    pub(crate) plan: Option<String>,
    pub(crate) mode: Mode,
}

/// Decisions of a rule.
#[derive(Clone, Debug)]
pub(crate) struct RuleCounts {
    pub(crate) rule: RuleName,
    pub(crate) counts: Counts,
}

/// Requests by result. A request with several rules is several decisions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Requests {
    pub(crate) allowed: u64,
    pub(crate) denied: u64,
}

/// Decision times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Latency {
    /// Number of decisions.
    pub(crate) count: u64,
    /// Percentiles in microseconds; `None` without decisions.
    pub(crate) p50_us: Option<u64>,
    pub(crate) p99_us: Option<u64>,
}

/// Parts of the service that are in trouble.
#[derive(Clone, Debug)]
pub(crate) struct Troubles {
    /// Kind of store: `memory` or `redis`.
    pub(crate) store: &'static str,
    pub(crate) is_store_in_trouble: bool,
    pub(crate) is_database_in_trouble: bool,
    /// Reason why the current source of the rules was rejected; `None` if it was not.
    pub(crate) rules_refused: Option<String>,
}

impl Tick {
    /// Serialized form. `write` is called at most once per tick.
    pub(crate) fn text(&self, write: impl FnOnce(&Self) -> Bytes) -> Bytes {
        self.text.get_or_init(|| write(self)).clone()
    }

    /// Shortened copy for the history.
    pub(super) fn in_short(&self) -> Self {
        let (rules, others) = self.rules.split_at(self.rules.len().min(RULES_IN_SHORT_MAX));
        let mut other_rules = self.other_rules;
        for other in others {
            other_rules += other.counts;
        }
        Self {
            rules: rules.to_vec(),
            other_rules,
            limited: Vec::new(),
            shared: Vec::new(),
            troubles: self.troubles.clone(),
            text: OnceLock::new(),
            ..*self
        }
    }
}

impl From<&Rule> for RuleName {
    fn from(rule: &Rule) -> Self {
        Self {
            rule_id: rule.rule_id(),
            key_pattern: rule.key_pattern().as_str().into(),
            scope: rule.scope(),
            plan: rule.plan().map(Into::into),
            mode: rule.mode(),
        }
    }
}
