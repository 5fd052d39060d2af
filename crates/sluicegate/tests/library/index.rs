//! Matching through the index, against a scan of all rules that shares no code with it.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use sluicegate::rules::Glob;
use sluicegate::{Request, Rule, RuleSet};

use crate::library::support::{cases, rule};

const PATTERNS: [(&str, &[&str], Option<&str>); 9] = [
    ("global", &[], None),
    ("user:{user_id}", &["user_id"], None),
    ("{tenant}:{ip}", &["tenant", "ip"], None),
    ("api:{endpoint}", &["endpoint"], None),
    ("endpoint:/a", &[], Some("/a")),
    ("endpoint:/a/*", &[], Some("/a/*")),
    ("endpoint:/a/b/**", &[], Some("/a/b/**")),
    ("endpoint:**", &[], Some("**")),
    ("endpoint:/*/b", &[], Some("/*/b")),
];
const PLANS: [&str; 5] = ["", "default", "free", "pro", "Free"];
const ENDPOINT_GLOBS: [&str; 14] = [
    "/a", "/a/b", "/a/*", "/a/**", "/a/b/*", "/b/**", "**", "*", "**/b", "/a*/b", "a/*", "/a//*",
    "!/a", "!/a/*|/b",
];
const ENDPOINTS: [&str; 14] = [
    "/a", "/a/b", "/a/b/c", "/a/", "/a/b/", "/b", "/b/b", "/ab/b", "", "/", "a", "a/b", "/a//b",
    "x",
];

/// A rule as plain data.
#[derive(Clone, Debug)]
pub(crate) struct Plain {
    pub(crate) pattern: usize,
    pub(crate) plan: &'static str,
    pub(crate) is_active: bool,
    conditions: Vec<(&'static str, &'static str)>,
}

/// A request as plain data.
#[derive(Clone, Debug)]
pub(crate) struct PlainRequest {
    attributes: Vec<(&'static str, &'static str)>,
    pub(crate) plan: Option<&'static str>,
}

impl PlainRequest {
    pub(crate) fn get(&self, name: &str) -> Option<&'static str> {
        self.attributes.iter().find(|(other, _)| *other == name).map(|(_, value)| *value)
    }

    pub(crate) fn request(&self) -> Request<'static> {
        let mut request = Request::new();
        for (name, value) in &self.attributes {
            request = request.attribute(name, value);
        }
        match self.plan {
            Some(plan) => request.plan(plan),
            None => request,
        }
    }
}

impl Plain {
    pub(crate) fn rule(&self, rule_id: u64) -> Rule {
        let mut rule = rule(rule_id, PATTERNS[self.pattern].0, "1/s")
            .with_plan(self.plan)
            .unwrap()
            .with_is_active(self.is_active);
        for (name, glob) in &self.conditions {
            rule = rule.with_condition(name, glob).unwrap();
        }
        rule
    }

    /// Definition: every condition matches, and the endpoint of an endpoint pattern does.
    pub(crate) fn conditions_match(&self, asked: &PlainRequest) -> bool {
        let endpoint = PATTERNS[self.pattern].2.map(|glob| ("endpoint", glob));
        self.conditions.iter().copied().chain(endpoint).all(|(name, glob)| {
            let matches =
                |glob| asked.get(name).is_some_and(|v| Glob::parse(glob).unwrap().matches(v));
            glob.strip_prefix('!')
                .map_or_else(|| matches(glob), |except| !except.split('|').any(matches))
        })
    }

    /// Definition: no placeholder is missing, and the plan is right.
    fn applies(&self, asked: &PlainRequest, all: &[Self]) -> bool {
        let plan = asked.plan.filter(|plan| !plan.is_empty());
        let names_the_plan = |other: &Self| {
            other.is_active
                && other.pattern == self.pattern
                && other.plan != "default"
                && plan == Some(other.plan)
                && other.conditions_match(asked)
        };
        let right_plan = match self.plan {
            "" => true,
            "default" => !all.iter().any(names_the_plan),
            name => plan == Some(name),
        };
        self.is_active
            && right_plan
            && self.conditions_match(asked)
            && PATTERNS[self.pattern].1.iter().all(|name| asked.get(name).is_some())
    }
}

