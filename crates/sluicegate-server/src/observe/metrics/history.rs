//! Metrics of the history of the administration.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::registry::Registry;

/// Metrics of the history. Clones share their counters.
#[derive(Clone, Debug, Default)]
pub(crate) struct HistoryMetrics {
    rows: Counter,
    dropped: Counter,
    expired: Counter,
}

impl HistoryMetrics {
    pub(super) fn register(&self, registry: &mut Registry) {
        let counters = [
            ("history_rows", "Rows written to the history of the administration", &self.rows),
            (
                "history_dropped",
                "Failed sign-ins and refunds whose source, or which themselves, are not in the history",
                &self.dropped,
            ),
            ("history_expired", "Rows of the history deleted by age or number", &self.expired),
        ];
        for (name, help, counter) in counters {
            registry.register(name, help, counter.clone());
        }
    }

    pub(crate) fn wrote(&self, rows: u64) {
        self.rows.inc_by(rows);
    }

    pub(crate) fn dropped(&self, events: u64) {
        self.dropped.inc_by(events);
    }

    pub(crate) fn expired(&self, rows: u64) {
        self.expired.inc_by(rows);
    }

    /// Events dropped so far.
    #[cfg(test)]
    pub(crate) fn dropped_so_far(&self) -> u64 {
        self.dropped.get()
    }
}
