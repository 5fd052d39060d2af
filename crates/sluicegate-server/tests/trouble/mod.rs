//! Database failures under a running service (T33 to T37 in `docs/guarantees.md`), and two services on one database.
//! All with the real binary, SQLite and PostgreSQL.
//!
//! `make test` runs them in a quick size, `make test-faults` in full (`SLUICEGATE_FAULTS=full`). Every test prints
//! one line: its name and seed, the effect of the fault, and the measurements. A test whose fault never acted fails
//! as vacuous. Time limits are extended by the time that the machine's scheduler withheld from the test.

mod load;
pub(crate) mod place;
pub(crate) mod support;

mod migrations;
mod outage;
mod pair;
mod poison;
mod replace;
mod restored;
mod start;
mod storm;
mod storm_trouble;
