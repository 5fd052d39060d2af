//! `sluicegate overrides`.

use serde_json::json;

use crate::cli::support::Gate;

#[test]
fn a_customer_is_raised_freed_and_blocked() {
    let gate = Gate::server();
    let check = ["check", "--user-id", "42", "--plan", "free", "--cost", "0"];
    let set = |instead: &[&str]| {
        let of = ["overrides", "set", "--rule", "1", "--subject", "42"];
        gate.run(&[&of[..], instead].concat())
    };
    let dry = set(&["--rate", "100/s burst 500", "--dry-run"]);
    assert!(dry.code == Some(0) && dry.stderr.contains("Nothing was changed"), "{dry:?}");
    assert_eq!(gate.json(&check)["limit"], json!(50));

    let raised = set(&["--rate", "100/s burst 500", "--for", "2h", "--reason", "incident 123"]);
    assert_eq!(
        (raised.code, raised.stderr.as_str()),
        (
            Some(0),
            "Override 1 is in force.\nnote: rule 1 is for plan free only: under other plans, and without one, \
             this override has no effect\n"
        ),
        "{raised:?}"
    );
    assert!(raised.stdout.contains("instead      100/s burst 500\n"), "{raised:?}");
    assert!(raised.stdout.contains("reason       incident 123\n"), "{raised:?}");
    assert_eq!(gate.json(&check)["limit"], json!(500));
    let explained = gate.ok(&["explain", "--user-id", "42", "--plan", "free"]);
    assert!(explained.contains("override: 100/s burst 500"), "{explained}");

    // It exists already: another operator is told who set it.
    let refused = set(&["--unlimited", "--new"]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.stderr.contains("has an override already, set by "), "{refused:?}");
    assert_eq!(gate.json(&check)["limit"], json!(500));

    let freed = set(&["--unlimited", "--until", "2099-01-01T00:00:00Z"]);
    assert!(freed.stdout.contains("instead      unlimited\n"), "{freed:?}");
    assert!(freed.stdout.contains("expires_at   2099-01-01T00:00:00"), "{freed:?}");
    let blocked = set(&["--block"]);
    assert!(blocked.stdout.contains("instead      blocked\n"), "{blocked:?}");
    let denied = gate.run(&check);
    assert!(denied.code == Some(1) && denied.stdout.contains("never"), "{denied:?}");

    let list = gate.ok(&["overrides", "list"]);
    assert_eq!(list.lines().count(), 2, "{list}");
    assert!(list.contains("1   1     42       blocked"), "{list}");
    assert_eq!(gate.json(&["overrides", "list", "--subject", "nobody"])["overrides"], json!([]));

    let unasked = gate.refused(2, &["overrides", "delete", "1"]);
    assert!(unasked.contains("Delete the override of 42 under rule 1 (blocked)?"), "{unasked}");
    gate.ok(&["overrides", "delete", "1", "--dry-run"]);
    gate.ok(&["overrides", "delete", "--rule", "1", "--subject", "42", "--yes"]);
    assert_eq!(gate.json(&check)["limit"], json!(50));
    let none = gate.run(&["overrides", "list"]);
    assert_eq!((none.stdout.as_str(), none.stderr.as_str()), ("", "No overrides.\n"));
    assert!(gate.refused(2, &["overrides", "delete", "1", "--yes"]).contains("no such override"));
}

#[test]
fn invalid_overrides_are_rejected() {
    let gate = Gate::server();
    let set = ["overrides", "set", "--rule", "1", "--subject", "42"];
    for (more, said) in [
        (&["--rate", "1/s burst 0"][..], "burst_capacity"),
        (&["--block", "--for", "a while"], "expires_in"),
        (&["--block", "--until", "tomorrow"], "expires_at"),
    ] {
        let refused = gate.refused(2, &[&set[..], more].concat());
        assert!(refused.contains(said), "{refused}");
    }
    let unknown =
        gate.refused(2, &["overrides", "set", "--rule", "99", "--subject", "42", "--block"]);
    assert!(unknown.contains("rule"), "{unknown}");
}

#[test]
fn long_lists_go_on() {
    let gate = Gate::server();
    for subject in ["a", "b\u{1b}[2J", "c"] {
        gate.ok(&["overrides", "set", "--rule", "1", "--subject", subject, "--unlimited"]);
    }
    let first = gate.run(&["overrides", "list", "--limit", "2"]);
    assert!(first.stdout.contains("b\\u001b[2J"), "{first:?}");
    let next = first.stderr.trim().strip_prefix("More rows follow: --after ").unwrap().to_owned();
    let rest = gate.json(&["overrides", "list", "--limit", "2", "--after", &next]);
    assert_eq!(rest["overrides"].as_array().unwrap().len(), 1);
    assert_eq!((&rest["overrides"][0]["subject"], &rest["next"]), (&json!("c"), &json!(null)));
}
