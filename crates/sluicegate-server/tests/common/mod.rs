//! Runs the real `sluicegate` binary and talks to it over real sockets.
//!
//! Every process gets a folder of its own to run in (so no `sluicegate.toml` of the developer's is
//! found), none of the developer's environment, and a free port. Nothing outlives its test: a
//! [`Server`] that is dropped is killed.

#![cfg(test)]
#![allow(dead_code, unused_imports, reason = "each test binary uses a part of this")]

mod client;
mod launch;
mod places;

use std::time::{Duration, Instant};

pub(crate) use client::{Client, Response};
pub(crate) use launch::{Finished, Launch, Server};
pub(crate) use places::{check, on_every_database, on_every_store, with_rules};

/// How long a test waits for what must happen, before it gives up. Generous: machines are slow.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// How long to wait before looking again.
const POLL_EVERY: Duration = Duration::from_millis(5);

/// Looks until there is something to see, and fails the test if there never is.
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

/// The time, for tests of how long the real service takes.
#[expect(clippy::disallowed_methods, reason = "the binary under test runs on the machine's clock")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// Waits a little, between two looks.
#[expect(clippy::disallowed_methods, reason = "another process cannot be waited for otherwise")]
pub(crate) fn pause(length: Duration) {
    std::thread::sleep(length);
}
