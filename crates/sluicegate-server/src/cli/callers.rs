//! `sluicegate callers`.

use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::Exit;
use super::credentials::{NewToken, Revocation};
use super::database::{Needs, Target, author};
use super::failure::CliResult;
use super::options::{Direct, Form, Why};
use super::output::{Output, say};
use super::table::{Shown, Table, card, text_of, time_of};
use crate::admin::callers::{CallerView, Uses};
use crate::data::{CallerSpec, Database, Right, Rights, StoredCaller};
use crate::time::Timestamp;

const EXAMPLES: &str = "\
Examples:
  sluicegate callers create checkout --may check,take --namespace team-a --expires-in \"90 days\" --out checkout.token
  sluicegate callers create proxy --may authorize --certificate proxy.example --no-token
  sluicegate callers list
  sluicegate callers revoke checkout

A caller sends its token as `Authorization: Bearer` over HTTP and gRPC, as `AUTH NAME TOKEN` over the Redis protocol, and \
as `X-Sluicegate-Token` to /v1/authorize; or it presents a client certificate with its name.

These commands use the database directly: that of sluicegate.toml and the environment, like `serve`, or the one that \
--database names. A token is printed only once, when it is created. Servers follow within two seconds.

Exit codes: 0 done, 2 wrong arguments or refused, 3 cannot reach the database.";

/// Create and revoke callers: who may ask for checks, takes, refunds and authorization
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Arguments {
    #[command(subcommand)]
    action: Action,
    #[command(flatten)]
    form: Form,
    #[command(flatten)]
    direct: Direct,
}

#[derive(Debug, Subcommand)]
enum Action {
    Create(Create),
    /// List the callers, with their last use
    #[command(
        after_help = "Examples:\n  sluicegate callers list\n  sluicegate callers list --json"
    )]
    List,
    /// Revoke a caller; its token and its certificate are no longer accepted
    #[command(
        after_help = "Examples:\n  sluicegate callers revoke checkout\n  sluicegate callers revoke checkout --yes"
    )]
    Revoke(Revocation),
}

/// Create a caller, and write its token to standard output or a new file
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  sluicegate callers create checkout --may check,take
  sluicegate callers create checkout --may check --namespace team-a --expires-in 30d --out checkout.token
  sluicegate callers create proxy --may authorize --certificate spiffe://example.org/proxy --no-token")]
struct Create {
    /// Name of the caller: letters, digits, `.`, `_` and `-`
    name: String,

    /// Operations that it may ask for, separated by commas
    #[arg(long, value_name = "RIGHTS", required = true, value_delimiter = ',', value_parser = right())]
    may: Vec<Right>,

    /// Namespace of its keys and requests [default: none]
    #[arg(long, value_name = "NAMESPACE")]
    namespace: Option<String>,

    /// Name in its client certificate: a DNS name or URI of the subject alternative names
    #[arg(long, value_name = "NAME")]
    certificate: Option<String>,

    /// Create no token: the caller uses its certificate
    #[arg(long, requires = "certificate", conflicts_with = "out")]
    no_token: bool,

    /// Validity from now: `12h`, `30d`, `90 days` [default: no end]
    #[arg(long, value_name = "TIME", value_parser = from_now, conflicts_with = "expires_at")]
    expires_in: Option<Timestamp>,

    /// End of validity: 2026-08-01T12:00:00Z
    #[arg(long, value_name = "TIME", value_parser = future)]
    expires_at: Option<Timestamp>,

    /// New file to write the token to, readable by its owner only [default: standard output]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,

    /// Show what would be created, and create nothing
    #[arg(long)]
    dry_run: bool,

    #[command(flatten)]
    why: Why,
}

/// Parser of a right.
fn right() -> impl TypedValueParser<Value = Right> {
    PossibleValuesParser::new(Right::NAMES).try_map(|name| name.parse())
}

/// Parses a duration from now.
fn from_now(text: &str) -> Result<Timestamp, String> {
    let wrong = |_| "valid forms are 12h, 30d and \"90 days\"".to_owned();
    let length = sluicegate::parse_duration(text).map_err(wrong)?;
    if length.is_zero() {
        return Err("must be longer than zero".into());
    }
    Ok(Timestamp::now().plus(length))
}

/// Parses a time in the future.
fn future(text: &str) -> Result<Timestamp, String> {
    let time: Timestamp = text.parse().map_err(|error| format!("{error}"))?;
    if time <= Timestamp::now() {
        return Err("is not in the future".into());
    }
    Ok(time)
}

/// Runs the command.
pub(super) async fn run(arguments: &Arguments) -> CliResult {
    let output = arguments.form.output();
    let database = Target::new(&arguments.direct, Needs::Nothing)?.open_ready().await?;
    match &arguments.action {
        Action::Create(create) => self::create(create, &database, output).await,
        Action::List => list(&database, output).await,
        Action::Revoke(revocation) => revoke(revocation, &database, output).await,
    }
}

