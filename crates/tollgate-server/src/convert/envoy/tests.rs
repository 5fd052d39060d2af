use super::*;
use crate::convert::tests::{listed, rules};

const FILE: &str = include_str!("../../../tests/cli/fixtures/envoy.yaml");

#[test]
fn what_maps() {
    assert_eq!(
        rules(&convert(FILE).unwrap()),
        [
            "1 edge:{ip} 600 per 60s",
            "2 edge:remote_address=198.51.100.7 100 per 1s ip=198.51.100.7",
            "3 edge:path=/login:{user_id} 20 per 3600s endpoint=/login shadow (logins)",
            "4 edge:path=/files/*:{endpoint} 1000 per 86400s endpoint=/files/**",
            "5 edge:generic_key=report_* 5000 per 2592000s generic_key=report_**",
            "6 edge:{tenant} 50 per 1s",
        ]
    );
}

#[test]
fn what_does_not_map_is_listed() {
    assert_eq!(
        listed(&convert(FILE).unwrap()),
        [
            "5 note: `{ip}`: also counts requests that the descriptor in line 9 is for, beside it and not instead of it",
            "17 left out: `remote_address=192.0.2.1`: is unlimited: no rule is needed, or an override `unlimited` of the rule that it is an exception to",
            "25 note: `path=/login / {user_id}`: `detailed_metric`: is about metrics, which are by rule here",
            "41 note: `{tenant}`: `replaces`: has no equal: all rules that match a request apply to it",
            "41 note: `{tenant}`: counts requests too that the descriptors below it are for",
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

#[test]
fn what_is_no_configuration_is_refused() {
    for (text, reason) in [
        ("domain: a\n", "no `descriptors`"),
        ("descriptors: []\n", "no `domain`"),
        ("domain: a\ndomain: b\ndescriptors: []\n", "duplicate"),
        ("domain: '{a}'\ndescriptors: []\n", "`{`"),
        ("[", "bracket"),
    ] {
        let error = convert(text).unwrap_err().message;
        assert!(error.contains(reason), "{text}: {error}");
    }
}

#[test]
fn a_domain_called_endpoint_is_not_mistaken_for_one() {
    let text = "domain: endpoint\ndescriptors:\n- key: a\n  value: b\n  rate_limit: {unit: second, requests_per_unit: 1}\n";
    assert_eq!(rules(&convert(text).unwrap()), ["1 domain:endpoint:a=b 1 per 1s a=b"]);
}
