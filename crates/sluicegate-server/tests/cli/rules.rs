//! `sluicegate rules`, with a server and directly on the database.

use serde_json::{Value, json};

use crate::cli::support::Gate;
use crate::common::Launch;

#[test]
fn rules_are_listed() {
    for gate in Gate::both() {
        let table = gate.ok(&["rules", "list"]);
        let lines: Vec<_> = table.lines().collect();
        assert_eq!(lines.len(), 10, "{table}");
        assert!(lines[0].starts_with("ID  KEY PATTERN"), "{table}");
        assert!(
            lines[1].starts_with("1   user:{user_id}        free        10/s burst 50 "),
            "{table}"
        );
        assert!(lines[5].contains("login:{ip}") && lines[5].contains("endpoint=/login"), "{table}");
        assert!(
            lines[1].contains("  on     ") && lines[1].ends_with("  every user of the free plan"),
            "{table}"
        );
        assert!(!table.contains('\u{1b}'), "{table}");

        let list = gate.json(&["rules", "list", "--plan", "pro"]);
        assert_eq!(list["rules"].as_array().unwrap().len(), 1, "{list}");
        assert_eq!(list["rules"][0]["rule_id"], json!(2));
        assert_eq!(list["next"], json!(null));
        assert_eq!(
            gate.json(&["rules", "list", "--scope", "global"])["rules"][0]["rule_id"],
            json!(8)
        );
        let none = gate.run(&["rules", "list", "--inactive"]);
        assert_eq!((none.code, none.stdout.as_str()), (Some(0), ""));
        assert_eq!(none.stderr, "No rules: every request is allowed.\n");
    }
}

/// The JSON is the same with a server and with a database.
#[test]
fn the_database_and_the_server_answer_alike() {
    let server = Gate::server();
    let database = |arguments: &[&str]| {
        let url = server.url();
        let finished = Launch::new(arguments).args(&["--json", "--database", &url]).run();
        assert_eq!(finished.code, Some(0), "{finished:?}");
        serde_json::from_str::<Value>(&finished.stdout).unwrap()
    };
    server.ok(&[
        "rules",
        "create",
        "--key-pattern",
        "third:{a}:{b}",
        "--rate",
        "1 per 3s",
        "--condition",
        "method=P*",
    ]);
    for arguments in [
        &["rules", "list"][..],
        &["rules", "show", "5"],
        &["rules", "show", "10"],
        &["rules", "history"],
    ] {
        // Processes count the sets that they have had each for itself, and a server has its path relative to its folder.
        let comparable = |mut answer: Value| {
            if let Some(list) = answer.as_object_mut().filter(|list| list.contains_key("rules")) {
                assert!(list.remove("version").is_some() && list.remove("source").is_some());
            }
            answer
        };
        assert_eq!(
            comparable(server.json(arguments)),
            comparable(database(arguments)),
            "{arguments:?}"
        );
    }
    let changed = ["rules", "update", "10", "--rate", "2 per 7s", "--dry-run"];
    let (mut one, other) = (server.json(&changed), database(&changed));
    for column in ["tokens", "period", "burst_capacity", "conditions", "plan"] {
        assert_eq!(one[column].take(), other[column], "{column}");
    }
}

