//! Counters of the proxy: a test whose fault never acted has proven nothing.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use super::Direction;

/// Counters of a proxy since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Counters of connections.
    pub connections: ConnectionCounts,
    /// Bytes from clients to the server.
    pub up: LaneCounts,
    /// Bytes from the server to clients.
    pub down: LaneCounts,
}

/// Counters of connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConnectionCounts {
    /// Accepted connections in total.
    pub accepted: u64,
    /// Connections that are open now.
    pub open: u64,
    /// Reset by [`super::FaultProxy::reset_all`], [`super::FaultProxy::reset_every`], or after a black hole.
    pub reset: u64,
    /// Reset on accept, by [`super::FaultProxy::reset_new`].
    pub reset_new: u64,
    /// Closed because the target could not be reached.
    pub unreachable: u64,
}

/// Counters of one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LaneCounts {
    /// Connections that any fault of this direction has acted on.
    pub connections_hit: u64,
    /// Bytes forwarded.
    pub forwarded_bytes: u64,
    /// Bytes delayed by latency or jitter.
    pub delayed_bytes: u64,
    /// Bytes delayed by the bandwidth.
    pub throttled_bytes: u64,
    /// Bytes held by a stall.
    pub stalled_bytes: u64,
    /// Bytes lost in a black hole or after a half-close.
    pub swallowed_bytes: u64,
    /// Slices that were written.
    pub slices: u64,
    /// Connections whose direction was closed.
    pub half_closed: u64,
}

/// The counters as atomics.
#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) accepted: AtomicU64,
    pub(super) reset: AtomicU64,
    pub(super) reset_new: AtomicU64,
    pub(super) unreachable: AtomicU64,
    /// Numbers of the open connections, in order of acceptance.
    open: Mutex<BTreeSet<u64>>,
    up: LaneCounters,
    down: LaneCounters,
}

#[derive(Debug, Default)]
pub(super) struct LaneCounters {
    pub(super) connections_hit: AtomicU64,
    pub(super) forwarded_bytes: AtomicU64,
    pub(super) delayed_bytes: AtomicU64,
    pub(super) throttled_bytes: AtomicU64,
    pub(super) stalled_bytes: AtomicU64,
    pub(super) swallowed_bytes: AtomicU64,
    pub(super) slices: AtomicU64,
    pub(super) half_closed: AtomicU64,
}

/// Adds to a counter.
pub(super) fn add(counter: &AtomicU64, n: usize) {
    counter.fetch_add(n as u64, Ordering::SeqCst);
}

fn get(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::SeqCst)
}

impl Counters {
    pub(super) const fn lane(&self, direction: Direction) -> &LaneCounters {
        match direction {
            Direction::Up => &self.up,
            Direction::Down => &self.down,
        }
    }

    /// Counts a new connection, which is open until the guard is dropped.
    pub(super) fn open(&self) -> Open<'_> {
        let mut open = self.open.lock();
        let number = self.accepted.fetch_add(1, Ordering::SeqCst);
        open.insert(number);
        Open { counters: self, number }
    }

    /// Have any of the first `count` connections ended?
    pub(super) fn ended_among_first(&self, count: u64) -> bool {
        self.open.lock().first().is_none_or(|&oldest| oldest >= count)
    }

    pub(super) fn read(&self) -> Counts {
        let open = self.open.lock().len() as u64;
        let connections = ConnectionCounts {
            accepted: get(&self.accepted),
            open,
            reset: get(&self.reset),
            reset_new: get(&self.reset_new),
            unreachable: get(&self.unreachable),
        };
        Counts { connections, up: self.up.read(), down: self.down.read() }
    }
}

impl LaneCounters {
    fn read(&self) -> LaneCounts {
        LaneCounts {
            connections_hit: get(&self.connections_hit),
            forwarded_bytes: get(&self.forwarded_bytes),
            delayed_bytes: get(&self.delayed_bytes),
            throttled_bytes: get(&self.throttled_bytes),
            stalled_bytes: get(&self.stalled_bytes),
            swallowed_bytes: get(&self.swallowed_bytes),
            slices: get(&self.slices),
            half_closed: get(&self.half_closed),
        }
    }
}

/// Guard of an open connection.
pub(super) struct Open<'a> {
    counters: &'a Counters,
    number: u64,
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.counters.open.lock().remove(&self.number);
    }
}
