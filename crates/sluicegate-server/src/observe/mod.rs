//! Observation of decisions: metrics, statistics, live traffic, recent requests, the audit, logging and readiness.

pub mod audit;
pub mod live;
pub mod logging;
pub mod metrics;
pub mod ready;
pub mod recent;
pub mod snapshot_status;
pub mod stats;
