//! A database that is locked, full or missing: decisions continue, memory is bounded, drops are counted, and writing
//! resumes automatically.

use rustix::process::{Pid, Resource, Rlimit, prlimit};
use serde_json::json;
use sluicegate_tests::postgres::Postgres;
use sqlx::{Connection, SqliteConnection};

use super::support::{Denials, all, figure, launch, recorded, sum};
use crate::common::{Server, eventually};

/// Maximum number of pending rows in these tests.
const QUEUE_MAX: u64 = 64;

fn audit_figures(server: &Server) -> [u64; 4] {
    let audit = server.get("/v1/stats").json()["audit"].clone();
    ["noted", "written", "dropped", "waiting"].map(|name| audit[name].as_u64().unwrap())
}

/// Causes denials of more subjects than the queue holds, each twice.
fn storm(server: &Server, name: &str) -> u64 {
    let mut denials = Denials::of(server);
    let subjects = QUEUE_MAX + 36;
    for subject in 0..subjects {
        denials.by_user(&format!("{name}{subject}"), 2);
    }
    2 * subjects
}

/// Waits until writing resumes, and asserts that every violation is on record or counted as dropped.
fn resumes(server: &Server, noted: u64) {
    let dropped = eventually("what waits to be written", || {
        let [now_noted, written, dropped, waiting] = audit_figures(server);
        assert_eq!((now_noted, written + dropped + waiting), (noted, noted));
        (waiting == 0).then_some(dropped)
    });
    assert_eq!(sum(&all(server)) + dropped, noted);
    // New violations are written again.
    Denials::of(server).by_user("later", 3);
    recorded(server, "user_id=later", 3);
}

#[test]
fn a_locked_database_is_waited_for() {
    let server = launch()
        .env("SLUICEGATE_AUDIT_QUEUE_MAX", &QUEUE_MAX.to_string())
        .env("SLUICEGATE_AUDIT_ROWS_PER_SECOND", "1000")
        .env("SLUICEGATE_DATABASE_TIMEOUT_MS", "200")
        .start();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let file = format!("sqlite:{}", server.folder().join("sluicegate.db").display());
    let mut other = runtime.block_on(async {
        let mut other = SqliteConnection::connect(&file).await.unwrap();
        sqlx::query("BEGIN IMMEDIATE").execute(&mut other).await.unwrap();
        other
    });
    let noted = storm(&server, "locked");
    server.wait_for_log("cannot write violations");
    let [_, written, dropped, waiting] = audit_figures(&server);
    assert_eq!((written, dropped + waiting), (0, noted));
    assert!(dropped > 0 && waiting >= QUEUE_MAX, "{dropped} dropped, {waiting} wait");
    let metrics = server.get("/metrics").body;
    assert_eq!(figure(&metrics, "sluicegate_violations_waiting_rows"), QUEUE_MAX);
    assert_eq!(figure(&metrics, r#"sluicegate_violations_dropped_total{reason="full"}"#), dropped);
    runtime.block_on(async {
        sqlx::query("ROLLBACK").execute(&mut other).await.unwrap();
        other.close().await.unwrap();
    });
    resumes(&server, noted);
    server.wait_for_log("violations are written again");
}

#[test]
fn a_full_disk_is_waited_for() {
    let server = launch()
        .env("SLUICEGATE_AUDIT_QUEUE_MAX", &QUEUE_MAX.to_string())
        .env("SLUICEGATE_AUDIT_ROWS_PER_SECOND", "1000")
        // Ignores the signal, so that a write beyond the limit fails with an error instead of killing the process.
        .after_shell("trap '' XFSZ")
        .start();
    let pid = Pid::from_raw(server.pid() as i32);
    let limit =
        |bytes| prlimit(pid, Resource::Fsize, Rlimit { current: bytes, maximum: None }).unwrap();
    // The files of the database exist already and cannot grow any further.
    limit(Some(4096));
    let noted = storm(&server, "full");
    server.wait_for_log("cannot write violations");
    // Decisions continue; requests that need the database fail.
    let [_, _, dropped, waiting] = audit_figures(&server);
    assert!(dropped > 0 && waiting > 0, "{dropped} dropped, {waiting} wait");
    let answer = server.post_json("/v1/check", &json!({"user_id": "1"}).to_string());
    assert_eq!(answer.status, 200);
    limit(None);
    resumes(&server, noted);
}

#[test]
fn a_killed_postgres_is_waited_for() {
    let postgres = Postgres::start();
    let server = launch()
        .env("SLUICEGATE_DATABASE_URL", &postgres.url("postgres"))
        .env("SLUICEGATE_DATABASE_TIMEOUT_MS", "500")
        .env("SLUICEGATE_AUDIT_QUEUE_MAX", &QUEUE_MAX.to_string())
        .env("SLUICEGATE_AUDIT_ROWS_PER_SECOND", "1000")
        .start();
    // A row that cannot be stored must not prevent others from being stored.
    Denials::of(&server).by_user("a\0b", 2);
    recorded(&server, "user_id=a%00b", 2);
    postgres.kill();
    let noted = 2 + storm(&server, "gone");
    server.wait_for_log("cannot write violations");
    assert_eq!(server.get("/v1/violations").status, 503);
    assert_eq!(server.request("DELETE", "/v1/violations?user_id=x", &[], "").status, 503);
    let [_, written, dropped, waiting] = audit_figures(&server);
    assert_eq!((written, dropped + waiting), (2, noted - 2));
    postgres.restart();
    resumes(&server, noted);
}
