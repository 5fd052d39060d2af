//! Runs the real `sluicegate` binary and talks to it over real sockets.
//!
//! Every process gets a separate folder (so it finds no `sluicegate.toml` of the developer), an empty
//! environment, and a free port. No process outlives its test: a [`Server`] that is dropped is killed.

#![cfg(test)]

mod client;
mod launch;
mod places;
mod suite_caller;

use std::time::{Duration, Instant};

pub(crate) use client::{Client, Response};
pub(crate) use launch::{Finished, Launch, Server};
pub(crate) use places::{check, on_every_database, on_every_store, with_rules};
pub(crate) use suite_caller::{suite_bearer, suite_line};

/// Maximum time that a test waits for an expected event. Generous: machines are slow.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// Interval of polling.
const POLL_EVERY: Duration = Duration::from_millis(5);

/// Polls until `look` returns a value, and fails the test after [`PATIENCE`].
pub(crate) fn eventually<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let started = now();
    loop {
        if let Some(seen) = look() {
            return seen;
        }
        assert!(now() - started < PATIENCE, "waited {PATIENCE:?} in vain for {what}");
        pause(POLL_EVERY);
    }
}

/// Current time, for measuring the real service.
#[expect(clippy::disallowed_methods, reason = "the binary under test runs on the machine's clock")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// Sleeps, for polling.
#[expect(clippy::disallowed_methods, reason = "another process cannot be waited for otherwise")]
pub(crate) fn pause(length: Duration) {
    std::thread::sleep(length);
}
