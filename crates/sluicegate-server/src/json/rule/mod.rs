//! The JSON form of a rule: the body that creates or changes one, and the answer that shows it. The API, its history,
//! the snapshot file, differences and the command line all use it.
//!
//! A new column is a field of [`Columns`] and of [`RuleView`], and a line in `apply` and in [`RuleView::new`].

mod value;

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use serde::Serialize;
use serde_json::json;
use sluicegate::rules::{FieldError, NOTES, RuleSpec};
use sluicegate::{Algorithm, Mode, OnError, PathForm, Quota, Rate, RateError, Refill, Rule, Scope};
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::Schema;
use utoipa::{PartialSchema, ToSchema};

use self::value::{Conditions, GivenRate, ReplacedName};
use super::schema::{
    AlgorithmName, ModeName, OnErrorName, PathFormName, RefillName, ScopeName, Time,
};
use super::{Choice, Column, Plain, Seconds, Text, Wait, Whole};
use crate::time::Timestamp;

/// A rule to be created, or to take the place of another. An absent or null column has its default.
// Columns that are set by the service may be present, so that an answer can be sent back.
#[derive(Debug, Default, serde::Deserialize, ToSchema)]
#[schema(as = NewRule, example = json!({
    "key_pattern": "user:{user_id}", "plan": "free", "tokens": 10, "period": 1, "burst_capacity": 50
}))]
#[serde(deny_unknown_fields)]
pub(crate) struct Columns<'a> {
    /// Id of the rule; the next one if absent. Must equal that in the path, if there is one.
    #[serde(default)]
    #[schema(value_type = Option<u64>, minimum = 1, maximum = 9_007_199_254_740_991_u64)]
    rule_id: Column<Whole>,
    /// Requests with the same key share a bucket: text with `{attribute}` placeholders.
    #[serde(borrow, default)]
    #[schema(
        value_type = String,
        required = true,
        min_length = 1,
        max_length = 256,
        pattern = r"^([^{}\x00-\x1f\x7f-\x9f]|\{[A-Za-z0-9_.-]{1,64}\})+$",
        example = "user:{user_id}"
    )]
    key_pattern: Column<Text<'a>>,
    /// Subject of the rule; derived from the key pattern if absent.
    #[serde(default)]
    #[schema(value_type = Option<ScopeName>)]
    scope: Column<Choice<Scope>>,
    /// Tokens per second, instead of `tokens` and `period`, or together with them if they agree.
    #[serde(default)]
    #[schema(value_type = Option<f64>, exclusive_minimum = 0)]
    rate_per_second: Column<GivenRate>,
    /// Tokens per period. A rule in mode `unlimited` needs none.
    #[serde(default)]
    #[schema(value_type = Option<u64>, minimum = 1, maximum = 4_503_599_627_370_496_u64)]
    tokens: Column<Whole>,
    /// Period in seconds, or as text such as `62.5s` or `1 minute`.
    #[serde(default)]
    #[schema(value_type = Option<Time>)]
    period: Column<Seconds>,
    /// The most that can be taken at once; the tokens of one period if absent.
    #[serde(default)]
    #[schema(value_type = Option<u64>, minimum = 1, maximum = 4_503_599_627_370_496_u64)]
    burst_capacity: Column<Whole>,
    /// Plan that it applies to; null or empty for every plan.
    #[serde(default)]
    #[schema(
        value_type = Option<String>,
        max_length = 32,
        pattern = r"^[^\x00-\x1f\x7f-\x9f]*$",
        example = "free"
    )]
    plan: Column<Text<'a>>,
    /// Algorithm of its buckets.
    #[serde(default)]
    #[schema(value_type = Option<AlgorithmName>)]
    algorithm: Column<Choice<Algorithm>>,
    /// Refill of a `token_bucket`.
    #[serde(default)]
    #[schema(value_type = Option<RefillName>)]
    refill: Column<Choice<Refill>>,
    /// Longest delay in the queue of a `leaky_bucket`: seconds, or text such as `2s`.
    #[serde(default)]
    #[schema(value_type = Option<Wait>)]
    max_wait: Column<Wait>,
    /// Enforced, shadow, or without a limit.
    #[serde(default)]
    #[schema(value_type = Option<ModeName>)]
    mode: Column<Choice<Mode>>,
    /// Answer while its store fails.
    #[serde(default)]
    #[schema(value_type = Option<OnErrorName>)]
    on_error: Column<Choice<OnError>>,
    /// Form in which endpoints are compared and become part of keys: as they are, or with dot segments, repeated and
    /// trailing slashes, path parameters and ASCII case folded.
    #[serde(default)]
    #[schema(value_type = Option<PathFormName>)]
    path: Column<Choice<PathForm>>,
    /// An inactive rule applies to no request.
    #[serde(default)]
    #[schema(value_type = Option<bool>, default = true)]
    is_active: Column<bool>,
    /// Free text.
    #[serde(default)]
    #[schema(value_type = Option<String>, max_length = 1024)]
    description: Column<Text<'a>>,
    /// Globs that attributes must match, by attribute.
    #[serde(default)]
    #[schema(value_type = Option<Conditions>)]
    conditions: Column<Conditions<'a>>,
    /// Name by which others replace it; null or empty for none. Several rules may share one.
    #[serde(default)]
    #[schema(
        value_type = Option<String>,
        max_length = 128,
        pattern = r"^[^\x00-\x1f\x7f-\x9f]*$",
        example = "by user"
    )]
    name: Column<Text<'a>>,
    /// Names of rules that do not apply where it does. The list is one value: a patch replaces it.
    #[serde(default)]
    #[schema(value_type = Option<Vec<ReplacedName>>, max_items = 32)]
    replaces: Column<Vec<ReplacedName<'a>>>,
    /// A time, without effect.
    #[serde(default)]
    #[schema(value_type = Option<String>, format = DateTime)]
    created_at: Column<Timestamp>,
    /// The version that was read: a change of another version is refused (412).
    #[serde(default)]
    #[schema(value_type = Option<u64>)]
    version: Column<Whole>,
}

