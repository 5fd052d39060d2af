//! Dry runs of changes to rules: the answer of the save, and nothing changed.

use super::*;

#[test]
fn a_dry_run_says_what_would_be_and_changes_nothing() {
    on_every_database(launch, |server| {
        let (before, version) = (all(server), server.get("/v1/rules").json()["version"].clone());
        let would_be = send(server, "POST", "/v1/rules?dry_run", None, &rule("a", 5));
        assert_eq!((would_be.status, would_be.header("location")), (200, None), "{would_be:?}");
        let would_be = would_be.json();
        assert_eq!((&would_be["dry_run"], &would_be["rule_id"]), (&json!(true), &json!(10)));
        assert_eq!(
            (&would_be["burst_capacity"], &would_be["scope"]),
            (&json!(5), &json!("endpoint"))
        );

        let body = json!({"key_pattern": "login:{ip}", "rate_per_second": 1});
        let would_be = send(server, "PUT", "/v1/rules/5?dry_run=true", Some("\"1\""), &body).json();
        assert_eq!((&would_be["version"], &would_be["conditions"]), (&json!(2), &json!({})));
        let would_be =
            send(server, "PATCH", "/v1/rules/5?dry_run=1", None, &json!({"tokens": 7})).json();
        assert_eq!((&would_be["tokens"], &would_be["dry_run"]), (&json!(7), &json!(true)));
        let same = send(server, "PATCH", "/v1/rules/5?dry_run=1", None, &json!({})).json();
        assert_eq!(same["version"], 1);
        problem(
            &send(server, "PATCH", "/v1/rules/5?dry_run", Some("\"2\""), &json!({})),
            412,
            None,
        );
        let would_go = server.request("DELETE", "/v1/rules/5?dry_run", &[], "");
        assert_eq!((would_go.status, &would_go.json()["rule_id"]), (200, &json!(5)));
        problem(&server.request("DELETE", "/v1/rules/99?dry_run", &[], ""), 404, None);

        assert_eq!(all(server), before);
        assert_eq!(server.get("/v1/rules").json()["version"], version);
        assert_eq!(server.get("/v1/rules/5/changes").json()["changes"], json!([]));
    });
}

/// A dry run answers with the same ids, versions, differences and errors as saving does afterwards.
#[test]
fn a_dry_run_and_the_save_answer_alike() {
    on_every_database(launch, |server| {
        let alike = |method: &str, path: &str, body: &Value| -> Value {
            let mut dry = send(server, method, &format!("{path}?dry_run"), None, body).json();
            let mut saved = send(server, method, path, None, body).json();
            for answer in [&mut dry, &mut saved] {
                let answer = answer.as_object_mut().unwrap();
                // A rule is created when it is saved.
                if method == "POST" {
                    answer.remove("created_at");
                }
                answer.remove("dry_run");
            }
            assert_eq!(dry, saved, "{method} {path}");
            saved
        };
        assert_eq!(alike("POST", "/v1/rules", &rule("a", 5))["rule_id"], 10);
        assert_eq!(alike("POST", "/v1/rules", &rule("b", 5))["rule_id"], 11);
        let changed = json!({"burst_capacity": 7, "description": "changed"});
        assert_eq!(alike("PATCH", "/v1/rules/10", &changed)["version"], 2);
        assert_eq!(alike("PATCH", "/v1/rules/10", &changed)["version"], 2, "no difference");
        assert_eq!(alike("PUT", "/v1/rules/10", &rule("a", 9))["burst_capacity"], 9);
        // A clash names the other rule.
        let clash = alike("POST", "/v1/rules", &rule("a", 5));
        let detail = "key_pattern: rule 10 has the same key pattern and plan";
        assert_eq!((&clash["status"], &clash["detail"]), (&json!(409), &json!(detail)));
        assert_eq!(
            (&clash["field"], &clash["conflicting_rule_id"]),
            (&json!("key_pattern"), &json!(10))
        );
        let clash = alike("PATCH", "/v1/rules/10", &json!({"key_pattern": "endpoint:/b"}));
        assert_eq!((&clash["status"], &clash["conflicting_rule_id"]), (&json!(409), &json!(11)));
        let mut taken = rule("c", 1);
        taken["rule_id"] = json!(11);
        let clash = alike("POST", "/v1/rules", &taken);
        assert_eq!(
            (&clash["field"], &clash["conflicting_rule_id"]),
            (&json!("rule_id"), &json!(11))
        );
        let missing = alike("PATCH", "/v1/rules/99", &json!({"burst_capacity": 1}));
        assert_eq!((&missing["status"], missing.get("conflicting_rule_id")), (&json!(404), None));
        // All rules: those without an id get the same ones.
        let twice = json!({"rules": [rule("x", 1), rule("x", 2)]});
        assert_eq!(alike("PUT", "/v1/rules", &twice)["field"], "key_pattern");
        let all = json!({"rules": [rule("b", 6), rule("d", 1), rule("e", 1)]});
        let diff = alike("PUT", "/v1/rules", &all);
        let added: Vec<_> =
            diff["added"].as_array().unwrap().iter().map(|r| &r["rule_id"]).collect();
        assert_eq!(
            (added, &diff["changed"][0]["rule_id"]),
            (vec![&json!(12), &json!(13)], &json!(11))
        );
    });
}
