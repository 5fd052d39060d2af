//! `sluicegate migrate`.

use clap::Args;
use serde_json::{Value, json};

use super::Exit;
use super::confirm::confirm;
use super::database::{Needs, Target};
use super::failure::{CliResult, Failure};
use super::options::{Change, Direct, Form};
use super::output::{Output, counted, say};
use super::table::{Shown, Table};
use crate::data::{DataError, Migration};

const EXAMPLES: &str = "\
Examples:
  sluicegate migrate                     migrate the database of the settings to this version
  sluicegate migrate --status            list the migrations, and which are applied
  sluicegate migrate --down-to 1         migrate back, for an older version of Sluicegate
  sluicegate migrate --database postgres://sluicegate@db/sluicegate

`sluicegate serve` migrates when it starts. A new database gets the starter rules.

Exit codes: 0 done, 2 wrong arguments or refused, 3 cannot reach the database.";

/// Migrate the database to this version, or back to an older one
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Arguments {
    /// Only list the migrations
    #[arg(long, conflicts_with = "down_to")]
    status: bool,

    /// Revert every migration above this one; data that only they can hold is lost
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i64).range(0..))]
    down_to: Option<i64>,

    #[command(flatten)]
    change: Change,
    #[command(flatten)]
    form: Form,
    #[command(flatten)]
    direct: Direct,
}

/// Runs the command.
pub(super) async fn run(arguments: &Arguments) -> CliResult {
    let output = arguments.form.output();
    let target = Target::new(&arguments.direct, Needs::Nothing)?;
    let database = target.open().await?;
    let known = database.migrations().await?;
    if arguments.status {
        show(&known, output)?;
        return Ok(Exit::Done);
    }
    let newest = known.iter().map(|migration| migration.version).max().unwrap_or_default();
    if let Some(down_to) = arguments.down_to.filter(|down_to| *down_to > newest) {
        let message = format!("--down-to: no migration {down_to}; the newest is {newest}");
        return Err(Failure::usage(message));
    }
    let is_concerned = |migration: &&Migration| match arguments.down_to {
        None => !migration.is_applied,
        Some(down_to) => migration.is_applied && migration.version > down_to,
    };
    let concerned: Vec<_> = known.iter().filter(is_concerned).cloned().collect();
    if concerned.is_empty() {
        say(&format!("{}: nothing to do.", target.url));
        return changed(&[], output);
    }
    if arguments.change.dry_run {
        say(&format!("{}: nothing was changed; these migrations would be:", target.url));
        show(&concerned, output)?;
        return Ok(Exit::Done);
    }
    let done = match arguments.down_to {
        None => database.migrate().await?,
        Some(down_to) => {
            let migrations = counted(concerned.len(), "migration", "migrations");
            let question = format!(
                "Revert {migrations} of {}, and lose the data that only they can hold?",
                target.url
            );
            confirm(&question, arguments.change.yes)?;
            // Migrations of a newer version cannot be reverted by this one.
            database.migrate_down(down_to).await.map_err(|error| match error {
                DataError::Unexpected(why) => Failure::usage(why),
                error => error.into(),
            })?
        }
    };
    let what = if arguments.down_to.is_some() { "reverted" } else { "applied" };
    for migration in &done {
        say(&format!("{what}: {} {}", migration.version, migration.description));
    }
    changed(&done, output)
}

fn changed(done: &[Migration], output: Output) -> CliResult {
    output.show(&json!({"migrations": views(done)}), String::new)?;
    Ok(Exit::Done)
}

fn show(migrations: &[Migration], output: Output) -> CliResult<()> {
    let mut table = Table::new(&["VERSION", "APPLIED", "DESCRIPTION"]);
    for migration in migrations {
        table.row([
            Shown::from(migration.version.to_string()),
            if migration.is_applied { Shown::good("yes") } else { Shown::quiet("no") },
            Shown::from(migration.description.as_str()),
        ]);
    }
    output.list(&json!({"migrations": views(migrations)}), table, "No migrations.")
}

fn views(migrations: &[Migration]) -> Vec<Value> {
    let view = |migration: &Migration| {
        json!({
            "version": migration.version,
            "description": migration.description,
            "is_applied": migration.is_applied,
        })
    };
    migrations.iter().map(view).collect()
}
