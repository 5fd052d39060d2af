//! Histogram of decision times.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use prometheus_client::encoding::{EncodeMetric, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;

/// Upper bounds of the histogram's buckets, in nanoseconds, from a microsecond to a second: a
/// decision in memory takes about one microsecond, one in Redis some hundreds, and one that times
/// out the whole budget.
const BOUNDS: [u64; 17] = [
    1_000,
    2_000,
    5_000,
    10_000,
    25_000,
    50_000,
    100_000,
    250_000,
    500_000,
    1_000_000,
    2_500_000,
    5_000_000,
    10_000_000,
    20_000_000,
    50_000_000,
    100_000_000,
    1_000_000_000,
];

const NANOS_PER_SECOND: f64 = 1e9;
const NANOS_PER_MICRO: u64 = 1000;

/// Lock-free histogram of durations. Clones share their counters.
#[derive(Clone, Debug, Default)]
pub(super) struct Durations(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    /// Durations above the previous bound and at most this one of [`BOUNDS`]; the last bucket has
    /// all longer ones.
    buckets: [AtomicU64; BOUNDS.len() + 1],
    sum_ns: AtomicU64,
}

/// Bucket counts of a [`Durations`] at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Observed([u64; BOUNDS.len() + 1]);

impl Durations {
    /// Reads the counts so far.
    pub(super) fn read(&self) -> Observed {
        Observed(std::array::from_fn(|bucket| self.0.buckets[bucket].load(Relaxed)))
    }

    /// Counts `count` durations whose sum is `together`, as equally long.
    pub(super) fn observe(&self, together: Duration, count: u64) {
        let together_ns = u64::try_from(together.as_nanos()).unwrap_or(u64::MAX);
        let each_ns = together_ns / count.max(1);
        let bucket = BOUNDS.partition_point(|bound| *bound < each_ns);
        self.0.buckets[bucket].fetch_add(count, Relaxed);
        self.0.sum_ns.fetch_add(together_ns, Relaxed);
    }
}

impl Observed {
    /// Counts added since `last`.
    pub(crate) fn since(&self, last: &Self) -> Self {
        Self(std::array::from_fn(|bucket| self.0[bucket].saturating_sub(last.0[bucket])))
    }

    /// Number of durations.
    pub(crate) fn count(&self) -> u64 {
        self.0.iter().sum()
    }

    /// Percentile in microseconds: the upper bound of the histogram bucket that holds it, or the
    /// last bound for anything longer. `None` without durations.
    pub(crate) fn percentile_us(&self, percent: u64) -> Option<u64> {
        let count = self.count();
        if count == 0 {
            return None;
        }
        let rank = u128::from(count) * u128::from(percent);
        let mut below = 0;
        let bucket = self.0.iter().position(|count| {
            below += u128::from(*count) * 100;
            below >= rank
        });
        let bound = bucket.and_then(|bucket| BOUNDS.get(bucket)).or(BOUNDS.last());
        bound.map(|bound_ns| bound_ns / NANOS_PER_MICRO)
    }
}

impl EncodeMetric for Durations {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> Result<(), std::fmt::Error> {
        let counts = self.0.buckets.iter().map(|count| count.load(Relaxed));
        let bounds = BOUNDS.iter().map(|bound| *bound as f64 / NANOS_PER_SECOND);
        let buckets: Vec<_> = bounds.chain([f64::INFINITY]).zip(counts).collect();
        let count = buckets.iter().map(|(_, count)| count).sum();
        let sum = self.0.sum_ns.load(Relaxed) as f64 / NANOS_PER_SECOND;
        encoder.encode_histogram::<NoLabelSet>(sum, count, &buckets, None)
    }

    fn metric_type(&self) -> MetricType {
        MetricType::Histogram
    }
}

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::text::encode;
    use prometheus_client::registry::Registry;

    use super::*;

    #[test]
    fn durations_are_counted_where_they_belong() {
        let durations = Durations::default();
        durations.observe(Duration::from_micros(1), 1);
        durations.observe(Duration::from_micros(64), 16);
        durations.observe(Duration::from_secs(2), 1);
        let mut registry = Registry::default();
        registry.register("took", "Time", durations);
        let mut text = String::new();
        encode(&mut text, &registry).unwrap();
        for line in [
            "took_sum 2.000065",
            "took_count 18",
            "took_bucket{le=\"0.000001\"} 1",
            "took_bucket{le=\"0.000002\"} 1",
            "took_bucket{le=\"0.000005\"} 17",
            "took_bucket{le=\"1.0\"} 17",
            "took_bucket{le=\"+Inf\"} 18",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} is not in {text}");
        }
    }

    #[test]
    fn percentiles_are_bounds_of_what_was_added() {
        let durations = Durations::default();
        durations.observe(Duration::from_secs(2), 1);
        let before = durations.read();
        let added = |durations: &Durations| durations.read().since(&before);
        assert_eq!((added(&durations).count(), added(&durations).percentile_us(50)), (0, None));
        durations.observe(Duration::from_micros(99 * 4), 99);
        durations.observe(Duration::from_micros(60), 1);
        let percentiles = |durations: &Durations| {
            [50, 99, 100].map(|percent| added(durations).percentile_us(percent))
        };
        assert_eq!(percentiles(&durations), [Some(5), Some(5), Some(100)]);
        // Beyond the last bound, the last bound is reported.
        durations.observe(Duration::from_secs(200), 100);
        assert_eq!(percentiles(&durations), [Some(100), Some(1_000_000), Some(1_000_000)]);
    }
}
