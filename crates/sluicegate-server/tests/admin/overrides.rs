//! Overrides: in force when the answer is sent, without effect once deleted or expired, on every store and through
//! the deny cache.

use std::sync::Barrier;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use sluicegate_tests::postgres::Postgres;
use sluicegate_tests::servers::{Flavour, RedisServer};

use crate::common::{
    Launch, Response, Server, check, eventually, now, on_every_database, on_every_store, pause,
    with_rules,
};

/// Rules whose buckets hardly refill during a test.
const RULES: &str = r#"
[[rule]]
rule_id = 1
key_pattern = "user:{user_id}"
tokens = 1
period = "1d"
burst_capacity = 2

[[rule]]
rule_id = 2
key_pattern = "login:{ip}"
conditions = { endpoint = "/login" }
tokens = 1
period = "1d"
burst_capacity = 3

[[rule]]
rule_id = 3
key_pattern = "all"
conditions = { endpoint = "/all" }
tokens = 1
period = "1d"
burst_capacity = 4
"#;

/// Maximum delay of an expiry.
const LATE_MAX: Duration = Duration::from_secs(2);

fn launch() -> Launch {
    with_rules(RULES)
}

fn check_user(server: &Server, user_id: &str) -> Value {
    check(server, &json!({"user_id": user_id}))
}

fn post(server: &Server, body: &Value) -> Response {
    server.post_json("/v1/overrides", &body.to_string())
}

fn put(server: &Server, id: &Value, if_match: Option<&str>, body: &Value) -> Response {
    let headers: Vec<_> = if_match.map(|tag| ("if-match", tag)).into_iter().collect();
    server.request("PUT", &format!("/v1/overrides/{id}"), &headers, &body.to_string())
}

fn delete(server: &Server, id: &Value, if_match: Option<&str>) -> u16 {
    let headers: Vec<_> = if_match.map(|tag| ("if-match", tag)).into_iter().collect();
    server.request("DELETE", &format!("/v1/overrides/{id}"), &headers, "").status
}

#[test]
fn every_kind_is_in_force_at_once_and_gone_at_once() {
    on_every_store(launch, |server| {
        // Denied, and in the deny cache.
        while check_user(server, "42")["allowed"] == true {}
        assert_eq!(check_user(server, "42")["limit"], 2);

        // More: the tokens already spent stay spent.
        let quota =
            json!({"rule_id": 1, "subject": 42, "tokens": 1, "period": "1d", "burst_capacity": 5});
        let made = post(server, &quota);
        assert_eq!(made.status, 201, "{made:?}");
        let id = made.json()["override_id"].clone();
        assert_eq!(made.header("location"), Some(format!("/v1/overrides/{id}").as_str()));
        let verdict = check_user(server, "42");
        assert_eq!(verdict["allowed"], true, "{verdict}");
        assert_eq!((&verdict["limit"], &verdict["remaining"]), (&json!(5), &json!(2)));
        assert_eq!(server.get("/v1/buckets/1/42").json()["override"], "quota");
        // Other subjects are not affected.
        assert_eq!(check_user(server, "43")["limit"], 2);

        // Unlimited: the rule does not apply.
        while check_user(server, "42")["allowed"] == true {}
        let changed = post(server, &json!({"rule_id": 1, "subject": "42", "unlimited": true}));
        assert_eq!((changed.status, &changed.json()["override_id"]), (200, &id));
        for _ in 0..20 {
            let verdict = check_user(server, "42");
            assert_eq!((&verdict["allowed"], &verdict["tiers"]), (&json!(true), &json!([])));
        }

        // Blocked: always denied, whatever the bucket holds.
        assert_eq!(put(server, &id, None, &json!({"blocked": true})).status, 200);
        server.request("POST", "/v1/buckets/1/42/reset", &[], "");
        let verdict = check_user(server, "42");
        assert_eq!(
            (&verdict["allowed"], &verdict["retry_after_ms"]),
            (&json!(false), &Value::Null)
        );
        assert_eq!((&verdict["limit"], &verdict["rule_id"]), (&json!(0), &json!(1)));
        assert_eq!(server.get("/v1/buckets/1/42").json()["override"], "blocked");

        // Deleted: the rule's quota applies again.
        assert_eq!(delete(server, &id, None), 204);
        let verdict = check_user(server, "42");
        assert_eq!((&verdict["allowed"], &verdict["limit"]), (&json!(true), &json!(2)));
        assert_eq!(server.get("/v1/buckets/1/42").json()["override"], Value::Null);
        assert_eq!(delete(server, &id, None), 404);
    });
}

