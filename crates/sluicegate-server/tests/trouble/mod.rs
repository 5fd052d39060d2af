//! Databases in trouble, and the service that goes on: T33 to T37 of the catalogue of guarantees, each by its
//! number, and two services on one database. All with the real binary, SQLite and PostgreSQL.
//!
//! `make test` runs them in a quick size, `make test-faults` in full (`SLUICEGATE_FAULTS=full`). Every test prints
//! one line: its name and seed, what the fault did, and what was measured. A test whose fault never acted fails as
//! vacuous. What must happen in so much time is granted the time that the machine kept us waiting on top.

mod load;
mod place;
mod support;

mod kept;
mod migrations;
mod outage;
mod pair;
mod poison;
mod replace;
mod start;
mod storm;
mod storm_trouble;
