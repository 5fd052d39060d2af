//! `/v1/rules`: changes are in force when the answer is sent, no update is lost, and invalid rules are rejected.

mod dry_run;

use std::sync::Barrier;
use std::thread;

use serde_json::{Value, json};
use sluicegate_tests::postgres::Postgres;

use crate::common::{Launch, Response, Server, check, eventually, on_every_database};

/// Starts a server with its rules in a separate database.
fn start() -> Server {
    launch().start()
}

fn launch() -> Launch {
    Launch::serve(&[])
}

fn send(
    server: &Server,
    method: &str,
    path: &str,
    if_match: Option<&str>,
    body: &Value,
) -> Response {
    let mut headers = vec![("content-type", "application/json")];
    headers.extend(if_match.map(|tag| ("if-match", tag)));
    server.request(method, path, &headers, &body.to_string())
}

fn post(server: &Server, body: &Value) -> Response {
    send(server, "POST", "/v1/rules", None, body)
}

fn created(server: &Server, body: &Value) -> Value {
    let response = post(server, body);
    assert_eq!(response.status, 201, "{body} -> {response:?}");
    response.json()
}

fn put(server: &Server, id: &Value, if_match: Option<&str>, body: &Value) -> Response {
    send(server, "PUT", &format!("/v1/rules/{id}"), if_match, body)
}

fn patch(server: &Server, id: &Value, if_match: Option<&str>, body: &Value) -> Response {
    send(server, "PATCH", &format!("/v1/rules/{id}"), if_match, body)
}

fn delete(server: &Server, id: &Value, if_match: Option<&str>) -> Response {
    let headers: Vec<_> = if_match.map(|tag| ("if-match", tag)).into_iter().collect();
    server.request("DELETE", &format!("/v1/rules/{id}"), &headers, "")
}

fn all(server: &Server) -> Vec<Value> {
    let list = server.get("/v1/rules?limit=1000");
    assert_eq!(list.status, 200, "{list:?}");
    list.json()["rules"].as_array().unwrap().clone()
}

/// Rule of a separate endpoint that hardly refills during a test.
fn rule(name: &str, burst: u64) -> Value {
    json!({"key_pattern": format!("endpoint:/{name}"), "tokens": 1, "period": "1 day", "burst_capacity": burst})
}

fn problem(response: &Response, status: u16, field: Option<&str>) {
    assert_eq!(response.status, status, "{response:?}");
    assert_eq!(response.header("content-type"), Some("application/problem+json"), "{response:?}");
    let problem = response.json();
    assert_eq!(problem["field"], json!(field), "{response:?}");
    assert_eq!(problem["status"], status);
}

