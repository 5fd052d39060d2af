//! `docs/headers.md` tells the truth: its examples are what its rules answer.

use http::{HeaderMap, StatusCode};
use sluicegate::headers::{Headers, PROBLEM_JSON, Policies};
use sluicegate::{Request, RuleSet, Verdict};

use crate::http::support::{NOW, on_clock};

const DOCS: &str = include_str!("../../../../docs/headers.md");

/// The code blocks of one language.
fn blocks(language: &str) -> Vec<&'static str> {
    let fence = format!("```{language}\n");
    DOCS.split(fence.as_str()).skip(1).map(|rest| rest.split("```").next().unwrap()).collect()
}

/// An answer as it goes over the wire.
fn answer(verdict: &Verdict) -> String {
    let policies = Policies::of(verdict);
    let mut fields = HeaderMap::new();
    Headers::default().write(&policies, NOW, &mut fields);
    let status = if verdict.is_allowed() { StatusCode::OK } else { StatusCode::TOO_MANY_REQUESTS };
    let mut body = String::new();
    if !verdict.is_allowed() {
        fields.insert("content-type", PROBLEM_JSON);
        let json = policies.problem_json(status);
        body = format!("\n{}\n", String::from_utf8(json).unwrap());
    }
    let fields =
        fields.iter().map(|(name, value)| format!("{name}: {}\n", value.to_str().unwrap()));
    format!("HTTP/1.1 {status}\n{}{body}", fields.collect::<String>())
}

#[test]
fn its_examples_are_answers() {
    let rules = RuleSet::from_toml("rules.toml", blocks("toml")[0]).unwrap();
    let (limiter, _) = on_clock(rules);
    let user = Request::new().user_id("42").ip("203.0.113.9");
    let login = user.clone().endpoint("/login");
    assert!(limiter.check_now(&user.cost(37)).is_allowed());
    let first = answer(&limiter.check_now(&login));
    for _ in 0..4 {
        assert!(limiter.check_now(&login).is_allowed());
    }
    let denied = answer(&limiter.check_now(&login));
    let never = answer(&limiter.check_now(&login.cost(6)));
    assert_eq!(blocks("http"), [first, denied, never]);
}
