//! Rules that are many or hostile: ordinary requests are matched, and the work of the others is bounded.

use sluicegate::rules::Applies;
use sluicegate::{Limiter, MemoryStore, Request, Rule, RuleSet};

use crate::library::support::rule;

fn conditional(id: u64, endpoint: &str) -> Rule {
    rule(id, &format!("r{id}"), "100/s").with_condition("endpoint", endpoint).unwrap()
}

fn limiter(rules: impl Iterator<Item = Rule>) -> Limiter<MemoryStore> {
    Limiter::new(MemoryStore::new(), RuleSet::new(rules.collect()).unwrap())
}

/// Checks a request, and compares the verdict with the explanation.
fn ids_of(name: &str, limiter: &Limiter<MemoryStore>, request: &Request<'_>) -> Vec<u64> {
    let verdict = limiter.check_now(request);
    assert!(verdict.is_allowed(), "{name}: {verdict:?}");
    let rules = limiter.rules();
    let explained = rules.explain(request).filter(|(_, applies)| *applies == Applies::Yes);
    let explained: Vec<u64> = explained.map(|(rule, _)| rule.rule_id()).collect();
    let tiers: Vec<u64> = verdict.tiers().map(|tier| tier.rule.rule_id()).collect();
    assert_eq!(tiers, explained);
    tiers
}

fn assert_too_costly(name: &str, limiter: &Limiter<MemoryStore>, request: &Request<'_>) {
    let verdict = limiter.check_now(request);
    assert!(verdict.is_too_costly() && !verdict.is_allowed(), "{name}: {verdict:?}");
    assert_eq!((verdict.tiers().len(), verdict.too_many_rules()), (0, None));
    assert!(verdict.violated().is_none() && verdict.retry_after().is_none());
    assert!(limiter.rules().is_too_costly(request));
}

/// Globs that begin with the same long text are told apart: every request meets one rule.
#[test]
fn a_rule_for_each_of_many_tenants_is_met_alone() {
    let prefix = "/api/v1/organizations/tenants/t-";
    let tenant = |id| conditional(id, &format!("{prefix}{id:04}-*"));
    let every = limiter((1..=1_100).map(tenant));
    let default = limiter((1..=1_100).map(|id| tenant(id).with_plan("default").unwrap()));
    for id in [1, 550, 1_100] {
        let path = format!("{prefix}{id:04}-x");
        let request = Request::new().endpoint(&path);
        assert_eq!(ids_of("tenants", &every, &request), [id]);
        assert_eq!(ids_of("default plan", &default, &request), [id]);
    }
}

/// Rules for `default` whose key patterns are also those of rules for a plan.
#[test]
fn many_default_rules_give_way_to_those_of_a_plan() {
    let of_plan = |id: u64| {
        let (tenant, plan) = (id / 2, ["default", "pro"][id as usize % 2]);
        let rule = rule(id, &format!("t{tenant}"), "100/s").with_plan(plan).unwrap();
        rule.with_condition("endpoint", &format!("/tenants/*/t-{tenant:05}*")).unwrap()
    };
    let limiter = limiter((2..=10_001).map(of_plan));
    let request = Request::new().endpoint("/tenants/eu/t-00777-x");
    assert_eq!(ids_of("no plan", &limiter, &request), [1554]);
    assert_eq!(ids_of("plan pro", &limiter, &request.clone().plan("pro")), [1555]);
}

/// A glob whose literals are all in [`winding`] paths, and which is compared with each of their segments.
fn hostile(prefix: &str, number: u64) -> String {
    let spelt = format!("{number:010b}").replace('0', "*a").replace('1', "*b");
    format!("{prefix}/**{spelt}*c**z")
}

fn winding(prefix: &str) -> String {
    format!("{prefix}{}/c/z", "/abababababababababab".repeat(46))
}

/// One budget is for all groups of rules that an endpoint passes, and for all plans.
#[test]
fn hostile_globs_in_nested_groups_are_bounded_together() {
    let prefix = |depth: u64| "/x".repeat(depth as usize);
    let rule = |id| conditional(id, &hostile(&prefix(id / 1_000), id % 1_000));
    let every = limiter((1_000..11_000).map(rule));
    let default = limiter((1_000..11_000).map(|id| rule(id).with_plan("default").unwrap()));
    let path = winding(&prefix(10));
    for limiter in [&every, &default] {
        assert_too_costly("10 nested groups", limiter, &Request::new().endpoint(&path));
        let short = Request::new().endpoint("/x/x/x/abab/c");
        assert!(ids_of("a short path", limiter, &short).is_empty());
    }
}

/// Exceptions and conditions on other attributes spend from the same budget.
#[test]
fn exceptions_are_bounded() {
    let tenant = |id: u64, exceptions: &str| {
        let rule = conditional(id, exceptions);
        rule.with_condition("tenant", &format!("t{id}")).unwrap()
    };
    let except = |count| (0..count).map(|n| hostile("", n)).collect::<Vec<_>>().join("|");
    let (many, path) = (format!("!{}", except(64)), winding(""));
    let limiter_of = |exceptions: &str| limiter((1..=10_000).map(|id| tenant(id, exceptions)));
    let hostile = limiter_of(&many);
    let request = Request::new().endpoint(&path).attribute("tenant", "t7");
    assert_too_costly("10,000 rules with 64 exceptions", &hostile, &request);

    let ordinary = limiter_of("!/health*|/static/**|**.css|/login|/admin/*/logs");
    for path in ["/", "/api/v1/orders/17", "/admin/7/users", "/statistics/all.json"] {
        let request = Request::new().endpoint(path).attribute("tenant", "t7");
        assert_eq!(ids_of("10,000 rules with 5 exceptions", &ordinary, &request), [7]);
    }
}

/// Conditions on an attribute that the index does not know.
#[test]
fn globs_of_other_attributes_are_bounded() {
    let agent = |id: u64, glob: &str| {
        rule(id, &format!("r{id}"), "100/s").with_condition("agent", glob).unwrap()
    };
    let bots = limiter((1..=10_000).map(|id| agent(id, &format!("*bot{id:05}*"))));
    let browser = format!("Mozilla 5.0 {} bot00042", "(X11; Linux x86_64) ".repeat(12));
    let request = Request::new().endpoint("/").attribute("agent", &browser);
    assert_eq!(ids_of("10,000 user agents", &bots, &request), [42]);

    let hostile = limiter((1..=1_000).map(|id| agent(id, &hostile("", id))));
    let value = winding("");
    assert_too_costly("1,000 hostile", &hostile, &Request::new().attribute("agent", &value));
}

/// Replaced rules do not count, unless there are more than any set may allow.
#[test]
fn replacing_is_bounded() {
    let replaced = |count: u64| {
        let names: Vec<String> = (0..32).map(|n| format!("n{n}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let rule = move |id| {
            let rule = conditional(id, "/*");
            if id == 1 {
                return rule.with_replaces(&names).unwrap();
            }
            rule.with_name(names[id as usize % 32]).unwrap()
        };
        let rules: Vec<Rule> = (1..=count).map(rule).collect();
        limiter(rules.into_iter())
    };
    let request = Request::new().endpoint("/x");
    assert_eq!(ids_of("1,023 rules, all but one replaced", &replaced(1_023), &request), [1]);
    let limiter = replaced(2_000);
    assert_eq!(limiter.check_now(&request).too_many_rules(), Some(2_000));
    let rules = limiter.rules();
    assert!(rules.explain(&request).all(|(_, applies)| applies == Applies::Yes));
}
