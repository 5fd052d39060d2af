//! Conversion of other rate limiters' configuration files into rules, with a list of what does not
//! map.

mod envoy;
mod limitador;
mod siblings;
mod text_checks;
mod yaml;

use std::collections::HashSet;
use std::fmt;
use std::time::Duration;

use serde::Serialize;
use sluicegate::rules::{FieldError, RuleSpec};
use sluicegate::{Algorithm, Mode, Rule};

pub(crate) use self::envoy::convert as envoy;
pub(crate) use self::limitador::convert as limitador;

/// Maximum size of a file. A file of rules has the same limit, and rules are shorter.
pub(crate) const FILE_BYTES_MAX: u64 = 1 << 20;

/// Reason why a file cannot be converted.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ConvertError {
    /// Error message, without the file's name.
    pub(crate) message: String,
    /// Byte offset of the error; `None` if it has no single place.
    pub(crate) at: Option<usize>,
}

impl From<&str> for ConvertError {
    fn from(message: &str) -> Self {
        Self { message: message.into(), at: None }
    }
}

/// Result of a conversion.
#[derive(Debug, Default)]
pub(crate) struct Converted {
    /// Rules, numbered in the order of the file.
    pub(crate) rules: Vec<Rule>,
    /// Parts that do not map, or not exactly.
    pub(crate) notes: Vec<Note>,
    /// Key patterns in use.
    patterns: HashSet<String>,
    /// Algorithm of the rules. The limits in the files are all fixed windows.
    algorithm: Algorithm,
}

/// Difference between a file and the rules made from it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Note {
    /// Line number, from 1.
    pub(crate) line: u64,
    /// `true` if a whole limit is missing from the rules, `false` if only a part or a detail
    /// differs.
    pub(crate) is_left_out: bool,
    /// Part of the file concerned.
    pub(crate) subject: String,
    /// Reason of the difference.
    pub(crate) reason: String,
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let severity = if self.is_left_out { "left out" } else { "note" };
        write!(f, "{severity}: {}: {}", self.subject, self.reason)
    }
}

/// A limit to be converted into a rule.
#[derive(Debug)]
struct Limit {
    line: u64,
    /// Name for notes.
    subject: String,
    key_pattern: String,
    conditions: Vec<(String, String)>,
    /// Tokens and seconds of a fixed window; `None` for unlimited.
    tokens: Option<(u64, u64)>,
    is_shadow: bool,
    description: String,
    name: String,
    replaces: Vec<String>,
}

impl Converted {
    fn new(algorithm: Algorithm) -> Self {
        Self { algorithm, ..Self::default() }
    }

    fn leave_out(&mut self, line: u64, subject: impl Into<String>, reason: impl Into<String>) {
        self.note(line, true, subject, reason);
    }

    fn remark(&mut self, line: u64, subject: impl Into<String>, reason: impl Into<String>) {
        self.note(line, false, subject, reason);
    }

    fn note(
        &mut self,
        line: u64,
        is_left_out: bool,
        subject: impl Into<String>,
        reason: impl Into<String>,
    ) {
        self.notes.push(Note { line, is_left_out, subject: subject.into(), reason: reason.into() });
    }

    /// Converts a limit into a rule, or notes why that is not possible.
    fn add(&mut self, limit: Limit) {
        let (line, subject) = (limit.line, limit.subject.clone());
        if limit.tokens.is_some_and(|(tokens, _)| tokens == 0) {
            let reason = "a rule cannot have a limit of 0; block a subject by an override instead";
            self.leave_out(line, subject, reason);
            return;
        }
        let seconds = limit.tokens.map(|(_, seconds)| seconds);
        let mut spec = self.spec(limit);
        // Several windows of one key become several rules.
        if let Some(seconds) = seconds.filter(|_| self.patterns.contains(&spec.key_pattern)) {
            spec.key_pattern = format!("{}:{seconds}s", spec.key_pattern);
        }
        if self.patterns.contains(&spec.key_pattern) {
            self.leave_out(line, subject, "another limit has the same key and the same period");
            return;
        }
        match self.build(&mut spec, line, &subject) {
            Ok(rule) => {
                self.patterns.insert(spec.key_pattern);
                self.rules.push(rule);
            }
            Err(reason) => self.leave_out(line, subject, reason),
        }
    }

