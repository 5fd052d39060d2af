//! Answers over HTTP/2 that the client has not read.
//!
//! A client can ask on many streams of a connection and open the window of none. Each answer then stays in memory. While a
//! connection has too many bytes of answers unsent, its next requests wait before they are answered, and cost nothing
//! but their headers. An answer that has been made is always sent.
//!
//! One connection may carry requests of many clients through a proxy. So requests whose answers are small wait later
//! than those for documents, lists and batches: a client that does not read a document does not delay checks of others.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use axum::body::Bytes;
use prometheus_client::metrics::gauge::Gauge;
use tokio::sync::Notify;

use crate::doors::answer_bytes::AnswerSize;

/// Bytes of unsent answers of a connection up to which requests for large answers and batches are answered, and requests
/// for small ones while `limits.unsent_bytes_max` is reached.
pub(super) const UNSENT_BYTES_MAX: usize = 1024 * 1024;
/// Bytes of unsent answers of a connection up to which requests for small answers are answered.
const UNSENT_BYTES_SMALL_MAX: usize = 2 * UNSENT_BYTES_MAX;
/// Bytes reserved for an answer until it is made. For a batch, as many as the largest on the connection, if that is more.
const LARGE_BYTES: usize = 512 * 1024;
const BATCH_BYTES: usize = 64 * 1024;
/// Bytes of unsent answers up to which one more large answer is always made.
const SMALL_BYTES: usize = 4096;

/// Unsent answers of one connection.
#[derive(Debug, Default)]
pub(super) struct Unsent {
    /// Bytes of answers that have been made.
    bytes: AtomicUsize,
    /// Bytes reserved for answers that are being made.
    reserved: AtomicUsize,
    /// Bytes of the largest answer to a batch so far.
    largest_batch: AtomicUsize,
    has_room: Notify,
    /// Bytes of all connections, a metric.
    all: Gauge,
    /// Bytes of all connections from which on each gets one large answer at a time.
    all_max: usize,
}

/// Room for an answer, until it is made or this is dropped.
#[derive(Debug)]
pub(super) struct Room<'a> {
    unsent: &'a Arc<Unsent>,
    size: AnswerSize,
    reserved: usize,
}

/// Unsent bytes of an answer, until this is dropped.
#[derive(Debug)]
pub(super) struct UnsentBytes {
    unsent: Arc<Unsent>,
    bytes: usize,
}

impl Unsent {
    /// No answers yet; `all` and `all_max` are the bytes of all connections and their limit.
    pub(super) fn new(all: Gauge, all_max: usize) -> Self {
        Self { all, all_max, ..Self::default() }
    }

    /// Number of bytes of answers that have been made.
    pub(super) fn bytes(&self) -> usize {
        self.bytes.load(Acquire)
    }

    /// Waits until there is room for a further answer.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future changes nothing.
    pub(super) async fn room(self: &Arc<Self>, size: AnswerSize) -> Room<'_> {
        loop {
            if let Some(room) = self.try_room(size) {
                return room;
            }
            let mut notified = pin!(self.has_room.notified());
            notified.as_mut().enable();
            if let Some(room) = self.try_room(size) {
                return room;
            }
            notified.await;
        }
    }

    fn try_room(self: &Arc<Self>, size: AnswerSize) -> Option<Room<'_>> {
        let is_crowded = || self.all.get() >= self.all_max as i64;
        if size == AnswerSize::Small {
            let bytes = self.bytes();
            let has_room =
                bytes < UNSENT_BYTES_MAX || (bytes < UNSENT_BYTES_SMALL_MAX && !is_crowded());
            return has_room.then_some(Room { unsent: self, size, reserved: 0 });
        }
        let estimate = match size {
            AnswerSize::Batch => {
                self.largest_batch.load(Relaxed).clamp(BATCH_BYTES, UNSENT_BYTES_MAX)
            }
            _ => LARGE_BYTES,
        };
        let reserve = |reserved: usize| {
            // Read after the reservations: an answer is counted before its reservation ends.
            let taken = self.bytes() + reserved;
            let has_room =
                taken <= SMALL_BYTES || (taken + estimate <= UNSENT_BYTES_MAX && !is_crowded());
            has_room.then_some(reserved + estimate)
        };
        self.reserved.fetch_update(Acquire, Acquire, reserve).ok()?;
        Some(Room { unsent: self, size, reserved: estimate })
    }
}