/// Columns of a rule to be changed: a merge patch (RFC 7396). An absent column stays; null restores the default, or
/// removes a condition. `rate_per_second` alone replaces `tokens` and `period`.
#[derive(Debug, serde::Deserialize)]
#[serde(transparent)]
pub(crate) struct RulePatch<'a>(#[serde(borrow)] pub(crate) Columns<'a>);

/// A rule.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
#[schema(as = Rule)]
pub(crate) struct RuleView {
    /// Id of the rule, which identifies its buckets.
    #[schema(minimum = 1, maximum = 9_007_199_254_740_991_u64)]
    rule_id: u64,
    /// Requests with the same key share a bucket: text with `{attribute}` placeholders.
    #[schema(min_length = 1, max_length = 256)]
    key_pattern: String,
    /// Subject of the rule.
    #[schema(value_type = ScopeName)]
    scope: &'static str,
    /// Tokens per second, rounded; `tokens` and `period` are exact.
    #[schema(value_type = f64, exclusive_minimum = 0)]
    rate_per_second: Plain,
    /// Tokens per period.
    #[schema(minimum = 1)]
    tokens: u64,
    /// Period in seconds.
    #[schema(value_type = f64, exclusive_minimum = 0)]
    period: Plain,
    /// The most that can be taken at once.
    #[schema(minimum = 1)]
    burst_capacity: u64,
    /// Plan that it applies to; null for every plan.
    plan: Option<String>,
    /// Algorithm of its buckets.
    #[schema(value_type = AlgorithmName)]
    algorithm: &'static str,
    /// Refill of a `token_bucket`.
    #[schema(value_type = RefillName)]
    refill: &'static str,
    /// Longest delay in the queue of a `leaky_bucket`, in seconds; else null.
    #[schema(value_type = Option<f64>, minimum = 0)]
    max_wait: Option<Plain>,
    /// Enforced, shadow, or without a limit.
    #[schema(value_type = ModeName)]
    mode: &'static str,
    /// Answer while its store fails.
    #[schema(value_type = OnErrorName)]
    on_error: &'static str,
    /// Form in which endpoints are compared and become part of keys.
    #[schema(value_type = PathFormName)]
    path: &'static str,
    /// An inactive rule applies to no request.
    is_active: bool,
    /// Free text.
    #[schema(max_length = 1024)]
    description: String,
    /// Globs that attributes must match, by attribute.
    conditions: BTreeMap<String, String>,
    /// Name by which others replace it; null for none.
    #[schema(min_length = 1, max_length = 128)]
    name: Option<String>,
    /// Names of rules that do not apply where it does.
    #[schema(max_items = 32)]
    replaces: Vec<String>,
    /// Time of creation; null for rules that are not in a database.
    #[schema(value_type = Option<String>, format = DateTime)]
    created_at: Option<Timestamp>,
    /// Grows with every change, from 1.
    #[schema(minimum = 1)]
    version: u64,
    /// True in a dry run, which changes nothing; else absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    dry_run: Option<bool>,
}

