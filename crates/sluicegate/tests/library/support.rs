//! Helpers for checks of limiters.

use std::time::Duration;

use sluicegate::{Request, Verdict};

pub(crate) use crate::common::*;

/// Number of these requests that are allowed in a row.
pub(crate) fn allowed_in_a_row(limiter: &TestLimiter, request: &Request<'_>) -> usize {
    (0..1_000_000).take_while(|_| limiter.check_now(request).is_allowed()).count()
}

/// Tokens left in each tier of a request.
pub(crate) fn remaining(limiter: &TestLimiter, request: &Request<'_>) -> Vec<u64> {
    let verdict = limiter.check_now(&request.clone().cost(0));
    verdict.tiers().map(|tier| tier.decision.remaining).collect()
}

/// The ids of a verdict's rules.
pub(crate) fn rule_ids(verdict: &Verdict) -> Vec<u64> {
    verdict.tiers().map(|tier| tier.rule.rule_id()).collect()
}

/// The id of the rule that denied a request.
pub(crate) fn violated(verdict: &Verdict) -> Option<u64> {
    verdict.violated().map(|tier| tier.rule.rule_id())
}

pub(crate) const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

pub(crate) const fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}
