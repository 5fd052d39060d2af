//! `sluicegate rules history`.

use clap::Args;
use serde_json::{Value, json};

use super::change::changes;
use super::path;
use crate::admin::rules::{ChangeList, ChangeView};
use crate::cli::client::{Call, Client};
use crate::cli::failure::CliResult;
use crate::cli::output::Output;
use crate::cli::table::{Shown, Table};
use crate::cli::{Exit, quota};

/// List changes of rules, newest first
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  sluicegate rules history
  sluicegate rules history 1 --limit 5
  sluicegate rules history --after 118 --json")]
pub(super) struct Arguments {
    /// Only changes of this rule
    rule_id: Option<u64>,

    /// Maximum number of rows
    #[arg(long, value_name = "N", default_value = "50", value_parser = clap::value_parser!(u16).range(1..))]
    limit: u16,

    /// Continue after this cursor: `next` of an earlier list
    #[arg(long, value_name = "CURSOR")]
    after: Option<String>,
}

pub(super) fn run(arguments: &Arguments, client: &Client, output: Output) -> CliResult {
    let call = match arguments.rule_id {
        Some(rule_id) => Call::get(path(rule_id) + "/changes"),
        None => Call::get("/v1/rules/changes"),
    };
    let (after, limit) = (arguments.after.as_deref(), usize::from(arguments.limit));
    let (changes, next) = client.pages("changes", &call, after, limit)?;
    let list = ChangeList { changes, next };
    let mut table = Table::new(&["TIME", "BY", "RULE", "CHANGE"]);
    for change in &list.changes {
        table.row([
            Shown::from(change.changed_at),
            Shown::from(change.changed_by.as_str()),
            Shown::from(change.rule_id),
            what(change),
        ]);
    }
    output.more(list.next.as_deref());
    output.list(&json!(list), table, "No changes.")?;
    Ok(Exit::Done)
}

fn what(change: &ChangeView) -> Shown {
    let rule = |rule: &Value| {
        let pattern = rule["key_pattern"].as_str().unwrap_or_default();
        format!("{pattern} {}", quota::shown(rule))
    };
    match (&change.old, &change.new) {
        (Some(old), Some(new)) => Shown::from(changes(old, new).trim_end().replace('\n', ", ")),
        (None, Some(new)) => Shown::good(&format!("created: {}", rule(new))),
        (Some(old), None) => Shown::bad(&format!("deleted: {}", rule(old))),
        (None, None) => Shown::from(""),
    }
}
