use super::*;
use crate::rules::convert::tests::{listed, rules};

const FILE: &str = include_str!("../../../../tests/cli/fixtures/envoy.yaml");

fn converted(text: &str) -> Converted {
    convert(text, Algorithm::TokenBucket).unwrap()
}

#[test]
fn descriptors_become_rules() {
    assert_eq!(
        rules(&converted(FILE)),
        [
            "1 edge:{ip} 600 per 60s descriptor=remote_address domain=edge ip=!198.51.100.7|192.0.2.1",
            "2 edge:remote_address=198.51.100.7 100 per 1s descriptor=remote_address domain=edge ip=198.51.100.7",
            "3 edge:remote_address=192.0.2.1 unlimited descriptor=remote_address domain=edge ip=192.0.2.1",
            "4 edge:path=/login:{user_id} 20 per 3600s descriptor=path,user domain=edge endpoint=/login shadow (logins)",
            "5 edge:path=/files/*:{endpoint} 1000 per 86400s descriptor=path domain=edge endpoint=/files/**",
            "6 edge:generic_key=report_* 5000 per 2592000s descriptor=generic_key domain=edge generic_key=report_**",
            "7 edge:{tenant} 50 per 1s descriptor=tenant domain=edge instead of logins",
        ]
    );
    let windows = convert(FILE, Algorithm::FixedWindow).unwrap();
    let is_window = |rule: &String| rule.contains(" window") || rule.contains(" unlimited");
    assert!(rules(&windows).iter().all(is_window));
    assert_eq!(windows.notes.len(), converted(FILE).notes.len() - 1);
}

#[test]
fn unsupported_parts_are_listed() {
    assert_eq!(
        listed(&converted(FILE)),
        [
            "1 note: limits: are counted by token buckets, not in windows: the same burst, refilled evenly over the \
             time that was a window; use `--algorithm fixed_window` to count in windows",
            "25 note: `path=/login / {user_id}`: `detailed_metric`: is not supported: metrics are by rule",
            "43 left out: `tenant: again`: is duplicated on its path, and an attribute has one value",
            "48 left out: `{tenant} / {region}`: is in quota mode, which is not supported; `mode = \"shadow\"` counts without denying",
            "50 left out: `{closed}`: a rule cannot have a limit of 0; block a subject by an override instead",
            "52 note: `{odd}`: `colour`: is an unknown field, ignored",
            "53 left out: `{odd}`: needs a `unit` from second to year, and a whole number of `requests_per_unit`",
            "54 left out: `a b`: cannot be the name of an attribute",
            "56 left out: descriptor: `key` is missing",
        ]
    );
}

/// Each case: a descriptor's value, or several descriptors, and the expected reason.
#[test]
fn values_that_no_condition_can_express_are_left_out() {
    let limit = "rate_limit: {unit: second, requests_per_unit: 1}";
    let left_out = |descriptors: &[&str]| {
        let lines = descriptors.iter().map(|descriptor| format!("- {{{descriptor}, {limit}}}\n"));
        let text = format!("domain: d\ndescriptors:\n{}", lines.collect::<String>());
        let notes = converted(&text).notes;
        notes
            .into_iter()
            .filter(|note| note.is_left_out)
            .map(|note| note.reason)
            .collect::<Vec<_>>()
    };
    let stars = "has a value with a `*` that is not at the end";
    let special = "has a value with `!` or `|`, which have a meaning in conditions";
    for (value, reason) in
        [("a*b", stars), ("a**", stars), ("!a", special), ("a !b", special), ("a|b", special)]
    {
        assert_eq!(left_out(&[&format!("key: a, value: '{value}'")]), [reason], "{value}");
    }
    let twice = ["key: a, value: b", "key: a, value: b"];
    assert_eq!(left_out(&twice), ["is a duplicate of line 3"]);
    for key in ["domain", "descriptor", "namespace"] {
        let reason = "is a reserved attribute name";
        assert_eq!(left_out(&[&format!("key: {key}")]), [reason]);
    }
    assert_eq!(
        left_out(&["key: a", "key: a, value: '*'"]),
        ["is never reached: the descriptor in line 4 matches its values first"]
    );
    let long: Vec<_> = (0..100).map(|n| format!("key: a, value: '{n:0100}'")).collect();
    let long: Vec<_> = long.iter().map(String::as_str).chain(["key: a"]).collect();
    assert_eq!(
        left_out(&long),
        ["conditions.a: the exceptions after `!` have more than 8192 bytes"]
    );
}

/// A limit of zero becomes an override of the general limit, which must therefore still apply.
#[test]
fn a_limit_of_zero_is_left_to_the_general_limit() {
    let text = "domain: d\ndescriptors:\n- key: a\n  rate_limit: {unit: second, requests_per_unit: 1}\n\
                - {key: a, value: b, rate_limit: {unit: second, requests_per_unit: 0}}\n";
    assert_eq!(rules(&converted(text)), ["1 d:{a} 1 per 1s descriptor=a domain=d"]);
}

#[test]
fn addresses_are_normalized_as_in_requests() {
    let limit = "rate_limit: {unit: second, requests_per_unit: 1}";
    let text = format!(
        "domain: d\ndescriptors:\n- {{key: remote_address, {limit}}}\n\
         - {{key: remote_address, value: '2001:DB8:0::1', {limit}}}\n"
    );
    assert_eq!(
        rules(&converted(&text)),
        [
            "1 d:{ip} 1 per 1s descriptor=remote_address domain=d ip=!2001:db8::1",
            "2 d:remote_address=2001:DB8:0::1 1 per 1s descriptor=remote_address domain=d ip=2001:db8::1",
        ]
    );
}

/// 1999 a year is not exact in microseconds.
#[test]
fn a_limit_that_no_token_bucket_counts_exactly_stays_a_window() {
    let text =
        "domain: d\ndescriptors:\n- key: a\n  rate_limit: {unit: year, requests_per_unit: 1999}\n";
    let converted = converted(text);
    assert_eq!(rules(&converted), ["1 d:{a} 1999 per 31536000s descriptor=a domain=d window"]);
    let [note] = &converted.notes[..] else { panic!("{:?}", converted.notes) };
    assert!(note.reason.starts_with("stays a fixed window: tokens: "), "{note}");
}

#[test]
fn a_text_that_is_not_a_configuration_is_rejected() {
    for (text, reason) in [
        ("domain: a\n", "`descriptors` is missing"),
        ("descriptors: []\n", "`domain` is missing"),
        ("domain: a\ndomain: b\ndescriptors: []\n", "duplicate"),
        ("domain: '{a}'\ndescriptors: []\n", "`{`"),
        ("domain: 'a*'\ndescriptors: []\n", "`*`"),
        ("domain: '!a'\ndescriptors: []\n", "`!`"),
        ("[", "bracket"),
    ] {
        let error = convert(text, Algorithm::TokenBucket).unwrap_err().message;
        assert!(error.contains(reason), "{text}: {error}");
    }
}

#[test]
fn a_domain_named_endpoint_is_not_an_endpoint() {
    let text = "domain: endpoint\ndescriptors:\n- key: a\n  value: b\n  rate_limit: {unit: second, requests_per_unit: 1}\n";
    assert_eq!(
        rules(&converted(text)),
        ["1 domain:endpoint:a=b 1 per 1s a=b descriptor=a domain=endpoint"]
    );
}
