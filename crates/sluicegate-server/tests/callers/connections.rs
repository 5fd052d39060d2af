//! Callers of connections that stay open while callers change.

use std::time::Duration;

use serde_json::Value;
use sluicegate_server::data::Right;

use super::doors::{Credentials, Doors, check_grpc, post};
use super::support::{RULES, create, in_namespace, launch, metric, revoke, spec};
use crate::common::{Client, Launch, eventually, now};
use crate::envoy::rls::Rls;
use crate::resp::support::{Redis, Reply, frame, words};

/// Maximum time until a created or revoked caller takes effect.
const NOTICED_WITHIN: Duration = Duration::from_secs(2);

fn ok() -> Reply {
    Reply::Status("OK".into())
}

#[test]
fn a_revoked_caller_is_refused_on_open_connections() {
    let server = launch(RULES).start();
    let tokens = create(&server, &[spec("a", &Right::ALL), spec("b", &Right::ALL)]);
    let (doors, token) = (Doors::of(&server), &*tokens[0]);
    let mut http = Client::connect(doors.http).unwrap();
    let rls = Rls::connect(doors.grpc);
    let mut redis = Redis::connect(doors.resp).unwrap();
    let ask_grpc = || check_grpc(&rls, token);
    for _ in 0..3 {
        assert_eq!(post(&mut http, "/v1/check", Some(token), "{}").status, 200);
        assert_eq!(ask_grpc(), Ok(()));
    }
    assert_eq!(redis.ask(&format!("AUTH a {token}")), ok());
    assert!(matches!(redis.ask("SG.CHECK user_id 1"), Reply::Array(_)));
    revoke(&server, "a");
    let started = now();
    eventually("the revocation", || {
        (post(&mut http, "/v1/check", Some(token), "{}").status == 401).then_some(())
    });
    assert!(now() - started < NOTICED_WITHIN, "{:?}", now() - started);
    assert_eq!(ask_grpc(), Err(tonic::Code::Unauthenticated));
    assert!(redis.error("SG.CHECK user_id 1").starts_with("NOAUTH "));
    assert!(redis.error("PING").starts_with("NOAUTH "));
    // The connection may authenticate again.
    assert_eq!(redis.ask(&format!("AUTH b {}", tokens[1])), ok());
    assert!(matches!(redis.ask("SG.CHECK user_id 1"), Reply::Array(_)));
}

#[test]
fn the_first_caller_closes_the_doors_of_open_connections() {
    let server = launch(RULES).start();
    let doors = Doors::of(&server);
    let mut http = Client::connect(doors.http).unwrap();
    let mut redis = Redis::connect(doors.resp).unwrap();
    assert_eq!(post(&mut http, "/v1/check", None, "{}").status, 200);
    assert!(matches!(redis.ask("SG.CHECK user_id 1"), Reply::Array(_)));
    let token = &create(&server, &[spec("a", &Right::ALL)])[0];
    assert_eq!(post(&mut http, "/v1/check", None, "{}").status, 401);
    assert!(redis.error("SG.CHECK user_id 1").starts_with("NOAUTH "));
    assert_eq!(post(&mut http, "/v1/check", Some(token), "{}").status, 200);
    revoke(&server, "a");
    eventually("the revocation", || {
        (post(&mut http, "/v1/check", None, "{}").status == 200).then_some(())
    });
    assert!(matches!(redis.ask("SG.CHECK user_id 1"), Reply::Array(_)));
}

