//! The whole check of a service with many customers: rules by plan, endpoint and address, and overrides.
//!
//! Four rules apply to every request: those of its user's plan, its endpoint and its address, and the
//! global one. Nine users in a hundred have a separate quota, and some addresses are blocked, so that both
//! rules look up overrides for every request.

use std::error::Error;
use std::hint::black_box;

use sluicegate::rules::{Override, Overrides};
use sluicegate::{Limiter, Request, Rule, RuleSet, SystemClock};

use super::{memory, quota};
use crate::workloads::Key;

/// Rules of a service, by key pattern, plan and endpoint.
const RULES: [(&str, &str, &str); 10] = [
    ("user:{user_id}", "free", ""),
    ("user:{user_id}", "pro", ""),
    ("user:{user_id}", "default", ""),
    ("endpoint:/api/search", "", ""),
    ("endpoint:/api/upload", "", ""),
    ("login:{ip}", "", "/login"),
    ("payment:{user_id}", "", "/payment"),
    ("ip:{ip}", "", ""),
    ("global", "", ""),
    ("export:{user_id}", "", "/api/*/export"),
];
/// Rules that the overrides belong to.
const OF_USER: u64 = 1;
const OF_PAYMENT: u64 = 7;
const OF_ADDRESS: u64 = 8;

/// A limiter with rules and overrides.
pub(in crate::contenders) struct Overridden(Limiter);

impl Overridden {
    /// A limiter with these numbers of rules and overrides.
    pub(in crate::contenders) fn new(keys: u64, rules: u64, overrides: u64) -> Self {
        Self::with(keys, rules, overrides).expect("the benchmark's rules are sound")
    }

    fn with(keys: u64, rules: u64, overrides: u64) -> Result<Self, Box<dyn Error>> {
        let known = (1..).zip(RULES).map(|(id, row)| known_rule(id, row));
        let all = known.chain((11..=rules).map(other_rule)).collect::<Result<_, _>>()?;
        let overrides = Overrides::new((0..overrides).map(an_override))?;
        let rules = RuleSet::new(all)?.with_overrides(overrides);
        Ok(Self(Limiter::new(memory(SystemClock::new(), 2 * keys), rules)))
    }
}

fn known_rule(
    id: u64,
    (pattern, plan, endpoint): (&str, &str, &str),
) -> Result<Rule, Box<dyn Error>> {
    let rule = Rule::new(id, pattern, quota())?.with_plan(plan)?;
    Ok(if endpoint.is_empty() { rule } else { rule.with_condition("endpoint", endpoint)? })
}

/// A rule of another endpoint or of another plan.
fn other_rule(id: u64) -> Result<Rule, Box<dyn Error>> {
    let user = || Rule::new(id, "user:{user_id}", quota());
    Ok(match id % 4 {
        0 => Rule::new(id, &format!("endpoint:/api/other-{id}"), quota())?,
        1 => user()?.with_plan(&format!("plan-{id}"))?,
        2 => Rule::new(id, &format!("team-{id}:{{user_id}}"), quota())?
            .with_condition("endpoint", &format!("/teams/{id}/**"))?,
        _ => Rule::new(id, &format!("write-{id}:{{ip}}"), quota())?
            .with_condition("endpoint", &format!("/api/v{id}/*"))?
            .with_condition("method", "POST")?,
    })
}

/// Override of this number: most are quotas of users; of the rest, which no request meets, half are
/// unlimited users and half blocked addresses.
fn an_override(number: u64) -> (u64, String, Override) {
    match number % 20 {
        18 => (OF_PAYMENT, String::of(10 * number), Override::Unlimited),
        19 => (OF_ADDRESS, format!("2001:db8::{number:x}"), Override::Blocked),
        _ => (OF_USER, String::of(10 * number), Override::Quota(quota())),
    }
}

impl crate::contenders::Limiter for Overridden {
    type Key = String;

    #[inline]
    fn check(&self, key: &String, cost: u32) -> bool {
        let request = Request::new()
            .user_id(key)
            .ip("203.0.113.9")
            .endpoint("/api/search")
            .method("GET")
            .plan("free")
            .cost(cost.into());
        black_box(self.0.check_now(&request)).is_allowed()
    }
}
