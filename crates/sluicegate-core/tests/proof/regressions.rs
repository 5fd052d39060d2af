//! Bugs of other limiters, each reproduced by running the code in question, as tests of this crate.

use std::time::Duration;

use sluicegate_core::{
    Algorithm, DecimalError, Outcome, Quota, QuotaError, RateError, Refill, decide,
};

use crate::bucket::{Bucket, Stored};

const START: u64 = 1_700_000_000_000_000;
const MS: u64 = 1_000;
const SECOND: u64 = 1_000_000;

fn bucket(quota: &str) -> Bucket {
    Bucket::new(quota.parse().unwrap(), START)
}

/// An empty bucket.
fn drained(quota: &str) -> Bucket {
    let mut bucket = bucket(quota);
    assert!(bucket.charge(bucket.quota.capacity()).is_granted());
    bucket
}

/// Number of granted charges of one token at regular distances.
fn granted_of(bucket: &mut Bucket, charges: u64, apart_us: u64) -> usize {
    let charge = |_| {
        let granted = bucket.charge(1).is_granted();
        bucket.wait(apart_us);
        granted
    };
    (0..charges).map(charge).filter(|granted| *granted).count()
}

// ===== bursts =====

/// throttlecrab 0.4.40 clamps its timestamp below now: after idling, 17 at one instant for a burst
/// of 10.
#[test]
fn throttlecrab_admits_more_than_the_burst_after_idling() {
    let mut bucket = drained("10/min burst 10");
    bucket.wait(3600 * SECOND);
    assert_eq!(granted_of(&mut bucket, 30, 0), 10);
}

/// throttlecrab 0.4.40 with `max_burst=1`, 1 per 60 s, admitted 1000 of 1000.
#[test]
fn throttlecrab_does_not_limit_a_burst_of_one() {
    let mut at_once = bucket("1/min burst 1");
    assert_eq!(granted_of(&mut at_once, 1000, 0), 1);
    let mut every_second = bucket("1/min burst 1");
    // At 0 s, 60 s, and so on to 960 s.
    assert_eq!(granted_of(&mut every_second, 1000, SECOND), 17);
}

/// governor keeps whole nanoseconds a token, and so turns 700M/s into 1 per ns: 43 % over.
#[test]
fn governor_rounds_700_million_a_second_up() {
    let mut bucket = drained("700000000/s");
    bucket.wait(1);
    assert_eq!(bucket.peek().remaining, 700);
}

/// The same rounding is 0.1 % over at 3M/s, 11 % at 300M/s, 25 % at 400 000 001/s, 67 % at 600M/s.
#[test]
fn governor_speeds_up_by_whole_nanoseconds() {
    for rate in [3_000_000u64, 300_000_000, 400_000_001, 600_000_000] {
        let mut bucket = drained(&format!("{rate}/s burst 4000"));
        let mut admitted = 0;
        for _ in 0..10_000 {
            bucket.wait(1);
            let left = bucket.peek().remaining;
            assert!(bucket.charge(left).is_granted());
            admitted += left;
        }
        assert_eq!(admitted, rate * 10_000 / SECOND, "{rate}/s");
    }
}

/// spring-cloud-gateway pull request 2453: rate 3 and capacity 1 gave a time to live of 0, so that
/// nothing was saved and nothing limited.
#[test]
fn spring_saves_nothing_for_a_short_time_to_full() {
    let mut bucket = bucket("3/s burst 1");
    assert_eq!(bucket.charge(1).reset_after_ms(), 334);
    assert_eq!(bucket.charge(1).retry_after_ms(), Some(334));
}

// ===== polling =====

/// The `ratelimit` crate granted "1 per hour" after 5000 s to a client that polled.
#[test]
fn ratelimit_crate_starves_those_who_poll() {
    let mut bucket = drained("1/h");
    let mut waited = 0;
    while !bucket.charge(1).is_granted() {
        bucket.wait(7 * SECOND);
        waited += 7;
    }
    assert_eq!(waited, 3605); // the first poll after 3600 s
}

/// spring-cloud-gateway 591 counts whole seconds: at 1/s, polled every 600 ms, only the first
/// request ever succeeded.
#[test]
fn spring_starves_those_who_poll_within_a_second() {
    let mut bucket = bucket("1/s burst 1");
    // Every other one: at 0 ms, 1200 ms, 2400 ms.
    assert_eq!(granted_of(&mut bucket, 100, 600 * MS), 50);
}

/// A sliding window that logs a request before it counts denies a client that keeps asking for
/// ever.
#[test]
fn seed_001_counts_denials_in_its_sliding_window() {
    let quota = Quota::per_second(2).unwrap().with_algorithm(Algorithm::SlidingWindow).unwrap();
    let mut bucket = Bucket::new(quota, START);
    // Ten times a second for five seconds: two in each.
    assert_eq!(granted_of(&mut bucket, 50, 100 * MS), 10);
}

