//! `sluicegate rules import --from`. The mapping of each rule is tested in the converters' unit tests.

use serde_json::json;

use crate::cli::support::{Gate, fixture};

#[test]
fn envoys_limits_come_in_with_a_list_of_what_does_not() {
    for gate in Gate::both() {
        let file = fixture("envoy.yaml");
        let import = ["rules", "import", "--from", "envoy-ratelimit", &file];
        let dry = gate.run(&[&import[..], &["--dry-run"]].concat());
        assert_eq!(dry.code, Some(0), "{dry:?}");
        assert!(dry.stdout.contains("+ rule 10 edge:{ip}: 600/min where descriptor=remote_address domain=edge ip=!198.51.100.7|192.0.2.1\n"), "{dry:?}");
        assert!(dry.stdout.contains("+ rule 13 edge:path=/login:{user_id}: 20/h where descriptor=path,user domain=edge endpoint=/login [shadow]\n"), "{dry:?}");
        assert!(dry.stdout.contains("7 added, 0 removed, 0 changed, 9 unchanged."), "{dry:?}");
        let left_out: Vec<_> =
            dry.stderr.lines().filter(|line| line.contains(": left out: ")).collect();
        assert_eq!(left_out.len(), 6, "{dry:?}");
        assert!(dry.stderr.ends_with("6 limits were left out: see above.\n"), "{dry:?}");
        let others = "note: 9 other rules apply to requests of every domain, including these: --replace removes them\n";
        assert!(dry.stderr.contains(others), "{dry:?}");
        let alone = gate.run(&[&import[..], &["--dry-run", "--replace"]].concat());
        assert!(!alone.stderr.contains("other rules"), "{alone:?}");
        assert!(
            left_out[0]
                .contains("envoy.yaml:43: left out: `tenant: again`: is duplicated on its path"),
            "{dry:?}"
        );
        let unasked = gate.run(&import);
        assert_eq!(unasked.code, Some(2), "{unasked:?}");
        assert_eq!(unasked.stdout, dry.stdout);
        assert!(
            unasked.stderr.contains("left out") && unasked.stderr.contains("--yes"),
            "{unasked:?}"
        );

        let report = gate.json(&[&import[..], &["--yes", "--replace"]].concat());
        assert_eq!(report["applied"], json!(true));
        assert_eq!(report["notes"][2]["line"], json!(43));
        assert_eq!(report["notes"][2]["is_left_out"], json!(true));
        assert_eq!(gate.json(&["rules", "list"])["rules"].as_array().unwrap().len(), 7);
        // A second import changes nothing: the ids stay.
        let again = gate.run(&import);
        assert_eq!(again.code, Some(0), "{again:?}");
        assert!(again.stdout.contains("No difference: 7 rules"), "{again:?}");
    }
}

#[test]
fn limitadors_limits_come_in() {
    for gate in Gate::both() {
        let file = fixture("limitador.yaml");
        let import = ["rules", "import", "--from", "limitador", &file, "--yes"];
        let imported = gate.run(&import);
        assert_eq!(imported.code, Some(0), "{imported:?}");
        assert!(
            imported
                .stderr
                .contains("limitador.yaml:38: left out: limit `two at once`: the condition"),
            "{imported:?}"
        );
        assert!(imported.stderr.contains("14 rules are in force.\n"), "{imported:?}");
        let rules = gate.json(&["rules", "list"]);
        assert_eq!(
            rules["rules"][11]["key_pattern"],
            json!("shop:method=POST:endpoint=/orders:{user_id}")
        );
        assert_eq!(
            rules["rules"][11]["conditions"],
            json!({"endpoint": "/orders", "method": "POST"})
        );
        assert_eq!(rules["rules"][11]["algorithm"], json!("token_bucket"));
    }
}

#[test]
fn a_file_of_which_nothing_maps_is_refused() {
    let gate = Gate::database();
    for (name, text, said) in [
        (
            "closed.yaml",
            "domain: a\ndescriptors:\n- key: b\n  rate_limit: {unit: second, requests_per_unit: 0}\n",
            "contains nothing that can be converted",
        ),
        ("twice.yaml", "domain: a\ndomain: b\ndescriptors: []\n", "twice.yaml:2:1\n"),
        ("other.yaml", "a: 1\n", "`descriptors` is missing"),
        ("bytes.yaml", "\u{0}", "bytes.yaml"),
    ] {
        let file = gate.file(name, text);
        let finished = gate.run(&["rules", "import", "--from", "envoy-ratelimit", &file, "--yes"]);
        assert_eq!((finished.code, finished.stdout.as_str()), (Some(2), ""), "{finished:?}");
        assert!(finished.stderr.contains(said), "{finished:?}");
        assert_eq!(finished.stderr.matches("error: ").count(), 1, "{finished:?}");
        assert!(!finished.stderr.contains("<input>"), "{finished:?}");
    }
    let long = gate.file("long.yaml", &"# much too long\n".repeat(70_000));
    assert!(
        gate.refused(2, &["rules", "import", "--from", "limitador", &long]).contains("1048576")
    );
}

/// The id of a deleted rule is not reused: it identifies the deleted rule's buckets.
#[test]
fn new_rules_get_ids_that_no_rule_ever_had() {
    for gate in Gate::both() {
        for (id, pattern) in [("10", "ten:{a}"), ("11", "eleven:{a}")] {
            let made = gate.json(&["rules", "create", "--key-pattern", pattern, "--rate", "1/s"]);
            assert_eq!(made["rule_id"].to_string(), id);
        }
        for id in ["10", "11"] {
            gate.ok(&["rules", "delete", id, "--yes"]);
        }
        let file = gate.file(
            "one.yaml",
            "domain: a\ndescriptors:\n- key: b\n  rate_limit: {unit: hour, requests_per_unit: 7}\n",
        );
        let import = ["rules", "import", "--from", "envoy-ratelimit", &file];
        let import = [&import[..], &["--algorithm", "fixed_window"]].concat();
        let expected = "+ rule 12 a:{b}: 7/h (fixed_window) where descriptor=b domain=a\n";
        let dry = gate.ok(&[&import[..], &["--dry-run"]].concat());
        assert!(dry.starts_with(expected), "{dry}");
        let done = gate.ok(&[&import[..], &["--yes"]].concat());
        assert!(done.starts_with(expected), "{done}");
        let rule = gate.json(&["rules", "show", "12"]);
        assert_eq!((&rule["rule_id"], &rule["key_pattern"]), (&json!(12), &json!("a:{b}")));
        assert_eq!(gate.json(&["rules", "list"])["rules"].as_array().unwrap().len(), 10);
    }
}
