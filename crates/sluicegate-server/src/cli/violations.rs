//! `sluicegate violations`.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand, ValueEnum};
use serde_json::json;

use super::client::{Call, Client, parse};
use super::confirm::confirm;
use super::database::Needs;
use super::failure::{CliResult, Failure};
use super::options::{Change, Direct, Form, Server, Why};
use super::output::{Output, counted, say};
use super::table::{Shown, Table};
use super::{Exit, files};
use crate::admin::violations::{
    TopBy, TopOffenders, ViolationList, ViolationMode, ViolationView, csv,
};
use crate::observe::logging::escaped;
use crate::time::Timestamp;

const EXAMPLES: &str = "\
Examples:
  sluicegate violations list --user-id 42
  sluicegate violations top --by ip --since 1h
  sluicegate violations export --since 1d --out violations.csv
  sluicegate violations delete --user-id 42
  sluicegate violations list --database sqlite:sluicegate.db --json

These commands talk to a running server, or with --database directly to the database.

Exit codes: 0 done, 2 wrong arguments or refused, 3 cannot reach the server or the database.";

const PATH: &str = "/v1/violations";

/// Message where users and addresses are recorded under hashes that cannot be computed here.
pub(super) const NO_KEY: &str = "users and addresses are recorded as hashes, and audit.privacy_key is not set here, so none can be \
                      found\n  Name the file of the key in SLUICEGATE_AUDIT_PRIVACY_KEY_FILE, or ask a server: --server URL.";

/// Maximum number of violations in one export.
const EXPORT_MAX: usize = 1_000_000;
/// Violations in memory at a time.
const EXPORT_PAGE: usize = 500;

/// List denials, and delete the records of a subject
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
    List(List),
    Top(Top),
    Export(Export),
    Delete(Delete),
}

/// Filter by subject.
#[derive(Debug, Args)]
#[command(next_help_heading = "Subject")]
struct Subject {
    /// Only violations of this user
    #[arg(long, value_name = "ID")]
    user_id: Option<String>,

    /// Only violations from this address
    #[arg(long, value_name = "ADDRESS")]
    ip: Option<String>,

    /// Only violations of this bucket, as `list` shows it
    #[arg(long, value_name = "KEY")]
    bucket_key: Option<String>,
}

/// Filter by rule, mode and time.
#[derive(Debug, Args)]
#[command(next_help_heading = "Filter")]
struct Filter {
    /// Only violations of this rule
    #[arg(long, value_name = "ID")]
    rule: Option<u64>,

    /// Only violations that were denied (enforce), or would have been (shadow)
    #[arg(long, value_name = "MODE", value_parser = ["enforce", "shadow"])]
    mode: Option<String>,

    /// Only violations since a time: `30min` ago, `1h`, `7d`; or 2026-08-01T12:00:00Z
    #[arg(long, value_name = "TIME", value_parser = since)]
    since: Option<Timestamp>,

    /// Only violations before a time: 2026-08-01T12:00:00Z, or `1h` ago
    #[arg(long, value_name = "TIME", value_parser = since)]
    until: Option<Timestamp>,
}

/// All filters.
#[derive(Debug, Args)]
struct Which {
    #[command(flatten)]
    subject: Subject,

    #[command(flatten)]
    filter: Filter,

    /// Only violations of this path
    #[arg(long, value_name = "PATH")]
    endpoint: Option<String>,
}

/// List violations, newest first
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  sluicegate violations list --user-id 42 --since 1h
  sluicegate violations list --mode shadow --json")]
struct List {
    #[command(flatten)]
    which: Which,

    /// Maximum number of rows
    #[arg(long, value_name = "N", default_value = "100", value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,

    /// Continue after this cursor: `next` of an earlier list
    #[arg(long, value_name = "CURSOR")]
    after: Option<String>,
}

/// List who was denied most
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  sluicegate violations top --by ip --since 1h
  sluicegate violations top --by endpoint --limit 5 --json")]
struct Top {
    /// Attribute to group by
    #[arg(long, value_enum, default_value = "user-id")]
    by: TopBy,

    /// Maximum number of rows
    #[arg(long, value_name = "N", default_value = "10", value_parser = clap::value_parser!(u16).range(1..=1000))]
    limit: u16,

    #[command(flatten)]
    filter: Filter,
}

/// Write violations to a file, newest first
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  sluicegate violations export --since 1d --out violations.csv
  sluicegate violations export --format json --user-id 42

In CSV, an apostrophe is put before text that a spreadsheet could take for a formula. A new file is readable by its owner \
only. It is complete if the exit code is 0.")]
struct Export {
    /// Format [default: csv, or json with --json]
    #[arg(long, value_enum)]
    format: Option<Format>,

    /// File to write [default: standard output]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,

    #[command(flatten)]
    which: Which,
}

