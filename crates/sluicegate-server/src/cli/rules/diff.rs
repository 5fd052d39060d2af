//! `sluicegate rules diff`, and the text of a difference.

use std::path::PathBuf;

use clap::Args;
use serde_json::{Map, Value, json};

use super::change::or_none;
use super::{import, rule_set};
use crate::cli::client::Client;
use crate::cli::failure::CliResult;
use crate::cli::output::{Output, counted};
use crate::cli::{Exit, quota};
use crate::observe::logging::escaped;
use crate::rules::diff::RulesDiff;

/// Show what importing a file would change, and change nothing
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  sluicegate rules diff rules.toml
  sluicegate rules diff rules.toml --database settings --json

The exit code is 0 with or without a difference.")]
pub(super) struct Arguments {
    /// File of rules, `-` for standard input
    file: PathBuf,
}

pub(super) fn run(arguments: &Arguments, client: &Client, output: Output) -> CliResult {
    let new = import::read_rules(&arguments.file)?;
    let diff = RulesDiff::new(&rule_set(client)?, &new);
    output.show(&json!(diff), || shown(&diff, output.in_colours))?;
    Ok(Exit::Done)
}

/// Colours of added, removed and changed rules.
const GREEN: &str = "\x1b[32m";
const RED: &str = "\x1b[31m";
const YELLOW: &str = "\x1b[33m";
const PLAIN: &str = "\x1b[0m";

/// A difference as text, ending in a line break.
pub(super) fn shown(diff: &RulesDiff, in_colours: bool) -> String {
    if diff.is_empty() {
        let rules = counted(diff.unchanged, "rule is unchanged", "rules are unchanged");
        return format!("No difference: {rules}.\n");
    }
    let line = |colour: &str, text: &str| {
        let text = escaped(text, false);
        if in_colours { format!("{colour}{text}{PLAIN}\n") } else { format!("{text}\n") }
    };
    let mut text = String::new();
    for rule in &diff.added {
        text += &line(GREEN, &format!("+ {}", summary(rule)));
    }
    for rule in &diff.removed {
        text += &line(RED, &format!("- {}", summary(rule)));
    }
    for rule in &diff.changed {
        let title = title(rule.rule_id, &rule.key_pattern, &rule.plan);
        text += &line(YELLOW, &format!("~ {title}"));
        for column in &rule.columns {
            let (old, new) = (or_none(&column.old), or_none(&column.new));
            text += &line("", &format!("    {}: {old} -> {new}", column.name));
        }
    }
    let (added, removed, changed) = (diff.added.len(), diff.removed.len(), diff.changed.len());
    let unchanged = diff.unchanged;
    text + &format!("{added} added, {removed} removed, {changed} changed, {unchanged} unchanged.\n")
}

/// One rule on one line.
fn summary(rule: &Map<String, Value>) -> String {
    let text = |name: &str| rule.get(name).and_then(Value::as_str).unwrap_or_default();
    let rule_id = rule.get("rule_id").and_then(Value::as_u64).unwrap_or_default();
    let title = title(rule_id, text("key_pattern"), text("plan"));
    let mut line = format!("{title} {}", quota::shown(&Value::Object(rule.clone())));
    if let Some(Value::Object(conditions)) = rule.get("conditions")
        && !conditions.is_empty()
    {
        line += &format!(" where {}", or_none(&rule["conditions"]));
    }
    if let Some(Value::Array(replaces)) = rule.get("replaces")
        && !replaces.is_empty()
    {
        line += &format!(" instead of {}", or_none(&rule["replaces"]));
    }
    if text("mode") == "shadow" {
        line += " [shadow]";
    }
    if rule.get("is_active") == Some(&Value::Bool(false)) {
        line += " [inactive]";
    }
    line
}

fn title(rule_id: u64, key_pattern: &str, plan: &str) -> String {
    let plan = if plan.is_empty() { String::new() } else { format!(" for {plan}") };
    format!("rule {rule_id} {key_pattern}{plan}:")
}

#[cfg(test)]
mod tests {
    use sluicegate::RuleSet;

    use super::*;

    #[test]
    fn a_difference_reads_like_one() {
        let old = "[[rule]]\nkey_pattern = \"a:{x}\"\ntokens = 1\nperiod = 1\n\
                   [[rule]]\nkey_pattern = \"b\"\nplan = \"pro\"\ntokens = 2\nperiod = 60\n";
        let new = "[[rule]]\nkey_pattern = \"a:{x}\"\ntokens = 9\nperiod = 1\nconditions = { ip = \"1.*\" }\n\
                   [[rule]]\nrule_id = 7\nkey_pattern = \"c\"\ntokens = 2\nperiod = 60\nmode = \"shadow\"\n";
        let read = |text| RuleSet::from_toml("rules.toml", text).unwrap();
        let diff = RulesDiff::new(read(old).rules(), read(new).rules());
        assert_eq!(
            shown(&diff, false),
            "+ rule 7 c: 2/min [shadow]\n\
             - rule 2 b for pro: 2/min\n\
             ~ rule 1 a:{x}:\n    conditions: (none) -> ip=1.*\n    tokens: 1 -> 9\n    burst_capacity: 1 -> 9\n\
             1 added, 1 removed, 1 changed, 0 unchanged.\n"
        );
        assert!(shown(&diff, true).starts_with("\x1b[32m+ rule 7"));
        assert_eq!(shown(&RulesDiff::default(), false), "No difference: 0 rules are unchanged.\n");
    }
}
