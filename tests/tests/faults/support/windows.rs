//! Excess of admissions when only the interval of each decision is known.
//!
//! A charge was decided after it was sent and before its reply arrived. So all charges sent at or after s and
//! answered by e were admitted between s and e, and may be no more than B + R·(e - s). This never reports a
//! false excess, and over long intervals it is as sharp as the decisions' own times.

use sluicegate_tests::oracle::Quota;

/// An admitted charge.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Admission {
    pub(crate) sent_us: u64,
    pub(crate) done_us: u64,
    pub(crate) cost: u64,
}

/// The largest excess of an interval over B + R·t, in tokens, rounded up; at or below 0 nothing was
/// over-admitted. `i128::MIN` if nothing was admitted.
pub(crate) fn excess(quota: Quota, admissions: &[Admission]) -> i128 {
    let mut starts: Vec<u64> = admissions.iter().map(|admission| admission.sent_us).collect();
    starts.sort_unstable();
    let Some(&origin) = starts.first() else { return i128::MIN };
    let refill = |us: u64| i128::from(quota.tokens) * i128::from(us - origin);
    let period = i128::from(quota.period_us);
    // For every start, the tokens admitted from it on, and the refill up to it, in parts of 1/period.
    let refills: Vec<i128> = starts.iter().map(|&start| refill(start)).collect();
    let mut sums = Sums::new(&refills);
    let mut by_end = admissions.to_vec();
    by_end.sort_unstable_by_key(|admission| admission.done_us);
    let mut worst = i128::MIN;
    for Admission { sent_us, done_us, cost } in by_end {
        let first_after = starts.partition_point(|&start| start <= sent_us);
        sums.add_before(first_after, i128::from(cost) * period);
        let last = starts.partition_point(|&start| start <= done_us);
        let parts = sums.max_before(last) - refill(done_us) - i128::from(quota.capacity) * period;
        worst = worst.max(parts);
    }
    -(-worst).div_euclid(period)
}

/// Numbers with two operations on prefixes: adding to all, and finding the largest.
struct Sums {
    leaves: usize,
    /// The largest number below every node, without additions above it.
    largest: Vec<i128>,
    /// Additions to all numbers below a node.
    added: Vec<i128>,
}

impl Sums {
    fn new(numbers: &[i128]) -> Self {
        let leaves = numbers.len().next_power_of_two();
        let mut largest = vec![i128::MIN / 4; 2 * leaves];
        largest[leaves..leaves + numbers.len()].copy_from_slice(numbers);
        for node in (1..leaves).rev() {
            largest[node] = largest[2 * node].max(largest[2 * node + 1]);
        }
        Self { leaves, largest, added: vec![0; 2 * leaves] }
    }

    fn add_before(&mut self, end: usize, amount: i128) {
        self.add(1, 0..self.leaves, end, amount);
    }

    fn add(&mut self, node: usize, span: std::ops::Range<usize>, end: usize, amount: i128) {
        if end <= span.start {
            return;
        }
        if end >= span.end {
            self.largest[node] += amount;
            self.added[node] += amount;
            return;
        }
        let middle = span.start.midpoint(span.end);
        self.add(2 * node, span.start..middle, end, amount);
        self.add(2 * node + 1, middle..span.end, end, amount);
        self.largest[node] =
            self.largest[2 * node].max(self.largest[2 * node + 1]) + self.added[node];
    }

    fn max_before(&self, end: usize) -> i128 {
        self.max(1, 0..self.leaves, end)
    }

    fn max(&self, node: usize, span: std::ops::Range<usize>, end: usize) -> i128 {
        if end <= span.start {
            return i128::MIN / 2;
        }
        if end >= span.end {
            return self.largest[node];
        }
        let middle = span.start.midpoint(span.end);
        let left = self.max(2 * node, span.start..middle, end);
        left.max(self.max(2 * node + 1, middle..span.end, end)) + self.added[node]
    }
}

/// With decisions at one instant the intervals are points, and the oracle agrees.
#[test]
fn points_are_judged_as_by_the_oracle() {
    use sluicegate_tests::oracle::{Event, over_admission};
    use sluicegate_tests::seed::Seed;
    let mut seed = Seed::announce("points_are_judged_as_by_the_oracle");
    for _ in 0..300 {
        let quota = Quota { capacity: 1 + seed.below(5), tokens: 1 + seed.below(3), period_us: 7 };
        let mut times: Vec<u64> = (0..=seed.below(40)).map(|_| seed.below(60)).collect();
        times.sort_unstable();
        let events: Vec<_> =
            times.iter().map(|&time_us| Event { time_us, cost: 1 + seed.below(3) }).collect();
        let admission = |event: &Event| Admission {
            sent_us: event.time_us,
            done_us: event.time_us,
            cost: event.cost,
        };
        let admissions: Vec<_> = events.iter().map(admission).collect();
        assert_eq!(excess(quota, &admissions), over_admission(quota, &events).unwrap().tokens);
    }
}
