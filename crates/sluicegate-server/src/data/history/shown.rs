//! Overrides, tokens and callers as the history shows them. The triggers make the same form.

use serde_json::{Value, json};
use sluicegate::Quota;
use sluicegate::rules::Override;

use crate::data::{OverrideKind, OverrideSpec, Right, StoredCaller, StoredOverride, StoredToken};
use crate::json::Plain;

/// An override without its subject, which has a column of its own.
pub(in crate::data) fn override_json(stored: &StoredOverride) -> Value {
    let OverrideSpec { rule_id, instead, reason, expires_at, .. } = &stored.spec;
    let quota = match instead {
        Override::Quota(quota) => Some(quota),
        Override::Unlimited | Override::Blocked => None,
    };
    let exact = quota.map(|quota| quota.rate().tokens_and_period_us());
    let max_wait = quota.and_then(Quota::max_wait);
    json!({
        "override_id": stored.override_id,
        "rule_id": rule_id,
        "kind": OverrideKind::from(instead).name(),
        "tokens": exact.map(|(tokens, _)| tokens),
        "period": exact.map(|(_, period_us)| Plain(period_us as f64 / 1e6)),
        "burst_capacity": quota.map(Quota::capacity),
        "algorithm": quota.map(|quota| quota.algorithm().name()),
        "refill": quota.map(|quota| quota.refill().name()),
        "max_wait": max_wait.map(|max_wait| Plain(max_wait.as_secs_f64())),
        "reason": reason,
        "expires_at": expires_at,
        "version": stored.version,
    })
}

/// A token without its hash.
pub(in crate::data) fn token_json(token: &StoredToken) -> Value {
    json!({"token_id": token.token_id, "name": token.name, "role": token.role.name()})
}

/// A caller without the hash of its token.
pub(in crate::data) fn caller_json(caller: &StoredCaller) -> Value {
    json!({
        "caller_id": caller.caller_id,
        "name": caller.name,
        "rights": caller.rights.iter().map(Right::name).collect::<Vec<_>>(),
        "namespace": caller.namespace,
        "certificate": caller.certificate,
        "expires_at": caller.expires_at,
    })
}
