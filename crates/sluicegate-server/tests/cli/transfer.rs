//! `sluicegate rules export`, `diff` and `import`, with a server and directly on the database.

use serde_json::json;
use sluicegate::rules::RULES_FILE_BYTES_MAX;

use crate::cli::support::Gate;
use crate::common::Launch;

#[test]
fn rules_go_out_and_come_in_again_as_they_were() {
    for gate in Gate::both() {
        gate.ok(&[
            "rules",
            "create",
            "--key-pattern",
            "w:{a}",
            "--tokens",
            "3",
            "--period",
            "62.5s",
            "--algorithm",
            "sliding_window",
        ]);
        gate.ok(&[
            "rules",
            "create",
            "--key-pattern",
            "q",
            "--rate",
            "5/s",
            "--algorithm",
            "leaky_bucket",
            "--max-wait",
            "1.5s",
            "--inactive",
        ]);
        let before = gate.json(&["rules", "list"]);
        let out = gate.path("rules.toml");
        let exported = gate.run(&["rules", "export", "--out", &out]);
        assert_eq!((exported.code, exported.stdout.as_str()), (Some(0), ""), "{exported:?}");
        assert!(exported.stderr.ends_with("has 11 rules.\n"), "{exported:?}");
        assert_eq!(gate.ok(&["rules", "export"]), gate.read("rules.toml"));

        let same = gate.ok(&["rules", "diff", &out]);
        assert_eq!(same, "No difference: 11 rules are unchanged.\n");
        let nothing = gate.run(&["rules", "import", &out]);
        assert_eq!(
            (nothing.code, nothing.stderr.as_str()),
            (Some(0), "Nothing was changed.\n"),
            "{nothing:?}"
        );

        // Imports an empty file, then the export again.
        let empty = gate.file("empty.toml", "rule = []\n");
        gate.ok(&["rules", "import", &empty, "--yes"]);
        assert_eq!(gate.json(&["rules", "list"])["rules"], json!([]));
        gate.ok(&["rules", "import", &out, "--yes"]);
        let mut after = gate.json(&["rules", "list"]);
        for (position, rule) in after["rules"].as_array_mut().unwrap().iter_mut().enumerate() {
            for column in ["created_at", "version"] {
                rule[column] = before["rules"][position][column].clone();
            }
        }
        assert_eq!(after["rules"], before["rules"]);

        // A server can read the file as well.
        let checked = Launch::new(&["serve", "--check-config", "--rules", &out]).run();
        assert_eq!(checked.code, Some(0), "{checked:?}");
        let exported = gate.json(&["rules", "export"]);
        assert_eq!(exported["rules"].as_array().unwrap().len(), 11);
        assert_eq!(
            gate.ok(&["rules", "export", "--format", "toml", "--json"]),
            gate.read("rules.toml")
        );
    }
}

const CHANGED: &str = "\
[[rule]]
rule_id = 1
key_pattern = \"user:{user_id}\"
plan = \"free\"
tokens = 20
period = \"1s\"
burst_capacity = 50
description = \"every user of the free plan\"

