//! A small domain with nothing left out: every state that twelve steps can reach, under every small
//! capacity and six rates, against the models.

use std::collections::HashSet;
use std::hash::Hash;
use std::time::Duration;

use sluicegate_core::{Algorithm, Quota, Rate, Refill};

use crate::bucket::{Bucket, Stored};
use crate::oracle::{
    FixedWindow, Interval, LeakyBucket, Oracle, SlidingCounter, SlidingWindow, TokenBucket, moved,
};

const CAPACITIES: [u64; 4] = [1, 2, 3, 4];

/// Tokens per microseconds: N = 1 and above, slower and faster than one a microsecond, reduced and
/// not.
const RATES: [(u64, u64); 6] = [(1, 1), (1, 3), (2, 3), (3, 2), (2, 4), (5, 7)];

const STEPS: usize = 12;

/// Microseconds that pass before a charge; below zero, the clock is set back.
const ADVANCES: [i64; 7] = [0, 1, 2, 3, -1, -2, -9];

/// Tokens charged; below zero, refunded.
const COSTS: [i64; 8] = [0, 1, 2, 3, 4, 5, -1, -3];

/// Not zero, so that the clock can be set back, and on no edge of a window.
const START: u64 = 1003;

/// Goes through everything that can happen to a bucket, but not twice through the same state.
/// States are the same if they differ by nothing but a multiple of `grain_us` in time. Returns how
/// many there were.
fn explore<O: Oracle + Eq + Hash>(quota: Quota, grain_us: i64) -> usize {
    let mut seen: HashSet<(u64, Stored, O)> = HashSet::new();
    let mut edge = vec![(Bucket::new(quota, START), O::new(&quota))];
    for _ in 0..STEPS {
        let mut next = Vec::new();
        for (bucket, oracle) in edge {
            for (advance, cost) in ADVANCES.iter().flat_map(|a| COSTS.map(|cost| (*a, cost))) {
                let (mut bucket, mut oracle) = (bucket.clone(), oracle.clone());
                let now = moved(bucket.now, advance);
                bucket.now = now;
                let before = bucket.stored.clone();
                let (answer, expected) = match u64::try_from(cost) {
                    Ok(cost) => (bucket.charge(cost), oracle.charge(now, cost)),
                    Err(_) => {
                        bucket.refund(cost.unsigned_abs());
                        oracle.refund(now, cost.unsigned_abs());
                        (bucket.peek(), oracle.charge(now, 0))
                    }
                };
                assert_eq!(answer, expected, "{cost} of {quota:?} at {now} from {before:?}");
                let ahead_us = i64::try_from(now).unwrap() - i64::try_from(START).unwrap();
                let by_us = -ahead_us.div_euclid(grain_us) * grain_us;
                bucket.now = moved(now, by_us);
                bucket.stored.shift(quota.form(), by_us);
                oracle.shift(by_us);
                if seen.insert((bucket.now, bucket.stored.clone(), oracle.clone())) {
                    next.push((bucket, oracle));
                }
            }
        }
        edge = next;
        // Endless growth would mean a model that never drops its history.
        assert!(seen.len() < 100_000, "more states than a bucket has");
    }
    seen.len()
}

/// Explores every rate and capacity of a bucket that knows no time of day.
fn explore_all<O: Oracle + Eq + Hash>(build: impl Fn(Rate, u64) -> Option<Quota>) {
    let mut states = 0;
    for (tokens, period_us) in RATES {
        let rate = Rate::new(tokens, Duration::from_micros(period_us)).unwrap();
        for capacity in CAPACITIES {
            states += explore::<O>(build(rate, capacity).unwrap(), 1);
        }
    }
    // Guards against exploring nothing.
    assert!(states > 500, "only {states} states");
}

/// Explores windows of every capacity, which is their tokens; `aligned` to the epoch or not.
fn explore_windows<O: Oracle + Eq + Hash>(algorithm: Algorithm, aligned: bool) {
    let mut states = 0;
    for (period_us, tokens) in [1, 2, 3, 4, 7].iter().flat_map(|p| CAPACITIES.map(|n| (*p, n))) {
        let rate = Rate::new(tokens, Duration::from_micros(period_us)).unwrap();
        let quota = Quota::build(rate, algorithm, Refill::Continuous, None, None).unwrap();
        let grain_us = if aligned { period_us } else { 1 };
        states += explore::<O>(quota, i64::try_from(grain_us).unwrap());
    }
    assert!(states > 500, "only {states} states");
}

#[test]
fn token_bucket() {
    explore_all::<TokenBucket>(|rate, capacity| {
        let algorithm = Algorithm::TokenBucket;
        Quota::build(rate, algorithm, Refill::Continuous, Some(capacity), None).ok()
    });
}

#[test]
fn interval_refill() {
    explore_all::<Interval>(|rate, capacity| {
        Quota::build(rate, Algorithm::TokenBucket, Refill::Interval, Some(capacity), None).ok()
    });
}

#[test]
fn leaky_bucket() {
    for max_wait in [None, Some(0), Some(1), Some(4)] {
        explore_all::<LeakyBucket>(|rate, capacity| {
            let max_wait = max_wait.map(Duration::from_micros);
            let algorithm = Algorithm::LeakyBucket;
            Quota::build(rate, algorithm, Refill::Continuous, Some(capacity), max_wait).ok()
        });
    }
}

#[test]
fn fixed_window() {
    explore_windows::<FixedWindow>(Algorithm::FixedWindow, true);
}

#[test]
fn sliding_window() {
    explore_windows::<SlidingWindow>(Algorithm::SlidingWindow, false);
}

#[test]
fn sliding_counter() {
    explore_windows::<SlidingCounter>(Algorithm::SlidingCounter, true);
}
