//! The history over HTTP: acts are recorded before they are done, and refused if they cannot be.

use serde_json::{Value, json};
use sluicegate_tests::postgres::Postgres;
use tempfile::TempDir;

use crate::common::{Launch, Response, Server, check, eventually, on_every_database, with_rules};

fn history(server: &Server, query: &str) -> Vec<Value> {
    list(&server.get(&format!("/v1/history?{query}")))
}

fn list(answer: &Response) -> Vec<Value> {
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()["history"].as_array().unwrap().clone()
}

fn send(server: &Server, method: &str, path: &str, body: &str) -> Response {
    server.request(method, path, &[("x-sluicegate-reason", "incident 7")], body)
}

/// Makes the buckets of rule 1 refill slowly, and takes a token from that of a user.
fn spend(server: &Server, user_id: &str) {
    let slow = r#"{"tokens": 1, "period": 86400, "burst_capacity": 50}"#;
    assert_eq!(server.request("PATCH", "/v1/rules/1", &[], slow).status, 200);
    check(server, &json!({"user_id": user_id, "plan": "free"}));
}

fn remaining(server: &Server, subject: &str) -> Value {
    server.get(&format!("/v1/buckets/1/{subject}")).json()["remaining"].clone()
}

#[test]
fn every_act_leaves_one_record() {
    on_every_database(
        || Launch::serve(&[]),
        |server| {
            spend(server, "42");
            let mut seen = 1;
            let mut one = |method, path: &str, body: Value, act: &str| {
                let body = if body.is_null() { String::new() } else { body.to_string() };
                let answer = send(server, method, path, &body);
                assert!(answer.status < 300, "{path}: {answer:?}");
                let mut entries = history(server, "limit=1000");
                assert_eq!(entries.len(), seen + 1, "{path}");
                seen += 1;
                let entry = entries.remove(0);
                assert_eq!(
                    (&entry["act"], &entry["who"]),
                    (&json!(act), &json!("local")),
                    "{entry}"
                );
                assert_eq!(
                    (&entry["address"], &entry["reason"]),
                    (&json!("127.0.0.1"), &json!("incident 7"))
                );
                assert_eq!((&entry["outcome"], &entry["count"]), (&json!("done"), &json!(1)));
                entry
            };
            let entry = one("POST", "/v1/buckets/1/42/grant", json!({"tokens": 1}), "bucket.grant");
            assert_eq!((&entry["rule_id"], &entry["subject"]), (&json!(1), &json!("42")));
            assert_eq!(entry["target"], "user:42");
            assert_eq!(entry["before"], json!({"remaining": 49, "limit": 50}));
            assert_eq!(entry["after"], json!({"remaining": 50, "limit": 50, "tokens": 1}));
            one("POST", "/v1/buckets/1/42/refund", json!({"tokens": 1}), "bucket.refund");
            one("POST", "/v1/buckets/1/42/reset", Value::Null, "bucket.reset");
            let entry = one("DELETE", "/v1/buckets/some%20key", Value::Null, "bucket.reset");
            assert_eq!(entry["target"], "some key");
            let entry =
                one("DELETE", "/v1/violations?user_id=42", Value::Null, "violations.delete");
            assert_eq!(entry["after"], json!({"by": ["user_id"], "deleted": 0}));
            let entry = one("PATCH", "/v1/rules/1", json!({"burst_capacity": 60}), "rule.update");
            assert_eq!(
                (&entry["before"]["burst_capacity"], &entry["after"]["burst_capacity"]),
                (&json!(50), &json!(60))
            );
            one(
                "POST",
                "/v1/overrides",
                json!({"rule_id": 1, "subject": "=1+1", "blocked": true}),
                "override.set",
            );
            let caller = json!({"name": "checkout", "rights": ["check"]});
            one("POST", "/v1/callers", caller, "caller.create");
            one("DELETE", "/v1/callers/checkout", Value::Null, "caller.revoke");

            let dry = send(server, "DELETE", "/v1/rules/2?dry_run", "");
            assert_eq!(
                (dry.status, history(server, "").len()),
                (200, seen),
                "a dry run leaves none"
            );
            assert_eq!(history(server, "act=bucket.reset").len(), 2);
            assert_eq!(history(server, "rule_id=1&subject=42").len(), 3);
            assert_eq!(history(server, "who=token:other").len(), 0);
            for wrong in ["act=x", "rule_id=x", "after=x", "from=x", "limit=0", "format=x", "x=1"] {
                assert_eq!(server.get(&format!("/v1/history?{wrong}")).status, 400, "{wrong}");
            }
            let csv = server.get("/v1/history?format=csv&limit=3");
            assert_eq!(csv.body.lines().count(), 4, "{}", csv.body);
            assert!(csv.body.contains(",'=1+1,"), "{}", csv.body);
            let next = csv.header("x-sluicegate-next").unwrap().to_owned();
            assert_eq!(history(server, &format!("after={next}")).len(), seen - 3);
        },
    );
}

