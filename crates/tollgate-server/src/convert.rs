//! Rules from the files of other rate limiters: what maps, and a list of what does not.

mod envoy;
mod limitador;
mod names;
mod yaml;

use std::collections::HashSet;
use std::fmt;

use serde::Serialize;
use tollgate::rules::RuleSpec;
use tollgate::{Algorithm, Rule};

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

/// A limit on its way to a rule: so many in a fixed window of this many seconds.
#[derive(Debug)]
struct Limit {
    line: u64,
    /// What to call it where something is to be said about it.
    what: String,
    key_pattern: String,
    conditions: Vec<(String, String)>,
    tokens: u64,
    seconds: u64,
    is_shadow: bool,
    description: String,
}

impl Converted {
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
        let Limit { line, what, .. } = &limit;
        if limit.tokens == 0 {
            let why = "a rule lets something through; block somebody by an override instead";
            self.leave_out(*line, what, why);
            return;
        }
        let (line, what) = (*line, what.clone());
        let mut spec = RuleSpec {
            rule_id: self.rules.len() as u64 + 1,
            key_pattern: unlike_an_endpoint(limit.key_pattern),
            tokens: Some(limit.tokens),
            period: Some(std::time::Duration::from_secs(limit.seconds)),
            algorithm: Algorithm::FixedWindow,
            mode: if limit.is_shadow { tollgate::Mode::Shadow } else { tollgate::Mode::Enforce },
            description: limit.description,
            conditions: limit.conditions,
            ..RuleSpec::default()
        };
        // Several windows of one key are several rules.
        if self.patterns.contains(&spec.key_pattern) {
            spec.key_pattern = format!("{}:{}s", spec.key_pattern, limit.seconds);
        }
        if self.patterns.contains(&spec.key_pattern) {
            self.leave_out(line, what, "another limit has the same key and the same period");
            return;
        }
        match spec.build() {
            Ok(rule) => {
                self.patterns.insert(spec.key_pattern);
                self.rules.push(rule);
            }
            Err(errors) => {
                let errors: Vec<_> = errors.iter().map(ToString::to_string).collect();
                self.leave_out(line, what, errors.join("; "));
            }
        }
    }

    fn finish(mut self) -> Self {
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
    use super::Converted;

    /// The rules, a line each.
    pub(super) fn rules(converted: &Converted) -> Vec<String> {
        let line = |rule: &tollgate::Rule| {
            let (tokens, micros) = rule.quota().rate().tokens_and_period_us();
            let (id, pattern) = (rule.rule_id(), rule.key_pattern().as_str());
            let mut line = format!("{id} {pattern} {tokens} per {}s", micros / 1_000_000);
            for (attribute, glob) in rule.conditions() {
                line += &format!(" {attribute}={}", glob.as_str());
            }
            assert_eq!(rule.quota().algorithm(), tollgate::Algorithm::FixedWindow);
            if rule.mode() == tollgate::Mode::Shadow {
                line += " shadow";
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
