//! `rules.toml` that is written, and read back.

use std::time::Duration;

use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::strategy::ValueTree;
use sluicegate::rules::RuleSpec;
use sluicegate::rules::file::to_toml;
use sluicegate::{Algorithm, Mode, OnError, Refill, Rule, RuleSet, Scope};

use crate::library::support::cases;

/// Texts that need care: quotes, escapes, what looks like TOML, what turns text around, and anything else.
fn strange() -> impl Strategy<Value = String> {
    let pieces = vec![
        "\"",
        "'",
        "\\",
        "\n",
        "\r\n",
        "\t",
        "\u{0}",
        "\u{7f}",
        "\u{85}",
        "\u{202e}",
        "\u{feff}",
        "\u{10ffff}",
        "€",
        "🦀",
        "#",
        "\"\"\"",
        "]]",
        "= ",
        "\\u0041",
        "plain",
        " ",
        "{",
        "}",
    ];
    prop_oneof![
        3 => vec(select(pieces), 0..6).prop_map(|pieces| pieces.concat()),
        1 => any::<String>(),
    ]
}

/// The same without what keys and plans cannot have.
fn tame() -> impl Strategy<Value = String> {
    strange().prop_map(|text| text.replace(|c: char| c.is_control() || "{}".contains(c), ""))
}

fn key_pattern() -> impl Strategy<Value = String> {
    let placeholder = select(vec!["", "{user_id}", "{a.b-c_D}:{ip}", "{endpoint}"]);
    let prefix = select(vec!["", "endpoint:/x/", "user:"]);
    (prefix, tame(), placeholder, "[a-z]{1,3}")
        .prop_map(|(prefix, text, placeholder, end)| format!("{prefix}{text}{placeholder}{end}"))
}

fn period() -> impl Strategy<Value = Duration> {
    let units = vec![
        1,
        10,
        1000,
        500_000,
        1_000_000,
        62_500_000,
        60_000_000,
        3_600_000_000,
        86_400_000_000,
    ];
    prop_oneof![
        (select(units), 1..100u64).prop_map(|(unit, count)| Duration::from_micros(unit * count)),
        (1..1_000_000_000_000u64).prop_map(Duration::from_micros),
    ]
}

/// Columns that make a quota, most of them.
fn quota() -> impl Strategy<Value = RuleSpec> {
    let rate = prop_oneof![
        4 => (1..10_000u64, period()).prop_map(|(tokens, period)| (Some(tokens), Some(period), None)),
        1 => select(vec!["10", "0.016", "2.5", "1000000.5", "0.000001"]).prop_map(|rate: &str| (None, None, rate.parse().ok())),
    ];
    let queue = (option::of(1..10_000u64), option::of(prop_oneof![Just(Duration::ZERO), period()]));
    let capacity = option::of(1..10_000u64);
    let refill = select(&Refill::ALL[..]);
    (rate, select(&Algorithm::ALL[..]), capacity, refill, queue).prop_map(
        |((tokens, period, rate_per_second), algorithm, capacity, refill, (length, max_wait))| {
            let spec =
                RuleSpec { tokens, period, rate_per_second, algorithm, ..RuleSpec::default() };
            match algorithm {
                Algorithm::TokenBucket => RuleSpec { burst_capacity: capacity, refill, ..spec },
                Algorithm::LeakyBucket => RuleSpec { burst_capacity: length, max_wait, ..spec },
                _ => spec,
            }
        },
    )
}

fn spec() -> impl Strategy<Value = RuleSpec> {
    let names = (key_pattern(), tame(), strange());
    let choices = (
        option::of(select(&Scope::ALL[..])),
        select(&Mode::ALL[..]),
        select(&OnError::ALL[..]),
        any::<bool>(),
    );
    let condition = prop_oneof![3 => strange(), 1 => "(a\\* )?![ab\\*]{1,2}(\\|[ab\\*]{1,2}){0,3}"];
    let conditions = btree_map("[A-Za-z0-9_.-]{1,8}", condition, 0..4);
    let names = (names, tame(), prop::collection::btree_set("[a-z\" \u{e9}]{1,3}", 0..3));
    (0..1u64 << 53, names, quota(), choices, conditions).prop_map(
        |(rule_id, names, quota, choices, conditions)| {
            let ((key_pattern, plan, description), name, replaces) = names;
            let (scope, mode, on_error, is_active) = choices;
            let conditions = conditions.into_iter().collect();
            RuleSpec {
                rule_id,
                key_pattern,
                plan,
                description,
                scope,
                mode,
                on_error,
                is_active,
                conditions,
                name,
                replaces: replaces.into_iter().collect(),
                ..quota
            }
        },
    )
}

