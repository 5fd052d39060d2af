//! Rules files, `rules.toml`: read whole or refused with all errors, and [written](to_toml).
//!
//! ```toml
//! [[rule]]
//! rule_id = 1
//! key_pattern = "user:{user_id}"
//! plan = "free"
//! tokens = 10
//! period = "1s"
//! burst_capacity = 50
//!
//! [[rule]]
//! rule_id = 2
//! key_pattern = "payment:{user_id}"
//! rate_per_second = 0.016
//! burst_capacity = 3
//! conditions = { endpoint = "/payment", method = "POST" }
//! ```
//!
//! A rule has a `key_pattern` and a rate: `tokens` per `period` (in seconds, or as text such as
//! `"62.5s"` or `"1 minute"`), or `rate_per_second`. Everything else may be left out: `rule_id`, `scope`,
//! `burst_capacity`, `plan`, `is_active`, `description`, `created_at`, `version`, `algorithm`, `refill`,
//! `max_wait` (like `period`), `mode`, `on_error`, `conditions` (attributes and what they must match),
//! `path` (`exact`, or `folded` spellings of a path), `name`
//! and `replaces` (names of rules that do not apply where this one does). Numbers are taken as they are written: 0.016 a second is one every 62.5 s, exactly.
//!
//! Rules without a `rule_id` are numbered 1, 2, 3 in the order of the file, leaving out the ids that are given. A
//! rule's id names its buckets: give it one, and keep it, so that spent tokens stay with the rule when others are
//! added or removed.

mod error;
mod row;
mod string;
mod write;

use std::collections::HashSet;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use self::error::Problems;
pub use self::error::{FileError, FileErrors};
use self::row::Row;
pub use self::write::to_toml;
use super::set::{RULES_MAX, RuleSet, RuleSetError, RuleSetErrors, TIERS_MAX, clashes};
use crate::compat::floor_char_boundary;
use crate::suggest::unknown;

/// Largest rules file, in bytes: the most rules of a set, at 400 bytes each. A reader can stop one byte beyond it.
pub const RULES_FILE_BYTES_MAX: usize = 4 << 20;

/// Name of the tables of a file.
const RULE: &str = "rule";

impl RuleSet {
    /// Reads a set of rules from the text of a `rules.toml`: see [`file`](crate::rules::file).
    /// `name` is the name of the file in errors.
    ///
    /// A file without any rule would lift every limit, and is more likely a mistake: it must say `rule = []`.
    ///
    /// # Errors
    ///
    /// All errors with their positions, except those that follow from another error, and further errors of a rule with
    /// invalid TOML.
    ///
    /// ```
    /// use sluicegate::RuleSet;
    ///
    /// let text = "[[rule]]\nkey_pattern = \"user:{user_id\"\nrate_per_second = 10\n";
    /// let errors = RuleSet::from_toml("rules.toml", text).unwrap_err();
    /// assert_eq!(
    ///     errors.to_string(),
    ///     "error: key_pattern: this `{` is never closed
    ///  --> rules.toml:2:21
    ///   |
    /// 2 | key_pattern = \"user:{user_id\"
    ///   |                     ^"
    /// );
    /// ```
    pub fn from_toml(name: &str, text: &str) -> Result<Self, FileErrors> {
        Self::from_toml_bounded(name, text, TIERS_MAX)
    }

    /// Reads a set of rules with another [bound](Self::bounded) for the rules that one request may meet.
    ///
    /// # Errors
    ///
    /// As [`from_toml`](Self::from_toml).
    pub fn from_toml_bounded(name: &str, text: &str, tiers_max: usize) -> Result<Self, FileErrors> {
        let mut problems = Problems::new(text);
        read(text, tiers_max, &mut problems).ok_or_else(|| problems.into_errors(name))
    }
}

