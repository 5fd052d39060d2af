//! `sluicegate rules preview`.

use clap::Args;
use serde_json::{Value, json};

use super::columns::Columns;
use crate::cli::Exit;
use crate::cli::client::{Call, Client};
use crate::cli::failure::{CliResult, Failure};
use crate::cli::output::Output;
use crate::cli::table::{Shown, Table, card, text_of, time_of};

/// Show what a rule would have done to recent requests
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  sluicegate rules preview --key-pattern 'user:{user_id}' --rate \"5/s burst 10\"
  sluicegate rules preview --key-pattern 'user:{user_id}' --plan free --rate 5/s --replaces 1
  sluicegate rules preview --file candidate.json --json

The server keeps recent requests in memory for this ([recent] in its settings). Nothing is charged.")]
pub(super) struct Arguments {
    #[command(flatten)]
    columns: Columns,

    /// Rule in force that the new one would replace
    #[arg(long, value_name = "ID")]
    replaces: Option<u64>,
}

pub(super) fn run(arguments: &Arguments, client: &Client, output: Output) -> CliResult {
    if matches!(client, Client::InProcess(_)) {
        let message = "only a running server has requests to try a rule on: omit --database";
        return Err(Failure::usage(message));
    }
    let mut body = json!({"rule": arguments.columns.read()?});
    if let Some(replaces) = arguments.replaces {
        body["replaces"] = json!(replaces);
    }
    let preview = client.json(&Call::post("/v1/rules/preview", body))?;
    output.show(&preview, || shown(&preview, output.in_colours))?;
    Ok(Exit::Done)
}

fn shown(preview: &Value, in_colours: bool) -> String {
    let figure = |name: &str| match preview["before"][name] {
        Value::Null => text_of(&preview[name]),
        ref before => format!("{} (before: {})", text_of(&preview[name]), text_of(before)),
    };
    let mut text = card(&[
        ("requests", text_of(&preview["requests"])),
        ("from", time_of(&preview["from"])),
        ("to", time_of(&preview["to"])),
        ("applies to", figure("applies")),
        ("allowed", figure("allowed")),
        ("denied", figure("denied")),
        ("subjects", figure("subjects")),
        ("of them denied", figure("subjects_denied")),
        ("first denied at", time_of(&preview["first_denied_at"])),
        ("note", text_of(&preview["note"])),
    ]);
    let mut table = Table::new(&["SUBJECT", "REQUESTS", "DENIED"]);
    for subject in preview["top"].as_array().into_iter().flatten() {
        table.row(["subject", "requests", "denied"].map(|name| Shown::of(subject, name)));
    }
    if !table.is_empty() {
        text = format!("{text}\n{}", table.render(in_colours));
    }
    text
}