#[test]
fn a_rule_is_made_read_changed_and_deleted() {
    on_every_database(launch, |server| {
        assert_eq!(all(server).len(), 9, "the starter rules");
        let body = json!({
            "key_pattern": "export:{user_id}", "tokens": 2, "period": "1 day", "burst_capacity": 3, "plan": "pro",
            "description": "exports", "conditions": {"endpoint": "/export", "method": "POST"},
        });
        let made = post(server, &body);
        assert_eq!((made.status, made.header("etag")), (201, Some("\"1\"")), "{made:?}");
        let rule = made.json();
        let id = &rule["rule_id"];
        assert_eq!(made.header("location"), Some(&*format!("/v1/rules/{id}")));
        let expected = json!({
            "rule_id": 10, "key_pattern": "export:{user_id}", "scope": "user",
            "rate_per_second": 2.0 / 86_400.0, "tokens": 2, "period": 86_400, "burst_capacity": 3,
            "plan": "pro", "algorithm": "token_bucket", "refill": "continuous", "max_wait": null,
            "mode": "enforce", "on_error": "local", "is_active": true, "description": "exports",
            "conditions": {"endpoint": "/export", "method": "POST"}, "name": null, "replaces": [],
            "created_at": rule["created_at"], "version": 1,
        });
        for (column, value) in expected.as_object().unwrap() {
            assert_eq!(rule[column], *value, "{column}");
        }
        assert!(rule["created_at"].as_str().unwrap().ends_with('Z'));

        // In force at once.
        let request = json!({"user_id": 1, "plan": "pro", "endpoint": "/export", "method": "POST"});
        assert_eq!(check(server, &request)["limit"], 3);

        // Sending back the answer changes nothing.
        let same = put(server, id, Some("\"1\""), &rule);
        assert_eq!((same.status, same.json()), (200, rule.clone()), "{same:?}");
        // All columns are replaced: omitted ones have their default.
        let replaced = put(
            server,
            id,
            Some("\"1\""),
            &json!({"key_pattern": "export:{user_id}", "rate_per_second": 0.016, "burst_capacity": 2}),
        );
        assert_eq!(
            (replaced.status, replaced.header("etag")),
            (200, Some("\"2\"")),
            "{replaced:?}"
        );
        let replaced = replaced.json();
        assert_eq!((&replaced["tokens"], &replaced["period"]), (&json!(1), &json!(62.5)));
        assert_eq!((&replaced["plan"], &replaced["conditions"]), (&Value::Null, &json!({})));
        assert_eq!(replaced["created_at"], rule["created_at"]);
        assert_eq!(check(server, &json!({"user_id": 2}))["limit"], 2);

        let patched = patch(server, id, None, &json!({"burst_capacity": 1, "is_active": false}));
        assert_eq!((patched.status, patched.header("etag")), (200, Some("\"3\"")), "{patched:?}");
        assert_eq!(patched.json()["rate_per_second"], json!(0.016));
        assert_eq!(check(server, &json!({"user_id": 2}))["tiers"].as_array().unwrap().len(), 1);
        assert_eq!(patch(server, id, None, &json!({"is_active": null})).json()["is_active"], true);

        let one = server.get(&format!("/v1/rules/{id}"));
        assert_eq!((one.status, one.header("etag")), (200, Some("\"4\"")));
        let known = [("if-none-match", "\"4\"")];
        let unchanged = server.request("GET", &format!("/v1/rules/{id}"), &known, "");
        assert_eq!((unchanged.status, unchanged.body.as_str()), (304, ""));

        let gone = delete(server, id, Some("\"4\""));
        assert_eq!((gone.status, gone.body.as_str()), (204, ""));
        problem(&server.get(&format!("/v1/rules/{id}")), 404, None);
        problem(&delete(server, id, None), 404, None);
        problem(&put(server, id, None, &body), 404, None);
        problem(&patch(server, id, None, &json!({})), 404, None);
        assert_eq!(check(server, &json!({"user_id": 2}))["tiers"].as_array().unwrap().len(), 1);
        // Its id is not reused.
        assert_eq!(created(server, &body)["rule_id"], 11);
    });
}

