//! One `[[rule]]` of a file, column by column.

use std::collections::HashSet;
use std::ops::Range;
use std::str::FromStr;
use std::time::Duration;

use sluicegate_core::{Decimal, DecimalError, RateError, UnknownName, parse_duration};
use toml::Spanned;
use toml::de::{DeTable, DeValue};
use toml::value::Datetime;

use super::error::Problems;
use super::string;
use crate::rules::attribute::Attribute;
use crate::rules::rule::Rule;
use crate::rules::set::Claim;
use crate::rules::spec::{FieldError, Note, RuleSpec};
use crate::suggest::unknown;

/// Columns of rules in a database. A file may have them, valid and without effect.
const OF_DATABASE: [&str; 2] = ["created_at", "version"];

/// Columns that make a quota together: while one of them cannot be parsed, the others are not checked.
const OF_QUOTA: [&str; 7] =
    ["rate_per_second", "tokens", "period", "burst_capacity", "algorithm", "refill", "max_wait"];

/// A rule as written, with the positions of its columns.
#[derive(Debug)]
pub(super) struct Row<'d> {
    text: &'d str,
    header: Range<usize>,
    columns: &'d DeTable<'d>,
    spec: RuleSpec,
    /// Columns that could not be parsed and are reported already.
    unread: HashSet<&'static str>,
}

impl<'d> Row<'d> {
    /// Parses all columns; `None` if this is not a table.
    pub(super) fn new(
        text: &'d str,
        table: &'d Spanned<DeValue<'d>>,
        problems: &mut Problems<'_>,
    ) -> Option<Self> {
        let DeValue::Table(columns) = table.get_ref() else {
            problems.add(table.span(), format_args!("a rule is a table, not {}", kind(table)));
            return None;
        };
        let (spec, unread) = (RuleSpec::default(), HashSet::new());
        let mut row = Self { text, header: table.span(), columns, spec, unread };
        for (name, value) in columns {
            let mut known = RuleSpec::COLUMNS.iter().chain(&OF_DATABASE);
            match known.find(|column| *column == name.get_ref()) {
                Some(column) => row.column(column, value, problems),
                None => {
                    let known = [&RuleSpec::COLUMNS[..], &OF_DATABASE].concat();
                    problems.add(name.span(), unknown("column", name.get_ref(), &known));
                }
            }
        }
        if !columns.contains_key("key_pattern") {
            row.unread.insert("key_pattern");
            problems.add(table.span(), "key_pattern: is missing");
        }
        Some(row)
    }

    fn column(
        &mut self,
        column: &'static str,
        value: &'d Spanned<DeValue<'d>>,
        problems: &mut Problems<'_>,
    ) {
        if column == "conditions" {
            self.conditions(value, problems);
        } else if let Err(reason) = self.read(column, value) {
            self.unread.insert(column);
            problems.add(value.span(), format_args!("{column}: {reason}"));
        }
    }

    fn read(&mut self, column: &str, value: &Spanned<DeValue<'_>>) -> Result<(), String> {
        let spec = &mut self.spec;
        match column {
            "rule_id" => spec.rule_id = whole(value)?,
            "name" => spec.name = text(value)?,
            "key_pattern" => spec.key_pattern = text(value)?,
            "scope" => spec.scope = Some(choice("scope", value)?),
            "plan" => spec.plan = text(value)?,
            "replaces" => spec.replaces = texts(value)?,
            "rate_per_second" => spec.rate_per_second = Some(decimal(value)?),
            "tokens" => spec.tokens = Some(whole(value)?),
            "period" => spec.period = Some(period(value)?),
            "burst_capacity" => spec.burst_capacity = Some(whole(value)?),
            "algorithm" => spec.algorithm = choice("algorithm", value)?,
            "refill" => spec.refill = choice("refill", value)?,
            "max_wait" => spec.max_wait = Some(seconds(value)?),
            "mode" => spec.mode = choice("mode", value)?,
            "path" => spec.path = choice("path", value)?,
            "on_error" => spec.on_error = choice("on_error", value)?,
            "is_active" => {
                let is_active = value.get_ref().as_bool();
                spec.is_active = is_active.ok_or_else(|| expected("true or false", value))?;
            }
            "created_at" => instant(value)?,
            "version" => drop(whole(value)?),
            column => {
                if let Some(note) = Note::of(column) {
                    *note.get_mut(spec) = text(value)?;
                }
            }
        }
        Ok(())
    }