/// The rules of a file; `None` only if there is a problem.
fn read(text: &str, tiers_max: usize, problems: &mut Problems<'_>) -> Option<RuleSet> {
    if text.len() > RULES_FILE_BYTES_MAX {
        let end = floor_char_boundary(text, RULES_FILE_BYTES_MAX);
        problems.add(end..end, format_args!("a file has at most {RULES_FILE_BYTES_MAX} bytes"));
        return None;
    }
    let (document, syntax_errors) = DeTable::parse_recoverable(text);
    for error in &syntax_errors {
        problems.add(error.span().unwrap_or_default(), error.message());
    }
    let tables = rule_tables(document.get_ref(), problems);
    if tables.len() > RULES_MAX {
        let too_many = RuleSetError::TooMany { rules: tables.len() };
        problems.add(tables[RULES_MAX].span(), too_many);
        return None;
    }
    // A rule extends to the next one. Where its TOML is broken, its values are guesses.
    let mut broken: Vec<_> = syntax_errors.iter().map(toml::de::Error::span).collect();
    broken.sort_unstable_by_key(|span| span.as_ref().map(|span| span.start));
    let is_sound = |position: usize| {
        let start = tables[position].span().start;
        let end = tables.get(position + 1).map_or(usize::MAX, |next| next.span().start);
        let before = |at| broken.partition_point(|span| span.as_ref().is_none_or(|s| s.start < at));
        before(start) == before(end) && broken.first().is_none_or(Option::is_some)
    };
    let mut rows: Vec<Row<'_>> = (0..tables.len())
        .filter(|position| is_sound(*position))
        .filter_map(|position| Row::new(text, tables[position], problems))
        .collect();
    let given: HashSet<u64> = rows.iter().filter_map(Row::given_id).collect();
    let mut free_ids = (1..).filter(|id| !given.contains(id));
    rows.iter_mut().for_each(|row| row.number(&mut free_ids));

    report_clashes(&rows, problems);
    let rules = rows.iter().filter_map(|row| row.rule(problems)).collect();
    if problems.is_empty() {
        let set = RuleSet::bounded(rules, tiers_max);
        return set.map_err(|errors| report_set(&errors, &rows, problems)).ok();
    }
    None
}

/// Reports why rules that are valid one by one are not valid together.
fn report_set(errors: &RuleSetErrors, rows: &[Row<'_>], problems: &mut Problems<'_>) {
    for error in errors.as_slice() {
        let span = match error {
            RuleSetError::TooManyUnconditional { position, .. } => {
                rows[*position].span_of("key_pattern")
            }
            _ => 0..0,
        };
        problems.add(span, error);
    }
}

/// The tables of the rules, in the order of the file.
fn rule_tables<'d, 't>(
    document: &'d DeTable<'t>,
    problems: &mut Problems<'_>,
) -> Vec<&'d Spanned<DeValue<'t>>> {
    for key in document.keys().filter(|key| key.get_ref() != RULE) {
        problems.add(key.span(), unknown("key", key.get_ref(), &[RULE]));
    }
    let Some(rules) = document.get(RULE) else {
        // A misspelt key or invalid TOML is reported already.
        if problems.is_empty() {
            problems.add(0..0, "no rules: write `rule = []` for a file without rules");
        }
        return Vec::new();
    };
    if let Some(rules) = rules.get_ref().as_array() {
        return rules.iter().collect();
    }
    problems.add(rules.span(), "rules are written as `[[rule]]`, with two brackets");
    Vec::new()
}

/// Reports clashes between two rules, at the second of them.
fn report_clashes(rows: &[Row<'_>], problems: &mut Problems<'_>) {
    for clash in clashes(rows.iter().map(Row::claim)) {
        let (first, second, column) = match clash {
            RuleSetError::SameId { first, second, .. } => (first, second, "rule_id"),
            RuleSetError::SamePattern { first, second, .. } => (first, second, "key_pattern"),
            RuleSetError::TooMany { .. }
            | RuleSetError::IdTooLarge { .. }
            | RuleSetError::TooManyUnconditional { .. } => continue,
        };
        let line = problems.line_of(rows[first].span_of(column).start);
        problems.add(rows[second].span_of(column), format_args!("{clash}, first in line {line}"));
    }
}