#[test]
fn bad_rules_are_refused_by_their_columns() {
    let server = start();
    let before = all(&server);
    let cases = [
        (json!({}), 400, "key_pattern"),
        (json!({"key_pattern": "x"}), 400, "tokens"),
        (json!({"key_pattern": "user:{user_id", "rate_per_second": 1}), 400, "key_pattern"),
        (json!({"key_pattern": "x", "rate_per_second": 0}), 400, "rate_per_second"),
        (json!({"key_pattern": "x", "rate_per_second": -1}), 400, "rate_per_second"),
        (json!({"key_pattern": "x", "rate_per_second": 1e300}), 400, "rate_per_second"),
        (json!({"key_pattern": "x", "rate_per_second": "NaN"}), 400, "rate_per_second"),
        (json!({"key_pattern": "x", "tokens": 0, "period": 1}), 400, "tokens"),
        (json!({"key_pattern": "x", "tokens": 1, "period": 0}), 400, "period"),
        (json!({"key_pattern": "x", "tokens": 1, "period": "1 fortnight"}), 400, "period"),
        (
            json!({"key_pattern": "x", "rate_per_second": 1, "burst_capacity": 0}),
            400,
            "burst_capacity",
        ),
        (
            json!({"key_pattern": "x", "rate_per_second": 1, "burst_capacity": u64::MAX}),
            400,
            "burst_capacity",
        ),
        (
            json!({"key_pattern": "x", "tokens": 1, "period": 1, "rate_per_second": 2}),
            400,
            "rate_per_second",
        ),
        (json!({"key_pattern": "x", "rate_per_second": 1, "scope": "users"}), 400, "scope"),
        (json!({"key_pattern": "x", "rate_per_second": 1, "mode": "off"}), 400, "mode"),
        (json!({"key_pattern": "x", "rate_per_second": 1, "on_error": "x"}), 400, "on_error"),
        (json!({"key_pattern": "x", "rate_per_second": 1, "algorithm": "x"}), 400, "algorithm"),
        (json!({"key_pattern": "x", "rate_per_second": 1, "refill": "x"}), 400, "refill"),
        (json!({"key_pattern": "x", "rate_per_second": 1, "max_wait": 1}), 400, "max_wait"),
        (json!({"key_pattern": "x", "rate_per_second": 1, "is_active": "yes"}), 400, "is_active"),
        (json!({"key_pattern": "x", "rate_per_second": 1, "plan": "p".repeat(33)}), 400, "plan"),
        (
            json!({"key_pattern": "x", "rate_per_second": 1, "description": "\u{0}"}),
            400,
            "description",
        ),
        (
            json!({"key_pattern": "x", "rate_per_second": 1, "conditions": {"endpoint": ""}}),
            400,
            "conditions.endpoint",
        ),
        (json!({"key_pattern": "x", "rate_per_second": 1, "rule_id": 0}), 400, "rule_id"),
        (json!({"key_pattern": "x", "rate_per_second": 1, "colour": "red"}), 400, "colour"),
        (json!({"key_pattern": "x", "rate_per_second": 1, "rule_id": 1}), 409, "rule_id"),
        // Duplicate key pattern for every plan, in each spelling of "every plan".
        (json!({"key_pattern": "global", "rate_per_second": 1}), 409, "key_pattern"),
        (json!({"key_pattern": "global", "rate_per_second": 1, "plan": ""}), 409, "key_pattern"),
        (
            json!({"key_pattern": "user:{user_id}", "rate_per_second": 1, "plan": "pro"}),
            409,
            "key_pattern",
        ),
    ];
    for (body, status, field) in &cases {
        problem(&post(&server, body), *status, Some(field));
        let dry = send(&server, "POST", "/v1/rules?dry_run", None, body);
        problem(&dry, *status, Some(field));
    }
    for (body, status, field) in cases.iter().filter(|(body, ..)| body["rule_id"].is_null()) {
        problem(&put(&server, &json!(5), None, body), *status, Some(field));
    }
    let two = json!({"key_pattern": "", "rate_per_second": 0, "mode": "x"});
    let detail = post(&server, &two).json()["detail"].as_str().unwrap().to_owned();
    for field in ["key_pattern: ", "rate_per_second: ", "mode: "] {
        assert!(detail.contains(field), "{detail}");
    }
    problem(&put(&server, &json!(5), None, &json!({"rule_id": 6})), 400, Some("rule_id"));
    problem(
        &patch(&server, &json!(5), None, &json!({"key_pattern": "ip:{ip}"})),
        409,
        Some("key_pattern"),
    );
    problem(&patch(&server, &json!(5), None, &json!({"tokens": null})), 400, Some("tokens"));
    problem(&patch(&server, &json!(5), Some("five"), &json!({})), 400, Some("If-Match"));
    problem(&server.get("/v1/rules/five"), 404, None);
    problem(&server.get("/v1/rules?plna=x"), 400, Some("plna"));
    problem(&server.get("/v1/rules?limit=0"), 400, Some("limit"));
    problem(&server.get("/v1/rules?scope=x"), 400, Some("scope"));
    problem(&server.get("/v1/rules?is_active=x"), 400, Some("is_active"));
    problem(&server.get("/v1/rules?after=x"), 400, Some("after"));
    problem(
        &send(&server, "POST", "/v1/rules?dry_run=maybe", None, &json!({})),
        400,
        Some("dry_run"),
    );
    let megabyte = json!({"key_pattern": "x".repeat(1 << 20), "rate_per_second": 1});
    problem(&post(&server, &megabyte), 413, None);
    assert_eq!(all(&server), before, "nothing of it is there");
    assert_eq!(server.get("/v1/rules").json()["refused"], Value::Null);
}