#[test]
fn an_expired_one_is_gone_by_itself() {
    on_every_store(launch, |server| {
        let body = json!({"rule_id": 1, "subject": "42", "blocked": true, "expires_in": 1});
        let started = now();
        assert_eq!(post(server, &body).status, 201);
        assert_eq!(check_user(server, "42")["allowed"], false);
        let peek = || check(server, &json!({"user_id": "42", "cost": 0}));
        eventually("its end", || (peek()["limit"] == 2).then_some(()));
        let took = now() - started;
        assert!(took >= Duration::from_secs(1), "{took:?}");
        assert!(took < Duration::from_secs(1) + LATE_MAX, "{took:?}");
        // It can be created again.
        assert!([200, 201].contains(&post(server, &body).status));
        assert_eq!(check_user(server, "42")["allowed"], false);
    });
}

/// Two processes on one database and one Redis: a change through one is soon in force on the other.
#[test]
fn another_process_knows_soon() {
    let redis = RedisServer::start(Flavour::Redis70);
    let folder = tempfile::tempdir().unwrap();
    let database = format!("sqlite:{}", folder.path().join("shared.db").display());
    let start = || {
        let launch = launch().env("SLUICEGATE_STORE_URL", &redis.url());
        launch.env("SLUICEGATE_DATABASE_URL", &database).start()
    };
    let (one, other) = (start(), start());
    let within = |what: &str, is_so: &dyn Fn(&Value) -> bool| {
        let started = now();
        eventually(what, || is_so(&check_user(&other, "42")).then_some(()));
        assert!(now() - started < LATE_MAX, "{what}: {:?}", now() - started);
    };
    while check_user(&other, "42")["allowed"] == true {}
    let raised =
        json!({"rule_id": 1, "subject": "42", "tokens": 1, "period": "1d", "burst_capacity": 500});
    let id = post(&one, &raised).json()["override_id"].clone();
    within("more", &|verdict| verdict["limit"] == 500 && verdict["allowed"] == true);
    assert_eq!(put(&one, &id, None, &json!({"blocked": true})).status, 200);
    within("nothing", &|verdict| verdict["limit"] == 0);
    assert_eq!(delete(&one, &id, None), 204);
    within("the rule", &|verdict| verdict["limit"] == 2);
}

#[test]
fn it_shows_all_its_columns() {
    on_every_database(launch, |server| {
        let body = json!({
            "rule_id": 2, "subject": "::ffff:203.0.113.9", "rate_per_second": 0.016, "burst_capacity": 7,
            "reason": "the office", "expires_at": "2099-01-01T00:00:00Z",
        });
        let made = post(server, &body);
        let mut shown = made.json();
        let (id, created_at) = (shown["override_id"].clone(), shown["created_at"].take());
        let note = shown.as_object_mut().unwrap().remove("note").unwrap();
        assert!(note.as_str().unwrap().contains("endpoint=/login"), "{note}");
        assert!(created_at.as_str().unwrap().ends_with('Z'), "{created_at}");
        assert_eq!(
            shown,
            json!({
                "override_id": id, "rule_id": 2, "subject": "203.0.113.9", "kind": "quota",
                "tokens": 1, "period": 62.5, "rate_per_second": 0.016, "burst_capacity": 7,
                "algorithm": "token_bucket", "refill": "continuous", "max_wait": null,
                "reason": "the office", "expires_at": "2099-01-01T00:00:00.000000Z",
                "created_by": "local", "created_at": null, "version": 1,
            })
        );
        let read = server.get(&format!("/v1/overrides/{id}"));
        assert_eq!((read.status, read.header("etag")), (200, Some("\"1\"")));
        shown["created_at"] = created_at;
        assert_eq!(read.json(), shown);
        let again =
            json!({"rule_id": 2, "subject": "::ffff:203.0.113.9", "tokens": 1, "period": 60});
        assert_eq!(put(server, &id, None, &again).json()["burst_capacity"], 3);
        assert_eq!(put(server, &id, None, &body).json()["version"], 3);
        let login = json!({"ip": "203.0.113.9", "endpoint": "/login"});
        assert_eq!(check(server, &login)["limit"], 7);

        let blocked =
            post(server, &json!({"rule_id": 3, "subject": "all", "blocked": true})).json();
        for column in
            ["tokens", "period", "rate_per_second", "burst_capacity", "algorithm", "refill"]
        {
            assert_eq!(blocked[column], Value::Null, "{column}");
        }
        assert_eq!((&blocked["kind"], &blocked["reason"]), (&json!("blocked"), &json!("")));
        assert_eq!(check(server, &json!({"endpoint": "/all"}))["allowed"], false);
    });
}

