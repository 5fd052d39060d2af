use super::*;
use crate::rules::convert::tests::{listed, rules};

const FILE: &str = include_str!("../../../../tests/cli/fixtures/limitador.yaml");

#[test]
fn limits_become_rules() {
    assert_eq!(
        rules(&convert(FILE, Algorithm::FixedWindow).unwrap()),
        [
            "1 shop:{customer} 100 per 60s window (by customer)",
            "2 shop:{customer}:3600s 1000 per 3600s window",
            "3 shop:method=POST:endpoint=/orders:{user_id} 5 per 1s endpoint=/orders method=POST window (orders)",
            "4 shop:method=GET 7 per 10s method=GET window (old style)",
            "5 depot 1 per 1s window",
        ]
    );
}

#[test]
fn unsupported_parts_are_listed() {
    assert_eq!(
        listed(&convert(FILE, Algorithm::FixedWindow).unwrap()),
        [
            "32 left out: limit `nobody but us`: the condition `descriptors[0].customer != 'us'` is not of the form `attribute == 'text'`",
            "38 left out: limit `two at once`: the condition `descriptors[0].a == 'x' && descriptors[0].b == 'y'` is not of the form `attribute == 'text'`",
            "44 left out: limit `by program`: the variable `descriptors[0].path.split('/')[1]` is not the name of an attribute",
            "45 left out: limit `closed`: a rule cannot have a limit of 0; block a subject by an override instead",
            "49 note: namespace `depot`: differs from the first limit's; rules of both count every request that has their attributes",
            "52 note: a limit of `depot`: `policy`: is an unknown field, ignored",
            "53 left out: limit `endless`: `max_value` must be a whole number",
        ]
    );
}

#[test]
fn limits_are_windows_or_token_buckets() {
    let converted = convert(FILE, Algorithm::TokenBucket).unwrap();
    assert_eq!(rules(&converted)[1], "2 shop:{customer}:3600s 1000 per 3600s");
    assert!(converted.notes[0].reason.starts_with("are counted by token buckets, not in windows"));
}

#[test]
fn only_equalities_are_converted() {
    for (text, name, value) in [
        ("descriptors[0].path == '/x'", "endpoint", "/x"),
        ("'/x' == descriptors[3][\"path\"]", "endpoint", "/x"),
        ("req.method==GET", "method", "GET"),
        ("tenant == \"a b\"", "tenant", "a b"),
    ] {
        assert_eq!(equality(text), Ok((name.into(), value.into())), "{text}");
    }
    for text in [
        "",
        "a",
        "a != 'b'",
        "a == ''",
        "a == 'b*'",
        "a == '!b'",
        "a == 'b !c'",
        "a == '{b}'",
        "a == b == c",
        "a == 'b' || c == 'd'",
        "size(a) == 3",
        "descriptors[x].a == 'b'",
        "'a' == 'b'",
        "a == 'it\\'s'",
    ] {
        assert!(equality(text).is_err(), "{text}");
    }
}

#[test]
fn a_text_that_is_not_a_list_is_rejected() {
    for text in ["a: 1\n", "text\n", "limits: 5\n"] {
        assert!(
            convert(text, Algorithm::FixedWindow).unwrap_err().message.contains("not a list"),
            "{text}"
        );
    }
    assert!(convert("limits: []\n", Algorithm::FixedWindow).unwrap().rules.is_empty());
}