    fn spec(&self, limit: Limit) -> RuleSpec {
        let is_unlimited = limit.tokens.is_none();
        let mode = match limit.is_shadow {
            _ if is_unlimited => Mode::Unlimited,
            true => Mode::Shadow,
            false => Mode::Enforce,
        };
        RuleSpec {
            rule_id: self.rules.len() as u64 + 1,
            key_pattern: without_endpoint_prefix(limit.key_pattern),
            tokens: limit.tokens.map(|(tokens, _)| tokens),
            period: limit.tokens.map(|(_, seconds)| Duration::from_secs(seconds)),
            algorithm: if is_unlimited { Algorithm::default() } else { self.algorithm },
            mode,
            description: limit.description,
            conditions: limit.conditions,
            name: limit.name,
            replaces: limit.replaces,
            ..RuleSpec::default()
        }
    }

    /// Builds the rule. A limit that a token bucket cannot count exactly stays a fixed window.
    fn build(&mut self, spec: &mut RuleSpec, line: u64, subject: &str) -> Result<Rule, String> {
        let text = |errors: Vec<FieldError>| -> String {
            errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
        };
        let reason = match spec.build() {
            Ok(rule) => return Ok(rule),
            Err(errors) => text(errors),
        };
        if spec.algorithm == Algorithm::FixedWindow {
            return Err(reason);
        }
        spec.algorithm = Algorithm::FixedWindow;
        let rule = spec.build().map_err(text)?;
        self.remark(line, subject, format!("stays a fixed window: {reason}"));
        Ok(rule)
    }

    /// Sorts the notes in the order of the file.
    fn finish(mut self) -> Self {
        let is_bucket = |rule: &Rule| {
            rule.mode() != Mode::Unlimited && rule.quota().algorithm() == Algorithm::TokenBucket
        };
        if self.rules.iter().any(is_bucket) {
            let reason = "are counted by token buckets, not in windows: the same burst, refilled evenly over the time \
                       that was a window; use `--algorithm fixed_window` to count in windows";
            self.remark(1, "limits", reason);
        }
        self.notes.sort_by_key(|note| note.line);
        self
    }
}

/// Prefixes a pattern that begins with `endpoint:`, which would apply to that endpoint only.
fn without_endpoint_prefix(key_pattern: String) -> String {
    if key_pattern.starts_with("endpoint:") { format!("domain:{key_pattern}") } else { key_pattern }
}

#[cfg(test)]
mod tests {
    use sluicegate::{Algorithm, Mode};

    use super::Converted;

    /// The rules, one per line.
    pub(super) fn rules(converted: &Converted) -> Vec<String> {
        let line = |rule: &sluicegate::Rule| {
            let (tokens, micros) = rule.quota().rate().tokens_and_period_us();
            let (id, pattern) = (rule.rule_id(), rule.key_pattern().as_str());
            let mut line = match rule.mode() {
                Mode::Unlimited => format!("{id} {pattern} unlimited"),
                _ => format!("{id} {pattern} {tokens} per {}s", micros / 1_000_000),
            };
            for (attribute, condition) in rule.conditions() {
                line += &format!(" {attribute}={condition}");
            }
            if rule.quota().algorithm() == Algorithm::FixedWindow {
                line += " window";
            }
            if rule.mode() == Mode::Shadow {
                line += " shadow";
            }
            if let Some(name) = rule.name() {
                assert_eq!(name, rule.description());
            }
            let replaces: Vec<_> = rule.replaces().collect();
            if !replaces.is_empty() {
                line += &format!(" instead of {}", replaces.join(", "));
            }
            if !rule.description().is_empty() {
                line += &format!(" ({})", rule.description());
            }
            line
        };
        converted.rules.iter().map(line).collect()
    }

    /// The notes, one per line.
    pub(super) fn listed(converted: &Converted) -> Vec<String> {
        converted.notes.iter().map(|note| format!("{} {note}", note.line)).collect()
    }
}
