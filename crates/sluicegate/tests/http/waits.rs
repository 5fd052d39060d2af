//! Clients that wait as the fields say.

use std::time::Duration;

use proptest::prelude::*;
use sluicegate::headers::{Policies, Policy};
use sluicegate::{Quota, Request, Rule};

use crate::http::support::{any_quota, any_rules, cases, fields, limiter};

/// Returns whether a decision's figures give the time of the next token to the microsecond.
fn is_told_exactly(quota: &Quota) -> bool {
    use sluicegate_core::Form;
    matches!(
        quota.form(),
        Form::Continuous { n: 1, .. } | Form::Interval { .. } | Form::FixedWindow { .. }
    )
}

proptest! {
    #![proptest_config(cases(512))]

    /// A lone client that waits `Retry-After` is let through.
    #[test]
    fn waiting_retry_after_suffices(
        rules in any_rules(),
        steps in prop::collection::vec((0..30_u64, 0..3_000_000_u64), 1..40),
    ) {
        let (limiter, clock) = limiter(rules);
        for (cost, pause_us) in steps {
            clock.advance(Duration::from_micros(pause_us));
            let request = Request::new().cost(cost);
            let verdict = limiter.check_now(&request);
            if let Some(seconds) = fields(&verdict).get("retry-after") {
                let seconds: u64 = seconds.parse().unwrap();
                prop_assert!(seconds >= 1);
                clock.advance(Duration::from_secs(seconds));
                prop_assert!(limiter.check_now(&request).is_allowed());
            }
        }
    }

    /// After `t` seconds there is more than there was; where it can be known, not a second earlier. Without `t`
    /// nothing is missing.
    #[test]
    fn after_t_there_is_more(
        quota in any_quota(),
        steps in prop::collection::vec((0..10_u64, 0..3_000_000_u64), 1..20),
    ) {
        let (limiter, clock) = limiter(vec![Rule::new(1, "a", quota).unwrap()]);
        let remaining = || limiter.check_now(&Request::new().cost(0)).tightest().unwrap().decision.remaining;
        for (cost, pause_us) in steps {
            clock.advance(Duration::from_micros(pause_us));
            let verdict = limiter.check_now(&Request::new().cost(cost));
            let policies = Policies::of(&verdict);
            let policy: &Policy<'_> = policies.tightest().unwrap();
            if policy.is_violated() {
                continue;
            }
            let Some(seconds) = policy.more_after_s() else {
                prop_assert_eq!(policy.remaining(), quota.capacity());
                continue;
            };
            if is_told_exactly(&quota) {
                clock.advance(Duration::from_secs(seconds - 1));
                prop_assert_eq!(remaining(), policy.remaining());
                clock.advance(Duration::from_secs(1));
            } else {
                clock.advance(Duration::from_secs(seconds));
            }
            prop_assert!(remaining() > policy.remaining(), "{} {:?}", quota, policy);
        }
    }
}
