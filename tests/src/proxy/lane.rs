//! One direction of one connection.
//!
//! A reader puts input into a bounded queue, with the time it is due; a writer takes it from the queue and
//! applies the current faults.

use std::io;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::sync::{mpsc, watch};
use tokio::time::{Duration, Instant};

use super::counts::{LaneCounters, add};
use super::{Direction, Faults, Shared};

/// The queue holds this many chunks of this many bytes: a mebibyte.
const CHUNKS_MAX: usize = 64;
const CHUNK_BYTES: usize = 16 * 1024;

/// With a bandwidth, bytes are sent in portions of this duration.
const PORTION: Duration = Duration::from_millis(10);

/// Reason for the end of a connection.
pub(super) enum Broken {
    /// One end failed by itself.
    Peer,
    /// The proxy resets it.
    Reset,
}

impl From<io::Error> for Broken {
    fn from(_: io::Error) -> Self {
        Self::Peer
    }
}

struct Chunk {
    delayed: bool,
    due: Instant,
    bytes: Vec<u8>,
}

/// One direction of one connection.
pub(super) struct Lane<'a> {
    shared: &'a Shared,
    counters: &'a LaneCounters,
    faults: watch::Receiver<Faults>,
    half_closes: watch::Receiver<u64>,
    hit: bool,
}

impl<'a> Lane<'a> {
    pub(super) fn new(shared: &'a Shared, direction: Direction) -> Self {
        let switches = shared.switches(direction);
        Self {
            shared,
            counters: shared.counters.lane(direction),
            faults: switches.faults.subscribe(),
            half_closes: switches.half_closes.subscribe(),
            hit: false,
        }
    }

    /// Copies bytes until the sender is done and the receiver knows.
    pub(super) async fn pump(self, from: ReadHalf<'_>, to: WriteHalf<'_>) -> Result<(), Broken> {
        let (queue, queued) = mpsc::channel(CHUNKS_MAX);
        let reader = read(self.shared, self.faults.clone(), from, queue);
        tokio::try_join!(reader, self.write(queued, to)).map(drop)
    }

    async fn write(
        mut self,
        mut queued: mpsc::Receiver<Chunk>,
        mut to: WriteHalf<'_>,
    ) -> Result<(), Broken> {
        let mut half_closes = self.half_closes.clone();
        tokio::select! {
            biased;
            _ = half_closes.changed() => {}
            outcome = self.write_all(&mut queued, &mut to) => return outcome,
        }
        add(&self.counters.half_closed, 1);
        self.hit();
        to.shutdown().await?;
        while let Some(chunk) = queued.recv().await {
            add(&self.counters.swallowed_bytes, chunk.bytes.len());
        }
        Ok(())
    }

    async fn write_all(
        &mut self,
        queued: &mut mpsc::Receiver<Chunk>,
        to: &mut WriteHalf<'_>,
    ) -> Result<(), Broken> {
        while let Some(chunk) = queued.recv().await {
            tokio::time::sleep_until(chunk.due).await;
            if chunk.delayed {
                add(&self.counters.delayed_bytes, chunk.bytes.len());
                self.hit();
            }
            let mut bytes = &chunk.bytes[..];
            while !bytes.is_empty() {
                self.stalled(bytes.len()).await;
                if self.faults.borrow().black_hole {
                    return self.swallow(bytes.len(), queued).await;
                }
                bytes = self.deliver_some(bytes, to).await?;
            }
        }
        // The end of a stream is stalled and lost like its bytes.
        self.stalled(0).await;
        let _ = self.faults.wait_for(|faults| !faults.black_hole).await;
        Ok(to.shutdown().await?)
    }

    async fn stalled(&mut self, bytes: usize) {
        if self.faults.borrow().stall {
            add(&self.counters.stalled_bytes, bytes);
            self.hit();
            let _ = self.faults.wait_for(|faults| !faults.stall).await;
        }
    }

