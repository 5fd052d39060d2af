//! Violations that wait to be written: summed up by bucket, rule, mode and minute, and so many at most.

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

/// Threads that note different buckets seldom meet.
const SHARDS: usize = 16;

/// What is summed up in one row begins and ends with it.
const MINUTE_US: i64 = 60_000_000;

/// What says which row a violation is part of: a hash under a key that nobody knows, so that no two are taken
/// for one.
type Key = u128;

/// Violations that wait to be written.
///
/// Of everything that is noted, what is written, what is dropped and what waits add up, whatever happens.
#[derive(Debug)]
pub(super) struct Queue {
    shards: [Mutex<Shard>; SHARDS],
    /// Each half of a [`Key`] has one.
    hashers: [RandomState; 2],
    pseudonyms: Pseudonyms,
    /// Rows that wait, with those that were taken and are not [settled](Self::settle) yet.
    rows: AtomicUsize,
    rows_max: usize,
    metrics: AuditMetrics,
}

#[derive(Debug, Default)]
struct Shard {
    rows: HashMap<Key, ViolationRow>,
    /// The keys of the rows, oldest first.
    order: VecDeque<Key>,
    /// Nothing is taken any more.
    is_closed: bool,
}

/// What became of rows that were taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Written,
    Dropped(Dropped),
}

impl Queue {
    /// A queue of at most so many rows.
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

    /// Adds a violation to its row. What finds no row, and no room for one, is dropped and counted. Nothing is
    /// allocated where there is a row, or no room.
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
        // Hashing and copying take their time, and others want the shard meanwhile.
        let row = record::row(&self.pseudonyms, request, tier, at);
        if let Err(fate) = shard.lock().insert(key, row) {
            self.leave(1);
            if let Some(reason) = fate {
                self.metrics.dropped(reason, 1);
            }
        }
    }

    /// Takes rows to be written, so many at most, oldest first. They count as waiting until they are settled.
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

    /// Counts rows that were taken for what became of them.
    pub(super) fn settle(&self, rows: &[ViolationRow], fate: Fate) {
        let count = rows.iter().map(|row| row.count).sum();
        match fate {
            Fate::Written => self.metrics.written(rows.len(), count),
            Fate::Dropped(reason) => self.metrics.dropped(reason, count),
        }
        self.leave(rows.len());
    }

    /// Drops the rows that `is_it` says.
    pub(super) fn forget(&self, is_it: impl Fn(&ViolationRow) -> bool) {
        for shard in &self.shards {
            let forgotten = shard.lock().forget(&is_it);
            self.settle(&forgotten, Fate::Dropped(Dropped::Deleted));
        }
    }

    /// Drops everything that waits, and whatever comes later.
    pub(super) fn close(&self) {
        for shard in &self.shards {
            let left = shard.lock().close();
            self.settle(&left, Fate::Dropped(Dropped::Shutdown));
        }
    }

    /// The number of rows that wait.
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

/// There is no such row; `true` if there will be none.
struct Closed(bool);

impl Shard {
    /// Adds to the row of a key.
    fn add(&mut self, key: Key, at: Timestamp, tokens: u64) -> Result<(), Closed> {
        let Some(row) = self.rows.get_mut(&key) else { return Err(Closed(self.is_closed)) };
        row.count += 1;
        row.last_at = row.last_at.max(at);
        // Threads come here in another order than they looked at the clock.
        if at < row.requested_at {
            (row.requested_at, row.tokens_at_time) = (at, tokens);
        }
        Ok(())
    }

    /// Makes a row, or adds it to the one that somebody else has made meanwhile. `Err` if it is not kept as
    /// a row of its own, with the reason if it is not kept at all.
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

    fn forget(&mut self, is_it: impl Fn(&ViolationRow) -> bool) -> Vec<ViolationRow> {
        let forgotten = self.rows.extract_if(|_, row| is_it(row)).map(|(_, row)| row).collect();
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
