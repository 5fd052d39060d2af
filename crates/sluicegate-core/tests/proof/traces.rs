//! Every algorithm against its model: every figure of every answer is equal at every step of every
//! trace, also where the clock steps back and the capacity changes.

use proptest::collection::vec;
use proptest::prelude::*;
use sluicegate_core::Quota;

use crate::bucket::{Bucket, Step};
use crate::oracle::{
    FixedWindow, Interval, LeakyBucket, Oracle, SlidingCounter, SlidingWindow, TokenBucket,
};
use crate::strategies::{
    back_and_forth, continuous, fixed_window, interval, leaky_bucket, resized, sliding_counter,
    sliding_window, start,
};

/// A step, or a new capacity.
#[derive(Clone, Copy, Debug)]
enum Event {
    Step(Step),
    Resize(u64),
}

type Trace = (Quota, u64, Vec<Event>);

fn trace(quota: impl Strategy<Value = Quota>) -> impl Strategy<Value = Trace> {
    let event = (back_and_forth(), 0..400u64).prop_map(|(step, capacity)| match capacity {
        1..=20 => Event::Resize(capacity),
        _ => Event::Step(step),
    });
    (quota, start(), vec(event, 1..40))
}

fn agrees<O: Oracle>((quota, start, events): Trace) -> Result<(), TestCaseError> {
    let (mut bucket, mut oracle) = (Bucket::new(quota, start), O::new(&quota));
    for event in events {
        match event {
            Event::Step(Step::Charge(amount)) => {
                let cost = amount.of(&bucket);
                let now = bucket.now;
                prop_assert_eq!(bucket.charge(cost), oracle.charge(now, cost), "cost {}", cost);
            }
            Event::Step(Step::Refund(amount)) => {
                let amount = amount.of(&bucket);
                bucket.refund(amount);
                oracle.refund(bucket.now, amount);
            }
            Event::Step(step) => bucket.step(step),
            Event::Resize(capacity) => {
                if let Some(quota) = resized(&bucket.quota, capacity) {
                    bucket.change(quota);
                    oracle.resize(capacity);
                }
            }
        }
        prop_assert_eq!(bucket.peek(), oracle.charge(bucket.now, 0), "after {:?}", event);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    #[test]
    fn token_bucket_is_its_model(trace in trace(continuous())) {
        agrees::<TokenBucket>(trace)?;
    }

    #[test]
    fn interval_refill_is_its_model(trace in trace(interval())) {
        agrees::<Interval>(trace)?;
    }

    #[test]
    fn fixed_window_is_its_model(trace in trace(fixed_window())) {
        agrees::<FixedWindow>(trace)?;
    }

    #[test]
    fn sliding_window_is_its_model(trace in trace(sliding_window())) {
        agrees::<SlidingWindow>(trace)?;
    }

    #[test]
    fn sliding_counter_is_its_model(trace in trace(sliding_counter())) {
        agrees::<SlidingCounter>(trace)?;
    }

    #[test]
    fn leaky_bucket_is_its_model(trace in trace(leaky_bucket())) {
        agrees::<LeakyBucket>(trace)?;
    }
}
