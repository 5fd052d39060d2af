//! A rule as somebody wrote it, column by column, before it is known to make sense.

use std::fmt;
use std::time::Duration;

use tollgate_core::{Algorithm, Decimal, Quota, QuotaError, Rate, RateError, Refill};

use super::rule::{DESCRIPTION_BYTES_MAX, Mode, OnError, Rule, Scope};

/// The columns of a rule, as a file, a database or the API has them. [`RuleSpec::build`] makes a
/// [`Rule`] of them, or says about each column what is wrong with it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "the columns are documented in docs/reference/rules.md")]
pub struct RuleSpec {
    pub rule_id: u64,
    pub key_pattern: String,
    pub scope: Option<Scope>,
    pub rate_per_second: Option<Decimal>,
    pub tokens: Option<u64>,
    pub period: Option<Duration>,
    pub burst_capacity: Option<u64>,
    pub algorithm: Algorithm,
    pub refill: Refill,
    pub max_wait: Option<Duration>,
    pub plan: String,
    pub mode: Mode,
    pub on_error: OnError,
    pub is_active: bool,
    pub description: String,
    pub conditions: Vec<(String, String)>,
}

/// What is wrong with one column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldError {
    /// The column.
    pub field: &'static str,
    /// Which of several: the attribute of a condition.
    pub of: Option<String>,
    /// The byte offset of the mistake in its text, where one is known.
    pub at: Option<usize>,
    /// What is wrong.
    pub reason: String,
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.of {
            Some(of) => write!(f, "{}.{of}: {}", self.field, self.reason),
            None => write!(f, "{}: {}", self.field, self.reason),
        }
    }
}

impl std::error::Error for FieldError {}

fn error(field: &'static str, reason: impl fmt::Display) -> FieldError {
    FieldError { field, of: None, at: None, reason: reason.to_string() }
}

impl RuleSpec {
    /// The rule of these columns.
    ///
    /// # Errors
    ///
    /// Everything that is wrong, column by column.
    pub fn build(&self) -> Result<Rule, Vec<FieldError>> {
        let mut errors = Vec::new();
        let quota = self.quota().map_err(|error| errors.push(error)).ok();
        // A stand-in lets the other columns be looked at too.
        let some_quota = quota.or_else(|| Quota::per_second(1).ok());
        let rule = some_quota.and_then(|quota| {
            Rule::new(self.rule_id, &self.key_pattern, quota)
                .map_err(|wrong| {
                    let at = Some(wrong.at());
                    errors.push(FieldError { at, ..error("key_pattern", wrong) });
                })
                .ok()
        });
        let rule = rule.map(|rule| self.finish(rule, &mut errors));
        match rule {
            Some(rule) if errors.is_empty() => Ok(rule),
            _ => {
                self.check_without_rule(rule.is_none(), &mut errors);
                Err(errors)
            }
        }
    }

    /// Sets everything but key pattern and quota.
    fn finish(&self, rule: Rule, errors: &mut Vec<FieldError>) -> Rule {
        let mut rule = rule
            .with_mode(self.mode)
            .with_on_error(self.on_error)
            .with_is_active(self.is_active)
            .with_description(&self.description);
        if let Some(scope) = self.scope {
            rule = rule.with_scope(scope);
        }
        match rule.clone().with_plan(&self.plan) {
            Ok(with_plan) => rule = with_plan,
            Err(wrong) => errors.push(error("plan", wrong)),
        }
        for (name, glob) in &self.conditions {
            match rule.clone().with_condition(name, glob) {
                Ok(with_condition) => rule = with_condition,
                Err(wrong) => {
                    errors
                        .push(FieldError { of: Some(name.clone()), ..error("conditions", wrong) });
                }
            }
        }
        if self.description.len() > DESCRIPTION_BYTES_MAX {
            let most = format!("has at most {DESCRIPTION_BYTES_MAX} bytes");
            errors.push(error("description", most));
        }
        rule
    }

    /// Looks at what `finish` would have looked at, had the key pattern been sound.
    fn check_without_rule(&self, is_needed: bool, errors: &mut Vec<FieldError>) {
        if is_needed
            && let Some(rule) = Quota::per_second(1).ok().and_then(|q| Rule::new(0, "x", q).ok())
        {
            self.finish(rule, errors);
        }
    }

    /// The quota of `tokens` and `period`, or `rate_per_second`, or both if they agree.
    fn quota(&self) -> Result<Quota, FieldError> {
        let (rate_field, rate) = self.rate()?;
        let quota = Quota::from_rate(rate).map_err(|wrong| error(rate_field, wrong))?;
        let with_capacity = |quota: Quota, field| match self.burst_capacity {
            Some(capacity) => quota.with_capacity(capacity).map_err(|wrong| error(field, wrong)),
            None => Ok(quota),
        };
        let wrong_algorithm = |wrong| match wrong {
            QuotaError::IntervalNeedsTokenBucket => error("refill", wrong),
            QuotaError::FractionalTokens | QuotaError::WindowTooLarge { .. } => {
                error(rate_field, wrong)
            }
            wrong => error("algorithm", wrong),
        };
        let quota = match self.algorithm {
            Algorithm::TokenBucket | Algorithm::LeakyBucket => {
                let quota = with_capacity(quota, "burst_capacity")?;
                quota.with_algorithm(self.algorithm).map_err(wrong_algorithm)?
            }
            // A window's capacity is its tokens: anything else would be ignored in silence.
            _ => {
                let quota = quota.with_algorithm(self.algorithm).map_err(wrong_algorithm)?;
                with_capacity(quota, "burst_capacity")?
            }
        };
        let quota = quota.with_refill(self.refill).map_err(wrong_algorithm)?;
        match self.max_wait {
            Some(wait) => quota.with_max_wait(wait).map_err(|wrong| error("max_wait", wrong)),
            None => Ok(quota),
        }
    }

    /// The rate, and the column that it came from.
    fn rate(&self) -> Result<(&'static str, Rate), FieldError> {
        let wrong = |wrong: RateError| match wrong {
            RateError::ZeroPeriod | RateError::PeriodTooFine | RateError::PeriodTooLong => {
                error("period", wrong)
            }
            RateError::ZeroTokens if self.tokens.is_some() => error("tokens", wrong),
            wrong => error("rate_per_second", wrong),
        };
        let per_second = self
            .rate_per_second
            .map(|tokens| Rate::from_decimal(tokens, Duration::from_secs(1)))
            .transpose()
            .map_err(|zero| error("rate_per_second", zero))?;
        match (self.tokens, self.period, per_second) {
            (Some(tokens), Some(period), per_second) => {
                let rate = Rate::new(tokens, period).map_err(wrong)?;
                if per_second.is_some_and(|per_second| per_second != rate) {
                    let unequal = format!("is not {tokens} tokens per period: leave it out");
                    return Err(error("rate_per_second", unequal));
                }
                Ok(("tokens", rate))
            }
            (Some(_), None, _) => Err(error("period", "is missing: tokens need a period")),
            (None, Some(_), _) => Err(error("tokens", "is missing: a period needs tokens")),
            (None, None, Some(per_second)) => Ok(("rate_per_second", per_second)),
            (None, None, None) => {
                Err(error("tokens", "is missing: give tokens and period, or rate_per_second"))
            }
        }
    }
}