#[test]
fn lists_have_filters_and_pages() {
    on_every_database(launch, |server| {
        for subject in 0..5 {
            let status =
                post(server, &json!({"rule_id": 1, "subject": subject, "blocked": true})).status;
            assert_eq!(status, 201);
        }
        post(server, &json!({"rule_id": 3, "subject": "all", "unlimited": true}));
        let subjects = |query: &str| {
            let list = server.get(&format!("/v1/overrides{query}")).json();
            let subjects = list["overrides"].as_array().unwrap().iter();
            let subjects: Vec<_> =
                subjects.map(|one| one["subject"].as_str().unwrap().to_owned()).collect();
            (subjects, list["next"].clone())
        };
        assert_eq!(subjects("").0, ["0", "1", "2", "3", "4", "all"]);
        assert_eq!(subjects("?rule_id=3"), (vec!["all".into()], Value::Null));
        assert_eq!(subjects("?rule_id=1&subject=2").0, ["2"]);
        assert_eq!(subjects("?subject=nobody"), (vec![], Value::Null));
        let (first, next) = subjects("?rule_id=1&limit=3");
        assert_eq!(first, ["0", "1", "2"]);
        let rest = subjects(&format!("?rule_id=1&limit=3&after={}", next.as_str().unwrap()));
        assert_eq!(rest, (vec!["3".into(), "4".into()], Value::Null));
        // The last page has no cursor, even if it is full.
        assert_eq!(subjects("?limit=6").1, Value::Null);
        for (query, field) in [
            ("limit=0", "limit"),
            ("limit=1001", "limit"),
            ("after=x", "after"),
            ("rule_id=x", "rule_id"),
            ("subject=%00", "subject"),
            ("color=red", "color"),
        ] {
            let response = server.get(&format!("/v1/overrides?{query}"));
            assert_eq!(
                (response.status, &response.json()["field"]),
                (400, &json!(field)),
                "{query}"
            );
        }
        // Numbers beyond the range of the database are not an internal error.
        for query in ["after=18446744073709551615", "rule_id=18446744073709551615"] {
            let response = server.get(&format!("/v1/overrides?{query}"));
            assert!([200, 400].contains(&response.status), "{query}: {response:?}");
        }
    });
}

#[test]
fn updates_are_not_lost() {
    on_every_database(launch, |server| {
        let body = json!({"rule_id": 1, "subject": "42", "blocked": true});
        let id = post(server, &body).json()["override_id"].clone();
        let unlimited = json!({"unlimited": true, "reason": "paid"});
        let changed = put(server, &id, Some("\"1\""), &unlimited);
        assert_eq!((changed.status, changed.header("etag")), (200, Some("\"2\"")));
        assert_eq!(changed.json()["reason"], "paid");

        assert_eq!(put(server, &id, Some("\"1\""), &body).status, 412);
        assert_eq!(delete(server, &id, Some("\"1\"")), 412);
        for wrong in ["2", "\"x\"", "W/\"2\""] {
            let response = put(server, &id, Some(wrong), &body);
            assert_eq!(
                (response.status, &response.json()["field"]),
                (400, &json!("If-Match")),
                "{wrong}"
            );
        }
        assert_eq!(check_user(server, "42")["tiers"], json!([]));
        assert_eq!(put(server, &id, Some("*"), &body).status, 200);
        // Rule and subject cannot change.
        for moved in
            [json!({"rule_id": 2, "blocked": true}), json!({"subject": "43", "blocked": true})]
        {
            assert_eq!(put(server, &id, None, &moved).status, 400, "{moved}");
        }
        assert_eq!(delete(server, &id, Some("\"3\"")), 204);
        assert_eq!(put(server, &id, Some("*"), &body).status, 404);
        assert_eq!(put(server, &id, None, &body).status, 404);
    });
}

