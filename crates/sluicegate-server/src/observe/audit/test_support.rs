//! Verdicts and rows for tests of the audit.

#![cfg(test)]

use std::sync::Arc;
use std::time::Duration;

use sluicegate::rules::RuleSpec;
use sluicegate::{Limiter, Mode, PathForm, Quota, Request, Rule, RuleSet, Verdict};

use super::queue::Queue;
use super::{Pseudonyms, record};
use crate::config;
use crate::data::ViolationRow;
use crate::observe::metrics::audit::AuditMetrics;
use crate::time::Timestamp;

/// 2026-08-01T12:00:00Z, the start of a minute.
pub(crate) const NOON: Timestamp = Timestamp::from_micros(1_785_585_600_000_000);

/// A limiter with one rule per mode, each with one token: a cost of two is never granted and
/// changes no bucket.
pub(crate) fn limiter(modes: &[Mode]) -> Limiter {
    let quota = Quota::per_second(1).unwrap();
    let rules = (1..).zip(modes).map(|(rule_id, mode)| {
        let pattern = format!("{}{rule_id}:{{user_id}}", mode.name());
        Rule::new(rule_id, &pattern, quota).unwrap().with_mode(*mode)
    });
    Limiter::new(sluicegate::MemoryStore::new(), RuleSet::new(rules.collect()).unwrap())
}

/// A limiter with one rule that has a bucket per folded endpoint, with one token.
pub(crate) fn folded_limiter() -> Limiter {
    let spec = RuleSpec {
        rule_id: 1,
        key_pattern: "e:{endpoint}".into(),
        path: PathForm::Folded,
        tokens: Some(1),
        period: Some(Duration::from_secs(1)),
        ..RuleSpec::default()
    };
    let rules = RuleSet::new(vec![spec.build().unwrap()]).unwrap();
    Limiter::new(sluicegate::MemoryStore::new(), rules)
}

/// A request that is always denied.
pub(crate) fn request(user_id: &str) -> Request<'_> {
    Request::new().user_id(user_id).ip("203.0.113.9").endpoint("/login").method("POST").cost(2)
}

/// Verdict of a denied request.
pub(crate) fn verdict(limiter: &Limiter, user_id: &str) -> Verdict {
    limiter.check_now(&request(user_id))
}

/// A queue of at most `rows_max` rows, and its metrics.
pub(super) fn queue(rows_max: usize) -> (Arc<Queue>, AuditMetrics) {
    let metrics = AuditMetrics::default();
    let pseudonyms = Pseudonyms::new(&config::Audit::default());
    (Arc::new(Queue::new(rows_max, pseudonyms, metrics.clone())), metrics)
}

/// Notes a violation of rule 1 by this user.
pub(super) fn note(queue: &Queue, limiter: &Limiter, user_id: &str, at: Timestamp) {
    queue.note(&request(user_id), &verdict(limiter, user_id).violated().unwrap(), at);
}

/// Row of one violation.
pub(super) fn row(user_id: &str, at: Timestamp) -> ViolationRow {
    let (limiter, pseudonyms) =
        (limiter(&[Mode::Enforce]), Pseudonyms::new(&config::Audit::default()));
    let verdict = verdict(&limiter, user_id);
    record::row(&pseudonyms, &request(user_id), &verdict.violated().unwrap(), at)
}