async fn create(arguments: &Create, database: &Database, output: Output) -> CliResult {
    let spec = arguments.spec();
    if arguments.dry_run {
        return dry_run(&spec, !arguments.no_token, database, output).await;
    }
    let is_first = database.callers().await?.is_empty();
    let token =
        if arguments.no_token { None } else { Some(NewToken::mint(arguments.out.as_deref())?) };
    let hash = token.as_ref().map(|token| &token.hash);
    let stored = match database.create_caller(&spec, hash, &author(&arguments.why)).await {
        Ok(stored) => stored,
        Err(error) => {
            if let Some(token) = token {
                token.discard();
            }
            return Err(error.into());
        }
    };
    let view = json(CallerView::created(&stored));
    let who = format!("the caller {}, which may {}", stored.name, may(stored.rights));
    match token {
        Some(token) => token.write(view, &format!("the token of {who}"), output)?,
        None => {
            output.show(&view, || shown(&view))?;
            say(&format!("Created {who}. It has no token and is known by its certificate."));
        }
    }
    if is_first {
        say(
            "It is the first caller in this database: from now on requests without a caller are refused, unless \
             listen.anonymous = true. Proxies that let requests pass on errors, as Envoy does by default, then limit nothing \
             until they have a caller.",
        );
    }
    Ok(Exit::Done)
}

/// Creates a caller in a transaction that is rolled back: it is refused as the caller would be.
async fn dry_run(
    spec: &CallerSpec,
    has_token: bool,
    database: &Database,
    output: Output,
) -> CliResult {
    let hash = has_token.then_some([0; 32]);
    let by = author(&Why::default());
    let stored = database.dry_run().create_caller(spec, hash.as_ref(), &by).await?;
    let view = json(CallerView::created(&stored).in_dry_run(true));
    say("Nothing was created; the caller would be:");
    output.show(&view, || shown(&view))?;
    Ok(Exit::Done)
}

async fn list(database: &Database, output: Output) -> CliResult {
    let uses = Uses::load(database).await?;
    let callers = database.callers().await?;
    let callers: Vec<_> =
        callers.iter().map(|caller| json(CallerView::stored(caller, &uses))).collect();
    let columns =
        ["NAME", "MAY", "NAMESPACE", "CERTIFICATE", "EXPIRES", "LAST USED", "CREATED", "BY"];
    let mut table = Table::new(&columns).sparing(&["BY", "CREATED"]);
    for caller in &callers {
        table.row([
            Shown::of(caller, "name"),
            Shown::of(caller, "rights"),
            Shown::of(caller, "namespace"),
            Shown::of(caller, "certificate"),
            Shown::time_of(caller, "expires_at"),
            Shown::time_of(caller, "last_used_at"),
            Shown::time_of(caller, "created_at"),
            Shown::of(caller, "created_by"),
        ]);
    }
    let table = table.without_empty("NAMESPACE").without_empty("CERTIFICATE");
    output.list(&json!({"callers": callers}), table, "No callers in the database.")?;
    Ok(Exit::Done)
}

async fn revoke(revocation: &Revocation, database: &Database, output: Output) -> CliResult {
    let uses = Uses::load(database).await?;
    let callers = database.callers().await?;
    let view = |caller: &StoredCaller| json(CallerView::stored(caller, &uses));
    let found = callers.iter().find(|caller| caller.name == revocation.name());
    let found = found.map(|caller| (view(caller), may(caller.rights)));
    let delete = async |by: &_| Ok(view(&database.delete_caller(revocation.name(), by).await?));
    let exit = revocation.run("caller", found, output, delete).await?;
    // The caller is revoked, whatever happens to this hint.
    if database.callers().await.is_ok_and(|left| left.is_empty()) {
        say(
            "No caller is left in this database: listeners on loopback, on Unix sockets and with client certificates \
             answer requests without one again.",
        );
    }
    Ok(exit)
}

impl Create {
    fn spec(&self) -> CallerSpec {
        CallerSpec {
            name: self.name.clone(),
            rights: self.may.iter().copied().collect(),
            namespace: self.namespace.clone(),
            certificate: self.certificate.clone(),
            expires_at: self.expires_in.or(self.expires_at),
        }
    }
}

/// Names of the rights in a sentence.
fn may(rights: Rights) -> String {
    let names: Vec<_> = rights.iter().map(Right::name).collect();
    match names.split_last() {
        Some((last, [])) => (*last).into(),
        Some((last, others)) => format!("{} and {last}", others.join(", ")),
        None => String::new(),
    }
}

fn json(view: CallerView) -> Value {
    serde_json::to_value(view).unwrap_or_default()
}

fn shown(caller: &Value) -> String {
    let names = ["name", "rights", "namespace", "certificate", "expires_at", "created_by"];
    let members = names.map(|name| {
        let value = &caller[name];
        (name, if name.ends_with("_at") { time_of(value) } else { text_of(value) })
    });
    card(&members)
}
