//! `sluicegate history`.

use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::{Value, json};

use super::client::{Call, Client};
use super::database::Needs;
use super::failure::{CliResult, Failure};
use super::options::{Direct, Form, Server};
use super::output::Output;
use super::table::{Shown, Table, text_of};
use super::violations::{NO_KEY, since};
use super::{Exit, files};
use crate::admin::history::{HistoryList, HistoryView, csv};
use crate::data::Act;
use crate::time::Timestamp;

const EXAMPLES: &str = "\
Examples:
  sluicegate history --since 1d
  sluicegate history --rule 1 --subject 42
  sluicegate history --act bucket.grant --who token:support --json
  sluicegate history --since 30d --limit 100000 --csv --out history.csv
  sluicegate history --database sqlite:sluicegate.db

Acts of the administration, newest first: by whom, what, before and after, from which address, and why. Failed sign-ins \
and refunds of callers are sums of a minute. Talks to a running server, or with --database directly to the database. In CSV, an \
apostrophe is put before text that a spreadsheet could take for a formula.

Exit codes: 0 done, 2 wrong arguments or refused, 3 cannot reach the server or the database.";

const PATH: &str = "/v1/history";

/// Most characters of a change in the table; --json has all.
const CHANGE_CHARS_MAX: usize = 120;

/// List who did what in the administration, and why
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Arguments {
    #[command(flatten)]
    filter: Filter,

    /// Maximum number of rows
    #[arg(long, value_name = "N", default_value = "100", value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,

    /// Continue after this cursor: `next` of an earlier list
    #[arg(long, value_name = "CURSOR")]
    after: Option<String>,

    /// Print CSV with a header
    #[arg(long, conflicts_with = "json")]
    csv: bool,

    /// File to write CSV to, readable by its owner only [default: standard output]
    #[arg(long, value_name = "FILE", requires = "csv")]
    out: Option<PathBuf>,

    #[command(flatten)]
    form: Form,
    #[command(flatten)]
    server: Server,
    #[command(flatten)]
    direct: Direct,
}

/// Filters of the list; without any, every act.
#[derive(Debug, Args)]
#[command(next_help_heading = "Filter")]
struct Filter {
    /// Only acts of this kind, such as rule.update
    #[arg(long, value_name = "ACT", value_parser = clap::builder::PossibleValuesParser::new(Act::NAMES))]
    act: Option<String>,

    /// Only acts of this author, such as token:ops
    #[arg(long, value_name = "NAME")]
    who: Option<String>,

    /// Only acts on this rule, its overrides and buckets
    #[arg(long, value_name = "ID")]
    rule: Option<u64>,

    /// Only acts on this subject of a rule
    #[arg(long, value_name = "TEXT")]
    subject: Option<String>,

    /// Only acts on this token, caller or bucket key
    #[arg(long, value_name = "TEXT")]
    target: Option<String>,

    /// Only acts since a time: `30min` ago, `1h`, `7d`; or 2026-08-01T12:00:00Z
    #[arg(long, value_name = "TIME", value_parser = since)]
    since: Option<Timestamp>,

    /// Only acts before a time: 2026-08-01T12:00:00Z, or `1h` ago
    #[arg(long, value_name = "TIME", value_parser = since)]
    until: Option<Timestamp>,
}

/// Runs the command.
pub(super) fn run(arguments: &Arguments) -> CliResult {
    let client = Client::open(&arguments.server, &arguments.direct, Needs::Audit)?;
    let is_hashed = arguments.filter.subject.is_some() || arguments.filter.target.is_some();
    if let Client::InProcess(administration) = &client
        && is_hashed
        && administration.lacks_privacy_key
    {
        return Err(Failure::usage(NO_KEY));
    }
    let limit = usize::try_from(arguments.limit).unwrap_or(usize::MAX);
    let call = arguments.filter.narrow(Call::get(PATH));
    let (history, next) = client.pages("history", &call, arguments.after.as_deref(), limit)?;
    let list = HistoryList { history, next };
    let output = arguments.form.output();
    output.more(list.next.as_deref());
    if arguments.csv {
        return write_csv(&list, arguments.out.as_deref());
    }
    show(&list, output)
}

fn write_csv(list: &HistoryList, out: Option<&Path>) -> CliResult {
    let mut sink = files::Sink::private(out.filter(|path| *path != Path::new("-")))?;
    sink.write(&csv::write(&list.history))?;
    Ok(Exit::Done)
}

fn show(list: &HistoryList, output: Output) -> CliResult {
    let mut table = Table::new(&["TIME", "BY", "ACT", "ON", "CHANGE", "ADDRESS", "REASON"]);
    for entry in &list.history {
        let act = match entry.count {
            1 => entry.act.clone(),
            count => format!("{} x {count}", entry.act),
        };
        table.row([
            Shown::from(entry.at),
            Shown::from(entry.who.as_str()),
            match &*entry.outcome {
                "failed" => Shown::bad(&format!("{act} (failed)")),
                "started" => Shown::bad(&format!("{act} (result not known)")),
                _ => Shown::from(act),
            },
            Shown::from(on(entry)),
            Shown::from(change(entry)),
            Shown::from(&entry.address),
            Shown::from(entry.reason.as_str()),
        ]);
    }
    output.list(&json!(list), table, "No acts.")?;
    Ok(Exit::Done)
}

/// Object of an act: rule and subject, or its target.
fn on(entry: &HistoryView) -> String {
    let rule = entry.rule_id.map(|rule_id| format!("rule {rule_id}"));
    let parts = [rule, entry.subject.clone(), entry.target.clone()];
    // The key of a bucket repeats rule and subject.
    let parts = parts.into_iter().flatten().take(2);
    parts.collect::<Vec<_>>().join(" ")
}

/// Members that an act changed.
fn change(entry: &HistoryView) -> String {
    let none = json!({});
    let (before, after) = match (&entry.before, &entry.after) {
        (Some(before), None) => (before, &Value::Null),
        (before, after) => (before.as_ref().unwrap_or(&none), after.as_ref().unwrap_or(&none)),
    };
    if after.is_null() {
        return String::new();
    }
    let members = after.as_object().into_iter().flatten();
    let changed = members.filter(|(name, value)| {
        before[name.as_str()] != **value && !matches!(name.as_str(), "version" | "created_at")
    });
    let shown = changed.map(|(name, value)| match (&before[name.as_str()], value) {
        (Value::Null, value) => format!("{name}: {}", text_of(value)),
        (old, new) => format!("{name}: {} -> {}", text_of(old), text_of(new)),
    });
    let mut text = shown.collect::<Vec<_>>().join(", ");
    if let Some((at, _)) = text.char_indices().nth(CHANGE_CHARS_MAX) {
        text.truncate(at);
        text.push('…');
    }
    text
}

impl Filter {
    /// Adds its parameters to a call.
    fn narrow(&self, call: Call) -> Call {
        call.maybe("act", self.act.as_ref())
            .maybe("who", self.who.as_ref())
            .maybe("rule_id", self.rule.map(|rule_id| rule_id.to_string()))
            .maybe("subject", self.subject.as_ref())
            .maybe("target", self.target.as_ref())
            .maybe("from", self.since.map(|time| time.to_string()))
            .maybe("to", self.until.map(|time| time.to_string()))
    }
}
