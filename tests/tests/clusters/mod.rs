//! Sentinels and clusters under faults, on real servers: T26 to T32, and what a cluster's charges over
//! several slots promise.
//!
//! Every test prints one line: its seed, how often its faults acted, what was admitted above the oracle and
//! how much may be, and what else was measured. A test whose fault never acted fails as vacuous.
//!
//! `make test` runs each of the quick ones once; `SLUICEGATE_FAULTS=full` runs all, in many rounds, within ten
//! minutes. They run one after another, because they measure time and the servers want the processors.
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
