//! `sluicegate callers`, directly on the database.

use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use crate::cli::support::Gate;
use crate::common::eventually;

#[test]
fn callers_are_made_shown_once_and_revoked() {
    let gate = Gate::database();
    let none = gate.run(&["callers", "list"]);
    assert_eq!((none.stdout.as_str(), none.stderr.as_str()), ("", "No callers in the database.\n"));
    let create = ["callers", "create", "checkout", "--may", "take,check", "--namespace", "team-a"];
    let dry = gate.run(&[&create[..], &["--dry-run"]].concat());
    assert!(dry.stderr.contains("Nothing was created") && dry.stdout.contains("team-a"), "{dry:?}");
    assert!(gate.json(&["callers", "list"])["callers"].as_array().unwrap().is_empty());

    let made = gate.run(&create);
    assert_eq!(made.code, Some(0), "{made:?}");
    let token = made.stdout.strip_suffix('\n').unwrap();
    assert!(token.starts_with("sg_") && !token.contains(char::is_whitespace), "{made:?}");
    assert_eq!(
        made.stderr,
        "This is the token of the caller checkout, which may check and take. It is not shown again.\n\
         It is the first caller in this database: from now on requests without a caller are refused, unless \
         listen.anonymous = true. Proxies that let requests pass on errors, as Envoy does by default, then limit nothing \
         until they have a caller.\n"
    );
    let again = gate.refused(2, &create);
    assert!(again.contains("name: a caller called `checkout` exists already"), "{again}");

    let proxy =
        ["callers", "create", "proxy", "--may", "authorize", "--certificate", "proxy.example"];
    let shown = gate.json(&[&proxy[..], &["--no-token", "--expires-in", "30d"]].concat());
    assert_eq!((shown.get("token"), &shown["rights"]), (None, &json!(["authorize"])), "{shown}");
    assert!(shown["expires_at"].is_string(), "{shown}");
    let until =
        ["callers", "create", "third", "--may", "check", "--expires-at", "2099-01-01T00:00:00Z"];
    let shown = gate.json(&until);
    assert!(shown["token"].as_str().unwrap().starts_with("sg_"), "{shown}");
    assert_eq!(shown["expires_at"], "2099-01-01T00:00:00.000000Z");

    let list = gate.ok(&["callers", "list"]);
    assert_eq!(list.lines().count(), 4, "{list}");
    assert!(list.contains("checkout  check, take  team-a"), "{list}");
    assert!(list.contains("command line (tester)"), "{list}");
    let list = gate.json(&["callers", "list"]);
    let names: Vec<_> = list["callers"].as_array().unwrap().iter().map(|c| &c["name"]).collect();
    assert_eq!(names, ["checkout", "proxy", "third"]);
    assert_eq!(list["callers"][0]["last_used_at"], Value::Null);
    assert!(!list.to_string().contains("token") && !list.to_string().contains("hash"), "{list}");

    let asked = gate.refused(2, &["callers", "revoke", "checkout"]);
    assert!(asked.contains("Revoke the caller checkout, which may check and take?"), "{asked}");
    assert_eq!(gate.ok(&["callers", "revoke", "checkout", "--dry-run"]), "checkout\n");
    let revoked = gate.run(&["callers", "revoke", "checkout", "--yes"]);
    let said = "The caller checkout was revoked.\n";
    assert_eq!((revoked.code, revoked.stderr.as_str()), (Some(0), said), "{revoked:?}");
    let missing = gate.refused(2, &["callers", "revoke", "checkout", "--yes"]);
    assert!(missing.contains("no caller is called checkout"), "{missing}");
    gate.ok(&["callers", "revoke", "proxy", "--yes"]);
    let last = gate.run(&["callers", "revoke", "third", "--yes"]);
    assert!(last.stderr.contains("No caller is left"), "{last:?}");
}

/// The number of callers is limited: every process has all of them in memory.
#[test]
fn there_is_a_maximum_of_callers() {
    let gate = Gate::database();
    gate.sql(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000) \
         INSERT INTO rate_limit_callers (name, rights, hash) SELECT 'c' || i, 'check', randomblob(32) FROM n",
    );
    let create = ["callers", "create", "more", "--may", "check"];
    let refused = gate.refused(2, &create);
    assert!(refused.contains("name: the maximum of 1000 callers is reached"), "{refused}");
    gate.ok(&["callers", "revoke", "c7", "--yes"]);
    gate.ok(&create);
}

#[test]
fn invalid_callers_are_refused_and_leave_no_file() {
    let gate = Gate::database();
    let out = gate.path("new.token");
    for (arguments, said) in [
        (&["a b"][..], "name: must have 1 to 64 letters"),
        (&["default"], "name: `default` is the user of resp.password"),
        (&["a", "--namespace", "a:b"], "namespace: must have 1 to 64 letters"),
        (&["a", "--certificate", "two names"], "certificate: must be a DNS name or URI"),
    ] {
        let create = [&["callers", "create", "--may", "check"], arguments].concat();
        let refused = gate.refused(2, &[&create[..], &["--out", &out]].concat());
        assert!(refused.contains(said), "{arguments:?}: {refused}");
        let refused = gate.refused(2, &[&create[..], &["--dry-run"]].concat());
        assert!(refused.contains(said), "{arguments:?}: {refused}");
        assert!(!std::path::Path::new(&out).exists(), "{arguments:?}");
    }
    let create = ["callers", "create", "a", "--may", "check", "--out", &out];
    assert_eq!(gate.ok(&create), "");
    let mode = std::fs::metadata(&out).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let second = gate.run(&["callers", "create", "b", "--may", "check"]);
    assert!(!second.stderr.contains("from now on"), "{second:?}");
    let nowhere = ["callers", "list", "--database", "sqlite:missing.db"];
    assert!(crate::common::Launch::new(&nowhere).run().stderr.contains("no such file"));
}

/// A running server follows, and shows the same JSON.
#[test]
fn a_server_goes_by_them() {
    let gate = Gate::server();
    let on_database = |arguments: &[&str]| {
        let database = gate.url();
        let launch = crate::common::Launch::new(arguments).args(&["--database", &database]);
        let finished = launch.run();
        assert_eq!(finished.code, Some(0), "{arguments:?}: {finished:?}");
        finished.stdout
    };
    on_database(&["callers", "create", "checkout", "--may", "check", "--reason", "launch"]);
    let listed = || gate.server_of().get("/v1/callers").json();
    let by_command: Value =
        serde_json::from_str(&on_database(&["callers", "list", "--json"])).unwrap();
    assert_eq!(listed(), by_command);
    assert_eq!(by_command["callers"][0]["created_by"], "command line");
    on_database(&["callers", "revoke", "checkout", "--yes"]);
    eventually("the revocation", || {
        listed()["callers"].as_array().unwrap().is_empty().then_some(())
    });
}
