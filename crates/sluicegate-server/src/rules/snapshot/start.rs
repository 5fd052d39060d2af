//! Loads the first rules from their source, or from the snapshot file while the database is down.

use std::future::Future;
use std::path::Path;
use std::time::Duration;

use sluicegate::RuleSet;
use sluicegate::rules::Overrides;
use thiserror::Error;
use tokio::time::timeout;
use tracing::{debug, info, warn};

use super::{compose, file};
use crate::config::{Config, DatabaseUrl};
use crate::data::{DataError, Database, Loaded};
use crate::observe::snapshot_status::Status;
use crate::rules::source::{RulesError, RulesSource};
use crate::time::Timestamp;

/// Maximum time that the start waits for a database that answers: another process may be migrating
/// it.
const START_MAX: Duration = Duration::from_secs(20);

/// Rules, overrides and tokens that the process starts with.
#[derive(Debug)]
pub(crate) struct Start {
    /// Source of the rules.
    pub source: RulesSource,
    /// Text of the rules' file; empty for other sources.
    pub text: String,
    /// Rules without overrides.
    pub(super) rules: RuleSet,
    pub(super) overrides: Overrides,
    /// Contents of the database or the snapshot file.
    pub(super) loaded: Option<Loaded>,
    /// The database; `None` if it could not be reached.
    pub(super) database: Option<Database>,
    pub(super) status: Status,
    /// Maximum number of rules that one request may meet.
    pub(super) tiers_max: usize,
}

/// Error of starting without rules.
#[derive(Debug, Error)]
pub(crate) enum SnapshotError {
    /// Their file is wrong.
    #[error("{0}")]
    Rules(#[from] RulesError),
    /// The database is down, and there is no usable snapshot file.
    #[error("cannot load rules from {url}: {reason}")]
    Down {
        /// Address of the database, without its password.
        url: String,
        /// Errors of the database and of the snapshot file.
        reason: String,
    },
    /// The database's rules are invalid, and there is no usable snapshot file.
    #[error("cannot use the rules in {url}:\n{reason}")]
    Refused {
        /// Address of the database, without its password.
        url: String,
        /// Errors of the database and of the snapshot file.
        reason: String,
    },
}

/// Result of connecting to the database and loading from it.
struct Reached {
    database: Option<Database>,
    loaded: Result<Loaded, DataError>,
}

impl Start {
    /// Loads the rules to start with.
    ///
    /// # Errors
    ///
    /// If there are none.
    pub(crate) async fn find(config: &Config) -> Result<Self, SnapshotError> {
        let source = RulesSource::new(config);
        let tiers_max = config.limits.tiers_max;
        let file_rules = source.load(tiers_max)?;
        let Some(url) = &config.database.url else {
            let (rules, text) = file_rules.unwrap_or_default();
            let (overrides, status) = (Overrides::default(), Status::default());
            return Ok(Self {
                source,
                text,
                rules,
                overrides,
                loaded: None,
                database: None,
                status,
                tiers_max,
            });
        };
        let reached = match must_not_be_made(url, config.database.snapshot.as_deref()) {
            Ok(()) => reach(url, config).await,
            Err(error) => Reached { database: None, loaded: Err(error) },
        };
        let mut start = Self {
            source,
            text: String::new(),
            rules: RuleSet::default(),
            overrides: Overrides::default(),
            loaded: None,
            database: reached.database,
            status: Status::default(),
            tiers_max,
        };
        let is_file = file_rules.is_some();
        if let Some((rules, text)) = file_rules {
            (start.rules, start.text) = (rules, text);
        }
        let Err(error) = start.take(reached.loaded) else { return Ok(start) };
        match start.take_file(config) {
            Ok(()) => Ok(start),
            // Rules from a file work without overrides, tokens and callers.
            Err(no_file) if is_file => {
                warn!(
                    trouble = %error,
                    snapshot = no_file,
                    "starting without the database: its overrides, tokens and callers are not in force until it \
                     answers, and local listeners need no caller until then"
                );
                Ok(start)
            }
            Err(no_file) => Err(start.fail(url, &error, &no_file)),
        }
    }

    /// Returns `true` if callers are known, and none exists. Expired ones exist.
    pub(crate) fn is_without_callers(&self, config: &Config) -> bool {
        match &self.loaded {
            Some(loaded) => loaded.callers.is_empty(),
            None => config.database.url.is_none(),
        }
    }

    /// Applies the contents of an open database, for a process that administers it and checks no requests. Rules that cannot be
    /// used are recorded in the status, and none are in force: they can still be replaced.
    ///
    /// # Errors
    ///
    /// If the database does not answer.
    pub(crate) async fn of_database(
        url: &DatabaseUrl,
        database: Database,
    ) -> Result<Self, DataError> {
        let mut start = Self {
            source: RulesSource::Database(url.clone()),
            text: String::new(),
            rules: RuleSet::default(),
            overrides: Overrides::default(),
            loaded: None,
            database: None,
            status: Status::default(),
            tiers_max: database.tiers_max(),
        };
        let loaded = database.load().await;
        start.database = Some(database);
        match start.take(loaded) {
            Err(error @ DataError::Unavailable(_)) => Err(error),
            _ => Ok(start),
        }
    }