#[test]
fn a_rule_is_made_changed_and_deleted() {
    for gate in Gate::both() {
        let create = [
            "rules",
            "create",
            "--key-pattern",
            "cli:{user_id}",
            "--rate",
            "10/s burst 50",
            "--plan",
            "x",
        ];
        let dry = gate.run(&[&create[..], &["--dry-run"]].concat());
        assert_eq!(dry.code, Some(0), "{dry:?}");
        assert!(dry.stderr.contains("Nothing was created"), "{dry:?}");
        assert_eq!(gate.json(&["rules", "list"])["rules"].as_array().unwrap().len(), 9);

        let made = gate.run(&create);
        assert_eq!(
            (made.code, made.stderr.as_str()),
            (Some(0), "Rule 10 was created.\n"),
            "{made:?}"
        );
        assert!(made.stdout.contains("quota           10/s burst 50\n"), "{made:?}");
        let again = gate.refused(2, &create);
        assert!(again.contains("key_pattern"), "{again}");

        let update = [
            "rules",
            "update",
            "10",
            "--rate",
            "20/s",
            "--condition",
            "method=POST",
            "--mode",
            "shadow",
        ];
        let dry = gate.run(&[&update[..], &["--dry-run"]].concat());
        assert!(dry.stderr.contains("Nothing was changed"), "{dry:?}");
        assert!(dry.stdout.contains("tokens: 10 -> 20\n"), "{dry:?}");
        let updated = gate.run(&update);
        assert_eq!(
            (updated.code, updated.stderr.as_str()),
            (Some(0), "Rule 10 was changed.\n"),
            "{updated:?}"
        );
        assert!(updated.stdout.contains("conditions: (none) -> method=POST\n"), "{updated:?}");
        assert!(updated.stdout.contains("mode: enforce -> shadow\n"), "{updated:?}");
        let rule = gate.json(&["rules", "update", "10", "--no-conditions", "--inactive"]);
        assert_eq!(rule["conditions"], json!({}));
        assert_eq!((&rule["is_active"], &rule["burst_capacity"]), (&json!(false), &json!(50)));
        assert_eq!(rule["version"], json!(3));

        let shown = gate.ok(&["rules", "show", "10"]);
        assert!(
            shown.contains("mode            shadow\n") && shown.contains("is_active       false\n"),
            "{shown}"
        );

        let unasked = gate.refused(2, &["rules", "delete", "10"]);
        assert!(unasked.contains("Delete rule 10 (cli:{user_id}) and its overrides?"), "{unasked}");
        assert!(unasked.contains("--yes"), "{unasked}");
        gate.ok(&["rules", "delete", "10", "--dry-run"]);
        let deleted = gate.run(&["rules", "delete", "10", "--yes"]);
        assert_eq!(
            (deleted.code, deleted.stderr.as_str()),
            (Some(0), "Rule 10 was deleted.\n"),
            "{deleted:?}"
        );
        for arguments in [["rules", "show", "10"], ["rules", "delete", "10"]] {
            assert!(gate.refused(2, &arguments).contains("there is no such rule"));
        }

        let history = gate.ok(&["rules", "history", "10"]);
        let lines: Vec<_> = history.lines().collect();
        assert_eq!(lines.len(), 5, "{history}");
        assert!(lines[1].contains("deleted: cli:{user_id}"), "{history}");
        assert!(lines[3].contains("tokens: 10 -> 20"), "{history}");
        assert!(lines[4].contains("created: cli:{user_id} 10/s burst 50"), "{history}");
        let changes = gate.json(&["rules", "history", "10", "--limit", "1"]);
        let by = if gate.is_server() { "local" } else { "command line (tester)" };
        assert_eq!(changes["changes"][0]["changed_by"], json!(by));
        assert_eq!(changes["changes"].as_array().unwrap().len(), 1);
        assert_eq!(changes["changes"][0]["new"], json!(null));

        // Every change is in exactly one page.
        let (mut seen, mut after) = (Vec::new(), None::<String>);
        loop {
            let more = after.iter().flat_map(|after| ["--after", after]);
            let page = ["rules", "history", "10", "--limit", "3"].into_iter().chain(more);
            let page = gate.json(&page.collect::<Vec<_>>());
            seen.extend(page["changes"].as_array().unwrap().clone());
            after = page["next"].as_str().map(str::to_owned);
            if after.is_none() {
                break;
            }
        }
        assert_eq!(json!(seen), gate.json(&["rules", "history", "10"])["changes"]);
        let first = gate.run(&["rules", "history", "--limit", "1"]);
        assert!(first.stderr.starts_with("More rows follow: --after "), "{first:?}");
        let wrong = gate.refused(2, &["rules", "history", "--after", "soon"]);
        assert!(wrong.contains("after"), "{wrong}");
        assert!(gate.refused(2, &["rules", "history", "99"]).contains("there is no such rule"));
    }
}

