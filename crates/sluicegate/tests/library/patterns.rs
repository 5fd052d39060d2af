//! Key patterns, and errors that point at the character.

use proptest::prelude::*;
use sluicegate::rules::{Attribute, Pattern};
use sluicegate::{Request, Scope};

use crate::library::support::rule;

/// A pattern, with a `^` under the character that is wrong, and what is said about it.
const MISTAKES: [(&str, &str, &str); 18] = [
    ("", "^", "a key pattern must not be empty"),
    ("user:{user_id", "     ^", "this `{` is never closed"),
    ("user:{user_id}:{", "               ^", "this `{` is never closed"),
    ("{a}}", "   ^", "this `}` is never opened"),
    ("user:}", "     ^", "this `}` is never opened"),
    ("}{a}", "^", "this `}` is never opened"),
    ("x:{}", "   ^", "`` is not the name of an attribute: use letters, digits, `_`, `-` and `.`"),
    (
        "x:{ user_id}",
        "   ^",
        "` user_id` is not the name of an attribute: use letters, digits, `_`, `-` and `.`",
    ),
    (
        "x:{a{b}",
        "   ^",
        "`a{b` is not the name of an attribute: use letters, digits, `_`, `-` and `.`",
    ),
    ("é:{è}", "   ^", "`è` is not the name of an attribute: use letters, digits, `_`, `-` and `.`"),
    ("{a}:{b}:{a}", "         ^", "`{a}` is duplicated"),
    ("{user_id}{user_id}", "          ^", "`{user_id}` is duplicated"),
    (
        "{a}{b}{c}{d}{e}{f}{g}{h}{i}",
        "                        ^",
        "the key pattern has more than 8 placeholders",
    ),
    ("user\n", "    ^", "a key pattern must not have control characters"),
    ("\u{7f}{", "^", "a key pattern must not have control characters"),
    ("a\u{9b}31m", " ^", "a key pattern must not have control characters"),
    ("endpoint:", "         ^", "an endpoint is missing after `endpoint:`"),
    ("{\u{0}}", " ^", "a key pattern must not have control characters"),
];

#[test]
fn a_mistake_is_pointed_at() {
    for (pattern, caret, message) in MISTAKES {
        let error = Pattern::parse(pattern).unwrap_err();
        assert_eq!(error.to_string(), message, "{pattern:?}");
        let characters = pattern[..error.at()].chars().count();
        assert_eq!(characters, caret.len() - 1, "{pattern:?}: {error}");
    }
}

#[test]
fn a_pattern_has_a_bounded_length() {
    let longest = "x".repeat(256);
    assert!(Pattern::parse(&longest).is_ok());
    let error = Pattern::parse(&format!("{longest}y")).unwrap_err();
    assert_eq!(
        (error.at(), error.to_string().as_str()),
        (256, "the key pattern has more than 256 bytes")
    );
    // The first character too many begins in front of the limit, and is pointed at whole.
    let error = Pattern::parse(&"€".repeat(86)).unwrap_err();
    assert_eq!(error.at(), 255);

    let name = "n".repeat(64);
    assert!(Pattern::parse(&format!("{{{name}}}")).is_ok());
    assert_eq!(Pattern::parse(&format!("{{{name}n}}")).unwrap_err().at(), 1);
}

#[test]
fn the_subject_comes_first() {
    let attributes = |pattern: &str| -> Vec<String> {
        let pattern = Pattern::parse(pattern).unwrap();
        pattern.attributes().iter().map(ToString::to_string).collect()
    };
    assert_eq!(attributes("api:{endpoint}:{user_id}"), ["user_id", "endpoint"]);
    assert_eq!(attributes("{a}{b}{ip}{user_id}{c}"), ["user_id", "a", "b", "ip", "c"]);
    assert_eq!(attributes("{a}{ip}{b}"), ["ip", "a", "b"]);
    assert_eq!(attributes("{tenant}:{region}"), ["tenant", "region"]);
    assert_eq!(attributes("global"), <[&str; 0]>::default());
}

#[test]
fn people_read_the_pattern_filled_in() {
    let key =
        |pattern: &str, request: &Request<'_>| Pattern::parse(pattern).unwrap().bucket_key(request);
    let request = Request::new().user_id("42").endpoint("/a").attribute("tenant.id", "ac:me");
    assert_eq!(key("api:{endpoint}:{user_id}", &request).unwrap(), "api:/a:42");
    assert_eq!(key("{tenant.id}!", &request).unwrap(), "ac:me!");
    assert_eq!(key("global", &request).unwrap(), "global");
    assert_eq!(key("ip:{ip}", &request), None);
}

#[test]
fn a_pattern_suggests_its_scope() {
    for (pattern, scope) in [
        ("user:{user_id}", Scope::User),
        ("api:{endpoint}:{user_id}", Scope::User),
        ("ip:{ip}", Scope::Ip),
        ("{ip}:{endpoint}", Scope::Ip),
        ("endpoint:/api/search", Scope::Endpoint),
        ("endpoint:{endpoint}", Scope::Endpoint),
        ("global", Scope::Global),
        ("globally", Scope::Custom),
        ("tenant:{tenant}", Scope::Custom),
    ] {
        assert_eq!(rule(1, pattern, "1/s").scope(), scope, "{pattern}");
    }
    assert_eq!(rule(1, "global", "1/s").with_scope(Scope::Ip).scope(), Scope::Ip);
}

#[test]
fn only_a_fixed_endpoint_is_an_endpoint() {
    let endpoint = |pattern: &str| {
        let pattern = Pattern::parse(pattern).unwrap();
        pattern.endpoint().map(ToString::to_string)
    };
    assert_eq!(endpoint("endpoint:/api/**").as_deref(), Some("/api/**"));
    assert_eq!(endpoint("endpoint:{endpoint}"), None);
    assert_eq!(endpoint("endpoint:/api/{user_id}"), None);
    assert_eq!(endpoint("Endpoint:/api"), None);
}

#[test]
fn known_attributes_have_one_name() {
    for name in ["user_id", "ip", "endpoint", "method", "plan", "x-tenant.1"] {
        assert_eq!(Attribute::new(name).name(), name);
        assert!(Attribute::is_name(name));
    }
    assert!(!Attribute::is_name(""));
    assert!(!Attribute::is_name("a b"));
    assert!(!Attribute::is_name("naïve"));
}

proptest! {
    /// Any text is a pattern, or has an error at one of its characters or just after the last.
    #[test]
    fn parsing_is_total(text in "[{}a:é\n]{0,12}|\\PC{0,12}") {
        match Pattern::parse(&text) {
            Ok(pattern) => prop_assert_eq!(pattern.as_str(), &text),
            Err(error) => prop_assert!(text.is_char_boundary(error.at())),
        }
    }
}
