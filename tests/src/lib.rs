//! What Sluicegate's tests against real servers are made of.
//!
//! | module | what it is |
//! |---|---|
//! | [`servers`] | private Redis and Valkey servers of five versions, on free ports, gone when dropped |
//! | [`sentinel`] | a master, two replicas and three sentinels |
//! | [`cluster`] | three masters and three replicas, with slots that can be held half-moved |
//! | [`postgres`] | a private PostgreSQL, on a free port, gone when dropped |
//! | [`proxy`] | a TCP proxy that delays, slices, stalls, swallows and resets, and counts what it did |
//! | [`shim`] | a wall clock that a test can step, for any child process |
//! | [`oracle`] | how much too much was admitted, exactly; and a bucket to compare with |
//! | [`seed`] | randomness that a failed test can repeat |
//! | [`noise`] | how long a busy machine kept a test waiting |
//! | [`tls`] | certificates, right ones and wrong ones |
//!
//! Everything here is for tests: what goes wrong panics, with the server's log in the message.
//! `make servers` fetches the servers; a missing one is a panic, never a skipped test.
#![expect(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::missing_panics_doc,
    clippy::panic,
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "test support: it waits for other processes in real time, and whatever goes wrong fails the test"
)]

pub mod cluster;
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
