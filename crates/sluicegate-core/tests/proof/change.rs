//! U1: a new quota under a live bucket gives nothing away.

use proptest::collection::vec;
use proptest::prelude::*;
use sluicegate_core::Quota;

use crate::bucket::{Bucket, micros};
use crate::strategies::{any_quota, any_word, forward, reachable, resized, start};

/// Tokens spent, as the answers show them. A queue's bound on the wait hides what is left of it.
fn spent(bucket: &Bucket) -> u64 {
    if bucket.quota.max_wait().is_some() {
        return bucket.spent();
    }
    let peek = bucket.peek();
    peek.limit - peek.remaining
}

/// A quota of the same form half of the time: those read each other's buckets as they are.
fn next(old: &Quota, new: Quota, word: u64) -> Quota {
    if word.is_multiple_of(2) { new } else { resized(old, 1 + word / 2 % 40).unwrap_or(new) }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    /// Spent tokens stay spent, from any state.
    #[test]
    fn u1_no_free_refill(
        mut bucket in reachable(any_quota()),
        new in any_quota(),
        word in any_word(),
    ) {
        let new = next(&bucket.quota, new, word);
        let spent = spent(&bucket);
        bucket.change(new);
        let peek = bucket.peek();
        prop_assert_eq!(peek.limit, new.capacity());
        prop_assert!(peek.remaining <= new.capacity().saturating_sub(spent));
    }

    /// And nothing more than that: on a steady clock, exactly the tokens spent are missing.
    #[test]
    fn u1_no_loss(
        (old, new, word, start) in (any_quota(), any_quota(), any_word(), start()),
        steps in vec(forward(), 0..12),
    ) {
        let mut bucket = Bucket::new(old, start);
        steps.into_iter().for_each(|step| bucket.step(step));
        let (new, spent) = (next(&old, new, word), spent(&bucket));
        prop_assert_eq!(bucket.spent(), spent);
        bucket.change(new);
        if new.max_wait().is_none() {
            prop_assert_eq!(bucket.peek().remaining, new.capacity().saturating_sub(spent));
        }
    }

    /// Changing back and forth gives nothing away either, unless the spent tokens did not fit
    /// between.
    #[test]
    fn u1_no_free_refill_by_flapping(
        mut bucket in reachable(any_quota()),
        other in any_quota(),
    ) {
        let (old, before) = (bucket.quota, bucket.peek().remaining);
        if other.capacity() >= bucket.spent() && old.max_wait().is_none() {
            bucket.change(other);
            bucket.change(old);
            prop_assert!(bucket.peek().remaining <= before);
        }
    }

    /// Nothing of the old quota remains: the new one's bucket is full after at most its own time.
    #[test]
    fn u1_no_ghost(mut bucket in reachable(any_quota()), new in any_quota()) {
        if new.form() != bucket.quota.form() {
            bucket.change(new);
            prop_assert!(bucket.peek().reset_after <= 2 * micros(new.time_to_full()));
        }
    }
}
