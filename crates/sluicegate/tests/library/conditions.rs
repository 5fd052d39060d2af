//! Conditions: globs that must match, and exceptions.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use sluicegate::rules::{Attribute, Condition, Glob, GlobError, PatternError, RuleError, RuleSpec};
use sluicegate::{PathForm, Request, Rule, RuleSet};

use crate::library::support::{cases, rule};

fn holds(condition: &str, value: Option<&str>) -> bool {
    Condition::parse(condition).unwrap().holds(value)
}

#[test]
fn exceptions_are_whole_globs() {
    for (condition, value) in [
        ("!/login", "/logout"),
        ("!/login", "/login/"),
        ("!/login", ""),
        ("!/login|/signup", "/login|/signup"),
        ("!/api/*|/login", "/api/a/b"),
        ("/api/** !/api/login", "/api/me"),
        ("/api/** !/api/login|/api/me/*", "/api/me"),
        ("a|b", "a|b"),
        ("wow!", "wow!"),
        ("a!b", "a!b"),
        ("!!", "x"),
    ] {
        assert!(holds(condition, Some(value)), "{condition} {value}");
    }
    for (condition, value) in [
        ("!/login", "/login"),
        ("!/login|/signup", "/signup"),
        ("!/api/*|/login", "/api/a"),
        ("!**", ""),
        ("/api/** !/api/login", "/api/login"),
        ("/api/** !/api/login", "/login"),
        ("/api/** !/api/login|/api/me/*", "/api/me/7"),
        ("a|b", "a"),
        ("!!", "!"),
    ] {
        assert!(!holds(condition, Some(value)), "{condition} {value}");
    }
}

/// A request that lacks the attribute is not an exception; a glob that must match needs the attribute.
#[test]
fn exceptions_hold_for_whoever_lacks_the_attribute() {
    assert!(holds("!/login", None));
    assert!(holds("!**", None));
    assert!(!holds("/login", None));
    assert!(!holds("** !/login", None));
}

#[test]
fn exceptions_are_bounded() {
    let wrong = |text: &str| Condition::parse(text).unwrap_err();
    for empty in ["", "!", "!a|", "!|a", "!a||b", " !a", "a !"] {
        assert_eq!(wrong(empty), GlobError::Empty, "{empty}");
    }
    let long = "a".repeat(257);
    assert_eq!(wrong(&long), GlobError::TooLong);
    assert_eq!(wrong(&format!("!b|{long}")), GlobError::TooLong);
    let words = |count: usize, word: &str| vec![word; count].join("|");
    assert!(Condition::parse(&format!("!{}", words(4096, "a"))).is_ok());
    assert_eq!(wrong(&format!("!{}", words(4097, "a"))), GlobError::ExceptTooLong);
    assert!(Condition::parse(&format!("!{}", words(64, "*"))).is_ok());
    assert_eq!(wrong(&format!("!{}", words(65, "*"))), GlobError::TooManyStars);
}

/// The index goes by what an endpoint must match, and finds rules that have only exceptions everywhere.
#[test]
fn rules_with_exceptions_are_found() {
    let on = |rule: Rule, condition: &str| rule.with_condition("endpoint", condition).unwrap();
    let rules = RuleSet::new(vec![
        on(rule(1, "a", "1/s"), "!/login|/signup"),
        on(rule(2, "b", "1/s"), "/api/** !/api/login"),
        on(rule(3, "endpoint:/api/*", "1/s"), "!/api/login"),
    ])
    .unwrap();
    let ids = |request: &Request<'_>| -> Vec<u64> {
        rules.matching(request).map(Rule::rule_id).collect()
    };
    assert_eq!(ids(&Request::new()), [1]);
    assert_eq!(ids(&Request::new().endpoint("/login")), [0; 0]);
    assert_eq!(ids(&Request::new().endpoint("/api/login")), [1]);
    assert_eq!(ids(&Request::new().endpoint("/api/me")), [1, 2, 3]);
    assert_eq!(ids(&Request::new().endpoint("/api/me/7")), [1, 2]);
    let (attribute, condition) = &rules.rules()[1].conditions()[0];
    assert_eq!((attribute, condition.as_str()), (&Attribute::Endpoint, "/api/** !/api/login"));
    assert_eq!(condition.glob().map(Glob::as_str), Some("/api/**"));
}