/// Any rule.
pub(crate) fn plain() -> impl Strategy<Value = Plain> {
    let endpoint = prop_oneof![
        1 => Just(Vec::new()),
        3 => select(&ENDPOINT_GLOBS).prop_map(|glob| vec![("endpoint", glob)]),
    ];
    let method = select(&[None, None, Some(("method", "P*")), Some(("tenant", "acme"))][..]);
    (0..PATTERNS.len(), select(&PLANS), prop::bool::weighted(0.9), endpoint, method).prop_map(
        |(pattern, plan, is_active, mut conditions, other)| {
            conditions.extend(other);
            Plain { pattern, plan, is_active, conditions }
        },
    )
}

/// Any request.
pub(crate) fn asked() -> impl Strategy<Value = PlainRequest> {
    let attributes = (
        subsequence(
            vec![("user_id", "42"), ("ip", "::1"), ("tenant", "acme"), ("method", "POST")],
            0..=4,
        ),
        prop::option::weighted(0.9, select(&ENDPOINTS)),
    );
    let plan = prop::option::weighted(0.8, select(&PLANS));
    (attributes, plan).prop_map(|((mut attributes, endpoint), plan)| {
        attributes.extend(endpoint.map(|endpoint| ("endpoint", endpoint)));
        PlainRequest { attributes, plan }
    })
}

/// A set of these rules: of several for one pattern and plan, the first.
pub(crate) fn rule_set(plains: &mut Vec<Plain>) -> RuleSet {
    rule_set_among(plains, 0)
}

/// A set of these rules and `others` for endpoints that no request has.
fn rule_set_among(plains: &mut Vec<Plain>, others: u64) -> RuleSet {
    let mut seen = std::collections::HashSet::new();
    plains.retain(|plain| seen.insert((plain.pattern, plain.plan)));
    let rules = (1..).zip(&*plains).map(|(id, plain)| plain.rule(id));
    let others = (0..others).map(|n| {
        let path = ["/*/", "/a/", "/a/*/b/**/"][n as usize % 3];
        rule(1000 + n, &format!("endpoint:{path}z{n}*"), "1/s")
    });
    RuleSet::new(rules.chain(others).collect()).unwrap()
}

proptest! {
    #![proptest_config(cases(1_000))]

    #[test]
    fn the_index_finds_what_a_scan_finds(
        mut plains in vec(plain(), 0..24),
        asked in vec(asked(), 1..12),
        others in select(vec![0, 60]),
    ) {
        let rules = rule_set_among(&mut plains, others);
        for asked in asked {
            let found: Vec<u64> = rules.matching(&asked.request()).map(Rule::rule_id).collect();
            let applies = |(_, plain): &(u64, &Plain)| plain.applies(&asked, &plains);
            let expected = (1..).zip(&plains).filter(applies).map(|(id, _)| id);
            prop_assert_eq!(found, expected.collect::<Vec<_>>(), "{:?}", asked);
        }
    }
}

/// The same with a thousand rules for other endpoints and plans in between.
#[test]
fn other_rules_do_not_get_in_the_way() {
    let own = [rule(1, "user:{user_id}", "1/s"), rule(2, "endpoint:/api/v1/search/*", "1/s")];
    let others = (3..1000).map(|id| match id % 4 {
        0 => rule(id, &format!("endpoint:/api/v1/e{id}/**"), "1/s"),
        1 => rule(id, &format!("endpoint:/api/e{id}"), "1/s"),
        2 => rule(id, "user:{user_id}", "1/s").with_plan(&format!("p{id}")).unwrap(),
        _ => rule(id, &format!("x{id}"), "1/s").with_condition("endpoint", "/x/*").unwrap(),
    });
    let default = rule(1000, "user:{user_id}", "1/s").with_plan("default").unwrap();
    let rules = RuleSet::new(own.into_iter().chain(others).chain([default]).collect()).unwrap();
    let ids = |request: &Request<'_>| -> Vec<u64> {
        rules.matching(request).map(Rule::rule_id).collect()
    };
    let request = Request::new().user_id("42").endpoint("/api/v1/search/7");
    assert_eq!(ids(&request), [1, 2, 1000]);
    assert_eq!(ids(&request.clone().plan("p6")), [1, 2, 6]);
    assert_eq!(ids(&request.endpoint("/api/v1/e8/a/b")), [1, 8, 1000]);
}
