//! Sentinels and clusters under faults, on real servers: T26 to T32, and the guarantees of
//! charges over several slots of a cluster.
//!
//! Every test prints one line: its seed, how often its faults acted, the excess over the oracle and
//! its bound, and further measurements. A test whose fault never acted fails as vacuous.
//!
//! `make test` runs each of the quick ones once; `SLUICEGATE_FAULTS=full` runs all, in many rounds, within ten
//! minutes. They run one after another, because they measure time and the servers need the processors.
#![expect(clippy::unwrap_used, reason = "tests")]

mod atomic;
mod demotion;
mod failover;
mod keys;
mod load;
mod log;
mod membership;
mod resharding;
mod sentinel;
mod split_brain;
mod support;
mod undo;
