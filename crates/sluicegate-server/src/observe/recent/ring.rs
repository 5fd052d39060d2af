//! Ring buffer of requests: the newest overwrites the oldest.
//!
//! Requests are numbered and spread over shards in turn, so that two at the same moment take
//! different locks.

use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use sluicegate::Micros;

use super::entry::RecentRequest;

/// More than the threads that add requests on most machines.
const SHARDS: usize = 16;

/// The last `requests_max` requests.
#[derive(Debug)]
pub(super) struct Ring {
    shards: [Mutex<Vec<RecentRequest>>; SHARDS],
    /// Slots per shard.
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

    /// Adds a request by swapping it with the one it overwrites; `false` if its shard's lock is
    /// held.
    pub(super) fn push(&self, kept: &mut RecentRequest) -> bool {
        let sequence = self.next.fetch_add(1, Ordering::Relaxed);
        let (shard, slot) = self.place(sequence);
        let Some(mut shard) = self.shards[shard].try_lock() else { return false };
        if slot >= shard.len() {
            shard.resize_with(slot + 1, RecentRequest::default);
        }
        kept.sequence = sequence;
        std::mem::swap(&mut shard[slot], kept);
        true
    }

    #[expect(clippy::cast_possible_truncation, reason = "remainders of values that fit")]
    fn place(&self, sequence: u64) -> (usize, usize) {
        let round = sequence / SHARDS as u64;
        ((sequence % SHARDS as u64) as usize, (round % self.slots as u64) as usize)
    }

    /// Requests from this time on, in order.
    pub(super) fn since(&self, oldest: Micros) -> Vec<RecentRequest> {
        let before = self.next.load(Ordering::Relaxed).saturating_sub(self.requests_max as u64);
        let is_meant =
            |kept: &&RecentRequest| kept.sequence >= before.max(1) && kept.at() >= oldest;
        let mut all = Vec::new();
        for shard in &self.shards {
            // Shard by shard: requests added meanwhile are missing from one shard, not from all.
            all.extend(shard.lock().iter().filter(is_meant).cloned());
        }
        all.sort_by_key(|kept| (kept.at(), kept.sequence));
        // Requests added during the loop may exceed the maximum.
        all.drain(..all.len().saturating_sub(self.requests_max));
        all
    }
}
