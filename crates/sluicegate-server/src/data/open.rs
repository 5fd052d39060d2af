//! Opens connections to a database.

use std::fs::OpenOptions;
use std::io;
use std::path::Path;
use std::time::Duration;

use sqlx::postgres::{PgConnectOptions, PgConnection, PgPoolOptions};
use sqlx::sqlite::{
    SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqlitePoolOptions, SqliteSynchronous,
};
use sqlx::{ConnectOptions as _, Connection as _};
use tokio::time::sleep;

use super::DataError;
use super::session::Pool;
use crate::config::DatabaseUrl;
use crate::private_file;

/// Maximum number of connections of a process to PostgreSQL.
const POSTGRES_CONNECTIONS_MAX: u32 = 8;

/// Maximum number of connections to a SQLite file. One can write while the others read.
const SQLITE_CONNECTIONS_MAX: u32 = 4;

/// Maximum time that an unused connection stays open.
const IDLE_MAX: Duration = Duration::from_secs(300);

/// Minimum version of PostgreSQL, as `server_version_num`.
const POSTGRES_VERSION_MIN: i64 = 150_000;

/// Pause before retrying to open a file that other processes are opening.
const BUSY_PAUSE: Duration = Duration::from_millis(20);

/// A database that has been reached.
#[derive(Clone, Debug)]
pub(super) struct Opened {
    pub(super) pool: Pool,
    /// Connection options of the listener; `None` for SQLite.
    pub(super) listening: Option<PgConnectOptions>,
}

pub(super) async fn open(url: &DatabaseUrl, timeout: Duration) -> Result<Opened, DataError> {
    match url {
        DatabaseUrl::Sqlite(path) => open_sqlite(path, timeout).await,
        DatabaseUrl::Postgres(url) => open_postgres(url, timeout).await,
    }
}

async fn open_sqlite(path: &Path, timeout: Duration) -> Result<Opened, DataError> {
    // Violations contain personal data. SQLite gives its other files the same mode.
    let file = match private_file::create(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            OpenOptions::new().append(true).open(path)
        }
        created => created,
    };
    file.map_err(|error| DataError::Unavailable(format!("{}: {error}", path.display())))?;
    let options = SqliteConnectOptions::new()
        .filename(path)
        .create_if_missing(false)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Normal)
        .foreign_keys(true)
        // Overwrites deleted rows in the file: violations of a subject are deleted for privacy.
        .pragma("secure_delete", "ON")
        .busy_timeout(timeout)
        .disable_statement_logging();
    let pool = SqlitePoolOptions::new()
        .max_connections(SQLITE_CONNECTIONS_MAX)
        .acquire_timeout(timeout)
        .idle_timeout(IDLE_MAX)
        .connect_lazy_with(options);
    reach(&pool).await?;
    Ok(Opened { pool: Pool::Sqlite(pool), listening: None })
}

/// Connects once, with retries: SQLite fails without waiting if several processes switch a new file to a write-ahead
/// log at the same time.
async fn reach(pool: &SqlitePool) -> Result<(), DataError> {
    loop {
        match pool.acquire().await {
            Ok(_) => return Ok(()),
            Err(sqlx::Error::Database(error)) if is_busy(&*error) => sleep(BUSY_PAUSE).await,
            Err(error) => return Err(error.into()),
        }
    }
}

fn is_busy(error: &dyn sqlx::error::DatabaseError) -> bool {
    let code = error.code().and_then(|code| code.parse::<i32>().ok());
    code.is_some_and(|code| code & 0xff == 5)
}

async fn open_postgres(url: &str, timeout: Duration) -> Result<Opened, DataError> {
    // The parser's message may quote the URL with its password.
    let wrong = |_| DataError::Unavailable("its URL cannot be read".into());
    let options: PgConnectOptions = url.parse().map_err(wrong)?;
    let options = options.application_name("sluicegate").disable_statement_logging();
    // A pool retries silently: a first connection reports the error.
    let mut first = PgConnection::connect_with(&options).await?;
    let version: i64 =
        sqlx::query_scalar("SELECT CAST(current_setting('server_version_num') AS BIGINT)")
            .fetch_one(&mut first)
            .await?;
    let encoding: String = sqlx::query_scalar("SELECT current_setting('server_encoding')")
        .fetch_one(&mut first)
        .await?;
    if encoding != "UTF8" {
        let text = format!("its encoding is {encoding}: ids and paths need UTF8");
        return Err(DataError::Unexpected(text));
    }
    if version < POSTGRES_VERSION_MIN {
        let text = format!("PostgreSQL {} is too old: 15 or newer is needed", version / 10_000);
        return Err(DataError::Unexpected(text));
    }
    // No longer needed; an error on closing does not matter.
    drop(first.close().await);
    let pool = PgPoolOptions::new()
        .max_connections(POSTGRES_CONNECTIONS_MAX)
        .acquire_timeout(timeout)
        .idle_timeout(IDLE_MAX)
        .connect_lazy_with(options.clone());
    Ok(Opened { pool: Pool::Postgres(pool), listening: Some(options) })
}
