//! Overrides in answers.

use serde::Serialize;
use sluicegate::Quota;
use sluicegate::rules::Override;
use utoipa::ToSchema;

use crate::data::{OverrideKind, OverrideSpec, StoredOverride};
use crate::json::Plain;
use crate::json::schema::{AlgorithmName, RefillName};
use crate::time::Timestamp;

/// Replacement of a rule's quota for one subject.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
#[schema(as = Override)]
pub(crate) struct OverrideView {
    /// Id of the override; null only in a dry run that would create one.
    #[schema(minimum = 1)]
    override_id: Option<u64>,
    /// Id of the rule.
    rule_id: u64,
    /// Value of the rule's subject attribute.
    subject: String,
    kind: OverrideKind,
    /// Tokens per `period`. This and the fields up to `max_wait` are null unless `kind` is `quota`.
    tokens: Option<u64>,
    /// Period in seconds.
    #[schema(value_type = Option<f64>)]
    period: Option<Plain>,
    /// Tokens per second, rounded; `tokens` and `period` are exact.
    #[schema(value_type = Option<f64>)]
    rate_per_second: Option<Plain>,
    /// Capacity in tokens: the most that can be taken at once.
    burst_capacity: Option<u64>,
    /// Algorithm of the quota.
    #[schema(value_type = Option<AlgorithmName>)]
    algorithm: Option<&'static str>,
    /// Refill of a `token_bucket`.
    #[schema(value_type = Option<RefillName>)]
    refill: Option<&'static str>,
    /// Maximum queueing delay of a `leaky_bucket`, in seconds.
    #[schema(value_type = Option<f64>)]
    max_wait: Option<Plain>,
    /// Reason given by its author; empty if none was given.
    reason: String,
    /// End of validity; null if it does not expire.
    #[schema(value_type = Option<String>, format = DateTime)]
    expires_at: Option<Timestamp>,
    /// Name of the caller that set it last.
    created_by: String,
    /// Time at which it was last set.
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
    /// Version, starting at 1 and incremented by every change.
    #[schema(minimum = 1)]
    version: u64,
    /// True in a dry run, which changes nothing; else absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    dry_run: Option<bool>,
}

/// An override that was set, or would be set by a dry run.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = SetOverride)]
pub(crate) struct SetOverrideView {
    #[serde(flatten)]
    pub(super) set: OverrideView,
    /// Requests of its subject that the override does not affect, as text: its rule is for one plan, has conditions, is
    /// switched off, or is not enforced. Null if it affects all of them.
    pub(super) note: Option<String>,
}

impl OverrideView {
    /// View of a stored override.
    pub(super) fn stored(stored: &StoredOverride) -> Self {
        let OverrideSpec { rule_id, subject, instead, reason, expires_at } = &stored.spec;
        let quota = match instead {
            Override::Quota(quota) => Some(quota),
            Override::Unlimited | Override::Blocked => None,
        };
        let rate = quota.map(Quota::rate);
        let exact = rate.map(|rate| rate.tokens_and_period_us());
        let max_wait = quota.and_then(Quota::max_wait);
        Self {
            override_id: Some(stored.override_id),
            rule_id: *rule_id,
            subject: subject.clone(),
            kind: instead.into(),
            tokens: exact.map(|(tokens, _)| tokens),
            period: exact.map(|(_, period_us)| Plain(period_us as f64 / 1e6)),
            rate_per_second: rate.map(|rate| Plain(rate.per_second())),
            burst_capacity: quota.map(Quota::capacity),
            algorithm: quota.map(|quota| quota.algorithm().name()),
            refill: quota.map(|quota| quota.refill().name()),
            max_wait: max_wait.map(|max_wait| Plain(max_wait.as_secs_f64())),
            reason: reason.clone(),
            expires_at: *expires_at,
            created_by: stored.created_by.clone(),
            created_at: stored.created_at,
            version: stored.version,
            dry_run: None,
        }
    }

    /// View of an override that a dry run has set and rolled back. A new one gets its id when it is saved.
    pub(super) fn in_dry_run(stored: &StoredOverride, is_new: bool) -> Self {
        let shown = Self::stored(stored);
        let override_id = shown.override_id.filter(|_| !is_new);
        Self { override_id, dry_run: Some(true), ..shown }
    }
}