/// Errors in the columns so far.
type Wrong = Vec<FieldError>;

impl Columns<'_> {
    /// The id in the body, if it has one.
    pub(crate) fn rule_id(&self) -> Option<u64> {
        self.rule_id.given().map(|Whole(rule_id)| *rule_id)
    }

    /// The version that the client has seen, if the body has one.
    pub(crate) fn version(&self) -> Option<u64> {
        self.version.given().map(|Whole(version)| *version)
    }

    /// The time of creation that was shown, if the body has one.
    pub(crate) fn created_at(&self) -> Option<Timestamp> {
        self.created_at.given().copied()
    }

    /// A whole rule of these columns; absent ones have their defaults.
    ///
    /// # Errors
    ///
    /// All errors, column by column.
    pub(crate) fn rule(&self, rule_id: u64) -> Result<RuleSpec, Wrong> {
        let spec = RuleSpec { rule_id, ..RuleSpec::default() };
        self.apply(spec, matches!(self.key_pattern, Column::Absent))
    }

    /// This rule with these columns; absent ones stay.
    ///
    /// # Errors
    ///
    /// As [`rule`](Self::rule).
    pub(crate) fn patch(&self, rule: &RuleSpec) -> Result<RuleSpec, Wrong> {
        self.apply(rule.clone(), false)
    }

    fn apply(&self, mut spec: RuleSpec, lacks_pattern: bool) -> Result<RuleSpec, Wrong> {
        let mut wrong = Wrong::new();
        self.id(&mut spec, &mut wrong);
        self.rate(&mut spec, &mut wrong);
        self.quota(&mut spec, &mut wrong);
        self.key_pattern.set(&mut spec.key_pattern, Text::to_owned);
        self.plan.set(&mut spec.plan, Text::to_owned);
        self.description.set(&mut spec.description, Text::to_owned);
        self.is_active.set_or(&mut spec.is_active, true, |is_active| *is_active);
        choice("scope", &self.scope, &mut wrong).set(&mut spec.scope, |scope| Some(*scope));
        choice("mode", &self.mode, &mut wrong).set(&mut spec.mode, |mode| *mode);
        choice("on_error", &self.on_error, &mut wrong)
            .set(&mut spec.on_error, |on_error| *on_error);
        choice("path", &self.path, &mut wrong).set(&mut spec.path, |path| *path);
        self.merge_conditions(&mut spec.conditions);
        self.name.set(&mut spec.name, Text::to_owned);
        self.replaces.set(&mut spec.replaces, |names| {
            names.iter().map(|ReplacedName(name)| name.to_owned()).collect()
        });
        for note in NOTES.iter().filter(|note| note.get(&spec).contains('\0')) {
            wrong.push(error(note.name(), "must not contain a NUL character"));
        }
        let built = spec.build();
        if lacks_pattern {
            wrong.push(error("key_pattern", "is missing"));
        }
        // Only the first error of a column: one that could not be read may be reported again.
        let named: Vec<_> = wrong.iter().map(|wrong| wrong.field).collect();
        wrong.extend(built.err().into_iter().flatten().filter(|more| !named.contains(&more.field)));
        if wrong.is_empty() { Ok(spec) } else { Err(wrong) }
    }

    /// An id in the body must be that of the rule.
    fn id(&self, spec: &mut RuleSpec, wrong: &mut Wrong) {
        match self.rule_id() {
            Some(0) => wrong.push(error("rule_id", "is at least 1")),
            Some(rule_id) if spec.rule_id == 0 => spec.rule_id = rule_id,
            Some(rule_id) if rule_id != spec.rule_id => {
                wrong.push(error("rule_id", format_args!("must be {}", spec.rule_id)));
            }
            _ => {}
        }
    }

    /// Tokens and period, or the rate in their place.
    fn rate(&self, spec: &mut RuleSpec, wrong: &mut Wrong) {
        self.tokens.set(&mut spec.tokens, |Whole(tokens)| Some(*tokens));
        let period = seconds("period", &self.period, |Seconds(period)| *period, wrong);
        period.set(&mut spec.period, |period| Some(*period));
        let Some(rate) = self.rate_per_second.given() else { return };
        let exact = spec.tokens.zip(spec.period);
        let exact = exact.and_then(|(tokens, period)| Rate::new(tokens, period).ok());
        if exact.is_some_and(|exact| rate.is_shown_of(exact)) {
            return;
        }
        if matches!((&self.tokens, &self.period), (Column::Absent, Column::Absent)) {
            (spec.tokens, spec.period) = (None, None);
        }
        match rate.decimal {
            Ok(decimal) => spec.rate_per_second = Some(decimal),
            Err(reason) => wrong.push(error("rate_per_second", reason)),
        }
    }

    /// The rest of the quota.
    fn quota(&self, spec: &mut RuleSpec, wrong: &mut Wrong) {
        choice("algorithm", &self.algorithm, wrong)
            .set(&mut spec.algorithm, |algorithm| *algorithm);
        choice("refill", &self.refill, wrong).set(&mut spec.refill, |refill| *refill);
        let max_wait = seconds("max_wait", &self.max_wait, |Wait(wait)| *wait, wrong);
        max_wait.set(&mut spec.max_wait, |max_wait| Some(*max_wait));
        let is_given =
            self.burst_capacity.set(&mut spec.burst_capacity, |Whole(capacity)| Some(*capacity));
        if !spec.algorithm.has_capacity() && !is_given {
            // The capacity of a window is its tokens, also after they change.
            spec.burst_capacity = None;
        }
    }

    fn merge_conditions(&self, conditions: &mut Vec<(String, String)>) {
        match &self.conditions {
            Column::Absent => {}
            Column::Null => conditions.clear(),
            Column::Given(Conditions(given)) => {
                for (Text(name), glob) in given {
                    let known = conditions.iter().position(|(known, _)| known == name);
                    match (known, glob) {
                        (Some(known), Some(Text(glob))) => conditions[known].1 = glob.to_string(),
                        (Some(known), None) => drop(conditions.remove(known)),
                        (None, Some(Text(glob))) => {
                            conditions.push((name.to_string(), glob.to_string()));
                        }
                        (None, None) => {}
                    }
                }
            }
        }
    }
}