#[test]
fn an_act_that_cannot_be_recorded_is_not_done() {
    let postgres = Postgres::start();
    let url = postgres.create("history");
    let launch = || {
        let launch = Launch::serve(&["--database-timeout-ms", "1000"]);
        launch.env("SLUICEGATE_DATABASE_URL", &url).start()
    };
    let (server, other) = (launch(), launch());
    spend(&server, "42");
    postgres.kill();
    for (path, body) in [
        ("1/42/grant", r#"{"tokens": 1}"#),
        ("1/42/refund", r#"{"tokens": 1}"#),
        ("1/42/reset", ""),
    ] {
        let answer = send(&server, "POST", &format!("/v1/buckets/{path}"), body);
        assert_eq!(answer.status, 503, "{answer:?}");
        assert!(answer.body.contains("nothing was changed"), "{answer:?}");
    }
    assert_eq!(remaining(&server, "42"), 49);
    postgres.restart();
    eventually("the grant to be recorded", || {
        let answer = send(&server, "POST", "/v1/buckets/1/42/grant", r#"{"tokens": 1}"#);
        (answer.status == 200).then_some(())
    });
    assert_eq!(remaining(&server, "42"), 50);
    let entries = eventually("the list of another process", || {
        let answer = other.get("/v1/history");
        (answer.status == 200).then(|| list(&answer))
    });
    assert_eq!(entries.len(), 2, "the rule and the grant: {entries:?}");
    assert_eq!(entries[0]["after"]["remaining"], 50);
}

#[test]
fn a_flood_of_wrong_tokens_leaves_few_rows() {
    let folder = TempDir::with_prefix("sluicegate-history-").unwrap();
    let url = format!("sqlite:{}", folder.path().join("t.db").display());
    let launch = || {
        let launch = Launch::serve(&[]).env("SLUICEGATE_ADMIN_TOKEN", "a-long-enough-token");
        launch
            .env("SLUICEGATE_DATABASE_URL", &url)
            .env("SLUICEGATE_AUDIT_PRIVACY", "truncated")
            .start()
    };
    let right = ("authorization", "Bearer a-long-enough-token");
    let server = launch();
    let path = "/v1/buckets/7/203.0.113.9/reset";
    assert_eq!(server.request("POST", path, &[right], "").status, 200);
    for n in 0..100 {
        let wrong = format!("Bearer wrong {n}");
        let status = server.request("GET", "/v1/rules", &[("authorization", &wrong)], "").status;
        assert!([401, 429].contains(&status));
    }
    server.signal("TERM");
    server.wait();
    let finished = Launch::new(&["history", "--database", &url, "--json"])
        .env("SLUICEGATE_AUDIT_PRIVACY", "truncated")
        .run();
    let list: Value =
        serde_json::from_str(&finished.stdout).unwrap_or_else(|_| panic!("{finished:?}"));
    let (sums, acts): (Vec<_>, Vec<_>) =
        list["history"].as_array().unwrap().iter().partition(|row| row["act"] == "sign_in.failed");
    assert!((1..=3).contains(&sums.len()), "one a minute: {sums:?}");
    assert_eq!(sums.iter().map(|row| row["count"].as_u64().unwrap()).sum::<u64>(), 100);
    assert_eq!((&sums[0]["address"], &sums[0]["target"]), (&json!("127.0.0.0/24"), &json!("http")));
    assert_eq!((&sums[0]["who"], acts.len()), (&json!("unknown"), 1));
    assert_eq!((&acts[0]["who"], &acts[0]["subject"]), (&json!("admin"), &json!("203.0.113.0/24")));
    for subject in ["203.0.113.9", "::ffff:203.0.113.9"] {
        let table = Launch::new(&["history", "--database", &url, "--subject", subject])
            .env("SLUICEGATE_AUDIT_PRIVACY", "truncated")
            .run();
        assert_eq!(table.stdout.lines().count(), 2, "{table:?}");
        assert!(table.stdout.contains("bucket.reset"), "{table:?}");
    }
}

#[test]
fn without_a_database_the_log_is_the_history() {
    let rule = "[[rule]]\nrule_id = 1\nkey_pattern = \"user:{user_id}\"\ntokens = 1\nperiod = 1\n";
    let server = with_rules(rule).env("SLUICEGATE_DATABASE_URL", "").start();
    assert_eq!(send(&server, "POST", "/v1/buckets/1/42/reset", "").status, 200);
    let line = server.wait_for_log("bucket reset");
    assert_eq!(
        (&line["by"], &line["reason"], &line["address"]),
        (&json!("local"), &json!("incident 7"), &json!("127.0.0.1"))
    );
    assert_eq!(server.get("/v1/history").status, 503);
}

/// With the token of an operator, a refund over a data door is an act, with the operator's name.
#[test]
fn refunds_of_administrators_are_acts_on_every_door() {
    const TOKEN: &str = "correct-horse-battery-staple";
    let server = Launch::serve(&[]).env("SLUICEGATE_ADMIN_TOKEN", TOKEN).start();
    let bearer = format!("Bearer {TOKEN}");
    let ask = |method: &str, path: &str, body: &str| {
        server.request(method, path, &[("authorization", &bearer)], body)
    };
    let key = r#"{"key": "uploads", "capacity": 9, "refill_rate": 1, "amount": 3}"#;
    assert_eq!(ask("POST", "/v1/refund", key).status, 200);
    assert_eq!(ask("POST", "/v1/refund", r#"{"user_id": "42", "amount": 5}"#).status, 200);
    // A caller is only added up, and a refund without a bucket not at all.
    let caller = ask("POST", "/v1/callers", r#"{"name": "shop", "rights": ["check", "refund"]}"#);
    let descriptors = r#"{"domain": "edge", "descriptors": [
        {"entries": [{"key": "user_id", "value": "42"}], "isNegativeHits": true, "hitsAddend": 4}]}"#;
    assert_eq!(ask("POST", "/json", descriptors).status, 200);
    let shop = format!("Bearer {}", caller.json()["token"].as_str().unwrap());
    let given = server.request("POST", "/v1/refund", &[("authorization", &shop)], key);
    assert_eq!(given.status, 200, "{}", given.body);

    let acts = list(&ask("GET", "/v1/history?act=bucket.refund", ""));
    let shown = |act: &Value| {
        let (who, target) = (act["who"].clone(), act["target"].clone());
        (who, target, act["after"]["tokens"].clone(), act["outcome"].clone())
    };
    let expected = [(Value::Null, 4), (Value::Null, 5), (json!("uploads"), 3)];
    let expected =
        expected.map(|(target, tokens)| (json!("admin"), target, json!(tokens), json!("done")));
    assert_eq!(acts.iter().map(shown).collect::<Vec<_>>(), expected);
    assert!(acts.iter().all(|act| act["address"] == "127.0.0.1"));
}
