use super::*;
use crate::rules::convert::tests::{listed, rules};

const FILE: &str = include_str!("../../../../tests/cli/fixtures/limitador.yaml");

#[test]
fn what_maps() {
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
fn what_does_not_map_is_listed() {
    assert_eq!(
        listed(&convert(FILE, Algorithm::FixedWindow).unwrap()),
        [
            "32 left out: limit `nobody but us`: the condition `descriptors[0].customer != 'us'` is more than `attribute == 'text'`",
            "38 left out: limit `two at once`: the condition `descriptors[0].a == 'x' && descriptors[0].b == 'y'` is more than `attribute == 'text'`",
            "44 left out: limit `by program`: the variable `descriptors[0].path.split('/')[1]` is not the name of an attribute",
            "45 left out: limit `closed`: a rule lets something through; block somebody by an override instead",
            "49 note: namespace `depot`: is another one than the first limit's; here the rules of both count every request that has their attributes",
            "52 note: a limit of `depot`: `policy`: is unknown, and does nothing",
            "53 left out: limit `endless`: needs a whole number of `max_value`",
        ]
    );
}

#[test]
fn limits_are_windows_or_token_buckets() {
    let converted = convert(FILE, Algorithm::TokenBucket).unwrap();
    assert_eq!(rules(&converted)[1], "2 shop:{customer}:3600s 1000 per 3600s");
    assert!(converted.notes[0].why.starts_with("are counted by token buckets, not in windows"));
}

#[test]
fn equalities_are_read_and_nothing_else() {
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
fn what_is_no_list_is_refused() {
    for text in ["a: 1\n", "text\n", "limits: 5\n"] {
        assert!(
            convert(text, Algorithm::FixedWindow).unwrap_err().message.contains("no list"),
            "{text}"
        );
    }
    assert!(convert("limits: []\n", Algorithm::FixedWindow).unwrap().rules.is_empty());
}
