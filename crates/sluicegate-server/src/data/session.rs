//! Transactions on either database, with time limits.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use sqlx::pool::PoolConnection;
use sqlx::{AssertSqlSafe, PgPool, Postgres, Sqlite, SqlitePool};

use super::{DataError, Recording};

/// Connections to one database or the other.
#[derive(Clone, Debug)]
pub(super) enum Pool {
    Sqlite(SqlitePool),
    Postgres(PgPool),
}

/// Purpose of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Aim {
    /// Consistent reads.
    Read,
    /// Writes of rows that do not affect decisions.
    Write,
    /// Changes of rules, overrides, tokens or callers: serialised over all processes.
    Change,
}

/// A transaction. Unless it is ended, its connection is closed with it: the database rolls back, and no caller waits
/// for that.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) connection: PooledConnection,
    is_ended: bool,
    /// True if it is rolled back even on success.
    is_dry_run: bool,
    /// Set when no caller waits any more: SQLite polls it while it runs.
    is_over: Arc<AtomicBool>,
    /// True if it carries the mark of the service in a table, which is removed before the commit.
    has_mark: bool,
    recording: Option<Arc<dyn Recording>>,
}

/// Steps of SQLite between two polls of `is_over`: some milliseconds of work.
const SQLITE_STEPS: i32 = 100_000;

#[derive(Debug)]
pub(super) enum PooledConnection {
    Sqlite(PoolConnection<Sqlite>),
    Postgres(PoolConnection<Postgres>),
}

/// Runs one body on the connection of a session, whichever database it is of; `$dialect`, if given, names the
/// database in it.
macro_rules! on {
    ($session:expr, $connection:ident => $body:expr) => {
        match &mut $session.connection {
            $crate::data::session::PooledConnection::Sqlite(connection) => {
                let $connection = &mut **connection;
                $body
            }
            $crate::data::session::PooledConnection::Postgres(connection) => {
                let $connection = &mut **connection;
                $body
            }
        }
    };
    ($session:expr, $connection:ident: $dialect:ident => $body:expr) => {
        match &mut $session.connection {
            $crate::data::session::PooledConnection::Sqlite(connection) => {
                type $dialect = sqlx::Sqlite;
                let $connection = &mut **connection;
                $body
            }
            $crate::data::session::PooledConnection::Postgres(connection) => {
                type $dialect = sqlx::Postgres;
                let $connection = &mut **connection;
                $body
            }
        }
    };
}
pub(super) use on;

impl Session {
    /// Begins a transaction. `limits` is the SQL that sets its time limits in PostgreSQL.
    pub(super) async fn begin(pool: &Pool, aim: Aim, limits: &str) -> Result<Self, DataError> {
        let connection = match pool {
            Pool::Sqlite(pool) => PooledConnection::Sqlite(pool.acquire().await?),
            Pool::Postgres(pool) => PooledConnection::Postgres(pool.acquire().await?),
        };
        let is_over = Arc::new(AtomicBool::new(false));
        let mut session = Self {
            connection,
            is_ended: false,
            is_dry_run: false,
            is_over: Arc::clone(&is_over),
            has_mark: false,
            recording: None,
        };
        match &mut session.connection {
            PooledConnection::Sqlite(connection) => {
                let goes_on = move || !is_over.load(Ordering::Relaxed);
                connection.lock_handle().await?.set_progress_handler(SQLITE_STEPS, goes_on);
                // A transaction that is upgraded from reading to writing fails instead of waiting for the lock.
                let begin = if aim == Aim::Read { "BEGIN" } else { "BEGIN IMMEDIATE" };
                sqlx::raw_sql(begin).execute(&mut **connection).await?;
            }
            PooledConnection::Postgres(connection) => {
                let begin = match aim {
                    Aim::Read => "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
                    Aim::Write | Aim::Change => "BEGIN",
                };
                let begin = AssertSqlSafe(format!("{begin}; {limits}"));
                sqlx::raw_sql(begin).execute(&mut **connection).await?;
            }
        }
        Ok(session)
    }

    /// Makes it a dry run: [`end`](Self::end) rolls it back, whatever the result.
    pub(super) fn into_dry_run(mut self) -> Self {
        self.is_dry_run = true;
        self
    }

    /// True in a dry run. Only effects that a rollback does not undo may depend on it.
    pub(super) fn is_dry_run(&self) -> bool {
        self.is_dry_run
    }

    /// Commits if all went well; rolls back if not, and after a dry run.
    pub(super) async fn end<T>(mut self, result: Result<T, DataError>) -> Result<T, DataError> {
        let end = match (result.is_ok() && !self.is_dry_run, self.has_mark) {
            (false, _) => "ROLLBACK",
            (true, false) => "COMMIT",
            (true, true) => "DELETE FROM rate_limit_acting; COMMIT",
        };
        let ended = on!(self, connection => sqlx::raw_sql(end).execute(connection).await.map(drop));
        self.is_ended = ended.is_ok();
        // The first error is the cause.
        let value = result?;
        ended?;
        Ok(value)
    }

    /// Marks the transaction as one of the service, whose changes triggers do not record as made by hand. Also takes
    /// the lock for changes of rules, overrides, tokens and callers, which in SQLite the transaction holds already.
    pub(super) async fn take_turn(&mut self) -> Result<(), DataError> {
        match &mut self.connection {
            PooledConnection::Sqlite(connection) => {
                let mark = "INSERT INTO rate_limit_acting (id) VALUES (1) ON CONFLICT DO NOTHING";
                sqlx::query(mark).execute(&mut **connection).await?;
                self.has_mark = true;
            }
            PooledConnection::Postgres(connection) => {
                let mark = "SELECT generation, set_config('sluicegate.author', 'service', TRUE) \
                            FROM rate_limit_generation FOR UPDATE";
                sqlx::query(mark).execute(&mut **connection).await?;
            }
        }
        Ok(())
    }

    /// Sets the privacy setting of the history.
    pub(super) fn set_recording(&mut self, recording: Option<Arc<dyn Recording>>) {
        self.recording = recording;
    }

    /// Privacy setting of the history; `None` if it is not known here.
    pub(super) fn recording(&self) -> Option<&Arc<dyn Recording>> {
        self.recording.as_ref()
    }

    /// True for PostgreSQL, where the dialects differ.
    pub(super) fn is_postgres(&self) -> bool {
        matches!(self.connection, PooledConnection::Postgres(_))
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if !self.is_ended {
            self.is_over.store(true, Ordering::Relaxed);
            match &mut self.connection {
                PooledConnection::Sqlite(connection) => connection.close_on_drop(),
                PooledConnection::Postgres(connection) => connection.close_on_drop(),
            }
        }
    }
}