// ===== waits =====

/// `tower_governor` 0.8 answered `retry-after: 0` for a wait of 900 ms.
#[test]
fn tower_governor_rounds_the_wait_down_to_nothing() {
    let mut bucket = drained("1/s");
    bucket.wait(100 * MS);
    let denied = bucket.charge(1);
    assert_eq!(denied.retry_after_ms(), Some(900));
    assert_eq!(denied.retry_after(), Some(Duration::from_millis(900)));
}

/// redis-cell answers a denial at 5000/s with a `retry_after` of 0.
#[test]
fn redis_cell_says_0_at_5000_a_second() {
    let denied = drained("5000/s").charge(1);
    assert_eq!(denied.outcome, Outcome::Denied { retry_after: 200 });
    assert_eq!(denied.retry_after_ms(), Some(1));
}

/// throttlecrab 0.4.40 floors the wait: 5 where it is 5.99 s.
#[test]
fn throttlecrab_floors_the_wait() {
    let mut bucket = drained("1 per 6s");
    bucket.wait(10 * MS);
    assert_eq!(bucket.charge(1).retry_after(), Some(Duration::from_millis(5990)));
}

/// Dragonfly's own tests expect waits a second too high: 11 for 10.
#[test]
fn dragonfly_adds_a_second() {
    let denied = drained("1 per 10s").charge(1);
    assert_eq!(denied.retry_after(), Some(Duration::from_secs(10)));
}

/// An earlier limiter rounds the wait up to whole seconds.
#[test]
fn seed_000_waits_whole_seconds() {
    assert_eq!(drained("5/s burst 10").charge(1).retry_after_ms(), Some(200));
}

/// An earlier limiter answers 1/R, whatever part of a token has refilled already.
#[test]
fn seed_003_ignores_the_fraction_held() {
    let mut bucket = drained("5/s burst 20");
    bucket.wait(150 * MS);
    assert_eq!(bucket.charge(1).retry_after_ms(), Some(50));
}

/// `int(refill_interval)` is 0 below a second in one earlier limiter, and EXPIRE fails on half of one in
/// another.
#[test]
fn seed_004_has_no_wait_for_half_a_second() {
    let quota = "1 per 0.5s".parse::<Quota>().unwrap().with_refill(Refill::Interval).unwrap();
    let mut bucket = Bucket::new(quota, START);
    bucket.charge(1);
    assert_eq!(bucket.charge(1).retry_after_ms(), Some(500));
    bucket.wait(500 * MS);
    assert!(bucket.charge(1).is_granted());
}

// ===== costs =====

/// An earlier limiter answered "retry in 100 ms" for ever to a cost of 51 of 50.
#[test]
fn seed_001_promises_what_can_never_be() {
    let mut bucket = bucket("10/s burst 50");
    assert_eq!(bucket.charge(51).outcome, Outcome::Never);
    assert_eq!(bucket.charge(51).retry_after_ms(), None);
    assert!(bucket.charge(50).is_granted());
}

/// throttlecrab 0.4.40 tells a quantity above the burst to retry in 12 s.
#[test]
fn throttlecrab_promises_what_can_never_be() {
    assert_eq!(bucket("1 per 6s burst 1").charge(3).outcome, Outcome::Never);
}

/// An earlier limiter admitted a cost of 99 of 10 on first use, and stored -89.
#[test]
fn seed_002_admits_anything_at_first() {
    let mut bucket = bucket("1 per 2s burst 10");
    assert!(bucket.charge(99).is_never());
    assert_eq!(bucket.stored, Stored::State(None));
    assert_eq!(bucket.peek().remaining, 10);
}

/// An earlier limiter deletes the bucket on a cost of 0, by EXPIRE 0.
#[test]
fn seed_002_forgets_on_a_cost_of_0() {
    let mut bucket = drained("1 per 2s burst 10");
    let before = bucket.stored.clone();
    assert!(bucket.charge(0).is_granted());
    assert_eq!(bucket.stored, before);
    assert_eq!(bucket.peek().remaining, 0);
}

/// Upstash's token bucket stores a negative balance on rejected calls.
#[test]
fn upstash_goes_into_debt_by_denials() {
    let mut bucket = drained("10/s");
    let before = bucket.stored.clone();
    assert_eq!(granted_of(&mut bucket, 1000, 0), 0);
    assert_eq!(bucket.stored, before);
    bucket.wait(100 * MS);
    assert!(bucket.charge(1).is_granted());
}

// ===== clocks =====

