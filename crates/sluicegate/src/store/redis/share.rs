//! Share of a quota that one process may admit by itself while Redis is unavailable.

use std::time::Duration;

use sluicegate_core::{Form, MICROS_MAX, Quota, QuotaError, Rate};

/// Largest numerator of a rate that a quota counts exactly.
const N_MAX: u64 = 1 << 32;

/// Maximum of units in a full bucket.
const UNITS_MAX: u64 = MICROS_MAX;

/// This share of a quota, 1 to 100 percent, of its capacity and of its rate, with the same algorithm.
///
/// The share is exact if it can be represented, else the nearest representable one below it, with these
/// exceptions for very small values: a capacity and a window are at least one token, and a token is refilled
/// at least every 142 years. Tokens of a window and of an interval are whole, so they are rounded down; an
/// interval too short for one token is lengthened. The `max_wait` of a leaky bucket stays.
pub(super) fn share_of(quota: &Quota, percent: u8) -> Quota {
    let percent = u64::from(percent.clamp(1, 100));
    if percent == 100 {
        return *quota;
    }
    let share = match quota.form() {
        Form::Continuous { n, p } | Form::LeakyBucket { n, p } => {
            share_of_rate(quota, n, p, percent)
        }
        Form::Interval { n, p } => share_of_interval(quota, n, p, percent),
        Form::FixedWindow { p } | Form::SlidingWindow { p } | Form::SlidingCounter { p } => {
            build(quota, scaled(quota.capacity(), percent), p, None)
        }
    };
    // Every share is within the bounds of a quota, so this does not fail.
    share.unwrap_or(*quota)
}

/// A share of `n` tokens per `p` microseconds with continuous refill.
fn share_of_rate(quota: &Quota, n: u64, p: u64, percent: u64) -> Result<Quota, QuotaError> {
    let capacity = scaled(quota.capacity(), percent);
    let wait_us = quota.max_wait().map_or(0, |wait| wait.as_micros() as u64);
    // Bounds of a quota: units of a full bucket and of the longest wait must be representable.
    let n_max = N_MAX.min(UNITS_MAX / wait_us.max(1));
    let p_max = UNITS_MAX / capacity;
    let share = [n * percent, p.saturating_mul(100)];
    match nearest_below(share, n_max, p_max) {
        [0, _] => slowest(quota, share, capacity),
        [n, p] => build(quota, n, p, Some(capacity)),
    }
}

/// A share of `n` tokens every `p` microseconds with interval refill.
fn share_of_interval(quota: &Quota, n: u64, p: u64, percent: u64) -> Result<Quota, QuotaError> {
    let capacity = scaled(quota.capacity(), percent);
    match n * percent / 100 {
        0 => slowest(quota, [n * percent, p.saturating_mul(100)], capacity),
        n => build(quota, n, p, Some(capacity.min(n.saturating_mul(UNITS_MAX / p)))),
    }
}

/// One token at a time, with as much of the capacity as is representable at that rate.
fn slowest(quota: &Quota, [n, p]: [u64; 2], capacity: u64) -> Result<Quota, QuotaError> {
    // Rounded up: not more than the share.
    let p = p.div_ceil(n).min(MICROS_MAX);
    build(quota, 1, p, Some(capacity.min(UNITS_MAX / p)))
}

/// A quota with the algorithm and refill of this one.
fn build(quota: &Quota, n: u64, p: u64, capacity: Option<u64>) -> Result<Quota, QuotaError> {
    let rate = Rate::new(n, Duration::from_micros(p))?;
    Quota::build(rate, quota.algorithm(), quota.refill(), capacity, quota.max_wait())
}

/// This share of some tokens, rounded down, but at least one.
fn scaled(tokens: u64, percent: u64) -> u64 {
    // At most 2^52 times 100: no overflow.
    (tokens * percent / 100).max(1)
}

