//! `rules.toml` that is right.

use std::time::Duration;

use sluicegate::rules::RULES_MAX;
use sluicegate::{Algorithm, Mode, OnError, Refill, Rule, RuleSet, Scope};

use crate::library::support::{quota, rule};

/// The rules of a file without mistakes.
fn read(text: &str) -> Vec<Rule> {
    match RuleSet::from_toml("rules.toml", text) {
        Ok(rules) => rules.rules().to_vec(),
        Err(errors) => panic!("{errors}"),
    }
}

#[test]
fn the_example_file_has_the_starter_rules() {
    let text = include_str!("../../../../rules.example.toml");
    assert_eq!(read(text), RuleSet::starter().rules());
}

#[test]
fn everything_that_may_be_left_out_may_be_left_out() {
    let rules = read("[[rule]]\nkey_pattern = 'global'\nrate_per_second = 10\n");
    assert_eq!(rules, [rule(1, "global", "10/s")]);
}

#[test]
fn every_column_is_read() {
    let rules = read(
        r#"
        [[rule]]
        rule_id = 7
        key_pattern = "api:{endpoint}:{user_id}"
        scope = "custom"
        rate_per_second = 0.1
        tokens = 6
        period = 60
        burst_capacity = 9
        plan = "pro"
        is_active = false
        description = "a note"
        created_at = 2026-08-01T12:00:00Z
        version = 3
        algorithm = "leaky_bucket"
        refill = "continuous"
        max_wait = "2s"
        mode = "shadow"
        on_error = "deny"
        conditions = { method = "P*", endpoint = "/api/**", tenant = "acme" }
        "#,
    );
    let leaky = quota("6/minute burst 9")
        .with_algorithm(Algorithm::LeakyBucket)
        .and_then(|quota| quota.with_max_wait(Duration::from_secs(2)));
    let [rule] = &rules[..] else { panic!("one rule") };
    assert_eq!(rule.rule_id(), 7);
    assert_eq!(rule.key_pattern().as_str(), "api:{endpoint}:{user_id}");
    assert_eq!(rule.scope(), Scope::Custom);
    assert_eq!(*rule.quota(), leaky.unwrap());
    assert_eq!(rule.plan(), Some("pro"));
    assert!(!rule.is_active());
    assert_eq!(rule.description(), "a note");
    assert_eq!(rule.mode(), Mode::Shadow);
    assert_eq!(rule.on_error(), OnError::Deny);
    let conditions = rule.conditions().iter().map(|(name, glob)| (name.name(), glob.as_str()));
    let expected = [("endpoint", "/api/**"), ("method", "P*"), ("tenant", "acme")];
    assert_eq!(conditions.collect::<Vec<_>>(), expected);
}

#[test]
fn every_word_is_known() {
    let with = |column: &str| {
        let text = format!("[[rule]]\nkey_pattern = 'a'\ntokens = 5\nperiod = 60\n{column}\n");
        read(&text).remove(0)
    };
    for scope in Scope::ALL {
        assert_eq!(with(&format!("scope = '{}'", scope.name())).scope(), scope);
    }
    for mode in Mode::ALL {
        assert_eq!(with(&format!("mode = '{}'", mode.name())).mode(), mode);
    }
    for on_error in OnError::ALL {
        assert_eq!(with(&format!("on_error = '{}'", on_error.name())).on_error(), on_error);
    }
    for algorithm in Algorithm::ALL {
        let rule = with(&format!("algorithm = '{}'", algorithm.name()));
        assert_eq!(rule.quota().algorithm(), algorithm);
    }
    for refill in Refill::ALL {
        assert_eq!(with(&format!("refill = '{}'", refill.name())).quota().refill(), refill);
    }
    for created_at in
        ["2026-08-01T12:00:00Z", "'2026-08-01T12:00:00.5+02:00'", "2026-08-01 12:00:00Z"]
    {
        with(&format!("created_at = {created_at}"));
    }
}

