//! Options that several commands have.

use std::path::PathBuf;

use clap::Args;

use super::output::Output;

/// The form of what is shown.
#[derive(Clone, Debug, Args)]
pub(super) struct Form {
    /// Show JSON for programs instead of tables for people
    #[arg(long, global = true)]
    json: bool,
}

const SERVER: &str =
    "The server to talk to [default: http://127.0.0.1:8080] [env: SLUICEGATE_SERVER]";
const TOKEN: &str = "The file of the token to show [env: SLUICEGATE_TOKEN_FILE, or SLUICEGATE_TOKEN for the token itself]";

/// The server to talk to.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Server")]
pub(super) struct Server {
    #[arg(long, global = true, value_name = "URL", help = SERVER)]
    pub(super) server: Option<String>,

    #[arg(long, global = true, value_name = "FILE", help = TOKEN)]
    pub(super) token_file: Option<PathBuf>,

    /// The authorities to trust for https, in PEM [default: those of the system]
    #[arg(long, global = true, value_name = "FILE")]
    pub(super) ca: Option<PathBuf>,

    /// The certificate to show to a server that asks for one, in PEM; with --key
    #[arg(long, global = true, value_name = "FILE", requires = "key")]
    pub(super) certificate: Option<PathBuf>,

    /// The private key of --certificate, in PEM
    #[arg(long, global = true, value_name = "FILE", requires = "certificate")]
    pub(super) key: Option<PathBuf>,
}

/// The database to go to.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Database")]
pub(super) struct Direct {
    /// The database: `sqlite:FILE`, `postgres://`, or `settings` for the one in sluicegate.toml and the
    /// environment, which keeps a password out of the list of processes
    #[arg(long, global = true, value_name = "URL")]
    pub(super) database: Option<String>,

    /// The file of settings that name the database, and say what of violations is recorded in it [default:
    /// sluicegate.toml, if it is there]
    #[arg(long, global = true, value_name = "FILE")]
    pub(super) config: Option<PathBuf>,
}

/// How to go about a change.
#[derive(Clone, Copy, Debug, Args)]
pub(super) struct Change {
    /// Say what would be changed, and change nothing
    #[arg(long)]
    pub(super) dry_run: bool,

    /// Do not ask
    #[arg(long, short = 'y')]
    pub(super) yes: bool,
}

impl Form {
    /// Output in this form.
    pub(super) fn output(&self) -> Output {
        Output::new(self.json)
    }
}
