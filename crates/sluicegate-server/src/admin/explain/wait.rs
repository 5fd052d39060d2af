//! Waiting time of a request, computed from a peek into its bucket.

use std::time::Duration;

use sluicegate::{Algorithm, Decision, Quota, Refill};

/// True if the peeked bucket would grant `cost` tokens now.
pub(super) fn would_grant(peeked: &Decision, cost: u64) -> bool {
    cost <= peeked.remaining
}

/// Time until the peeked bucket grants `cost` tokens, if no tokens are taken meanwhile: zero if it would now,
/// `None` if it never will.
///
/// For sliding windows it is an upper bound: a peek tells when the window is empty, not when each of its entries
/// expires.
pub(super) fn wait(quota: &Quota, peeked: &Decision, cost: u64) -> Option<Duration> {
    if cost > quota.capacity() {
        return None;
    }
    if would_grant(peeked, cost) {
        return Some(Duration::ZERO);
    }
    let reset_after = peeked.reset_after();
    let early = match (quota.algorithm(), quota.refill()) {
        (Algorithm::TokenBucket, Refill::Interval) => grid_time(quota, peeked, cost),
        (algorithm, _) if algorithm.has_capacity() => refill_time(quota, cost),
        _ => Duration::ZERO,
    };
    Some(reset_after.saturating_sub(early))
}

/// Time to refill the part of the capacity that this cost does not need, rounded down.
fn refill_time(quota: &Quota, cost: u64) -> Duration {
    let (tokens, period_us) = quota.rate().reduced();
    let spare = u128::from(quota.capacity() - cost);
    let micros = spare * u128::from(period_us) / u128::from(tokens.max(1));
    Duration::from_micros(u64::try_from(micros).unwrap_or(u64::MAX))
}

/// The same for a bucket that refills at the end of each period.
fn grid_time(quota: &Quota, peeked: &Decision, cost: u64) -> Duration {
    let (tokens, period_us) = quota.rate().tokens_and_period_us();
    let missing = quota.capacity().saturating_sub(peeked.remaining);
    let needed = cost.saturating_sub(peeked.remaining);
    let spare = missing.div_ceil(tokens.max(1)) - needed.div_ceil(tokens.max(1));
    Duration::from_micros(period_us.saturating_mul(spare))
}

#[cfg(test)]
mod tests {
    use sluicegate::{Limiter, ManualClock, MemoryStore, Micros, Rate, RuleSet};

    use super::*;

    fn quotas() -> Vec<Quota> {
        let rate = |text: &str| text.parse::<Rate>().unwrap();
        let build = |rate, algorithm, refill, capacity| {
            Quota::build(rate, algorithm, refill, capacity, None).unwrap()
        };
        let (continuous, interval) = (Refill::Continuous, Refill::Interval);
        vec![
            build(rate("1 per 10s"), Algorithm::TokenBucket, continuous, Some(5)),
            build(rate("7 per 2s"), Algorithm::TokenBucket, continuous, Some(20)),
            build(rate("3 per 10s"), Algorithm::TokenBucket, interval, Some(10)),
            build(rate("10 per 60s"), Algorithm::FixedWindow, continuous, None),
            build(rate("1 per 10s"), Algorithm::LeakyBucket, continuous, Some(5)),
        ]
    }

    /// Compares [`wait`] with `retry_after` of a denial, after various amounts spent and times passed.
    #[test]
    fn a_peek_yields_the_wait_of_a_denial() {
        for quota in quotas() {
            for spent in 0..=quota.capacity() {
                for passed_ms in [0, 1, 999, 4_001, 17_500] {
                    let clock = ManualClock::new(Micros::new(1_785_585_600_123_457));
                    let store = MemoryStore::builder().clock(clock.clone()).build();
                    let limiter = Limiter::new(store, RuleSet::default());
                    let _ = limiter.take_now("k", &quota, spent);
                    clock.advance(Duration::from_millis(passed_ms));
                    for cost in 0..=quota.capacity() + 1 {
                        let peeked = limiter.peek_now("k", &quota);
                        let (computed, granted) =
                            (wait(&quota, &peeked, cost), would_grant(&peeked, cost));
                        let decision = limiter.take_now("k", &quota, cost);
                        let answered = decision.retry_after();
                        assert_eq!(granted, decision.is_granted(), "{quota:?} {spent} {cost}");
                        let is_close = match (computed, answered) {
                            (Some(computed), Some(answered)) => {
                                computed >= answered
                                    && computed - answered <= Duration::from_micros(1)
                            }
                            (computed, answered) => computed == answered,
                        };
                        assert!(is_close, "{computed:?} {answered:?} {quota:?} {spent} {cost}");
                        if granted {
                            let _ = limiter.refund_now("k", &quota, cost);
                        }
                    }
                }
            }
        }
    }
}
