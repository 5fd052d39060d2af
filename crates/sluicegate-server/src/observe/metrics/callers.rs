//! Metrics of callers of the data doors.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

/// Doors, in the order of their counters.
const DOORS: [&str; 3] = ["http", "grpc", "resp"];
/// Reasons, in the order of their counters.
const REASONS: [&str; 4] = ["missing", "wrong", "right", "too_many"];

/// Metrics of callers. Clones share their counters.
#[derive(Clone, Debug)]
pub(crate) struct CallerMetrics {
    refusals: Family<RefusalLabels, Counter>,
    /// Callers in force.
    pub(crate) in_force: Gauge,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RefusalLabels {
    door: &'static str,
    reason: &'static str,
}

impl Default for CallerMetrics {
    fn default() -> Self {
        let refusals = Family::<RefusalLabels, Counter>::default();
        // Every series exists from the start, so that rates are right from the first refusal on.
        for door in DOORS {
            for reason in REASONS {
                drop(refusals.get_or_create(&RefusalLabels { door, reason }));
            }
        }
        Self { refusals, in_force: Gauge::default() }
    }
}

impl CallerMetrics {
    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register(
            "caller_refusals",
            "Requests of the data doors refused for their caller, by door and reason",
            self.refusals.clone(),
        );
        registry.register("callers", "Callers in force", self.in_force.clone());
    }

    /// Counts a refusal.
    pub(crate) fn refused(&self, door: &'static str, reason: &'static str) {
        self.refusals.get_or_create(&RefusalLabels { door, reason }).inc();
    }
}
