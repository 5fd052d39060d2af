//! T2: a clock that is set back gives no credit and stalls no bucket.

use proptest::collection::vec;
use proptest::prelude::*;
use sluicegate_core::Outcome;

use crate::bounds::excess;
use crate::bucket::{Bucket, Step, micros};
use crate::strategies::{amount, any_quota, back_and_forth, pause, reachable};

/// Longest possible wait: a bucket's time to full, and for windows the rest of
/// this period and the next.
fn longest_wait_us(bucket: &Bucket) -> u64 {
    2 * micros(bucket.quota.time_to_full())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    #[test]
    fn t2_clock_step_gives_no_credit_at_once(
        mut bucket in reachable(any_quota()),
        pause in pause(),
    ) {
        let before = bucket.peek().remaining;
        bucket.step_back(pause.of(&bucket));
        prop_assert!(bucket.peek().remaining <= before);
    }

    /// Over the time that really passes the quota holds, however often the clock is set back.
    #[test]
    fn t2_clock_step_gives_no_credit_later(
        mut bucket in reachable(any_quota()),
        steps in vec(back_and_forth(), 1..40),
    ) {
        let (mut real, mut grants) = (0, Vec::new());
        for step in steps {
            let before = bucket.now;
            match step {
                Step::Charge(amount) => {
                    let cost = amount.of(&bucket);
                    if cost > 0 && bucket.charge(cost).is_granted() {
                        grants.push((real, cost));
                    }
                }
                // A refund may fill the bucket, and so have it forgotten before the clock steps
                // back.
                Step::Refund(_) => {}
                Step::Wait(_) | Step::SetBack(_) => bucket.step(step),
            }
            real += bucket.now.saturating_sub(before);
        }
        prop_assert_eq!(excess(&bucket.quota, &grants, 0), None, "{:?}", grants);
    }

    /// After the first charge that sees it, waiting `retry_after` suffices on the new clock.
    #[test]
    fn t2_clock_step_stalls_nobody(
        mut bucket in reachable(any_quota()),
        pause in pause(),
        amount in amount(),
    ) {
        bucket.step_back(pause.of(&bucket));
        let cost = amount.of(&bucket).min(bucket.quota.capacity());
        if let Outcome::Denied { retry_after } = bucket.charge(cost).outcome {
            prop_assert!(retry_after <= longest_wait_us(&bucket));
            if bucket.can_reach(retry_after) {
                bucket.wait(retry_after);
                prop_assert!(bucket.charge(cost).is_granted());
            }
        }
    }

    /// The same where the charge was denied by another bucket, so that this one only mends itself.
    #[test]
    fn t2_clock_step_is_mended_by_a_clamp(
        mut bucket in reachable(any_quota()),
        pause in pause(),
        cost in amount(),
    ) {
        bucket.step_back(pause.of(&bucket));
        let cost = cost.of(&bucket);
        let seen = bucket.would(bucket.now, cost);
        bucket.clamp();
        // Mended once and for all, and without changing any answer.
        let mended = bucket.stored.clone();
        prop_assert_eq!(bucket.would(bucket.now, cost), seen);
        bucket.clamp();
        prop_assert_eq!(bucket.stored, mended);
    }
}