impl Room<'_> {
    /// Counts the answer for which there was room, of about this many bytes.
    pub(super) fn count(self, bytes: usize) -> UnsentBytes {
        if self.size == AnswerSize::Batch {
            self.unsent.largest_batch.fetch_max(bytes, Relaxed);
        }
        UnsentBytes::new(Arc::clone(self.unsent), bytes)
    }
}

impl Drop for Room<'_> {
    fn drop(&mut self) {
        if self.reserved > 0 {
            self.unsent.reserved.fetch_sub(self.reserved, Release);
            self.unsent.has_room.notify_waiters();
        }
    }
}

impl UnsentBytes {
    fn new(unsent: Arc<Unsent>, bytes: usize) -> Self {
        unsent.bytes.fetch_add(bytes, Release);
        unsent.all.inc_by(bytes as i64);
        Self { unsent, bytes }
    }

    /// Counts a part of the answer until the protocol has sent it.
    pub(super) fn attach(&mut self, data: Bytes) -> Bytes {
        let unsent = Arc::clone(&self.unsent);
        let counted = data.len().min(self.bytes);
        let mut part = Self { unsent, bytes: counted };
        self.bytes -= counted;
        if counted < data.len() {
            // The answer is longer than stated.
            part = Self::new(Arc::clone(&self.unsent), data.len());
        }
        Bytes::from_owner(Sending { data, _unsent: part })
    }
}

impl Drop for UnsentBytes {
    fn drop(&mut self) {
        let before = self.unsent.bytes.fetch_sub(self.bytes, Release);
        self.unsent.all.dec_by(self.bytes as i64);
        if before > SMALL_BYTES {
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

    use super::AnswerSize::{Batch, Large, Small};
    use super::*;

    fn unsent(all_max: usize) -> Arc<Unsent> {
        Arc::new(Unsent::new(Gauge::default(), all_max))
    }

    fn room(unsent: &Arc<Unsent>, size: AnswerSize) -> Option<Room<'_>> {
        unsent.room(size).now_or_never()
    }

    #[test]
    fn requests_wait_until_answers_are_sent() {
        let unsent = unsent(usize::MAX >> 1);
        let mut answer = room(&unsent, Large).unwrap().count(UNSENT_BYTES_MAX);
        let mut waiting = pin!(unsent.room(Large));
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
        let unsent = unsent(usize::MAX >> 1);
        let rooms: Vec<_> = std::iter::from_fn(|| room(&unsent, Batch)).collect();
        assert_eq!(rooms.len(), UNSENT_BYTES_MAX / BATCH_BYTES);
        assert!(room(&unsent, Large).is_none());
        let answers: Vec<_> = rooms.into_iter().map(|room| room.count(1000)).collect();
        assert_eq!(unsent.bytes(), 1000 * answers.len());
        assert!(room(&unsent, Large).is_some());
        drop(answers);
        assert_eq!((unsent.bytes(), unsent.reserved.load(Relaxed)), (0, 0));
        // As much is expected of the next batch as the largest had.
        drop(room(&unsent, Batch).unwrap().count(2 * UNSENT_BYTES_MAX));
        let _batch = room(&unsent, Batch).unwrap();
        assert!(room(&unsent, Batch).is_none());
    }

    #[test]
    fn small_answers_do_not_wait_for_large_ones() {
        let unsent = unsent(usize::MAX >> 1);
        let _large = room(&unsent, Large).unwrap().count(UNSENT_BYTES_MAX);
        assert!(room(&unsent, Large).is_none());
        let _small = room(&unsent, Small).unwrap().count(UNSENT_BYTES_MAX);
        assert!(room(&unsent, Small).is_none());
    }

    #[test]
    fn above_the_total_a_connection_gets_one_large_answer_at_a_time() {
        let (all, all_max) = (Gauge::default(), 100_000);
        let [first, second] = [(); 2].map(|()| Arc::new(Unsent::new(all.clone(), all_max)));
        let _first = room(&first, Large).unwrap().count(all_max);
        let answer = room(&second, Large).unwrap().count(50_000);
        assert!(room(&second, Large).is_none());
        assert!(room(&second, Small).is_some());
        drop(answer);
        assert!(room(&second, Large).is_some());
    }

    #[test]
    fn an_answer_longer_than_stated_is_counted() {
        let unsent = unsent(usize::MAX >> 1);
        let mut answer = room(&unsent, Small).unwrap().count(1);
        let data = answer.attach(Bytes::from(vec![0; 300]));
        assert_eq!(unsent.bytes(), 300);
        drop((answer, data));
        assert_eq!((unsent.bytes(), unsent.all.get()), (0, 0));
    }
}
