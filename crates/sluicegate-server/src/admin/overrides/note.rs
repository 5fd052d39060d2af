//! Notes on overrides that do not affect every request of their subject.

use sluicegate::Rule;
use sluicegate::rules::{Mode, Override};

/// Plan of rules that apply to requests whose plan no other rule names.
const DEFAULT_PLAN: &str = "default";

/// Text listing when the rule does not apply or denies no request, and therefore the override has no effect. `None` if
/// it affects every request of its subject.
pub(super) fn note(rule: &Rule, instead: &Override) -> Option<String> {
    let id = rule.rule_id();
    let then = match instead {
        Override::Blocked => "this subject is not blocked",
        Override::Quota(_) | Override::Unlimited => "this override has no effect",
    };
    let mut notes = Vec::new();
    if !rule.is_active() {
        notes.push(format!("rule {id} is not active: until it is, {then}"));
    }
    if rule.mode() != Mode::Enforce {
        let mode = rule.mode().name();
        notes.push(format!("rule {id} is in {mode} mode: until it is enforced, {then}"));
    }
    match rule.plan() {
        None => {}
        Some(DEFAULT_PLAN) => notes.push(format!(
            "rule {id} is for plans that no other rule with its key pattern names: under others, {then}"
        )),
        Some(plan) => notes.push(format!(
            "rule {id} is for plan {plan} only: under other plans, and without one, {then}"
        )),
    }
    let endpoint = rule.key_pattern().endpoint().map(|glob| format!("endpoint={glob}"));
    let conditions =
        rule.conditions().iter().map(|(name, condition)| format!("{name}={condition}"));
    let conditions: Vec<_> = conditions.chain(endpoint).collect();
    if !conditions.is_empty() {
        let conditions = conditions.join(" and ");
        notes.push(format!("rule {id} is for requests with {conditions}: for others, {then}"));
    }
    (!notes.is_empty()).then(|| notes.join("; "))
}

#[cfg(test)]
mod tests {
    use sluicegate::Quota;

    use super::*;

    fn rule() -> Rule {
        Rule::new(1, "user:{user_id}", Quota::per_second(1).unwrap()).unwrap()
    }

    #[test]
    fn a_rule_that_every_request_meets_needs_none() {
        assert_eq!(note(&rule(), &Override::Blocked), None);
    }

    #[test]
    fn a_rule_that_some_requests_do_not_meet_needs_one() {
        for (rule, expected) in [
            (rule().with_is_active(false), "rule 1 is not active: until it is, "),
            (rule().with_mode(Mode::Shadow), "rule 1 is in shadow mode: until it is enforced, "),
            (
                rule().with_mode(Mode::Unlimited),
                "rule 1 is in unlimited mode: until it is enforced, ",
            ),
            (
                rule().with_plan("free").unwrap(),
                "rule 1 is for plan free only: under other plans, and without one, ",
            ),
            (
                rule().with_plan(DEFAULT_PLAN).unwrap(),
                "rule 1 is for plans that no other rule with its key pattern names: under others, ",
            ),
            (
                rule().with_condition("endpoint", "/login").unwrap(),
                "rule 1 is for requests with endpoint=/login: for others, ",
            ),
        ] {
            let blocked = note(&rule, &Override::Blocked);
            assert_eq!(blocked, Some(format!("{expected}this subject is not blocked")));
            let unlimited = note(&rule, &Override::Unlimited);
            assert_eq!(unlimited, Some(format!("{expected}this override has no effect")));
        }
    }

    #[test]
    fn every_limitation_is_noted() {
        let rule = rule()
            .with_condition("endpoint", "/login")
            .unwrap()
            .with_condition("method", "POST")
            .unwrap()
            .with_is_active(false);
        let note = note(&rule, &Override::Blocked).unwrap();
        assert!(note.contains("not active") && note.contains("; rule 1 is for "), "{note}");
        assert!(note.contains("endpoint=/login and method=POST"), "{note}");
    }
}
