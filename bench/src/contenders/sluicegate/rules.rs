//! The whole `check(&Request)`: matching of the rules, and one atomic charge of their buckets.
//!
//! Three rules apply to every request: a user's, an endpoint's and the global one. All other rules belong
//! to endpoints and plans without requests.

use std::error::Error;
use std::hint::black_box;

use sluicegate::{Limiter, Quota, Request, Rule, RuleSet, SystemClock};

use super::{memory, quota};

/// A limiter with rules.
pub(in crate::contenders) struct Whole(Limiter);

/// Quotas of the rules that apply.
struct Quotas {
    user: Quota,
    endpoint: Quota,
    global: Quota,
}

impl Whole {
    /// A limiter with this number of rules, three of which apply.
    pub(in crate::contenders) fn new(keys: u64, rules: u64) -> Self {
        let quotas = Quotas { user: quota(), endpoint: quota(), global: quota() };
        Self::with(keys, quotas, rules).expect("the benchmark's rules are sound")
    }

    /// A limiter with realistic quotas. Users send a little less than their quota allows, so that nearly all
    /// have a bucket that is not full.
    pub(in crate::contenders) fn with_real_quotas(keys: u64) -> Self {
        let whole = || {
            let everybody = Quota::per_second(1_000_000)?;
            let user = Quota::per_minute(30)?;
            Self::with(keys, Quotas { user, endpoint: everybody, global: everybody }, 3)
        };
        whole().expect("the benchmark's rules are sound")
    }

    fn with(keys: u64, quotas: Quotas, rules: u64) -> Result<Self, Box<dyn Error>> {
        let mut all = vec![
            Rule::new(1, "user:{user_id}", quotas.user)?,
            Rule::new(2, "endpoint:/api/search", quotas.endpoint)?,
            Rule::new(3, "global", quotas.global)?,
        ];
        for id in 4..=rules {
            all.push(other_rule(id)?);
        }
        Ok(Self(Limiter::new(memory(SystemClock::new(), 2 * keys), RuleSet::new(all)?)))
    }
}

/// A rule of another endpoint or of another plan.
fn other_rule(id: u64) -> Result<Rule, Box<dyn Error>> {
    if id.is_multiple_of(2) {
        Ok(Rule::new(id, &format!("endpoint:/api/other-{id}"), quota())?)
    } else {
        Ok(Rule::new(id, "user:{user_id}", quota())?.with_plan(&format!("plan-{id}"))?)
    }
}

impl crate::contenders::Limiter for Whole {
    type Key = String;

    #[inline]
    fn check(&self, key: &String, cost: u32) -> bool {
        let request = Request::new()
            .user_id(key)
            .ip("203.0.113.9")
            .endpoint("/api/search")
            .plan("free")
            .cost(cost.into());
        black_box(self.0.check_now(&request)).is_allowed()
    }
}
