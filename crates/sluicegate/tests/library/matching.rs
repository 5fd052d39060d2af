//! Rules that apply to a request, case by case.

use sluicegate::rules::Attribute;
use sluicegate::{Request, Rule, RuleSet};

use crate::library::support::rule;

/// The ids of the rules that apply.
fn matching(rules: &[Rule], request: &Request<'_>) -> Vec<u64> {
    let rules = RuleSet::new(rules.to_vec()).unwrap();
    rules.matching(request).map(Rule::rule_id).collect()
}

fn planned(rule_id: u64, plan: &str) -> Rule {
    rule(rule_id, "user:{user_id}", "1/s").with_plan(plan).unwrap()
}

fn on(rule: Rule, attribute: &str, glob: &str) -> Rule {
    rule.with_condition(attribute, glob).unwrap()
}

#[test]
fn a_rule_whose_attribute_is_missing_does_not_apply() {
    let rules = [
        rule(1, "user:{user_id}", "1/s"),
        rule(2, "{user_id}:{tenant}", "1/s"),
        rule(3, "global", "1/s"),
        rule(4, "{method}", "1/s"),
    ];
    assert_eq!(matching(&rules, &Request::new()), [3]);
    assert_eq!(matching(&rules, &Request::new().user_id("42")), [1, 3]);
    let tenant = Request::new().user_id("42").attribute("tenant", "acme").method("GET");
    assert_eq!(matching(&rules, &tenant), [1, 2, 3, 4]);
    // Known by their names too, the last value counts, and an empty value is one.
    let named = Request::new().attribute("user_id", "42").attribute("tenant", "");
    assert_eq!(matching(&rules, &named), [1, 2, 3]);
}

#[test]
fn the_last_of_two_values_counts() {
    let request = Request::new()
        .attribute("tenant", "a")
        .user_id("1")
        .attribute("tenant", "b")
        .attribute("user_id", "2");
    assert_eq!(request.get(&Attribute::new("tenant")), Some("b"));
    assert_eq!(request.get(&Attribute::UserId), Some("2"));
    assert_eq!(request.get(&Attribute::new("Tenant")), None);
    assert_eq!((request.get_plan(), request.get_cost()), (None, 1));
    assert_eq!(Request::new().plan("").get_plan(), None, "an empty plan is none");
    // A plan is an attribute too, so that a rule can have a bucket for every plan.
    assert_eq!(Request::new().plan("free").get(&Attribute::new("plan")), Some("free"));
    assert_eq!(Request::new().attribute("plan", "free").get_plan(), Some("free"));
    let rules = [rule(1, "plan:{plan}", "1/s")];
    assert_eq!(matching(&rules, &Request::new().plan("free")), [1]);
    assert!(matching(&rules, &Request::new()).is_empty());
}

#[test]
fn a_rule_that_is_switched_off_does_not_apply() {
    let rules = [rule(1, "a", "1/s").with_is_active(false), rule(2, "b", "1/s")];
    assert_eq!(matching(&rules, &Request::new()), [2]);
}

#[test]
fn a_rule_applies_to_its_plan_only() {
    let rules = [planned(1, ""), planned(2, "free"), planned(3, "pro")];
    let user = || Request::new().user_id("42");
    assert_eq!(matching(&rules, &user()), [1]);
    assert_eq!(matching(&rules, &user().plan("")), [1]);
    assert_eq!(matching(&rules, &user().plan("free")), [1, 2]);
    assert_eq!(matching(&rules, &user().plan("pro")), [1, 3]);
    assert_eq!(matching(&rules, &user().plan("Free")), [1]);
    assert_eq!(matching(&rules, &user().plan("default")), [1]);
}

#[test]
fn the_default_applies_where_the_plan_is_not_named() {
    let rules = [planned(1, "free"), planned(2, "default"), planned(3, "")];
    let user = || Request::new().user_id("42");
    assert_eq!(matching(&rules, &user()), [2, 3], "no plan");
    assert_eq!(matching(&rules, &user().plan("")), [2, 3], "an empty plan is none");
    assert_eq!(matching(&rules, &user().plan("free")), [1, 3], "named");
    assert_eq!(matching(&rules, &user().plan("FREE")), [2, 3], "names are case-sensitive");
    assert_eq!(matching(&rules, &user().plan("gold")), [2, 3], "not named");
    assert_eq!(matching(&rules, &user().plan("default")), [2, 3], "by its own name, once");
}