fn read(text: &str) -> Vec<Rule> {
    let read = RuleSet::from_toml("written", text);
    read.unwrap_or_else(|errors| panic!("{errors}\n\n{text}")).rules().to_vec()
}

proptest! {
    #![proptest_config(cases(2_000))]

    /// Written files read back equal, both as given and as normalised by the rules.
    #[test]
    fn what_is_written_is_read_back(specs in vec(spec(), 0..6)) {
        let sound: Vec<(RuleSpec, Rule)> =
            specs.into_iter().filter_map(|spec| Some((spec.clone(), spec.build().ok()?))).collect();
        let mut rules: Vec<Rule> = sound.iter().map(|(_, rule)| rule.clone()).collect();
        prop_assume!(RuleSet::new(rules.clone()).is_ok());
        rules.sort_by_key(Rule::rule_id);
        let given: Vec<RuleSpec> = sound.into_iter().map(|(spec, _)| spec).collect();
        prop_assert_eq!(&read(&to_toml(&given)), &rules);

        let known: Vec<RuleSpec> = rules.iter().map(Rule::spec).collect();
        let again = read(&to_toml(&known));
        prop_assert_eq!(again.iter().map(Rule::spec).collect::<Vec<_>>(), known);
        prop_assert_eq!(again, rules);
    }
}

/// For most random columns, something comes of it.
#[test]
fn the_property_is_not_vacuous() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let is_sound = |_: &i32| spec().new_tree(&mut runner).unwrap().current().build().is_ok();
    let sound = (0..1000).filter(is_sound).count();
    assert!(sound > 500, "{sound} of 1000");
}

#[test]
fn it_reads_like_what_a_person_writes() {
    let text = r#"[[rule]]
rule_id = 1
key_pattern = "user:{user_id}"
plan = "free"
tokens = 10
period = "1s"
burst_capacity = 50
description = "every user of the free plan"

[[rule]]
rule_id = 5
name = "login"
key_pattern = "login:{ip}"
conditions = { "client.version" = "1.*", endpoint = "/login" }
tokens = 5
period = "1m"
on_error = "deny"

[[rule]]
rule_id = 6
key_pattern = "report:{user_id}"
scope = "custom"
tokens = 3
period = "90m"
algorithm = "sliding_window"
mode = "shadow"

[[rule]]
rule_id = 7
key_pattern = "mail:{tenant}"
tokens = 1
period = "62.5s"
algorithm = "leaky_bucket"
max_wait = "250ms"

[[rule]]
rule_id = 8
key_pattern = "batch"
tokens = 100
period = "2d"
refill = "interval"
is_active = false

[[rule]]
rule_id = 9
key_pattern = "office"
conditions = { ip = "10.*", method = "!DELETE|PUT" }
replaces = ["login", "by \"user\""]
mode = "unlimited"

[[rule]]
rule_id = 10
key_pattern = "other office"
tokens = 10
period = "1s"
mode = "unlimited"
"#;
    let specs: Vec<RuleSpec> = read(text).iter().map(Rule::spec).collect();
    assert_eq!(to_toml(&specs), text);
    assert_eq!(to_toml(&[]), "rule = []\n");
    assert_eq!(read(&to_toml(&[])), []);
}

/// Invalid columns are written as they are, and refused on reading.
#[test]
fn what_is_wrong_stays_wrong() {
    let spec = RuleSpec {
        key_pattern: "a{".into(),
        tokens: Some(u64::MAX),
        period: Some(Duration::from_nanos(1_000_000_001)),
        max_wait: Some(Duration::ZERO),
        conditions: vec![("a b".into(), String::new()), ("a b".into(), "x".into())],
        ..RuleSpec::default()
    };
    let text = to_toml(&[spec]);
    assert!(text.contains("period = \"1.000000001s\""), "{text}");
    assert!(text.contains("max_wait = \"0s\""), "{text}");
    assert!(RuleSet::from_toml("written", &text).is_err());
}