[[rule]]
rule_id = 20
key_pattern = \"new:{tenant}\"
tokens = 1
period = \"1m\"
conditions = { method = \"POST\" }
";

#[test]
fn a_difference_is_shown_before_anything_changes() {
    for gate in Gate::both() {
        let file = gate.file("changed.toml", CHANGED);
        let shown = gate.ok(&["rules", "diff", &file]);
        assert!(
            shown.starts_with(
                "+ rule 20 new:{tenant}: 1/min where method=POST\n- rule 2 user:{user_id} for pro: "
            ),
            "{shown}"
        );
        assert!(
            shown.contains("~ rule 1 user:{user_id} for free:\n    tokens: 10 -> 20\n"),
            "{shown}"
        );
        assert!(shown.ends_with("1 added, 8 removed, 1 changed, 0 unchanged.\n"), "{shown}");
        let diff = gate.json(&["rules", "diff", &file]);
        assert_eq!(
            diff["changed"][0]["columns"],
            json!([{"name": "tokens", "old": 10, "new": 20}])
        );

        let dry = gate.run(&["rules", "import", &file, "--dry-run"]);
        assert_eq!((dry.code, dry.stdout.as_str()), (Some(0), shown.as_str()), "{dry:?}");
        assert_eq!(dry.stderr, "Nothing was changed.\n");
        let unasked = gate.run(&["rules", "import", &file]);
        assert_eq!(
            (unasked.code, unasked.stdout.as_str()),
            (Some(2), shown.as_str()),
            "{unasked:?}"
        );
        assert!(unasked.stderr.contains("--yes"), "{unasked:?}");
        assert_eq!(gate.json(&["rules", "list"])["rules"].as_array().unwrap().len(), 9);

        let applied = gate.run(&["rules", "import", &file, "--yes"]);
        assert_eq!(
            (applied.code, applied.stdout.as_str()),
            (Some(0), shown.as_str()),
            "{applied:?}"
        );
        assert_eq!(applied.stderr, "2 rules are in force.\n");
        let rules = gate.json(&["rules", "list"]);
        assert_eq!(rules["rules"].as_array().unwrap().len(), 2);
        assert_eq!(
            (&rules["rules"][0]["tokens"], &rules["rules"][1]["rule_id"]),
            (&json!(20), &json!(20))
        );
    }
}

#[test]
fn a_merge_keeps_what_is_not_in_the_file() {
    for gate in Gate::both() {
        let file = gate.file("changed.toml", CHANGED);
        let report = gate.json(&["rules", "import", &file, "--merge", "--yes"]);
        assert_eq!(report["applied"], json!(true), "{report}");
        assert_eq!(report["diff"]["removed"], json!([]));
        assert_eq!(report["diff"]["unchanged"], json!(8));
        let rules = gate.json(&["rules", "list"]);
        let rules = rules["rules"].as_array().unwrap();
        assert_eq!(rules.len(), 10);
        assert_eq!(rules[9]["key_pattern"], json!("new:{tenant}"));
        let both = gate.run(&["rules", "import", &file, "--merge", "--replace"]);
        assert_eq!(both.code, Some(2), "{both:?}");
    }
}

#[test]
fn errors_in_a_file_are_shown_with_line_and_caret() {
    for gate in Gate::both() {
        let file = gate.file(
            "wrong.toml",
            "[[rule]]\nkey_pattern = \"user:{user_id\"\nrate_per_second = 10\nburst = 5\n",
        );
        for action in ["import", "diff"] {
            let finished = gate.run(&["rules", action, &file]);
            assert_eq!((finished.code, finished.stdout.as_str()), (Some(2), ""), "{finished:?}");
            assert!(finished.stderr.contains("wrong.toml:2:21"), "{finished:?}");
            assert!(
                finished
                    .stderr
                    .contains("2 | key_pattern = \"user:{user_id\"\n  |                     ^"),
                "{finished:?}"
            );
            assert!(
                finished.stderr.contains("unknown column `burst`: did you mean `burst_capacity`?"),
                "{finished:?}"
            );
        }
        assert!(
            gate.refused(2, &["rules", "import", "nowhere.toml"])
                .contains("cannot read nowhere.toml")
        );
        let long = gate.file("long.toml", &"# long\n".repeat(RULES_FILE_BYTES_MAX / 7 + 1));
        assert!(gate.refused(2, &["rules", "import", &long]).contains("more than 4194304 bytes"));
        assert_eq!(gate.json(&["rules", "list"])["rules"].as_array().unwrap().len(), 9);
    }
}

/// Rules of a file are changed in the file only.
#[test]
fn rules_of_a_file_are_not_imported_over() {
    let launch = Launch::serve(&["--rules", "mine.toml"]).file("mine.toml", CHANGED);
    let gate = Gate::of(launch.start());
    assert_eq!(gate.json(&["rules", "list"])["rules"].as_array().unwrap().len(), 2);
    let exported = gate.ok(&["rules", "export"]);
    assert!(exported.contains("key_pattern = \"new:{tenant}\"\n"), "{exported}");
    let file = gate.file("empty.toml", "rule = []\n");
    assert!(gate.ok(&["rules", "diff", &file]).contains("0 added, 2 removed"));
    let refused = gate.refused(2, &["rules", "import", &file, "--yes"]);
    assert!(refused.contains("mine.toml"), "{refused}");
}

/// The answer of a dry run has the version, and an import with an older version changes nothing.
#[test]
fn an_import_over_http_is_not_over_others_changes() {
    let gate = Gate::server();
    let server = gate.server_of();
    let body = r#"{"rules": [{"key_pattern": "a", "tokens": 1, "period": 1}]}"#;
    let dry = server.request("PUT", "/v1/rules?dry_run", &[], body);
    assert_eq!(dry.status, 200, "{dry:?}");
    let tag = dry.header("etag").unwrap().to_owned();
    assert_eq!(dry.json()["removed"].as_array().unwrap().len(), 9);
    gate.ok(&["rules", "update", "8", "--rate", "1/s"]);
    let stale = server.request("PUT", "/v1/rules", &[("if-match", &tag)], body);
    assert_eq!(stale.status, 412, "{stale:?}");
    assert_eq!(gate.json(&["rules", "list"])["rules"].as_array().unwrap().len(), 9);
    let done = server.request("PUT", "/v1/rules", &[("if-match", "*")], body);
    assert_eq!(done.status, 200, "{done:?}");
    assert_ne!(done.header("etag").unwrap(), tag);
    // In force when the answer is sent.
    let verdict = server.request("POST", "/v1/check", &[], "{}").json();
    assert_eq!(verdict["tiers"][0]["key_pattern"], json!("a"), "{verdict}");
}

/// Output that exceeds a pipe's buffer.
#[test]
fn long_lists_are_written_to_their_end() {
    let gate = Gate::database();
    let rule =
        |n| format!("[[rule]]\nkey_pattern = \"endpoint:/long/{n}\"\ntokens = 1\nperiod = 1\n");
    let file = gate.file("long.toml", &(1..=500).map(rule).collect::<String>());
    gate.ok(&["rules", "import", &file, "--yes"]);
    let list = gate.json(&["rules", "list"]);
    assert_eq!(list["rules"].as_array().unwrap().len(), 500);
    assert!(list.to_string().len() > 1 << 16);
}

/// Stored rules that no server would start on can be replaced, also without a server.
#[test]
fn stored_rules_that_cannot_be_used_are_replaced_by_an_import() {
    for poison in ["key_pattern = 'ip:{ip'", "max_wait = 1000000"] {
        for gate in Gate::both() {
            let file = gate.path("rules.toml");
            gate.ok(&["rules", "export", "--out", &file]);
            gate.sql(&format!("UPDATE rate_limit_rules SET {poison} WHERE rule_id = 7"));
            let import = gate.run(&["rules", "import", &file, "--yes"]);
            assert_eq!(import.code, Some(0), "{poison}: {import:?}");
            assert!(import.stderr.ends_with("9 rules are in force.\n"), "{poison}: {import:?}");
            let list = gate.run(&["rules", "list", "--json"]);
            assert!(list.stdout.contains("\"refused\": null"), "{poison}: {list:?}");
        }
    }
}
