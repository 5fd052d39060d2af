//! Limiters on a clock that stands still.

use std::time::Duration;

use proptest::prelude::ProptestConfig;
use tollgate::{Limiter, ManualClock, MemoryStore, Micros, Quota, Request, Rule, RuleSet, Verdict};

/// A moment in 2023, not at the edge of any window.
pub(crate) const NOW: Micros = Micros::new(1_700_000_000_123_456);

/// A limiter whose clock stands still.
pub(crate) type TestLimiter = Limiter<MemoryStore<ManualClock>>;

/// A limiter with these rules, and its clock.
pub(crate) fn limiter(rules: Vec<Rule>) -> (TestLimiter, ManualClock) {
    on_clock(RuleSet::new(rules).unwrap())
}

/// A limiter with this set of rules, and its clock.
pub(crate) fn on_clock(rules: RuleSet) -> (TestLimiter, ManualClock) {
    let clock = ManualClock::new(NOW);
    let store = MemoryStore::builder().clock(clock.clone()).max_buckets(10_000).build();
    (Limiter::new(store, rules), clock)
}

/// A rule with a quota such as `10/s burst 50`.
pub(crate) fn rule(rule_id: u64, key_pattern: &str, quota: &str) -> Rule {
    Rule::new(rule_id, key_pattern, self::quota(quota)).unwrap()
}

/// A quota such as `10/s burst 50`.
pub(crate) fn quota(text: &str) -> Quota {
    text.parse().unwrap()
}

/// How many of these requests are allowed, one after the other, before one is not.
pub(crate) fn allowed_in_a_row(limiter: &TestLimiter, request: &Request<'_>) -> usize {
    (0..1_000_000).take_while(|_| limiter.check_now(request).is_allowed()).count()
}

/// What is left in each tier of a request.
pub(crate) fn remaining(limiter: &TestLimiter, request: &Request<'_>) -> Vec<u64> {
    let verdict = limiter.check_now(&request.clone().cost(0));
    verdict.tiers().map(|tier| tier.decision.remaining).collect()
}

/// The ids of a verdict's rules.
pub(crate) fn rule_ids(verdict: &Verdict) -> Vec<u64> {
    verdict.tiers().map(|tier| tier.rule.rule_id()).collect()
}

/// The id of the rule that denied a request.
pub(crate) fn violated(verdict: &Verdict) -> Option<u64> {
    verdict.violated().map(|tier| tier.rule.rule_id())
}

pub(crate) const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

pub(crate) const fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

/// As many cases of a property as this, unless `PROPTEST_CASES` asks for another number.
pub(crate) fn cases(cases: u32) -> ProptestConfig {
    match std::env::var_os("PROPTEST_CASES") {
        Some(_) => ProptestConfig::default(),
        None => ProptestConfig::with_cases(cases),
    }
}
