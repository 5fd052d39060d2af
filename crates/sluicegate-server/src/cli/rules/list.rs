//! `sluicegate rules list` and `show`.

use clap::Args;
use serde_json::Value;
use sluicegate::Scope;

use super::{all, path};
use crate::cli::client::{Call, Client};
use crate::cli::failure::CliResult;
use crate::cli::output::{Output, say};
use crate::cli::table::{Shown, Table, card, text_of, time_of};
use crate::cli::{Exit, quota};
use crate::rules::diff::chosen_columns;

/// List the rules
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  sluicegate rules list
  sluicegate rules list --plan free --json
  sluicegate rules list --inactive --database sqlite:sluicegate.db")]
pub(super) struct List {
    /// Only rules for this plan
    #[arg(long, value_name = "NAME")]
    plan: Option<String>,

    /// Only rules with this scope
    #[arg(long, value_name = "SCOPE", value_parser = Scope::NAMES)]
    scope: Option<String>,

    /// Only active rules
    #[arg(long, conflicts_with = "inactive")]
    active: bool,

    /// Only inactive rules
    #[arg(long)]
    inactive: bool,
}

/// Show one rule
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  sluicegate rules show 1
  sluicegate rules show 1 --json")]
pub(super) struct Show {
    /// Id of the rule
    rule_id: u64,
}

const HEADER: [&str; 9] = [
    "ID",
    "KEY PATTERN",
    "PLAN",
    "QUOTA",
    "STATE",
    "CONDITIONS",
    "NAME",
    "REPLACES",
    "DESCRIPTION",
];

pub(super) fn list(arguments: &List, client: &Client, output: Output) -> CliResult {
    let is_active = (arguments.active || arguments.inactive).then_some(arguments.active);
    let call = Call::get("/v1/rules")
        .maybe("plan", arguments.plan.as_ref())
        .maybe("scope", arguments.scope.as_ref())
        .maybe("is_active", is_active.map(|is_active| is_active.to_string()));
    let list = all(client, &call)?;
    let mut table = Table::new(&HEADER).sparing(&["DESCRIPTION", "REPLACES", "NAME"]);
    for rule in list["rules"].as_array().into_iter().flatten() {
        table.row([
            Shown::of(rule, "rule_id"),
            Shown::of(rule, "key_pattern"),
            Shown::of(rule, "plan"),
            Shown::from(quota::shown(rule)),
            state(rule),
            Shown::of(rule, "conditions"),
            Shown::of(rule, "name"),
            Shown::of(rule, "replaces"),
            Shown::of(rule, "description"),
        ]);
    }
    // Shown only where they are used.
    let table = table.without_empty("NAME").without_empty("REPLACES");
    if let Some(refused) = list["refused"].as_str() {
        let version = text_of(&list["version"]);
        say(&match client {
            Client::Server(_) => {
                format!(
                    "warning: these rules are not in force: {refused}; version {version} stays in force"
                )
            }
            Client::InProcess(_) => format!("warning: servers refuse these rules: {refused}"),
        });
    }
    output.list(&list, table, "No rules: every request is allowed.")?;
    Ok(Exit::Done)
}

/// State of a rule: on, shadow or off.
fn state(rule: &Value) -> Shown {
    match (rule["is_active"].as_bool(), rule["mode"].as_str()) {
        (Some(false), _) => Shown::quiet("off"),
        (_, Some("shadow")) => Shown::quiet("shadow"),
        _ => Shown::good("on"),
    }
}

pub(super) fn show(arguments: &Show, client: &Client, output: Output) -> CliResult {
    let rule = client.json(&Call::get(path(arguments.rule_id)))?;
    output.show(&rule, || shown(&rule))?;
    Ok(Exit::Done)
}

/// All columns of a rule, one per line.
pub(super) fn shown(rule: &Value) -> String {
    let mut members = Vec::new();
    let (before, after) = (["rule_id"], ["created_at", "version"]);
    for name in before.into_iter().chain(chosen_columns()).chain(after) {
        if name == "tokens" {
            members.push(("quota", quota::shown(rule)));
        }
        let value = match name {
            "period" => format!("{}s", text_of(&rule[name])),
            "created_at" => time_of(&rule[name]),
            _ => text_of(&rule[name]),
        };
        members.push((name, value));
    }
    card(&members)
}
