//! Where requests are kept: the newest in the place of the oldest.
//!
//! Requests are numbered, and go round over a few shards: two that come at the same moment meet different
//! locks.

use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use sluicegate::Micros;

use super::entry::Kept;

/// More than there are threads that note requests, in most places.
const SHARDS: usize = 16;

/// The last so many requests.
#[derive(Debug)]
pub(super) struct Ring {
    shards: [Mutex<Vec<Kept>>; SHARDS],
    /// How many slots a shard has.
    slots: usize,
    requests_max: usize,
    next: AtomicU64,
}

impl Ring {
    pub(super) fn new(requests_max: usize) -> Self {
        Self {
            shards: Default::default(),
            slots: requests_max.div_ceil(SHARDS).max(1),
            requests_max,
            next: AtomicU64::new(1),
        }
    }

    /// Keeps a request, and hands out what it takes the place of; `false` if it would have to wait.
    pub(super) fn push(&self, kept: &mut Kept) -> bool {
        let sequence = self.next.fetch_add(1, Ordering::Relaxed);
        let (shard, slot) = self.place(sequence);
        let Some(mut shard) = self.shards[shard].try_lock() else { return false };
        if slot >= shard.len() {
            shard.resize_with(slot + 1, Kept::default);
        }
        kept.sequence = sequence;
        std::mem::swap(&mut shard[slot], kept);
        true
    }

    #[expect(clippy::cast_possible_truncation, reason = "remainders of what fits")]
    fn place(&self, sequence: u64) -> (usize, usize) {
        let round = sequence / SHARDS as u64;
        ((sequence % SHARDS as u64) as usize, (round % self.slots as u64) as usize)
    }

    /// What is kept of this time and later, in its order.
    pub(super) fn since(&self, oldest: Micros) -> Vec<Kept> {
        let before = self.next.load(Ordering::Relaxed).saturating_sub(self.requests_max as u64);
        let is_meant = |kept: &&Kept| kept.sequence >= before.max(1) && kept.at() >= oldest;
        let mut all = Vec::new();
        for shard in &self.shards {
            // One after the other: requests that come meanwhile are left out of one shard, not of all.
            all.extend(shard.lock().iter().filter(is_meant).cloned());
        }
        all.sort_by_key(|kept| (kept.at(), kept.sequence));
        // Those that came while this looked are some too many.
        all.drain(..all.len().saturating_sub(self.requests_max));
        all
    }
}
