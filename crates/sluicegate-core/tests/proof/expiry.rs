//! E1 and E2: a bucket may be forgotten when it is full, and only then.

use proptest::collection::vec;
use proptest::prelude::*;

use crate::bucket::Bucket;
use crate::strategies::{any_quota, forward, pause, reachable};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    /// Forgetting a full bucket changes no future answer, and only a full one is said to be.
    #[test]
    fn e1_forget_only_full(
        mut bucket in reachable(any_quota()),
        pause in pause(),
        after in vec(forward(), 1..20),
    ) {
        bucket.wait(pause.of(&bucket));
        let peek = bucket.peek();
        prop_assert_eq!(bucket.is_full(), peek.reset_after == 0);
        prop_assert_eq!(bucket.is_full(), bucket.spent() == 0);
        let mut forgotten = Bucket::new(bucket.quota, bucket.now);
        if !bucket.is_full() {
            // Deleting a bucket that is not full changes answers.
            prop_assert!(peek.remaining < forgotten.peek().remaining);
            return Ok(());
        }
        for step in after {
            bucket.step(step);
            forgotten.step(step);
            prop_assert_eq!(bucket.peek(), forgotten.peek());
        }
    }

    /// `reset_after` is when: not a microsecond earlier.
    #[test]
    fn e1_forget_at_reset_after(mut bucket in reachable(any_quota())) {
        bucket.clamp();
        let reset_after = bucket.peek().reset_after;
        if reset_after > 0 && bucket.can_reach(reset_after) {
            bucket.wait(reset_after - 1);
            prop_assert!(!bucket.is_full());
            bucket.wait(1);
            prop_assert!(bucket.is_full());
        }
    }

    /// E2: what is stored has a time to live, also in whole milliseconds.
    #[test]
    fn e2_ttl_positive(mut bucket in reachable(any_quota()), cost in 1..=3u64) {
        let decision = bucket.charge(cost);
        if decision.is_granted() {
            prop_assert!(decision.reset_after >= 1 && decision.reset_after_ms() >= 1);
            prop_assert!(decision.reset_after_ms() >= decision.reset_after / 1000);
        }
    }
}
