//! Bounded queue of violations to be written, aggregated by bucket, rule, mode and minute.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::hash::{BuildHasher, Hash, Hasher, RandomState};
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use sluicegate::{Request, Tier};

use super::{Pseudonyms, record};
use crate::data::ViolationRow;
use crate::observe::metrics::audit::{AuditMetrics, Dropped};
use crate::time::Timestamp;

/// Keeps contention low: threads that note different buckets seldom share a shard.
const SHARDS: usize = 16;

/// Length of the interval aggregated in one row.
const MINUTE_US: i64 = 60_000_000;

/// Hash of a row's identity under a random key, so that clients cannot cause collisions.
type Key = u128;

/// Bounded queue of violations to be written.
///
/// Invariant: noted = written + dropped + waiting, at all times.
#[derive(Debug)]
pub(super) struct Queue {
    shards: [Mutex<Shard>; SHARDS],
    /// One per half of a [`Key`].
    hashers: [RandomState; 2],
    pseudonyms: Pseudonyms,
    /// Queued rows, and rows taken but not [settled](Self::settle) yet.
    rows: AtomicUsize,
    rows_max: usize,
    metrics: AuditMetrics,
}

#[derive(Debug, Default)]
struct Shard {
    rows: HashMap<Key, ViolationRow>,
    /// Keys of the rows, oldest first.
    order: VecDeque<Key>,
    /// No more violations are accepted.
    is_closed: bool,
}

/// Result of writing rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WriteResult {
    Written,
    Dropped(Dropped),
}

impl Queue {
    /// A queue of at most `rows_max` rows.
    pub(super) fn new(rows_max: usize, pseudonyms: Pseudonyms, metrics: AuditMetrics) -> Self {
        Self {
            shards: Default::default(),
            hashers: [RandomState::new(), RandomState::new()],
            pseudonyms,
            rows: AtomicUsize::new(0),
            rows_max,
            metrics,
        }
    }

    /// Adds a violation to its row, or a new row. Dropped and counted if the queue is full.
    /// Allocates nothing if the row exists or the queue is full.
    pub(super) fn note(&self, request: &Request<'_>, tier: &Tier<'_>, at: Timestamp) {
        self.metrics.noted(tier.rule.mode());
        let key = self.key(request, tier, at);
        let shard = &self.shards[(key % SHARDS as Key) as usize];
        match shard.lock().add(key, at, tier.decision.remaining) {
            Ok(()) => return,
            Err(Closed(true)) => return self.metrics.dropped(Dropped::Shutdown, 1),
            Err(Closed(false)) => {}
        }
        let has_room = |rows| (rows < self.rows_max).then_some(rows + 1);
        if self.rows.try_update(Ordering::Relaxed, Ordering::Relaxed, has_room).is_err() {
            return self.metrics.dropped(Dropped::Full, 1);
        }
        self.metrics.waiting.inc();
        // Hashing and copying happen without the lock.
        let row = record::row(&self.pseudonyms, request, tier, at);
        if let Err(result) = shard.lock().insert(key, row) {
            self.leave(1);
            if let Some(reason) = result {
                self.metrics.dropped(reason, 1);
            }
        }
    }

    /// Takes up to `rows_max` rows to be written, oldest first. They count as waiting until they
    /// are settled.
    pub(super) fn take(&self, rows_max: usize) -> Vec<ViolationRow> {
        let front =
            |shard: usize| self.shards[shard].lock().oldest().map(|at| Reverse((at, shard)));
        let mut fronts: BinaryHeap<_> = (0..SHARDS).filter_map(front).collect();
        let mut taken = Vec::new();
        while taken.len() < rows_max {
            let Some(Reverse((_, shard))) = fronts.pop() else { break };
            taken.extend(self.shards[shard].lock().take());
            fronts.extend(front(shard));
        }
        taken
    }

