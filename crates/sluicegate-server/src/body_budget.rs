//! Memory for request bodies of all clients that have not arrived completely.
//!
//! A body that arrives at once, as nearly all do, is not counted: it is parsed before its task waits for anything. A body
//! whose rest has to be waited for reserves the bytes of it that have arrived. It is refused if all such bodies together
//! would exceed the maximum, or those of one network its part of it: so unfinished bodies of one network do not keep out
//! those of others. Peers that are trusted proxies have no part, because they send bodies of many clients. A body that is the
//! only unfinished one, of all or of its network, is not refused for that limit, whatever its length.

use std::collections::HashMap;
use std::net::IpAddr;
use std::ops::Deref;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::BoxError;
use axum::body::{Bytes, HttpBody};
use hyper::body::{Frame, SizeHint};
use ipnet::IpNet;
use parking_lot::Mutex;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use sluicegate::client_ip::ClientIp;
use tokio::time::{Sleep, sleep};
use tracing::warn;

use crate::log_limit::LogLimit;
use crate::network::network;

/// Bytes of a gRPC message before its payload: a flag and the length.
const GRPC_PREFIX: usize = 5;
/// Bytes counted for a gRPC message that is not complete, beside those received. The buffer for the bytes that it
/// announces is not counted: its pages take no memory until the bytes arrive.
const GRPC_EXTRA: usize = 1024;
/// Memory for each frame of a body that is read as a whole, beside its bytes: a `Bytes` of 32 bytes in a list that grows
/// to double its length.
const FRAME_OVERHEAD: usize = 64;
/// Fraction of the budget that the bodies of one network (/24, /64) may take: an eighth.
const NETWORK_FRACTION: usize = 8;

/// Limit on the bytes of all bodies that have not arrived completely.
#[derive(Debug)]
pub(crate) struct BodyBudget {
    bytes_max: usize,
    /// Proxies, whose bodies are those of many clients.
    proxies: ClientIp,
    /// Bytes that are held, by network. `held` changes only while this is locked.
    networks: Mutex<HashMap<IpNet, usize>>,
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

/// Error of a gRPC message that took too long to arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("timeout while reading the message")]
pub(crate) struct Late;

/// A body whose unfinished bytes are counted by a budget.
#[derive(Debug)]
pub(crate) struct CountedBody<B, R: Deref<Target = BodyBudget>> {
    body: B,
    budget: R,
    /// Address of the client; `None` if it is not known.
    peer: Option<IpAddr>,
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
#[derive(Debug)]
struct GrpcMessage {
    prefix: [u8; GRPC_PREFIX],
    /// Bytes received, the prefix included.
    received: usize,
    /// No message has been complete yet.
    is_first: bool,
    /// Time for a message to arrive, and the timer of the one that is not complete.
    within: Option<Duration>,
    timer: Option<Pin<Box<Sleep>>>,
}

impl BodyBudget {
    /// A budget of `bytes_max`, with the metrics that show it. Trusted networks are proxies.
    pub(crate) fn new(bytes_max: usize, trusted: &[IpNet], held: Gauge, refused: Counter) -> Self {
        Self {
            bytes_max,
            proxies: ClientIp::default().trust(trusted.iter().copied()),
            networks: Mutex::default(),
            held,
            refused,
            log: LogLimit::new(),
        }
    }

    /// Counts a body that is read as a whole, of a client at `peer`.
    pub(crate) fn whole<B>(&self, body: B, peer: Option<IpAddr>) -> CountedBody<B, &Self> {
        CountedBody::new(body, self, peer, Received::Whole(0))
    }

    /// Changes the reservation of a body.
    fn reserve(&self, peer: Option<IpAddr>, from: usize, to: usize) -> Result<(), NoRoom> {
        let network = peer.filter(|peer| !self.proxies.is_trusted(*peer)).map(network);
        let is_over = |held: usize, most: usize| {
            let others = held - from;
            to > from && others > 0 && others + to > most
        };
        let mut networks = self.networks.lock();
        if is_over(self.held.get() as usize, self.bytes_max) {
            drop(networks);
            return Err(self.refuse(None));
        }
        if let Some(network) = network {
            let held = networks.get(&network).copied().unwrap_or_default();
            if is_over(held, self.bytes_max / NETWORK_FRACTION) {
                drop(networks);
                return Err(self.refuse(Some(network)));
            }
            match held - from + to {
                0 => networks.remove(&network),
                held => networks.insert(network, held),
            };
        }
        self.held.inc_by(to as i64 - from as i64);
        Ok(())
    }

