//! Bounded queue of violations to be written, aggregated by bucket, rule, mode and minute.
//!
//! Rules share the queue and the rows written per second equally (`shares`): when the queue is full, a rule that holds
//! fewer rows than another takes the place of that one's newest row; and rules are written in turn.

mod shares;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap, VecDeque};
use std::hash::{BuildHasher, Hash, Hasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use sluicegate::{Request, Tier};

use self::shares::{Admission, Shares, turns};
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
    shares: Mutex<Shares>,
    /// Rule whose row was taken last.
    last_taken: AtomicU64,
    metrics: AuditMetrics,
}

#[derive(Debug, Default)]
struct Shard {
    rows: HashMap<Key, ViolationRow>,
    /// Keys of each rule's rows, oldest first.
    order: HashMap<u64, VecDeque<Key>>,
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
            shares: Mutex::new(Shares::new(rows_max)),
            last_taken: AtomicU64::new(0),
            metrics,
        }
    }

    /// Adds a violation to its row, or a new row. If the queue is full, a row of the rule that holds
    /// the most is dropped and counted, or this violation if it is of that rule. Allocates nothing
    /// if the row exists or the violation is dropped.
    pub(super) fn note(&self, request: &Request<'_>, tier: &Tier<'_>, at: Timestamp) {
        self.metrics.noted(tier.rule.mode());
        let key = self.key(request, tier, at);
        let shard = &self.shards[(key % SHARDS as Key) as usize];
        match shard.lock().add(key, at, tier.decision.remaining) {
            Ok(()) => return,
            Err(Closed(true)) => return self.metrics.dropped(Dropped::Shutdown, 1),
            Err(Closed(false)) => {}
        }
        let rule_id = tier.rule.rule_id();
        if !self.admit(rule_id) {
            return self.metrics.dropped(Dropped::Full, 1);
        }
        // Hashing and copying happen without the lock.
        let row = record::row(&self.pseudonyms, request, tier, at);
        if let Err(result) = shard.lock().insert(key, row) {
            self.leave([rule_id]);
            if let Some(reason) = result {
                self.metrics.dropped(reason, 1);
            }
        }
    }

    /// Counts a new row of this rule; `false` if there is no room for it.
    fn admit(&self, rule_id: u64) -> bool {
        let admission = self.shares.lock().admit(rule_id);
        match admission {
            Admission::Room => {
                self.metrics.waiting.inc();
                true
            }
            Admission::InsteadOf(largest) => {
                let Some(evicted) = self.evict(largest) else { return false };
                self.shares.lock().exchange(largest, rule_id);
                self.metrics.dropped(Dropped::Full, evicted.count);
                true
            }
            Admission::Full => false,
        }
    }

    /// Removes a recent row of this rule; `None` if all of its rows have been taken.
    fn evict(&self, rule_id: u64) -> Option<ViolationRow> {
        self.shards.iter().find_map(|shard| shard.lock().take_newest(rule_id))
    }

    /// Takes up to `rows_max` rows to be written: of each rule in turn, oldest first. They count as
    /// waiting until they are settled.
    pub(super) fn take(&self, rows_max: usize) -> Vec<ViolationRow> {
        let mut queued = BTreeMap::new();
        for shard in &self.shards {
            for (rule_id, keys) in &shard.lock().order {
                *queued.entry(*rule_id).or_default() += keys.len();
            }
        }
        let last = self.last_taken.load(Ordering::Relaxed);
        let (turns, last) = turns(&queued, last, rows_max);
        self.last_taken.store(last, Ordering::Relaxed);
        let mut taken = Vec::new();
        for (rule_id, rows) in turns {
            self.take_of(rule_id, rows, &mut taken);
        }
        taken.sort_by_key(|row| row.requested_at);
        taken
    }

    fn take_of(&self, rule_id: u64, rows_max: usize, taken: &mut Vec<ViolationRow>) {
        let front =
            |shard: usize| self.shards[shard].lock().oldest(rule_id).map(|at| Reverse((at, shard)));
        let mut fronts: BinaryHeap<_> = (0..SHARDS).filter_map(front).collect();
        for _ in 0..rows_max {
            let Some(Reverse((_, shard))) = fronts.pop() else { break };
            taken.extend(self.shards[shard].lock().take_oldest(rule_id));
            fronts.extend(front(shard));
        }
    }

    /// Counts taken rows by their result.
    pub(super) fn settle(&self, rows: &[ViolationRow], result: WriteResult) {
        let count = rows.iter().map(|row| row.count).sum();
        match result {
            WriteResult::Written => self.metrics.written(rows.len(), count),
            WriteResult::Dropped(reason) => self.metrics.dropped(reason, count),
        }
        self.leave(rows.iter().map(|row| row.rule_id));
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
        self.shares.lock().rows()
    }

    /// Rule that holds the most rows; `None` if the queue is empty.
    pub(super) fn largest_rule(&self) -> Option<u64> {
        self.shares.lock().largest()
    }

    /// Removes a row of each of these rules.
    fn leave(&self, rules: impl IntoIterator<Item = u64>) {
        let mut shares = self.shares.lock();
        for rule_id in rules {
            shares.leave(rule_id);
            self.metrics.waiting.dec();
        }
    }

    fn key(&self, request: &Request<'_>, tier: &Tier<'_>, at: Timestamp) -> Key {
        let half = |hasher: &RandomState| {
            let mut state = hasher.build_hasher();
            tier.rule.rule_id().hash(&mut state);
            tier.is_enforced().hash(&mut state);
            at.micros().div_euclid(MINUTE_US).hash(&mut state);
            for attribute in tier.rule.key_pattern().attributes() {
                tier.rule.value(request, attribute).hash(&mut state);
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
                self.order.entry(row.rule_id).or_default().push_back(key);
                self.rows.insert(key, row);
                Ok(())
            }
        }
    }

    /// Time of this rule's oldest row.
    fn oldest(&self, rule_id: u64) -> Option<Timestamp> {
        let key = self.order.get(&rule_id)?.front()?;
        self.rows.get(key).map(|row| row.requested_at)
    }

    fn take_oldest(&mut self, rule_id: u64) -> Option<ViolationRow> {
        self.take(rule_id, VecDeque::pop_front)
    }

    fn take_newest(&mut self, rule_id: u64) -> Option<ViolationRow> {
        self.take(rule_id, VecDeque::pop_back)
    }

    fn take(
        &mut self,
        rule_id: u64,
        pop: impl Fn(&mut VecDeque<Key>) -> Option<Key>,
    ) -> Option<ViolationRow> {
        let keys = self.order.get_mut(&rule_id)?;
        let key = pop(keys)?;
        if keys.is_empty() {
            self.order.remove(&rule_id);
        }
        self.rows.remove(&key)
    }

    fn forget(&mut self, matches: impl Fn(&ViolationRow) -> bool) -> Vec<ViolationRow> {
        let forgotten = self.rows.extract_if(|_, row| matches(row)).map(|(_, row)| row).collect();
        self.order.retain(|_, keys| {
            keys.retain(|key| self.rows.contains_key(key));
            !keys.is_empty()
        });
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
