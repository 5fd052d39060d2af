//! Callers while the database is down: those of the snapshot are in force and expire on time, and none can be changed.

use std::fs;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use super::doors::{Doors, check_grpc, post};
use super::support::{RULES, launch};
use crate::common::{Client, Launch, Response, Server, eventually, now};
use crate::envoy::rls::Rls;
use crate::resp::support::{Redis, Reply};
use crate::trouble::place::Place;
use crate::trouble::support::{soon, within};

const ADMIN: &str = "correct-horse-battery-staple";

/// Validity of the caller that expires while the database is down.
const EXPIRES_IN: Duration = Duration::from_secs(4);

fn prepared(place: &Place, snapshot: &Path) -> Launch {
    launch(RULES)
        .args(&["--database-timeout-ms", "1000"])
        .args(&["--database-snapshot", snapshot.to_str().unwrap()])
        .env("SLUICEGATE_ADMIN_TOKEN", ADMIN)
        .env("SLUICEGATE_DATABASE_URL", &place.url())
}

fn administer(server: &Server, method: &str, path: &str, body: &Value) -> Response {
    let bearer = format!("Bearer {ADMIN}");
    server.request(method, path, &[("authorization", &bearer)], &body.to_string())
}

fn create(server: &Server, body: &Value) -> String {
    let made = administer(server, "POST", "/v1/callers", body);
    assert_eq!(made.status, 201, "{made:?}");
    made.json()["token"].as_str().unwrap().to_owned()
}

/// Runs a service through an outage: `down` makes the database unreachable, `up` returns it.
fn through_an_outage(place: &Place, down: impl FnOnce(), up: impl FnOnce()) {
    let folder = tempfile::tempdir().unwrap();
    let snapshot = folder.path().join("snapshot.json");
    let before = prepared(place, &snapshot).start();
    let stays =
        create(&before, &json!({"name": "stays", "rights": ["check", "take"], "namespace": "a"}));
    let made_at = now();
    let ends = json!({"name": "ends", "rights": ["check"], "expires_in": EXPIRES_IN.as_secs()});
    let ends = create(&before, &ends);
    eventually("the snapshot file", || {
        fs::read_to_string(&snapshot).is_ok_and(|text| text.contains("\"ends\"")).then_some(())
    });
    drop(before);
    down();

    let server = prepared(place, &snapshot).start();
    server.wait_for_log("starting from the snapshot file");
    let doors = Doors::of(&server);
    let mut http = Client::connect(doors.http).unwrap();
    let (rls, mut redis) = (Rls::connect(doors.grpc), Redis::connect(doors.resp).unwrap());
    let mut status = |token: Option<&str>| post(&mut http, "/v1/check", token, "{}").status;
    assert_eq!((status(Some(&stays)), status(None), status(Some("sg_unknown"))), (200, 401, 401));
    assert_eq!(check_grpc(&rls, &stays), Ok(()));
    assert_eq!(redis.ask(&format!("AUTH stays {stays}")), Reply::Status("OK".into()));
    let was_in_force = status(Some(&ends)) == 200 || now() - made_at > EXPIRES_IN;
    assert!(was_in_force, "a caller of the snapshot was lost");

    let changes = [
        ("GET", "/v1/callers", Value::Null),
        ("POST", "/v1/callers", json!({"name": "new", "rights": ["check"]})),
        ("PATCH", "/v1/callers/stays", json!({"rights": ["take"]})),
        ("DELETE", "/v1/callers/stays", Value::Null),
    ];
    for (method, path, body) in &changes {
        let refused = administer(&server, method, path, body);
        let detail = &refused.json()["detail"];
        assert_eq!(
            (refused.status, refused.header("retry-after")),
            (503, Some("1")),
            "{refused:?}"
        );
        assert_eq!(detail, "the database does not answer: try again", "{method} {path}");
    }
    assert_eq!(status(Some(&stays)), 200, "it could not be revoked");
    within("the end of a caller", EXPIRES_IN + Duration::from_secs(2), made_at, || {
        (status(Some(&ends)) == 401).then_some(())
    });
    assert_eq!(check_grpc(&rls, &ends), Err(tonic::Code::Unauthenticated));
    assert_eq!(check_grpc(&rls, &stays), Ok(()));

    up();
    eventually("the database", || {
        (administer(&server, "DELETE", "/v1/callers/stays", &Value::Null).status == 204)
            .then_some(())
    });
    let revoked = now();
    soon("the revocation", revoked, || status(Some(&stays)) == 401);
    assert!(redis.error("SG.CHECK user_id 1").starts_with("NOAUTH "));
    // One that has expired still exists: the doors stay closed until it is revoked.
    assert_eq!(status(None), 401);
    assert_eq!(administer(&server, "DELETE", "/v1/callers/ends", &Value::Null).status, 204);
    soon("the last revocation", now(), || status(None) == 200);
}

#[test]
fn callers_of_the_snapshot_are_in_force_without_postgresql() {
    let (postgres, place) = Place::own_postgres();
    through_an_outage(&place, || postgres.kill(), || postgres.restart());
}

#[test]
fn callers_of_the_snapshot_are_in_force_without_the_file_of_sqlite() {
    let place = Place::sqlite();
    let Place::Sqlite(folder) = &place else { unreachable!() };
    let (file, away) = (folder.path().join("t.db"), folder.path().join("away.db"));
    through_an_outage(
        &place,
        || fs::rename(&file, &away).unwrap(),
        || fs::rename(&away, &file).unwrap(),
    );
}

/// Rules from a file need no database. Who may ask is not known without it, and the log says so.
#[test]
fn a_start_without_callers_is_logged() {
    let server = launch(RULES)
        .args(&["--database-timeout-ms", "1000", "--database-snapshot", ""])
        .env("SLUICEGATE_DATABASE_URL", "postgres://127.0.0.1:1/none")
        .start();
    let line = server.wait_for_line(|line| line.contains("starting without the database"));
    assert!(line.contains("callers are not in force"), "{line}");
    let mut http = Client::connect(server.address).unwrap();
    assert_eq!(post(&mut http, "/v1/check", None, "{}").status, 200);
}

/// With rules from a file and nothing that could be loaded completely, callers are in force and expire all the same.
#[test]
fn a_caller_expires_although_the_rules_of_the_database_are_invalid() {
    let (place, folder) = (Place::sqlite(), tempfile::tempdir().unwrap());
    let before = prepared(&place, &folder.path().join("snapshot.json")).start();
    let ends = create(&before, &json!({"name": "ends", "rights": ["check"], "expires_in": 3600}));
    drop(before);
    place.sql("PRAGMA ignore_check_constraints = ON; UPDATE rate_limit_rules SET tokens = 0");
    let server = prepared(&place, &folder.path().join("none.json")).start();
    let mut http = Client::connect(server.address).unwrap();
    let mut status = || post(&mut http, "/v1/check", Some(&ends), "{}").status;
    eventually("the caller", || (status() == 200).then_some(()));
    place.sql(
        "UPDATE rate_limit_callers \
         SET expires_at = (CAST(strftime('%s', 'now') AS INTEGER) + 3) * 1000000",
    );
    eventually("the expiry", || (status() == 401).then_some(()));
}