/// Numbers are what is written: 0.016 a second has no exact binary form, and 62.5 s a token here.
#[test]
fn numbers_are_taken_as_they_are_written() {
    for (written, exactly) in [
        ("rate_per_second = 0.016", "1 per 62.5s burst 1"),
        ("rate_per_second = 0.1", "1 per 10s burst 1"),
        ("rate_per_second = 0.30000000000000004", "0.30000000000000004/s"),
        ("rate_per_second = +1_000.50", "2001 per 2s burst 1000"),
        ("rate_per_second = 0x10", "16/s"),
        ("rate_per_second = 999", "999/s"),
        ("tokens = 5\nperiod = 60", "5/minute"),
        ("tokens = 5\nperiod = 0.1", "5 per 100ms"),
        ("tokens = 1_000\nperiod = 62.5", "1000 per 62.5s"),
        ("tokens = 1\nperiod = 0.000001", "1 per 1us"),
        ("tokens = 5\nperiod = '62.5s'", "5 per 62.5s"),
        ("tokens = 5\nperiod = '1 minute'", "5/minute"),
        ("tokens = 5\nperiod = 'day'", "5/day"),
        ("tokens = 5\nperiod = \"250 \\u00b5s\"", "5 per 250us"),
        ("rate_per_second = 0.1\ntokens = 6\nperiod = '1 minute'", "6/minute"),
    ] {
        let read =
            RuleSet::from_toml("rules.toml", &format!("[[rule]]\nkey_pattern = 'a'\n{written}\n"));
        match exactly.parse() {
            Ok(expected) => assert_eq!(*read.unwrap().rules()[0].quota(), expected, "{written}"),
            // What no quota can be counted by is refused here as there.
            Err(error) => assert!(read.unwrap_err().to_string().contains(&error.to_string())),
        }
    }
}

#[test]
fn a_queue_may_have_no_room_to_wait() {
    for zero in ["0", "0.0", "'0s'"] {
        let text = format!(
            "[[rule]]\nkey_pattern = 'a'\nrate_per_second = 1\nalgorithm = 'leaky_bucket'\nmax_wait = {zero}"
        );
        assert_eq!(read(&text)[0].quota().max_wait(), Some(Duration::ZERO), "{zero}");
    }
}

#[test]
fn rules_are_numbered_around_the_ids_that_are_given() {
    let ids = |given: &[Option<u64>]| -> Vec<u64> {
        let rules = given.iter().enumerate().map(|(position, id)| {
            let id = id.map_or_else(String::new, |id| format!("rule_id = {id}\n"));
            format!("[[rule]]\n{id}key_pattern = 'p{position}'\nrate_per_second = 1\n")
        });
        let mut rules = read(&rules.collect::<String>());
        rules.sort_by_key(|rule| rule.key_pattern().as_str().to_owned());
        rules.iter().map(Rule::rule_id).collect()
    };
    assert_eq!(ids(&[None, None, None]), [1, 2, 3]);
    assert_eq!(ids(&[None, Some(7), None]), [1, 7, 2]);
    assert_eq!(ids(&[None, None, Some(1)]), [2, 3, 1]);
    assert_eq!(ids(&[Some(2), None, Some(3), None]), [2, 1, 3, 4]);
}

#[test]
fn conditions_may_be_written_in_three_ways() {
    let inline = "conditions = { endpoint = '/x', method = 'GET' }";
    let dotted = "conditions.endpoint = '/x'\nconditions.method = 'GET'";
    let table = "[rule.conditions]\nendpoint = '/x'\nmethod = 'GET'";
    for conditions in [inline, dotted, table] {
        let text = format!("[[rule]]\nkey_pattern = 'a'\nrate_per_second = 1\n{conditions}\n");
        let expected = rule(1, "a", "1/s").with_condition("endpoint", "/x").unwrap();
        assert_eq!(read(&text), [expected.with_condition("method", "GET").unwrap()]);
    }
}

#[test]
fn a_file_may_be_written_elsewhere() {
    let windows = "\u{feff}[[rule]]\r\nkey_pattern = 'a'\r\nrate_per_second = 1\r\n";
    assert_eq!(read(windows), [rule(1, "a", "1/s")]);
    let inline = "rule = [{ key_pattern = 'a', rate_per_second = 1 }]";
    assert_eq!(read(inline), [rule(1, "a", "1/s")]);
    assert_eq!(read("rule = []"), []);
}

#[test]
fn as_many_rules_as_there_may_be_fit_into_a_file() {
    let rules = (1..=RULES_MAX).map(|id| {
        format!(
            "[[rule]]\nkey_pattern = 'r{id}:{{user_id}}'\nplan = 'p{id}'\nrate_per_second = 10\n"
        )
    });
    let text: String = rules.collect();
    assert!(text.len() <= sluicegate::rules::RULES_FILE_BYTES_MAX, "{}", text.len());
    assert_eq!(read(&text).len(), RULES_MAX);
}