#[test]
fn the_default_gives_way_to_active_rules_that_match() {
    let user = || Request::new().user_id("42").plan("free");
    let off = [planned(1, "free").with_is_active(false), planned(2, "default")];
    assert_eq!(matching(&off, &user()), [2], "a rule that is off names nothing");

    let elsewhere = [on(planned(1, "free"), "endpoint", "/x"), planned(2, "default")];
    assert_eq!(matching(&elsewhere, &user()), [2]);
    assert_eq!(matching(&elsewhere, &user().endpoint("/y")), [2]);
    assert_eq!(matching(&elsewhere, &user().endpoint("/x")), [1]);

    // Another key pattern's rules say nothing about this one's.
    let other = rule(1, "u:{user_id}", "1/s").with_plan("free").unwrap();
    assert_eq!(matching(&[other, planned(2, "default")], &user()), [1, 2]);

    // The default's own conditions count too.
    let both = [planned(1, "free"), on(planned(2, "default"), "endpoint", "/x")];
    assert_eq!(matching(&both, &user().endpoint("/x")), [1]);
    assert_eq!(matching(&both, &user().plan("pro").endpoint("/x")), [2]);
    assert_eq!(matching(&both, &user().plan("pro").endpoint("/y")), <[u64; 0]>::default());
}

#[test]
fn a_shadow_rule_names_its_plan_as_well() {
    let shadow = planned(1, "free").with_mode(sluicegate::Mode::Shadow);
    let user = Request::new().user_id("42").plan("free");
    assert_eq!(matching(&[shadow, planned(2, "default")], &user), [1]);
}

#[test]
fn all_conditions_must_match() {
    let login = on(on(rule(1, "a", "1/s"), "endpoint", "/login"), "method", "P*");
    let rules = [on(login, "tenant", "**")];
    let request = || Request::new().endpoint("/login").method("POST").attribute("tenant", "");
    assert_eq!(matching(&rules, &request()), [1]);
    assert_eq!(matching(&rules, &request().method("GET")), <[u64; 0]>::default());
    assert_eq!(matching(&rules, &request().endpoint("/Login")), <[u64; 0]>::default());
    let no_tenant = Request::new().endpoint("/login").method("PUT");
    assert_eq!(matching(&rules, &no_tenant), <[u64; 0]>::default());

    // So must a condition on the endpoint and the endpoint in the key pattern.
    let twice = [on(rule(1, "endpoint:/a/**", "1/s"), "endpoint", "**/z")];
    assert_eq!(matching(&twice, &Request::new().endpoint("/a/b/z")), [1]);
    assert_eq!(matching(&twice, &Request::new().endpoint("/a/b")), <[u64; 0]>::default());
    assert_eq!(matching(&twice, &Request::new().endpoint("/b/z")), <[u64; 0]>::default());
}

#[test]
fn an_endpoint_pattern_is_for_that_endpoint() {
    let rules = [
        rule(1, "endpoint:/api/search", "1/s"),
        rule(2, "endpoint:/api/*", "1/s"),
        rule(3, "endpoint:/api/**", "1/s"),
        rule(4, "endpoint:**", "1/s"),
        rule(5, "endpoint:/a*/search", "1/s"),
        rule(6, "endpoint:{endpoint}", "1/s"),
        rule(7, "endpoint:/api", "1/s"),
        rule(8, "endpoint:api/**", "1/s"),
    ];
    let at = |endpoint| matching(&rules, &Request::new().endpoint(endpoint));
    assert_eq!(at("/api/search"), [1, 2, 3, 4, 5, 6]);
    assert_eq!(at("/api/search/"), [3, 4, 6]);
    assert_eq!(at("/api/v1/users"), [3, 4, 6]);
    assert_eq!(at("/api"), [4, 6, 7]);
    assert_eq!(at("/api/"), [2, 3, 4, 6]);
    assert_eq!(at("/abc/search"), [4, 5, 6]);
    assert_eq!(at("//api/search"), [4, 6]);
    assert_eq!(at("api/x"), [4, 6, 8]);
    assert_eq!(at(""), [4, 6]);
    assert_eq!(at("/"), [4, 6]);
    assert_eq!(matching(&rules, &Request::new()), <[u64; 0]>::default());
}

#[test]
fn an_endpoint_pattern_and_a_condition_must_both_match() {
    let wide = rule(1, "endpoint:/api/**", "1/s");
    let rules = [on(wide, "endpoint", "/api/v1/users/*")];
    assert_eq!(matching(&rules, &Request::new().endpoint("/api/v1/users/7")), [1]);
    assert_eq!(matching(&rules, &Request::new().endpoint("/api/v1/x/7")), <[u64; 0]>::default());
    let contradiction = [on(rule(1, "endpoint:/a", "1/s"), "endpoint", "/b")];
    assert_eq!(matching(&contradiction, &Request::new().endpoint("/a")), <[u64; 0]>::default());
    assert_eq!(matching(&contradiction, &Request::new().endpoint("/b")), <[u64; 0]>::default());
}

#[test]
fn the_order_in_which_rules_are_given_says_nothing() {
    let mut rules = vec![planned(9, ""), planned(3, "default"), rule(5, "global", "1/s")];
    let request = Request::new().user_id("42");
    assert_eq!(matching(&rules, &request), [3, 5, 9]);
    rules.reverse();
    assert_eq!(matching(&rules, &request), [3, 5, 9]);
}
