//! A2 and A6: nothing is lost by counting often, and nothing makes the arithmetic panic.

use proptest::collection::vec;
use proptest::prelude::*;
use sluicegate_core::sliding_window::Entry;
use sluicegate_core::{Algorithm, EXACT_MAX, Form, Micros, Outcome, Quota, State, is_full, spent};

use crate::bucket::{Bucket, Stored};
use crate::strategies::{any_quota, any_word, forward, pause, reachable, sliding_window};

/// Any log at all: out of order, of the future, with totals that fall.
fn any_log() -> impl Strategy<Value = Stored> {
    let entry = (any_word(), any_word()).prop_map(|(at, total)| Entry { at, total });
    (any_word(), vec(entry, 0..8)).prop_map(|(base, entries)| Stored::Log { base, entries })
}

/// Any time, also one that no clock shows.
fn any_now() -> impl Strategy<Value = u64> {
    any_word().prop_map(|now| Micros::new(now).get())
}

/// Checks the invariants of every answer, for any stored state.
fn is_sound(mut bucket: Bucket, cost: u64) -> Result<(), TestCaseError> {
    let decision = bucket.charge(cost);
    let capacity = bucket.quota.capacity();
    prop_assert_eq!(decision.limit, capacity);
    prop_assert!(decision.remaining <= capacity);
    prop_assert!(decision.reset_after <= EXACT_MAX);
    prop_assert_eq!(decision.reset_after == 0, decision.remaining == capacity);
    prop_assert_eq!(decision.is_never(), cost > capacity);
    match decision.outcome {
        Outcome::Granted { delay } => {
            // Granted tokens are spent, so that no state grants without end.
            prop_assert!(cost <= capacity - bucket.peek().remaining || cost == 0);
            prop_assert!(delay == 0 || bucket.quota.time_to_full().as_micros() >= delay.into());
        }
        Outcome::Denied { retry_after } => {
            prop_assert!((1..=EXACT_MAX).contains(&retry_after));
            prop_assert!(cost > decision.remaining);
        }
        Outcome::Never => {}
    }
    bucket.refund(cost);
    bucket.clamp();
    prop_assert!(bucket.spent() <= 1 << 52);
    prop_assert!(bucket.peek().remaining <= capacity);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    /// Counting up to date in many small steps is counting in one big one: no remainder is dropped.
    #[test]
    fn a2_step_split(
        mut counted_often in reachable(any_quota()),
        pauses in vec(pause(), 1..20),
        after in vec(forward(), 1..10),
    ) {
        // A refund of nothing brings the stored state up to date and does nothing else.
        counted_often.refund(0);
        let mut counted_once = counted_often.clone();
        for pause in pauses {
            counted_often.wait(pause.of(&counted_often));
            counted_often.refund(0);
        }
        counted_once.now = counted_often.now;
        prop_assert_eq!(counted_often.peek(), counted_once.peek());
        for step in after {
            counted_often.step(step);
            counted_once.step(step);
            prop_assert_eq!(counted_often.peek(), counted_once.peek());
        }
    }

    #[test]
    fn a6_total(
        quota in any_quota(),
        (a, b, now, cost) in (any_word(), any_word(), any_now(), any_word()),
        log in any_log(),
    ) {
        let state = Stored::State(Some(State { a, b }));
        let stored = if quota.keeps_log() { log } else { state };
        is_sound(Bucket { quota, now, stored }, cost)?;
    }

    /// The same for nearly valid states, as after a bug or a manual edit.
    #[test]
    fn a6_total_near_now(
        quota in any_quota(),
        (a, ago, now, cost) in (any_word(), any::<i16>(), any_now(), 0..=30u64),
    ) {
        if quota.keeps_log() {
            return Ok(());
        }
        let near = now.saturating_add_signed(ago.into());
        for (a, b) in [(a, near), (near, a), (ago.unsigned_abs().into(), near)] {
            let stored = Stored::State(Some(State { a, b }));
            let mut bucket = Bucket { quota, now, stored };
            is_sound(bucket.clone(), cost)?;
            // It heals: after the first charge that sees it, the wait is exact again.
            if let Outcome::Denied { retry_after } = bucket.charge(cost).outcome
                && bucket.can_reach(retry_after)
            {
                prop_assert!(!bucket.would(now + retry_after - 1, cost).is_granted());
                prop_assert!(bucket.would(now + retry_after, cost).is_granted());
            }
        }
    }

    /// A log and a state read under the other's quota are wrong, but they are read.
    #[test]
    fn a6_total_under_the_wrong_form(
        quota in any_quota(),
        window in sliding_window(),
        (a, b, now, cost) in (any_word(), any_word(), any_now(), any_word()),
        log in any_log(),
    ) {
        let state = Stored::State(Some(State { a, b }));
        is_sound(Bucket { quota: window, now, stored: state }, cost)?;
        Bucket { quota, now, stored: log }.charge(cost);
    }

    /// Forms that no quota has, as a reader without a lock may see them for a moment.
    #[test]
    fn a6_total_of_any_form(
        (n, p, now) in (any_word(), any_word(), any_now()),
        (a, b) in (any_word(), any_word()),
    ) {
        let (n, p, state) = (n.max(1), p.clamp(1, EXACT_MAX), State { a, b });
        let now = Micros::new(now);
        for form in [
            Form::Continuous { n, p },
            Form::Interval { n, p },
            Form::FixedWindow { p },
            Form::SlidingWindow { p },
            Form::SlidingCounter { p },
            Form::LeakyBucket { n, p },
        ] {
            // An empty answer is as good as any, but both must agree on it.
            let _ = spent(form, state, now);
            let _ = is_full(form, state, now);
        }
    }

    /// Everything that is stored fits 53 bits, with one value to spare.
    #[test]
    fn a4_stored_words_are_exact(mut bucket in reachable(any_quota()), cost in any_word()) {
        bucket.charge(cost.min(bucket.quota.capacity()));
        match &bucket.stored {
            Stored::State(None) => {}
            Stored::State(Some(state)) => {
                prop_assert!(state.a < EXACT_MAX && state.b < EXACT_MAX);
            }
            Stored::Log { base, entries } => {
                // One entry an instant, each of a token or more.
                prop_assert!(entries.is_sorted_by(|a, b| a.at < b.at && a.total < b.total));
                prop_assert!(entries.first().is_none_or(|entry| entry.total > *base));
                prop_assert!(entries.iter().all(|entry| entry.total.max(entry.at) < EXACT_MAX));
            }
        }
    }
}

