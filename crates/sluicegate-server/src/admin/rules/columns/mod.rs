//! A rule as a body has it: columns that are there, are null, or are left out.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::de::{self, Deserialize, Deserializer, MapAccess, Visitor};
use sluicegate::rules::{FieldError, RuleSpec};
use sluicegate::{Decimal, DecimalError, Rate, UnknownName};

use crate::time::Timestamp;
use crate::web::scalar::{Seconds, Text, Whole};

/// A column of a body. Null stands for its default, as in a merge patch (RFC 7396).
#[derive(Debug, Default)]
enum Column<T> {
    #[default]
    Absent,
    Null,
    Given(T),
}

/// The columns of a rule in a body. Those that nobody can set may come along, so that what was read can be
/// sent back.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Columns<'a> {
    rule_id: Column<Whole>,
    #[serde(borrow)]
    key_pattern: Column<Text<'a>>,
    scope: Column<Text<'a>>,
    rate_per_second: Column<GivenRate>,
    tokens: Column<Whole>,
    period: Column<Seconds>,
    burst_capacity: Column<Whole>,
    plan: Column<Text<'a>>,
    algorithm: Column<Text<'a>>,
    refill: Column<Text<'a>>,
    max_wait: Column<Seconds>,
    mode: Column<Text<'a>>,
    on_error: Column<Text<'a>>,
    is_active: Column<bool>,
    description: Column<Text<'a>>,
    conditions: Column<Conditions<'a>>,
    name: Column<Text<'a>>,
    replaces: Column<Vec<Text<'a>>>,
    /// Must be a time, and means nothing.
    created_at: Column<Timestamp>,
    version: Column<Whole>,
}

/// Tokens per second, as a float and as the decimal that its author most likely wrote.
#[derive(Clone, Copy, Debug)]
struct GivenRate {
    float: f64,
    decimal: Result<Decimal, DecimalError>,
}

/// Attributes and what they must match; null takes one away.
#[derive(Debug, Default)]
struct Conditions<'a>(Vec<(Text<'a>, Option<Text<'a>>)>);

/// How far a rate that was shown and read again may be from the exact one, as a part of it: a few units in the
/// last place of a float.
const ROUNDING_MAX: f64 = 1e-15;

/// What is wrong with the columns so far.
type Wrong = Vec<FieldError>;

