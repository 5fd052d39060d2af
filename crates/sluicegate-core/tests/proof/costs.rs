//! K1 to K3: costs above the capacity, peeks and refunds.

use proptest::collection::vec;
use proptest::prelude::*;
use sluicegate_core::{Algorithm, Outcome};

use crate::bounds::excess;
use crate::bucket::Step;
use crate::strategies::{amount, any_quota, any_word, forward, reachable};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    /// More than the capacity is never granted, has no `retry_after`, and changes nothing.
    #[test]
    fn k1_never(mut bucket in reachable(any_quota()), more in any_word()) {
        bucket.clamp();
        let before = bucket.clone();
        let decision = bucket.charge(bucket.quota.capacity().saturating_add(more.max(1)));
        prop_assert_eq!(decision.outcome, Outcome::Never);
        prop_assert_eq!(decision.retry_after(), None);
        prop_assert_eq!(decision.retry_after_ms(), None);
        prop_assert_eq!(decision.remaining, before.peek().remaining);
        prop_assert_eq!(bucket.stored, before.stored);
    }

    /// Everything up to the capacity is granted some time.
    #[test]
    fn k1_never_only_beyond_the_capacity(mut bucket in reachable(any_quota()), cost in any_word()) {
        let cost = cost.min(bucket.quota.capacity());
        prop_assert!(!bucket.charge(cost).is_never());
        let reset_after = bucket.peek().reset_after;
        if bucket.can_reach(reset_after) {
            bucket.wait(reset_after);
            prop_assert!(bucket.charge(cost).is_granted());
        }
    }

    /// A cost of zero is granted, stores nothing, not even a mended state, and shows the figures
    /// that a denial shows.
    #[test]
    fn k2_peek_pure(mut bucket in reachable(any_quota())) {
        let before = bucket.stored.clone();
        let peek = bucket.charge(0);
        prop_assert_eq!(peek.outcome, Outcome::Granted { delay: 0 });
        prop_assert_eq!(&bucket.stored, &before);
        let never = bucket.charge(u64::MAX);
        prop_assert_eq!(
            (peek.limit, peek.remaining, peek.reset_after),
            (never.limit, never.remaining, never.reset_after)
        );
        prop_assert_eq!(bucket.charge(0), peek);
    }

    /// Refunded tokens can be taken again, up to full and no further.
    #[test]
    fn k3_refund_capped(mut bucket in reachable(any_quota()), amount in amount()) {
        let (before, spent, amount) = (bucket.peek(), bucket.spent(), amount.of(&bucket));
        bucket.refund(amount);
        let after = bucket.peek();
        let capped = before.remaining.saturating_add(amount).min(before.limit);
        prop_assert!(after.reset_after <= before.reset_after);
        match bucket.quota.algorithm() {
            // A window that holds more than its limit, which was lowered, shows a refund only below
            // it.
            Algorithm::SlidingWindow => {
                let spent = spent.saturating_sub(amount);
                prop_assert_eq!(after.remaining, after.limit.saturating_sub(spent));
            }
            // And of a count that has faded in part, only the rest can be given back.
            Algorithm::SlidingCounter => {
                prop_assert!((before.remaining..=capped).contains(&after.remaining));
            }
            _ if bucket.quota.max_wait().is_some() => prop_assert!(after.remaining <= after.limit),
            _ => prop_assert_eq!(after.remaining, capped),
        }
    }

    /// A charge that is refunded at once was never made.
    #[test]
    fn k3_refund_undoes_a_charge(mut bucket in reachable(any_quota()), amount in amount()) {
        // Brought up to date, as the refund will.
        bucket.refund(0);
        let before = bucket.clone();
        let cost = amount.of(&bucket);
        if bucket.charge(cost).is_granted() {
            bucket.refund(cost);
            prop_assert_eq!(bucket.peek(), before.peek());
            prop_assert_eq!(bucket.stored, before.stored);
        }
    }

    /// With refunds, no more is admitted than without them and what was refunded.
    #[test]
    fn k3_refund_capped_in_every_window(
        mut bucket in reachable(any_quota()),
        steps in vec(forward(), 1..40),
    ) {
        let (mut refunded, mut grants) = (0, Vec::new());
        for step in steps {
            match step {
                Step::Charge(amount) => {
                    let cost = amount.of(&bucket);
                    if cost > 0 && bucket.charge(cost).is_granted() {
                        grants.push((bucket.now, cost));
                    }
                }
                Step::Refund(amount) => {
                    let amount = amount.of(&bucket).min(bucket.quota.capacity());
                    bucket.refund(amount);
                    refunded += amount;
                }
                Step::Wait(_) | Step::SetBack(_) => bucket.step(step),
            }
        }
        prop_assert_eq!(excess(&bucket.quota, &grants, refunded), None, "{:?}", grants);
    }
}
