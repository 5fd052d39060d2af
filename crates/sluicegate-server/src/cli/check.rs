//! `sluicegate check`.

use clap::Args;
use serde_json::Value;

use super::client::{Call, Client};
use super::failure::CliResult;
use super::options::{Form, Server};
use super::request::Request;
use super::table::{Shown, Table, text_of};
use super::{Exit, waits};

const EXAMPLES: &str = "\
Examples:
  sluicegate check --user-id 42 --plan free --endpoint /api/search
  sluicegate check --ip 203.0.113.9 --endpoint /login --method POST --cost 0
  sluicegate check --attribute tenant=acme --json

The request is charged like one from a service. --cost 0 charges nothing, and `sluicegate explain` shows why a request \
is allowed or denied.

Exit codes: 0 allowed, 1 denied, 2 wrong arguments or refused by the server, 3 cannot reach the server.";

/// Check a request against the rules, and charge it
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
    let verdict = client.json(&Call::post("/v1/check", arguments.request.body()))?;
    let output = arguments.form.output();
    output.show(&verdict, || shown(&verdict, output.in_colours))?;
    let is_allowed = verdict["allowed"] == Value::Bool(true);
    Ok(if is_allowed { Exit::Done } else { Exit::Denied })
}

fn shown(verdict: &Value, in_colours: bool) -> String {
    let is_allowed = verdict["allowed"] == Value::Bool(true);
    let no_tiers = Vec::new();
    let tiers = verdict["tiers"].as_array().unwrap_or(&no_tiers);
    let headline = if !is_allowed {
        let by = text_of(&verdict["violated_rule"]);
        format!("denied by {by}: {}", waits::retry(verdict))
    } else if tiers.is_empty() {
        "allowed: no rule applies".into()
    } else {
        format!(
            "allowed: {} of {} left",
            text_of(&verdict["remaining"]),
            text_of(&verdict["limit"])
        )
    };
    let mut table = Table::new(&[
        "RULE",
        "KEY PATTERN",
        "SCOPE",
        "MODE",
        "ALLOWED",
        "LEFT",
        "OF",
        "RETRY",
        "FULL IN",
    ])
    .sparing(&["SCOPE", "MODE"]);
    for tier in tiers {
        let is_granted = tier["allowed"] == Value::Bool(true);
        table.row([
            Shown::of(tier, "rule_id"),
            Shown::of(tier, "key_pattern"),
            Shown::of(tier, "scope"),
            Shown::of(tier, "mode"),
            if is_granted { Shown::good("yes") } else { Shown::bad("no") },
            Shown::of(tier, "remaining"),
            Shown::of(tier, "limit"),
            Shown::from(if is_granted { String::new() } else { waits::wait(tier) }),
            Shown::from(waits::millis(&tier["reset_after_ms"])),
        ]);
    }
    let headline = crate::observe::logging::escaped(&headline, false).into_owned();
    if table.is_empty() {
        format!("{headline}\n")
    } else {
        format!("{headline}\n\n{}", table.render(in_colours))
    }
}
