//! Two processes on one database: callers that are created, changed and revoked through one are in force in the other
//! within two seconds, on connections that stay open.

use serde_json::{Value, json};

use super::doors::{Doors, check_grpc, post};
use super::support::{RULES, launch};
use crate::common::{Client, Response, Server, now};
use crate::envoy::rls::Rls;
use crate::resp::support::{Redis, Reply};
use crate::trouble::place::Place;
use crate::trouble::support::soon;

fn start(place: &Place) -> Server {
    launch(RULES).env("SLUICEGATE_DATABASE_URL", &place.url()).start()
}

fn administer(server: &Server, method: &str, path: &str, body: &Value) -> Response {
    let answer = server.request(method, path, &[], &body.to_string());
    assert!(answer.status < 300, "{answer:?}");
    answer
}

/// Creates a caller and returns its token.
fn create(server: &Server, name: &str) -> String {
    let body = json!({"name": name, "rights": ["check", "take"]});
    let made = administer(server, "POST", "/v1/callers", &body);
    made.json()["token"].as_str().unwrap().to_owned()
}

fn another_process_follows(place: &Place) {
    let (one, other) = (start(place), start(place));
    let doors = Doors::of(&other);
    let mut http = Client::connect(doors.http).unwrap();
    let (rls, mut redis) = (Rls::connect(doors.grpc), Redis::connect(doors.resp).unwrap());
    let mut status = |path: &str, token: Option<&str>| {
        let body = if path == "/v1/check" {
            "{}"
        } else {
            r#"{"key": "k", "capacity": 9, "refill_rate": 1}"#
        };
        post(&mut http, path, token, body).status
    };
    assert_eq!(status("/v1/check", None), 200, "no caller exists");
    assert!(matches!(redis.ask("SG.CHECK user_id 1"), Reply::Array(_)));

    let first = create(&one, "first");
    let created = now();
    soon("the first caller", created, || status("/v1/check", None) == 401);
    assert_eq!(status("/v1/check", Some(&first)), 200);
    assert!(redis.error("SG.CHECK user_id 1").starts_with("NOAUTH "));

    let token = create(&one, "second");
    let created = now();
    soon("another caller", created, || status("/v1/check", Some(&token)) == 200);
    assert_eq!(check_grpc(&rls, &token), Ok(()));
    assert_eq!(redis.ask(&format!("AUTH second {token}")), Reply::Status("OK".into()));
    assert!(matches!(redis.ask("SG.TAKE k 9 1 1000"), Reply::Array(_)));
    assert_eq!(status("/v1/take", Some(&token)), 200);

    administer(&one, "PATCH", "/v1/callers/second", &json!({"rights": ["check"]}));
    let changed = now();
    soon("the lost right", changed, || status("/v1/take", Some(&token)) == 403);
    assert!(redis.error("SG.TAKE k 9 1 1000").starts_with("NOPERM "));
    assert_eq!(check_grpc(&rls, &token), Ok(()));

    administer(&one, "DELETE", "/v1/callers/second", &Value::Null);
    let revoked = now();
    soon("the revocation", revoked, || status("/v1/check", Some(&token)) == 401);
    assert_eq!(check_grpc(&rls, &token), Err(tonic::Code::Unauthenticated));
    assert!(redis.error("SG.CHECK user_id 1").starts_with("NOAUTH "));
    // In the process that was asked, it was in force with the answer.
    let mut here = Client::connect(one.address).unwrap();
    assert_eq!(post(&mut here, "/v1/check", Some(&token), "{}").status, 401);
    assert_eq!(post(&mut here, "/v1/check", Some(&first), "{}").status, 200);
}

#[test]
fn another_process_follows_on_sqlite() {
    another_process_follows(&Place::sqlite());
}

#[test]
fn another_process_follows_on_postgresql() {
    another_process_follows(&Place::postgres());
}

/// Callers are applied beside rules that cannot be used.
#[test]
fn a_revocation_counts_while_the_rules_are_invalid() {
    let place = Place::sqlite();
    let server = place.launch(&[]).start();
    let tokens = [create(&server, "one"), create(&server, "other")];
    place.sql("PRAGMA ignore_check_constraints = ON; UPDATE rate_limit_rules SET tokens = 0");
    place.sql("DELETE FROM rate_limit_callers WHERE name = 'one'");
    let mut http = Client::connect(server.address).unwrap();
    let revoked = now();
    soon("the revocation", revoked, || {
        post(&mut http, "/v1/check", Some(&tokens[0]), "{}").status == 401
    });
    assert_eq!(post(&mut http, "/v1/check", Some(&tokens[1]), "{}").status, 200);
}

/// A right that this version does not know, written by hand: that caller may do nothing, and the others are not affected.
#[test]
fn a_caller_with_an_unknown_right_affects_no_other() {
    let place = Place::sqlite();
    let server = place.launch(&[]).start();
    let tokens = [create(&server, "one"), create(&server, "other")];
    place.sql(
        "INSERT INTO rate_limit_callers (name, rights, hash) VALUES ('hand', 'chek', randomblob(32)); \
         DELETE FROM rate_limit_callers WHERE name = 'one'",
    );
    let mut http = Client::connect(server.address).unwrap();
    let revoked = now();
    soon("the revocation", revoked, || {
        post(&mut http, "/v1/check", Some(&tokens[0]), "{}").status == 401
    });
    assert_eq!(post(&mut http, "/v1/check", Some(&tokens[1]), "{}").status, 200);
    let listed = administer(&server, "GET", "/v1/callers", &json!({}));
    assert_eq!(listed.json()["callers"][1]["rights"], json!([]), "{}", listed.body);
    assert_eq!(administer(&server, "DELETE", "/v1/callers/hand", &json!({})).status, 204);
}
