//! Memory for request bodies of all clients that have not arrived completely.
//!
//! A body that arrives at once, as nearly all do, is not counted: it is parsed before its task waits for anything. A body
//! whose rest has to be waited for reserves the bytes that are held for it; if all such bodies together would exceed
//! the maximum, it is refused. So unfinished bodies of some clients never keep out ordinary requests of others.

use std::ops::Deref;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::BoxError;
use axum::body::{Bytes, HttpBody};
use hyper::body::{Frame, SizeHint};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use tracing::warn;

use crate::log_limit::LogLimit;

/// Bytes of a gRPC message before its payload: a flag and the length.
const GRPC_PREFIX: usize = 5;

/// Memory for each frame of a body that is read as a whole, beside its bytes: a `Bytes` of 32 bytes in a list that grows
/// to double its length.
const FRAME_OVERHEAD: usize = 64;

/// Limit on the bytes of all bodies that have not arrived completely.
#[derive(Debug)]
pub(crate) struct BodyBudget {
    bytes_max: usize,
    /// Bytes that are held, also a metric.
    held: Gauge,
    /// Bodies refused, also a metric.
    refused: Counter,
    log: LogLimit,
}

/// Error of a body for which no memory is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("too many unfinished request bodies: try again")]
pub(crate) struct NoRoom;

/// A body whose unfinished bytes are counted by a budget.
#[derive(Debug)]
pub(crate) struct CountedBody<B, R: Deref<Target = BodyBudget>> {
    body: B,
    budget: R,
    received: Received,
    /// Bytes reserved for it.
    reserved: usize,
    /// It was pending at the last poll, and has been woken to be polled once more.
    is_waiting: bool,
}

/// Bytes that the reader of a body holds until more arrive.
#[derive(Debug)]
enum Received {
    /// Of a body that is read as a whole: all bytes so far, and the memory for its frames.
    Whole(usize),
    /// Of a stream of gRPC messages: the one that is not complete.
    Messages(GrpcMessage),
}

/// A gRPC message that is not complete.
#[derive(Debug, Default)]
struct GrpcMessage {
    prefix: [u8; GRPC_PREFIX],
    /// Bytes received, the prefix included.
    received: usize,
}

impl BodyBudget {
    /// A budget of `bytes_max`, with the metrics that show it.
    pub(crate) fn new(bytes_max: usize, held: Gauge, refused: Counter) -> Self {
        Self { bytes_max, held, refused, log: LogLimit::new() }
    }

    /// Counts a body that is read as a whole.
    pub(crate) fn whole<B>(&self, body: B) -> CountedBody<B, &Self> {
        CountedBody::new(body, self, Received::Whole(0))
    }

    /// Changes a reservation.
    fn reserve(&self, from: usize, to: usize) -> Result<(), NoRoom> {
        let change = to as i64 - from as i64;
        let before = self.held.inc_by(change);
        if change > 0 && before + change > self.bytes_max as i64 {
            self.held.dec_by(change);
            self.refused.inc();
            if let Some(suppressed) = self.log.admit() {
                let bytes_max = self.bytes_max;
                warn!(
                    bytes_max,
                    suppressed, "request body refused: limits.bodies_bytes_max is reached"
                );
            }
            return Err(NoRoom);
        }
        Ok(())
    }
}

impl<B, R: Deref<Target = BodyBudget>> CountedBody<B, R> {
    fn new(body: B, budget: R, received: Received) -> Self {
        Self { body, budget, received, reserved: 0, is_waiting: false }
    }

    /// Counts a stream of gRPC messages, for each of which memory is allocated as soon as its length is known.
    pub(crate) fn grpc(body: B, budget: R) -> Self {
        Self::new(body, budget, Received::Messages(GrpcMessage::default()))
    }

    fn set_reserved(&mut self, bytes: usize) -> Result<(), NoRoom> {
        if bytes != self.reserved {
            self.budget.reserve(self.reserved, bytes)?;
            self.reserved = bytes;
        }
        Ok(())
    }
}