impl Columns<'_> {
    /// The id that it is given, if it is.
    pub(crate) fn rule_id(&self) -> Option<u64> {
        self.rule_id.given().map(|Whole(rule_id)| *rule_id)
    }

    /// The version that its sender has seen, if it came along.
    pub(crate) fn version(&self) -> Option<u64> {
        self.version.given().map(|Whole(version)| *version)
    }

    /// A whole rule of these columns; those that are left out have their defaults.
    ///
    /// # Errors
    ///
    /// Everything that is wrong, column by column.
    pub(crate) fn rule(&self, rule_id: u64) -> Result<RuleSpec, Wrong> {
        let spec = RuleSpec { rule_id, ..RuleSpec::default() };
        self.apply(spec, matches!(self.key_pattern, Column::Absent))
    }

    /// This rule with these columns; those that are left out stay.
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
        self.key_pattern.set(&mut spec.key_pattern, |Text(text)| text.to_string());
        self.plan.set(&mut spec.plan, |Text(text)| text.to_string());
        self.description.set(&mut spec.description, |Text(text)| text.to_string());
        self.is_active.set_or(&mut spec.is_active, true, |is_active| *is_active);
        choice("scope", &self.scope, &mut wrong).set(&mut spec.scope, |scope| Some(*scope));
        choice("mode", &self.mode, &mut wrong).set(&mut spec.mode, |m| *m);
        choice("on_error", &self.on_error, &mut wrong)
            .set(&mut spec.on_error, |on_error| *on_error);
        self.merge_conditions(&mut spec.conditions);
        self.name.set(&mut spec.name, |Text(text)| text.to_string());
        self.replaces.set(&mut spec.replaces, |names| {
            names.iter().map(|Text(name)| name.to_string()).collect()
        });
        if spec.description.contains('\0') {
            wrong.push(error("description", "has a NUL in it, which not every database keeps"));
        }
        let built = spec.build();
        if lacks_pattern {
            wrong.push(error("key_pattern", "is missing"));
        }
        // A column that could not be read has had its say.
        let said: Vec<_> = wrong.iter().map(|wrong| wrong.field).collect();
        wrong.extend(built.err().into_iter().flatten().filter(|more| !said.contains(&more.field)));
        if wrong.is_empty() { Ok(spec) } else { Err(wrong) }
    }

    /// An id that comes along must be the rule's.
    fn id(&self, spec: &mut RuleSpec, wrong: &mut Wrong) {
        match self.rule_id() {
            Some(0) => wrong.push(error("rule_id", "is at least 1")),
            Some(rule_id) if spec.rule_id == 0 => spec.rule_id = rule_id,
            Some(rule_id) if rule_id != spec.rule_id => {
                wrong.push(error("rule_id", format_args!("is that of rule {}", spec.rule_id)));
            }
            _ => {}
        }
    }

    /// Tokens and period, or the rate in their place.
    fn rate(&self, spec: &mut RuleSpec, wrong: &mut Wrong) {
        self.tokens.set(&mut spec.tokens, |Whole(tokens)| Some(*tokens));
        seconds("period", &self.period, wrong).set(&mut spec.period, |period| Some(*period));
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
        seconds("max_wait", &self.max_wait, wrong)
            .set(&mut spec.max_wait, |max_wait| Some(*max_wait));
        let is_given =
            self.burst_capacity.set(&mut spec.burst_capacity, |Whole(capacity)| Some(*capacity));
        let is_window = !spec.algorithm.has_capacity();
        if is_window && !is_given {
            // What it was follows from its tokens, and so does what it becomes.
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

impl GivenRate {
    /// Is it this rate as it is shown? That may be rounded: 1 a minute is 0.01666..., which agrees, and is not
    /// read back.
    fn is_shown_of(self, exact: Rate) -> bool {
        (self.float - exact.per_second()).abs() <= exact.per_second() * ROUNDING_MAX
    }
}

fn error(field: &'static str, reason: impl fmt::Display) -> FieldError {
    FieldError { field, of: None, at: None, reason: reason.to_string() }
}

/// One of several words.
fn choice<T: FromStr<Err = UnknownName>>(
    field: &'static str,
    column: &Column<Text<'_>>,
    wrong: &mut Wrong,
) -> Column<T> {
    let text = match column {
        Column::Absent => return Column::Absent,
        Column::Null => return Column::Null,
        Column::Given(Text(text)) => text,
    };
    match text.parse() {
        Ok(choice) => Column::Given(choice),
        Err(unknown) => {
            wrong.push(error(field, unknown));
            Column::Absent
        }
    }
}

/// A time, if it is one.
fn seconds(field: &'static str, column: &Column<Seconds>, wrong: &mut Wrong) -> Column<Duration> {
    match column {
        Column::Absent => Column::Absent,
        Column::Null => Column::Null,
        Column::Given(Seconds(Ok(time))) => Column::Given(*time),
        Column::Given(Seconds(Err(reason))) => {
            wrong.push(error(field, reason));
            // Anything that makes no further trouble: what is wrong is said.
            Column::Given(Duration::from_secs(1))
        }
    }
}

// ===== impl Column =====

impl<T> Column<T> {
    fn given(&self) -> Option<&T> {
        match self {
            Self::Given(value) => Some(value),
            Self::Absent | Self::Null => None,
        }
    }

    /// Sets what this is the column of, unless it is left out; says whether it did.
    fn set<U: Default>(&self, place: &mut U, value: impl FnOnce(&T) -> U) -> bool {
        self.set_or(place, U::default(), value)
    }

    fn set_or<U>(&self, place: &mut U, default: U, value: impl FnOnce(&T) -> U) -> bool {
        match self {
            Self::Absent => return false,
            Self::Null => *place = default,
            Self::Given(given) => *place = value(given),
        }
        true
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Column<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Option::deserialize(deserializer)?.map_or(Self::Null, Self::Given))
    }
}

// ===== values =====

struct RateVisitor;

#[expect(
    clippy::cast_precision_loss,
    reason = "only compared with a float, and kept exactly beside it"
)]
impl Visitor<'_> for RateVisitor {
    type Value = GivenRate;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number")
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<GivenRate, E> {
        Ok(GivenRate { float: number as f64, decimal: number.to_string().parse() })
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<GivenRate, E> {
        Ok(GivenRate { float: number as f64, decimal: number.to_string().parse() })
    }

    fn visit_f64<E: de::Error>(self, float: f64) -> Result<GivenRate, E> {
        Ok(GivenRate { float, decimal: Decimal::from_f64(float) })
    }
}

impl<'de> Deserialize<'de> for GivenRate {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(RateVisitor)
    }
}

struct ConditionsVisitor;

impl<'de> Visitor<'de> for ConditionsVisitor {
    type Value = Conditions<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of attributes and globs")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut conditions: Vec<(Text<'de>, _)> = Vec::new();
        while let Some(name) = map.next_key::<Text<'de>>()? {
            // Bounded by the size of the body, and short in practice.
            if conditions.iter().any(|(earlier, _)| *earlier == name) {
                let Text(name) = name;
                return Err(de::Error::custom(format_args!("duplicate field `{name}`")));
            }
            conditions.push((name, map.next_value()?));
        }
        Ok(Conditions(conditions))
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Conditions<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ConditionsVisitor)
    }
}

#[cfg(test)]
mod tests;
