//! T33 at startup: PostgreSQL is down. With a snapshot file the service has its rules, tokens and overrides, and
//! catches up by itself; without one it does not start.

use std::fs;
use std::time::Duration;

use serde_json::{Value, json};
use sluicegate_server::data::Role;
use sluicegate_tests::seed::Seed;
use sluicegate_tests::servers::free_port;
use tempfile::TempDir;

use crate::common::{Launch, Server, eventually, now};
use crate::trouble::load::{ENEMY, Load};
use crate::trouble::outage::TIMEOUT_MS;
use crate::trouble::place::{BY_IP, BY_USER, Place};
use crate::trouble::support::{
    ask, check, is_blocked, limit_of_ip, metric, ms, report, soon, within,
};

/// Validity of the override that expires while the database is down.
const EXPIRES_IN: Duration = Duration::from_secs(6);

fn launch(place: &Place, snapshot: &str) -> Launch {
    let timeout = TIMEOUT_MS.to_string();
    place.launch(&["--database-timeout-ms", &timeout, "--database-snapshot", snapshot])
}

#[test]
fn t33_down_at_start_with_a_snapshot() {
    let seed = Seed::announce("T33 down at start");
    let (postgres, place) = Place::own_postgres();
    let folder = TempDir::new().unwrap();
    let snapshot = folder.path().join("snapshot.json");
    let snapshot = snapshot.to_str().unwrap();
    let token = place.make_token("ops", Role::Admin);
    let before = launch(&place, snapshot).start();
    eventually("the token", || {
        (ask(&before, "GET", "/v1/overrides", Some(&token), &Value::Null).status == 200)
            .then_some(())
    });
    let post = |body: &Value| {
        let made = ask(&before, "POST", "/v1/overrides", Some(&token), body);
        assert_eq!(made.status, 201, "{made:?}");
    };
    post(&json!({"rule_id": BY_USER, "subject": ENEMY, "blocked": true}));
    let expires_in = EXPIRES_IN.as_secs();
    let made_at = now();
    post(
        &json!({"rule_id": BY_USER, "subject": "rich", "unlimited": true, "expires_in": expires_in}),
    );
    // The snapshot is written with a delay.
    eventually("the snapshot file", || {
        fs::read_to_string(snapshot).is_ok_and(|text| text.contains("rich")).then_some(())
    });
    drop(before);
    place.set_by_ip(7);
    postgres.kill();

    let server = launch(&place, snapshot).start();
    server.wait_for_log("starting from the snapshot file");
    let load = Load::start(&server, true);
    let at_the_old = || {
        assert_eq!((is_blocked(&server, ENEMY), limit_of_ip(&server)), (true, Some(2)));
    };
    at_the_old();
    let is_rich = || check(&server, &json!({"user_id": "rich", "cost": 0}))["tiers"] == json!([]);
    let was_rich = is_rich() || now() - made_at > EXPIRES_IN;
    assert!(was_rich, "the override of a snapshot file was lost");
    says_so(&server, &token);
    // The override expires on time without the database.
    let late =
        within("the end of an override", EXPIRES_IN + Duration::from_secs(2), made_at, || {
            (!is_rich()).then_some(())
        });
    at_the_old();

    postgres.restart();
    let up = now();
    let caught_up = soon("what was changed", up, || limit_of_ip(&server) == Some(7));
    eventually("the database", || (metric(&server, "database_up") == 1.0).then_some(()));
    assert!(metric(&server, "rules_age_seconds") < 10.0);
    let ready = ask(&server, "GET", "/readyz?verbose", Some(&token), &Value::Null);
    assert!(!ready.body.contains("snapshot"), "{}", ready.body);
    let made = json!({"rule_id": BY_IP, "subject": "198.51.100.1", "blocked": true});
    assert_eq!(ask(&server, "POST", "/v1/overrides", Some(&token), &made).status, 201);
    load.stop();
    let measured = format!(
        "an override that ends ended after {}; caught up {} after the return",
        ms(late),
        ms(caught_up)
    );
    report("T33 down at start", &seed, "killed before the start", measured);
}

fn says_so(server: &Server, token: &str) {
    eventually("the outage in the metrics", || {
        (metric(server, "database_up") == 0.0).then_some(())
    });
    assert!(metric(server, "rules_age_seconds") > 0.0);
    let ready = ask(server, "GET", "/readyz?verbose", Some(token), &Value::Null);
    assert_eq!(ready.status, 200, "{ready:?}");
    assert!(ready.body.contains("came from the snapshot file of"), "{}", ready.body);
    // Tokens are known: this one is accepted, a request without one is not.
    for path in ["/v1/rules", "/v1/violations", "/v1/overrides"] {
        let started = now();
        assert_eq!(ask(server, "GET", path, Some(token), &Value::Null).status, 503, "{path}");
        let limit = Duration::from_millis(TIMEOUT_MS) + Duration::from_secs(1);
        within("a refusal", limit, started, || Some(()));
        assert_eq!(ask(server, "GET", path, None, &Value::Null).status, 401, "{path}");
    }
    let wrong = ask(server, "GET", "/v1/rules", Some("tgt_wrong"), &Value::Null);
    assert_eq!(wrong.status, 401, "{wrong:?}");
}

#[test]
fn t33_down_at_start_without_a_snapshot() {
    let seed = Seed::announce("T33 down at start, nothing to start from");
    let url = format!("postgres://sluicegate:canary@127.0.0.1:{}/none", free_port());
    for (snapshot, said) in [("", "is not set"), ("missing.json", "missing.json")] {
        let started = now();
        let arguments = ["--database-timeout-ms", "1000", "--database-snapshot", snapshot];
        let ended = Launch::serve(&arguments).env("SLUICEGATE_DATABASE_URL", &url).run();
        assert_eq!(ended.code, Some(3), "{}", ended.stderr);
        assert!(ended.stderr.contains("cannot load rules from postgres://"), "{}", ended.stderr);
        assert!(ended.stderr.contains("there is no usable snapshot file"), "{}", ended.stderr);
        assert!(ended.stderr.contains(said), "{}", ended.stderr);
        assert!(!ended.stderr.contains("canary"), "{}", ended.stderr);
        let took = within("the end", Duration::from_secs(5), started, || Some(()));
        report("T33 nothing to start from", &seed, "nobody listens", format_args!("{}", ms(took)));
    }
}