/// Lost updates: of two changes to the same version, one is rejected.
#[test]
fn of_two_writers_one_wins() {
    on_every_database(launch, |server| {
        for round in 1..=10 {
            let tag = format!("\"{round}\"");
            let barrier = Barrier::new(2);
            let statuses: Vec<u16> = thread::scope(|scope| {
                let write = |burst: u64| {
                    let (server, barrier, tag) = (server, &barrier, &tag);
                    scope.spawn(move || {
                        barrier.wait();
                        let body = json!({"burst_capacity": burst});
                        patch(server, &json!(1), Some(tag), &body).status
                    })
                };
                let writers = [write(100 + 2 * round), write(101 + 2 * round)];
                writers.map(|writer| writer.join().unwrap()).into()
            });
            let mut sorted = statuses.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, [200, 412], "{statuses:?}");
        }
        let stale = json!({"version": 3, "burst_capacity": 7});
        problem(&patch(server, &json!(1), None, &stale), 412, None);
        problem(&delete(server, &json!(1), Some("\"1\"")), 412, None);
        assert_eq!(patch(server, &json!(1), Some("*"), &json!({"burst_capacity": 7})).status, 200);
        // Without a version both changes are made, one after the other, and neither undoes the other's columns.
        let barrier = Barrier::new(2);
        thread::scope(|scope| {
            for body in [json!({"description": "a"}), json!({"burst_capacity": 9})] {
                let (server, barrier) = (server, &barrier);
                scope.spawn(move || {
                    barrier.wait();
                    assert_eq!(patch(server, &json!(2), None, &body).status, 200);
                });
            }
        });
        let rule = server.get("/v1/rules/2").json();
        assert_eq!((&rule["description"], &rule["burst_capacity"]), (&json!("a"), &json!(9)));
    });
}

#[test]
fn lists_are_filtered_and_come_in_pages() {
    let server = start();
    let ids = |query: &str| {
        let list = server.get(&format!("/v1/rules?{query}")).json();
        let ids =
            list["rules"].as_array().unwrap().iter().map(|rule| rule["rule_id"].as_u64().unwrap());
        (ids.collect::<Vec<_>>(), list["next"].as_str().map(str::to_owned))
    };
    assert_eq!(patch(&server, &json!(9), None, &json!({"is_active": false})).status, 200);
    assert_eq!(ids("plan=pro"), (vec![2], None));
    assert_eq!(ids("plan="), (vec![4, 5, 6, 7, 8, 9], None));
    assert_eq!(ids("scope=ip"), (vec![5, 7], None));
    assert_eq!(ids("is_active=false"), (vec![9], None));
    assert_eq!(ids("scope=user&plan=&is_active=true"), (vec![6], None));
    let (mut seen, mut after) = (Vec::new(), String::new());
    loop {
        let (page, next) = ids(&format!("limit=4{after}"));
        assert!(page.len() <= 4);
        seen.extend(page);
        let Some(next) = next else { break };
        after = format!("&after={next}");
    }
    assert_eq!(seen, (1..=9).collect::<Vec<_>>());
    let list = server.get("/v1/rules").json();
    assert!(list["version"].as_u64().unwrap() >= 1);
    assert_eq!((&list["source"], &list["refused"]), (&json!("sqlite:sluicegate.db"), &Value::Null));
}

