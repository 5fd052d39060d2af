//! Migrations of the schema, up and down.
//!
//! All pending migrations are applied in one transaction, by one process at a time: the database never has a schema
//! between two versions. Migrations of a newer version are left alone, so that an older one keeps serving.

use std::collections::BTreeSet;
use std::time::Duration;

use super::session::{Session, on};
use super::values::Time;
use super::{DataError, Migration};
use crate::time::Timestamp;

/// Maximum time of a migration, independent of the timeout of other calls.
pub(super) const MIGRATE_LIMIT: Duration = Duration::from_secs(300);

/// Key of PostgreSQL's advisory lock for migrations: `sluice` in ASCII.
const LOCK: i64 = 0x736c_7569_6365;

struct Step {
    version: i64,
    description: &'static str,
    sqlite: Scripts,
    postgres: Scripts,
}

struct Scripts {
    up: &'static str,
    down: &'static str,
}

/// Every step, by version: made from the files in `migrations/` by the build script.
const STEPS: &[Step] = include!(concat!(env!("OUT_DIR"), "/migrations.rs"));

impl Step {
    fn scripts(&self, session: &Session) -> &Scripts {
        if session.is_postgres() { &self.postgres } else { &self.sqlite }
    }

    fn migration(&self, is_applied: bool) -> Migration {
        let description = self.description.into();
        Migration { version: self.version, description, is_applied }
    }
}

/// All migrations that this version knows.
pub(super) async fn list(session: &mut Session) -> Result<Vec<Migration>, DataError> {
    let taken = if is_begun(session).await? { taken(session).await? } else { BTreeSet::new() };
    Ok(STEPS.iter().map(|step| step.migration(taken.contains(&step.version))).collect())
}

/// Applies pending migrations.
pub(super) async fn up(session: &mut Session) -> Result<Vec<Migration>, DataError> {
    begin(session).await?;
    let taken = taken(session).await?;
    let mut done = Vec::new();
    for step in STEPS.iter().filter(|step| !taken.contains(&step.version)) {
        run(session, step.scripts(session).up).await?;
        let insert = "INSERT INTO rate_limit_migrations (version, description, applied_at) \
                      VALUES ($1, $2, $3)";
        on!(session, connection => sqlx::query(insert)
            .bind(step.version)
            .bind(step.description)
            .bind(Time::from(Timestamp::now()))
            .execute(connection)
            .await
            .map(drop))?;
        done.push(step.migration(true));
    }
    Ok(done)
}

/// Reverts migrations above `version`.
pub(super) async fn down(session: &mut Session, version: i64) -> Result<Vec<Migration>, DataError> {
    begin(session).await?;
    let taken = taken(session).await?;
    let mut done = Vec::new();
    for newest in taken.range(version.saturating_add(1)..).rev() {
        let Some(step) = STEPS.iter().find(|step| step.version == *newest) else {
            return Err(DataError::Unexpected(format!(
                "migration {newest} was made by a newer version, and only that can take it back"
            )));
        };
        run(session, step.scripts(session).down).await?;
        let delete = "DELETE FROM rate_limit_migrations WHERE version = $1";
        on!(session, connection => {
            sqlx::query(delete).bind(step.version).execute(connection).await.map(drop)
        })?;
        done.push(step.migration(false));
    }
    Ok(done)
}

/// Takes the lock for migrations and creates their table if it is missing. In SQLite the transaction holds the lock
/// already.
async fn begin(session: &mut Session) -> Result<(), DataError> {
    if session.is_postgres() {
        let lock = "SELECT pg_advisory_xact_lock($1)";
        on!(session, connection => sqlx::query(lock).bind(LOCK).execute(connection).await.map(drop))?;
    }
    if is_begun(session).await? {
        return Ok(());
    }
    let create = if session.is_postgres() {
        "CREATE TABLE rate_limit_migrations (
            version     BIGINT PRIMARY KEY,
            description TEXT NOT NULL,
            applied_at  TIMESTAMPTZ NOT NULL
        )"
    } else {
        "CREATE TABLE rate_limit_migrations (
            version     INTEGER PRIMARY KEY,
            description TEXT NOT NULL,
            applied_at  INTEGER NOT NULL
        ) STRICT"
    };
    run(session, create).await
}

/// True if the table of migrations exists.
async fn is_begun(session: &mut Session) -> Result<bool, DataError> {
    let is_there = if session.is_postgres() {
        "SELECT to_regclass('rate_limit_migrations') IS NOT NULL"
    } else {
        "SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE name = 'rate_limit_migrations')"
    };
    Ok(on!(session, connection => sqlx::query_scalar(is_there).fetch_one(connection).await)?)
}

async fn taken(session: &mut Session) -> Result<BTreeSet<i64>, DataError> {
    let select = "SELECT version FROM rate_limit_migrations";
    let versions: Vec<i64> =
        on!(session, connection => sqlx::query_scalar(select).fetch_all(connection).await)?;
    Ok(versions.into_iter().collect())
}

async fn run(session: &mut Session, script: &'static str) -> Result<(), DataError> {
    on!(session, connection => sqlx::raw_sql(script).execute(connection).await.map(drop))?;
    Ok(())
}
