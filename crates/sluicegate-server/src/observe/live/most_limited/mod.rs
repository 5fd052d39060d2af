//! Subjects that rules denied most in the last minute.
//!
//! Denials are counted by bucket, rule and mode, in time slots, for a bounded number of buckets.
//! When a shard is full, a new bucket evicts the least denied of a few candidates, so buckets that
//! are denied often stay. A count is never too high; it may be too low for a bucket that was added
//! recently.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::hash::{BuildHasher, Hash, Hasher, RandomState};
use std::time::Duration;

use parking_lot::Mutex;
use sluicegate::{Mode, Request, RuleSet, Tier, Verdict};
use tokio::time::Instant;

use super::RuleName;
use crate::observe::audit::{Pseudonyms, record, would_have_denied};
use crate::time::Timestamp;

/// Keeps contention low: threads that count different buckets seldom share a shard.
const SHARDS: usize = 16;

/// Maximum number of buckets per shard, at most about a kilobyte each.
const SHARD_ENTRIES_MAX: usize = 256;

/// Entries compared to find the one to evict.
const CANDIDATES: usize = 8;

/// Maximum number of subjects reported.
const TOP_MAX: usize = 20;

/// Time slots per minute; the newest is still in progress.
const SLOTS: usize = 12;
const SLOT: Duration = Duration::from_secs(5);
const _: () = assert!(SLOTS as u64 * SLOT.as_secs() == 60);

/// Hash of a bucket's identity under a random key, so that clients cannot cause collisions.
type Key = u128;

/// Subjects denied in the last minute.
#[derive(Debug)]
pub(super) struct MostLimited {
    shards: [Mutex<Shard>; SHARDS],
    /// One per half of a [`Key`].
    hashers: [RandomState; 2],
    pseudonyms: Pseudonyms,
    /// Start of the first slot.
    began: Instant,
}

/// Time of a denial.
#[derive(Clone, Copy, Debug)]
struct Moment {
    /// Number of the time slot. Monotonic, independent of the wall clock.
    slot: u64,
    /// Wall-clock time, for the report.
    at: Timestamp,
}

/// A subject that a rule denied, or would have denied in shadow mode. Values of requests are as the
/// audit records them.
#[derive(Clone, Debug)]
pub(crate) struct LimitedSubject {
    pub(crate) rule: RuleName,
    pub(crate) bucket: LimitedBucket,
    /// Denials in the last minute.
    pub(crate) denied: u64,
    pub(crate) last_at: Timestamp,
}

/// Identity of the bucket, with values of the first request denied.
#[derive(Clone, Debug)]
pub(crate) struct LimitedBucket {
    rule_id: u64,
    /// Mode of the rule at the denial.
    mode: Mode,
    pub(crate) bucket_key: String,
    /// Distinguishes buckets whose readable keys are the same.
    bucket_id: Vec<u8>,
    pub(crate) subject: String,
    pub(crate) endpoint: Option<String>,
    pub(crate) user_id: Option<String>,
    pub(crate) ip_address: Option<String>,
}

#[derive(Debug, Default)]
struct Shard {
    /// Index of each key in `entries`.
    places: HashMap<Key, usize>,
    entries: Vec<Entry>,
    /// Next candidate for eviction.
    hand: usize,
}

#[derive(Debug)]
struct Entry {
    key: Key,
    bucket: LimitedBucket,
    denied: Slots,
    last_at: Timestamp,
}

/// Counts by time slot.
#[derive(Clone, Debug)]
struct Slots {
    /// Slot `n` is at index `n % SLOTS`.
    counts: [u32; SLOTS],
    /// Number of the newest slot.
    newest: u64,
}

impl MostLimited {
    pub(super) fn new(pseudonyms: Pseudonyms) -> Self {
        let hashers = [RandomState::new(), RandomState::new()];
        Self { shards: Default::default(), hashers, pseudonyms, began: Instant::now() }
    }

    /// Counts the tier that denied a request, and tiers in shadow mode that would have. Allocates
    /// nothing for a bucket that is already counted.
    pub(super) fn note(&self, request: &Request<'_>, verdict: &Verdict) {
        if !verdict.tiers().all(|tier| tier.decision.is_granted()) {
            self.note_at(request, verdict, self.moment());
        }
    }

    fn note_at(&self, request: &Request<'_>, verdict: &Verdict, at: Moment) {
        if let Some(tier) = verdict.violated() {
            self.note_tier(request, &tier, at);
        }
        for tier in verdict.tiers().filter(would_have_denied) {
            self.note_tier(request, &tier, at);
        }
    }

    fn note_tier(&self, request: &Request<'_>, tier: &Tier<'_>, at: Moment) {
        let key = self.key(request, tier);
        let shard = &self.shards[(key % SHARDS as Key) as usize];
        if shard.lock().add(key, at) {
            return;
        }
        // Hashing and copying happen without the lock.
        let row = record::row(&self.pseudonyms, request, tier, at.at);
        let bucket = LimitedBucket {
            rule_id: row.rule_id,
            mode: tier.rule.mode(),
            bucket_key: row.bucket_key,
            bucket_id: row.bucket_id,
            subject: record::subject(&self.pseudonyms, request, tier.rule),
            endpoint: row.endpoint,
            user_id: row.user_id,
            ip_address: row.ip_address,
        };
        shard.lock().insert(key, bucket, at);
    }

