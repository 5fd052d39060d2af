//! Metrics of the rules in force and their database.

use std::sync::atomic::AtomicU64;

use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use crate::observe::snapshot_status::Status;
use crate::time::Timestamp;

/// Gauges of the rules in force and the database they come from. Clones share their gauges.
#[derive(Clone, Debug, Default)]
pub(super) struct SnapshotFigures {
    /// Unix seconds; zero if never.
    confirmed_at: Gauge<f64, AtomicU64>,
    age: Gauge<f64, AtomicU64>,
    generation: Gauge,
    overrides: Gauge,
    database_up: Gauge,
}

impl SnapshotFigures {
    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register(
            "rules_age_seconds",
            "Seconds since the database last confirmed the rules in force; 0 without a database",
            self.age.clone(),
        );
        registry.register(
            "rules_generation",
            "Generation of the rules in force in the database; 0 without a database",
            self.generation.clone(),
        );
        registry.register("overrides", "Overrides in force", self.overrides.clone());
        registry.register(
            "database_up",
            "1 if the database answers or none is configured, else 0",
            self.database_up.clone(),
        );
    }

    pub(super) fn set(&self, status: &Status) {
        self.confirmed_at
            .set(status.confirmed_at.or(status.from_file).map_or(0.0, Timestamp::seconds));
        self.generation.set(status.generation.unwrap_or_default().cast_signed());
        self.overrides.set(i64::try_from(status.overrides).unwrap_or(i64::MAX));
        self.database_up.set(i64::from(status.down.is_none()));
    }

    /// Updates the age.
    pub(super) fn update_age(&self) {
        let confirmed_at = self.confirmed_at.get();
        if confirmed_at > 0.0 {
            self.age.set((Timestamp::now().seconds() - confirmed_at).max(0.0));
        }
    }
}
