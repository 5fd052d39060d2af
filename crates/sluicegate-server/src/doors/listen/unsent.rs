//! Answers over HTTP/2 that the client has not read.
//!
//! A client can ask on many streams of a connection and open the window of none. Each answer then stays in memory. While a
//! connection has too many bytes of answers unsent, its next requests wait before they are answered, and cost nothing
//! but their headers.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use axum::body::Bytes;
use prometheus_client::metrics::gauge::Gauge;
use tokio::sync::Notify;

/// Bytes of unsent answers from which on the next requests of a connection wait.
pub(super) const UNSENT_BYTES_MAX: usize = 1024 * 1024;
/// Bytes that requests answered at the same time may add. An answer above it is dropped, unless it is the only one.
const UNSENT_BYTES_LAST: usize = 2 * UNSENT_BYTES_MAX;
/// Answers up to this many bytes are not counted: the number of streams limits them.
const SMALL_BYTES: usize = 4096;

/// Unsent answers of one connection.
#[derive(Debug, Default)]
pub(super) struct Unsent {
    bytes: AtomicUsize,
    has_room: Notify,
    /// Bytes of all connections, a metric.
    all: Gauge,
}

/// Unsent bytes of an answer, until this is dropped.
#[derive(Debug)]
pub(super) struct UnsentBytes {
    unsent: Arc<Unsent>,
    bytes: usize,
}

impl Unsent {
    pub(super) fn new(all: Gauge) -> Self {
        Self { all, ..Self::default() }
    }

    /// Number of bytes of large answers.
    pub(super) fn bytes(&self) -> usize {
        self.bytes.load(Acquire)
    }

    /// Waits until there is room for further answers.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future changes nothing.
    pub(super) async fn room(&self) {
        while self.bytes() >= UNSENT_BYTES_MAX {
            let mut notified = pin!(self.has_room.notified());
            notified.as_mut().enable();
            if self.bytes() >= UNSENT_BYTES_MAX {
                notified.await;
            }
        }
    }

    /// Counts an answer; `None` if it is small.
    ///
    /// # Errors
    ///
    /// The answers of the connection would have too many bytes.
    pub(super) fn count(self: &Arc<Self>, bytes: usize) -> Result<Option<UnsentBytes>, TooMany> {
        if bytes <= SMALL_BYTES {
            return Ok(None);
        }
        let before = self.bytes.fetch_add(bytes, Relaxed);
        self.all.inc_by(bytes as i64);
        let counted = UnsentBytes { unsent: Arc::clone(self), bytes };
        if before > 0 && before + bytes > UNSENT_BYTES_LAST {
            return Err(TooMany);
        }
        Ok(Some(counted))
    }
}

/// A connection has too many bytes of unsent answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TooMany;

impl UnsentBytes {
    /// Counts a part of the answer until the protocol has sent it.
    pub(super) fn attach(&mut self, data: Bytes) -> Bytes {
        let bytes = data.len().min(self.bytes);
        self.bytes -= bytes;
        let unsent = Arc::clone(&self.unsent);
        Bytes::from_owner(Sending { data, _unsent: Self { unsent, bytes } })
    }
}

impl Drop for UnsentBytes {
    fn drop(&mut self) {
        let before = self.unsent.bytes.fetch_sub(self.bytes, Release);
        self.unsent.all.dec_by(self.bytes as i64);
        if before >= UNSENT_BYTES_MAX {
            self.unsent.has_room.notify_waiters();
        }
    }
}

/// Data in the buffers of the protocol.
struct Sending {
    data: Bytes,
    _unsent: UnsentBytes,
}

impl AsRef<[u8]> for Sending {
    fn as_ref(&self) -> &[u8] {
        &self.data
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[test]
    fn requests_wait_until_answers_are_sent() {
        let unsent = Arc::new(Unsent::default());
        assert!(unsent.count(SMALL_BYTES).unwrap().is_none());
        let mut answer = unsent.count(UNSENT_BYTES_MAX).unwrap().unwrap();
        let mut waiting = pin!(unsent.room());
        assert!(waiting.as_mut().now_or_never().is_none());
        // Its data is counted until the last slice of it is gone.
        let data = answer.attach(Bytes::from(vec![0; 9000]));
        drop(answer);
        assert_eq!((unsent.bytes(), unsent.all.get()), (9000, 9000));
        assert!(waiting.now_or_never().is_some());
        let end = data.slice(8999..);
        drop(data);
        assert_eq!(unsent.bytes(), 9000);
        drop(end);
        assert_eq!((unsent.bytes(), unsent.all.get()), (0, 0));
    }

    #[test]
    fn answers_made_at_the_same_time_are_bounded() {
        let unsent = Arc::new(Unsent::default());
        let alone = unsent.count(10 * UNSENT_BYTES_MAX).unwrap();
        assert_eq!(unsent.count(SMALL_BYTES + 1).unwrap_err(), TooMany);
        drop(alone);
        let _first = unsent.count(UNSENT_BYTES_MAX).unwrap();
        let _second = unsent.count(UNSENT_BYTES_MAX).unwrap();
        assert_eq!(unsent.count(UNSENT_BYTES_MAX).unwrap_err(), TooMany);
        assert_eq!(unsent.bytes(), 2 * UNSENT_BYTES_MAX);
    }
}
