//! Metrics of the audit: violations recorded, written and dropped.

use std::sync::atomic::AtomicU64;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use sluicegate::Mode;

use crate::time::Timestamp;

/// Metrics of the audit. Clones share their counters.
#[derive(Clone, Debug)]
pub(crate) struct AuditMetrics {
    noted_by_mode: Family<ModeLabels, Counter>,
    /// Counters of `noted_by_mode`, in the order of [`NOTED`].
    noted: [Counter; 2],
    written: Counter,
    rows_written: Counter,
    dropped_by_reason: Family<ReasonLabels, Counter>,
    /// Counters of `dropped_by_reason`, in the order of [`Dropped::ALL`].
    dropped: [Counter; 4],
    /// Rows in memory, not written yet.
    pub(crate) waiting: Gauge,
    /// Failed attempts to write.
    pub(crate) errors: Counter,
    last_success: Gauge<f64, AtomicU64>,
    /// Rows deleted because of their age.
    expired: Counter,
    /// Overrides deleted after their end.
    overrides_expired: Counter,
}

/// Modes of rules that have violations.
const NOTED: [Mode; 2] = [Mode::Enforce, Mode::Shadow];

/// Reason why a violation was not written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dropped {
    /// The queue was full.
    Full,
    /// The database rejected the row.
    Refused,
    /// The process ended before it was written.
    Shutdown,
    /// Its subject was deleted while it was queued.
    Deleted,
}

/// Violations by result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AuditFigures {
    pub(crate) noted: u64,
    pub(crate) written: u64,
    pub(crate) dropped: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ModeLabels {
    mode: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ReasonLabels {
    reason: &'static str,
}

impl Dropped {
    const ALL: [Self; 4] = [Self::Full, Self::Refused, Self::Shutdown, Self::Deleted];

    const fn name(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Refused => "refused",
            Self::Shutdown => "shutdown",
            Self::Deleted => "deleted",
        }
    }
}

impl Default for AuditMetrics {
    fn default() -> Self {
        let noted_by_mode = Family::<ModeLabels, Counter>::default();
        let dropped_by_reason = Family::<ReasonLabels, Counter>::default();
        Self {
            // Every series exists from the start, so that rates are right from the first event on.
            noted: NOTED
                .map(|mode| noted_by_mode.get_or_create_owned(&ModeLabels { mode: mode.name() })),
            dropped: Dropped::ALL.map(|reason| {
                dropped_by_reason.get_or_create_owned(&ReasonLabels { reason: reason.name() })
            }),
            noted_by_mode,
            dropped_by_reason,
            written: Counter::default(),
            rows_written: Counter::default(),
            waiting: Gauge::default(),
            errors: Counter::default(),
            last_success: Gauge::default(),
            expired: Counter::default(),
            overrides_expired: Counter::default(),
        }
    }
}

impl AuditMetrics {
    pub(super) fn register(&self, registry: &mut Registry) {
        let (noted, dropped) = (self.noted_by_mode.clone(), self.dropped_by_reason.clone());
        registry.register(
            "violations_noted",
            "Violations noted, to be written to the database",
            noted,
        );
        registry.register(
            "violations_written",
            "Violations written to the database",
            self.written.clone(),
        );
        registry.register(
            "violations_dropped",
            "Violations not written to the database, by reason",
            dropped,
        );
        let counters = [
            ("violations_rows_written", "Rows of violations written", &self.rows_written),
            ("violations_write_errors", "Failed attempts to write violations", &self.errors),
            ("violations_expired", "Violation rows deleted because of their age", &self.expired),
            ("overrides_expired", "Overrides deleted after their end", &self.overrides_expired),
        ];
        for (name, help, counter) in counters {
            registry.register(name, help, counter.clone());
        }
        let waiting = self.waiting.clone();
        registry.register(
            "violations_waiting_rows",
            "Violation rows waiting to be written",
            waiting,
        );
        registry.register(
            "violations_last_write_success_timestamp_seconds",
            "Unix time of the last successful write of violations",
            self.last_success.clone(),
        );
    }

    pub(crate) fn noted(&self, mode: Mode) {
        self.noted[usize::from(mode != Mode::Enforce)].inc();
    }

    pub(crate) fn written(&self, rows: usize, count: u64) {
        self.rows_written.inc_by(rows as u64);
        self.written.inc_by(count);
    }

    pub(crate) fn dropped(&self, reason: Dropped, count: u64) {
        self.dropped[reason as usize].inc_by(count);
    }

    pub(crate) fn expired(&self, rows: u64) {
        self.expired.inc_by(rows);
    }

    pub(crate) fn overrides_expired(&self, overrides: u64) {
        self.overrides_expired.inc_by(overrides);
    }

    pub(crate) fn wrote_at(&self, at: Timestamp) {
        self.last_success.set(at.seconds());
    }

    /// Violations dropped for this reason.
    pub(crate) fn dropped_for(&self, reason: Dropped) -> u64 {
        self.dropped[reason as usize].get()
    }

    /// Rows written so far.
    #[cfg(test)]
    pub(crate) fn rows_written(&self) -> u64 {
        self.rows_written.get()
    }

    /// Totals over all modes and reasons.
    pub(crate) fn figures(&self) -> AuditFigures {
        let sum = |counters: &[Counter]| counters.iter().map(Counter::get).sum();
        // `noted` is read last, so that it is never less than the sum of the others.
        let (written, dropped) = (self.written.get(), sum(&self.dropped));
        AuditFigures { noted: sum(&self.noted), written, dropped }
    }
}

impl AuditFigures {
    /// Violations not written yet.
    pub(crate) fn waiting(&self) -> u64 {
        self.noted.saturating_sub(self.written).saturating_sub(self.dropped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_and_reasons_stand_in_their_order() {
        let metrics = AuditMetrics::default();
        for (position, mode) in NOTED.into_iter().enumerate() {
            metrics.noted(mode);
            assert_eq!(metrics.noted[position].get(), 1);
        }
        for (position, reason) in Dropped::ALL.into_iter().enumerate() {
            assert_eq!(reason as usize, position);
        }
    }
}
