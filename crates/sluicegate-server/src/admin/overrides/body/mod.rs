//! Overrides in request bodies.

use std::time::Duration;

use serde::Deserialize;
use sluicegate::rules::{Override, RuleSpec};
use sluicegate::{Algorithm, Quota, Refill, Rule};
use utoipa::ToSchema;

use crate::admin::subject::subject;
use crate::app::RequestLimits;
use crate::data::{OverrideSpec, REASON_BYTES_MAX};
use crate::time::Timestamp;
use crate::web::body::{choice, storable};
use crate::web::openapi::values::{self, AlgorithmName, RefillName, Time, Wait};
use crate::web::problem::Problem;
use crate::web::scalar::{Id, Number, Seconds, Text, Whole};

/// Body that sets an override.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct OverrideBody<'a> {
    pub(super) rule_id: Option<Whole>,
    #[serde(borrow)]
    pub(super) subject: Option<Id<'a>>,
    tokens: Option<Whole>,
    period: Option<Seconds>,
    rate_per_second: Option<Number>,
    burst_capacity: Option<Whole>,
    algorithm: Option<Text<'a>>,
    refill: Option<Text<'a>>,
    max_wait: Option<Seconds>,
    unlimited: Option<bool>,
    blocked: Option<bool>,
    reason: Option<Text<'a>>,
    expires_at: Option<Text<'a>>,
    expires_in: Option<Seconds>,
}

impl OverrideBody<'_> {
    /// Validates the body as an override of this rule and subject.
    ///
    /// # Errors
    ///
    /// Names the first invalid field.
    pub(super) fn spec(
        &self,
        rule: &Rule,
        of: &str,
        limits: &RequestLimits,
        now: Timestamp,
    ) -> Result<OverrideSpec, Problem> {
        let of = subject(rule, of, limits)?;
        storable("subject", &of)?;
        if of.is_empty() {
            return Err(Problem::field("subject", "is empty"));
        }
        Ok(OverrideSpec {
            rule_id: rule.rule_id(),
            subject: of.into_owned(),
            instead: self.instead(rule)?,
            reason: self.reason()?,
            expires_at: self.expires_at(now)?,
        })
    }

    /// Kind of override, from the fields given.
    fn instead(&self, rule: &Rule) -> Result<Override, Problem> {
        const ONE: &str = "give a quota, unlimited or blocked, and only one of them";
        let (unlimited, blocked) = (self.unlimited == Some(true), self.blocked == Some(true));
        match (self.has_quota(), unlimited, blocked) {
            (true, false, false) => self.quota(rule).map(Override::Quota),
            (false, true, false) => Ok(Override::Unlimited),
            (false, false, true) => Ok(Override::Blocked),
            (false, false, false) => {
                Err(Problem::field("tokens", format_args!("is missing: {ONE}")))
            }
            (_, true, _) => Err(Problem::field("unlimited", ONE)),
            (_, false, true) => Err(Problem::field("blocked", ONE)),
        }
    }

    fn has_quota(&self) -> bool {
        self.tokens.is_some()
            || self.period.is_some()
            || self.rate_per_second.is_some()
            || self.burst_capacity.is_some()
            || self.algorithm.is_some()
            || self.refill.is_some()
            || self.max_wait.is_some()
    }

    /// The rule's quota with the given fields replaced. Another algorithm does not inherit the rule's capacity, refill
    /// and maximum wait.
    fn quota(&self, rule: &Rule) -> Result<Quota, Problem> {
        let of_rule = rule.spec();
        let algorithm = self.algorithm.as_ref();
        let algorithm =
            algorithm.map(|text| choice::<Algorithm>("algorithm", Some(text))).transpose()?;
        let refill = self.refill.as_ref();
        let refill = refill.map(|text| choice::<Refill>("refill", Some(text))).transpose()?;
        let base = match algorithm {
            Some(algorithm) if algorithm != of_rule.algorithm => RuleSpec {
                algorithm,
                burst_capacity: None,
                refill: Refill::default(),
                max_wait: None,
                ..of_rule
            },
            _ => of_rule,
        };
        let max_wait = seconds("max_wait", self.max_wait)?;
        let spec = RuleSpec {
            tokens: self.tokens.map(|Whole(tokens)| tokens),
            period: seconds("period", self.period)?,
            rate_per_second: self.rate_per_second.map(|Number(rate)| rate),
            burst_capacity: self.burst_capacity.map(|Whole(most)| most).or(base.burst_capacity),
            refill: refill.unwrap_or(base.refill),
            max_wait: max_wait.or(base.max_wait),
            ..base
        };
        let built = spec.build().map_err(|wrong| Problem::fields(&wrong))?;
        Ok(*built.quota())
    }

    fn reason(&self) -> Result<String, Problem> {
        let Some(Text(reason)) = &self.reason else { return Ok(String::new()) };
        storable("reason", reason)?;
        if reason.len() > REASON_BYTES_MAX {
            let most = format_args!("has more than {REASON_BYTES_MAX} bytes");
            return Err(Problem::field("reason", most));
        }
        Ok(reason.to_string())
    }

    fn expires_at(&self, now: Timestamp) -> Result<Option<Timestamp>, Problem> {
        let at = match (&self.expires_at, self.expires_in) {
            (Some(_), Some(_)) => {
                return Err(Problem::field("expires_in", "cannot be combined with expires_at"));
            }
            (None, None) => return Ok(None),
            (Some(Text(text)), None) => {
                text.parse().map_err(|error| Problem::field("expires_at", error))?
            }
            (None, expires_in) => {
                let length = seconds("expires_in", expires_in)?.unwrap_or_default();
                if length.is_zero() {
                    return Err(Problem::field("expires_in", "must be longer than zero"));
                }
                let micros = i64::try_from(length.as_micros()).unwrap_or(i64::MAX);
                now.plus_micros(micros)
            }
        };
        if at <= now {
            return Err(Problem::field("expires_at", "is not in the future"));
        }
        Ok(Some(at))
    }
}