    /// Most denied subjects of the rules in this set, in descending order; those of shadow rules
    /// come last.
    pub(super) fn top(&self, rules: &RuleSet) -> Vec<LimitedSubject> {
        self.top_in(rules, self.moment().slot)
    }

    fn top_in(&self, rules: &RuleSet, slot: u64) -> Vec<LimitedSubject> {
        let shards = self.shards.iter();
        let counted = shards.flat_map(|shard| shard.lock().counted(rules, slot));
        let mut top = merged(counted.collect());
        top.sort_by_key(|LimitedSubject { bucket, denied, last_at, .. }| {
            Reverse((bucket.mode == Mode::Enforce, *denied, *last_at))
        });
        top.truncate(TOP_MAX);
        top
    }

    pub(super) fn clear(&self) {
        for shard in &self.shards {
            *shard.lock() = Shard::default();
        }
    }

    fn moment(&self) -> Moment {
        let slot = self.began.elapsed().as_secs() / SLOT.as_secs();
        Moment { slot, at: Timestamp::now() }
    }

    fn key(&self, request: &Request<'_>, tier: &Tier<'_>) -> Key {
        let half = |hasher: &RandomState| {
            let mut state = hasher.build_hasher();
            tier.rule.rule_id().hash(&mut state);
            tier.is_enforced().hash(&mut state);
            for attribute in tier.rule.key_pattern().attributes() {
                tier.rule.value(request, attribute).hash(&mut state);
            }
            state.finish()
        };
        let [high, low] = &self.hashers;
        Key::from(half(high)) << 64 | Key::from(half(low))
    }
}

/// Merges subjects that the audit records as one: it may truncate addresses to their networks.
fn merged(mut subjects: Vec<LimitedSubject>) -> Vec<LimitedSubject> {
    let name = |LimitedSubject { bucket, .. }: &LimitedSubject| {
        (bucket.rule_id, bucket.mode == Mode::Enforce, bucket.bucket_id.clone())
    };
    subjects.sort_by_cached_key(name);
    subjects.dedup_by(|next, first| {
        let is_same = name(next) == name(first);
        if is_same {
            first.denied += next.denied;
            first.last_at = first.last_at.max(next.last_at);
        }
        is_same
    });
    subjects
}

impl Shard {
    /// Counts a denial of a bucket that is already counted; `false` if it is not.
    fn add(&mut self, key: Key, at: Moment) -> bool {
        let entry = self.places.get(&key).and_then(|place| self.entries.get_mut(*place));
        entry.map(|entry| entry.add(at)).is_some()
    }

    /// Counts the first denial of a bucket, or the next if another thread added it meanwhile.
    fn insert(&mut self, key: Key, bucket: LimitedBucket, at: Moment) {
        if self.add(key, at) {
            return;
        }
        let denied = Slots::new(at.slot);
        let mut entry = Entry { key, bucket, denied, last_at: at.at };
        entry.add(at);
        let place = self.entries.len();
        if place < SHARD_ENTRIES_MAX {
            self.places.insert(key, place);
            self.entries.push(entry);
            return;
        }
        let place = self.least_denied(at.slot);
        self.places.remove(&self.entries[place].key);
        self.places.insert(key, place);
        self.entries[place] = entry;
    }

    /// Index of the entry to evict: of the next few candidates the one with the fewest denials,
    /// then the one denied longest ago.
    fn least_denied(&mut self, slot: u64) -> usize {
        let count = self.entries.len();
        let few = (self.hand..self.hand + CANDIDATES).map(|place| place % count);
        self.hand = (self.hand + CANDIDATES) % count;
        let least = few.min_by_key(|place| {
            let entry = &self.entries[*place];
            (entry.denied.in_the_last_minute(slot), entry.last_at)
        });
        least.unwrap_or_default()
    }

    /// Subjects denied in the last minute by rules in this set.
    fn counted(&self, rules: &RuleSet, slot: u64) -> Vec<LimitedSubject> {
        let found = self.entries.iter().filter_map(|Entry { bucket, denied, last_at, .. }| {
            let denied = denied.in_the_last_minute(slot);
            let rule = rules.get(bucket.rule_id).filter(|_| denied > 0)?;
            Some(LimitedSubject {
                rule: RuleName { mode: bucket.mode, ..rule.into() },
                bucket: bucket.clone(),
                denied,
                last_at: *last_at,
            })
        });
        found.collect()
    }
}

impl Entry {
    fn add(&mut self, at: Moment) {
        self.denied.add(at.slot);
        self.last_at = at.at;
    }
}

impl Slots {
    fn new(newest: u64) -> Self {
        Self { counts: [0; SLOTS], newest }
    }

    fn add(&mut self, slot: u64) {
        for skipped in (self.newest + 1..=slot).take(SLOTS) {
            self.counts[place_of(skipped)] = 0;
        }
        // Threads may arrive in a different order than they read the clock.
        self.newest = self.newest.max(slot);
        let count = &mut self.counts[place_of(self.newest)];
        *count = count.saturating_add(1);
    }

    /// Sum of the slots in the minute that ends with this one.
    fn in_the_last_minute(&self, slot: u64) -> u64 {
        let oldest = (slot.max(self.newest) + 1).saturating_sub(SLOTS as u64);
        (oldest..=self.newest).map(|slot| u64::from(self.counts[place_of(slot)])).sum()
    }
}

fn place_of(slot: u64) -> usize {
    (slot % SLOTS as u64) as usize
}

#[cfg(test)]
mod tests;