fn error(field: &'static str, reason: impl fmt::Display) -> FieldError {
    FieldError { field, of: None, at: None, reason: reason.to_string() }
}

/// A value of an enum; its error is reported, and the column then absent.
fn choice<T: Copy>(
    field: &'static str,
    column: &Column<Choice<T>>,
    wrong: &mut Wrong,
) -> Column<T> {
    match column {
        Column::Absent => Column::Absent,
        Column::Null => Column::Null,
        Column::Given(Choice(Ok(value))) => Column::Given(*value),
        Column::Given(Choice(Err(unknown))) => {
            wrong.push(error(field, unknown));
            Column::Absent
        }
    }
}

/// A time; its error is reported, and a valid time stands in for it.
fn seconds<T>(
    field: &'static str,
    column: &Column<T>,
    read: impl FnOnce(&T) -> Result<Duration, RateError>,
    wrong: &mut Wrong,
) -> Column<Duration> {
    let time = match column {
        Column::Absent => return Column::Absent,
        Column::Null => return Column::Null,
        Column::Given(time) => read(time),
    };
    Column::Given(time.unwrap_or_else(|reason| {
        wrong.push(error(field, reason));
        Duration::from_secs(1)
    }))
}

impl RuleView {
    /// A rule in force that was read from a file.
    pub(crate) fn in_force(rule: &Rule) -> Self {
        Self::new(&rule.spec(), None, 1)
    }