/// Upstash takes the caller's time: one caller with a wrong clock refills the bucket for all.
#[test]
fn upstash_lets_one_wrong_clock_refill_everybody() {
    let mut bucket = drained("1/s burst 10");
    // An hour ahead the bucket seems to have been idle; that one caller cannot be recognised.
    bucket.wait(3600 * SECOND);
    assert!(bucket.charge(1).is_granted());
    // All other callers gain nothing, and wait no longer than for one token.
    bucket.step_back(3600 * SECOND);
    let denied = bucket.charge(1);
    assert_eq!(denied.outcome, Outcome::Denied { retry_after: SECOND });
    bucket.wait(SECOND);
    assert!(bucket.charge(1).is_granted());
}

/// An earlier limiter lets negative time pass: a step back of 60 s left -551 tokens of 50.
#[test]
fn seed_000_goes_into_debt_by_a_clock_step() {
    let mut bucket = bucket("10/s burst 50");
    assert_eq!(bucket.charge(1).remaining, 49);
    bucket.step_back(60 * SECOND);
    let denied = bucket.charge(1);
    assert_eq!((denied.remaining, denied.retry_after_ms()), (0, Some(100)));
    assert_eq!(denied.reset_after_ms(), 5000);
    bucket.wait(100 * MS);
    assert!(bucket.charge(1).is_granted());
}

/// Ours, before it was released: a clock that was set back over the edge of a window passed it
/// twice, and gave the whole of the next window twice with it.
#[test]
fn a_window_passed_twice_is_not_given_twice() {
    let quota = Quota::per_hour(100).unwrap().with_algorithm(Algorithm::FixedWindow).unwrap();
    let edge = START - START % (3600 * SECOND);
    let mut bucket = Bucket::new(quota, edge + SECOND / 2);
    assert!(bucket.charge(100).is_granted());
    bucket.step_back(SECOND);
    assert!(!bucket.charge(1).is_granted());
    bucket.wait(SECOND);
    assert!(!bucket.charge(1).is_granted());
}

/// Ours, before it was released: the sliding counter set back over an edge took what had just begun
/// to fade for what was nearly gone.
#[test]
fn a_fading_count_does_not_fade_backwards() {
    let quota = Quota::per_hour(100).unwrap().with_algorithm(Algorithm::SlidingCounter).unwrap();
    let edge = START - START % (3600 * SECOND);
    let mut bucket = Bucket::new(quota, edge - SECOND);
    assert!(bucket.charge(100).is_granted());
    bucket.wait(40 * SECOND);
    assert!(bucket.charge(1).is_granted());
    assert_eq!(bucket.peek().remaining, 0);
    bucket.step_back(40 * SECOND);
    assert_eq!(bucket.peek().remaining, 0);
}

// ===== domains =====

/// An earlier limiter divides by a rate of 0, which leaves a key that never expires.
#[test]
fn seed_001_takes_a_rate_of_0() {
    let refused = "0/s burst 50".parse::<Quota>();
    assert_eq!(refused, Err(QuotaError::Rate(RateError::ZeroTokens)));
}

/// spring-cloud-gateway 168 takes a capacity of 0 for no limit at all.
#[test]
fn spring_takes_no_capacity_for_no_limit() {
    assert_eq!("10/s burst 0".parse::<Quota>(), Err(QuotaError::ZeroCapacity));
}

/// The redis.io demo accepts a capacity of -5.
#[test]
fn redis_demo_takes_a_capacity_below_0() {
    let refused = "10/s burst -5".parse::<Quota>();
    assert_eq!(refused, Err(QuotaError::Rate(RateError::BadBurst)));
    let refused = "-5/s".parse::<Quota>();
    assert_eq!(refused, Err(QuotaError::Rate(RateError::Number(DecimalError::Negative))));
}

/// spring-cloud-gateway 3594: capacities of 32 bits kept daily limits below about 25 000.
#[test]
fn spring_caps_daily_limits() {
    let quota = Quota::per_day(10_000_000).unwrap();
    let mut bucket = Bucket::new(quota, START);
    assert!(bucket.charge(10_000_000).is_granted());
    // One every 8.64 ms.
    assert_eq!(bucket.charge(1).outcome, Outcome::Denied { retry_after: 8640 });
}

/// The first example of the documentation.
#[test]
fn the_drawing_of_the_front_page_is_true() {
    let quota = "1/s burst 3".parse::<Quota>().unwrap();
    let (mut state, mut shown) = (None, Vec::new());
    for at_s in [0, 0, 0, 0, 1, 2, 2] {
        let now = sluicegate_core::Micros::new(START + at_s * SECOND);
        let (decision, write) = decide(&quota, state, now, 1);
        state = write.or(state);
        shown.push(decision.retry_after_ms().unwrap());
    }
    assert_eq!(shown, [0, 0, 0, 1000, 0, 0, 1000]);
}
