//! The rules that a new installation starts with. With a database they come from `migrations/*/0001_rules.up.sql`
//! and `0007_path.up.sql` of the service; its test `the_starter_rules_are_those_of_the_library` keeps both equal.

use sluicegate_core::Quota;

use super::rule::{PathForm, Rule, RuleError};
use super::set::RuleSet;

/// Key pattern, plan, condition on the endpoint, rate with burst, description. Their order is that of
/// their ids, from 1.
const STARTER: [(&str, &str, &str, &str, &str); 9] = [
    ("user:{user_id}", "free", "", "10/s burst 50", "every user of the free plan"),
    ("user:{user_id}", "pro", "", "100/s burst 500", "every user of the pro plan"),
    ("user:{user_id}", "enterprise", "", "1000/s burst 5000", "every user of the enterprise plan"),
    ("endpoint:/api/search", "", "", "1000/s burst 2000", "search, all users together"),
    ("login:{ip}", "", "/login", "5/minute burst 5", "brute force against logins"),
    ("payment:{user_id}", "", "/payment", "1/minute burst 3", "payments of one user"),
    ("ip:{ip}", "", "", "100/s burst 200", "every address"),
    ("global", "", "", "50000/s burst 100000", "everything together"),
    ("search:{user_id}", "", "/search", "10/s burst 100", "autocomplete of one user"),
];

/// Endpoints of rules that protect against abuse: another spelling must not escape them.
const FOLDED: [&str; 2] = ["/login", "/payment"];

impl RuleSet {
    /// The rules that a new installation starts with: plans free, pro and enterprise, and limits for
    /// logins, payments, search, addresses and everything together.
    #[must_use]
    #[expect(clippy::missing_panics_doc, reason = "the rules are constant, and a test builds them")]
    #[expect(clippy::expect_used, reason = "the rules are constant, and a test builds them")]
    pub fn starter() -> Self {
        let rules: Result<Vec<_>, _> = (1..).zip(STARTER).map(|(id, row)| rule(id, row)).collect();
        Self::new(rules.expect("every starter rule is sound")).expect("no two of them clash")
    }
}

fn rule(
    rule_id: u64,
    (key_pattern, plan, endpoint, quota, description): (&str, &str, &str, &str, &str),
) -> Result<Rule, Box<dyn std::error::Error>> {
    let rule = Rule::new(rule_id, key_pattern, quota.parse::<Quota>()?)?
        .with_plan(plan)?
        .with_description(description);
    let with_endpoint = |rule: Rule| -> Result<Rule, RuleError> {
        if endpoint.is_empty() { Ok(rule) } else { rule.with_condition("endpoint", endpoint) }
    };
    let path = if FOLDED.contains(&endpoint) { PathForm::Folded } else { PathForm::Exact };
    Ok(with_endpoint(rule)?.with_path(path)?)
}
