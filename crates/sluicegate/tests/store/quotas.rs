//! Quotas of every form: small ones, where a few microseconds matter; pairs of one form and two capacities;
//! common ones; and those at the limits of a slot.

use std::time::Duration;

use proptest::prelude::*;
use proptest::sample::select;
use sluicegate::{Algorithm, Quota, Refill};

fn read(text: &str) -> Quota {
    text.parse().unwrap()
}

fn interval(text: &str) -> Quota {
    read(text).with_refill(Refill::Interval).unwrap()
}

/// Built in one step: a value too large for a token bucket may be valid for a window.
fn window(algorithm: Algorithm, text: &str) -> Quota {
    Quota::build(text.parse().unwrap(), algorithm, Refill::Continuous, None, None).unwrap()
}

fn queue(text: &str) -> Quota {
    read(text).with_algorithm(Algorithm::LeakyBucket).unwrap()
}

/// Quotas that fill within a few hundred microseconds.
pub(crate) fn small() -> Vec<Quota> {
    let line = queue("1 per 10us burst 4");
    vec![
        read("1 per 10us burst 5"),
        read("1 per 10us burst 2"),
        read("1 per 7us burst 3"),
        read("7 per 10us burst 9"),
        read("7 per 10us burst 20"),
        interval("3 per 20us burst 5"),
        interval("3 per 20us burst 2"),
        interval("2 per 7us burst 3"),
        window(Algorithm::FixedWindow, "4 per 50us"),
        window(Algorithm::FixedWindow, "2 per 50us"),
        window(Algorithm::SlidingWindow, "5 per 60us"),
        window(Algorithm::SlidingWindow, "3 per 60us"),
        window(Algorithm::SlidingWindow, "4 per 25us"),
        window(Algorithm::SlidingCounter, "6 per 40us"),
        window(Algorithm::SlidingCounter, "3 per 40us"),
        line,
        line.with_max_wait(Duration::from_micros(15)).unwrap(),
        queue("7 per 10us burst 20").with_max_wait(Duration::from_micros(6)).unwrap(),
    ]
}

/// Quotas whose periods, rates and counts use all available bits.
pub(crate) fn extreme() -> Vec<Quota> {
    vec![
        read("4294967296 per 1us burst 4503599627370496"),
        read("1 per 1us burst 4503599627370496"),
        read("1 per 4503599627370496us burst 1"),
        read("4294967291 per 1000003us burst 4503"),
        interval("4294967296 per 1us burst 1099511627776"),
        window(Algorithm::FixedWindow, "4503599627370496 per 1us"),
        window(Algorithm::FixedWindow, "1 per 4503599627370496us"),
        window(Algorithm::SlidingWindow, "65536 per 1us"),
        window(Algorithm::SlidingCounter, "67108863 per 67108864us"),
        queue("1 per 1us burst 4503599627370496"),
    ]
}

/// Common quotas.
pub(crate) fn usual() -> Vec<Quota> {
    vec![
        read("10/s burst 50"),
        read("1000/s burst 5000"),
        read("999/s burst 999"),
        read("5/minute"),
        read("0.016/s burst 3"),
        interval("100/minute burst 100"),
        window(Algorithm::FixedWindow, "1000/hour"),
        window(Algorithm::SlidingWindow, "100/minute"),
        window(Algorithm::SlidingCounter, "100/minute"),
        queue("20/s burst 40").with_max_wait(Duration::from_millis(500)).unwrap(),
        queue("7/minute burst 12"),
    ]
}

/// Token buckets whose rate is one token per whole number of microseconds: the most common ones.
pub(crate) fn plain() -> Vec<Quota> {
    vec![
        read("1 per 10us burst 5"),
        read("1 per 10us burst 2"),
        read("1 per 7us burst 30"),
        read("10/s burst 50"),
        read("1000/s burst 5000"),
        read("5/minute"),
        read("1 per 4503599627370496us burst 1"),
        read("1 per 1us burst 4503599627370496"),
    ]
}

/// Any of them, a small one eight times out of ten.
pub(crate) fn any_quota() -> impl Strategy<Value = Quota> {
    prop_oneof![8 => select(small()), 1 => select(extreme()), 1 => select([usual(), plain()].concat())]
}
