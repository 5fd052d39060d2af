//! `sluicegate rules`.

mod change;
mod columns;
mod diff;
mod export;
mod history;
mod import;
mod list;
mod preview;

use clap::{Args, Subcommand};

use serde_json::Value;
use sluicegate::Rule;
use sluicegate::rules::{RULES_MAX, RuleSpec};

use super::client::{Call, Client};
use super::database::Needs;
use super::failure::{CliResult, Failure};
use super::options::{Direct, Form, Server};
use crate::data::DataError;
use crate::json::rule::Columns;

const EXAMPLES: &str = "\
Examples:
  sluicegate rules list
  sluicegate rules create --key-pattern 'export:{user_id}' --rate 5/h --condition endpoint=/export
  sluicegate rules update 1 --rate \"20/s burst 100\" --dry-run
  sluicegate rules history 1
  sluicegate rules export --out rules.toml
  sluicegate rules diff rules.toml
  sluicegate rules import rules.toml
  sluicegate rules import --from envoy-ratelimit config.yaml --dry-run
  sluicegate rules list --database sqlite:sluicegate.db

These commands talk to a running server, or with --database directly to the database; servers on it apply changes within \
two seconds.

Exit codes: 0 done, 2 wrong arguments or refused, 3 cannot reach the server or the database.";

/// Show and change rules, and move them between files and the database
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Arguments {
    #[command(subcommand)]
    action: Action,
    #[command(flatten)]
    form: Form,
    #[command(flatten)]
    server: Server,
    #[command(flatten)]
    direct: Direct,
}

#[derive(Debug, Subcommand)]
enum Action {
    List(list::List),
    Show(list::Show),
    Create(change::Create),
    Update(change::Update),
    Delete(change::Delete),
    History(history::Arguments),
    Preview(preview::Arguments),
    Export(export::Arguments),
    Import(import::Arguments),
    Diff(diff::Arguments),
}

/// Runs the command.
pub(super) fn run(arguments: &Arguments) -> CliResult {
    let output = arguments.form.output();
    let client = Client::open(&arguments.server, &arguments.direct, Needs::Nothing)?;
    match &arguments.action {
        Action::List(list) => list::list(list, &client, output),
        Action::Show(show) => list::show(show, &client, output),
        Action::Create(create) => change::create(create, &client, output),
        Action::Update(update) => change::update(update, &client, output),
        Action::Delete(delete) => change::delete(delete, &client, output),
        Action::History(history) => history::run(history, &client, output),
        Action::Preview(preview) => preview::run(preview, &client, output),
        Action::Export(export) => export::run(export, &client, output),
        Action::Import(import) => import::run(import, &client, output),
        Action::Diff(diff) => diff::run(diff, &client, output),
    }
}

/// Path of a rule.
fn path(rule_id: u64) -> String {
    format!("/v1/rules/{rule_id}")
}

/// All rules that pass the filter of the call, by id, in the last answer.
fn all(client: &Client, call: &Call) -> CliResult<Value> {
    let (rules, mut list) = client.walk::<Value>("rules", call, None, RULES_MAX)?;
    list["rules"] = rules.into();
    Ok(list)
}

/// All rules, ready to be compared.
fn rule_set(client: &Client) -> CliResult<Vec<Rule>> {
    let list = all(client, &Call::get("/v1/rules"))?;
    list["rules"].as_array().into_iter().flatten().map(rule_of).collect()
}

/// The rule that an answer shows.
fn rule_of(shown: &Value) -> CliResult<Rule> {
    let text = shown.to_string();
    let columns: Columns<'_> =
        serde_json::from_str(&text).map_err(|error| Failure::usage(error.to_string()))?;
    let rule_id = shown["rule_id"].as_u64().unwrap_or_default();
    build(&columns.rule(rule_id).map_err(DataError::Refused)?)
}

/// The rule of these columns.
fn build(spec: &RuleSpec) -> CliResult<Rule> {
    Ok(spec.build().map_err(DataError::Refused)?)
}
