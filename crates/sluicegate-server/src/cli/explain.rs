//! `sluicegate explain`.

use clap::Args;
use serde_json::Value;

use super::client::{Call, Client};
use super::failure::CliResult;
use super::options::{Form, Server};
use super::request::Request;
use super::table::{Shown, Table};
use super::{Exit, quota, waits};

const EXAMPLES: &str = "\
Examples:
  sluicegate explain --user-id 42 --plan free --endpoint /api/search
  sluicegate explain --ip 203.0.113.9 --endpoint /login --json

Nothing is charged.

Exit codes: 0 explained, 2 wrong arguments or refused by the server, 3 cannot reach the server.";

/// Show which rules apply to a request, why others do not, and the state of the buckets
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Arguments {
    #[command(flatten)]
    request: Request,
    #[command(flatten)]
    form: Form,
    #[command(flatten)]
    server: Server,
}

/// Runs the command.
pub(super) fn run(arguments: &Arguments) -> CliResult {
    let client = Client::of_server(&arguments.server)?;
    let answer = client.json(&Call::post("/v1/explain", arguments.request.body()))?;
    let output = arguments.form.output();
    output.show(&answer, || shown(&answer, output.in_colours))?;
    Ok(Exit::Done)
}

fn shown(answer: &Value, in_colours: bool) -> String {
    let rules: Vec<_> = answer["rules"].as_array().into_iter().flatten().collect();
    if rules.is_empty() {
        return "No rules: every request is allowed.\n".into();
    }
    let (applying, others): (Vec<_>, Vec<_>) =
        rules.into_iter().partition(|rule| rule["applies"] == Value::Bool(true));
    let allowed = if answer["allowed"] == Value::Bool(true) { "allowed" } else { "denied" };
    let mut text = format!("The request would be {allowed} now.\n");
    if applying.is_empty() {
        text += "\nNo rule applies.\n";
    } else {
        text += &format!("\nApplicable rules:\n\n{}", apply(applying).render(in_colours));
    }
    if !others.is_empty() {
        text += &format!("\nOther rules:\n\n{}", do_not(&others).render(in_colours));
    }
    if let Some(more @ 1..) = answer["more"].as_u64() {
        text += &format!("\n{more} more rules are not shown\n");
    }
    for hint in answer["hints"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        text += &format!("\nHint: {}\n", hint.escape_debug());
    }
    text
}

/// Table of the rules that apply, with the state of their buckets; denying rules first.
fn apply(mut rules: Vec<&Value>) -> Table {
    rules.sort_by_key(|rule| (rule["would_allow"] != Value::Bool(false), rule["mode"] == "shadow"));
    let header = &["RULE", "KEY PATTERN", "PLAN", "BUCKET", "LEFT", "OF", "NOW", "NOTE"];
    let mut table = Table::new(header).sparing(&["PLAN", "BUCKET"]);
    for rule in rules {
        table.row([
            Shown::of(rule, "rule_id"),
            Shown::of(rule, "key_pattern"),
            Shown::of(rule, "plan"),
            Shown::of(rule, "bucket_key"),
            Shown::of(rule, "remaining"),
            Shown::of(rule, "limit"),
            now(rule),
            note(rule),
        ]);
    }
    table
}

/// Table of the rules that do not apply, with the reason.
fn do_not(rules: &[&Value]) -> Table {
    let mut table = Table::new(&["RULE", "KEY PATTERN", "PLAN", "WHY"]).sparing(&["PLAN"]);
    for rule in rules {
        table.row(["rule_id", "key_pattern", "plan", "reason"].map(|name| Shown::of(rule, name)));
    }
    table
}

/// Mode and override of a rule that applies.
fn note(rule: &Value) -> Shown {
    let mode = rule["mode"].as_str().filter(|mode| *mode != "enforce");
    let kind = rule["override"]["kind"].as_str();
    let notes: Vec<_> = mode.into_iter().map(str::to_owned).collect();
    let instead = kind.map(|kind| match kind {
        "quota" => format!("override: {}", quota::shown(&rule["override"])),
        kind => format!("override: {kind}"),
    });
    Shown::from(notes.into_iter().chain(instead).collect::<Vec<_>>().join(", "))
}

/// Decision of a rule that applies.
fn now(rule: &Value) -> Shown {
    match rule["would_allow"].as_bool() {
        Some(true) => Shown::good("allows"),
        Some(false) => Shown::bad(&waits::retry(rule)),
        None => Shown::from(""),
    }
}