/// Delete the records of a subject's violations
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  sluicegate violations delete --user-id 42
  sluicegate violations delete --ip 203.0.113.9 --yes

At least one of the options must name the subject. Old records are deleted automatically: audit.retention_days in the settings.")]
struct Delete {
    #[command(flatten)]
    subject: Subject,

    #[command(flatten)]
    change: Change,

    #[command(flatten)]
    why: Why,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Format {
    /// CSV with a header
    Csv,
    /// JSON, as the API has it
    Json,
}

/// Runs the command.
pub(super) fn run(arguments: &Arguments) -> CliResult {
    let output = arguments.form.output();
    let client = Client::open(&arguments.server, &arguments.direct, Needs::Audit)?;
    match &arguments.action {
        Action::List(list) => self::list(list, &client, output),
        Action::Top(top) => self::top(top, &client, output),
        Action::Export(export) => self::export(export, &client, output),
        Action::Delete(delete) => self::delete(delete, &client, output),
    }
}

fn list(arguments: &List, client: &Client, output: Output) -> CliResult {
    let limit = usize::try_from(arguments.limit).unwrap_or(usize::MAX);
    let call = arguments.which.narrow(Call::get(PATH));
    require_key(client, &arguments.which.subject)?;
    let (violations, next) =
        client.pages("violations", &call, arguments.after.as_deref(), limit)?;
    let list = ViolationList { violations, next };
    let mut table =
        Table::new(&["LAST", "COUNT", "RULE", "BUCKET", "USER", "ADDRESS", "ENDPOINT", "MODE"]);
    for row in &list.violations {
        let mode = row.mode.name();
        table.row([
            Shown::from(row.last_at),
            Shown::from(row.count),
            Shown::from(row.rule_id),
            Shown::from(row.bucket_key.as_str()),
            Shown::from(&row.user_id),
            Shown::from(&row.ip_address),
            Shown::from(&row.endpoint),
            match row.mode {
                ViolationMode::Shadow => Shown::quiet(mode),
                ViolationMode::Enforce => Shown::bad(mode),
            },
        ]);
    }
    output.more(list.next.as_deref());
    output.list(&json!(list), table, "No violations.")?;
    Ok(Exit::Done)
}

fn top(arguments: &Top, client: &Client, output: Output) -> CliResult {
    let call = arguments.filter.narrow(Call::get(format!("{PATH}/top")));
    let call = call.with("by", arguments.by.name()).with("limit", arguments.limit.to_string());
    let found: TopOffenders = parse(client.json(&call)?)?;
    let mut table = Table::new(match arguments.by {
        TopBy::UserId => &["USER", "DENIALS", "LAST"],
        TopBy::Ip => &["ADDRESS", "DENIALS", "LAST"],
        TopBy::Endpoint => &["ENDPOINT", "DENIALS", "LAST"],
        TopBy::BucketKey => &["BUCKET", "DENIALS", "LAST"],
    });
    for row in &found.top {
        let value = Shown::from(row.value.as_str());
        table.row([value, Shown::from(row.count), Shown::from(row.last_at)]);
    }
    output.list(&json!(found), table, "No violations.")?;
    Ok(Exit::Done)
}

fn export(arguments: &Export, client: &Client, output: Output) -> CliResult {
    let usual = if output.json { Format::Json } else { Format::Csv };
    let format = arguments.format.unwrap_or(usual);
    let path = arguments.out.as_deref().filter(|path| *path != Path::new("-"));
    require_key(client, &arguments.which.subject)?;
    let mut opened = None;
    let Found { count, next } =
        each_page(client, &arguments.which.narrow(Call::get(PATH)), |page| {
            // Opened after the first answer: without one, an existing file stays as it is.
            let Some(sink) = &mut opened else {
                let sink = opened.insert(files::Sink::private(path)?);
                return sink.write(&(format.head() + &format.rows(page, true)));
            };
            sink.write(&format.rows(page, false))
        })?;
    if let Some(mut sink) = opened {
        sink.write(&format.tail(next.as_deref()))?;
    }
    match (path, next) {
        (Some(path), Some(_)) => {
            let path = path.display();
            say(&format!("There are more than {count}; {path} has the newest {count}."));
        }
        (None, Some(_)) => say(&format!("There are more than {count}; these are the newest.")),
        (Some(path), None) => {
            let are = counted(count, "violation", "violations");
            say(&format!("{} has {are}.", path.display()));
        }
        (None, None) => {}
    }
    Ok(Exit::Done)
}

/// Number of violations read, and the cursor if there are more.
struct Found {
    count: usize,
    next: Option<String>,
}

/// Reads violations page by page, newest first, until there are no more, or [`EXPORT_MAX`], or `read` returns `false`.
fn each_page(
    client: &Client,
    call: &Call,
    mut read: impl FnMut(&[ViolationView]) -> CliResult<bool>,
) -> CliResult<Found> {
    let mut found = Found { count: 0, next: None };
    loop {
        let limit = EXPORT_PAGE.min(EXPORT_MAX - found.count);
        let (page, next) = client.pages("violations", call, found.next.take().as_deref(), limit)?;
        found.count += page.len();
        if !read(&page)? {
            return Ok(found);
        }
        found.next = next.filter(|_| !page.is_empty());
        if found.next.is_none() || found.count >= EXPORT_MAX {
            return Ok(found);
        }
    }
}

impl Format {
    /// Text before the first row.
    fn head(self) -> String {
        match self {
            Self::Csv => csv::header(),
            Self::Json => "{\"violations\": [".into(),
        }
    }

