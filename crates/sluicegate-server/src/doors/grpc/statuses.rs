//! Status of each descriptor in Envoy's format.
//!
//! Envoy's limit is a number of requests per unit of time. Ours is the capacity, per the time that
//! it takes to refill: the `q` and `w` of `RateLimit-Policy`. If that time is not one of Envoy's
//! units, the unit is unknown, and Envoy leaves the window out.

use prost_types::Duration;
use sluicegate::headers::{Policies, Policy};
use sluicegate::{Answer, Decision, Outcome, Rule};

use super::answer::Answered;
use super::descriptors::{Buckets, OwnLimit, Part};
use super::rls::envoy::service::ratelimit::v3::rate_limit_response::rate_limit::Unit;
use super::rls::envoy::service::ratelimit::v3::rate_limit_response::{
    Code, DescriptorStatus, RateLimit,
};
use super::rls::envoy::r#type::v3::RateLimitUnit;
use crate::envoy_names;

/// Remaining requests without a limit, as in the reference service.
const UNLIMITED: u32 = u32::MAX;

const MICROS_PER_SECOND: u64 = 1_000_000;

/// Status of a descriptor, by its worst tier. `policies` are those of the whole call.
pub(super) fn status(
    (part, answer): &Answered<'_, '_>,
    policies: &Policies<'_>,
) -> DescriptorStatus {
    let (limit, decision) = match (&part.buckets, answer) {
        (_, Some(Answer::Verdict(verdict))) => match verdict.tightest() {
            Some(tier) => (of_rule(&tier.into(), policies), tier.decision),
            None if verdict.is_allowed() => return unlimited(verdict.is_unlimited()),
            None => return exceeds_a_bound(),
        },
        (Buckets::OwnLimit { limit, .. }, Some(Answer::Decision(decision))) => {
            (of_own(part, limit), limit.decision(decision))
        }
        // A request is answered by a verdict, never by a single decision.
        (Buckets::Rules(_), Some(Answer::Decision(_))) | (_, None) => return unlimited(false),
    };
    let is_over = !decision.is_granted() && part.refund().is_none();
    let seconds = i64::try_from(seconds_until_reset(decision)).unwrap_or(i64::MAX);
    DescriptorStatus {
        code: if is_over { Code::OverLimit } else { Code::Ok }.into(),
        current_limit: Some(limit),
        limit_remaining: saturated(decision.remaining),
        duration_until_reset: Some(Duration { seconds, nanos: 0 }),
        quota: None,
    }
}

/// Status where no rule applies, or only unlimited ones.
fn unlimited(is_by_rule: bool) -> DescriptorStatus {
    DescriptorStatus {
        code: Code::Ok.into(),
        limit_remaining: if is_by_rule { UNLIMITED } else { 0 },
        ..DescriptorStatus::default()
    }
}

/// Status of a descriptor that meets too many rules, or is too costly to match.
fn exceeds_a_bound() -> DescriptorStatus {
    DescriptorStatus { code: Code::OverLimit.into(), ..DescriptorStatus::default() }
}

fn of_rule(policy: &Policy<'_>, policies: &Policies<'_>) -> RateLimit {
    let own_name = policy.rule().and_then(Rule::name).map(str::to_owned);
    RateLimit {
        name: own_name.unwrap_or_else(|| policies.name(policy).to_string()),
        requests_per_unit: saturated(policy.limit()),
        unit: unit(policy.window_s()).into(),
    }
}

/// The limit as it was sent.
fn of_own(part: &Part<'_>, limit: &OwnLimit) -> RateLimit {
    let unit = match limit.unit {
        RateLimitUnit::Unknown => Unit::Unknown,
        RateLimitUnit::Second => Unit::Second,
        RateLimitUnit::Minute => Unit::Minute,
        RateLimitUnit::Hour => Unit::Hour,
        RateLimitUnit::Day => Unit::Day,
        RateLimitUnit::Month => Unit::Month,
        RateLimitUnit::Year => Unit::Year,
    };
    RateLimit {
        name: part.descriptor.keys.clone().into_owned(),
        requests_per_unit: limit.requests_per_unit,
        unit: unit.into(),
    }
}

/// Unit of this length; unknown if there is none.
fn unit(seconds: u64) -> Unit {
    envoy_names::unit_of(seconds).and_then(Unit::from_str_name).unwrap_or(Unit::Unknown)
}

/// Whole seconds, rounded up, because Envoy ignores fractions: the wait after a denial, else the
/// time until the bucket is full.
fn seconds_until_reset(decision: &Decision) -> u64 {
    match decision.outcome {
        Outcome::Denied { retry_after } => retry_after.div_ceil(MICROS_PER_SECOND),
        Outcome::Granted { .. } | Outcome::Never => {
            decision.reset_after.div_ceil(MICROS_PER_SECOND)
        }
    }
}

fn saturated(count: u64) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}
