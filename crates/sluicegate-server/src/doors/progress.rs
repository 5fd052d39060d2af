//! Progress of a connection, by which the listener finds the one that has been idle longest.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use tokio::time::Instant;

/// Time of a connection's last byte. Written by the connection, read by the listener.
#[derive(Debug)]
pub(crate) struct Progress {
    opened: Instant,
    /// Milliseconds from `opened` to the last byte received or sent; zero before the first.
    moved_ms: AtomicU64,
}

impl Progress {
    /// Progress of a connection that is accepted now.
    pub(crate) fn new() -> Self {
        Self { opened: Instant::now(), moved_ms: AtomicU64::new(0) }
    }

    /// Time of the accept.
    pub(crate) fn opened(&self) -> Instant {
        self.opened
    }

    /// Milliseconds since the accept.
    pub(crate) fn now_ms(&self) -> u64 {
        self.opened.elapsed().as_millis() as u64
    }

    /// Milliseconds from the accept to the last byte; zero if there was none.
    pub(crate) fn moved_ms(&self) -> u64 {
        self.moved_ms.load(Relaxed)
    }

    /// Records a byte received or sent now, and returns the milliseconds since the accept.
    pub(crate) fn moved(&self) -> u64 {
        // At least one: zero means never.
        let now_ms = self.now_ms().max(1);
        self.moved_ms.store(now_ms, Relaxed);
        now_ms
    }

    /// Time of the last byte, or of the accept if there was none.
    pub(crate) fn last(&self) -> Instant {
        self.opened + Duration::from_millis(self.moved_ms())
    }
}
