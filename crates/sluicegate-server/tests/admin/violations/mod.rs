//! Violations: exact counts, filters, export, deletion and the configured privacy.

mod support;
mod trouble;

use std::collections::HashSet;

use serde_json::{Value, json};
use sqlx::{Connection, SqliteConnection};

use self::support::{Denials, all, figure, launch, list, recorded, sum};

#[test]
fn denials_are_on_record_soon_and_counted_exactly() {
    let server = launch().start();
    let mut denials = Denials::of(&server);
    denials.by_user("42", 7);
    denials.by_user("43", 3);
    recorded(&server, "", 10);
    // One row, or two if a new minute has begun.
    for row in recorded(&server, "user_id=42", 7) {
        for (field, expected) in [
            ("bucket_key", json!("user:42")),
            ("ip_address", json!("203.0.113.9")),
            ("endpoint", json!("/pay")),
            ("method", json!("POST")),
            ("rule_id", json!(1)),
            ("tokens_at_time", json!(1)),
            ("mode", json!("enforce")),
        ] {
            assert_eq!(row[field], expected, "{field} of {row}");
        }
        assert!(row["requested_at"].as_str().unwrap() <= row["last_at"].as_str().unwrap(), "{row}");
        assert!(row["violation_id"].as_u64().unwrap() > 0);
    }
    // Further denials are added to the row of their minute.
    denials.by_user("42", 5);
    recorded(&server, "user_id=42", 12);
    let metrics = server.get("/metrics").body;
    assert_eq!(figure(&metrics, r#"sluicegate_violations_noted_total{mode="enforce"}"#), 15);
    assert_eq!(figure(&metrics, "sluicegate_violations_written_total"), 15);
    assert_eq!(figure(&metrics, "sluicegate_violations_waiting_rows"), 0);
    assert_eq!(figure(&metrics, r#"sluicegate_violations_dropped_total{reason="full"}"#), 0);
}

#[test]
fn shadow_denials_are_marked_and_counted_apart() {
    let server = launch().start();
    // Rule 1 denied each; rule 2, in shadow mode, would have.
    Denials::of(&server).send(&json!({"user_id": "1", "tenant": "acme"}), 4);
    Denials::of(&server).send(&json!({"tenant": "acme"}), 2);
    recorded(&server, "", 10);
    let shadow = list(&server, "mode=shadow");
    assert_eq!(sum(&shadow), 6);
    for row in &shadow {
        assert_eq!((&row["mode"], &row["bucket_key"]), (&json!("shadow"), &json!("tenant:acme")));
    }
    assert_eq!(sum(&list(&server, "mode=enforce")), 4);
    let metrics = server.get("/metrics").body;
    assert_eq!(figure(&metrics, r#"sluicegate_violations_noted_total{mode="enforce"}"#), 4);
    assert_eq!(figure(&metrics, r#"sluicegate_violations_noted_total{mode="shadow"}"#), 6);
}

#[test]
fn a_request_that_two_rules_deny_is_one_violation() {
    let server = launch().start();
    Denials::of(&server).send(&json!({"user_id": "1", "address": "yes"}), 3);
    Denials::of(&server).by_user("1", 1);
    let rows = recorded(&server, "", 4);
    // Both deny for good; the scope of addresses comes before that of users.
    assert_eq!(sum(&list(&server, "rule_id=3")), 3, "{rows:?}");
}

#[test]
fn recording_is_a_setting() {
    for (record, expected) in [("enforced", 4), ("none", 0)] {
        let server = launch().env("SLUICEGATE_AUDIT_RECORD", record).start();
        Denials::of(&server).send(&json!({"user_id": "1", "tenant": "acme"}), 4);
        let rows = recorded(&server, "", expected);
        assert!(rows.iter().all(|row| row["mode"] == "enforce"), "{rows:?}");
        let noted = server.get("/v1/stats").json()["audit"]["noted"].clone();
        assert_eq!(noted, expected, "{record}");
    }
}

#[test]
fn filters_find_what_they_ask_for() {
    let server = launch().start();
    let mut denials = Denials::of(&server);
    denials.by_user("42", 1);
    denials.send(&json!({"user_id": "44", "ip": "2001:DB8::1", "endpoint": "/x y"}), 2);
    denials.send(&json!({"user_id": "a&b", "ip": "203.0.113.10"}), 4);
    denials.send(&json!({"tenant": "acme", "ip": "203.0.113.11"}), 8);
    recorded(&server, "", 15);
    for (query, expected) in [
        ("user_id=42", 1),
        ("user_id=a%26b", 4),
        ("user_id=nobody", 0),
        ("user_id=%00", 0),
        ("ip=203.0.113.9", 1),
        ("ip=2001:db8:0::1", 2),
        ("ip=::ffff:203.0.113.10", 4),
        ("endpoint=/pay", 13),
        ("endpoint=/x+y", 2),
        ("bucket_key=user:42", 1),
        ("bucket_key=tenant:acme", 8),
        ("rule_id=1", 7),
        ("rule_id=2&mode=shadow", 8),
        ("rule_id=2&mode=enforce", 0),
        ("rule_id=18446744073709551615", 0),
        ("from=2020-01-01T00:00:00Z", 15),
        ("to=2020-01-01T00:00:00Z", 0),
        ("from=9999-01-01T00:00:00Z", 0),
        ("from=0000-01-01T00:00:00Z&to=9999-12-30T00:00:00Z", 15),
        ("user_id=42&ip=203.0.113.10", 0),
    ] {
        assert_eq!(sum(&list(&server, query)), expected, "{query}");
    }
}

#[test]
fn wrong_parameters_are_named() {
    let server = launch().start();
    for (path, field) in [
        ("?after=x", "after"),
        ("?after=", "after"),
        ("?limit=0", "limit"),
        ("?limit=1001", "limit"),
        ("?ip=x", "ip"),
        ("?rule_id=-1", "rule_id"),
        ("?mode=off", "mode"),
        ("?from=yesterday", "from"),
        ("?to=2026-01-01", "to"),
        ("?format=xml", "format"),
        ("?rule=1", "rule"),
        ("?user_id=1&user_id=2", "user_id"),
        ("/top", "by"),
        ("/top?by=rule_id", "by"),
        ("/top?by=ip&limit=x", "limit"),
    ] {
        let response = server.get(&format!("/v1/violations{path}"));
        assert_eq!((response.status, &response.json()["field"]), (400, &json!(field)), "{path}");
    }
    for path in ["", "?rule_id=1", "?from=2026-01-01T00:00:00Z"] {
        let response = server.request("DELETE", &format!("/v1/violations{path}"), &[], "");
        assert_eq!(response.status, 400, "{path}");
    }
}

#[test]
fn pages_neither_lose_nor_repeat_while_new_ones_come() {
    const BEFORE: u64 = 130;
    let server = launch().env("SLUICEGATE_AUDIT_ROWS_PER_SECOND", "1000").start();
    let mut denials = Denials::of(&server);
    for user in 0..BEFORE {
        denials.by_user(&format!("before{user}"), 1);
    }
    recorded(&server, "", BEFORE);
    let (mut seen, mut after, mut pages) = (Vec::new(), String::new(), 0);
    loop {
        let page = server.get(&format!("/v1/violations?limit=20{after}")).json();
        let rows = page["violations"].as_array().unwrap();
        assert!(rows.len() <= 20);
        seen.extend(rows.iter().cloned());
        pages += 1;
        denials.by_user(&format!("meanwhile{pages}"), 1);
        recorded(&server, "", BEFORE + pages);
        let Some(next) = page["next"].as_str() else { break };
        after = format!("&after={next}");
    }
    assert_eq!(pages, BEFORE.div_ceil(20));
    let ids: HashSet<_> = seen.iter().map(|row| row["violation_id"].as_u64().unwrap()).collect();
    assert_eq!((ids.len(), seen.len() as u64), (seen.len(), BEFORE));
    let users = seen.iter().filter(|row| row["user_id"].as_str().unwrap().starts_with("before"));
    assert_eq!(users.count() as u64, BEFORE);
    let times: Vec<_> = seen.iter().map(|row| row["requested_at"].as_str().unwrap()).collect();
    assert!(times.is_sorted_by(|newer, older| newer >= older), "newest first");
}

#[test]
fn as_csv_nothing_is_a_formula() {
    let server = launch().start();
    let evil = "=HYPERLINK(\"http://evil\",\"x\")";
    Denials::of(&server).send(&json!({"user_id": evil, "method": "-1"}), 1);
    recorded(&server, "", 1);
    let json = list(&server, "").remove(0);
    assert_eq!(json["user_id"], evil, "JSON has it as it is");
    for response in [
        server.get("/v1/violations?format=csv"),
        server.request("GET", "/v1/violations", &[("accept", "text/csv")], ""),
    ] {
        assert!(response.header("content-type").unwrap().starts_with("text/csv"), "{response:?}");
        let text = |name: &str| json[name].as_str().unwrap();
        let expected = format!(
            "violation_id,bucket_key,user_id,ip_address,endpoint,method,requested_at,last_at,\
             tokens_at_time,rule_id,count,mode\r\n\
             {},\"user:=HYPERLINK(\"\"http://evil\"\",\"\"x\"\")\",\"'=HYPERLINK(\"\"http://evil\"\",\"\"x\"\")\",\
             203.0.113.9,/pay,'-1,{},{},1,1,1,enforce\r\n",
            json["violation_id"],
            text("requested_at"),
            text("last_at"),
        );
        assert_eq!(response.body, expected);
        assert_eq!(response.header("x-sluicegate-next"), None);
    }
    Denials::of(&server).by_user("2", 1);
    recorded(&server, "", 2);
    let page = server.get("/v1/violations?format=csv&limit=1");
    let next = page.header("x-sluicegate-next").unwrap();
    let rest = server.get(&format!("/v1/violations?format=csv&after={next}"));
    assert_eq!(rest.body.lines().count(), 2, "{rest:?}");
}

#[test]
fn top_offenders_first() {
    let server = launch().start();
    let mut denials = Denials::of(&server);
    denials.by_user("often", 9);
    denials.by_user("seldom", 2);
    denials.send(&json!({"user_id": "often", "ip": "203.0.113.77"}), 1);
    recorded(&server, "", 12);
    let top = |query: &str| server.get(&format!("/v1/violations/top?{query}")).json();
    let by_user = top("by=user_id");
    assert_eq!(by_user["by"], "user_id");
    let pairs = |top: &Value| -> Vec<(String, u64)> {
        let rows = top["top"].as_array().unwrap().iter();
        rows.map(|row| (row["value"].as_str().unwrap().into(), row["count"].as_u64().unwrap()))
            .collect()
    };
    assert_eq!(pairs(&by_user), [("often".into(), 10), ("seldom".into(), 2)]);
    assert!(by_user["top"][0]["violations"].as_u64().unwrap() >= 1);
    assert!(by_user["top"][0]["last_at"].is_string());
    assert_eq!(pairs(&top("by=bucket_key&limit=1")), [("user:often".into(), 10)]);
    assert_eq!(pairs(&top("by=endpoint")), [("/pay".into(), 12)]);
    assert_eq!(pairs(&top("by=ip&mode=shadow")), []);
}

#[test]
fn a_subject_is_deleted_whether_written_or_not() {
    let server = launch().env("SLUICEGATE_AUDIT_ROWS_PER_SECOND", "1").start();
    let mut denials = Denials::of(&server);
    denials.by_user("gone", 3);
    recorded(&server, "user_id=gone", 3);
    // The row of this second is written: these are pending.
    denials.by_user("stays", 1);
    denials.by_user("gone", 4);
    let deleted = server.request("DELETE", "/v1/violations?user_id=gone", &[], "");
    assert_eq!(deleted.status, 200, "{deleted:?}");
    recorded(&server, "user_id=stays", 1);
    let metrics = server.get("/metrics").body;
    let forgotten = figure(&metrics, r#"sluicegate_violations_dropped_total{reason="deleted"}"#);
    let written = figure(&metrics, "sluicegate_violations_written_total");
    assert_eq!(written + forgotten, 8);
    assert_eq!(list(&server, "user_id=gone"), Vec::<Value>::new());
    assert_eq!(sum(&all(&server)), 1);
    let again = server.request("DELETE", "/v1/violations?user_id=gone", &[], "");
    assert_eq!(again.json(), json!({"deleted": 0}));
}

#[test]
fn deleted_violations_are_erased_from_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("sluicegate.db");
    let url = format!("sqlite:{}", file.display());
    let server = launch().env("SLUICEGATE_DATABASE_URL", &url).start();
    let mut denials = Denials::of(&server);
    denials.by_user("user-canary", 2);
    denials.by_user("somebody-else", 2);
    recorded(&server, "", 4);
    let deleted = server.request("DELETE", "/v1/violations?user_id=user-canary", &[], "");
    assert_eq!(deleted.status, 200, "{deleted:?}");
    drop(denials);
    server.signal("TERM");
    assert_eq!(server.wait().code, Some(0));
    // Moves the write-ahead log to the file.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut last = SqliteConnection::connect(&url).await.unwrap();
        sqlx::query("PRAGMA wal_checkpoint(TRUNCATE)").execute(&mut last).await.unwrap();
        last.close().await.unwrap();
    });
    let bytes = support::database_bytes(folder.path());
    assert!(contains(&bytes, b"somebody-else") && !contains(&bytes, b"user-canary"));
}

#[test]
fn the_end_leaves_nothing_unwritten() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", folder.path().join("shared.db").display());
    let server = launch().env("SLUICEGATE_DATABASE_URL", &url).start();
    let mut denials = Denials::of(&server);
    for user in 0..20 {
        denials.by_user(&user.to_string(), 3);
    }
    drop(denials);
    server.signal("TERM");
    let finished = server.wait();
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert!(!finished.stderr.contains("violations dropped"), "{finished:?}");
    // Another process reads all of them from the same file.
    let other = launch().env("SLUICEGATE_DATABASE_URL", &url).start();
    assert_eq!(sum(&all(&other)), 60);
}

#[test]
fn deleting_needs_more_than_reading() {
    let server = launch().env("SLUICEGATE_ADMIN_TOKEN", "a-token-of-some-length").start();
    assert_eq!(server.get("/v1/violations").status, 401);
    assert_eq!(server.get("/v1/violations/top?by=ip").status, 401);
    assert_eq!(server.request("DELETE", "/v1/violations?user_id=1", &[], "").status, 401);
    let bearer = [("authorization", "Bearer a-token-of-some-length")];
    assert_eq!(server.request("DELETE", "/v1/violations?user_id=1", &bearer, "").status, 200);
}

#[test]
fn hashed_ids_and_addresses_are_nowhere_in_the_database() {
    let server = launch()
        .env("SLUICEGATE_AUDIT_PRIVACY", "hashed")
        .env("SLUICEGATE_AUDIT_PRIVACY_KEY", "a-key-of-some-length")
        .start();
    let mut denials = Denials::of(&server);
    let request =
        json!({"user_id": "user-canary", "ip": "198.51.100.77", "tenant": "tenant-canary"});
    denials.send(&request, 3);
    let rows = recorded(&server, "user_id=user-canary&mode=enforce", 3);
    assert_eq!(sum(&list(&server, "ip=198.51.100.77&mode=shadow")), 3);
    let (id, key) = (rows[0]["user_id"].as_str().unwrap(), rows[0]["bucket_key"].as_str().unwrap());
    assert!(id.starts_with("h:") && key == format!("user:{id}"), "{rows:?}");
    assert_eq!(sum(&list(&server, &format!("user_id={id}&mode=enforce"))), 3);
    let files = support::database_bytes(&server.folder());
    let canaries = ["user-canary", "198.51.100.77", "tenant-canary"];
    for canary in canaries {
        assert!(!contains(&files, canary.as_bytes()), "{canary} is in the database");
    }
    assert!(contains(&files, id.as_bytes()), "or the test looks in the wrong place");
}

#[test]
fn cut_addresses_are_nowhere_in_the_database() {
    let server = launch().env("SLUICEGATE_AUDIT_PRIVACY", "truncated").start();
    let mut denials = Denials::of(&server);
    for ip in ["198.51.100.77", "198.51.100.78"] {
        denials.send(&json!({"ip": ip, "address": "yes"}), 2);
    }
    denials.send(&json!({"ip": "2001:db8:1:2::3", "address": "yes"}), 2);
    let rows = recorded(&server, "ip=198.51.100.200", 4);
    // Two addresses of a network are recorded as one bucket.
    assert!(rows.iter().all(|row| row["bucket_key"] == "address:198.51.100.0/24"), "{rows:?}");
    recorded(&server, "ip=2001:db8:1::/48", 2);
    let files = support::database_bytes(&server.folder());
    for canary in ["198.51.100.7", "2001:db8:1:2"] {
        assert!(!contains(&files, canary.as_bytes()), "{canary} is in the database");
    }
}

fn contains(bytes: &[u8], text: &[u8]) -> bool {
    bytes.windows(text.len()).any(|window| window == text)
}
