//! Errors of the database.

use sluicegate::rules::FieldError;
use sqlx::error::{DatabaseError, ErrorKind};
use sqlx::postgres::PgDatabaseError;
use thiserror::Error;

use super::rules::RuleRow;
use crate::time::Timestamp;

/// Error of a call to the database.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum DataError {
    /// The database cannot be reached, is locked or full, or did not answer in time. The cause is for the log.
    #[error("the database does not answer: {0}")]
    Unavailable(String),
    /// The database answers, but the query took too long.
    #[error("the query timed out: limit it with `from` and `to`, or try again")]
    TooSlow,
    /// The row does not exist.
    #[error("there is no such {0}")]
    NotFound(&'static str),
    /// Another row has this value already.
    #[error("{field}: {detail}")]
    Conflict {
        /// Name of the column.
        field: &'static str,
        /// Text naming the other row.
        detail: String,
        /// Id of the other row, if it is a rule.
        rule_id: Option<u64>,
    },
    /// The row has changed since it was read.
    #[error("changed meanwhile: the current version is {current}; load it and try again")]
    Stale {
        /// Current version.
        current: u64,
    },
    /// The subject has an override already.
    #[error(
        "the subject has an override already, set by {by} at {at}: load it and change that one"
    )]
    Exists {
        /// Author of the last change.
        by: String,
        /// Time of the last change.
        at: Timestamp,
    },
    /// The new row is invalid.
    #[error("{}", FieldErrors(.0))]
    Refused(Vec<FieldError>),
    /// The record in the history could not be written, so the change was rolled back. The cause is for the log.
    #[error("the history cannot be written, so nothing was changed: {0}")]
    Unrecorded(String),
    /// A stored row is invalid, or the schema is not that of this version.
    #[error("the database contains an invalid row or schema: {0}")]
    Unexpected(String),
}

struct FieldErrors<'a>(&'a [FieldError]);

impl std::fmt::Display for FieldErrors<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (position, error) in self.0.iter().enumerate() {
            let separator = if position == 0 { "" } else { "; " };
            write!(f, "{separator}{error}")?;
        }
        Ok(())
    }
}

/// Columns of tables other than that of the rules after which constraints and indexes are named.
const COLUMNS: [&str; 9] = [
    "override_id",
    "tokens_at_time",
    "subject",
    "kind",
    "reason",
    "created_by",
    "name",
    "role",
    "hash",
];

/// Result codes of SQLite for failures of the file, not of the query: busy, locked, no memory, read-only,
/// interrupted, input or output, full, cannot open, locking protocol.
const SQLITE_TROUBLE: [i32; 9] = [5, 6, 7, 8, 9, 10, 13, 14, 15];

/// Error classes of PostgreSQL for failures of the server, not of the query: connections, authorisation, missing
/// databases, rolled back transactions, resources, intervention of an operator, system errors, and locks.
const POSTGRES_TROUBLE: [&str; 11] =
    ["08", "25006", "28", "3D", "40", "42501", "53", "55", "57", "58", "XX"];

impl DataError {
    /// Error of a value that a column does not allow.
    pub(super) fn field(field: &'static str, reason: impl Into<String>) -> Self {
        Self::Refused(vec![FieldError { field, of: None, at: None, reason: reason.into() }])
    }

    /// Error of writing the record of a change. A database that does not answer stays [`Unavailable`](Self::Unavailable).
    pub(super) fn unrecorded(error: sqlx::Error) -> Self {
        match Self::from(error) {
            Self::Unavailable(cause) => Self::Unavailable(cause),
            error => Self::Unrecorded(error.to_string()),
        }
    }
}

/// Errors of the driver contain no password: they quote the server, never the URL.
impl From<sqlx::Error> for DataError {
    fn from(error: sqlx::Error) -> Self {
        match &error {
            sqlx::Error::Database(said) => from_database(said.as_ref()),
            // A pool retries to connect without reporting the errors.
            sqlx::Error::PoolTimedOut => {
                Self::Unavailable("it cannot be connected to, or all connections are busy".into())
            }
            sqlx::Error::Io(_)
            | sqlx::Error::Tls(_)
            | sqlx::Error::Protocol(_)
            | sqlx::Error::PoolClosed
            | sqlx::Error::WorkerCrashed => Self::Unavailable(error.to_string()),
            _ => Self::Unexpected(error.to_string()),
        }
    }
}

fn from_database(said: &dyn DatabaseError) -> DataError {
    let text = said.message().to_owned();
    match said.kind() {
        ErrorKind::UniqueViolation => {
            let field = column(said).unwrap_or("rule_id");
            let detail = "another row has the same value".into();
            return DataError::Conflict { field, detail, rule_id: None };
        }
        ErrorKind::CheckViolation => {
            let reason = "is not a value that the database allows";
            return match column(said) {
                Some(field) => DataError::field(field, reason),
                None => DataError::Unexpected(text),
            };
        }
        _ => {}
    }
    if is_trouble(said) { DataError::Unavailable(text) } else { DataError::Unexpected(text) }
}

/// Column of a violated constraint: PostgreSQL names the constraint, SQLite has it in the message.
fn column(said: &dyn DatabaseError) -> Option<&'static str> {
    let names = said.constraint().unwrap_or_else(|| said.message());
    // Names of tables contain names of columns.
    let names = names.replace("rate_limit_tokens", "").replace("rate_limit_rules", "");
    let columns = RuleRow::COLUMNS.iter().chain(&COLUMNS).copied();
    // The longest match: some names are part of another.
    columns.filter(|column| names.contains(column)).max_by_key(|column| column.len())
}

fn is_trouble(said: &dyn DatabaseError) -> bool {
    let Some(code) = said.code() else { return true };
    if said.try_downcast_ref::<PgDatabaseError>().is_some() {
        return POSTGRES_TROUBLE.iter().any(|class| code.starts_with(class));
    }
    // The low byte is the primary code, the rest an extension.
    code.parse::<i32>().is_ok_and(|code| SQLITE_TROUBLE.contains(&(code & 0xff)))
}