/// With the starter rules, a block under one plan does not cover all requests of its subject.
#[test]
fn a_note_names_the_requests_that_an_override_misses() {
    let server = Launch::serve(&[]).start();
    let mallory = json!({"rule_id": 1, "subject": "mallory", "blocked": true});
    let note = json!(
        "rule 1 is for plan free only: under other plans, and without one, this subject is not blocked"
    );
    let dry = server.post_json("/v1/overrides?dry_run", &mallory.to_string()).json();
    assert_eq!((&dry["note"], &dry["dry_run"]), (&note, &json!(true)));
    let made = post(&server, &mallory).json();
    assert_eq!(made["note"], note);
    let id = &made["override_id"];
    assert_eq!(put(&server, id, None, &json!({"blocked": true})).json()["note"], note);
    let unlimited = put(&server, id, None, &json!({"unlimited": true})).json();
    assert!(unlimited["note"].as_str().unwrap().ends_with("this override has no effect"));
    let all = server.get("/v1/rules").json();
    let for_all =
        all["rules"].as_array().unwrap().iter().find(|rule| rule["key_pattern"] == "global");
    let for_all = &for_all.unwrap()["rule_id"];
    let all = post(&server, &json!({"rule_id": for_all, "subject": "global", "blocked": true}));
    assert_eq!((all.status, &all.json()["note"]), (201, &Value::Null), "{all:?}");
}

#[test]
fn changes_of_overrides_are_logged_with_author_and_subject() {
    let launch = launch()
        .env("SLUICEGATE_AUDIT_PRIVACY", "truncated")
        .env("SLUICEGATE_ADMIN_TOKEN", "a-token-for-this-test");
    let server = launch.start();
    let token = [("authorization", "Bearer a-token-for-this-test")];
    let ask = |method: &str, path: &str, body: &Value| {
        let response = server.request(method, path, &token, &body.to_string());
        assert!(response.status < 300, "{response:?}");
        response
    };
    let body =
        json!({"rule_id": 2, "subject": "203.0.113.9", "blocked": true, "reason": "a\u{1b}[1mb"});
    let id = ask("POST", "/v1/overrides", &body).json()["override_id"].clone();
    let expires = json!({"unlimited": true, "expires_at": "2099-01-01T00:00:00Z"});
    ask("PUT", &format!("/v1/overrides/{id}"), &expires);
    ask("DELETE", &format!("/v1/overrides/{id}"), &json!(null));
    ask("POST", "/v1/buckets/2/203.0.113.9/reset", &json!(null));
    ask("POST", "/v1/buckets/2/203.0.113.9/grant", &json!({"tokens": 1}));
    ask("POST", "/v1/buckets/2/203.0.113.9/refund", &json!({"tokens": 1}));
    ask("DELETE", "/v1/buckets/203.0.113.9", &json!(null));
    server.signal("TERM");
    let log = server.wait().stderr;
    assert!(!log.contains("203.0.113.9"), "{log}");
    assert!(!log.contains('\u{1b}'), "{log}");
    let lines: Vec<Value> =
        log.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let by_admin: Vec<_> = lines.iter().filter(|line| line["by"] == "admin").collect();
    let said: Vec<_> = by_admin.iter().map(|line| line["message"].as_str().unwrap()).collect();
    assert_eq!(
        said,
        [
            "override set",
            "override set",
            "override deleted",
            "bucket reset",
            "tokens granted",
            "tokens refunded",
            "bucket reset",
        ]
    );
    let network = json!("203.0.113.0/24");
    for line in &by_admin[..6] {
        assert_eq!((&line["rule_id"], &line["subject"]), (&json!(2), &network), "{line}");
    }
    assert_eq!(by_admin[6]["key"], network);
    let [blocked, unlimited, deleted] = [by_admin[0], by_admin[1], by_admin[2]];
    assert_eq!((&blocked["kind"], &blocked["override_id"]), (&json!("blocked"), &id));
    assert_eq!(blocked["reason"], "a\u{1b}[1mb");
    for line in [unlimited, deleted] {
        assert_eq!(line["kind"], "unlimited");
        assert_eq!(line["expires_at"], "2099-01-01T00:00:00.000000Z");
    }
}

