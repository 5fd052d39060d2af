//! `sluicegate buckets`.

use serde_json::json;

use crate::cli::support::Gate;

#[test]
fn a_bucket_is_looked_into_and_filled() {
    let gate = Gate::server();
    gate.ok(&["check", "--user-id", "42", "--endpoint", "/payment", "--cost", "3"]);
    let shown = gate.ok(&["buckets", "show", "6", "42"]);
    assert!(shown.starts_with("bucket_key  payment:42\n"), "{shown}");
    assert!(shown.contains("remaining   0\nlimit       3\n"), "{shown}");
    assert_eq!(gate.json(&["buckets", "show", "6", "42"])["remaining"], json!(0));

    let dry = gate.run(&["buckets", "grant", "6", "42", "--tokens", "2", "--dry-run"]);
    assert!(dry.stderr.contains("Nothing was changed"), "{dry:?}");
    let granted = gate.run(&["buckets", "grant", "6", "42", "--tokens", "2"]);
    assert_eq!(
        (granted.code, granted.stderr.as_str()),
        (Some(0), "The bucket now has 2.\n"),
        "{granted:?}"
    );
    gate.ok(&["check", "--user-id", "42", "--endpoint", "/payment", "--cost", "2"]);
    assert_eq!(
        gate.json(&["buckets", "refund", "6", "42", "--tokens", "1"])["remaining"],
        json!(1)
    );

    let unasked = gate.refused(2, &["buckets", "reset", "6", "42"]);
    assert!(unasked.contains("Reset the bucket payment:42, which has 1 of 3?"), "{unasked}");
    gate.ok(&["buckets", "reset", "6", "42", "--dry-run"]);
    assert_eq!(gate.json(&["buckets", "show", "6", "42"])["remaining"], json!(1));
    let reset = gate.run(&["buckets", "reset", "6", "42", "--yes"]);
    assert_eq!(
        (reset.code, reset.stderr.as_str()),
        (Some(0), "The bucket was reset.\n"),
        "{reset:?}"
    );
    assert!(reset.stdout.contains("remaining   3\n"), "{reset:?}");
}

#[test]
fn further_placeholders_and_odd_subjects() {
    let gate = Gate::server();
    gate.ok(&[
        "rules",
        "create",
        "--key-pattern",
        "api:{endpoint}:{user_id}",
        "--rate",
        "1/h burst 5",
    ]);
    let subject = "../a b?c#\u{1b}[2J%2F";
    gate.ok(&["check", "--user-id", subject, "--endpoint", "/x&y=1", "--cost", "2"]);
    let show = ["buckets", "show", "10", subject, "--with", "endpoint=/x&y=1"];
    assert_eq!(gate.json(&show)["remaining"], json!(3));
    let shown = gate.ok(&show);
    assert!(shown.contains("../a b?c#\\u001b[2J%2F"), "{shown}");
    assert!(gate.refused(2, &["buckets", "show", "10", "42"]).contains("endpoint: is missing"));
    assert!(gate.refused(2, &["buckets", "show", "99", "42"]).contains("there is no such rule"));
    assert!(gate.refused(2, &["buckets", "grant", "1", "42", "--tokens", "0"]).contains("tokens"));
    assert!(gate.ok(&["buckets", "show", "8", "global"]).starts_with("bucket_key  global\n"));
}