impl<B, R> HttpBody for CountedBody<B, R>
where
    B: HttpBody<Data = Bytes, Error: Into<BoxError>> + Unpin,
    R: Deref<Target = BodyBudget> + Unpin,
{
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let this = &mut *self;
        match Pin::new(&mut this.body).poll_frame(cx) {
            Poll::Ready(Some(Ok(frame))) => {
                this.is_waiting = false;
                if let Some(data) = frame.data_ref() {
                    this.received.add(data);
                }
                Poll::Ready(Some(Ok(frame)))
            }
            Poll::Ready(end) => Poll::Ready(end.map(|frame| frame.map_err(Into::into))),
            Poll::Pending if this.body.is_end_stream() => Poll::Pending,
            // The rest may have arrived already, and become available as soon as the connection is polled.
            Poll::Pending if !this.is_waiting => {
                this.is_waiting = true;
                if this.received.held() > 0 {
                    cx.waker().wake_by_ref();
                }
                Poll::Pending
            }
            Poll::Pending => match this.set_reserved(this.received.held()) {
                Ok(()) => Poll::Pending,
                Err(error) => Poll::Ready(Some(Err(error.into()))),
            },
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl<B, R: Deref<Target = BodyBudget>> Drop for CountedBody<B, R> {
    fn drop(&mut self) {
        // Releasing never fails.
        let _ = self.set_reserved(0);
    }
}

impl Received {
    fn add(&mut self, data: &[u8]) {
        match self {
            Self::Whole(bytes) => *bytes += data.len() + FRAME_OVERHEAD,
            Self::Messages(message) => message.add(data),
        }
    }

    fn held(&self) -> usize {
        match self {
            Self::Whole(bytes) => *bytes,
            Self::Messages(message) => message.held(),
        }
    }
}

impl GrpcMessage {
    fn add(&mut self, mut data: &[u8]) {
        while let [first, rest @ ..] = data {
            if self.received < GRPC_PREFIX {
                self.prefix[self.received] = *first;
                self.received += 1;
                data = rest;
            } else {
                let missing = self.length() - self.received;
                let (_, rest) = data.split_at(missing.min(data.len()));
                self.received += data.len() - rest.len();
                data = rest;
            }
            if self.received >= GRPC_PREFIX && self.received == self.length() {
                self.received = 0;
            }
        }
    }

    /// Length with the prefix, which is complete.
    fn length(&self) -> usize {
        let [_, length @ ..] = self.prefix;
        GRPC_PREFIX + u32::from_be_bytes(length) as usize
    }

    fn held(&self) -> usize {
        if self.received < GRPC_PREFIX { self.received } else { self.length() }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::future::poll_fn;

    use super::*;

    /// A body of chunks; `None` is a pause in which nothing arrives.
    struct Chunks(VecDeque<Option<&'static [u8]>>);

    impl HttpBody for Chunks {
        type Data = Bytes;
        type Error = BoxError;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
            match self.0.pop_front() {
                Some(Some(chunk)) => Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(chunk))))),
                Some(None) => Poll::Pending,
                None => Poll::Ready(None),
            }
        }
    }

    const TEN: Option<&[u8]> = Some(b"0123456789");

    fn budget(bytes_max: usize) -> BodyBudget {
        BodyBudget::new(bytes_max, Gauge::default(), Counter::default())
    }

    /// Result of one poll: bytes of a frame, the end, or pending.
    async fn poll<R: Deref<Target = BodyBudget> + Unpin>(
        body: &mut CountedBody<Chunks, R>,
    ) -> Option<Result<usize, bool>> {
        poll_fn(|cx| {
            Poll::Ready(match Pin::new(&mut *body).poll_frame(cx) {
                Poll::Pending => None,
                Poll::Ready(None) => Some(Ok(0)),
                Poll::Ready(Some(Ok(frame))) => Some(Ok(frame.into_data().unwrap().len())),
                Poll::Ready(Some(Err(error))) => Some(Err(error.is::<NoRoom>())),
            })
        })
        .await
    }

    #[tokio::test]
    async fn only_bytes_that_wait_for_more_are_counted() {
        const HELD: i64 = 10 + FRAME_OVERHEAD as i64;
        let budget = budget(15 + FRAME_OVERHEAD);
        // Arrives with one pause, as a body after its header does, or the end of a chunked one.
        let mut whole = budget.whole(Chunks([None, TEN, TEN, None].into()));
        for expected in [None, Some(Ok(10)), Some(Ok(10)), None, Some(Ok(0))] {
            assert_eq!(poll(&mut whole).await, expected);
            assert_eq!(budget.held.get(), 0);
        }
        let mut first = budget.whole(Chunks([TEN, None, None].into()));
        for (expected, held) in [(Some(Ok(10)), 0), (None, 0), (None, HELD)] {
            assert_eq!(poll(&mut first).await, expected);
            assert_eq!(budget.held.get(), held);
        }
        let mut second = budget.whole(Chunks([TEN, None, None].into()));
        for expected in [Some(Ok(10)), None, Some(Err(true))] {
            assert_eq!(poll(&mut second).await, expected);
        }
        assert_eq!((budget.held.get(), budget.refused.get()), (HELD, 1));
        drop((whole, first, second));
        assert_eq!(budget.held.get(), 0);
    }

    #[tokio::test]
    async fn a_grpc_message_is_counted_as_soon_as_it_is_announced() {
        let budget = budget(1000);
        let announced: Option<&[u8]> = Some(&[0, 0, 0, 3, 0]);
        let whole: Option<&[u8]> = Some(&[0, 0, 0, 0, 1, 7, 0, 0, 0, 0, 0]);
        let chunks = [whole, None, None, announced, None, None];
        let mut body = CountedBody::grpc(Chunks(chunks.into()), &budget);
        for (expected, held) in
            [(Some(Ok(11)), 0), (None, 0), (None, 0), (Some(Ok(5)), 0), (None, 0), (None, 773)]
        {
            assert_eq!(poll(&mut body).await, expected);
            assert_eq!(budget.held.get(), held);
        }
        let mut other = CountedBody::grpc(Chunks([announced, None, None].into()), &budget);
        for expected in [Some(Ok(5)), None, Some(Err(true))] {
            assert_eq!(poll(&mut other).await, expected);
        }
    }
}
