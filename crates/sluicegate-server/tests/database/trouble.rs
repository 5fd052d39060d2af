//! Databases that are locked, killed, unresponsive, missing or foreign.

use std::sync::Arc;
use std::time::Duration;

use sluicegate_server::config::DatabaseUrl;
use sluicegate_server::data::{DataError, Database};
use sluicegate_tests::postgres::Postgres;
use sluicegate_tests::servers::free_port;
use tempfile::TempDir;
use tokio::time::Instant;

use crate::database::common::{Place, TIMEOUT, by, spec};

/// Short timeout, and the maximum time of a call with it on a busy machine.
const SHORT: Duration = Duration::from_millis(400);
const SHORT_AND_SOME: Duration = Duration::from_millis(2500);

fn url(text: &str) -> DatabaseUrl {
    DatabaseUrl::parse(text).unwrap().unwrap()
}

/// Asserts that the call fails in time because the database is unavailable.
async fn unavailable<T>(call: impl Future<Output = Result<T, DataError>>) -> String {
    let started = Instant::now();
    match call.await {
        Err(DataError::Unavailable(what)) => {
            assert!(started.elapsed() < SHORT_AND_SOME, "{:?}", started.elapsed());
            what
        }
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("it worked"),
    }
}

/// Repeats a call until it succeeds without reconnecting explicitly.
async fn recovers(database: &Database) {
    let started = Instant::now();
    while let Err(error) = database.create_rule(&spec("after:{ip}"), &by("me")).await {
        assert!(started.elapsed() < Duration::from_secs(20), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_locked_file_is_no_reason_to_hang() {
    let place = Place::sqlite();
    place.migrated().await;
    let database = Database::open(&place.url(), SHORT).await.unwrap();
    let Place::Sqlite(folder) = &place else { panic!("a file") };
    let options = sqlx::sqlite::SqliteConnectOptions::new().filename(folder.path().join("t.db"));
    let mut other = sqlx::ConnectOptions::connect(&options).await.unwrap();
    sqlx::raw_sql("BEGIN IMMEDIATE").execute(&mut other).await.unwrap();
    unavailable(database.create_rule(&spec("new:{ip}"), &by("me"))).await;
    // Reads continue and see only committed rows.
    assert_eq!(database.load().await.unwrap().rules.len(), 9);
    sqlx::raw_sql("ROLLBACK").execute(&mut other).await.unwrap();
    recovers(&database).await;
    assert_eq!(database.load().await.unwrap().rules.len(), 10);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invalid_database_is_rejected() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("text.db");
    std::fs::write(&path, "this is a text and no database. ".repeat(100)).unwrap();
    let error = Database::open(&url(&format!("sqlite:{}", path.display())), SHORT).await;
    assert!(matches!(error, Err(DataError::Unexpected(_))), "{error:?}");
    let missing = folder.path().join("missing/t.db");
    unavailable(Database::open(&url(&format!("sqlite:{}", missing.display())), SHORT)).await;
    let nobody = url(&format!("postgres://u:canary@127.0.0.1:{}/d", free_port()));
    let said = unavailable(Database::open(&nobody, SHORT)).await;
    assert!(!said.contains("canary"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn passwords_are_required_and_not_shown() {
    let server = Arc::new(Postgres::start_with_password("canary"));
    let place = Place::on(Arc::clone(&server));
    place.migrated().await;
    let wrong = format!("postgres://sluicegate:wrong-canary@127.0.0.1:{}/postgres", server.port());
    let said = unavailable(Database::open(&url(&wrong), TIMEOUT)).await;
    assert!(!said.contains("canary"), "{said}");
    let missing = server.url("missing");
    let said = unavailable(Database::open(&url(&missing), TIMEOUT)).await;
    assert!(said.contains("missing") && !said.contains("canary"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn postgres_may_die_and_come_back() {
    let server = Arc::new(Postgres::start());
    let place = Place::on(Arc::clone(&server));
    place.migrated().await;
    let database = Database::open(&place.url(), SHORT).await.unwrap();
    let mut changes = database.changes().await.unwrap();
    assert_eq!(database.load().await.unwrap().rules.len(), 9);
    let watcher = tokio::spawn({
        let database = database.clone();
        async move {
            // Returns after changes, and from time to time while the connection is lost.
            while !database.load().await.is_ok_and(|loaded| loaded.rules.len() == 10) {
                changes.next().await;
            }
        }
    });
    server.kill();
    unavailable(database.load()).await;
    unavailable(database.create_rule(&spec("new:{ip}"), &by("me"))).await;
    unavailable(Database::open(&place.url(), SHORT)).await;
    server.restart();
    recovers(&database).await;
    let heard = tokio::time::timeout(Duration::from_secs(20), watcher).await;
    heard.expect("the watcher hears of it").unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_silent_postgres_is_no_reason_to_hang() {
    let server = Arc::new(Postgres::start());
    let place = Place::on(Arc::clone(&server));
    place.migrated().await;
    let database = Database::open(&place.url(), SHORT).await.unwrap();
    database.load().await.unwrap();
    server.pause();
    for _ in 0..12 {
        unavailable(database.load()).await;
    }
    unavailable(Database::open(&place.url(), SHORT)).await;
    server.resume();
    recovers(&database).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lock_in_postgres_is_no_reason_to_hang() {
    let place = Place::postgres();
    place.migrated().await;
    let database = Database::open(&place.url(), SHORT).await.unwrap();
    let Place::Postgres { server, name } = &place else { panic!("a server") };
    let options: sqlx::postgres::PgConnectOptions = server.url(name).parse().unwrap();
    let mut other = sqlx::ConnectOptions::connect(&options).await.unwrap();
    let lock = "BEGIN; LOCK TABLE rate_limit_generation IN ACCESS EXCLUSIVE MODE";
    sqlx::raw_sql(lock).execute(&mut other).await.unwrap();
    for _ in 0..10 {
        unavailable(database.create_rule(&spec("new:{ip}"), &by("me"))).await;
        unavailable(database.load()).await;
    }
    sqlx::raw_sql("ROLLBACK").execute(&mut other).await.unwrap();
    recovers(&database).await;
}