/// The largest fraction that is not above `n / d`, with a numerator and a denominator of at most these.
///
/// Descends the Stern-Brocot tree, all steps in one direction at a time: between the fractions `below` and
/// `above` lies none with smaller terms than those of their mediant.
fn nearest_below([n, d]: [u64; 2], n_max: u64, d_max: u64) -> [u64; 2] {
    let [n, d, n_max, d_max] = [n, d, n_max, d_max].map(u128::from);
    let (mut below, mut above) = ([0, 1_u128], [1_u128, 0]);
    loop {
        // Distances to `n / d`, in units of each fraction: that of `above` is never zero.
        let under = n * below[1] - d * below[0];
        let over = d * above[0] - n * above[1];
        let most = |room: u128, step: u128| room.checked_div(step).unwrap_or(u128::MAX);
        let steps = (under / over)
            .min(most(n_max - below[0], above[0]))
            .min(most(d_max - below[1], above[1]));
        below = [below[0] + steps * above[0], below[1] + steps * above[1]];
        let under_now = under - steps * over;
        if under_now == 0 || under_now >= over {
            break;
        }
        let steps = (over - 1) / under_now;
        above = [above[0] + steps * below[0], above[1] + steps * below[1]];
        let is_next_too_large = below[0] + above[0] > n_max || below[1] + above[1] > d_max;
        if is_next_too_large {
            break;
        }
    }
    // Neither exceeds its bound.
    below.map(|term| u64::try_from(term).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use sluicegate_core::{Algorithm, Refill};

    use super::*;

    #[test]
    fn shares_are_exact_where_they_can_be() {
        let share = |text: &str, percent| share_of(&text.parse().unwrap(), percent);
        assert_eq!(share("10/s burst 50", 50), "5/s burst 25".parse().unwrap());
        assert_eq!(share("10/s burst 3", 10), "1/s burst 1".parse().unwrap());
        assert_eq!(share("1/s", 33), "0.33/s burst 1".parse().unwrap());
        assert_eq!(share("10/s burst 50", 100), "10/s burst 50".parse().unwrap());
        let window = |tokens| {
            Quota::per_minute(tokens).unwrap().with_algorithm(Algorithm::FixedWindow).unwrap()
        };
        assert_eq!(share_of(&window(7), 50), window(3));
        assert_eq!(share_of(&window(1), 50), window(1));
        let interval = |tokens, seconds| {
            let quota = Quota::new(tokens, Duration::from_secs(seconds)).unwrap();
            quota.with_refill(Refill::Interval).unwrap()
        };
        assert_eq!(share_of(&interval(7, 60), 50), interval(3, 60));
        assert_eq!(share_of(&interval(1, 60), 25), interval(1, 240));
    }

    #[test]
    fn shares_that_cannot_be_counted_are_rounded_down() {
        // 0.21 a second, one at a time: every 4 761 904.76 us.
        let quota = Quota::per_second(3).unwrap().with_refill(Refill::Interval).unwrap();
        assert_eq!(share_of(&quota, 7).form(), Form::Interval { n: 1, p: 4_761_905 });
        // Of 24 tokens, 3 at a time in 142 years: 12 at 1 at a time would take longer.
        let quota = Quota::new(3, Duration::from_micros(MICROS_MAX / 8)).unwrap();
        let quota = quota.with_refill(Refill::Interval).unwrap().with_capacity(24).unwrap();
        assert_eq!(share_of(&quota, 50).capacity(), 8);
        // Two tokens in 142 years, the longest period. Of its share only one is representable.
        let slow = Quota::new(1, Duration::from_micros(MICROS_MAX / 2)).unwrap();
        let slow = slow.with_capacity(2).unwrap();
        let share = share_of(&slow, 99);
        let p = (MICROS_MAX / 2 * 100).div_ceil(99);
        assert_eq!((share.form(), share.capacity()), (Form::Continuous { n: 1, p }, 1));
        // No period is longer.
        let share = share_of(&slow, 1);
        let slowest = Form::Continuous { n: 1, p: MICROS_MAX };
        assert_eq!((share.form(), share.capacity()), (slowest, 1));
    }

    #[test]
    fn the_longest_wait_of_a_queue_stays() {
        let quota = Quota::per_second(10).unwrap().with_algorithm(Algorithm::LeakyBucket).unwrap();
        let quota = quota.with_max_wait(Duration::from_millis(700)).unwrap();
        let share = share_of(&quota, 30);
        assert_eq!(share.max_wait(), quota.max_wait());
        assert_eq!((share.capacity(), share.rate()), (3, "3/s".parse().unwrap()));
    }

    /// The largest fraction below another, by trying every denominator.
    fn nearest_below_by_trial([n, d]: [u64; 2], n_max: u64, d_max: u64) -> [u64; 2] {
        let all = (1..=d_max).map(|p| [(n * p / d).min(n_max), p]);
        all.fold(
            [0, 1],
            |best, next| {
                if next[0] * best[1] > best[0] * next[1] { next } else { best }
            },
        )
    }

    fn quotas() -> impl Strategy<Value = Quota> {
        // Numbers of every order of magnitude.
        let number =
            || (0..53_u32, any::<u64>()).prop_map(|(bits, any)| (any >> 11 >> (52 - bits)).max(1));
        let algorithm = prop::sample::select(Algorithm::ALL.to_vec());
        let wait = prop::option::of(number());
        let parts = (number(), number(), number(), algorithm, any::<bool>(), wait);
        parts.prop_filter_map("cannot be counted", |(n, p, capacity, algorithm, interval, wait)| {
            let rate = Rate::new(n, Duration::from_micros(p)).ok()?;
            let is_bucket = algorithm == Algorithm::TokenBucket;
            let refill = if interval && is_bucket { Refill::Interval } else { Refill::Continuous };
            let is_queue = algorithm == Algorithm::LeakyBucket;
            let capacity = (is_bucket || is_queue).then_some(capacity);
            let wait = wait.filter(|_| is_queue).map(Duration::from_micros);
            Quota::build(rate, algorithm, refill, capacity, wait).ok()
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig { max_global_rejects: 100_000, ..Default::default() })]

        #[test]
        fn the_nearest_fraction_below_is_found(
            n in 1..500_u64, d in 1..500_u64, n_max in 1..60_u64, d_max in 1..60_u64,
        ) {
            let [a, b] = nearest_below([n, d], n_max, d_max);
            let [c, e] = nearest_below_by_trial([n, d], n_max, d_max);
            prop_assert!(a <= n_max && b <= d_max);
            prop_assert_eq!(a * e, c * b);
        }

        /// Never more than the share, except for the documented exceptions.
        #[test]
        fn no_share_is_too_large(quota in quotas(), percent in 1..=100_u8) {
            let share = share_of(&quota, percent);
            prop_assert_eq!(share.algorithm(), quota.algorithm());
            prop_assert_eq!(share.refill(), quota.refill());
            prop_assert_eq!(share.max_wait(), quota.max_wait());
            let part = u128::from(percent);
            let capacity = u128::from(quota.capacity()) * part / 100;
            prop_assert!(u128::from(share.capacity()) <= capacity.max(1));
            let ([n, p], [m, q]) = (rate(&quota), rate(&share));
            let is_slowest = m == 1 && q == u128::from(MICROS_MAX);
            let is_one_a_window = share.capacity() == 1 && is_window(&share);
            // m / q <= part / 100 * n / p
            prop_assert!(m * p * 100 <= part * n * q || is_slowest || is_one_a_window);
            if percent == 100 {
                prop_assert_eq!(share, quota);
            }
        }

        /// Common rates are shared exactly, or to one part in a billion.
        #[test]
        fn usual_shares_are_as_good_as_exact(
            tokens in 1..100_000_u64,
            seconds in prop::sample::select(vec![1, 60, 3600, 86_400_u64]),
            percent in 1..=100_u8,
        ) {
            let Ok(quota) = Quota::new(tokens, Duration::from_secs(seconds)) else { return Ok(()) };
            let share = share_of(&quota, percent);
            let ([n, p], [m, q]) = (rate(&quota), rate(&share));
            let (shared, exact) = (m * p * 100, u128::from(percent) * n * q);
            prop_assert!(exact - shared <= exact / 1_000_000_000);
            prop_assert_eq!(share.capacity(), (tokens * u64::from(percent) / 100).max(1));
        }
    }

    fn rate(quota: &Quota) -> [u128; 2] {
        let (n, p) = quota.rate().reduced();
        [n.into(), p.into()]
    }

    fn is_window(quota: &Quota) -> bool {
        !quota.algorithm().has_capacity()
    }
}