#[test]
fn a_dry_run_changes_nothing() {
    let server = launch().start();
    let body = json!({"rule_id": 1, "subject": "42", "blocked": true});
    let made = server.post_json("/v1/overrides?dry_run", &body.to_string());
    assert_eq!(made.status, 200, "{made:?}");
    assert_eq!(
        (&made.json()["override_id"], &made.json()["dry_run"]),
        (&Value::Null, &json!(true))
    );
    assert_eq!(server.get("/v1/overrides").json(), json!({"overrides": [], "next": null}));

    let first = post(&server, &body).json();
    let id = first["override_id"].clone();
    // The same again is no change, in a dry run as when it is saved.
    let again = server.post_json("/v1/overrides?dry_run", &body.to_string()).json();
    assert_eq!((&again["override_id"], &again["version"]), (&id, &json!(1)));
    assert_eq!(again["created_at"], first["created_at"]);
    assert_eq!(post(&server, &body).json()["version"], 1);
    let other = json!({"rule_id": 1, "subject": "42", "unlimited": true});
    let again = server.post_json("/v1/overrides?dry_run", &other.to_string()).json();
    assert_eq!((&again["override_id"], &again["version"]), (&id, &json!(2)));
    assert!(again["created_at"].as_str() > first["created_at"].as_str(), "{again}");
    let path = format!("/v1/overrides/{id}?dry_run=true");
    let changed = server.request("PUT", &path, &[], &json!({"unlimited": true}).to_string());
    assert_eq!(
        (&changed.json()["kind"], &changed.json()["version"]),
        (&json!("unlimited"), &json!(2))
    );
    let deleted = server.request("DELETE", &path, &[], "");
    assert_eq!((deleted.status, &deleted.json()["override_id"]), (200, &id));
    assert_eq!(server.get(&format!("/v1/overrides/{id}")).json()["kind"], "blocked");
    assert_eq!(check_user(&server, "42")["allowed"], false);
}

#[test]
fn invalid_fields_are_named() {
    on_every_database(launch, |server| {
        for (body, field) in [
            (json!({"subject": "42", "blocked": true}), "rule_id"),
            (json!({"rule_id": 1, "blocked": true}), "subject"),
            (json!({"rule_id": 99, "subject": "42", "blocked": true}), "rule_id"),
            (json!({"rule_id": -1, "subject": "42", "blocked": true}), "rule_id"),
            (json!({"rule_id": 2, "subject": "nowhere", "blocked": true}), "subject"),
            (json!({"rule_id": 3, "subject": "42", "blocked": true}), "subject"),
            (json!({"rule_id": 1, "subject": "a\u{0}b", "blocked": true}), "subject"),
            (json!({"rule_id": 1, "subject": "", "blocked": true}), "subject"),
            (json!({"rule_id": 1, "subject": [], "blocked": true}), "subject"),
            (json!({"rule_id": 1, "subject": "42"}), "tokens"),
            (json!({"rule_id": 1, "subject": "42", "tokens": 5}), "period"),
            (
                json!({"rule_id": 1, "subject": "42", "blocked": true, "expires_in": "soon"}),
                "expires_in",
            ),
            (
                json!({"rule_id": 1, "subject": "42", "blocked": true, "expires_at": "2020-01-01T00:00:00Z"}),
                "expires_at",
            ),
            (json!({"rule_id": 1, "subject": "42", "blocked": true, "colour": "red"}), "colour"),
        ] {
            let response = post(server, &body);
            assert_eq!(
                (response.status, &response.json()["field"]),
                (400, &json!(field)),
                "{body}"
            );
        }
        for id in ["0", "1", "x", "-1", "18446744073709551615", "18446744073709551616"] {
            assert_eq!(server.get(&format!("/v1/overrides/{id}")).status, 404, "{id}");
        }
        assert_eq!(server.request("PATCH", "/v1/overrides/1", &[], "{}").status, 405);
    });
}

