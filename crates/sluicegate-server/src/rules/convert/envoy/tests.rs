use super::*;
use crate::rules::convert::tests::{listed, rules};

const FILE: &str = include_str!("../../../../tests/cli/fixtures/envoy.yaml");

fn converted(text: &str) -> Converted {
    convert(text, Algorithm::TokenBucket).unwrap()
}

#[test]
fn what_maps() {
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
fn what_does_not_map_is_listed() {
    assert_eq!(
        listed(&converted(FILE)),
        [
            "1 note: limits: are counted by token buckets, not in windows: as many at once, and as many again over the \
             time that was a window; `--algorithm fixed_window` counts as there",
            "25 note: `path=/login / {user_id}`: `detailed_metric`: is about metrics, which are by rule here",
            "43 left out: `tenant: again`: is on the way down twice, and an attribute has one value",
            "48 left out: `{tenant} / {region}`: is in quota mode, which has no equal; `mode = \"shadow\"` counts without denying",
            "50 left out: `{closed}`: a rule lets something through; block somebody by an override instead",
            "52 note: `{odd}`: `colour`: is unknown, and does nothing",
            "53 left out: `{odd}`: needs a `unit` from second to year, and a whole number of `requests_per_unit`",
            "54 left out: `a b`: cannot be the name of an attribute",
            "56 left out: descriptor: has no key",
        ]
    );
}

/// A line each: what it says of a descriptor with this value, or of several.
#[test]
fn what_no_condition_can_say_is_left_out() {
    let limit = "rate_limit: {unit: second, requests_per_unit: 1}";
    let left_out = |descriptors: &[&str]| {
        let lines = descriptors.iter().map(|descriptor| format!("- {{{descriptor}, {limit}}}\n"));
        let text = format!("domain: d\ndescriptors:\n{}", lines.collect::<String>());
        let notes = converted(&text).notes;
        notes.into_iter().filter(|note| note.is_left_out).map(|note| note.why).collect::<Vec<_>>()
    };
    let stars = "has a `*` in its value that is not at its end";
    let special = "has `!` or `|` in its value, which mean something in a condition";
    for (value, why) in
        [("a*b", stars), ("a**", stars), ("!a", special), ("a !b", special), ("a|b", special)]
    {
        assert_eq!(left_out(&[&format!("key: a, value: '{value}'")]), [why], "{value}");
    }
    let twice = ["key: a, value: b", "key: a, value: b"];
    assert_eq!(left_out(&twice), ["is in line 3 already"]);
    for key in ["domain", "descriptor"] {
        let why = "is the name of an attribute that every call has already";
        assert_eq!(left_out(&[&format!("key: {key}")]), [why]);
    }
    assert_eq!(
        left_out(&["key: a", "key: a, value: '*'"]),
        ["is never reached: the descriptor in line 4 takes its values"]
    );
    let long: Vec<_> = (0..100).map(|n| format!("key: a, value: '{n:0100}'")).collect();
    let long: Vec<_> = long.iter().map(String::as_str).chain(["key: a"]).collect();
    assert_eq!(left_out(&long), ["conditions.a: the exceptions after `!` have at most 8192 bytes"]);
}

/// Nobody is let through there: an override of the other limit can say that, so it must apply.
#[test]
fn what_lets_nothing_through_is_left_to_others() {
    let text = "domain: d\ndescriptors:\n- key: a\n  rate_limit: {unit: second, requests_per_unit: 1}\n\
                - {key: a, value: b, rate_limit: {unit: second, requests_per_unit: 0}}\n";
    assert_eq!(rules(&converted(text)), ["1 d:{a} 1 per 1s descriptor=a domain=d"]);
}

/// A request has its address in one spelling.
#[test]
fn addresses_are_spelt_as_requests_have_them() {
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

/// 1999 a year cannot be counted by the microsecond.
#[test]
fn what_no_token_bucket_counts_stays_a_window() {
    let text =
        "domain: d\ndescriptors:\n- key: a\n  rate_limit: {unit: year, requests_per_unit: 1999}\n";
    let converted = converted(text);
    assert_eq!(rules(&converted), ["1 d:{a} 1999 per 31536000s descriptor=a domain=d window"]);
    let [note] = &converted.notes[..] else { panic!("{:?}", converted.notes) };
    assert!(note.why.starts_with("stays a fixed window: tokens: "), "{note}");
}

#[test]
fn what_is_no_configuration_is_refused() {
    for (text, reason) in [
        ("domain: a\n", "no `descriptors`"),
        ("descriptors: []\n", "no `domain`"),
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
fn a_domain_called_endpoint_is_not_mistaken_for_one() {
    let text = "domain: endpoint\ndescriptors:\n- key: a\n  value: b\n  rate_limit: {unit: second, requests_per_unit: 1}\n";
    assert_eq!(
        rules(&converted(text)),
        ["1 domain:endpoint:a=b 1 per 1s a=b descriptor=a domain=endpoint"]
    );
}
