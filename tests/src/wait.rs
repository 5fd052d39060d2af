//! Waiting for another process, with an end to it.

use std::time::{Duration, Instant};

/// How long to pause between two looks.
const PAUSE: Duration = Duration::from_millis(5);

/// Whether `condition` came true within `limit`. It is looked at once at least.
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
/// When it is not within `limit`; the message names `what`.
pub fn until(what: &str, limit: Duration, condition: impl FnMut() -> bool) {
    assert!(within(limit, condition), "waited {limit:?} in vain for {what}");
}
