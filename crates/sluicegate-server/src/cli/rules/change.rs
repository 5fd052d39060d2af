//! `sluicegate rules create`, `update` and `delete`.

use clap::Args;
use serde_json::{Value, json};

use super::columns::Columns;
use super::{list, path};
use crate::cli::Exit;
use crate::cli::client::{Call, Client};
use crate::cli::confirm::confirm;
use crate::cli::failure::{CliResult, Failure};
use crate::cli::options::{Change, Why};
use crate::cli::output::{Output, say};
use crate::cli::table::text_of;

/// Create a rule
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  sluicegate rules create --key-pattern 'export:{user_id}' --rate 5/h --condition endpoint=/export
  sluicegate rules create --key-pattern 'tenant:{tenant}' --rate \"10/s burst 50\" --mode shadow
  echo '{\"key_pattern\":\"everything\",\"tokens\":1000,\"period\":1}' | sluicegate rules create --file -")]
pub(super) struct Create {
    #[command(flatten)]
    columns: Columns,

    /// Id of the rule, part of its buckets' keys [default: the next id]
    #[arg(long, value_name = "ID")]
    rule_id: Option<u64>,

    /// Show what would be created, and create nothing
    #[arg(long)]
    dry_run: bool,

    #[command(flatten)]
    why: Why,
}

/// Change columns of a rule
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  sluicegate rules update 1 --rate \"20/s burst 100\"
  sluicegate rules update 1 --mode shadow --dry-run
  sluicegate rules update 5 --condition method=POST --inactive

Buckets keep their spent tokens: a change refills nothing. If the rule was changed by others in the meantime, nothing is \
changed.")]
pub(super) struct Update {
    /// Id of the rule
    rule_id: u64,

    #[command(flatten)]
    columns: Columns,

    /// Show what would change, and change nothing
    #[arg(long)]
    dry_run: bool,

    #[command(flatten)]
    why: Why,
}

/// Delete a rule and its overrides
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  sluicegate rules delete 7
  sluicegate rules delete 7 --yes

`sluicegate rules update 7 --inactive` disables a rule without deleting it.")]
pub(super) struct Delete {
    /// Id of the rule
    rule_id: u64,

    #[command(flatten)]
    change: Change,

    #[command(flatten)]
    why: Why,
}

pub(super) fn create(arguments: &Create, client: &Client, output: Output) -> CliResult {
    let mut columns = arguments.columns.read()?;
    if let Some(rule_id) = arguments.rule_id {
        columns.insert("rule_id".into(), json!(rule_id));
    }
    if columns.is_empty() {
        return Err(Failure::usage("a rule needs at least --key-pattern and --rate"));
    }
    let call = Call::post("/v1/rules", columns.into()).because(&arguments.why);
    let rule = client.json(&call.dry_run(arguments.dry_run))?;
    if arguments.dry_run {
        say("Nothing was created; the rule would be:");
    } else {
        say(&format!("Rule {} was created.", text_of(&rule["rule_id"])));
    }
    output.show(&rule, || list::shown(&rule))?;
    Ok(Exit::Done)
}

pub(super) fn update(arguments: &Update, client: &Client, output: Output) -> CliResult {
    let rule_id = arguments.rule_id;
    let old = client.json(&Call::get(path(rule_id)))?;
    let columns = arguments.columns.read_for(&old)?;
    if columns.is_empty() {
        return Err(Failure::usage("nothing to change: give a column, such as --rate 20/s"));
    }
    let call = Call::patch(path(rule_id), columns.into()).if_match(old["version"].as_u64());
    let call = call.because(&arguments.why).dry_run(arguments.dry_run);
    let new = client.json(&call)?;
    let changes = changes(&old, &new);
    match (arguments.dry_run, changes.is_empty()) {
        (_, true) => say(&format!("Rule {rule_id} has these values already.")),
        (true, false) => say(&format!("Nothing was changed; in rule {rule_id} this would change:")),
        (false, false) => say(&format!("Rule {rule_id} was changed.")),
    }
    output.show(&new, || changes)?;
    Ok(Exit::Done)
}

pub(super) fn delete(arguments: &Delete, client: &Client, output: Output) -> CliResult {
    let rule_id = arguments.rule_id;
    let rule = client.json(&Call::get(path(rule_id)))?;
    if arguments.change.dry_run {
        say("Nothing was deleted; the rule is:");
        output.show(&rule, || list::shown(&rule))?;
        return Ok(Exit::Done);
    }
    let pattern = text_of(&rule["key_pattern"]);
    let question = format!("Delete rule {rule_id} ({pattern}) and its overrides?");
    confirm(&question, arguments.change.yes)?;
    let call = Call::delete(path(rule_id)).because(&arguments.why);
    client.send(&call.if_match(rule["version"].as_u64()))?;
    say(&format!("Rule {rule_id} was deleted."));
    output.show(&json!({"deleted": rule}), String::new)?;
    Ok(Exit::Done)
}

/// Columns that differ, one per line: `tokens: 10 -> 20`.
pub(super) fn changes(old: &Value, new: &Value) -> String {
    let none = serde_json::Map::new();
    let members = new.as_object().unwrap_or(&none).iter();
    members
        .filter(|(name, value)| old[name.as_str()] != **value)
        .filter(|(name, _)| {
            !matches!(name.as_str(), "version" | "dry_run" | "rate_per_second" | "created_at")
        })
        .map(|(name, value)| {
            let line = format!("{name}: {} -> {}", or_none(&old[name.as_str()]), or_none(value));
            crate::observe::logging::escaped(&line, false).into_owned() + "\n"
        })
        .collect()
}

/// A value as plain text; `(none)` if it is empty.
pub(super) fn or_none(value: &Value) -> String {
    let text = text_of(value);
    if text.is_empty() { "(none)".into() } else { text }
}
