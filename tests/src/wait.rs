//! Waiting for another process, with a timeout.

use std::time::{Duration, Instant};

/// Pause between two checks.
const PAUSE: Duration = Duration::from_millis(5);

/// Waits until `condition` is true; false after `limit`. It is checked at least once.
pub fn within(limit: Duration, mut condition: impl FnMut() -> bool) -> bool {
    let started = Instant::now();
    loop {
        if condition() {
            return true;
        }
        if started.elapsed() >= limit {
            return false;
        }
        std::thread::sleep(PAUSE);
    }
}

/// Waits until `condition` is true.
///
/// # Panics
///
/// After `limit`; the message names `what`.
pub fn until(what: &str, limit: Duration, condition: impl FnMut() -> bool) {
    assert!(within(limit, condition), "waited {limit:?} in vain for {what}");
}
