//! Columns of a rule as written, before validation.

use std::fmt;
use std::time::Duration;

use sluicegate_core::{Algorithm, Decimal, Quota, QuotaError, QuotaField, Rate, Refill};

use super::rule::{Mode, OnError, PathForm, Rule, RuleError, Scope};
use crate::compat::floor_char_boundary;

/// Largest id of a rule: JavaScript and Lua represent integers up to it exactly.
pub(crate) const RULE_ID_MAX: u64 = (1 << 53) - 1;

/// Tokens of a rule in `Unlimited` mode if none are given: so many that enforcing it later without setting them
/// hardly limits anything.
pub(crate) const UNLIMITED_TOKENS: u64 = 1_000_000;
/// Period of [`UNLIMITED_TOKENS`].
pub(crate) const UNLIMITED_PERIOD: Duration = Duration::from_secs(1);

/// Columns of a rule, as a file, a database or the API has them. [`RuleSpec::build`] makes a [`Rule`] of them, or
/// returns an error for each column that is not valid.
///
/// A new column of text that decides nothing is a field here, its name in [`COLUMNS`](Self::COLUMNS) and an entry in
/// [`NOTES`]: the rest of this crate carries, checks, reads and writes it by that entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleSpec {
    /// Id, which names its buckets.
    pub rule_id: u64,
    /// Text with `{attribute}` placeholders; requests with the same values share a bucket.
    pub key_pattern: String,
    /// Scope; derived from the key pattern if absent.
    pub scope: Option<Scope>,
    /// Tokens per second, instead of `tokens` and `period`, or beside them if they agree.
    pub rate_per_second: Option<Decimal>,
    /// Tokens per `period`.
    pub tokens: Option<u64>,
    /// Time in which `tokens` refill.
    pub period: Option<Duration>,
    /// Most tokens that can be taken at once; the tokens of one period if absent.
    pub burst_capacity: Option<u64>,
    /// Algorithm that counts the limit.
    pub algorithm: Algorithm,
    /// Refill of a token bucket.
    pub refill: Refill,
    /// Longest delay of a leaky bucket; bounded by its capacity alone if absent.
    pub max_wait: Option<Duration>,
    /// Plan that it is for; empty for all.
    pub plan: String,
    /// Effect of its denials.
    pub mode: Mode,
    /// Policy while its store is in trouble.
    pub on_error: OnError,
    /// An inactive rule never applies.
    pub is_active: bool,
    /// Text for people, at most a kilobyte.
    pub description: String,
    /// Attributes and their conditions: see [`Condition`](super::Condition).
    pub conditions: Vec<(String, String)>,
    /// Name by which other rules replace it; empty for none.
    pub name: String,
    /// Names of the rules that do not apply where it does.
    pub replaces: Vec<String>,
    /// Form in which endpoints are compared and become part of keys.
    pub path: PathForm,
}

/// Columns of text that decide nothing.
pub const NOTES: [Note; 1] = [Note {
    name: "description",
    bytes_max: 1024,
    help: "Text for people",
    get: |spec| &spec.description,
    get_mut: |spec| &mut spec.description,
}];

/// Position of `description` in [`NOTES`].
pub(super) const DESCRIPTION: usize = 0;

/// A column of text that decides nothing; empty by default.
#[derive(Clone, Copy, Debug)]
pub struct Note {
    name: &'static str,
    bytes_max: usize,
    help: &'static str,
    get: fn(&RuleSpec) -> &String,
    get_mut: fn(&mut RuleSpec) -> &mut String,
}

impl Note {
    /// The entry of a column, if it is one of [`NOTES`].
    #[must_use]
    pub fn of(column: &str) -> Option<&'static Self> {
        NOTES.iter().find(|note| note.name == column)
    }

    /// Name of the column.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// The most bytes it holds.
    #[must_use]
    pub const fn bytes_max(&self) -> usize {
        self.bytes_max
    }

    /// Purpose of the column in a few words, for a list of options.
    #[must_use]
    pub const fn help(&self) -> &'static str {
        self.help
    }

    /// Its text.
    #[must_use]
    pub fn get<'s>(&self, spec: &'s RuleSpec) -> &'s str {
        (self.get)(spec)
    }

    /// Its text, to be changed.
    pub fn get_mut<'s>(&self, spec: &'s mut RuleSpec) -> &'s mut String {
        (self.get_mut)(spec)
    }

    /// As much of a text as the column holds.
    pub(super) fn truncated(&self, text: &str) -> Box<str> {
        text[..floor_char_boundary(text, self.bytes_max)].into()
    }
}

/// A rule with no columns given: active, enforced, for every plan.
impl Default for RuleSpec {
    fn default() -> Self {
        Self {
            rule_id: 0,
            key_pattern: String::new(),
            scope: None,
            rate_per_second: None,
            tokens: None,
            period: None,
            burst_capacity: None,
            algorithm: Algorithm::default(),
            refill: Refill::default(),
            max_wait: None,
            plan: String::new(),
            mode: Mode::default(),
            on_error: OnError::default(),
            is_active: true,
            description: String::new(),
            conditions: Vec::new(),
            name: String::new(),
            replaces: Vec::new(),
            path: PathForm::default(),
        }
    }
}

