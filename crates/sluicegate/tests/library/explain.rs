//! Reasons why rules apply to a request or do not.

use proptest::collection::vec;
use proptest::prelude::*;
use sluicegate::rules::{Applies, Attribute};
use sluicegate::{Request, Rule, RuleSet};

use crate::library::index::{Plain, PlainRequest, asked, plain, rule_set};
use crate::library::support::{cases, rule};

/// Returns whether this reason is true of the rule and the request.
fn is_true(
    reason: &Applies,
    rule: &Rule,
    plain: &Plain,
    asked: &PlainRequest,
    all: &[Plain],
) -> bool {
    let plan = asked.plan.filter(|plan| !plan.is_empty());
    let request = asked.request();
    match reason {
        Applies::Yes => true,
        Applies::SwitchedOff => !plain.is_active,
        Applies::OtherPlan => !["", "default"].contains(&plain.plan) && plan != Some(plain.plan),
        Applies::Superseded { rule_id } => {
            let other = &all[usize::try_from(*rule_id).unwrap() - 1];
            let names_it = other.pattern == plain.pattern && plan == Some(other.plan);
            plain.plan == "default" && names_it && other.is_active && other.conditions_match(asked)
        }
        Applies::ConditionFails { attribute } => {
            let value = request.get(attribute);
            let mut conditions = rule.conditions().iter().filter(|(on, _)| on == attribute);
            let endpoint =
                rule.key_pattern().endpoint().filter(|_| *attribute == Attribute::Endpoint);
            conditions.any(|(_, condition)| !condition.holds(value))
                || endpoint.is_some_and(|glob| !value.is_some_and(|value| glob.matches(value)))
        }
        Applies::AttributeMissing { attribute } => {
            rule.key_pattern().attributes().contains(attribute)
                && asked.get(attribute.name()).is_none()
        }
        _ => false,
    }
}

proptest! {
    #![proptest_config(cases(1_000))]

    /// Exactly the rules that apply are reported as such, and every other reason is true.
    #[test]
    fn the_reasons_are_those_of_the_index(
        mut plains in vec(plain(), 0..24),
        asked in vec(asked(), 1..12),
    ) {
        let rules = rule_set(&mut plains);
        for asked in asked {
            let request = asked.request();
            let applies: Vec<u64> = rules.matching(&request).map(Rule::rule_id).collect();
            let explained: Vec<_> = rules.explain(&request).collect();
            prop_assert_eq!(explained.len(), plains.len());
            let yes = explained.iter().filter(|(_, reason)| *reason == Applies::Yes);
            prop_assert_eq!(yes.map(|(rule, _)| rule.rule_id()).collect::<Vec<_>>(), applies);
            for ((rule, reason), plain) in explained.iter().zip(&plains) {
                let is_true = is_true(reason, rule, plain, &asked, &plains);
                prop_assert!(is_true, "{:?}: {:?} of {:?}", asked, reason, plain);
            }
        }
    }
}

/// Of several reasons the first is reported: inactive, then the plan, then conditions and attributes.
#[test]
fn each_reason_has_its_case() {
    let plan = |rule: Rule, plan: &str| rule.with_plan(plan).unwrap();
    let on = |rule: Rule, name: &str, glob: &str| rule.with_condition(name, glob).unwrap();
    let rules = RuleSet::new(vec![
        rule(1, "user:{user_id}", "1/s"),
        rule(2, "off", "1/s").with_is_active(false),
        plan(rule(3, "api:{user_id}", "1/s"), "free"),
        plan(rule(4, "api:{user_id}", "1/s"), "pro"),
        plan(rule(5, "api:{user_id}", "1/s"), "default"),
        on(on(rule(6, "login:{ip}", "1/s"), "method", "POST"), "endpoint", "/login"),
        rule(7, "endpoint:/search/*", "1/s"),
        rule(8, "{tenant}:{ip}", "1/s"),
    ]);
    let rules = rules.unwrap();
    let request = Request::new().user_id("42").plan("free").endpoint("/login").method("GET");
    let fails = |attribute| Applies::ConditionFails { attribute };
    let missing = |name| Applies::AttributeMissing { attribute: Attribute::new(name) };
    let expected = [
        Applies::Yes,
        Applies::SwitchedOff,
        Applies::Yes,
        Applies::OtherPlan,
        Applies::Superseded { rule_id: 3 },
        fails(Attribute::Method),
        fails(Attribute::Endpoint),
        missing("ip"),
    ];
    let explained: Vec<_> = rules.explain(&request).map(|(_, reason)| reason).collect();
    assert_eq!(explained, expected);
    let request = request.method("POST").ip("::1").plan("gold");
    let reasons: Vec<_> = rules.explain(&request).skip(2).map(|(_, reason)| reason).collect();
    let expected = [
        Applies::OtherPlan,
        Applies::OtherPlan,
        Applies::Yes,
        Applies::Yes,
        fails(Attribute::Endpoint),
        missing("tenant"),
    ];
    assert_eq!(reasons, expected);
}
