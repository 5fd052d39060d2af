//! Limiters on a manual clock, for several suites.

use proptest::prelude::ProptestConfig;
use sluicegate::{Limiter, ManualClock, MemoryStore, Micros, Quota, Rule, RuleSet};

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

/// As many cases of a property as this, unless `PROPTEST_CASES` asks for another number.
pub(crate) fn cases(cases: u32) -> ProptestConfig {
    match std::env::var_os("PROPTEST_CASES") {
        Some(_) => ProptestConfig::default(),
        None => ProptestConfig::with_cases(cases),
    }
}
