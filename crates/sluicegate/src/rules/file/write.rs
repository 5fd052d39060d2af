//! Rules as the text of a `rules.toml`.

use std::fmt::{self, Write as _};
use std::time::Duration;

use sluicegate_core::{Algorithm, Refill};

use crate::rules::pattern::Pattern;
use crate::rules::rule::{Mode, OnError, PathForm, Scope};
use crate::rules::spec::{NOTES, RuleSpec, UNLIMITED_PERIOD, UNLIMITED_TOKENS};

/// Writes rules as the text of a `rules.toml`, which [`RuleSet::from_toml`](crate::RuleSet::from_toml) reads back
/// equal. Columns with default values are left out.
///
/// ```
/// use sluicegate::rules::file::to_toml;
/// use sluicegate::{Quota, Rule};
///
/// let rule = Rule::new(1, "user:{user_id}", "0.016/s burst 3".parse::<Quota>()?)?.with_plan("free")?;
/// assert_eq!(
///     to_toml(&[rule.spec()]),
///     r#"[[rule]]
/// rule_id = 1
/// key_pattern = "user:{user_id}"
/// plan = "free"
/// tokens = 1
/// period = "62.5s"
/// burst_capacity = 3
/// "#
/// );
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Invalid columns, such as two conditions on one attribute, are written as they are, and reading the file refuses
/// them.
#[must_use]
pub fn to_toml(rules: &[RuleSpec]) -> String {
    if rules.is_empty() {
        return "rule = []\n".into();
    }
    let tables: Vec<String> = rules.iter().map(table).collect();
    tables.join("\n")
}

/// One `[[rule]]`, without the columns that are as in [`RuleSpec::default`].
fn table(spec: &RuleSpec) -> String {
    let mut table = Table("[[rule]]\n".into());
    table.column("rule_id", Some(spec.rule_id));
    table.column("name", Some(Text(&spec.name)).filter(|name| !name.0.is_empty()));
    table.column("key_pattern", Some(Text(&spec.key_pattern)));
    let suggested = Pattern::parse(&spec.key_pattern).ok().map(|pattern| Scope::of(&pattern));
    table.word("scope", spec.scope.filter(|scope| Some(*scope) != suggested).map(Scope::name));
    table.column("plan", Some(Text(&spec.plan)).filter(|plan| !plan.0.is_empty()));
    table.conditions(&spec.conditions);
    let path = Some(spec.path).filter(|path| *path != PathForm::default());
    table.word("path", path.map(PathForm::name));
    table.replaces(&spec.replaces);
    table.column("rate_per_second", spec.rate_per_second);
    let has_rate = !is_taken_for_granted(spec);
    table.column("tokens", spec.tokens.filter(|_| has_rate));
    table.column("period", spec.period.filter(|_| has_rate).map(Period));
    table.column(
        "burst_capacity",
        spec.burst_capacity.filter(|_| spec.burst_capacity != spec.tokens),
    );
    let algorithm = Some(spec.algorithm).filter(|algorithm| *algorithm != Algorithm::default());
    table.word("algorithm", algorithm.map(Algorithm::name));
    let refill = Some(spec.refill).filter(|refill| *refill != Refill::default());
    table.word("refill", refill.map(Refill::name));
    table.column("max_wait", spec.max_wait.map(Period));
    table.word("mode", Some(spec.mode).filter(|mode| *mode != Mode::default()).map(Mode::name));
    let on_error = Some(spec.on_error).filter(|on_error| *on_error != OnError::default());
    table.word("on_error", on_error.map(OnError::name));
    table.column("is_active", Some(false).filter(|_| !spec.is_active));
    for note in &NOTES {
        table.column(note.name(), Some(Text(note.get(spec))).filter(|text| !text.0.is_empty()));
    }
    table.0
}

/// Returns whether tokens and period are the defaults of a rule in `Unlimited` mode.
fn is_taken_for_granted(spec: &RuleSpec) -> bool {
    let rate = (spec.tokens, spec.period);
    spec.mode == Mode::Unlimited
        && spec.rate_per_second.is_none()
        && rate == (Some(UNLIMITED_TOKENS), Some(UNLIMITED_PERIOD))
}