    /// Discards everything until the black hole ends; then the connection is reset.
    async fn swallow(
        &mut self,
        first: usize,
        queued: &mut mpsc::Receiver<Chunk>,
    ) -> Result<(), Broken> {
        self.hit();
        add(&self.counters.swallowed_bytes, first);
        let mut faults = self.faults.clone();
        let lose = async {
            while let Some(chunk) = queued.recv().await {
                add(&self.counters.swallowed_bytes, chunk.bytes.len());
            }
            std::future::pending().await
        };
        tokio::select! {
            biased;
            _ = faults.wait_for(|faults| !faults.black_hole) => Err(Broken::Reset),
            never = lose => never,
        }
    }

    /// Forwards one piece; returns the rest.
    async fn deliver_some<'b>(
        &mut self,
        bytes: &'b [u8],
        to: &mut WriteHalf<'_>,
    ) -> io::Result<&'b [u8]> {
        let faults = *self.faults.borrow();
        let (piece, rest) = bytes.split_at(self.piece_len(&faults, bytes.len()));
        // Counted first: a client that has received the bytes finds them counted.
        self.count(&faults, piece.len());
        to.write_all(piece).await?;
        pause(&faults, piece.len()).await;
        Ok(rest)
    }

    /// Number of the `len` bytes that are sent together.
    fn piece_len(&self, faults: &Faults, len: usize) -> usize {
        let mut piece = len;
        if let Some(limit) = faults.bytes_per_second {
            let portion = u128::from(limit.get()) * PORTION.as_millis() / 1000;
            piece = piece.min(usize::try_from(portion).unwrap_or(usize::MAX));
        }
        if let Some(max) = faults.slice_bytes_max {
            let slice = self.shared.random.lock().below(max.get() as u64) + 1;
            piece = piece.min(usize::try_from(slice).unwrap_or(usize::MAX));
        }
        piece.max(1)
    }

    fn count(&mut self, faults: &Faults, len: usize) {
        add(&self.counters.forwarded_bytes, len);
        if faults.slice_bytes_max.is_some() {
            add(&self.counters.slices, 1);
            self.hit();
        }
        if faults.bytes_per_second.is_some() {
            add(&self.counters.throttled_bytes, len);
            self.hit();
        }
    }

    fn hit(&mut self) {
        if !std::mem::replace(&mut self.hit, true) {
            add(&self.counters.connections_hit, 1);
        }
    }
}

/// The pause after a piece of this length.
async fn pause(faults: &Faults, len: usize) {
    if faults.slice_bytes_max.is_some() {
        if faults.slice_pause.is_zero() {
            tokio::task::yield_now().await;
        } else {
            tokio::time::sleep(faults.slice_pause).await;
        }
    }
    if let Some(limit) = faults.bytes_per_second {
        // Rounded up: never faster than the limit.
        let ns = (len as u64 * 1_000_000_000).div_ceil(limit.get());
        tokio::time::sleep(Duration::from_nanos(ns)).await;
    }
}

/// Reads until the end of the stream. A full queue stops the reader, and so the sender.
async fn read(
    shared: &Shared,
    faults: watch::Receiver<Faults>,
    mut from: ReadHalf<'_>,
    queue: mpsc::Sender<Chunk>,
) -> Result<(), Broken> {
    let mut buffer = vec![0; CHUNK_BYTES];
    let mut due = Instant::now();
    loop {
        let len = from.read(&mut buffer).await?;
        if len == 0 {
            return Ok(());
        }
        let delay = delay(shared, &faults.borrow());
        // Bytes do not overtake each other.
        due = due.max(Instant::now() + delay);
        let chunk = Chunk { delayed: !delay.is_zero(), due, bytes: buffer[..len].to_vec() };
        if queue.send(chunk).await.is_err() {
            return Ok(());
        }
    }
}

fn delay(shared: &Shared, faults: &Faults) -> Duration {
    let jitter_us = u64::try_from(faults.jitter.as_micros()).unwrap_or(u64::MAX);
    if jitter_us == 0 {
        return faults.latency;
    }
    faults.latency + Duration::from_micros(shared.random.lock().below(jitter_us.saturating_add(1)))
}
