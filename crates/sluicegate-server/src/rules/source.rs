//! Source of rules: a database, a file, or the starter rules.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use sluicegate::RuleSet;
use sluicegate::rules::{FileErrors, RULES_FILE_BYTES_MAX, RuleSetErrors};
use thiserror::Error;

use crate::config::{Config, DatabaseUrl, RulesFrom, reason};

/// Source of rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RulesSource {
    /// The rules that a new installation starts with.
    Starter,
    /// A file.
    File(PathBuf),
    /// A database.
    Database(DatabaseUrl),
}

/// Error of loading rules.
#[derive(Debug, Error)]
pub enum RulesError {
    /// The file cannot be read.
    #[error("cannot read {}: {}", path.display(), reason(source))]
    Unreadable {
        /// Path from the settings.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// The file's contents are invalid.
    #[error("{0}")]
    Refused(FileErrors),
    /// The starter rules exceed a bound.
    #[error("the starter rules: {0}")]
    Starter(#[from] RuleSetErrors),
}

impl RulesSource {
    /// Source named in the settings.
    #[must_use]
    pub fn new(config: &Config) -> Self {
        match (config.rules.source, &config.database.url, &config.rules.file) {
            (RulesFrom::Database, Some(url), _) => Self::Database(url.clone()),
            (_, _, Some(path)) => Self::File(path.clone()),
            (_, _, None) => Self::Starter,
        }
    }

    /// Loads the rules, of which a request may meet `tiers_max`, and the text they were parsed from; `None` if they are in
    /// a database.
    ///
    /// # Errors
    ///
    /// Everything that is wrong with the file.
    pub fn load(&self, tiers_max: usize) -> Result<Option<(RuleSet, String)>, RulesError> {
        match self {
            Self::Starter => {
                let rules = RuleSet::starter().rules().to_vec();
                Ok(Some((RuleSet::bounded(rules, tiers_max)?, String::new())))
            }
            Self::File(path) => {
                let text = read(path)?;
                Ok(Some((parse(path, &text, tiers_max)?, text)))
            }
            Self::Database(_) => Ok(None),
        }
    }
}

impl fmt::Display for RulesSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Starter => f.write_str("starter"),
            Self::File(path) => path.display().fmt(f),
            Self::Database(url) => url.fmt(f),
        }
    }
}

/// Reads a file of rules. Of one that is too long, only enough to report that.
pub(crate) fn read(path: &Path) -> Result<String, RulesError> {
    let unreadable = |source| RulesError::Unreadable { path: path.into(), source };
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(unreadable)?;
    file.take(RULES_FILE_BYTES_MAX as u64 + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() > RULES_FILE_BYTES_MAX {
        return Ok(String::from_utf8_lossy(&bytes).into_owned());
    }
    let not_utf8 = |_| io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8");
    String::from_utf8(bytes).map_err(not_utf8).map_err(unreadable)
}

/// Parses the text of a file, of whose rules a request may meet `tiers_max`.
pub(crate) fn parse(path: &Path, text: &str, tiers_max: usize) -> Result<RuleSet, RulesError> {
    let name = path.to_string_lossy();
    RuleSet::from_toml_bounded(&name, text, tiers_max).map_err(RulesError::Refused)
}