    /// Applies the database's contents, or records why not.
    fn take(&mut self, loaded: Result<Loaded, DataError>) -> Result<(), DataError> {
        let refused = |why| DataError::Unexpected(why);
        let taken = loaded.and_then(|loaded| {
            self.compose(&loaded).map_err(refused)?;
            Ok(loaded)
        });
        match taken {
            Ok(loaded) => {
                self.status.generation = Some(loaded.generation);
                self.status.confirmed_at = Some(Timestamp::now());
                self.loaded = Some(loaded);
                Ok(())
            }
            Err(error) => {
                match &error {
                    DataError::Unavailable(_) => self.status.down = Some(error.to_string()),
                    _ => self.status.refused = Some(error.to_string()),
                }
                Err(error)
            }
        }
    }

    fn compose(&mut self, loaded: &Loaded) -> Result<(), String> {
        let rules = match self.source {
            RulesSource::Database(_) => Some(compose::rules(&loaded.rules, self.tiers_max)?),
            RulesSource::Starter | RulesSource::File(_) => None,
        };
        self.overrides = compose::overrides(&loaded.overrides, Timestamp::now())?;
        self.status.overrides = self.overrides.len();
        if let Some(rules) = rules {
            self.rules = rules;
        }
        Ok(())
    }

    /// Applies the snapshot file's contents.
    fn take_file(&mut self, config: &Config) -> Result<(), String> {
        let Some(path) = &config.database.snapshot else {
            return Err("database.snapshot is not set".into());
        };
        let shown = path.display();
        let (loaded, written_at) =
            file::read(path).map_err(|error| format!("cannot read {shown}: {error}"))?;
        self.compose(&loaded).map_err(|why| format!("{shown} is invalid: {why}"))?;
        let trouble = self.status.down.as_ref().or(self.status.refused.as_ref());
        let trouble = trouble.map_or("", String::as_str);
        warn!(file = %shown, %written_at, trouble, "starting from the snapshot file");
        // Whatever the database's generation is when it answers, it is loaded.
        self.status.from_file = Some(written_at);
        self.loaded = Some(loaded);
        Ok(())
    }

    fn fail(self, url: &DatabaseUrl, error: &DataError, no_file: &str) -> SnapshotError {
        let url = url.to_string();
        let reason = format!("{error}; and there is no usable snapshot file: {no_file}");
        match error {
            DataError::Unavailable(_) => SnapshotError::Down { url, reason },
            _ => SnapshotError::Refused { url, reason },
        }
    }

    /// The rule set to start with, with its overrides.
    #[must_use]
    pub(crate) fn rules(&self) -> RuleSet {
        self.rules.clone().with_overrides(self.overrides.clone())
    }
}

async fn reach(url: &DatabaseUrl, config: &Config) -> Reached {
    let database = match Database::open(url, config.database.timeout).await {
        Ok(database) => database.with_tiers_max(config.limits.tiers_max),
        Err(error) => return Reached { database: None, loaded: Err(error) },
    };
    // A database that could not be migrated is opened again later.
    let migrated = within_start(migrate(&database)).await;
    if let Err(error) = migrated {
        return Reached { database: None, loaded: Err(error) };
    }
    let loaded = within_start(database.load()).await;
    let is_usable = !matches!(loaded, Err(DataError::Unavailable(_)));
    Reached { database: is_usable.then_some(database), loaded }
}

/// Waits for the database within [`START_MAX`]. A migration is continued later if needed.
async fn within_start<T>(work: impl Future<Output = Result<T, DataError>>) -> Result<T, DataError> {
    let too_long = |_| DataError::Unavailable(format!("no answer within {START_MAX:?}"));
    timeout(START_MAX, Box::pin(work)).await.map_err(too_long)?
}

/// Refuses to create a new SQLite file where one existed before: a missing file would silently
/// remove every rule, override and token.
pub(super) fn must_not_be_made(
    url: &DatabaseUrl,
    snapshot: Option<&Path>,
) -> Result<(), DataError> {
    match (url, snapshot) {
        (DatabaseUrl::Sqlite(path), Some(snapshot)) if !path.exists() && snapshot.exists() => {
            let (path, snapshot) = (path.display(), snapshot.display());
            Err(DataError::Unavailable(format!(
                "{path} is missing, but {snapshot} exists: restore the database, or delete the snapshot too to start empty"
            )))
        }
        _ => Ok(()),
    }
}

/// Migrates a database to this version's schema and logs it.
pub(super) async fn migrate(database: &Database) -> Result<(), DataError> {
    let migrations = database.migrate().await?;
    let (first, last) = (migrations.first(), migrations.last());
    if let (Some(first), Some(last)) = (first, last) {
        let (from, to) = (first.version - 1, last.version);
        // A new database is not worth an info line.
        if from == 0 {
            debug!(to, "database created");
        } else {
            info!(from, to, "database migrated");
        }
    }
    Ok(())
}
