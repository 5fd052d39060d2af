//! Metrics of Envoy's rate limit protocol.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

/// Metrics of Envoy's rate limit protocol. Clones share their counters.
#[derive(Clone, Debug)]
pub(crate) struct GrpcMetrics {
    by_outcome: Family<CallLabels, Counter>,
    /// Counters of `by_outcome`, in the order of [`OUTCOMES`].
    calls: [Counter; 3],
}

/// Outcome of a gRPC call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallOutcome {
    /// It was allowed.
    Ok,
    /// It was denied.
    OverLimit,
    /// Answered with an error. Envoy may let the request pass (`failure_mode_deny`).
    Error,
}

const OUTCOMES: [&str; 3] = ["ok", "over_limit", "error"];

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CallLabels {
    outcome: &'static str,
}

impl Default for GrpcMetrics {
    fn default() -> Self {
        let by_outcome = Family::<CallLabels, Counter>::default();
        // Every series exists from the start, so that rates are right from the first call on.
        let calls = OUTCOMES.map(|outcome| by_outcome.get_or_create_owned(&CallLabels { outcome }));
        Self { by_outcome, calls }
    }
}

impl GrpcMetrics {
    pub(super) fn register(&self, registry: &mut Registry) {
        let calls = self.by_outcome.clone();
        registry.register("grpc_calls", "Calls of ShouldRateLimit over gRPC by outcome", calls);
    }

    /// Counts a call over gRPC.
    pub(crate) fn called(&self, outcome: CallOutcome) {
        self.calls[outcome as usize].inc();
    }
}