#[test]
fn rules_have_names_replace_others_and_have_no_limit() {
    for gate in Gate::both() {
        let named =
            ["rules", "update", "7", "--name", "by address", "--condition", "ip=!10.*|127.*"];
        assert!(gate.ok(&named).contains("name: (none) -> by address\n"));
        let create = ["rules", "create", "--key-pattern", "office:{ip}", "--mode", "unlimited"];
        let names = ["--replaces-name", "by address", "--replaces-name", "b"];
        let made = gate.ok(&[&create[..], &names].concat());
        for line in ["quota           unlimited\n", "replaces        by address, b\n", "name\n"] {
            assert!(made.contains(line), "{made}");
        }
        let table = gate.ok(&["rules", "list"]);
        let header = table.lines().next().unwrap();
        assert!(header.contains("  NAME        REPLACES       DESCRIPTION"), "{table}");
        assert!(table.contains("unlimited  "), "{table}");
        assert!(table.contains("ip=!10.*|127.*"), "{table}");

        let exported = gate.ok(&["rules", "export"]);
        let rule = "key_pattern = \"office:{ip}\"\nreplaces = [\"by address\", \"b\"]\nmode = \"unlimited\"\n";
        assert!(exported.contains(rule), "{exported}");
        let file = gate.file("exported.toml", &exported);
        assert!(gate.ok(&["rules", "diff", &file]).starts_with("No difference"));
        let without = gate.file("without.toml", &exported.replace("[\"by address\", \"b\"]", "[]"));
        let diff = gate.ok(&["rules", "diff", &without]);
        assert!(diff.contains("    replaces: by address, b -> (none)\n"), "{diff}");
        let none = gate.file("none.toml", "rule = []\n");
        let diff = gate.ok(&["rules", "diff", &none]);
        assert!(
            diff.contains("- rule 10 office:{ip}: unlimited instead of by address, b\n"),
            "{diff}"
        );

        let rule = gate.json(&[
            "rules",
            "update",
            "10",
            "--no-replaces",
            "--rate",
            "5/s",
            "--mode",
            "enforce",
        ]);
        assert_eq!((&rule["replaces"], &rule["tokens"]), (&json!([]), &json!(5)));
        let own = ["rules", "update", "7", "--replaces-name", "by address"];
        assert!(gate.refused(2, &own).contains("a rule cannot replace itself"));
    }
}

#[test]
fn invalid_rules_are_rejected_with_the_column() {
    for gate in Gate::both() {
        for (arguments, said) in [
            (&["--key-pattern", "a:{"][..], "key_pattern"),
            (&["--key-pattern", "a", "--rate", "1/s burst 0"], "burst_capacity"),
            (&["--key-pattern", "a", "--rate", "1/s", "--condition", "b c=x"], "conditions"),
            (&["--rate", "1/s"], "key_pattern"),
            (&["--key-pattern", "a"], "tokens"),
            (&[], "--key-pattern"),
        ] {
            let said_by = gate.refused(2, &[&["rules", "create"], arguments].concat());
            assert!(said_by.contains(said), "{arguments:?}: {said_by}");
        }
        assert!(gate.refused(2, &["rules", "update", "1"]).contains("nothing to change"));
    }
}

