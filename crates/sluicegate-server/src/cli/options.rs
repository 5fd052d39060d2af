//! Options that commands share.

use std::path::PathBuf;

use clap::Args;

use super::output::Output;
use crate::web::access::check_reason;

/// Output format.
#[derive(Clone, Debug, Args)]
pub(super) struct Form {
    /// Print JSON instead of tables
    #[arg(long, global = true)]
    json: bool,
}

const SERVER: &str = "URL of the server, or unix:/path of its socket [default: http://127.0.0.1:8080] [env: SLUICEGATE_SERVER]";
const TOKEN: &str = "File that holds the token [env: SLUICEGATE_TOKEN_FILE, or SLUICEGATE_TOKEN for the token itself]";

/// Server, token and TLS.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Server")]
pub(super) struct Server {
    #[arg(long, global = true, value_name = "URL", help = SERVER)]
    pub(super) server: Option<String>,

    #[arg(long, global = true, value_name = "FILE", help = TOKEN)]
    pub(super) token_file: Option<PathBuf>,

    /// Certificate authorities to trust for https, in PEM [default: those of the system]
    #[arg(long, global = true, value_name = "FILE")]
    pub(super) ca: Option<PathBuf>,

    /// Client certificate, in PEM, for a server that requires one; with --key
    #[arg(long, global = true, value_name = "FILE", requires = "key")]
    pub(super) certificate: Option<PathBuf>,

    /// Private key of --certificate, in PEM
    #[arg(long, global = true, value_name = "FILE", requires = "certificate")]
    pub(super) key: Option<PathBuf>,
}

/// Direct access to a database.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Database")]
pub(super) struct Direct {
    /// URL of the database: `sqlite:FILE` or `postgres://`; `settings` for the one in sluicegate.toml and the
    /// environment, which keeps a password out of the list of processes
    #[arg(long, global = true, value_name = "URL")]
    pub(super) database: Option<String>,

    /// File of settings that name the database and how violations are recorded [default: sluicegate.toml, if
    /// it exists]
    #[arg(long, global = true, value_name = "FILE")]
    pub(super) config: Option<PathBuf>,
}

/// Dry run and confirmation of a change.
#[derive(Clone, Copy, Debug, Args)]
pub(super) struct Change {
    /// Show what would change, and change nothing
    #[arg(long)]
    pub(super) dry_run: bool,

    /// Do not ask for confirmation
    #[arg(long, short = 'y')]
    pub(super) yes: bool,
}

/// Reason of a change.
#[derive(Clone, Debug, Default, Args)]
pub(super) struct Why {
    /// Reason for the change, recorded in the history
    #[arg(long, value_name = "TEXT", value_parser = reason)]
    pub(super) reason: Option<String>,
}

fn reason(text: &str) -> Result<String, String> {
    check_reason(text).map(|()| text.to_owned())
}

impl Form {
    /// The output for this format.
    pub(super) fn output(&self) -> Output {
        Output::new(self.json)
    }
}
