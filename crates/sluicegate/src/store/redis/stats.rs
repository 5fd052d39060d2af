//! Counters of the store.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use super::trouble::{Trouble, TroubleKind};

const KINDS: usize = TroubleKind::ALL.len();

/// Counters: written by the links, read for metrics.
#[derive(Debug, Default)]
pub(super) struct Stats {
    calls: AtomicU64,
    batches: AtomicU64,
    script_reloads: AtomicU64,
    reconnects: AtomicU64,
    state_losses: AtomicU64,
    undo_lost: AtomicU64,
    repaired: AtomicU64,
    redirects: AtomicU64,
    /// Signed, so that a reader between two writers sees no underflow.
    in_flight: AtomicI64,
    errors: [AtomicU64; KINDS],
}

/// Figures of a Redis store since it was built. Counters only increase.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RedisStats {
    /// Decisions sent to a server. One that is sent again, because it was not run, counts again.
    pub calls: u64,
    /// Script calls that the decisions were sent in.
    pub batches: u64,
    /// Script calls that were sent again with the source, because the server had lost the script.
    pub script_reloads: u64,
    /// Decisions without a reply within the budget.
    pub timeouts: u64,
    /// Connections made after one was lost.
    pub reconnects: u64,
    /// Servers that restarted as another process at the same address: their buckets may be lost.
    pub state_losses: u64,
    /// Charges whose undo was not confirmed: their tokens come back as the buckets refill.
    pub undo_lost: u64,
    /// Keys that held another value than a bucket, and were treated as full.
    pub repaired: u64,
    /// Redirections to another node of a cluster, and `TRYAGAIN` replies.
    pub redirects: u64,
    /// Decisions in flight now.
    pub in_flight: u64,
    /// Decisions queued now.
    pub queued: u64,
    errors: [u64; KINDS],
}

impl RedisStats {
    /// Decisions, and attempts to connect, that failed with this kind of error.
    #[must_use]
    pub fn errors(&self, kind: TroubleKind) -> u64 {
        self.errors[kind as usize]
    }
}

impl Stats {
    /// Counts `calls` decisions sent in `batches` script calls.
    pub(super) fn sent(&self, calls: usize, batches: usize) {
        add(&self.calls, calls);
        add(&self.batches, batches);
        self.in_flight.fetch_add(signed(calls), Ordering::Relaxed);
    }

    /// Counts decisions that are no longer in flight.
    pub(super) fn landed(&self, calls: usize) {
        self.in_flight.fetch_sub(signed(calls), Ordering::Relaxed);
    }

    pub(super) fn script_reloads(&self, batches: usize) {
        add(&self.script_reloads, batches);
    }

    pub(super) fn reconnected(&self) {
        add(&self.reconnects, 1);
    }

    pub(super) fn state_lost(&self) {
        add(&self.state_losses, 1);
    }

    pub(super) fn undo_lost(&self) {
        add(&self.undo_lost, 1);
    }

    pub(super) fn repaired(&self, buckets: u32) {
        if buckets > 0 {
            self.repaired.fetch_add(u64::from(buckets), Ordering::Relaxed);
        }
    }

    pub(super) fn redirected(&self) {
        add(&self.redirects, 1);
    }

    /// Counts a failed decision or attempt to connect.
    pub(super) fn trouble(&self, trouble: &Trouble) {
        add(&self.errors[trouble.kind() as usize], 1);
    }

    /// All counters, read one after the other; `queued` is known to the links.
    pub(super) fn snapshot(&self, queued: usize) -> RedisStats {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let errors = std::array::from_fn(|kind| read(&self.errors[kind]));
        RedisStats {
            calls: read(&self.calls),
            batches: read(&self.batches),
            script_reloads: read(&self.script_reloads),
            timeouts: errors[TroubleKind::Timeout as usize],
            reconnects: read(&self.reconnects),
            state_losses: read(&self.state_losses),
            undo_lost: read(&self.undo_lost),
            repaired: read(&self.repaired),
            redirects: read(&self.redirects),
            in_flight: u64::try_from(self.in_flight.load(Ordering::Relaxed)).unwrap_or(0),
            queued: queued as u64,
            errors,
        }
    }
}

fn add(counter: &AtomicU64, amount: usize) {
    counter.fetch_add(amount as u64, Ordering::Relaxed);
}

fn signed(amount: usize) -> i64 {
    i64::try_from(amount).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_its_own_counter() {
        let stats = Stats::default();
        for (index, kind) in TroubleKind::ALL.into_iter().enumerate() {
            assert_eq!(kind as usize, index, "{kind}");
            for _ in 0..=index {
                stats.trouble(&Trouble::new(kind, "x"));
            }
        }
        let seen = stats.snapshot(0);
        for (index, kind) in TroubleKind::ALL.into_iter().enumerate() {
            assert_eq!(seen.errors(kind), index as u64 + 1, "{kind}");
        }
        assert_eq!(seen.timeouts, seen.errors(TroubleKind::Timeout));
    }

    #[test]
    fn answered_calls_are_not_in_flight() {
        let stats = Stats::default();
        stats.sent(33, 2);
        stats.landed(1);
        let seen = stats.snapshot(5);
        assert_eq!((seen.calls, seen.batches, seen.in_flight, seen.queued), (33, 2, 32, 5));
    }
}