    /// A rule with these columns.
    pub(crate) fn new(spec: &RuleSpec, created_at: Option<Timestamp>, version: u64) -> Self {
        // A stored rule was valid once. If it no longer is, its columns are shown as they are.
        let rule = spec.build().ok();
        let quota = rule.as_ref().map(Rule::quota);
        let rate = quota.map(Quota::rate);
        let exact = rate.map(|rate| rate.tokens_and_period_us());
        let (tokens, period) = exact
            .map(|(tokens, period_us)| (tokens, Duration::from_micros(period_us)))
            .unwrap_or((spec.tokens.unwrap_or_default(), spec.period.unwrap_or_default()));
        let scope = rule.as_ref().map(Rule::scope).or(spec.scope);
        Self {
            rule_id: spec.rule_id,
            key_pattern: spec.key_pattern.clone(),
            scope: scope.unwrap_or(Scope::Custom).name(),
            rate_per_second: Plain(rate.as_ref().map_or(0.0, Rate::per_second)),
            tokens,
            period: in_seconds(period),
            burst_capacity: quota.map(Quota::capacity).or(spec.burst_capacity).unwrap_or_default(),
            plan: Some(spec.plan.clone()).filter(|plan| !plan.is_empty()),
            algorithm: spec.algorithm.name(),
            refill: spec.refill.name(),
            max_wait: quota.and_then(Quota::max_wait).or(spec.max_wait).map(in_seconds),
            mode: spec.mode.name(),
            on_error: spec.on_error.name(),
            path: spec.path.name(),
            is_active: spec.is_active,
            description: spec.description.clone(),
            conditions: spec.conditions.iter().cloned().collect(),
            name: Some(spec.name.clone()).filter(|name| !name.is_empty()),
            replaces: spec.replaces.clone(),
            created_at,
            version,
            dry_run: None,
        }
    }

    /// This rule as an answer, perhaps to a dry run.
    pub(crate) fn in_dry_run(mut self, is_dry_run: bool) -> Self {
        self.dry_run = is_dry_run.then_some(true);
        self
    }

    /// Its number.
    pub(crate) fn rule_id(&self) -> u64 {
        self.rule_id
    }

    /// Its version.
    pub(crate) fn version(&self) -> u64 {
        self.version
    }
}

/// A length of time in seconds. Microseconds up to 2^52 are told apart by a float.
fn in_seconds(time: Duration) -> Plain {
    Plain(time.as_micros() as f64 / 1e6)
}

impl PartialSchema for RulePatch<'_> {
    /// That of [`Columns`] with every column optional.
    fn schema() -> RefOr<Schema> {
        let RefOr::T(Schema::Object(mut patch)) = Columns::schema() else {
            return Columns::schema();
        };
        patch.required.clear();
        patch.example = Some(json!({"burst_capacity": 100}));
        patch.description = Some(
            "Columns of a rule to be changed: a merge patch (RFC 7396). An absent column stays; null restores the \
             default, or removes a condition. `rate_per_second` alone replaces `tokens` and `period`."
                .into(),
        );
        // A default of a new rule is not the value of an absent column here.
        for column in patch.properties.values_mut() {
            if let RefOr::T(Schema::Object(column)) = column {
                column.default = None;
            }
        }
        patch.into()
    }
}

impl ToSchema for RulePatch<'_> {
    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        Columns::schemas(schemas);
    }
}

#[cfg(test)]
mod tests;
