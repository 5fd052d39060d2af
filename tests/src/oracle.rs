//! Oracle of admissions: the exact excess over a quota, and a reference bucket.
//!
//! All of it is exact: tokens are counted in parts of 1/period, as 128-bit integers.

use std::fmt;

/// A requested or admitted charge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// Time in microseconds of any clock.
    pub time_us: u64,
    /// Number of tokens charged.
    pub cost: u64,
}

/// Quota: every window of length t may admit the capacity and the refill of t.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quota {
    /// B: capacity in tokens.
    pub capacity: u64,
    /// N: tokens refilled per period.
    pub tokens: u64,
    /// P: the period in microseconds, above 0.
    pub period_us: u64,
}

impl Quota {
    const fn capacity_parts(self) -> i128 {
        self.capacity as i128 * self.period_us as i128
    }

    /// One microsecond refills N parts; a token has P parts.
    const fn cost_parts(self, cost: u64) -> i128 {
        cost as i128 * self.period_us as i128
    }

    const fn refill_parts(self, us: u64) -> i128 {
        self.tokens as i128 * us as i128
    }
}

/// The window with the largest excess.
///
/// ```text
/// excess = admitted - (B + N * (to - from) / P)      windows are closed on both sides
/// ```
///
/// At or below 0, no window admitted too much.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OverAdmission {
    /// Excess in tokens, rounded up: a part of a token too much counts as one.
    pub tokens: i128,
    /// Exact excess, in parts of 1/`period_us` of a token.
    pub parts: i128,
    /// Tokens that the window admitted.
    pub admitted: u128,
    /// Start of the window.
    pub from_us: u64,
    /// End of the window.
    pub to_us: u64,
    /// The quota it is measured against.
    pub quota: Quota,
}

/// The worst of all windows, in one pass; `None` for an empty log.
///
/// The sum of a window is the difference of two prefix sums, so the excess is `end(j) - start(i)` for
/// potentials of single events: the smallest `start` so far is enough.
///
/// # Panics
///
/// If `log` is not sorted by time, `period_us` is 0, or a sum exceeds 127 bits.
pub fn over_admission(quota: Quota, log: &[Event]) -> Option<OverAdmission> {
    assert!(quota.period_us > 0, "a period is above 0");
    assert!(log.is_sorted_by_key(|event| event.time_us), "the log is in the order of time");
    let mut before = 0_u128; // tokens admitted before this event
    let mut lowest = (i128::MAX, 0, 0); // potential, tokens before, time
    let mut worst: Option<OverAdmission> = None;
    for event in log {
        let potential = |tokens: u128| {
            let parts = tokens.cast_signed() * i128::from(quota.period_us);
            parts - quota.refill_parts(event.time_us)
        };
        lowest = lowest.min((potential(before), before, event.time_us));
        before += u128::from(event.cost);
        let parts = potential(before) - lowest.0 - quota.capacity_parts();
        if worst.is_none_or(|worst| parts > worst.parts) {
            worst = Some(OverAdmission {
                tokens: div_ceil(parts, quota.period_us),
                parts,
                admitted: before - lowest.1,
                from_us: lowest.2,
                to_us: event.time_us,
                quota,
            });
        }
    }
    worst
}

const fn div_ceil(parts: i128, period_us: u64) -> i128 {
    -(-parts).div_euclid(period_us as i128)
}

impl fmt::Display for OverAdmission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { tokens, admitted, from_us, to_us, quota, .. } = self;
        let us = to_us - from_us;
        let (side, tokens) = if *tokens > 0 { ("above", *tokens) } else { ("within", -tokens) };
        write!(
            f,
            "{tokens} tokens {side} {} + {} per {} us: {admitted} admitted in {us} us from {from_us} to {to_us}",
            quota.capacity, quota.tokens, quota.period_us,
        )
    }
}

/// A token bucket without any rounding, initially full.
#[derive(Clone, Debug)]
pub struct ExactBucket {
    quota: Quota,
    parts: i128,
    last_us: Option<u64>,
}

impl ExactBucket {
    /// A full bucket.
    pub const fn new(quota: Quota) -> Self {
        Self { quota, parts: quota.capacity_parts(), last_us: None }
    }

    /// Charges an event; false if it is denied. An event before the last one counts as at the time of the
    /// last one.
    pub fn charge(&mut self, event: Event) -> bool {
        let last_us = self.last_us.unwrap_or(event.time_us);
        let us = event.time_us.saturating_sub(last_us);
        self.last_us = Some(event.time_us.max(last_us));
        self.parts = (self.parts + self.quota.refill_parts(us)).min(self.quota.capacity_parts());
        let cost = self.quota.cost_parts(event.cost);
        let admitted = cost <= self.parts;
        if admitted {
            self.parts -= cost;
        }
        admitted
    }

