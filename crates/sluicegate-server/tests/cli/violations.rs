//! `sluicegate violations`, with a server and directly on its database.

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use crate::cli::support::Gate;
use crate::common::{Launch, eventually};

/// Server that has denied two users and recorded it.
fn denied() -> Gate {
    denied_by(Launch::serve(&[]))
}

fn denied_by(launch: Launch) -> Gate {
    let gate = Gate::of(launch.start());
    for (user, denials) in [("=evil\u{1b}[2J", 3), ("42", 1)] {
        let check = ["check", "--user-id", user, "--endpoint", "/payment", "--ip", "203.0.113.9"];
        for _ in 0..3 + denials {
            gate.run(&check);
        }
    }
    eventually("two violations", || {
        let list = gate.json(&["violations", "list"]);
        let count: u64 =
            list["violations"].as_array()?.iter().filter_map(|row| row["count"].as_u64()).sum();
        (count == 4).then_some(())
    });
    gate
}

/// Runs a command with the server and with its database.
fn both(gate: &Gate, arguments: &[&str]) -> [String; 2] {
    let direct = Launch::new(arguments).args(&["--database", &gate.url()]).run();
    assert_eq!(direct.code, Some(0), "{arguments:?}: {direct:?}");
    [gate.ok(arguments), direct.stdout]
}

fn both_json(gate: &Gate, arguments: &[&str]) -> Value {
    let [one, other] = both(gate, &[arguments, &["--json"]].concat());
    assert_eq!(one, other, "{arguments:?}");
    serde_json::from_str(&one).unwrap()
}

#[test]
fn violations_are_listed_and_summed_up() {
    let gate = denied();
    for shown in both(&gate, &["violations", "list", "--user-id", "42"]) {
        assert_eq!(shown.lines().count(), 2, "{shown}");
        assert!(shown.contains("payment:42") && shown.contains("203.0.113.9"), "{shown}");
        assert!(shown.trim_end().ends_with("enforce"), "{shown}");
    }
    for shown in both(&gate, &["violations", "list", "--ip", "203.0.113.9", "--since", "1h"]) {
        assert!(shown.contains("payment:=evil\\u001b[2J") && !shown.contains('\u{1b}'), "{shown}");
    }
    let list = both_json(
        &gate,
        &["violations", "list", "--rule", "6", "--mode", "enforce", "--endpoint", "/payment"],
    );
    assert_eq!(list["violations"].as_array().unwrap().len(), 2);
    let empty = both_json(&gate, &["violations", "list", "--until", "1h"]);
    assert_eq!(empty, json!({"violations": [], "next": null}));

    let first = both_json(&gate, &["violations", "list", "--limit", "1"]);
    let next = first["next"].as_str().unwrap();
    let second = both_json(&gate, &["violations", "list", "--limit", "1", "--after", next]);
    assert_ne!(first["violations"][0], second["violations"][0]);

    for shown in both(&gate, &["violations", "top", "--limit", "1"]) {
        assert!(shown.starts_with("USER  "), "{shown}");
        assert!(shown.contains("=evil\\u001b[2J  3 "), "{shown}");
    }
    let top = both_json(&gate, &["violations", "top", "--by", "ip"]);
    assert_eq!(
        (&top["top"][0]["value"], &top["top"][0]["count"]),
        (&json!("203.0.113.9"), &json!(4))
    );
}