#[test]
fn a_connection_may_change_its_caller() {
    let server = launch(RULES).start();
    let tokens = create(&server, &[in_namespace("a", "team-a"), in_namespace("b", "team-b")]);
    let mut redis = Redis::connect(Doors::of(&server).resp).unwrap();
    // In one pipeline, each command belongs to the caller before it.
    let take = words("SG.TAKE k 10 1 1000000");
    let auth = |name: &str, token: &str| frame(&["AUTH", name, token]);
    let (a, b) = (auth("a", &tokens[0]), auth("b", &tokens[1]));
    redis.send(&[&a, &take, &take, &b, &take, &a, &take].map(Vec::as_slice).concat());
    let mut left = Vec::new();
    for _ in 0..7 {
        match redis.reply() {
            Reply::Array(values) => left.push(values[2].clone()),
            other => assert_eq!(other, ok()),
        }
    }
    assert_eq!(left, [9, 8, 9, 7].map(Reply::Integer));
    // A wrong token leaves the caller in place, as a wrong password leaves the user.
    assert!(redis.error("AUTH b sg_unknown").starts_with("WRONGPASS "));
    assert!(matches!(redis.ask("SG.CHECK user_id 1"), Reply::Array(_)));
    assert_eq!(redis.ask("RESET"), Reply::Status("RESET".into()));
    assert!(redis.error("SG.CHECK user_id 1").starts_with("NOAUTH "));
    assert!(redis.error("HELLO 3 AUTH a sg_unknown").starts_with("WRONGPASS "));
    assert!(redis.error("HELLO 3").starts_with("NOAUTH "));
    assert!(matches!(redis.ask(&format!("HELLO 3 AUTH b {}", tokens[1])), Reply::Map(_)));
    assert!(matches!(redis.ask("SG.CHECK user_id 1"), Reply::Map(_)));

    // Over HTTP each request may have another token.
    let mut http = Client::connect(server.address).unwrap();
    let body = r#"{"key": "h", "capacity": 10, "refill_rate": 0.001}"#;
    for left in [9, 8, 7] {
        for token in &tokens {
            let answer = post(&mut http, "/v1/take", Some(token), body);
            assert_eq!(answer.json()["remaining"], left, "{answer:?}");
        }
    }
    assert_eq!(post(&mut http, "/v1/take", Some("sg_unknown"), body).status, 401);
    assert_eq!(post(&mut http, "/v1/take", None, body).status, 401);
}

/// Failed sign-ins have the name of a caller only if there is one.
#[test]
fn a_wrong_token_is_recorded_with_the_name_of_its_caller() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", folder.path().join("t.db").display());
    let commands: [&[&str]; 2] = [&["migrate"], &["callers", "create", "a", "--may", "check"]];
    for command in commands {
        let done = Launch::new(command).env("SLUICEGATE_DATABASE_URL", &url).run();
        assert_eq!(done.code, Some(0), "{done:?}");
    }
    let server = launch(RULES).env("SLUICEGATE_DATABASE_URL", &url).start();
    let mut redis = Redis::connect(Doors::of(&server).resp).unwrap();
    for name in ["a", "made-up"] {
        assert!(redis.error(&format!("AUTH {name} sg_unknown")).starts_with("WRONGPASS "));
    }
    server.signal("TERM");
    server.wait();
    let list = ["history", "--database", &url, "--act", "sign_in.failed", "--json"];
    let list = Launch::new(&list).run();
    let list: Value = serde_json::from_str(&list.stdout).unwrap_or_else(|_| panic!("{list:?}"));
    let rows = list["history"].as_array().unwrap();
    let mut who: Vec<_> = rows.iter().map(|row| row["who"].as_str().unwrap()).collect();
    who.sort_unstable();
    assert_eq!(who, ["caller:a", "unknown"]);
    assert!(!list.to_string().contains("made-up"), "{list}");
}

#[test]
fn refusals_are_counted_by_door_and_reason() {
    let server = launch(RULES).start();
    let tokens = create(&server, &[spec("a", &[Right::Authorize])]);
    let doors = Doors::of(&server);
    doors.row(Credentials::default());
    doors.row(Credentials { token: Some("sg_unknown"), user: Some(("a", "sg_unknown")) });
    doors.row(Credentials { token: Some(&tokens[0]), user: Some(("a", &tokens[0])) });
    for (door, reason, count) in [
        ("http", "missing", 8),
        ("http", "wrong", 8),
        ("http", "right", 7),
        ("http", "too_many", 0),
        ("grpc", "missing", 3),
        ("grpc", "wrong", 3),
        ("grpc", "right", 3),
        ("resp", "missing", 10),
        ("resp", "wrong", 1),
        ("resp", "right", 4),
    ] {
        let start =
            format!("sluicegate_caller_refusals_total{{door=\"{door}\",reason=\"{reason}\"}} ");
        assert_eq!(metric(&server, &start), count, "{door} {reason}");
    }
    let lines = server.stderr();
    let rejected = lines.matches("rejected").count();
    assert!((3..=10).contains(&rejected), "one line of each cause and address: {lines}");
    assert!(!lines.contains("sg_unknown") && !lines.contains(&tokens[0]), "tokens are not logged");
}