fn seconds(field: &str, given: Option<Seconds>) -> Result<Option<Duration>, Problem> {
    let read = |Seconds(read)| read.map_err(|error| Problem::field(field, error));
    given.map(read).transpose()
}

/// Override to set: exactly one of a quota, `unlimited` or `blocked`. A quota inherits omitted fields from the rule,
/// except `tokens` and `period`.
#[derive(ToSchema)]
#[schema(example = json!({
    "rule_id": 1, "subject": "42", "tokens": 1000, "period": 1, "burst_capacity": 5000,
    "reason": "launch day", "expires_in": "24h"
}))]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "describes a body and is never made")]
pub(super) struct NewOverride {
    /// Id of the rule.
    #[schema(minimum = 1, maximum = 9_007_199_254_740_991_u64)]
    rule_id: u64,
    /// Value of the rule's subject attribute: text or a whole number.
    subject: values::Id,
    /// Tokens per `period`.
    #[schema(minimum = 1, maximum = 4_503_599_627_370_496_u64)]
    tokens: Option<u64>,
    /// Period in seconds, or as text such as `62.5s` or `1 minute`.
    period: Option<Time>,
    /// Tokens per second, instead of `tokens` and `period`, or together with them if they agree.
    #[schema(exclusive_minimum = 0)]
    rate_per_second: Option<f64>,
    /// Capacity in tokens: the most that can be taken at once.
    #[schema(minimum = 1, maximum = 4_503_599_627_370_496_u64)]
    burst_capacity: Option<u64>,
    /// Algorithm of the quota; that of the rule if omitted.
    algorithm: Option<AlgorithmName>,
    /// Refill of a `token_bucket`.
    refill: Option<RefillName>,
    /// Maximum queueing delay of a `leaky_bucket`, in seconds or as text such as `2s`.
    max_wait: Option<Wait>,
    /// True to exempt this subject from the rule.
    unlimited: Option<bool>,
    /// True to have the rule deny every request of this subject.
    blocked: Option<bool>,
    /// Reason for the override, shown with it.
    #[schema(max_length = 1024)]
    reason: Option<String>,
    /// End of validity. Without this and `expires_in`, the override does not expire.
    #[schema(format = DateTime)]
    expires_at: Option<String>,
    /// Validity from now, in seconds or as text such as `1h`.
    expires_in: Option<Time>,
}

/// Body that replaces an override.
#[derive(ToSchema)]
#[schema(example = json!({"unlimited": true, "reason": "launch day", "expires_at": "2099-01-01T00:00:00Z"}))]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "describes a body and is never made")]
pub(super) struct ReplacedOverride {
    /// Must equal that of the override, if given.
    #[schema(minimum = 1, maximum = 9_007_199_254_740_991_u64)]
    rule_id: Option<u64>,
    /// Must equal that of the override, if given.
    subject: Option<values::Id>,
    /// Tokens per `period`.
    #[schema(minimum = 1, maximum = 4_503_599_627_370_496_u64)]
    tokens: Option<u64>,
    /// Period in seconds, or as text such as `62.5s` or `1 minute`.
    period: Option<Time>,
    /// Tokens per second, instead of `tokens` and `period`, or together with them if they agree.
    #[schema(exclusive_minimum = 0)]
    rate_per_second: Option<f64>,
    /// Capacity in tokens: the most that can be taken at once.
    #[schema(minimum = 1, maximum = 4_503_599_627_370_496_u64)]
    burst_capacity: Option<u64>,
    /// Algorithm of the quota; that of the rule if omitted.
    algorithm: Option<AlgorithmName>,
    /// Refill of a `token_bucket`.
    refill: Option<RefillName>,
    /// Maximum queueing delay of a `leaky_bucket`, in seconds or as text such as `2s`.
    max_wait: Option<Wait>,
    /// True to exempt this subject from the rule.
    unlimited: Option<bool>,
    /// True to have the rule deny every request of this subject.
    blocked: Option<bool>,
    /// Reason for the override, shown with it.
    #[schema(max_length = 1024)]
    reason: Option<String>,
    /// End of validity. Without this and `expires_in`, the override does not expire.
    #[schema(format = DateTime)]
    expires_at: Option<String>,
    /// Validity from now, in seconds or as text such as `1h`.
    expires_in: Option<Time>,
}

#[cfg(test)]
mod tests;
