//! What can go wrong with the database.

use sluicegate::rules::FieldError;
use sqlx::error::{DatabaseError, ErrorKind};
use sqlx::postgres::PgDatabaseError;
use thiserror::Error;

use super::rules::RuleRow;

/// Why the database did not do something.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum DataError {
    /// It cannot be reached, is locked or full, or did not answer in time. What it said is for the log.
    #[error("the database does not answer: {0}")]
    Unavailable(String),
    /// It answers, but there was too much to look through.
    #[error("this takes too long: narrow it with from and to, or try again")]
    TooSlow,
    /// There is no such row.
    #[error("there is no such {0}")]
    NotFound(&'static str),
    /// Another row has this already.
    #[error("{field}: {detail}")]
    Conflict {
        /// The column.
        field: &'static str,
        /// Which row has it.
        detail: String,
        /// The rule that has it, where it is one.
        rule_id: Option<u64>,
    },
    /// It has changed since.
    #[error("it has changed since: its version is {current}")]
    Stale {
        /// The version that it has now.
        current: u64,
    },
    /// A rule that makes no sense.
    #[error("{}", FieldErrors(.0))]
    Refused(Vec<FieldError>),
    /// What is stored makes no sense, or the schema is not this version's.
    #[error("the database holds something unexpected: {0}")]
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

/// Columns of other tables than that of the rules that constraints and indexes are named after.
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

/// SQLite's result codes that mean trouble with the file, not with what was asked: busy, locked, no memory,
/// read-only, interrupted, input or output, full, cannot open, a race of openers.
const SQLITE_TROUBLE: [i32; 9] = [5, 6, 7, 8, 9, 10, 13, 14, 15];

/// PostgreSQL's classes of errors that mean trouble with the server, not with what was asked: connections, who
/// may connect and what to, transactions rolled back, resources, operator's doing, its system, and locks.
const POSTGRES_TROUBLE: [&str; 11] =
    ["08", "25006", "28", "3D", "40", "42501", "53", "55", "57", "58", "XX"];

impl DataError {
    /// What a column does not allow.
    pub(super) fn field(field: &'static str, reason: impl Into<String>) -> Self {
        Self::Refused(vec![FieldError { field, of: None, at: None, reason: reason.into() }])
    }
}

/// Errors of the driver hold no password: it says what servers said, and never what it was given.
impl From<sqlx::Error> for DataError {
    fn from(error: sqlx::Error) -> Self {
        match &error {
            sqlx::Error::Database(said) => from_database(said.as_ref()),
            // A pool tries again and again to connect, and does not say what came of it.
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
            let detail = "another row has it already".into();
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

/// The column that a constraint is about: PostgreSQL names the constraint, SQLite writes it into its message.
fn column(said: &dyn DatabaseError) -> Option<&'static str> {
    let names = said.constraint().unwrap_or_else(|| said.message());
    // Names of tables contain names of columns.
    let names = names.replace("rate_limit_tokens", "").replace("rate_limit_rules", "");
    let columns = RuleRow::COLUMNS.iter().chain(&COLUMNS).copied();
    // The longest: some are part of the name of another.
    columns.filter(|column| names.contains(column)).max_by_key(|column| column.len())
}

fn is_trouble(said: &dyn DatabaseError) -> bool {
    let Some(code) = said.code() else { return true };
    if said.try_downcast_ref::<PgDatabaseError>().is_some() {
        return POSTGRES_TROUBLE.iter().any(|class| code.starts_with(class));
    }
    // The low byte is the kind of it, the rest says more.
    code.parse::<i32>().is_ok_and(|code| SQLITE_TROUBLE.contains(&(code & 0xff)))
}