    /// Rows of a page.
    fn rows(self, rows: &[ViolationView], is_first: bool) -> String {
        if matches!(self, Self::Csv) {
            return csv::rows(rows);
        }
        let mut text = String::new();
        for (index, row) in rows.iter().enumerate() {
            text += if is_first && index == 0 { "\n" } else { ",\n" };
            // JSON does not escape all characters that control a terminal.
            text += &escaped(&json!(row).to_string(), true);
        }
        text
    }

    /// Text after the last row; in JSON with the cursor, if there are more.
    fn tail(self, next: Option<&str>) -> String {
        match self {
            Self::Csv => String::new(),
            Self::Json => format!("\n], \"next\": {}}}\n", json!(next)),
        }
    }
}

fn delete(arguments: &Delete, client: &Client, output: Output) -> CliResult {
    if arguments.subject.is_empty() {
        return Err(Failure::usage(
            "name whose records to delete: --user-id, --ip or --bucket-key",
        ));
    }
    require_key(client, &arguments.subject)?;
    if arguments.change.dry_run {
        let Found { count, next } =
            each_page(client, &arguments.subject.narrow(Call::get(PATH)), |_| Ok(true))?;
        let more = if next.is_some() { "more than " } else { "" };
        let records = counted(count, "record", "records");
        say(&format!("Nothing was deleted; {more}{records} would be."));
        output.show(&json!({"deleted": 0, "found": count}), String::new)?;
        return Ok(Exit::Done);
    }
    confirm("Delete these records of violations?", arguments.change.yes)?;
    let call = arguments.subject.narrow(Call::delete(PATH)).because(&arguments.why);
    let answer = client.json(&call)?;
    let deleted = answer["deleted"].as_u64().unwrap_or_default();
    say(&(counted(deleted, "record was", "records were") + " deleted."));
    output.show(&json!({"deleted": deleted}), String::new)?;
    Ok(Exit::Done)
}

/// Refuses to look for a user or an address that is recorded under a hash that cannot be computed here.
fn require_key(client: &Client, subject: &Subject) -> CliResult<()> {
    let is_hashed = subject.user_id.is_some() || subject.ip.is_some();
    match client {
        Client::InProcess(administration) if is_hashed && administration.lacks_privacy_key => {
            Err(Failure::usage(NO_KEY))
        }
        _ => Ok(()),
    }
}

impl Subject {
    fn is_empty(&self) -> bool {
        self.user_id.is_none() && self.ip.is_none() && self.bucket_key.is_none()
    }

    /// Adds its parameters to a call.
    fn narrow(&self, call: Call) -> Call {
        call.maybe("user_id", self.user_id.as_ref())
            .maybe("ip", self.ip.as_ref())
            .maybe("bucket_key", self.bucket_key.as_ref())
    }
}

impl Filter {
    /// Adds its parameters to a call.
    fn narrow(&self, call: Call) -> Call {
        call.maybe("rule_id", self.rule.map(|rule_id| rule_id.to_string()))
            .maybe("mode", self.mode.as_ref())
            .maybe("from", self.since.map(|time| time.to_string()))
            .maybe("to", self.until.map(|time| time.to_string()))
    }
}

impl Which {
    /// Adds its parameters to a call.
    fn narrow(&self, call: Call) -> Call {
        let call = self.filter.narrow(self.subject.narrow(call));
        call.maybe("endpoint", self.endpoint.as_ref())
    }
}

/// Parses a time, or a duration before now.
pub(super) fn since(text: &str) -> Result<Timestamp, String> {
    if let Ok(time) = text.parse() {
        return Ok(time);
    }
    let wrong = |_| "valid forms are 30min, 1h, \"7 days\" and 2026-08-01T12:00:00Z".to_owned();
    let ago = sluicegate::parse_duration(text).map_err(wrong)?;
    let micros = i64::try_from(ago.as_micros()).unwrap_or(i64::MAX);
    Ok(Timestamp::now().plus_micros(-micros))
}
