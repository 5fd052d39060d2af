//! How up to date the rules in force are.

use std::sync::atomic::AtomicU64;

use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use crate::observe::snapshot_status::Status;
use crate::time::Timestamp;

/// Figures about the rules in force and the database that they come from. Clones are the same.
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
            "Time since the database last confirmed the rules in force; 0 without one",
            self.age.clone(),
        );
        registry.register(
            "rules_generation",
            "Generation of the database that the rules in force are; 0 without one",
            self.generation.clone(),
        );
        registry.register("overrides", "Overrides in force", self.overrides.clone());
        registry.register(
            "database_up",
            "Whether the database answers; also 1 if there is none",
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

    /// Brings the age up to date.
    pub(super) fn look(&self) {
        let confirmed_at = self.confirmed_at.get();
        if confirmed_at > 0.0 {
            self.age.set((Timestamp::now().seconds() - confirmed_at).max(0.0));
        }
    }
}