struct Table(String);

impl Table {
    /// A text column, unless it is empty.
    fn column(&mut self, name: &str, value: Option<impl fmt::Display>) {
        if let Some(value) = value {
            self.write(format_args!("{name} = {value}\n"));
        }
    }

    /// A column with a name of an enum, if given.
    fn word(&mut self, name: &str, word: Option<&str>) {
        self.column(name, word.map(Text));
    }

    fn conditions(&mut self, conditions: &[(String, String)]) {
        if conditions.is_empty() {
            return;
        }
        self.write(format_args!("conditions = {{ "));
        for (position, (name, glob)) in conditions.iter().enumerate() {
            let separator = if position == 0 { "" } else { ", " };
            self.write(format_args!("{separator}{} = {}", Key(name), Text(glob)));
        }
        self.write(format_args!(" }}\n"));
    }

    fn replaces(&mut self, names: &[String]) {
        if !names.is_empty() {
            let names: Vec<String> = names.iter().map(|name| Text(name).to_string()).collect();
            self.write(format_args!("replaces = [{}]\n", names.join(", ")));
        }
    }

    fn write(&mut self, text: fmt::Arguments<'_>) {
        // Writing to a string does not fail.
        let _ = self.0.write_fmt(text);
    }
}

/// A text in quotes.
struct Text<'a>(&'a str);

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('"')?;
        for c in self.0.chars() {
            match c {
                '"' | '\\' => write!(f, "\\{c}")?,
                '\n' => f.write_str("\\n")?,
                '\t' => f.write_str("\\t")?,
                // Among them are those that would change a terminal's colours, or the direction of its text.
                c if c.is_control() || is_invisible(c) => write_escape(f, c)?,
                c => f.write_char(c)?,
            }
        }
        f.write_char('"')
    }
}

fn write_escape(f: &mut fmt::Formatter<'_>, c: char) -> fmt::Result {
    let code = u32::from(c);
    if code <= 0xFFFF { write!(f, "\\u{code:04X}") } else { write!(f, "\\U{code:08X}") }
}

/// Invisible characters that change the display of text around them.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{200B}'..='\u{200F}' | '\u{2028}'..='\u{202E}' | '\u{2060}'..='\u{206F}' | '\u{FEFF}')
}

/// Name of a column, quoted where TOML requires it.
struct Key<'a>(&'a str);

impl fmt::Display for Key<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_bare = |b: u8| b.is_ascii_alphanumeric() || b"_-".contains(&b);
        if !self.0.is_empty() && self.0.bytes().all(is_bare) {
            f.write_str(self.0)
        } else {
            Text(self.0).fmt(f)
        }
    }
}

/// A duration in the largest unit that it is a whole number of, from days to seconds; less than a second in
/// milliseconds or microseconds, and anything else in decimal seconds.
struct Period(Duration);

impl fmt::Display for Period {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (seconds, nanos) = (self.0.as_secs(), self.0.subsec_nanos());
        match (seconds, nanos) {
            (1.., 0) => {
                let units = [("d", 86_400), ("h", 3600), ("m", 60), ("s", 1)];
                let fits = |(_, unit): &&(&str, u64)| seconds.is_multiple_of(*unit);
                let (name, unit) = units.iter().find(fits).unwrap_or(&("s", 1));
                write!(f, "\"{}{name}\"", seconds / unit)
            }
            (0, 1..) if nanos.is_multiple_of(1_000_000) => write!(f, "\"{}ms\"", nanos / 1_000_000),
            (0, 1..) if nanos.is_multiple_of(1000) => write!(f, "\"{}us\"", nanos / 1000),
            _ => {
                let decimal = format!("{seconds}.{nanos:09}");
                let shortest = decimal.trim_end_matches('0').trim_end_matches('.');
                write!(f, "\"{shortest}s\"")
            }
        }
    }
}
