//! How long decisions take.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use prometheus_client::encoding::{EncodeMetric, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;

/// From a microsecond to a second: a decision in memory takes about one, one in Redis some hundreds, and one
/// that is not answered there the budget for it. In nanoseconds.
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

/// A histogram of durations, which nobody waits for. Clones count together.
#[derive(Clone, Debug, Default)]
pub(super) struct Durations(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    /// How many took no longer than each of [`BOUNDS`], and longer than the one before; then the rest.
    buckets: [AtomicU64; BOUNDS.len() + 1],
    sum_ns: AtomicU64,
}

impl Durations {
    /// Counts so many that took this long together, as equally long.
    pub(super) fn observe(&self, together: Duration, count: u64) {
        let together_ns = u64::try_from(together.as_nanos()).unwrap_or(u64::MAX);
        let each_ns = together_ns / count.max(1);
        let bucket = BOUNDS.partition_point(|bound| *bound < each_ns);
        self.0.buckets[bucket].fetch_add(count, Relaxed);
        self.0.sum_ns.fetch_add(together_ns, Relaxed);
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
}