/// Error in one column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldError {
    /// Name of the column.
    pub field: &'static str,
    /// Attribute of the condition, where the column is `conditions`.
    pub of: Option<String>,
    /// Byte offset of the mistake in its text, where known.
    pub at: Option<usize>,
    /// Reason, in lower case without a full stop.
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
    /// Every column, in the order of files and differences.
    pub const COLUMNS: [&'static str; 19] = [
        "rule_id",
        "name",
        "key_pattern",
        "scope",
        "plan",
        "conditions",
        "path",
        "replaces",
        "rate_per_second",
        "tokens",
        "period",
        "burst_capacity",
        "algorithm",
        "refill",
        "max_wait",
        "mode",
        "on_error",
        "is_active",
        "description",
    ];

    /// The rule of these columns.
    ///
    /// # Errors
    ///
    /// Every error, column by column.
    pub fn build(&self) -> Result<Rule, Vec<FieldError>> {
        let mut errors = Vec::new();
        if self.rule_id > RULE_ID_MAX {
            errors.push(error("rule_id", format_args!("is at most {RULE_ID_MAX}")));
        }
        let quota = self.quota(&mut errors);
        // A substitute quota, so that the other columns are checked too.
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
            .with_notes_of(self);
        match rule.clone().with_path(self.path) {
            Ok(with_path) => rule = with_path,
            // It has no conditions yet.
            Err(RuleError::Pattern(wrong)) => {
                errors.push(FieldError { at: Some(wrong.at()), ..error("key_pattern", wrong) });
            }
            Err(wrong) => errors.push(error("path", wrong)),
        }
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
                    let reason = match wrong {
                        // `of` names the condition already.
                        RuleError::Glob { error, .. } => error.to_string(),
                        wrong => wrong.to_string(),
                    };
                    let of = Some(name.clone());
                    errors.push(FieldError { field: "conditions", of, at: None, reason });
                }
            }
        }
        match rule.clone().with_name(&self.name) {
            Ok(with_name) => rule = with_name,
            Err(wrong) => errors.push(error("name", wrong)),
        }
        match rule.clone().with_replaces(&self.replaces) {
            Ok(with_replaces) => rule = with_replaces,
            Err(wrong) => errors.push(error("replaces", wrong)),
        }
        for note in &NOTES {
            if note.get(self).len() > note.bytes_max {
                let most = format!("has at most {} bytes", note.bytes_max);
                errors.push(error(note.name, most));
            }
        }
        rule
    }

    /// Checks the columns of `finish` where the key pattern is not valid.
    fn check_without_rule(&self, is_needed: bool, errors: &mut Vec<FieldError>) {
        if is_needed
            && let Some(rule) = Quota::per_second(1).ok().and_then(|q| Rule::new(0, "x", q).ok())
        {
            self.finish(rule, errors);
        }
    }

    /// The quota of `tokens` and `period`, or `rate_per_second`, or both if they agree; of a rule in `Unlimited` mode
    /// also of none of them.
    fn quota(&self, errors: &mut Vec<FieldError>) -> Option<Quota> {
        let (rate_field, rate) = match self.rate(errors) {
            Ok(rate) => rate,
            Err(error) => {
                errors.push(error);
                return None;
            }
        };
        let (mut capacity, mut refill, mut max_wait) =
            (self.burst_capacity, self.refill, self.max_wait);
        loop {
            let wrong = match Quota::build(rate, self.algorithm, refill, capacity, max_wait) {
                Ok(quota) => return Some(quota),
                Err(wrong) => wrong,
            };
            let field = match wrong.field() {
                QuotaField::Capacity | QuotaField::TimeToFull if capacity.is_some() => {
                    "burst_capacity"
                }
                QuotaField::Refill => "refill",
                QuotaField::MaxWait => "max_wait",
                _ => rate_field,
            };
            errors.push(error(field, wrong));
            // Without the column at fault, the others are checked too.
            match field {
                "burst_capacity" if capacity.is_some() => capacity = None,
                "refill" if refill != Refill::default() => refill = Refill::default(),
                "max_wait" if max_wait.is_some() => max_wait = None,
                _ => return None,
            }
        }
    }

    /// The rate, and the column that it came from.
    fn rate(&self, errors: &mut Vec<FieldError>) -> Result<(&'static str, Rate), FieldError> {
        let per_second = self
            .rate_per_second
            .map(|tokens| Rate::from_decimal(tokens, Duration::from_secs(1)))
            .transpose()
            .map_err(|wrong| error("rate_per_second", wrong));
        match (self.tokens, self.period) {
            (Some(tokens), Some(period)) => {
                let rate = Rate::new(tokens, period).map_err(|wrong| {
                    match QuotaError::Rate(wrong).field() {
                        QuotaField::Tokens => error("tokens", wrong),
                        _ => error("period", wrong),
                    }
                })?;
                match per_second {
                    Ok(Some(per_second)) if per_second != rate => {
                        let unequal = format!("is not {tokens} per period: leave it out");
                        errors.push(error("rate_per_second", unequal));
                    }
                    Ok(_) => {}
                    Err(wrong) => errors.push(wrong),
                }
                Ok(("tokens", rate))
            }
            (Some(_), None) => Err(error("period", "is missing: tokens need a period")),
            (None, Some(_)) => Err(error("tokens", "is missing: a period needs tokens")),
            (None, None) => match per_second? {
                Some(per_second) => Ok(("rate_per_second", per_second)),
                None if self.mode == Mode::Unlimited => {
                    let rate = Rate::new(UNLIMITED_TOKENS, UNLIMITED_PERIOD);
                    Ok(("tokens", rate.map_err(|wrong| error("tokens", wrong))?))
                }
                None => {
                    Err(error("tokens", "is missing: give tokens and period, or rate_per_second"))
                }
            },
        }
    }
}
