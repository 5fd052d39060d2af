//! Faults of one real server: T4 and T9 to T25 of docs/guarantees.md, each by its number. Sentinels
//! and clusters are in `clusters`.
//!
//! `make test` runs the quick ones. `make test-faults` runs all of them, in full size
//! (`SLUICEGATE_FAULTS=full`, ignored tests included). Every test prints one line: its name and seed, the
//! effect of the fault, the excess over B + R·t and its bound, and further measurements. A
//! test whose fault never acted fails as vacuous.
#![expect(
    clippy::disallowed_methods,
    reason = "these tests are about real time and real processes"
)]
#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "tests, and what they share"
)]

mod standalone;
mod support;