#[test]
fn every_change_is_on_record() {
    on_every_database(launch, |server| {
        let made = created(server, &rule("a", 5));
        let id = &made["rule_id"];
        let changed = patch(server, id, None, &json!({"burst_capacity": 6})).json();
        assert_eq!(delete(server, id, None).status, 204);
        let list = server.get(&format!("/v1/rules/{id}/changes")).json();
        let changes = list["changes"].as_array().unwrap();
        let pairs: Vec<_> = changes.iter().map(|change| (&change["old"], &change["new"])).collect();
        let null = Value::Null;
        assert_eq!(pairs, [(&changed, &null), (&made, &changed), (&null, &made)]);
        for change in changes {
            assert_eq!(&change["rule_id"], id);
            assert!(
                change["changed_by"].is_string() && change["changed_at"].is_string(),
                "{change}"
            );
        }
        assert!(changes[0]["change_id"].as_u64() > changes[1]["change_id"].as_u64());
        // Changes of all rules, in pages.
        let first = server.get("/v1/rules/changes?limit=2").json();
        assert_eq!(first["changes"], json!(changes[..2]));
        let next = first["next"].as_str().unwrap();
        let rest = server.get(&format!("/v1/rules/changes?limit=1&after={next}")).json();
        assert_eq!(rest["changes"], json!(changes[2..]));
        problem(&server.get("/v1/rules/99/changes"), 404, None);
        assert_eq!(server.get("/v1/rules/5/changes").json(), json!({"changes": [], "next": null}));
    });
}

/// Replacing all rules is all or nothing; a dry run shows the difference.
#[test]
fn all_rules_are_replaced_at_once() {
    on_every_database(launch, |server| {
        let set = json!({"rules": [
            {"key_pattern": "user:{user_id}", "plan": "free", "tokens": 10, "period": 1, "burst_capacity": 60},
            {"rule_id": 20, "key_pattern": "endpoint:/new", "rate_per_second": 1},
            {"rule_id": 8, "key_pattern": "global", "tokens": 50_000, "period": 1, "burst_capacity": 100_000,
                "description": "everything together"},
        ]});
        let dry = send(server, "PUT", "/v1/rules?dry_run", None, &set);
        assert_eq!(dry.status, 200, "{dry:?}");
        let tag = dry.header("etag").unwrap().to_owned();
        let dry = dry.json();
        assert_eq!((&dry["dry_run"], &dry["unchanged"]), (&json!(true), &json!(1)), "{dry}");
        assert_eq!(dry["changed"][0]["rule_id"], 1);
        assert_eq!(
            (dry["added"].as_array().unwrap().len(), dry["removed"].as_array().unwrap().len()),
            (1, 7)
        );
        assert_eq!(all(server).len(), 9);

        let bad =
            json!({"rules": [{"key_pattern": "a", "rate_per_second": 1}, {"key_pattern": "b"}]});
        problem(&send(server, "PUT", "/v1/rules", None, &bad), 400, Some("rules[1].tokens"));
        let twice = json!({"rules": [
            {"key_pattern": "a", "rate_per_second": 1}, {"key_pattern": "a", "rate_per_second": 2},
        ]});
        problem(&send(server, "PUT", "/v1/rules", None, &twice), 409, Some("key_pattern"));
        problem(&send(server, "PUT", "/v1/rules?dry_run", None, &twice), 409, Some("key_pattern"));
        assert_eq!(all(server).len(), 9);

        let done = send(server, "PUT", "/v1/rules", Some(&tag), &set);
        assert_eq!(done.status, 200, "{done:?}");
        let ids: Vec<_> =
            all(server).iter().map(|rule| rule["rule_id"].as_u64().unwrap()).collect();
        assert_eq!(ids, [1, 8, 20]);
        assert_eq!(check(server, &json!({"user_id": 1, "plan": "free"}))["limit"], 60);
        problem(&send(server, "PUT", "/v1/rules", Some(&tag), &set), 412, None);
    });
}

