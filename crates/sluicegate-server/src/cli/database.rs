//! The database that `--database` or the settings name.

use std::path::Path;
use std::time::Duration;

use super::failure::{CliResult, Failure};
use super::options;
use crate::config::{Config, DatabaseUrl, Sources};
use crate::data::{Author, Database};
use crate::observe::logging::Audience;

/// Longest wait for a statement. Longer than a server's: an operator can wait, and thousands of rules take a while to
/// be written.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Value of `--database` that means the database of the settings.
const FROM_SETTINGS: &str = "settings";

/// A database, and settings for its administration.
#[derive(Debug)]
pub(super) struct Target {
    pub(super) url: DatabaseUrl,
    /// Defaults but for what concerns the database and, where it was asked for, the audit.
    pub(super) config: Config,
    /// True if `config` has the privacy setting of the service.
    pub(super) knows_privacy: bool,
}

/// Settings that a command needs beside the URL of the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Needs {
    Nothing,
    /// Recording and privacy of violations.
    Audit,
}

impl Target {
    /// The database that the options name, or that of the settings.
    pub(super) fn new(options: &options::Direct, needs: Needs) -> CliResult<Self> {
        let named = options.database.as_deref().filter(|named| *named != FROM_SETTINGS);
        // An explicit URL needs no settings, and works where they are wrong.
        let knows_privacy = named.is_none() || needs == Needs::Audit;
        let settings =
            if knows_privacy { settings(options.config.as_deref())? } else { Config::default() };
        let url = match named.map(DatabaseUrl::parse) {
            None => settings.database.url,
            Some(Ok(url)) => url,
            Some(Err(wrong)) => return Err(Failure::usage(format!("--database: {wrong}"))),
        };
        let Some(url) = url else {
            let message = "no database: --database or url in [database] is empty";
            return Err(Failure::usage(message));
        };
        let mut config = Config { audit: settings.audit, ..Config::default() };
        config.database.url = Some(url.clone());
        config.limits.tiers_max = settings.limits.tiers_max;
        config.database.timeout = TIMEOUT;
        config.database.snapshot = None;
        // Nothing is checked or charged here.
        (config.store.max_buckets, config.recent.requests_max) = (1, 0);
        Ok(Self { url, config, knows_privacy })
    }

    /// Connects, whatever version the database has.
    pub(super) async fn open(&self) -> CliResult<Database> {
        let opened = Database::open(&self.url, TIMEOUT).await;
        let opened = opened.map(|opened| opened.with_tiers_max(self.config.limits.tiers_max));
        opened.map_err(|error| Failure::unavailable(format!("{}: {error}", self.url)))
    }

    /// Connects to a database that exists and has the schema of this version.
    pub(super) async fn open_ready(&self) -> CliResult<Database> {
        let advice = "run `sluicegate migrate`, or start `sluicegate serve`, which migrates it";
        if let DatabaseUrl::Sqlite(path) = &self.url
            && !path.exists()
        {
            let message = format!("{}: no such file; {advice}", self.url);
            return Err(Failure::unavailable(message));
        }
        let database = self.open().await?;
        let migrations = database.migrations().await?;
        if migrations.iter().any(|migration| !migration.is_applied) {
            let message =
                format!("{}: the database lacks migrations of this version; {advice}", self.url);
            return Err(Failure::unavailable(message));
        }
        Ok(database)
    }
}

/// Settings as `serve` finds them: in this file, or in the usual one, and in the environment. What only `serve` needs
/// may be missing: its secrets are often where only the service can read them.
fn settings(file: Option<&Path>) -> CliResult<Config> {
    let file = file.map(Path::to_owned);
    let environment = std::env::vars_os().collect();
    let sources = Sources { file, environment, flags: Vec::new() };
    let in_colours = Audience::of_stderr().in_colours;
    let loaded =
        sources.load_apart().map_err(|errors| Failure::report(errors.render(in_colours)))?;
    Ok(loaded.config)
}

/// Author of changes that are made on a database from here.
pub(super) fn author(why: &options::Why) -> Author {
    Author { reason: why.reason.clone().unwrap_or_default(), ..Author::new(operator()) }
}

/// Name under which changes that are made from here are recorded.
pub(super) fn operator() -> String {
    let user = std::env::var("USER").or_else(|_| std::env::var("LOGNAME")).unwrap_or_default();
    if user.is_empty() { "command line".into() } else { format!("command line ({user})") }
}
