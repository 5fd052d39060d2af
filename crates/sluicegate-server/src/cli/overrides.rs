//! `sluicegate overrides`.

use clap::{Args, Subcommand};
use serde_json::{Map, Value, json};

use super::client::{Call, Client};
use super::confirm::confirm;
use super::failure::{CliResult, Failure};
use super::options::{Change, Form, Server, Why};
use super::output::{Output, say};
use super::table::{Shown, Table, card, text_of, time_of};
use super::{Exit, quota};

const EXAMPLES: &str = "\
Examples:
  sluicegate overrides set --rule 1 --subject 42 --rate \"100/s burst 500\" --for 2h --reason \"incident 123\"
  sluicegate overrides set --rule 1 --subject 42 --unlimited --for 1h --reason \"migration\"
  sluicegate overrides set --rule 7 --subject 203.0.113.9 --block --reason \"abuse\"
  sluicegate overrides list --subject 42
  sluicegate overrides delete 3

The subject of a rule is the value of {user_id} in its key pattern, else of {ip}, else of the first placeholder; for a key \
pattern without placeholders it is the key pattern itself. An override is in force on all servers within two seconds.

Exit codes: 0 done, 2 wrong arguments or refused by the server, 3 cannot reach the server.";

/// Give one subject another quota, no limit, or a block
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Arguments {
    #[command(subcommand)]
    action: Action,
    #[command(flatten)]
    form: Form,
    #[command(flatten)]
    server: Server,
}

#[derive(Debug, Subcommand)]
enum Action {
    List(List),
    Set(Set),
    Delete(Delete),
}

/// List overrides
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  sluicegate overrides list
  sluicegate overrides list --rule 1 --json")]
struct List {
    /// Only overrides of this rule
    #[arg(long, value_name = "ID")]
    rule: Option<u64>,

    /// Only overrides of this subject
    #[arg(long, value_name = "TEXT")]
    subject: Option<String>,

    /// Maximum number of rows
    #[arg(long, value_name = "N", default_value = "1000", value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,

    /// Continue after this cursor: `next` of an earlier list
    #[arg(long, value_name = "CURSOR")]
    after: Option<String>,
}

/// Create an override, or change the one of this subject
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  sluicegate overrides set --rule 1 --subject 42 --rate \"100/s burst 500\" --for 2h --reason \"incident 123\"
  sluicegate overrides set --rule 1 --subject 42 --unlimited --for 1h --new
  sluicegate overrides set --rule 7 --subject 203.0.113.9 --block --dry-run")]
struct Set {
    /// Id of the rule
    #[arg(long, value_name = "ID")]
    rule: u64,

    /// Subject: the user's id, the address
    #[arg(long, value_name = "TEXT")]
    subject: String,

    #[command(flatten)]
    instead: Instead,

    /// Duration: `30min`, `2h`, `1 day` [default: no end]
    #[arg(long = "for", value_name = "TIME", conflicts_with = "until")]
    duration: Option<String>,

    /// End: 2026-08-01T12:00:00Z
    #[arg(long, value_name = "TIME")]
    until: Option<String>,

    /// Reason, shown in lists and recorded in the history
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,

    /// Create only: fail if the subject has an override already
    #[arg(long)]
    new: bool,

    /// Show what would change, and change nothing
    #[arg(long)]
    dry_run: bool,
}

/// Replacement for the rule's quota.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct Instead {
    /// Another rate: `100/s burst 500`. Without a burst, the rule's burst stays
    #[arg(long, value_name = "RATE", value_parser = quota::parse)]
    rate: Option<Map<String, Value>>,

    /// No limit
    #[arg(long)]
    unlimited: bool,

    /// Deny everything
    #[arg(long)]
    block: bool,
}

/// Delete an override; the rule's quota applies again
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  sluicegate overrides delete 3
  sluicegate overrides delete --rule 1 --subject 42 --yes")]
struct Delete {
    /// Id of the override
    #[arg(required_unless_present = "subject", conflicts_with_all = ["rule", "subject"])]
    override_id: Option<u64>,

    /// Rule of the override, instead of its id
    #[arg(long, value_name = "ID", requires = "subject")]
    rule: Option<u64>,

    /// Subject of the override, instead of its id
    #[arg(long, value_name = "TEXT", requires = "rule")]
    subject: Option<String>,

    #[command(flatten)]
    change: Change,

    #[command(flatten)]
    why: Why,
}

/// Runs the command.
pub(super) fn run(arguments: &Arguments) -> CliResult {
    let client = Client::of_server(&arguments.server)?;
    let output = arguments.form.output();
    match &arguments.action {
        Action::List(list) => self::list(list, &client, output),
        Action::Set(set) => self::set(set, &client, output),
        Action::Delete(delete) => self::delete(delete, &client, output),
    }
}

