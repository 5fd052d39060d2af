//! Metrics of refunds over the data doors.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

/// Refunds by door. Clones share their counters.
#[derive(Clone, Debug)]
pub(crate) struct RefundMetrics {
    by_door: Family<RefundLabels, Counter>,
    /// Counters of `by_door`, in the order of [`DOORS`].
    refunds: [Counter; 3],
}

/// Door that a refund came through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RefundDoor {
    /// `POST /v1/refund`, and descriptors of `POST /json`.
    Http,
    /// Descriptors of Envoy's protocol.
    Grpc,
    /// `SG.REFUND`
    Resp,
}

const DOORS: [&str; 3] = ["http", "grpc", "resp"];

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RefundLabels {
    door: &'static str,
}

impl Default for RefundMetrics {
    fn default() -> Self {
        let by_door = Family::<RefundLabels, Counter>::default();
        // Every series exists from the start, so that rates are right from the first refund on.
        let refunds = DOORS.map(|door| by_door.get_or_create_owned(&RefundLabels { door }));
        Self { by_door, refunds }
    }
}

impl RefundMetrics {
    pub(super) fn register(&self, registry: &mut Registry) {
        let refunds = self.by_door.clone();
        registry.register(
            "refunds",
            "Refunds that were made over the data doors, by door",
            refunds,
        );
    }

    /// Counts a refund that was made.
    pub(crate) fn refunded(&self, door: RefundDoor) {
        self.refunds[door as usize].inc();
    }
}
