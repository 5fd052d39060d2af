//! Rules that replace others, and rules without a limit.

use std::collections::HashSet;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use sluicegate::rules::{Applies, RuleError};
use sluicegate::{Mode, Override, Overrides, Request, Rule, RuleSet};

use crate::library::support::{allowed_in_a_row, cases, limiter, rule, rule_ids};

fn user(user_id: &str) -> Request<'_> {
    Request::new().user_id(user_id)
}

fn named(rule: Rule, name: &str) -> Rule {
    rule.with_name(name).unwrap()
}

fn replacing(rule: Rule, names: &[&str]) -> Rule {
    rule.with_replaces(names).unwrap()
}

fn unlimited(rule_id: u64, key_pattern: &str) -> Rule {
    rule(rule_id, key_pattern, "1/hour").with_mode(Mode::Unlimited)
}

#[test]
fn a_rule_stands_in_for_those_it_replaces_where_it_applies() {
    let vip = rule(3, "vip:{user_id}", "1/hour burst 9").with_condition("tenant", "acme").unwrap();
    let (limiter, _) = limiter(vec![
        named(rule(1, "user:{user_id}", "1/hour burst 2"), "by user"),
        named(rule(2, "other:{user_id}", "1/hour burst 3"), "by user"),
        replacing(vip, &["by user", "nobody"]),
        rule(4, "global", "1/hour burst 100"),
    ]);
    assert!(limiter.rules().has_replacing());
    let vip = user("42").attribute("tenant", "acme");
    assert_eq!(rule_ids(&limiter.check_now(&vip)), [3, 4]);
    assert_eq!(rule_ids(&limiter.check_now(&user("42"))), [1, 2, 4]);
    assert_eq!(allowed_in_a_row(&limiter, &vip), 8);
    assert_eq!(allowed_in_a_row(&limiter, &user("42")), 1, "nothing was taken from it meanwhile");
}

/// The order does not matter, nor whether one is replaced itself: two that replace each other are both out.
#[test]
fn all_replacing_happens_at_once() {
    let chain = |rule_id, key_pattern: &str, name, replaces| {
        named(replacing(rule(rule_id, key_pattern, "1/s"), replaces), name)
    };
    let rules = RuleSet::new(vec![
        chain(1, "a", "a", &[]),
        chain(2, "b", "b", &["a"]),
        chain(3, "c", "c", &["b"]),
        chain(4, "d", "d", &["e"]),
        chain(5, "e", "e", &["d"]),
    ])
    .unwrap();
    let applies: Vec<u64> = rules.matching(&user("42")).map(Rule::rule_id).collect();
    assert_eq!(applies, [3]);
    let reasons: Vec<_> = rules.explain(&user("42")).map(|(_, reason)| reason).collect();
    let by = |rule_id| Applies::Replaced { rule_id };
    assert_eq!(reasons, [by(2), by(3), Applies::Yes, by(5), by(4)]);
}

/// A rule that is inactive, for another plan, or has a condition that fails replaces no other.
#[test]
fn only_a_rule_that_applies_replaces() {
    let base = || named(rule(1, "a", "1/s"), "a");
    let with = |second: Rule| {
        let rules = RuleSet::new(vec![base(), replacing(second, &["a"])]).unwrap();
        rules.matching(&user("42")).map(Rule::rule_id).collect::<Vec<_>>()
    };
    assert_eq!(with(rule(2, "b", "1/s")), [2]);
    assert_eq!(with(rule(2, "b", "1/s").with_mode(Mode::Shadow)), [2]);
    assert_eq!(with(rule(2, "b", "1/s").with_is_active(false)), [1]);
    assert_eq!(with(rule(2, "b", "1/s").with_plan("pro").unwrap()), [1]);
    assert_eq!(with(rule(2, "b:{ip}", "1/s")), [1]);
    assert_eq!(with(rule(2, "b", "1/s").with_condition("method", "GET").unwrap()), [1]);
}

#[test]
fn a_rule_without_a_limit_limits_nobody_and_replaces_others() {
    let trusted = unlimited(2, "trusted:{user_id}").with_condition("tenant", "acme").unwrap();
    let (limiter, _) = limiter(vec![
        named(rule(1, "user:{user_id}", "1/hour burst 2"), "by user"),
        replacing(trusted, &["by user"]),
    ]);
    let trusted = user("42").attribute("tenant", "acme").cost(u64::MAX);
    let verdict = limiter.check_now(&trusted);
    assert!(verdict.is_allowed() && verdict.is_unlimited());
    assert_eq!(verdict.tiers().len(), 0);
    assert!(verdict.tightest().is_none());
    assert_eq!(limiter.store().stats().buckets, 0, "it has no bucket");
    let verdict = limiter.check_now(&user("42"));
    assert!(!verdict.is_unlimited() && verdict.tiers().len() == 1);
    let reserved = limiter.reserve_now(&trusted);
    assert!(reserved.verdict().is_allowed());
}

