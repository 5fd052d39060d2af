//! Overrides in answers.

use serde::Serialize;
use sluicegate::Quota;
use sluicegate::rules::Override;
use utoipa::ToSchema;

use crate::data::{OverrideSpec, StoredOverride};
use crate::time::Timestamp;
use crate::web::openapi::values::{AlgorithmName, OverrideKind, RefillName};
use crate::web::scalar::Plain;

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
    /// `quota`, `unlimited` or `blocked`.
    #[schema(value_type = OverrideKind)]
    kind: &'static str,
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
    /// `token_bucket`, `fixed_window`, `sliding_window`, `sliding_counter` or `leaky_bucket`.
    #[schema(value_type = Option<AlgorithmName>)]
    algorithm: Option<&'static str>,
    /// `continuous` or `interval`.
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
    /// Name of the token that set it last.
    created_by: String,
    /// Time at which it was last set; null only in a dry run that would create one.
    #[schema(value_type = Option<String>, format = DateTime)]
    created_at: Option<Timestamp>,
    /// Version, starting at 1 and incremented by every change.
    #[schema(minimum = 1)]
    version: u64,
    /// True in a dry run, which changes nothing; otherwise absent.
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
        Self {
            override_id: Some(stored.override_id),
            created_at: Some(stored.created_at),
            version: stored.version,
            dry_run: None,
            ..Self::new(&stored.spec, &stored.created_by)
        }
    }

    /// View of an override that a dry run would create, or set in place of `before`.
    pub(super) fn in_dry_run(
        spec: &OverrideSpec,
        by: &str,
        before: Option<&StoredOverride>,
    ) -> Self {
        match before {
            None => Self::new(spec, by),
            Some(before) => Self {
                override_id: Some(before.override_id),
                created_at: Some(Timestamp::now()),
                version: before.version.saturating_add(1),
                ..Self::new(spec, by)
            },
        }
    }

    fn new(spec: &OverrideSpec, by: &str) -> Self {
        let quota = match &spec.instead {
            Override::Quota(quota) => Some(quota),
            Override::Unlimited | Override::Blocked => None,
        };
        let rate = quota.map(Quota::rate);
        let exact = rate.map(|rate| rate.tokens_and_period_us());
        let max_wait = quota.and_then(Quota::max_wait);
        Self {
            override_id: None,
            rule_id: spec.rule_id,
            subject: spec.subject.clone(),
            kind: kind(&spec.instead),
            tokens: exact.map(|(tokens, _)| tokens),
            period: exact.map(|(_, period_us)| Plain(period_us as f64 / 1e6)),
            rate_per_second: rate.map(|rate| Plain(rate.per_second())),
            burst_capacity: quota.map(Quota::capacity),
            algorithm: quota.map(|quota| quota.algorithm().name()),
            refill: quota.map(|quota| quota.refill().name()),
            max_wait: max_wait.map(|max_wait| Plain(max_wait.as_secs_f64())),
            reason: spec.reason.clone(),
            expires_at: spec.expires_at,
            created_by: by.into(),
            created_at: None,
            version: 1,
            dry_run: Some(true),
        }
    }
}

/// Name of an override's kind.
pub(crate) fn kind(instead: &Override) -> &'static str {
    match instead {
        Override::Quota(_) => "quota",
        Override::Unlimited => "unlimited",
        Override::Blocked => "blocked",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dry_run_shows_its_author_and_time() {
        let spec = OverrideSpec {
            rule_id: 1,
            subject: "42".into(),
            instead: Override::Blocked,
            reason: String::new(),
            expires_at: None,
        };
        let made = OverrideView::in_dry_run(&spec, "second", None);
        assert_eq!((made.override_id, made.created_at, made.version), (None, None, 1));
        let created_at = Timestamp::from_micros(1);
        let before = StoredOverride {
            override_id: 7,
            spec: spec.clone(),
            created_by: "first".into(),
            created_at,
            version: 3,
        };
        let changed = OverrideView::in_dry_run(&spec, "second", Some(&before));
        assert_eq!((changed.override_id, changed.version), (Some(7), 4));
        assert_eq!(changed.created_by, "second");
        assert!(changed.created_at > Some(created_at), "{changed:?}");
    }
}