    fn conditions(&mut self, value: &Spanned<DeValue<'_>>, problems: &mut Problems<'_>) {
        let Some(conditions) = value.get_ref().as_table() else {
            let reason = expected("a table of attributes and globs", value);
            problems.add(value.span(), format_args!("conditions: {reason}"));
            return;
        };
        for (name, glob) in conditions {
            match text(glob) {
                Ok(glob) => self.spec.conditions.push((name.get_ref().clone().into(), glob)),
                Err(reason) => {
                    let name = name.get_ref();
                    problems.add(glob.span(), format_args!("conditions.{name}: {reason}"));
                }
            }
        }
    }

    /// The id in the file, if it has a valid one.
    pub(super) fn given_id(&self) -> Option<u64> {
        let is_given = self.columns.contains_key("rule_id") && !self.unread.contains("rule_id");
        is_given.then_some(self.spec.rule_id)
    }

    /// Takes the next free id unless the file gives one.
    pub(super) fn number(&mut self, free_ids: &mut impl Iterator<Item = u64>) {
        if self.given_id().is_none() {
            self.spec.rule_id = free_ids.next().unwrap_or_default();
        }
    }

    /// Values that must be unique, as far as they could be parsed.
    pub(super) fn claim(&self) -> Claim<'_> {
        let (spec, is_read) = (&self.spec, |column| !self.unread.contains(column));
        let plan = Some(spec.plan.as_str()).filter(|plan| !plan.is_empty());
        Claim {
            rule_id: is_read("rule_id").then_some(spec.rule_id),
            key_pattern: (is_read("key_pattern") && is_read("plan"))
                .then_some((&spec.key_pattern, plan)),
        }
    }

    /// The rule; `None` if it has errors, which are reported.
    pub(super) fn rule(&self, problems: &mut Problems<'_>) -> Option<Rule> {
        match self.spec.build() {
            Ok(rule) => Some(rule),
            Err(errors) => {
                for error in errors.iter().filter(|error| !self.follows(error)) {
                    problems.add(self.place(error), error);
                }
                None
            }
        }
    }

    /// Returns whether this error follows from a column that could not be parsed.
    fn follows(&self, error: &FieldError) -> bool {
        let is_of_quota = |column: &str| OF_QUOTA.contains(&column);
        self.unread.contains(error.field)
            || (is_of_quota(error.field) && self.unread.iter().any(|unread| is_of_quota(unread)))
    }

    /// Range of an error in the file.
    fn place(&self, error: &FieldError) -> Range<usize> {
        let span = self.span_of(error.field);
        if let Some(name) = error.of.as_deref() {
            let conditions = self.columns.get(error.field).and_then(|c| c.get_ref().as_table());
            let found = conditions.and_then(|conditions| conditions.get_key_value(name));
            let is_name = Attribute::is_name(name);
            return found.map_or(
                span,
                |(name, glob)| {
                    if is_name { glob.span() } else { name.span() }
                },
            );
        }
        match (error.at, self.text.get(span.clone())) {
            (Some(at), Some(raw)) if self.columns.contains_key(error.field) => {
                let start = span.start + string::locate(raw, at);
                let len = self.text[start..].chars().next().map_or(0, char::len_utf8);
                start..start + len
            }
            _ => span,
        }
    }

    /// Range of a column's value; the header of the rule if it lacks the column.
    pub(super) fn span_of(&self, column: &str) -> Range<usize> {
        self.columns.get(column).map_or_else(|| self.header.clone(), Spanned::span)
    }
}

// ===== values =====

