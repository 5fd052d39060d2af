//! Bounds of each algorithm over any interval of time.

use sluicegate_core::{Form, Quota};

/// A grant: when it was made, and of how many tokens.
pub(crate) type Grant = (u64, u64);

/// The first interval between two grants in which more was admitted than the quota allows, if any.
/// The bound is `refunded` tokens wider.
///
/// Times are those of a steady clock, also where the bucket's own was set back meanwhile.
pub(crate) fn excess(quota: &Quota, grants: &[Grant], refunded: u64) -> Option<(Grant, Grant)> {
    for (index, from) in grants.iter().enumerate() {
        let mut admitted = 0;
        for to in &grants[index..] {
            admitted += u128::from(to.1);
            if admitted > most(quota, to.0 - from.0) + u128::from(refunded) {
                return Some((*from, *to));
            }
        }
    }
    None
}

/// Most tokens that may be admitted in a closed interval of time.
fn most(quota: &Quota, stretch_us: u64) -> u128 {
    let capacity = u128::from(quota.capacity());
    let (tokens, period) = quota.rate().tokens_and_period_us();
    let (tokens, period) = (u128::from(tokens), u128::from(period));
    let stretch = u128::from(stretch_us);
    match quota.form() {
        // B + R * t, whole tokens of it.
        Form::Continuous { .. } | Form::LeakyBucket { .. } | Form::SlidingCounter { .. } => {
            capacity + tokens * stretch / period
        }
        Form::Interval { .. } => capacity + tokens * (stretch / period + 1),
        // One window at an instant, and every edge may lie within the interval.
        Form::FixedWindow { .. } => capacity * (stretch.div_ceil(period) + 1),
        // Half-open periods.
        Form::SlidingWindow { .. } => capacity * (stretch / period + 1),
    }
}