/// T35: after any rejected body the last valid rules stay in force.
#[test]
fn poison_is_refused_and_the_last_good_rules_stay() {
    // Ten thousand rules take a slow machine a while.
    let server = Launch::serve(&["--database-timeout-ms", "20000"]).start();
    // The maximum number of rules, and one more.
    // Fifty rules for each plan: a request may meet 64.
    let one = |n: usize| {
        let (pattern, plan) = (format!("n{n}:{{x}}"), format!("p{}", n % 200));
        json!({"key_pattern": pattern, "plan": plan, "tokens": 1, "period": 60})
    };
    let most = json!({"rules": (0..10_000).map(one).collect::<Vec<_>>()});
    let answer = send(&server, "PUT", "/v1/rules", None, &most);
    assert_eq!(answer.status, 200, "{}", &answer.body[..200.min(answer.body.len())]);
    problem(
        &post(&server, &json!({"key_pattern": "more", "rate_per_second": 1})),
        400,
        Some("rules"),
    );
    let dry = send(
        &server,
        "POST",
        "/v1/rules?dry_run",
        None,
        &json!({"key_pattern": "more", "rate_per_second": 1}),
    );
    problem(&dry, 400, Some("rules"));
    let more = json!({"rules": (0..10_001).map(one).collect::<Vec<_>>()});
    problem(&send(&server, "PUT", "/v1/rules", None, &more), 400, Some("rules"));
    let without_plan =
        |n: usize| json!({"key_pattern": format!("n{n}"), "tokens": 1, "period": 60});
    let unconditional = json!({"rules": (0..65).map(without_plan).collect::<Vec<_>>()});
    problem(&send(&server, "PUT", "/v1/rules", None, &unconditional), 400, Some("rules"));
    let request = json!({"plan": "p7", "attributes": {"x": "1"}});
    assert_eq!(check(&server, &request)["tiers"].as_array().unwrap().len(), 50);
    assert!(check(&server, &json!({}))["tiers"].as_array().unwrap().is_empty());
}

/// Rules of a file are shown by the API and changed in the file only.
#[test]
fn rules_of_a_file_are_read_only() {
    let text = "[[rule]]\nrule_id = 3\nkey_pattern = \"a:{x}\"\nrate_per_second = 0.016\nplan = \"pro\"\n\
        [[rule]]\nrule_id = 4\nkey_pattern = \"b\"\ntokens = 5\nperiod = 1\nis_active = false\n";
    let server = Launch::serve(&["--rules", "r.toml"]).file("r.toml", text).start();
    let list = server.get("/v1/rules").json();
    assert_eq!(list["source"], "r.toml");
    assert_eq!(
        (&list["rules"][0]["period"], &list["rules"][0]["version"]),
        (&json!(62.5), &json!(1))
    );
    assert_eq!(list["rules"][0]["created_at"], Value::Null);
    assert_eq!(server.get("/v1/rules?is_active=false").json()["rules"][0]["rule_id"], 4);
    assert_eq!(server.get("/v1/rules?plan=pro&limit=1").json()["rules"][0]["rule_id"], 3);
    let page = server.get("/v1/rules?limit=1").json();
    assert_eq!(page["next"], "3");
    assert_eq!(server.get("/v1/rules?after=3").json()["rules"][0]["rule_id"], 4);
    let one = server.get("/v1/rules/3");
    assert_eq!((one.status, one.header("etag")), (200, Some("\"1\"")));
    problem(&server.get("/v1/rules/5"), 404, None);
    for response in [
        post(&server, &rule("a", 1)),
        put(&server, &json!(3), None, &rule("a", 1)),
        patch(&server, &json!(3), None, &json!({})),
        delete(&server, &json!(3), None),
        send(&server, "PUT", "/v1/rules", None, &json!({"rules": []})),
    ] {
        problem(&response, 409, None);
        assert!(response.body.contains("r.toml"), "{response:?}");
    }
    // An invalid file is reported.
    std::fs::write(server.folder().join("r.toml"), "[[rule]]\nkey_pattern = 5\n").unwrap();
    let refused = eventually("the file to be refused", || {
        server.get("/v1/rules").json()["refused"].as_str().map(str::to_owned)
    });
    assert!(refused.contains("key_pattern"), "{refused}");
    assert_eq!(server.get("/v1/rules").json()["rules"].as_array().unwrap().len(), 2);
}

