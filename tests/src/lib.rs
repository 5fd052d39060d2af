//! Harness of tests against real servers.
//!
//! | module | content |
//! |---|---|
//! | [`servers`] | private Redis and Valkey servers of five versions, on free ports, killed on drop |
//! | [`sentinel`] | a master, two replicas and three sentinels |
//! | [`cluster`] | three masters and three replicas, with slots that can be held half migrated |
//! | [`postgres`] | a private PostgreSQL, on a free port, killed on drop |
//! | [`proxy`] | a TCP proxy that delays, slices, stalls, discards and resets, with counters |
//! | [`shim`] | a wall clock that a test can step, for any child process |
//! | [`oracle`] | the exact excess of admissions over a quota; and a reference bucket |
//! | [`hostile`] | bodies made to cost more than they should |
//! | [`seed`] | random choices that a failed test can repeat |
//! | [`noise`] | scheduling delays of a busy machine |
//! | [`tls`] | certificates, valid and invalid |
//!
//! Every failure panics, with the server's log in the message.
//! `make servers` fetches the servers; a missing one is a panic, never a skipped test.
#![expect(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::missing_panics_doc,
    clippy::panic,
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "test support: it waits for other processes in real time, and every failure fails the test"
)]

pub mod cluster;
pub mod hostile;
pub mod noise;
pub mod oracle;
pub mod postgres;
pub mod process;
pub mod proxy;
pub mod seed;
pub mod sentinel;
pub mod servers;
pub mod shim;
pub mod tls;
pub mod wait;