/// Beside other rules it changes nothing. What single subjects have instead counts when it is enforced.
#[test]
fn a_rule_without_a_limit_has_no_overrides_either() {
    let (limiter, _) =
        limiter(vec![rule(1, "a:{user_id}", "1/hour burst 2"), unlimited(2, "b:{user_id}")]);
    let blocked = Overrides::new([
        (2, "42".to_owned(), Override::Blocked),
        (1, "7".to_owned(), Override::Unlimited),
    ]);
    let rules = limiter.rules().as_ref().clone().with_overrides(blocked.unwrap());
    limiter.replace_rules(rules.clone());
    assert_eq!(allowed_in_a_row(&limiter, &user("42")), 2);
    let verdict = limiter.check_now(&user("7"));
    assert!(verdict.is_unlimited() && verdict.tiers().len() == 0);
    let enforced = rules.rules().iter().cloned().map(|rule| rule.with_mode(Mode::Enforce));
    let enforced = RuleSet::new(enforced.collect()).unwrap();
    limiter.replace_rules(enforced.with_overrides(rules.overrides().clone()));
    assert_eq!(limiter.check_now(&user("42")).retry_after(), None);
    assert!(limiter.check_now(&user("7")).is_unlimited(), "by the override");
}

#[test]
fn names_are_bounded() {
    let rule = || rule(1, "a", "1/s");
    assert!(rule().with_name(&"n".repeat(128)).is_ok());
    assert_eq!(rule().with_name(&"n".repeat(129)), Err(RuleError::Name));
    assert_eq!(rule().with_name("a\n"), Err(RuleError::Name));
    assert_eq!(rule().with_name("x").unwrap().with_name("").unwrap().name(), None);
    assert_eq!(rule().with_replaces(&[""]), Err(RuleError::Name));
    assert_eq!(rule().with_replaces(&["a", "\0"]), Err(RuleError::Name));
    let names: Vec<String> = (0..33).map(|n| n.to_string()).collect();
    assert!(rule().with_replaces(&names[..32]).is_ok());
    assert_eq!(rule().with_replaces(&names), Err(RuleError::TooManyReplaced));
    let twice = RuleError::SameReplaced { name: "b".into() };
    assert_eq!(rule().with_replaces(&["b", "a", "b"]), Err(twice));
    let own = Err(RuleError::ReplacesItself);
    assert_eq!(named(rule(), "a").with_replaces(&["b", "a"]), own);
    assert_eq!(replacing(rule(), &["b", "a"]).with_name("a"), own);
}

const NAMES: [&str; 4] = ["a", "b", "c", "d"];

/// A rule as plain data: its tenant, its name, and the names it replaces.
type Plain = (Option<&'static str>, Option<&'static str>, Vec<&'static str>);

fn plain() -> impl Strategy<Value = Plain> {
    let tenant = prop::option::of(select(&["acme", "other"][..]));
    let name = prop::option::of(select(&NAMES[..]));
    (tenant, name, subsequence(NAMES.to_vec(), 0..3)).prop_map(|(tenant, name, mut replaces)| {
        replaces.retain(|other| Some(*other) != name);
        (tenant, name, replaces)
    })
}

proptest! {
    #![proptest_config(cases(500))]

    /// Against the definition: what matches, but for what something that matches replaces.
    #[test]
    fn the_replaced_are_those_of_the_definition(plains in vec(plain(), 0..12)) {
        let rules = (1..).zip(&plains).map(|(id, (tenant, name, replaces))| {
            let mut rule = replacing(rule(id, &format!("r{id}"), "1/s"), replaces);
            if let Some(tenant) = tenant {
                rule = rule.with_condition("tenant", tenant).unwrap();
            }
            named(rule, name.unwrap_or_default())
        });
        let rules = RuleSet::new(rules.collect()).unwrap();
        prop_assert_eq!(rules.has_replacing(), plains.iter().any(|(.., r)| !r.is_empty()));
        for tenant in ["acme", "other", "third"] {
            let matching = || (1..).zip(&plains).filter(|(_, plain)| {
                plain.0.is_none_or(|own| own == tenant)
            });
            let replaced: HashSet<_> = matching().flat_map(|(_, plain)| plain.2.clone()).collect();
            let is_left = |plain: &Plain| plain.1.is_none_or(|name| !replaced.contains(name));
            let left = matching().filter(|(_, plain)| is_left(plain)).map(|(id, _)| id);
            let expected: Vec<u64> = left.collect();
            let request = Request::new().attribute("tenant", tenant);
            let found: Vec<u64> = rules.matching(&request).map(Rule::rule_id).collect();
            prop_assert_eq!(&found, &expected);
            let yes = rules.explain(&request).filter(|(_, reason)| *reason == Applies::Yes);
            prop_assert_eq!(yes.map(|(rule, _)| rule.rule_id()).collect::<Vec<_>>(), expected);
        }
    }
}
