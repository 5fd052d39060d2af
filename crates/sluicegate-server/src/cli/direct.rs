//! Straight to the database, without a server.

use std::path::Path;
use std::time::Duration;

use super::failure::{Failure, Outcome};
use super::options;
use crate::config::{Config, DatabaseUrl, Sources};
use crate::data::Database;
use crate::observe::logging::Audience;

/// The longest wait of a call. Whoever waits for a command has more time than somebody who waits for an answer of
/// a server, and thousands of rules take a while to be written.
const TIMEOUT: Duration = Duration::from_secs(30);

/// What stands for the database of the settings.
const FROM_SETTINGS: &str = "settings";

/// A database to go to.
#[derive(Debug)]
pub(super) struct Target {
    /// Where it is.
    pub(super) url: DatabaseUrl,
}

impl Target {
    /// The database that the options name, or that of the settings.
    pub(super) fn new(options: &options::Direct) -> Outcome<Self> {
        match options.database.as_deref() {
            None | Some(FROM_SETTINGS) => {
                let none = || Failure::usage("there is no database: url in [database] is empty");
                Ok(Self {
                    url: settings(options.config.as_deref())?.database.url.ok_or_else(none)?,
                })
            }
            Some(url) => match DatabaseUrl::parse(url) {
                Ok(Some(url)) => Ok(Self { url }),
                Ok(None) => Err(Failure::usage("--database: is empty")),
                Err(wrong) => Err(Failure::usage(format!("--database: {wrong}"))),
            },
        }
    }

    /// Connects, whatever is in it.
    pub(super) async fn open(&self) -> Outcome<Database> {
        let opened = Database::open(&self.url, TIMEOUT).await;
        opened.map_err(|error| Failure::unavailable(format!("{}: {error}", self.url)))
    }

    /// Connects to a database that is there and has everything that this version needs.
    pub(super) async fn open_ready(&self) -> Outcome<Database> {
        let advice = "`sluicegate migrate` and `sluicegate serve` make it ready";
        if let DatabaseUrl::Sqlite(path) = &self.url
            && !path.exists()
        {
            let message = format!("{}: there is no such file; {advice}", self.url);
            return Err(Failure::unavailable(message));
        }
        let database = self.open().await?;
        let migrations = database.migrations().await?;
        if migrations.iter().any(|migration| !migration.is_applied) {
            let message =
                format!("{}: the database is not ready for this version; {advice}", self.url);
            return Err(Failure::unavailable(message));
        }
        Ok(database)
    }
}

/// The settings where `serve` finds them: of this file, or of the one that is usual, and of the environment. What
/// only `serve` needs may be missing: its secrets are often where nobody else can read them.
pub(super) fn settings(file: Option<&Path>) -> Outcome<Config> {
    let file = file.map(Path::to_owned);
    let environment = std::env::vars_os().collect();
    let sources = Sources { file, environment, flags: Vec::new() };
    let in_colours = Audience::of_stderr().in_colours;
    let loaded =
        sources.load_apart().map_err(|errors| Failure::report(errors.render(in_colours)))?;
    Ok(loaded.config)
}

/// Who changes something from here, as the history of changes has it.
pub(super) fn by() -> String {
    let user = std::env::var("USER").or_else(|_| std::env::var("LOGNAME")).unwrap_or_default();
    if user.is_empty() { "command line".into() } else { format!("command line ({user})") }
}
