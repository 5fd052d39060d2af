//! `sluicegate tokens`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use serde_json::{Value, json};

use super::Exit;
use super::credentials::{NewToken, Revocation};
use super::database::{Needs, Target, author};
use super::failure::{CliResult, Failure};
use super::options::{Direct, Form, Why};
use super::output::{Output, say};
use super::table::{Shown, Table};
use crate::data::{Database, Role, StoredToken};

const EXAMPLES: &str = "\
Examples:
  sluicegate tokens create dashboard --role read
  sluicegate tokens create deploy --role admin --out deploy.token
  sluicegate tokens list
  sluicegate tokens revoke deploy

These commands use the database directly: that of sluicegate.toml and the environment, like `serve`, or the one that \
--database names. A token is printed only once, when it is created. Servers accept it within two seconds.

Exit codes: 0 done, 2 wrong arguments or refused, 3 cannot reach the database.";

/// Create and revoke tokens for the administration
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
    /// List the tokens
    #[command(after_help = "Examples:\n  sluicegate tokens list\n  sluicegate tokens list --json")]
    List,
    /// Revoke a token; it is no longer accepted
    #[command(
        after_help = "Examples:\n  sluicegate tokens revoke deploy\n  sluicegate tokens revoke deploy --yes"
    )]
    Revoke(Revocation),
}

/// Create a token, and write it to standard output or a new file
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  sluicegate tokens create dashboard --role read
  SLUICEGATE_TOKEN=$(sluicegate tokens create me --role admin) sluicegate rules list")]
struct Create {
    /// Name of the token
    name: String,

    /// Role of the token
    #[arg(long, value_enum)]
    role: RoleName,

    /// New file to write the token to, readable by its owner only [default: standard output]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,

    /// Show what would be created, and create nothing
    #[arg(long)]
    dry_run: bool,

    #[command(flatten)]
    why: Why,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum RoleName {
    /// Read everything
    Read,
    /// Read and change everything
    Admin,
}

/// Runs the command.
pub(super) async fn run(arguments: &Arguments) -> CliResult {
    let output = arguments.form.output();
    let database = Target::new(&arguments.direct, Needs::Nothing)?.open_ready().await?;
    match &arguments.action {
        Action::Create(create) => self::create(create, &database, output).await,
        Action::List => list(&database, output).await,
        Action::Revoke(revoke) => self::revoke(revoke, &database, output).await,
    }
}

async fn create(arguments: &Create, database: &Database, output: Output) -> CliResult {
    let role = match arguments.role {
        RoleName::Read => Role::Read,
        RoleName::Admin => Role::Admin,
    };
    let name = &arguments.name;
    let others = database.tokens().await?;
    if arguments.dry_run {
        if others.iter().any(|token| token.name == *name) {
            return Err(Failure::usage(format!("name: a token called {name} exists already")));
        }
        say(&format!(
            "Nothing was created; it would be the token {name}, which may {}.",
            may(role)
        ));
        return Ok(Exit::Done);
    }
    let token = NewToken::mint(arguments.out.as_deref())?;
    match database.create_token(name, role, &token.hash, &author(&arguments.why)).await {
        Ok(stored) => {
            let what = format!("the token {name}, which may {}", may(role));
            token.write(view(&stored), &what, output)?;
        }
        Err(error) => {
            token.discard();
            return Err(error.into());
        }
    }
    if others.is_empty() {
        say(
            "It is the first token in this database: from now on all calls of the administration need a token.",
        );
    }
    Ok(Exit::Done)
}

async fn list(database: &Database, output: Output) -> CliResult {
    let tokens: Vec<_> = database.tokens().await?.iter().map(view).collect();
    let mut table = Table::new(&["NAME", "ROLE", "CREATED", "BY"]);
    for token in &tokens {
        table.row([
            Shown::of(token, "name"),
            Shown::of(token, "role"),
            Shown::time_of(token, "created_at"),
            Shown::of(token, "created_by"),
        ]);
    }
    output.list(&json!({"tokens": tokens}), table, "No tokens in the database.")?;
    Ok(Exit::Done)
}

async fn revoke(revocation: &Revocation, database: &Database, output: Output) -> CliResult {
    let tokens = database.tokens().await?;
    let found = tokens.iter().find(|token| token.name == revocation.name());
    let found = found.map(|token| (view(token), may(token.role).into()));
    let delete = async |by: &_| Ok(view(&database.delete_token(revocation.name(), by).await?));
    revocation.run("token", found, output, delete).await
}

fn may(role: Role) -> &'static str {
    match role {
        Role::Read => "read",
        Role::Admin => "read and change",
    }
}

/// A token without its hash.
fn view(token: &StoredToken) -> Value {
    json!({
        "token_id": token.token_id,
        "name": token.name,
        "role": token.role.name(),
        "created_by": token.created_by,
        "created_at": token.created_at,
    })
}