    /// Counts taken rows by their result.
    pub(super) fn settle(&self, rows: &[ViolationRow], result: WriteResult) {
        let count = rows.iter().map(|row| row.count).sum();
        match result {
            WriteResult::Written => self.metrics.written(rows.len(), count),
            WriteResult::Dropped(reason) => self.metrics.dropped(reason, count),
        }
        self.leave(rows.len());
    }

    /// Drops the rows that `matches` selects.
    pub(super) fn forget(&self, matches: impl Fn(&ViolationRow) -> bool) {
        for shard in &self.shards {
            let forgotten = shard.lock().forget(&matches);
            self.settle(&forgotten, WriteResult::Dropped(Dropped::Deleted));
        }
    }

    /// Drops all rows, and everything noted later.
    pub(super) fn close(&self) {
        for shard in &self.shards {
            let left = shard.lock().close();
            self.settle(&left, WriteResult::Dropped(Dropped::Shutdown));
        }
    }

    /// Number of queued rows.
    #[cfg(test)]
    pub(super) fn rows(&self) -> usize {
        self.rows.load(Ordering::Relaxed)
    }

    fn leave(&self, rows: usize) {
        self.rows.fetch_sub(rows, Ordering::Relaxed);
        self.metrics.waiting.dec_by(rows as i64);
    }

    fn key(&self, request: &Request<'_>, tier: &Tier<'_>, at: Timestamp) -> Key {
        let half = |hasher: &RandomState| {
            let mut state = hasher.build_hasher();
            tier.rule.rule_id().hash(&mut state);
            tier.is_enforced().hash(&mut state);
            at.micros().div_euclid(MINUTE_US).hash(&mut state);
            for attribute in tier.rule.key_pattern().attributes() {
                request.get(attribute).hash(&mut state);
            }
            state.finish()
        };
        let [high, low] = &self.hashers;
        Key::from(half(high)) << 64 | Key::from(half(low))
    }
}

/// No row with this key; `true` if the queue is closed.
struct Closed(bool);

impl Shard {
    /// Adds a violation to the row of `key`.
    fn add(&mut self, key: Key, at: Timestamp, tokens: u64) -> Result<(), Closed> {
        let Some(row) = self.rows.get_mut(&key) else { return Err(Closed(self.is_closed)) };
        row.count += 1;
        row.last_at = row.last_at.max(at);
        // Threads may arrive in a different order than they read the clock.
        if at < row.requested_at {
            (row.requested_at, row.tokens_at_time) = (at, tokens);
        }
        Ok(())
    }

    /// Adds a row, or merges it into the one that another thread added meanwhile. `Err` if no row
    /// was added: with the reason if it was dropped, without one if it was merged.
    fn insert(&mut self, key: Key, row: ViolationRow) -> Result<(), Option<Dropped>> {
        match self.add(key, row.requested_at, row.tokens_at_time) {
            Ok(()) => Err(None),
            Err(Closed(true)) => Err(Some(Dropped::Shutdown)),
            Err(Closed(false)) => {
                self.rows.insert(key, row);
                self.order.push_back(key);
                Ok(())
            }
        }
    }

    fn oldest(&self) -> Option<Timestamp> {
        let key = self.order.front()?;
        self.rows.get(key).map(|row| row.requested_at)
    }

    fn take(&mut self) -> Option<ViolationRow> {
        let key = self.order.pop_front()?;
        self.rows.remove(&key)
    }

    fn forget(&mut self, matches: impl Fn(&ViolationRow) -> bool) -> Vec<ViolationRow> {
        let forgotten = self.rows.extract_if(|_, row| matches(row)).map(|(_, row)| row).collect();
        self.order.retain(|key| self.rows.contains_key(key));
        forgotten
    }

    fn close(&mut self) -> Vec<ViolationRow> {
        self.is_closed = true;
        self.order.clear();
        self.rows.drain().map(|(_, row)| row).collect()
    }
}

#[cfg(test)]
mod tests;