    /// Records a refused body; `network` has reached its part.
    fn refuse(&self, network: Option<IpNet>) -> NoRoom {
        self.refused.inc();
        if let Some(suppressed) = self.log.admit() {
            let bytes_max = self.bytes_max;
            match network {
                None => warn!(
                    bytes_max,
                    suppressed, "request body refused: limits.bodies_bytes_max is reached"
                ),
                Some(network) => warn!(
                    %network,
                    bytes_max,
                    suppressed,
                    "request body refused: its network holds an eighth of limits.bodies_bytes_max"
                ),
            }
        }
        NoRoom
    }
}

impl<B, R: Deref<Target = BodyBudget>> CountedBody<B, R> {
    fn new(body: B, budget: R, peer: Option<IpAddr>, received: Received) -> Self {
        Self { body, budget, peer, received, reserved: 0, is_waiting: false }
    }

    /// Counts a stream of gRPC messages. With `within`, each of them must arrive in that time.
    pub(crate) fn grpc(body: B, budget: R, peer: Option<IpAddr>, within: Option<Duration>) -> Self {
        Self::new(body, budget, peer, Received::Messages(GrpcMessage::new(within)))
    }

    fn set_reserved(&mut self, bytes: usize) -> Result<(), NoRoom> {
        if bytes != self.reserved {
            self.budget.reserve(self.peer, self.reserved, bytes)?;
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
                if this.received.is_waited_for() {
                    cx.waker().wake_by_ref();
                }
                Poll::Pending
            }
            Poll::Pending => match this.set_reserved(this.received.held()) {
                Ok(()) if this.received.is_late(cx) => Poll::Ready(Some(Err(Late.into()))),
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

    /// True if more must arrive before it can be used, and something is to be done about it.
    fn is_waited_for(&self) -> bool {
        match self {
            Self::Whole(bytes) => *bytes > 0,
            Self::Messages(message) => message.held() > 0 || message.has_deadline(),
        }
    }

    fn is_late(&mut self, cx: &mut Context<'_>) -> bool {
        match self {
            Self::Whole(_) => false,
            Self::Messages(message) => message.is_late(cx),
        }
    }
}

impl GrpcMessage {
    fn new(within: Option<Duration>) -> Self {
        Self { prefix: [0; GRPC_PREFIX], received: 0, is_first: true, within, timer: None }
    }

    /// True if a message has to arrive: the first one, or the rest of one that has begun.
    fn has_deadline(&self) -> bool {
        self.within.is_some() && (self.is_first || self.received > 0)
    }

    fn is_late(&mut self, cx: &mut Context<'_>) -> bool {
        let Some(within) = self.within.filter(|_| self.has_deadline()) else { return false };
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep(within)));
        timer.as_mut().poll(cx).is_ready()
    }

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
                (self.received, self.is_first, self.timer) = (0, false, None);
            }
        }
    }

    /// Length with the prefix, which is complete.
    fn length(&self) -> usize {
        let [_, length @ ..] = self.prefix;
        GRPC_PREFIX + u32::from_be_bytes(length) as usize
    }

    fn held(&self) -> usize {
        if self.received > 0 { self.received + GRPC_EXTRA } else { 0 }
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

    const PROXY: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(198, 51, 100, 1));
    const TEN: Option<&[u8]> = Some(b"0123456789");

    fn budget(bytes_max: usize) -> BodyBudget {
        let proxy = [PROXY.into()];
        BodyBudget::new(bytes_max, &proxy, Gauge::default(), Counter::default())
    }

    /// Memory for an unfinished body of ten bytes.
    const HELD: i64 = 10 + FRAME_OVERHEAD as i64;

    /// Address in a network of its own.
    fn client(network: u8) -> Option<IpAddr> {
        Some([192, 0, network, 1].into())
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
        let budget = budget(15 + FRAME_OVERHEAD);
        // Arrives with one pause, as a body after its header does, or the end of a chunked one.
        let mut whole = budget.whole(Chunks([None, TEN, TEN, None].into()), Some(PROXY));
        for expected in [None, Some(Ok(10)), Some(Ok(10)), None, Some(Ok(0))] {
            assert_eq!(poll(&mut whole).await, expected);
            assert_eq!(budget.held.get(), 0);
        }
        let mut first = budget.whole(Chunks([TEN, None, None].into()), Some(PROXY));
        for (expected, held) in [(Some(Ok(10)), 0), (None, 0), (None, HELD)] {
            assert_eq!(poll(&mut first).await, expected);
            assert_eq!(budget.held.get(), held);
        }
        let mut second = budget.whole(Chunks([TEN, None, None].into()), Some(PROXY));
        for expected in [Some(Ok(10)), None, Some(Err(true))] {
            assert_eq!(poll(&mut second).await, expected);
        }
        assert_eq!((budget.held.get(), budget.refused.get()), (HELD, 1));
        drop((whole, first, second));
        assert_eq!(budget.held.get(), 0);
    }

    #[tokio::test]
    async fn a_network_has_a_part_of_the_budget() {
        let budget = budget(2 * HELD as usize * NETWORK_FRACTION);
        let unfinished = || Chunks([TEN, None, None].into());
        let mut held = Vec::new();
        for (network, is_refused) in
            [(1, false), (1, false), (1, true), (2, false), (2, false), (2, true)]
        {
            let mut body = budget.whole(unfinished(), client(network));
            assert_eq!(poll(&mut body).await, Some(Ok(10)));
            assert_eq!(poll(&mut body).await, None);
            assert_eq!(poll(&mut body).await, is_refused.then_some(Err(true)));
            held.push(body);
        }
        assert_eq!((budget.held.get(), budget.refused.get()), (4 * HELD, 2));
        drop(held);
        assert_eq!((budget.held.get(), budget.networks.lock().len()), (0, 0));
    }

    #[tokio::test]
    async fn a_body_alone_is_not_refused() {
        let budget = budget(5);
        let mut body = budget.whole(Chunks([TEN, None, None].into()), client(1));
        for expected in [Some(Ok(10)), None, None] {
            assert_eq!(poll(&mut body).await, expected);
        }
        assert_eq!(budget.held.get(), HELD);
    }

    #[tokio::test]
    async fn a_grpc_message_is_counted_by_what_has_arrived() {
        let budget = budget(1000);
        let announced: Option<&[u8]> = Some(&[0, 0, 3, 0, 0]);
        let whole: Option<&[u8]> = Some(&[0, 0, 0, 0, 1, 7, 0, 0, 0, 0, 0]);
        let chunks = [whole, None, None, announced, None, None];
        let mut body = CountedBody::grpc(Chunks(chunks.into()), &budget, Some(PROXY), None);
        let reserved = (GRPC_PREFIX + GRPC_EXTRA) as i64;
        for (expected, held) in
            [(Some(Ok(11)), 0), (None, 0), (None, 0), (Some(Ok(5)), 0), (None, 0), (None, reserved)]
        {
            assert_eq!(poll(&mut body).await, expected);
            assert_eq!(budget.held.get(), held);
        }
        let announced = Chunks([announced, None, None].into());
        let mut other = CountedBody::grpc(announced, &budget, Some(PROXY), None);
        for expected in [Some(Ok(5)), None, Some(Err(true))] {
            assert_eq!(poll(&mut other).await, expected);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_grpc_message_must_arrive_in_time() {
        let budget = budget(10_000);
        let begun: Option<&[u8]> = Some(&[0, 0]);
        let empty: Option<&[u8]> = Some(&[0, 0, 0, 0, 0]);
        for (chunks, is_late) in [
            ([None; 5], true),
            ([begun, None, None, None, None], true),
            ([empty, None, None, None, None], false),
        ] {
            let within = Some(Duration::from_secs(5));
            let mut body = CountedBody::grpc(Chunks(chunks.into()), &budget, None, within);
            for _ in 0..3 {
                poll(&mut body).await;
            }
            tokio::time::advance(Duration::from_secs(6)).await;
            assert_eq!(poll(&mut body).await, is_late.then_some(Err(false)));
        }
    }
}