fn list(arguments: &List, client: &Client, output: Output) -> CliResult {
    let (found, next) = find(client, arguments)?;
    let mut table = Table::new(&["ID", "RULE", "SUBJECT", "INSTEAD", "UNTIL", "REASON", "BY"]);
    for row in &found {
        let instead = instead(row);
        table.row([
            Shown::of(row, "override_id"),
            Shown::of(row, "rule_id"),
            Shown::of(row, "subject"),
            if instead == "blocked" { Shown::bad(&instead) } else { Shown::good(&instead) },
            Shown::time_of(row, "expires_at"),
            Shown::of(row, "reason"),
            Shown::of(row, "created_by"),
        ]);
    }
    output.more(next.as_deref());
    output.list(&json!({"overrides": found, "next": next}), table, "No overrides.")?;
    Ok(Exit::Done)
}

fn find(client: &Client, arguments: &List) -> CliResult<(Vec<Value>, Option<String>)> {
    let call = Call::get("/v1/overrides")
        .maybe("rule_id", arguments.rule.map(|rule_id| rule_id.to_string()))
        .maybe("subject", arguments.subject.as_ref());
    let limit = usize::try_from(arguments.limit).unwrap_or(usize::MAX);
    client.pages("overrides", &call, arguments.after.as_deref(), limit)
}

fn set(arguments: &Set, client: &Client, output: Output) -> CliResult {
    let mut body = arguments.instead.rate.clone().unwrap_or_default();
    body.insert("rule_id".into(), json!(arguments.rule));
    body.insert("subject".into(), json!(arguments.subject));
    for (name, is_given) in
        [("unlimited", arguments.instead.unlimited), ("blocked", arguments.instead.block)]
    {
        if is_given {
            body.insert(name.into(), json!(true));
        }
    }
    let texts = [
        ("expires_in", &arguments.duration),
        ("expires_at", &arguments.until),
        ("reason", &arguments.reason),
    ];
    for (name, text) in texts {
        if let Some(text) = text {
            body.insert(name.into(), json!(text));
        }
    }
    let call = Call::post("/v1/overrides", body.into()).dry_run(arguments.dry_run);
    let call = call.create_only(arguments.new);
    let made = client.json(&call)?;
    if arguments.dry_run {
        say("Nothing was changed; the override would be:");
    } else {
        say(&format!("Override {} is in force.", text_of(&made["override_id"])));
    }
    if let Some(note) = made["note"].as_str() {
        say(&format!("note: {note}"));
    }
    output.show(&made, || shown(&made))?;
    Ok(Exit::Done)
}

fn delete(arguments: &Delete, client: &Client, output: Output) -> CliResult {
    let found = match arguments.override_id {
        Some(override_id) => client.json(&Call::get(format!("/v1/overrides/{override_id}")))?,
        None => {
            let (rule, subject) = (arguments.rule, arguments.subject.clone());
            let list = List { rule, subject, limit: 1, after: None };
            let (mut found, _) = find(client, &list)?;
            found.pop().ok_or_else(|| Failure::usage("no such override"))?
        }
    };
    if arguments.change.dry_run {
        say("Nothing was deleted; the override is:");
        output.show(&found, || shown(&found))?;
        return Ok(Exit::Done);
    }
    let (rule_id, subject) = (text_of(&found["rule_id"]), text_of(&found["subject"]));
    let question =
        format!("Delete the override of {subject} under rule {rule_id} ({})?", instead(&found));
    confirm(&question, arguments.change.yes)?;
    let override_id = text_of(&found["override_id"]);
    let call = Call::delete(format!("/v1/overrides/{override_id}"));
    let call = call.because(&arguments.why);
    client.send(&call.if_match(found["version"].as_u64()))?;
    say(&format!("Override {override_id} was deleted."));
    output.show(&json!({"deleted": found}), String::new)?;
    Ok(Exit::Done)
}

/// Replacement for the rule's quota, in short form.
fn instead(row: &Value) -> String {
    match row["kind"].as_str() {
        Some(kind @ ("unlimited" | "blocked")) => kind.into(),
        _ => quota::shown(row),
    }
}

fn shown(row: &Value) -> String {
    let mut members = Vec::new();
    for name in ["override_id", "rule_id", "subject"] {
        members.push((name, text_of(&row[name])));
    }
    members.push(("instead", instead(row)));
    for name in ["expires_at", "reason", "created_by", "created_at", "version"] {
        let text = if name.ends_with("_at") { time_of(&row[name]) } else { text_of(&row[name]) };
        members.push((name, text));
    }
    card(&members)
}
