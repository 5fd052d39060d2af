//! `sluicegate check` and `explain`.

use serde_json::json;

use crate::cli::support::Gate;

#[test]
fn a_check_ends_with_its_answer() {
    let gate = Gate::server();
    let check = [
        "check",
        "--user-id",
        "42",
        "--endpoint",
        "/payment",
        "--ip",
        "203.0.113.9",
        "--method",
        "POST",
    ];
    let allowed = gate.run(&check);
    assert_eq!((allowed.code, allowed.stderr.as_str()), (Some(0), ""), "{allowed:?}");
    assert!(allowed.stdout.starts_with("allowed: 2 of 3 left\n\nRULE  KEY PATTERN"), "{allowed:?}");
    gate.ok(&check);
    gate.ok(&check);
    let denied = gate.run(&check);
    assert_eq!((denied.code, denied.stderr.as_str()), (Some(1), ""), "{denied:?}");
    assert!(denied.stdout.starts_with("denied by payment:{user_id}: retry in "), "{denied:?}");
    let tier = denied.stdout.lines().find(|line| line.contains("  no  ")).unwrap();
    assert!(!tier.contains("retry") && tier.contains(" s  "), "{denied:?}");
    let as_json = gate.run(&[&check[..], &["--json"]].concat());
    assert_eq!(as_json.code, Some(1), "{as_json:?}");
    let verdict: serde_json::Value = serde_json::from_str(&as_json.stdout).unwrap();
    assert_eq!(verdict["violated_rule"], json!("payment:{user_id}"));
    let never = gate.run(&["check", "--user-id", "42", "--endpoint", "/payment", "--cost", "4"]);
    assert!(
        never.code == Some(1) && never.stdout.starts_with("denied by payment:{user_id}: never\n"),
        "{never:?}"
    );
}

#[test]
fn a_check_without_rules_is_allowed() {
    let gate = Gate::server();
    let empty = gate.file("empty.toml", "rule = []\n");
    gate.ok(&["rules", "import", &empty, "--yes"]);
    assert_eq!(gate.ok(&["check", "--attribute", "tenant=acme"]), "allowed: no rule applies\n");
    assert_eq!(gate.ok(&["explain"]), "No rules: every request is allowed.\n");
    assert!(gate.refused(2, &["check", "--ip", "300.1.1.1"]).contains("ip"));
}

#[test]
fn an_explanation_says_why_and_spends_nothing() {
    let gate = Gate::server();
    let explain = ["explain", "--user-id", "42", "--plan", "free", "--endpoint", "/login"];
    let shown = gate.ok(&explain);
    let head = "The request would be allowed now.\n\nApplicable rules:\n\nRULE  KEY PATTERN";
    assert!(shown.starts_with(head), "{shown}");
    let (apply, do_not) = shown.split_once("\nOther rules:\n\nRULE  KEY PATTERN").unwrap();
    let line = |id: &str| {
        let line = shown.lines().find(|line| line.starts_with(&format!("{id} ")));
        line.unwrap_or_else(|| panic!("{id}: {shown}")).to_owned()
    };
    assert!(apply.contains(&line("1")) && line("1").contains("user:42"), "{shown}");
    assert!(line("1").ends_with("50      50      allows"), "{shown}");
    assert!(do_not.contains(&line("2")) && !line("2").contains("allows"), "{shown}");
    assert!(line("5").contains("ip"), "{shown}");
    assert_eq!(gate.ok(&explain), shown);
    assert_eq!(gate.json(&explain)["rules"].as_array().unwrap().len(), 9);
}

/// Operators look for the rule that denies.
#[test]
fn the_denying_rule_comes_first() {
    let gate = Gate::server();
    let of = ["--user-id", "42", "--plan", "free", "--endpoint", "/payment"];
    gate.ok(&[&["check", "--cost", "3"][..], &of].concat());
    let shown = gate.ok(&[&["explain"][..], &of].concat());
    assert!(
        shown.starts_with("The request would be denied now.\n\nApplicable rules:\n\n"),
        "{shown}"
    );
    let rules: Vec<_> = shown.lines().skip(5).take_while(|line| !line.is_empty()).collect();
    assert!(rules[0].starts_with("6 ") && rules[0].contains("retry in "), "{shown}");
    assert!(rules[1..].iter().all(|line| line.contains("allows")), "{shown}");
    assert!(rules[1].starts_with("1 "), "{shown}");
}
