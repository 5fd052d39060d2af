//! Observation of decisions: metrics, statistics, live traffic, recent requests, the audit, logging and readiness.

pub(crate) mod audit;
pub(crate) mod history;
pub(crate) mod live;
pub(crate) mod logging;
pub(crate) mod metrics;
pub(crate) mod overflow;
pub(crate) mod ready;
pub(crate) mod recent;
pub(crate) mod snapshot_status;
pub(crate) mod stats;
