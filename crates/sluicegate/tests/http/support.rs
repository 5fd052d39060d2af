//! Fields as a client reads them, and quotas of every kind.

use std::collections::BTreeMap;
use std::time::Duration;

use http::HeaderMap;
use proptest::prelude::*;
use proptest::sample::select;
use sluicegate::headers::{Headers, Policies};
use sluicegate::{Algorithm, Quota, Refill, Rule, Scope, Verdict};

pub(crate) use crate::common::*;

/// The fields of a verdict, with the default settings.
pub(crate) fn fields(verdict: &Verdict) -> BTreeMap<String, String> {
    fields_of(Headers::default(), &Policies::of(verdict))
}

/// The fields of some policies.
pub(crate) fn fields_of(headers: Headers, policies: &Policies<'_>) -> BTreeMap<String, String> {
    let mut map = HeaderMap::new();
    headers.write(policies, NOW, &mut map);
    let text = |value: &http::HeaderValue| value.to_str().unwrap().to_owned();
    map.iter().map(|(name, value)| (name.to_string(), text(value))).collect()
}

/// A quota of any kind that fills within milliseconds or within days.
pub(crate) fn any_quota() -> impl Strategy<Value = Quota> {
    let periods_us =
        [1_000, 7_000, 100_000, 999_999, 1_000_000, 1_500_000, 60_000_000, 86_400_000_000];
    let kinds = select(&Algorithm::ALL[..]);
    let parts =
        (1..40_u64, select(periods_us.to_vec()), 1..60_u64, any::<bool>(), 0..4_000_000_u64);
    (kinds, parts).prop_map(|(algorithm, (tokens, period_us, capacity, flag, max_wait_us))| {
        let rate = sluicegate::Rate::new(tokens, Duration::from_micros(period_us)).unwrap();
        let is_window = !algorithm.has_capacity();
        let refill = match algorithm {
            Algorithm::TokenBucket if flag => Refill::Interval,
            _ => Refill::Continuous,
        };
        let max_wait = (algorithm == Algorithm::LeakyBucket && flag)
            .then(|| Duration::from_micros(max_wait_us));
        Quota::build(rate, algorithm, refill, (!is_window).then_some(capacity), max_wait).unwrap()
    })
}

/// One to six rules that apply to every request, of any scopes.
pub(crate) fn any_rules() -> impl Strategy<Value = Vec<Rule>> {
    let scoped = (any_quota(), select(&Scope::ALL[..]));
    proptest::collection::vec(scoped, 1..6).prop_map(|scoped| {
        let rule = |(rule_id, (quota, scope)): (u64, (Quota, Scope))| {
            Rule::new(rule_id, &format!("rule{rule_id}"), quota).unwrap().with_scope(scope)
        };
        (1..).zip(scoped).map(rule).collect()
    })
}
