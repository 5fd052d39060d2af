//! Overrides in request bodies.

use serde::Deserialize;
use serde_json::json;
use sluicegate::rules::{Override, RuleSpec};
use sluicegate::{Algorithm, Quota, Refill, Rule};
use utoipa::openapi::schema::{Schema, Type};
use utoipa::openapi::{Ref, RefOr};
use utoipa::{PartialSchema, ToSchema};

use crate::admin::expiry::{expiry, seconds};
use crate::admin::subject::subject;
use crate::app::RequestLimits;
use crate::data::{OverrideSpec, REASON_BYTES_MAX};
use crate::json::schema::{AlgorithmName, RefillName, Time};
use crate::json::{Choice, Id, Number, Seconds, Text, Wait, Whole};
use crate::time::Timestamp;
use crate::web::body::{choice, storable};
use crate::web::problem::Problem;

/// Body that replaces an override.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[schema(
    as = ReplacedOverride,
    example = json!({"unlimited": true, "reason": "launch day", "expires_at": "2099-01-01T00:00:00Z"})
)]
#[serde(deny_unknown_fields)]
pub(crate) struct OverrideBody<'a> {
    /// Id of the rule. Must equal that of an existing override.
    #[schema(value_type = Option<u64>, minimum = 1, maximum = 9_007_199_254_740_991_u64)]
    pub(super) rule_id: Option<Whole>,
    /// Value of the rule's subject attribute: text or a whole number. Must equal that of an existing override.
    #[serde(borrow)]
    pub(super) subject: Option<Id<'a>>,
    /// Tokens per `period`.
    #[schema(value_type = Option<u64>, minimum = 1, maximum = 4_503_599_627_370_496_u64)]
    tokens: Option<Whole>,
    /// Period in seconds, or as text such as `62.5s` or `1 minute`.
    #[schema(value_type = Option<Time>)]
    period: Option<Seconds>,
    /// Tokens per second, instead of `tokens` and `period`, or together with them if they agree.
    #[schema(value_type = Option<f64>, exclusive_minimum = 0)]
    rate_per_second: Option<Number>,
    /// Capacity in tokens: the most that can be taken at once.
    #[schema(value_type = Option<u64>, minimum = 1, maximum = 4_503_599_627_370_496_u64)]
    burst_capacity: Option<Whole>,
    /// Algorithm of the quota; that of the rule if omitted.
    #[schema(value_type = Option<AlgorithmName>)]
    algorithm: Option<Choice<Algorithm>>,
    /// Refill of a `token_bucket`.
    #[schema(value_type = Option<RefillName>)]
    refill: Option<Choice<Refill>>,
    /// Maximum queueing delay of a `leaky_bucket`, in seconds or as text such as `2s`.
    max_wait: Option<Wait>,
    /// True to exempt this subject from the rule.
    unlimited: Option<bool>,
    /// True to have the rule deny every request of this subject.
    blocked: Option<bool>,
    /// Reason for the override, shown with it.
    #[schema(value_type = Option<String>, max_length = 1024)]
    reason: Option<Text<'a>>,
    /// End of validity. Without this and `expires_in`, the override does not expire.
    #[schema(value_type = Option<String>, format = DateTime)]
    expires_at: Option<Text<'a>>,
    /// Validity from now, in seconds or as text such as `1h`.
    #[schema(value_type = Option<Time>)]
    expires_in: Option<Seconds>,
}

impl OverrideBody<'_> {
    /// Validates the body as an override of this rule and subject.
    ///
    /// # Errors
    ///
    /// Names the first invalid field.
    pub(crate) fn spec(
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
            expires_at: expiry(self.expires_at.as_ref(), self.expires_in, now)?,
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
        let algorithm = choice("algorithm", self.algorithm)?;
        let refill = choice("refill", self.refill)?;
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
        let max_wait = seconds("max_wait", self.max_wait.map(|Wait(read)| Seconds(read)))?;
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
}

/// Override to set: exactly one of a quota, `unlimited` or `blocked`. A quota inherits omitted fields from the rule,
/// except `tokens` and `period`.
#[derive(Debug, Deserialize)]
#[serde(transparent)]
pub(crate) struct NewOverride<'a>(#[serde(borrow)] pub(crate) OverrideBody<'a>);

impl PartialSchema for NewOverride<'_> {
    /// That of [`OverrideBody`] with rule and subject, which must be given.
    fn schema() -> RefOr<Schema> {
        let RefOr::T(Schema::Object(mut body)) = OverrideBody::schema() else {
            return OverrideBody::schema();
        };
        body.required = vec!["rule_id".into(), "subject".into()];
        if let Some(RefOr::T(Schema::Object(rule_id))) = body.properties.get_mut("rule_id") {
            rule_id.schema_type = Type::Integer.into();
        }
        body.properties.insert("subject".into(), Ref::from_schema_name(Id::name()).into());
        body.example = Some(json!({
            "rule_id": 1, "subject": "42", "tokens": 1000, "period": 1, "burst_capacity": 5000,
            "reason": "launch day", "expires_in": "24h"
        }));
        body.description = Some(
            "Override to set: exactly one of a quota, `unlimited` or `blocked`. A quota inherits omitted fields from \
             the rule, except `tokens` and `period`."
                .into(),
        );
        body.into()
    }
}

impl ToSchema for NewOverride<'_> {
    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        OverrideBody::schemas(schemas);
    }
}

#[cfg(test)]
mod tests;
