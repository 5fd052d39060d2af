//! Quotas, extreme ones among them, and buckets in every state that can be reached.

use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use sluicegate_core::{Algorithm, Quota, Rate, Refill};

use crate::bucket::{Amount, Bucket, Pause, Step};

/// Several small choices out of one random integer. A strategy for each of them would read better
/// and take ten times as long, which at a few hundred choices a case is most of the run.
#[derive(Debug)]
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        let rolled = self.0 % sides;
        self.0 /= sides;
        rolled
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[usize::try_from(self.roll(u64::try_from(from.len()).unwrap())).unwrap()]
    }
}

/// A strategy of the values that `read` derives from the dice.
fn rolled<T: std::fmt::Debug>(read: fn(&mut Dice) -> T) -> impl Strategy<Value = T> + Clone {
    any::<u64>().prop_map(move |word| read(&mut Dice(word)))
}

// ===== quotas =====

/// Rates at the edges of the domain, and those that peers get wrong.
const EXTREME: [&str; 15] = [
    "0.016/s burst 3",
    "0.016/s burst 1",
    "1/min burst 1",
    "1/d burst 1",
    "5000/s burst 1",
    "999/s",
    "999/s burst 1",
    "700000000/s",
    "1000000000/s burst 1",
    "1000000000/s",
    "1000000/s burst 1099511627776",
    "4294967291 per 1000003us burst 4503",
    "4294967296 per 1us burst 4503599627370496",
    "1 per 1us burst 4503599627370496",
    "1 per 4503599627370496us burst 1",
];

/// Interval refills at the edges: the model counts them period by period, so that full is never
/// more than a few hundred periods away.
const EXTREME_INTERVAL: [&str; 7] = [
    "1/min burst 1",
    "5 per 0.5s burst 3",
    "7 per 1us burst 100",
    "1000000000/s burst 1099511627776",
    "4294967296 per 1us burst 1099511627776",
    "1000003/d burst 1000003",
    "1 per 4503599627370496us burst 1",
];

const EXTREME_FIXED_WINDOW: [&str; 5] =
    ["1 per 1us", "1/min", "1000003/d", "4503599627370496 per 1us", "1 per 4503599627370496us"];

const EXTREME_SLIDING_WINDOW: [&str; 5] =
    ["1 per 1us", "1/min", "65536/s", "65536 per 1us", "1 per 4503599627370496us"];

const EXTREME_SLIDING_COUNTER: [&str; 6] = [
    "1 per 1us",
    "1/min",
    "67108863/s",
    "67108863 per 67108864us",
    "3 per 1501199875790165us",
    "1 per 4503599627370496us",
];

/// A rate and a capacity: small ones, where rounding shows and nothing is refused.
fn small(dice: &mut Dice) -> (Rate, u64) {
    let (tokens, period_us) = (1 + dice.roll(20), 1 + dice.roll(50));
    (Rate::new(tokens, Duration::from_micros(period_us)).unwrap(), 1 + dice.roll(20))
}

/// Small ones, common ones, and the texts given.
fn parts(dice: &mut Dice, extreme: &[&str]) -> (Rate, u64) {
    match dice.roll(7) {
        0..=2 => small(dice),
        3..=4 => {
            let period_us = dice.pick(&[1_000, 1_000_000, 60_000_000, 3_600_000_000]);
            let rate = Rate::new(1 + dice.roll(10_000), Duration::from_micros(period_us));
            (rate.unwrap(), 1 + dice.roll(1000))
        }
        _ => {
            let text = dice.pick(extreme);
            let (rate, capacity) = text.split_once(" burst ").unwrap_or((text, "1"));
            (rate.parse().unwrap(), capacity.parse().unwrap())
        }
    }
}

/// A quota of what was rolled or, where that cannot be counted exactly, of small numbers.
fn quota(dice: &mut Dice, extreme: &[&str], build: impl Fn(Rate, u64) -> Option<Quota>) -> Quota {
    let (rate, capacity) = parts(dice, extreme);
    build(rate, capacity).unwrap_or_else(|| {
        let (rate, capacity) = small(dice);
        build(rate, capacity).unwrap()
    })
}

fn continuous_of(dice: &mut Dice) -> Quota {
    quota(dice, &EXTREME, |rate, capacity| {
        Quota::build(rate, Algorithm::TokenBucket, Refill::Continuous, Some(capacity), None).ok()
    })
}

fn interval_of(dice: &mut Dice) -> Quota {
    quota(dice, &EXTREME_INTERVAL, |rate, capacity| {
        let (tokens, _) = rate.tokens_and_period_us();
        let capacity = (capacity.div_ceil(tokens) <= 256).then_some(capacity)?;
        Quota::build(rate, Algorithm::TokenBucket, Refill::Interval, Some(capacity), None).ok()
    })
}

fn window_of(dice: &mut Dice, algorithm: Algorithm, extreme: &[&str]) -> Quota {
    let build = |rate, _| Quota::build(rate, algorithm, Refill::Continuous, None, None).ok();
    quota(dice, extreme, build)
}

/// Half of them have a bound on the wait.
fn leaky_bucket_of(dice: &mut Dice) -> Quota {
    let bound = (dice.roll(2) == 1).then(|| u32::try_from(dice.roll(300)).unwrap());
    let quota = continuous_of(dice).with_algorithm(Algorithm::LeakyBucket).unwrap();
    let max_wait = bound.map(|share| quota.time_to_full() / 256 * share);
    max_wait.and_then(|max_wait| quota.with_max_wait(max_wait).ok()).unwrap_or(quota)
}

pub(crate) fn continuous() -> impl Strategy<Value = Quota> {
    rolled(continuous_of)
}