    /// Whole tokens as of the last event, rounded down.
    pub const fn tokens(&self) -> i128 {
        self.parts.div_euclid(self.quota.period_us as i128)
    }
}

/// The decisions of an exact bucket on these events in order.
pub fn replay(quota: Quota, events: &[Event]) -> Vec<bool> {
    let mut bucket = ExactBucket::new(quota);
    events.iter().map(|&event| bucket.charge(event)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seed::Seed;

    /// All windows, one by one.
    fn brute_force(quota: Quota, log: &[Event]) -> Option<i128> {
        let excess = |from: usize, to: usize| {
            let admitted: i128 =
                log[from..=to].iter().map(|event| quota.cost_parts(event.cost)).sum();
            let us = log[to].time_us - log[from].time_us;
            admitted - quota.capacity_parts() - quota.refill_parts(us)
        };
        let windows = (0..log.len()).flat_map(|from| (from..log.len()).map(move |to| (from, to)));
        windows.map(|(from, to)| excess(from, to)).max()
    }

    fn random_log(seed: &mut Seed, len: u64) -> Vec<Event> {
        let mut time_us = seed.below(1_000);
        let mut event = |seed: &mut Seed| {
            time_us += seed.below(4) * seed.below(50);
            Event { time_us, cost: seed.below(5) }
        };
        (0..len).map(|_| event(seed)).collect()
    }

    fn random_quota(seed: &mut Seed) -> Quota {
        let (capacity, tokens) = (seed.below(10), seed.below(10));
        Quota { capacity, tokens, period_us: seed.below(100) + 1 }
    }

    #[test]
    fn one_pass_equals_all_windows() {
        let mut seed = Seed::announce("one_pass_equals_all_windows");
        for _ in 0..2_000 {
            let (quota, len) = (random_quota(&mut seed), seed.below(30));
            let log = random_log(&mut seed, len);
            let worst = over_admission(quota, &log);
            assert_eq!(
                worst.map(|worst| worst.parts),
                brute_force(quota, &log),
                "{quota:?} {log:?}"
            );
            let Some(worst) = worst else { continue };
            let inside = |event: &&Event| (worst.from_us..=worst.to_us).contains(&event.time_us);
            let most: u128 = log.iter().filter(inside).map(|event| u128::from(event.cost)).sum();
            assert!(worst.admitted <= most);
            let period = i128::from(quota.period_us);
            assert!(
                worst.tokens * period >= worst.parts && (worst.tokens - 1) * period < worst.parts
            );
        }
    }

    #[test]
    fn an_exact_bucket_never_over_admits_and_one_more_token_would() {
        let mut seed = Seed::announce("an_exact_bucket_never_over_admits_and_one_more_token_would");
        let mut refused = 0;
        for _ in 0..1_000 {
            let quota = random_quota(&mut seed);
            let mut admitted = Vec::new();
            let mut bucket = ExactBucket::new(quota);
            for event in random_log(&mut seed, 40) {
                if bucket.charge(event) {
                    admitted.push(event);
                } else {
                    // If it had been admitted, the oracle would have found it.
                    let mut more = admitted.clone();
                    more.push(event);
                    assert!(over_admission(quota, &more).unwrap().parts > 0, "{quota:?} {more:?}");
                    refused += 1;
                }
            }
            assert!(over_admission(quota, &admitted).is_none_or(|worst| worst.tokens <= 0));
        }
        assert!(refused > 0, "nothing was ever refused");
    }

    #[test]
    fn a_part_of_a_token_too_much_is_one_too_much() {
        let quota = Quota { capacity: 1, tokens: 1, period_us: 1_000_000 };
        let at = |time_us| Event { time_us, cost: 1 };
        let early = over_admission(quota, &[at(0), at(999_999)]).unwrap();
        assert_eq!((early.tokens, early.parts), (1, 1));
        assert_eq!(
            early.to_string(),
            "1 tokens above 1 + 1 per 1000000 us: 2 admitted in 999999 us from 0 to 999999"
        );
        let in_time = over_admission(quota, &[at(0), at(1_000_000)]).unwrap();
        assert_eq!((in_time.tokens, in_time.parts), (0, 0));
        assert_eq!(replay(quota, &[at(0), at(999_999), at(1_000_000)]), [true, false, true]);
        assert_eq!(over_admission(quota, &[]), None);
    }

    #[test]
    fn the_largest_numbers_fit() {
        let quota = Quota { capacity: u64::MAX, tokens: u64::MAX, period_us: 1 };
        let last = Event { time_us: u64::MAX / 4, cost: u64::MAX };
        let worst = over_admission(quota, &[Event { time_us: 0, cost: 1 }, last]).unwrap();
        assert_eq!(worst.tokens, 0);
    }
}