#[test]
fn columns_come_from_a_file_too() {
    for gate in Gate::both() {
        let file = gate
            .file("rule.json", r#"{"key_pattern": "f:{ip}", "tokens": 3, "period": "1 minute"}"#);
        let rule =
            gate.json(&["rules", "create", "--file", &file, "--plan", "gold", "--rule-id", "77"]);
        assert_eq!(
            (&rule["rule_id"], &rule["period"], &rule["plan"]),
            (&json!(77), &json!(60), &json!("gold"))
        );
        let wrong = gate.file("wrong.json", "{");
        assert!(
            gate.refused(2, &["rules", "create", "--file", &wrong])
                .contains("is not a rule in JSON")
        );
        let unknown =
            gate.file("unknown.json", r#"{"key_pattern": "g", "rate_per_second": 1, "brust": 5}"#);
        assert!(gate.refused(2, &["rules", "create", "--file", &unknown]).contains("brust"));
    }
}

/// Text chosen by clients must not control the terminal.
#[test]
fn control_characters_are_shown_by_number() {
    for gate in Gate::both() {
        gate.ok(&[
            "rules",
            "create",
            "--key-pattern",
            "evil",
            "--rate",
            "1/s",
            "--description",
            "\u{1b}[2Jgone\u{9b}",
        ]);
        for arguments in
            [&["rules", "list"][..], &["rules", "show", "10"], &["rules", "show", "10", "--json"]]
        {
            let shown = gate.ok(arguments);
            assert!(shown.contains("\\u001b[2Jgone\\u009b"), "{shown}");
            assert!(!shown.contains(['\u{1b}', '\u{9b}']), "{shown}");
        }
    }
}

#[test]
fn a_rule_is_tried_on_the_last_requests() {
    let gate = Gate::server();
    for _ in 0..5 {
        gate.ok(&["check", "--user-id", "42"]);
    }
    let preview = ["rules", "preview", "--key-pattern", "user:{user_id}", "--rate", "1/h burst 2"];
    let shown = gate.ok(&preview);
    assert!(shown.contains("requests         5\n"), "{shown}");
    assert!(shown.contains("denied           3\n"), "{shown}");
    assert!(shown.contains("42       5         3"), "{shown}");
    assert_eq!(gate.json(&preview)["denied"], json!(3));
    let direct = Gate::database();
    assert!(direct.refused(2, &preview).contains("only a running server"));
}

#[test]
fn a_database_that_is_not_there_or_not_ready() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", folder.path().join("none.db").display());
    for arguments in [&["rules", "list"][..], &["violations", "list"], &["tokens", "list"]] {
        let finished = Launch::new(arguments).args(&["--database", &url]).run();
        assert_eq!(finished.code, Some(3), "{finished:?}");
        assert!(finished.stderr.contains("no such file; run `sluicegate migrate`"), "{finished:?}");
        assert!(!folder.path().join("none.db").exists());
    }
    std::fs::write(folder.path().join("none.db"), "").unwrap();
    let finished = Launch::new(&["rules", "list", "--database", &url]).run();
    assert_eq!(finished.code, Some(3), "{finished:?}");
    assert!(finished.stderr.contains("lacks migrations of this version"), "{finished:?}");
    // The settings can name a database as well.
    let gate = Gate::database();
    let by_settings = Launch::new(&["rules", "list", "--database", "settings"]);
    let finished = by_settings.env("SLUICEGATE_DATABASE_URL", &gate.url()).run();
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let text = format!("[database]\nurl = \"{}\"\n", gate.url());
    let by_config = Launch::new(&["rules", "list", "--config", "mine.toml"]);
    assert_eq!(by_config.file("mine.toml", &text).run().code, Some(0));
    let both = gate.refused(2, &["rules", "list", "--server", "http://127.0.0.1:1"]);
    assert!(both.contains("--server cannot be combined with --database"), "{both}");
    let wrong = Launch::new(&["rules", "list", "--database", "settings"]);
    let finished = wrong.file("sluicegate.toml", "[databse]\nurl = \"sqlite:x\"\n").run();
    assert_eq!(finished.code, Some(2), "{finished:?}");
    assert!(finished.stderr.contains("sluicegate.toml:1:2"), "{finished:?}");
    assert!(finished.stderr.contains("did you mean"), "{finished:?}");
}
