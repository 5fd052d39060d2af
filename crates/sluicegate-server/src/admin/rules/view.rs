//! A rule as an answer has it: all its columns.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;
use sluicegate::rules::RuleSpec;
use sluicegate::{Quota, Rate, Rule, Scope};
use utoipa::ToSchema;

use crate::data::StoredRule;
use crate::time::Timestamp;
use crate::web::openapi::values::{AlgorithmName, ModeName, OnErrorName, RefillName, ScopeName};
use crate::web::scalar::Plain;

/// A rule.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
#[schema(as = Rule)]
pub(crate) struct RuleView {
    /// Its number, which names its buckets. Null only in a dry run that would make a rule.
    #[schema(minimum = 1, maximum = 9_007_199_254_740_991_u64)]
    rule_id: Option<u64>,
    /// Which requests share a bucket: text with `{attribute}` placeholders.
    #[schema(min_length = 1, max_length = 256)]
    key_pattern: String,
    /// What it is about: `global`, `ip`, `endpoint`, `user` or `custom`.
    #[schema(value_type = ScopeName)]
    scope: &'static str,
    /// Tokens per second, rounded for people to read; `tokens` and `period` are exact.
    #[schema(value_type = f64, exclusive_minimum = 0)]
    rate_per_second: Plain,
    /// Tokens that come in in a period.
    #[schema(minimum = 1)]
    tokens: u64,
    /// Seconds.
    #[schema(value_type = f64, exclusive_minimum = 0)]
    period: Plain,
    /// The most that can be taken at once.
    #[schema(minimum = 1)]
    burst_capacity: u64,
    /// The plan that it is for; null for every plan.
    plan: Option<String>,
    /// `token_bucket`, `fixed_window`, `sliding_window`, `sliding_counter` or `leaky_bucket`.
    #[schema(value_type = AlgorithmName)]
    algorithm: &'static str,
    /// `continuous` or `interval`.
    #[schema(value_type = RefillName)]
    refill: &'static str,
    /// Seconds that granted work may have to wait in line, for a `leaky_bucket`; else null.
    #[schema(value_type = Option<f64>, minimum = 0)]
    max_wait: Option<Plain>,
    /// `enforce`, `shadow` or `unlimited`.
    #[schema(value_type = ModeName)]
    mode: &'static str,
    /// What it answers while its store is in trouble: `local`, `allow` or `deny`.
    #[schema(value_type = OnErrorName)]
    on_error: &'static str,
    /// Whether it is switched on.
    is_active: bool,
    /// A note for people.
    #[schema(max_length = 1024)]
    description: String,
    /// Attributes and what they must match.
    conditions: BTreeMap<String, String>,
    /// By what name others replace it; null if it has none.
    #[schema(min_length = 1, max_length = 128)]
    name: Option<String>,
    /// The names of rules that do not apply where it does.
    #[schema(max_items = 32)]
    replaces: Vec<String>,
    /// When it was made; null for rules that are not in a database.
    #[schema(value_type = Option<String>, format = DateTime)]
    created_at: Option<Timestamp>,
    /// Grows with every change, from 1.
    #[schema(minimum = 1)]
    version: u64,
    /// True in a dry run, in which nothing was changed; else not there.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    dry_run: Option<bool>,
}

impl RuleView {
    /// A rule that is stored.
    pub(crate) fn stored(rule: &StoredRule) -> Self {
        Self::new(&rule.spec, Some(rule.created_at), rule.version)
    }

    /// A rule that is in force and was read from a file.
    pub(crate) fn in_force(rule: &Rule) -> Self {
        Self::new(&rule.spec(), None, 1)
    }

    /// A rule with these columns.
    pub(crate) fn new(spec: &RuleSpec, created_at: Option<Timestamp>, version: u64) -> Self {
        // What is stored was built before. If it cannot be any more, its columns are shown as they are.
        let rule = spec.build().ok();
        let quota = rule.as_ref().map(Rule::quota);
        let rate = quota.map(Quota::rate);
        let exact = rate.map(|rate| rate.tokens_and_period_us());
        let (tokens, period) = exact
            .map(|(tokens, period_us)| (tokens, Duration::from_micros(period_us)))
            .unwrap_or((spec.tokens.unwrap_or_default(), spec.period.unwrap_or_default()));
        let scope = rule.as_ref().map(Rule::scope).or(spec.scope);
        Self {
            rule_id: Some(spec.rule_id).filter(|rule_id| *rule_id > 0),
            key_pattern: spec.key_pattern.clone(),
            scope: scope.unwrap_or(Scope::Custom).name(),
            rate_per_second: Plain(rate.as_ref().map_or(0.0, Rate::per_second)),
            tokens,
            period: seconds(period),
            burst_capacity: quota.map(Quota::capacity).or(spec.burst_capacity).unwrap_or_default(),
            plan: Some(spec.plan.clone()).filter(|plan| !plan.is_empty()),
            algorithm: spec.algorithm.name(),
            refill: spec.refill.name(),
            max_wait: quota.and_then(Quota::max_wait).or(spec.max_wait).map(seconds),
            mode: spec.mode.name(),
            on_error: spec.on_error.name(),
            is_active: spec.is_active,
            description: spec.description.clone(),
            conditions: spec.conditions.iter().cloned().collect(),
            name: Some(spec.name.clone()).filter(|name| !name.is_empty()),
            replaces: spec.replaces.clone(),
            created_at,
            version,
            dry_run: None,
        }
    }

    /// This rule, as the answer to a dry run.
    pub(crate) fn in_dry_run(mut self) -> Self {
        self.dry_run = Some(true);
        self
    }

    /// Its number, if it has one yet.
    pub(crate) fn rule_id(&self) -> Option<u64> {
        self.rule_id
    }

    /// Its version.
    pub(crate) fn version(&self) -> u64 {
        self.version
    }
}

fn seconds(time: Duration) -> Plain {
    Plain(time.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::rule_json;

    /// The history of a rule shows it as the rule shows itself.
    #[test]
    fn a_rule_is_shown_as_its_history_has_it() {
        for rule in sluicegate::RuleSet::starter().rules() {
            let (created_at, version) = (Timestamp::from_micros(1_785_585_600_000_001), 3);
            let rule = StoredRule { spec: rule.spec(), created_at, version };
            let shown = serde_json::to_value(RuleView::stored(&rule)).unwrap();
            assert_eq!(shown, rule_json(&rule));
        }
    }
}
