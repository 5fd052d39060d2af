//! `sluicegate tokens`.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand, ValueEnum};
use serde_json::{Value, json};

use super::confirm::confirm;
use super::database::{Needs, Target, operator};
use super::failure::{CliResult, Failure};
use super::options::{Change, Direct, Form};
use super::output::{Output, say};
use super::table::{Shown, Table};
use super::{Exit, files};
use crate::auth::tokens;
use crate::data::{Database, Role, StoredToken};

const EXAMPLES: &str = "\
Examples:
  sluicegate tokens create dashboard --role read
  sluicegate tokens create deploy --role admin --out deploy.token
  sluicegate tokens list
  sluicegate tokens revoke deploy

They go straight to the database: that of sluicegate.toml and the environment, as `serve` finds it, or the one that \
--database names. A token is shown once, when it is made, and never again; servers know it within two seconds.

Exit codes: 0 done, 2 wrong arguments or refused, 3 cannot reach the database.";

/// Make and revoke tokens for the administration
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
    /// List the tokens there are, by name
    #[command(after_help = "Examples:\n  sluicegate tokens list\n  sluicegate tokens list --json")]
    List,
    Revoke(Revoke),
}

/// Make a token, and write it to standard output or a new file
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  sluicegate tokens create dashboard --role read
  SLUICEGATE_TOKEN=$(sluicegate tokens create me --role admin) sluicegate rules list")]
struct Create {
    /// What to call it
    name: String,

    /// What it may do
    #[arg(long, value_enum)]
    role: RoleName,

    /// The new file to write it to, which only its owner can read [default: standard output]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,

    /// Say what would be made, and make nothing
    #[arg(long)]
    dry_run: bool,
}

/// Revoke a token: nobody gets in with it any more
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  sluicegate tokens revoke deploy\n  sluicegate tokens revoke deploy --yes"
)]
struct Revoke {
    /// What it is called
    name: String,

    #[command(flatten)]
    change: Change,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum RoleName {
    /// Look
    Read,
    /// Look and change
    Admin,
}

/// Does what was asked for.
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
            return Err(Failure::usage(format!("name: there is a token called {name} already")));
        }
        say(&format!(
            "Nothing was made: it would be a token called {name} that may {}.",
            may(role)
        ));
        return Ok(Exit::Done);
    }
    let none = |error| Failure::unavailable(format!("there is no randomness to be had: {error}"));
    let (token, hash) = tokens::mint().map_err(none)?;
    let path = arguments.out.as_deref().filter(|path| *path != Path::new("-"));
    let mut sink = files::Sink::secret(path)?;
    let stored = match database.create_token(name, role, &hash, &operator()).await {
        Ok(stored) => stored,
        Err(error) => {
            sink.discard();
            return Err(error.into());
        }
    };
    let (mut shown, line) = (view(&stored), format!("{}\n", token.expose()));
    let may = may(role);
    if let Some(path) = path {
        sink.write(&line)?;
        output.show(&shown, String::new)?;
        let path = path.display();
        say(&format!("The token {name}, which may {may}, is in {path}. It is not shown again."));
    } else {
        shown["token"] = json!(token.expose());
        output.show(&shown, || line)?;
        say(&format!("This is the token {name}, which may {may}. It is not shown again."));
    }
    if others.is_empty() {
        say(
            "It is the first in this database: from now on every call of the administration needs a token.",
        );
    }
    Ok(Exit::Done)
}

async fn list(database: &Database, output: Output) -> CliResult {
    let tokens: Vec<_> = database.tokens().await?.iter().map(view).collect();
    let mut table = Table::new(&["NAME", "ROLE", "MADE", "BY"]);
    for token in &tokens {
        table.row([
            Shown::of(token, "name"),
            Shown::of(token, "role"),
            Shown::time_of(token, "created_at"),
            Shown::of(token, "created_by"),
        ]);
    }
    output.list(&json!({"tokens": tokens}), table, "There are no tokens in the database.")?;
    Ok(Exit::Done)
}

async fn revoke(arguments: &Revoke, database: &Database, output: Output) -> CliResult {
    let name = &arguments.name;
    let tokens = database.tokens().await?;
    let Some(token) = tokens.iter().find(|token| token.name == *name) else {
        return Err(Failure::usage(format!("there is no token called {name}")));
    };
    if arguments.change.dry_run {
        say("Nothing was revoked: this is the token.");
        output.show(&view(token), || format!("{name}\n"))?;
        return Ok(Exit::Done);
    }
    let question = format!("Revoke the token {name}, which may {}?", may(token.role));
    confirm(&question, arguments.change.yes)?;
    let revoked = database.delete_token(name).await?;
    say(&format!("The token {name} is revoked."));
    output.show(&json!({"revoked": view(&revoked)}), String::new)?;
    Ok(Exit::Done)
}

fn may(role: Role) -> &'static str {
    match role {
        Role::Read => "look",
        Role::Admin => "look and change",
    }
}

/// A token without anything that it could be recognised by.
fn view(token: &StoredToken) -> Value {
    json!({
        "token_id": token.token_id,
        "name": token.name,
        "role": token.role.name(),
        "created_by": token.created_by,
        "created_at": token.created_at,
    })
}
