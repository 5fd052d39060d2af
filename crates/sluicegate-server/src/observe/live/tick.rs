//! What happened in one second.

use std::sync::OnceLock;
use std::time::Duration;

use axum::body::Bytes;
use sluicegate::{Mode, Rule, Scope};

use super::{LimitedSubject, SharedTier};
use crate::observe::metrics::audit::AuditFigures;
use crate::observe::stats::Counts;
use crate::time::Timestamp;

/// The most rules that a tick tells of one by one, and that it is remembered with.
pub(super) const RULES_MAX: usize = 50;
pub(super) const RULES_IN_SHORT_MAX: usize = 20;

/// What happened in one second.
#[derive(Debug)]
pub(crate) struct Tick {
    /// It grows from tick to tick; given when it is published.
    pub(crate) number: u64,
    /// When it ended.
    pub(crate) now: Timestamp,
    /// How long it was.
    pub(crate) length: Duration,
    pub(crate) requests: Requests,
    /// What enforced rules decided, by scope.
    pub(crate) tiers: TierCounts,
    /// What single rules decided, of those that decided most; first the most.
    pub(crate) rules: Vec<RuleCounts>,
    /// What the others decided.
    pub(crate) other_rules: Counts,
    /// What was decided on buckets without a rule.
    pub(crate) take: Counts,
    /// Whom rules denied most in the last minute.
    pub(crate) limited: Vec<LimitedSubject>,
    /// The buckets that everybody shares.
    pub(crate) shared: Vec<SharedTier>,
    pub(crate) latency: Latency,
    /// Decisions that were made without the store.
    pub(crate) degraded: u64,
    pub(crate) troubles: Troubles,
    /// Since the start.
    pub(crate) audit: AuditFigures,
    /// How it is written, once somebody has asked.
    pub(super) text: OnceLock<Bytes>,
}

/// Counts by scope, in the order of [`Scope::ALL`].
pub(crate) type TierCounts = [Counts; Scope::ALL.len()];

/// Which rule it is.
#[derive(Clone, Debug)]
pub(crate) struct RuleName {
    pub(crate) rule_id: u64,
    pub(crate) key_pattern: String,
    pub(crate) scope: Scope,
    pub(crate) plan: Option<String>,
    pub(crate) mode: Mode,
}

/// What a rule decided.
#[derive(Clone, Debug)]
pub(crate) struct RuleCounts {
    pub(crate) rule: RuleName,
    pub(crate) counts: Counts,
}

/// What became of requests. One is several decisions where several rules apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Requests {
    pub(crate) allowed: u64,
    pub(crate) denied: u64,
}

/// How long decisions took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Latency {
    /// How many there were.
    pub(crate) count: u64,
    /// Half of them took no longer, in microseconds; and of a hundred all but one.
    pub(crate) p50_us: Option<u64>,
    pub(crate) p99_us: Option<u64>,
}

/// What is in trouble.
#[derive(Clone, Debug)]
pub(crate) struct Troubles {
    /// What kind of store it is.
    pub(crate) store: &'static str,
    pub(crate) is_store_in_trouble: bool,
    pub(crate) is_database_in_trouble: bool,
    /// Why what is in the source of the rules now was refused, if it was.
    pub(crate) rules_refused: Option<String>,
}

impl Tick {
    /// How it is written. What writes it is asked once, whoever asks.
    pub(crate) fn text(&self, write: impl FnOnce(&Self) -> Bytes) -> Bytes {
        self.text.get_or_init(|| write(self)).clone()
    }

    /// What is remembered of it.
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