/// A log whose totals fall, as after a manual edit: granted tokens are spent all the same.
#[test]
fn a6_total_of_falling_totals() {
    let quota = Quota::per_minute(2799).unwrap().with_algorithm(Algorithm::SlidingWindow).unwrap();
    let entries = [(15_354, (1 << 54) + 1), (u64::MAX - 1, 918)];
    let entries = entries.map(|(at, total)| Entry { at, total }).to_vec();
    let mut bucket = Bucket { quota, now: 16_383, stored: Stored::Log { base: 65, entries } };
    assert!(bucket.charge(76).is_granted());
    assert_eq!(bucket.peek().remaining, 2799 - (918 - 65) - 76);
}

/// All ends of the domain at once: the slowest and the fastest bucket on the last day of the clock.
#[test]
fn a6_total_at_the_ends_of_the_domain() {
    let last = Micros::new(u64::MAX).get();
    for text in [
        "1 per 4503599627370496us burst 1",
        "1 per 1us burst 4503599627370496",
        "4294967296 per 1us burst 4503599627370496",
        "4294967295 per 4294967296us burst 1048576",
    ] {
        let quota: Quota = text.parse().unwrap();
        for now in [0, 1, last - 1, last] {
            let mut bucket = Bucket::new(quota, now);
            assert!(bucket.charge(quota.capacity()).is_granted(), "{text} at {now}");
            let denied = bucket.charge(quota.capacity());
            assert_eq!(denied.retry_after(), Some(quota.time_to_full()), "{text} at {now}");
            assert!(bucket.charge(u64::MAX).is_never(), "{text} at {now}");
        }
    }
}