/// A request that is rejected before its body is read does not end the connection.
#[test]
fn a_body_may_come_late() {
    let server = launch().start();
    let mut client = server.connect();
    for _ in 0..3 {
        client
            .send(b"POST /v1/overrides?color=red HTTP/1.1\r\nhost: localhost\r\ncontent-length: 2\r\n\r\n")
            .unwrap();
        pause(Duration::from_millis(50));
        client.send(b"{}").unwrap();
        assert_eq!(client.read_response().unwrap().status, 400);
    }
}

#[test]
fn without_a_database_there_are_none() {
    let server = launch().env("SLUICEGATE_DATABASE_URL", "").start();
    let body = json!({"rule_id": 1, "subject": "42", "blocked": true});
    assert_eq!(post(&server, &body).status, 503);
    assert_eq!(server.get("/v1/overrides").status, 503);
    assert_eq!(check_user(&server, "42")["allowed"], true);
}

/// Creates an override of a subject only if it has none.
fn create_only(server: &Server, subject: &str, tag: &str) -> Response {
    let body = json!({"rule_id": 1, "subject": subject, "blocked": true}).to_string();
    let headers = [("content-type", "application/json"), ("if-none-match", tag)];
    server.request("POST", "/v1/overrides", &headers, &body)
}

#[test]
fn an_existing_override_is_not_replaced_unawares() {
    on_every_database(launch, |server| {
        let made = create_only(server, "first", "*");
        assert_eq!(made.status, 201, "{made:?}");
        let refused = create_only(server, "first", "*");
        assert_eq!(refused.status, 412, "{refused:?}");
        let (by, at) = (made.json()["created_by"].clone(), made.json()["created_at"].clone());
        let (by, at) = (by.as_str().unwrap(), at.as_str().unwrap());
        let detail = format!(
            "the subject has an override already, set by {by} at {at}: load it and change that one"
        );
        assert_eq!(refused.json()["detail"], detail);
        let body = json!({"rule_id": 1, "subject": "first", "unlimited": true});
        let headers = [("content-type", "application/json"), ("if-none-match", "*")];
        let path = "/v1/overrides?dry_run=true";
        assert_eq!(server.request("POST", path, &headers, &body.to_string()).status, 412);
        for tag in ["\"1\"", "1", "", "*, *"] {
            let refused = create_only(server, "second", tag);
            let found = (refused.status, refused.json()["field"].clone());
            assert_eq!(found, (400, json!("If-None-Match")), "{tag}");
        }
        // Without the field it is changed.
        assert_eq!(post(server, &body).status, 200);
    });
}

/// Two operators at two processes, at the same moment: one creates it, the other is told so.
#[test]
fn of_two_operators_one_creates_it() {
    let postgres = Postgres::start();
    let folder = tempfile::TempDir::with_prefix("sluicegate-operators-").unwrap();
    let sqlite = format!("sqlite:{}", folder.path().join("o.db").display());
    for url in [postgres.create("operators"), sqlite] {
        let start = || launch().env("SLUICEGATE_DATABASE_URL", &url).start();
        let servers = [start(), start()];
        let barrier = Barrier::new(2);
        for turn in 0..10 {
            let subject = format!("user {turn}");
            let create = |server: &Server| {
                barrier.wait();
                create_only(server, &subject, "*")
            };
            let [one, other] = &servers;
            let answers = thread::scope(|scope| {
                let other = scope.spawn(|| create(other));
                [create(one), other.join().unwrap()]
            });
            let mut statuses = answers.each_ref().map(|answer| answer.status);
            statuses.sort_unstable();
            assert_eq!(statuses, [201, 412], "{url}: {answers:?}");
        }
    }
}