#[test]
fn violations_go_to_a_file_that_is_safe_to_open() {
    let gate = denied();
    let [one, other] = both(&gate, &["violations", "export"]);
    assert_eq!(one, other);
    assert!(one.starts_with("violation_id,bucket_key,user_id,"), "{one}");
    assert!(one.contains(",'=evil\u{1b}[2J,203.0.113.9,/payment,"), "{one}");
    let out = gate.path("violations.json");
    let exported =
        gate.run(&["violations", "export", "--format", "json", "--out", &out, "--user-id", "42"]);
    assert!(exported.stderr.ends_with("has 1 violation.\n"), "{exported:?}");
    assert_eq!(
        serde_json::from_str::<Value>(&gate.read("violations.json")).unwrap()["violations"][0]["user_id"],
        json!("42")
    );
    let mode = std::fs::metadata(&out).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

/// More violations than a page: each is written once, with a server and without.
#[test]
fn many_violations_are_written_page_by_page() {
    const USERS: usize = 1_001;
    let gate = Gate::of(Launch::serve(&["--audit-rows-per-second", "10000"]).start());
    let mut client = gate.server_of().connect();
    for user in 0..USERS {
        // Above the capacity of the bucket: denied at once.
        let body = json!({"user_id": user, "endpoint": "/payment", "cost": 4}).to_string();
        let headers = [("content-type", "application/json")];
        client.request("POST", "/v1/check", &headers, body.as_bytes()).unwrap();
    }
    let rule = ["violations", "export", "--rule", "6"];
    let rows = |text: &str| text.lines().skip(1).map(str::to_owned).collect::<BTreeSet<_>>().len();
    eventually("all violations", || (rows(&gate.ok(&rule)) == USERS).then_some(()));
    let [one, other] = both(&gate, &rule);
    assert_eq!((rows(&one), one.lines().count()), (USERS, USERS + 1));
    assert_eq!(one, other);
    let [one, other] = both(&gate, &[&rule[..], &["--format", "json"]].concat());
    assert_eq!(one, other);
    let list: Value = serde_json::from_str(&one).unwrap();
    assert_eq!(list["violations"].as_array().unwrap().len(), USERS);
    assert_eq!(list["next"], json!(null));
    let out = gate.path("all.csv");
    let exported = gate.run(&[&rule[..], &["--out", &out]].concat());
    assert_eq!(exported.stderr, format!("{out} has {USERS} violations.\n"));
    let empty: Value = serde_json::from_str(&gate.ok(&[
        "violations",
        "export",
        "--format",
        "json",
        "--user-id",
        "nobody",
    ]))
    .unwrap();
    assert_eq!(empty, json!({"violations": [], "next": null}));
}

#[test]
fn violations_of_a_subject_are_deleted() {
    let gate = denied();
    let direct =
        |arguments: &[&str]| Launch::new(arguments).args(&["--database", &gate.url()]).run();
    assert!(gate.refused(2, &["violations", "delete", "--yes"]).contains("name whose records"));
    let unasked = gate.refused(2, &["violations", "delete", "--user-id", "42"]);
    assert!(unasked.contains("--yes"), "{unasked}");
    let dry = gate.run(&["violations", "delete", "--user-id", "42", "--dry-run"]);
    assert!(dry.stderr.contains("1 record would be."), "{dry:?}");
    assert_eq!(
        gate.json(&["violations", "delete", "--user-id", "42", "--yes"]),
        json!({"deleted": 1})
    );
    let deleted = direct(&["violations", "delete", "--ip", "203.0.113.9", "--yes"]);
    assert_eq!(
        (deleted.code, deleted.stderr.as_str()),
        (Some(0), "1 record was deleted.\n"),
        "{deleted:?}"
    );
    let none = gate.run(&["violations", "list"]);
    assert_eq!((none.stdout.as_str(), none.stderr.as_str()), ("", "No violations.\n"));
}

/// Filters take the original ids where pseudonyms are recorded, also without a server.
#[test]
fn pseudonymised_violations_are_found_without_a_server() {
    for privacy in ["hashed", "truncated"] {
        let key = ("SLUICEGATE_AUDIT_PRIVACY_KEY", "a-key-of-some-length");
        let launch = Launch::serve(&["--audit-privacy", privacy]).env(key.0, key.1);
        let gate = denied_by(launch);
        let url = gate.url();
        let settings = gate.file("mine.toml", &format!("[audit]\nprivacy = \"{privacy}\"\n"));
        let by_environment = |arguments: &[&str]| {
            let launch = Launch::new(arguments).env(key.0, key.1);
            launch.env("SLUICEGATE_AUDIT_PRIVACY", privacy).env("SLUICEGATE_DATABASE_URL", &url)
        };
        let list = ["violations", "list", "--json", "--user-id", "42", "--ip", "203.0.113.9"];
        let found = gate.ok(&list);
        assert!(found.contains("violation_id") && !found.contains("203.0.113.9"), "{found}");
        for (launch, target) in [
            (by_environment(&list), ["--database", "settings"]),
            (by_environment(&list), ["--database", &url]),
        ] {
            let direct = launch.args(&target).run();
            assert_eq!((direct.code, direct.stdout.as_str()), (Some(0), &*found), "{direct:?}");
        }
        let by_file = Launch::new(&list).args(&["--database", &url, "--config", &settings]);
        let direct = by_file.env(key.0, key.1).run();
        assert_eq!((direct.code, direct.stdout.as_str()), (Some(0), &*found), "{direct:?}");
        // With other settings the command searches for another pseudonym.
        let raw = Launch::new(&list).args(&["--database", &url]).run();
        assert!(raw.code == Some(0) && raw.stdout.contains("[]"), "{raw:?}");

        let delete = ["violations", "delete", "--user-id", "42", "--database", "settings"];
        let dry = by_environment(&[&delete[..], &["--dry-run"]].concat()).run();
        assert!(dry.stderr.contains("1 record would be."), "{dry:?}");
        let deleted = by_environment(&[&delete[..], &["--yes"]].concat()).run();
        assert_eq!(deleted.stderr, "1 record was deleted.\n", "{deleted:?}");
        let none = gate.run(&list);
        assert!(none.stdout.contains("[]"), "{none:?}");
        let wrong =
            Launch::new(&["violations", "list", "--ip", "nowhere", "--database", &url]).run();
        assert!(
            wrong.code == Some(2) && wrong.stderr.contains("ip: is not an address"),
            "{wrong:?}"
        );
    }
}