pub(crate) fn interval() -> impl Strategy<Value = Quota> {
    rolled(interval_of)
}

pub(crate) fn fixed_window() -> impl Strategy<Value = Quota> {
    rolled(|dice| window_of(dice, Algorithm::FixedWindow, &EXTREME_FIXED_WINDOW))
}

pub(crate) fn sliding_window() -> impl Strategy<Value = Quota> {
    rolled(|dice| window_of(dice, Algorithm::SlidingWindow, &EXTREME_SLIDING_WINDOW))
}

pub(crate) fn sliding_counter() -> impl Strategy<Value = Quota> {
    rolled(|dice| window_of(dice, Algorithm::SlidingCounter, &EXTREME_SLIDING_COUNTER))
}

pub(crate) fn leaky_bucket() -> impl Strategy<Value = Quota> {
    rolled(leaky_bucket_of)
}

pub(crate) fn any_quota() -> impl Strategy<Value = Quota> + Clone {
    rolled(|dice| match dice.roll(7) {
        0..=1 => continuous_of(dice),
        2 => interval_of(dice),
        3 => window_of(dice, Algorithm::FixedWindow, &EXTREME_FIXED_WINDOW),
        4 => window_of(dice, Algorithm::SlidingWindow, &EXTREME_SLIDING_WINDOW),
        5 => window_of(dice, Algorithm::SlidingCounter, &EXTREME_SLIDING_COUNTER),
        _ => leaky_bucket_of(dice),
    })
}

/// A quota of the same form with another capacity; for a window, with as many tokens.
pub(crate) fn resized(quota: &Quota, capacity: u64) -> Option<Quota> {
    let (_, period_us) = quota.rate().tokens_and_period_us();
    quota.with_capacity(capacity).ok().or_else(|| {
        let rate = Rate::new(capacity, Duration::from_micros(period_us)).ok()?;
        let resized = Quota::build(rate, quota.algorithm(), quota.refill(), None, None).ok()?;
        (resized.form() == quota.form()).then_some(resized)
    })
}

// ===== steps =====

/// The first days of the epoch, today, and the year 2106, when a 32-bit clock has run out.
pub(crate) fn start() -> impl Strategy<Value = u64> {
    rolled(|dice| dice.pick(&[0, 1_700_000_000_000_000, (1 << 32) * 1_000_000]) + dice.roll(100))
}

fn amount_of(dice: &mut Dice) -> Amount {
    match dice.roll(13) {
        0..=5 => Amount::Exactly(dice.roll(4)),
        6..=8 => Amount::Share(u8::try_from(dice.roll(256)).unwrap()),
        9..=11 => Amount::Left(dice.roll(2)),
        _ => Amount::Exactly(u64::MAX >> dice.roll(64)),
    }
}

fn pause_of(dice: &mut Dice) -> Pause {
    match dice.roll(9) {
        0..=2 => Pause::Micros(dice.roll(4)),
        3..=5 => Pause::Share(u16::try_from(dice.roll(600)).unwrap()),
        6 => Pause::Full(dice.roll(2)),
        _ => Pause::Token(dice.roll(2)),
    }
}

fn forward_of(dice: &mut Dice) -> Step {
    match dice.roll(12) {
        0..=5 => Step::Charge(amount_of(dice)),
        6 => Step::Refund(amount_of(dice)),
        _ => Step::Wait(pause_of(dice)),
    }
}

pub(crate) fn amount() -> impl Strategy<Value = Amount> {
    rolled(amount_of)
}

pub(crate) fn pause() -> impl Strategy<Value = Pause> {
    rolled(pause_of)
}

/// Charges, refunds and the passing of time.
pub(crate) fn forward() -> impl Strategy<Value = Step> {
    rolled(forward_of)
}

/// The same, on a clock that is now and then set back.
pub(crate) fn back_and_forth() -> impl Strategy<Value = Step> + Clone {
    rolled(|dice| match dice.roll(9) {
        0 => Step::SetBack(pause_of(dice)),
        _ => forward_of(dice),
    })
}

/// Any integer, with those at the edges much more often than chance has them.
pub(crate) fn any_word() -> impl Strategy<Value = u64> {
    rolled(|dice| match dice.roll(6) {
        0 => dice.roll(100),
        1 => 1_700_000_000_000_000 + dice.roll(100_000_000),
        2 => (1u64 << dice.roll(64)).wrapping_sub(1).wrapping_add(dice.roll(3)),
        3 => u64::MAX - dice.roll(2),
        _ => u64::MAX.wrapping_mul(dice.0) >> dice.roll(64),
    })
}

/// A bucket under one of `quotas` in any state that can be reached: it may have begun under others,
/// been charged and refunded, have seen its clock step back and, last, its capacity change.
pub(crate) fn reachable(
    quotas: impl Strategy<Value = Quota> + 'static,
) -> impl Strategy<Value = Bucket> {
    let before = vec((any_quota(), vec(back_and_forth(), 0..6)), 0..3);
    let after = vec(back_and_forth(), 0..12);
    let capacity = rolled(|dice| (dice.roll(4) == 0).then(|| 1 + dice.roll(20)));
    (before, quotas, capacity, start(), after).prop_map(
        |(before, quota, capacity, start, after)| {
            let first = before.first().map_or(quota, |(first, _)| *first);
            let mut bucket = Bucket::new(first, start);
            for (earlier, steps) in before {
                bucket.change(earlier);
                steps.into_iter().for_each(|step| bucket.step(step));
            }
            bucket.change(quota);
            after.into_iter().for_each(|step| bucket.step(step));
            if let Some(resized) = capacity.and_then(|capacity| resized(&quota, capacity)) {
                bucket.change(resized);
            }
            bucket
        },
    )
}
