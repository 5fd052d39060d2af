//! Rules from the files of other rate limiters: what maps, and a list of what does not.

mod envoy;
mod limitador;
mod names;
mod siblings;
mod yaml;

use std::collections::HashSet;
use std::fmt;
use std::time::Duration;

use serde::Serialize;
use sluicegate::rules::{FieldError, RuleSpec};
use sluicegate::{Algorithm, Mode, Rule};

pub(crate) use self::envoy::convert as envoy;
pub(crate) use self::limitador::convert as limitador;

/// The largest file that is converted. Rules may have as many bytes, and are shorter.
pub(crate) const FILE_BYTES_MAX: u64 = 1 << 20;

/// Why a file is not what it should be.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Wrong {
    /// What is wrong.
    pub(crate) message: String,
    /// The byte where, if it is in one place.
    pub(crate) at: Option<usize>,
}

impl From<&str> for Wrong {
    fn from(message: &str) -> Self {
        Self { message: message.into(), at: None }
    }
}

/// What a file became.
#[derive(Debug, Default)]
pub(crate) struct Converted {
    /// Rules, numbered in the order of the file.
    pub(crate) rules: Vec<Rule>,
    /// What does not map, and what does so only nearly.
    pub(crate) notes: Vec<Note>,
    /// The key patterns that are taken.
    patterns: HashSet<String>,
    /// How limits are counted, all of which are windows where they come from.
    algorithm: Algorithm,
}

/// Something in a file that is not in the rules made of it as it was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Note {
    /// The line, from 1.
    pub(crate) line: u64,
    /// Whether a whole limit is missing from the rules, and not just a part or shade of it.
    pub(crate) is_left_out: bool,
    /// What it is about.
    pub(crate) what: String,
    /// Why.
    pub(crate) why: String,
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let severity = if self.is_left_out { "left out" } else { "note" };
        write!(f, "{severity}: {}: {}", self.what, self.why)
    }
}

/// A limit on its way to a rule.
#[derive(Debug)]
struct Limit {
    line: u64,
    /// What to call it where something is to be said about it.
    what: String,
    key_pattern: String,
    conditions: Vec<(String, String)>,
    /// So many in a fixed window of this many seconds; none for no limit at all.
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

    fn leave_out(&mut self, line: u64, what: impl Into<String>, why: impl Into<String>) {
        self.note(line, true, what, why);
    }

    fn remark(&mut self, line: u64, what: impl Into<String>, why: impl Into<String>) {
        self.note(line, false, what, why);
    }

    fn note(
        &mut self,
        line: u64,
        is_left_out: bool,
        what: impl Into<String>,
        why: impl Into<String>,
    ) {
        self.notes.push(Note { line, is_left_out, what: what.into(), why: why.into() });
    }

    /// Makes a rule of a limit, or says why that is not possible.
    fn add(&mut self, limit: Limit) {
        let (line, what) = (limit.line, limit.what.clone());
        if limit.tokens.is_some_and(|(tokens, _)| tokens == 0) {
            let why = "a rule lets something through; block somebody by an override instead";
            self.leave_out(line, what, why);
            return;
        }
        let seconds = limit.tokens.map(|(_, seconds)| seconds);
        let mut spec = self.spec(limit);
        // Several windows of one key are several rules.
        if let Some(seconds) = seconds.filter(|_| self.patterns.contains(&spec.key_pattern)) {
            spec.key_pattern = format!("{}:{seconds}s", spec.key_pattern);
        }
        if self.patterns.contains(&spec.key_pattern) {
            self.leave_out(line, what, "another limit has the same key and the same period");
            return;
        }
        match self.build(&mut spec, line, &what) {
            Ok(rule) => {
                self.patterns.insert(spec.key_pattern);
                self.rules.push(rule);
            }
            Err(why) => self.leave_out(line, what, why),
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
            key_pattern: unlike_an_endpoint(limit.key_pattern),
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

    /// The rule. What no token bucket can count exactly stays a window.
    fn build(&mut self, spec: &mut RuleSpec, line: u64, what: &str) -> Result<Rule, String> {
        let text = |errors: Vec<FieldError>| -> String {
            errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
        };
        let why = match spec.build() {
            Ok(rule) => return Ok(rule),
            Err(errors) => text(errors),
        };
        if spec.algorithm == Algorithm::FixedWindow {
            return Err(why);
        }
        spec.algorithm = Algorithm::FixedWindow;
        let rule = spec.build().map_err(text)?;
        self.remark(line, what, format!("stays a fixed window: {why}"));
        Ok(rule)
    }

    /// These rules and notes, in the order of the file.
    fn finish(mut self) -> Self {
        let is_bucket = |rule: &Rule| {
            rule.mode() != Mode::Unlimited && rule.quota().algorithm() == Algorithm::TokenBucket
        };
        if self.rules.iter().any(is_bucket) {
            let why = "are counted by token buckets, not in windows: as many at once, and as many again over the time \
                       that was a window; `--algorithm fixed_window` counts as there";
            self.remark(1, "limits", why);
        }
        self.notes.sort_by_key(|note| note.line);
        self
    }
}

/// A pattern that begins with `endpoint:` is for that endpoint only, which nobody meant here.
fn unlike_an_endpoint(key_pattern: String) -> String {
    if key_pattern.starts_with("endpoint:") { format!("domain:{key_pattern}") } else { key_pattern }
}

#[cfg(test)]
mod tests {
    use sluicegate::{Algorithm, Mode};

    use super::Converted;

    /// The rules, a line each.
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

    /// The notes, a line each.
    pub(super) fn listed(converted: &Converted) -> Vec<String> {
        converted.notes.iter().map(|note| format!("{} {note}", note.line)).collect()
    }
}
