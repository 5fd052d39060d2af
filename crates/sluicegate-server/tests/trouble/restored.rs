//! T33 with a snapshot file: a restored backup is treated as another database, a missing file is not created, and an
//! empty list of tokens does not open the administration.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use sluicegate_server::data::Role;
use tempfile::TempDir;

use crate::common::{Server, eventually, now};
use crate::trouble::place::Place;
use crate::trouble::support::{ask, limit_of_ip, metric, soon};

fn start(place: &Place, snapshot: &Path) -> Server {
    // The tests repeat wrong tokens: no lockout.
    let often = ["--admin-failures-per-minute", "100000"];
    place.launch(&often).args(&["--database-snapshot", snapshot.to_str().unwrap()]).start()
}

fn file_of(place: &Place) -> String {
    place.url().strip_prefix("sqlite:").unwrap().to_owned()
}

/// Status of a request to the administration.
fn status(server: &Server, token: Option<&str>) -> u16 {
    ask(server, "GET", "/v1/rules", token, &Value::Null).status
}

fn wait_for_snapshot(snapshot: &Path, text: &str) {
    eventually("a snapshot file", || {
        fs::read_to_string(snapshot).ok().filter(|file| file.contains(text)).map(drop)
    });
}

/// As many changes after the backup as before must lead to another generation: otherwise the state of the snapshot file
/// would be taken for that of the database forever.
#[test]
fn t33_a_database_from_a_backup_is_another() {
    let place = Place::sqlite();
    let folder = TempDir::new().unwrap();
    let snapshot = folder.path().join("snapshot.json");
    let (file, backup) = (file_of(&place), folder.path().join("backup.db"));
    place.sql(&format!("VACUUM INTO '{}'", backup.display()));

    let lost = place.make_token("lost", Role::Admin);
    place.set_by_ip(7);
    let server = start(&place, &snapshot);
    wait_for_snapshot(&snapshot, "lost");
    drop(server);
    for suffix in ["", "-wal", "-shm"] {
        // The last two may not exist.
        let _ = fs::remove_file(format!("{file}{suffix}"));
    }

    // The file is missing: it is not created, and the state of the snapshot stays in force.
    let server = start(&place, &snapshot);
    server.wait_for_log("starting from the snapshot file");
    assert_eq!((limit_of_ip(&server), status(&server, Some(&lost))), (Some(7), 503));
    assert_eq!(metric(&server, "database_up"), 0.0);
    assert!(!Path::new(&file).exists());

    fs::copy(&backup, &file).unwrap();
    let found = place.make_token("found", Role::Admin);
    place.set_by_ip(9);
    soon("the restored database", now(), || limit_of_ip(&server) == Some(9));
    assert_eq!((status(&server, Some(&lost)), status(&server, Some(&found))), (401, 200));
}

/// Tokens can be created while the service is down: until the database answers, an empty list in the snapshot does not
/// open the administration.
#[test]
fn t33_no_tokens_in_a_snapshot_are_none_that_are_known() {
    let (postgres, place) = Place::own_postgres();
    let folder = TempDir::new().unwrap();
    let snapshot = folder.path().join("snapshot.json");
    let server = start(&place, &snapshot);
    assert_eq!(status(&server, None), 200);
    wait_for_snapshot(&snapshot, "\"tokens\":[]");
    drop(server);
    let token = place.make_token("ops", Role::Admin);
    postgres.kill();
    let server = start(&place, &snapshot);
    let reset = |token| ask(&server, "POST", "/v1/buckets/1/42/reset", token, &json!({})).status;
    assert_eq!((reset(None), status(&server, None)), (503, 503));
    postgres.restart();
    soon("the token", now(), || status(&server, Some(&token)) == 200);
    assert_eq!((status(&server, None), reset(None)), (401, 401));
}
