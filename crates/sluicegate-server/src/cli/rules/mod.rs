//! `sluicegate rules`.

mod change;
mod columns;
mod diff;
mod export;
mod history;
mod import;
mod list;
mod preview;

use clap::{Args, Subcommand};

use super::backend::Backend;
use super::failure::Outcome;
use super::options::{Direct, Form, Server};

const EXAMPLES: &str = "\
Examples:
  sluicegate rules list
  sluicegate rules create --key-pattern 'export:{user_id}' --rate 5/h --condition endpoint=/export
  sluicegate rules update 1 --rate \"20/s burst 100\" --dry-run
  sluicegate rules history 1
  sluicegate rules export --out rules.toml
  sluicegate rules diff rules.toml
  sluicegate rules import rules.toml
  sluicegate rules import --from envoy-ratelimit config.yaml --dry-run
  sluicegate rules list --database sqlite:sluicegate.db

They talk to a running server, or with --database straight to the database; servers on it notice within two \
seconds.

Exit codes: 0 done, 2 wrong arguments or refused, 3 cannot reach the server or the database.";

/// Show and change the rules, and move them between files and the database
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
    List(list::List),
    Show(list::Show),
    Create(change::Create),
    Update(change::Update),
    Delete(change::Delete),
    History(history::Arguments),
    Preview(preview::Arguments),
    Export(export::Arguments),
    Import(import::Arguments),
    Diff(diff::Arguments),
}

/// Does what was asked for.
pub(super) async fn run(arguments: &Arguments) -> Outcome {
    let output = arguments.form.output();
    let backend = Backend::open(&arguments.server, &arguments.direct).await?;
    match &arguments.action {
        Action::List(list) => list::list(list, &backend, output).await,
        Action::Show(show) => list::show(show, &backend, output).await,
        Action::Create(create) => change::create(create, &backend, output).await,
        Action::Update(update) => change::update(update, &backend, output).await,
        Action::Delete(delete) => change::delete(delete, &backend, output).await,
        Action::History(history) => history::run(history, &backend, output).await,
        Action::Preview(preview) => preview::run(preview, &backend, output).await,
        Action::Export(export) => export::run(export, &backend, output).await,
        Action::Import(import) => import::run(import, &backend, output).await,
        Action::Diff(diff) => diff::run(diff, &backend, output).await,
    }
}
