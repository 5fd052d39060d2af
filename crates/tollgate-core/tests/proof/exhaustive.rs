//! A small domain with nothing left out: every state that twelve steps can reach, under every small
//! capacity and six rates, against the models.

use std::collections::HashSet;
use std::hash::Hash;
use std::time::Duration;

use tollgate_core::{Algorithm, Quota, Rate, Refill};

use crate::bucket::{Bucket, Stored};
use crate::oracle::{
    FixedWindow, Interval, LeakyBucket, Oracle, SlidingCounter, SlidingWindow, TokenBucket,
};

const CAPACITIES: [u64; 4] = [1, 2, 3, 4];

/// Tokens per microseconds, with N = 1 and above, slower and faster than one a microsecond, reduced and
/// not.
const RATES: [(u64, u64); 6] = [(1, 1), (1, 3), (2, 3), (3, 2), (2, 4), (5, 7)];

const STEPS: usize = 12;

/// Microseconds that pass before a charge; below zero, the clock is set back.
const ADVANCES: [i64; 5] = [0, 1, 2, 3, -2];

const COSTS: [u64; 6] = [0, 1, 2, 3, 4, 5];

/// Not zero, so that the clock can be set back, and on no edge of a window.
const START: u64 = 1003;

/// Goes through everything that can happen to a bucket, without going twice through the same state at
/// the same time of a period. Returns how many there were.
fn explore<O: Oracle + Eq + Hash>(quota: Quota) -> usize {
    let (_, period_us) = quota.rate().tokens_and_period_us();
    let mut seen: HashSet<(u64, Stored, O)> = HashSet::new();
    let mut edge = vec![(Bucket::new(quota, START), O::new(&quota))];
    for _ in 0..STEPS {
        let mut next = Vec::new();
        for (bucket, oracle) in edge {
            for (advance, cost) in ADVANCES.iter().flat_map(|a| COSTS.map(|cost| (*a, cost))) {
                let (mut bucket, mut oracle) = (bucket.clone(), oracle.clone());
                bucket.now = bucket.now.checked_add_signed(advance).unwrap();
                let before = bucket.clone();
                let now = bucket.now;
                assert_eq!(
                    bucket.charge(cost),
                    oracle.charge(now, cost),
                    "cost {cost} after {before:?}"
                );
                // The world looks the same a period later.
                let by_us = now.saturating_sub(START) / period_us * period_us;
                bucket.now -= by_us;
                bucket.stored.shift(quota.form(), by_us);
                oracle.shift(by_us);
                if seen.insert((bucket.now, bucket.stored.clone(), oracle.clone())) {
                    next.push((bucket, oracle));
                }
            }
        }
        edge = next;
        // What grows without end is a model that never forgets.
        assert!(seen.len() < 100_000, "more states than a bucket has");
    }
    seen.len()
}

/// Explores every rate and capacity that `build` has a quota for.
fn explore_all<O: Oracle + Eq + Hash>(build: impl Fn(Rate, u64) -> Option<Quota>) {
    let mut states = 0;
    for (tokens, period_us) in RATES {
        let rate = Rate::new(tokens, Duration::from_micros(period_us)).unwrap();
        for quota in CAPACITIES.iter().filter_map(|capacity| build(rate, *capacity)) {
            states += explore::<O>(quota);
        }
    }
    // A proof of nothing would pass too.
    assert!(states > 1000, "only {states} states");
}

/// A window's capacity is its tokens: here they are both, so that every capacity has its windows.
fn explore_windows<O: Oracle + Eq + Hash>(algorithm: Algorithm) {
    explore_all::<O>(|rate, capacity| {
        let (_, period_us) = rate.tokens_and_period_us();
        let rate = Rate::new(capacity, Duration::from_micros(period_us)).unwrap();
        Quota::build(rate, algorithm, Refill::Continuous, None, None).ok()
    });
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
    explore_windows::<FixedWindow>(Algorithm::FixedWindow);
}

#[test]
fn sliding_window() {
    explore_windows::<SlidingWindow>(Algorithm::SlidingWindow);
}

#[test]
fn sliding_counter() {
    explore_windows::<SlidingCounter>(Algorithm::SlidingCounter);
}