#[test]
fn the_role_read_changes_nothing() {
    let server = Launch::serve(&[]).env("SLUICEGATE_ADMIN_TOKEN", "secret-of-the-admin").start();
    for (method, path) in [
        ("GET", "/v1/rules"),
        ("POST", "/v1/rules"),
        ("PUT", "/v1/rules"),
        ("GET", "/v1/rules/1"),
        ("PUT", "/v1/rules/1"),
        ("PATCH", "/v1/rules/1"),
        ("DELETE", "/v1/rules/1"),
        ("GET", "/v1/rules/changes"),
        ("GET", "/v1/rules/1/changes"),
        ("POST", "/v1/rules/preview"),
        ("POST", "/v1/explain"),
    ] {
        problem(&server.request(method, path, &[], "{}"), 401, None);
    }
    let token = [("authorization", "Bearer secret-of-the-admin")];
    assert_eq!(server.request("GET", "/v1/rules", &token, "").status, 200);
}

/// While the database is down the administration answers 503, and checks continue.
#[test]
fn without_a_database_rules_stay_as_they_are() {
    let postgres = Postgres::start();
    let url = postgres.create("rules");
    let server = Launch::serve(&["--database-timeout-ms", "500"])
        .env("SLUICEGATE_DATABASE_URL", &url)
        .start();
    let limit = || check(&server, &json!({"user_id": 1, "plan": "free"}))["limit"].clone();
    assert_eq!(limit(), 50);
    drop(postgres);
    for response in [
        server.get("/v1/rules"),
        server.get("/v1/rules/1"),
        server.get("/v1/rules/changes"),
        post(&server, &rule("a", 1)),
        put(&server, &json!(1), None, &rule("a", 1)),
        patch(&server, &json!(1), None, &json!({})),
        delete(&server, &json!(1), None),
        send(&server, "PUT", "/v1/rules?dry_run", None, &json!({"rules": []})),
    ] {
        problem(&response, 503, None);
        assert!(response.header("retry-after").is_some(), "{response:?}");
    }
    assert_eq!(limit(), 50);
}

/// T35: after an invalid rule is written to the table by hand, the last valid rules stay in force, the API reports
/// the error, and the rule can be shown, corrected and deleted.
#[test]
fn an_invalid_row_is_shown_and_can_be_corrected() {
    let postgres = Postgres::start();
    let url = postgres.create("rules");
    let server = Launch::serve(&[]).env("SLUICEGATE_DATABASE_URL", &url).start();
    let refused = |is_refused: bool| {
        eventually("the set to be refused, or not any more", || {
            let list = server.get("/v1/rules").json();
            (list["refused"].is_null() != is_refused).then_some(list)
        })
    };
    let request = json!({"user_id": 1, "plan": "free", "cost": 0});
    for mend in [true, false] {
        let insert = "INSERT INTO rate_limit_rules (key_pattern, scope, burst_capacity, tokens, period) \
            VALUES ('bad:{user_id', 'user', 1, 1, 1000000) RETURNING rule_id";
        let id: Value = postgres.sql("rules", insert).trim().parse().unwrap();
        let list = refused(true);
        let why = list["refused"].as_str().unwrap();
        assert!(why.contains(&format!("rule {id}: key_pattern")), "{why}");
        assert_eq!(check(&server, &request)["limit"], 50);
        let shown = server.get(&format!("/v1/rules/{id}"));
        assert_eq!((shown.status, &shown.json()["key_pattern"]), (200, &json!("bad:{user_id")));
        if mend {
            let mended = patch(&server, &id, Some("\"1\""), &json!({"key_pattern": "endpoint:/x"}));
            assert_eq!(mended.status, 200, "{mended:?}");
        } else {
            assert_eq!(delete(&server, &id, None).status, 204);
        }
        // In force when the answer is sent.
        assert_eq!(server.get("/v1/rules").json()["refused"], Value::Null);
    }
}