proptest! {
    #![proptest_config(cases(1_000))]

    /// A condition with exceptions holds if its glob matches and none of the exceptions does.
    #[test]
    fn exceptions_are_what_their_definition_says(
        glob in prop::option::of(select(vec!["a*", "**", "ab", "/**"])),
        except in vec("[ab/*]{1,4}", 1..6),
        value in "[ab/]{0,4}",
    ) {
        let is_match = |glob: &str| Glob::parse(glob).unwrap().matches(&value);
        let expected = glob.is_none_or(is_match) && !except.iter().any(|glob| is_match(glob));
        let list = except.join("|");
        let text = glob.map_or_else(|| format!("!{list}"), |glob| format!("{glob} !{list}"));
        prop_assert_eq!(holds(&text, Some(&value)), expected, "{}", text);
    }
}

/// Folded rules compare the folded endpoint with their folded globs, and take it into their keys.
#[test]
fn a_folded_rule_compares_folded_paths() {
    let folded = |id, pattern: &str, glob: &str| {
        let rule = rule(id, pattern, "1/s").with_condition("endpoint", glob).unwrap();
        rule.with_path(PathForm::Folded).unwrap()
    };
    let rules = RuleSet::new(vec![
        folded(1, "a:{endpoint}", "/Login/"),
        folded(2, "b", "/API/*"),
        folded(3, "c", "/** !/LOGIN|/health/"),
        rule(4, "endpoint:/V1/", "1/s").with_path(PathForm::Folded).unwrap(),
        rule(5, "exact", "1/s").with_condition("endpoint", "/login").unwrap(),
    ])
    .unwrap();
    let ids = |path| -> Vec<u64> {
        rules.matching(&Request::new().endpoint(path)).map(Rule::rule_id).collect()
    };
    assert_eq!(ids("/login"), [1, 5]);
    assert_eq!(ids("/LOGIN;x/"), [1]);
    assert_eq!(ids("/Api//7/"), [2, 3]);
    assert_eq!(ids("/api"), [3]);
    assert_eq!(ids("/Health"), Vec::<u64>::new());
    assert_eq!(ids("/v1"), [3, 4]);
    let request = Request::new().endpoint("//Login");
    assert_eq!(rules.rules()[0].bucket_key(&request).as_deref(), Some("a:/login"));
    assert_eq!(rules.rules()[0].subject(&request), Some("/login"));
    let escaped: Vec<u64> = rules.escaped(&request).map(Rule::rule_id).collect();
    assert_eq!(escaped, [5]);
    // As written, whatever the order in which the columns are set.
    let late = rule(1, "a:{endpoint}", "1/s").with_path(PathForm::Folded).unwrap();
    let late = late.with_condition("endpoint", "/Login/").unwrap();
    assert_eq!(late, rules.rules()[0]);
    assert_eq!(late.conditions()[0].1.as_str(), "/Login/");
    assert_eq!(late.spec().build().unwrap(), late);
}

/// A glob that is empty when folded would match no request: it is refused as an empty one is.
#[test]
fn a_glob_that_folds_to_nothing_is_refused() {
    for glob in [".", "..", ";v=1", "?x", "#top", "a/..", "**/.."] {
        let empty = RuleError::Glob { attribute: "endpoint".into(), error: GlobError::Empty };
        for condition in [glob.to_owned(), format!("!{glob}"), format!("/** !/a|{glob}")] {
            let exact = rule(1, "a", "1/s").with_condition("endpoint", &condition).unwrap();
            assert_eq!(
                exact.clone().with_path(PathForm::Folded),
                Err(empty.clone()),
                "{condition}"
            );
            let folded = rule(1, "a", "1/s").with_path(PathForm::Folded).unwrap();
            assert_eq!(folded.with_condition("endpoint", &condition), Err(empty.clone()));
            let errors = RuleSpec { path: PathForm::Folded, ..exact.spec() }.build().unwrap_err();
            assert_eq!(
                (errors[0].field, errors[0].of.as_deref()),
                ("conditions", Some("endpoint"))
            );
            assert_eq!((errors.len(), &*errors[0].reason), (1, "an empty glob matches nothing"));
        }
        let exact = rule(1, &format!("endpoint:{glob}"), "1/s");
        let refused = exact.clone().with_path(PathForm::Folded);
        assert_eq!(refused, Err(PatternError::NoEndpoint { at: 9 }.into()), "{glob}");
        let errors = RuleSpec { path: PathForm::Folded, ..exact.spec() }.build().unwrap_err();
        assert_eq!((errors.len(), errors[0].field, errors[0].at), (1, "key_pattern", Some(9)));
    }
}