fn kind(value: &Spanned<DeValue<'_>>) -> &'static str {
    match value.get_ref() {
        DeValue::String(_) => "text",
        DeValue::Integer(_) => "a whole number",
        DeValue::Float(_) => "a decimal number",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date or time",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}

fn expected(what: &str, value: &Spanned<DeValue<'_>>) -> String {
    format!("expected {what}, found {}", kind(value))
}

fn text(value: &Spanned<DeValue<'_>>) -> Result<String, String> {
    value.get_ref().as_str().map(Into::into).ok_or_else(|| expected("text", value))
}

fn texts(value: &Spanned<DeValue<'_>>) -> Result<Vec<String>, String> {
    let list = value.get_ref().as_array().ok_or_else(|| expected("a list of names", value))?;
    list.iter().map(text).collect()
}

fn whole(value: &Spanned<DeValue<'_>>) -> Result<u64, String> {
    let Some(integer) = value.get_ref().as_integer() else {
        return Err(expected("a whole number", value));
    };
    let number = i128::from_str_radix(integer.as_str(), integer.radix());
    let is_negative = integer.as_str().starts_with('-');
    match number.map(u64::try_from) {
        Ok(Ok(number)) => Ok(number),
        _ if is_negative => Err("is negative".into()),
        _ => Err("is too large".into()),
    }
}

/// A decimal number as written, never converted to a float.
fn decimal(value: &Spanned<DeValue<'_>>) -> Result<Decimal, String> {
    let written = match value.get_ref() {
        DeValue::Integer(integer) if integer.radix() == 10 => integer.as_str().to_owned(),
        DeValue::Integer(_) => whole(value)?.to_string(),
        DeValue::Float(float) => float.as_str().to_owned(),
        _ => return Err(expected("a number", value)),
    };
    let written = written.strip_prefix('+').unwrap_or(&written);
    match written.parse() {
        Err(DecimalError::NotANumber) if written.contains(['e', 'E']) => {
            Err("write the number without an exponent".into())
        }
        Err(DecimalError::Negative) => Err("is negative".into()),
        read => read.map_err(|wrong| wrong.to_string()),
    }
}

/// A duration above zero.
fn period(value: &Spanned<DeValue<'_>>) -> Result<Duration, String> {
    match seconds(value)? {
        Duration::ZERO => Err(RateError::ZeroPeriod.to_string()),
        period => Ok(period),
    }
}

/// A duration: a number of seconds, or a text with a unit.
fn seconds(value: &Spanned<DeValue<'_>>) -> Result<Duration, String> {
    const FORMS: &str = "a number of seconds, or text such as \"62.5s\" or \"1 minute\"";
    match value.get_ref() {
        DeValue::Integer(_) | DeValue::Float(_) => {
            decimal(value)?.seconds().map_err(|wrong| wrong.to_string())
        }
        DeValue::String(text) => parse_duration(text).map_err(|wrong| match wrong {
            RateError::Syntax => format!("write it as {FORMS}"),
            wrong => wrong.to_string(),
        }),
        _ => Err(expected(FORMS, value)),
    }
}

/// A value of an enum by its name.
fn choice<T: FromStr<Err = UnknownName>>(
    what: &str,
    value: &Spanned<DeValue<'_>>,
) -> Result<T, String> {
    let written = text(value)?;
    written.parse().map_err(|error: T::Err| unknown(what, &written, error.allowed()).to_string())
}

/// A point in time, as RFC 3339 writes it, with quotes or without.
fn instant(value: &Spanned<DeValue<'_>>) -> Result<(), String> {
    let instant = match value.get_ref() {
        DeValue::Datetime(instant) => Some(*instant),
        DeValue::String(text) => text.parse::<Datetime>().ok(),
        _ => None,
    };
    let is_whole = |i: &Datetime| i.date.is_some() && i.time.is_some() && i.offset.is_some();
    let example = "write it with date, time and offset, such as 2026-08-01T12:00:00Z";
    instant.filter(is_whole).map(drop).ok_or_else(|| example.into())
}
