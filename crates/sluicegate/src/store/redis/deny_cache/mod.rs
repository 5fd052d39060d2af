//! The deny cache: charges of buckets that are known to be exhausted are denied without a call to Redis.
//!
//! An entry is the state of a denied bucket, not the verdict: the decision on any cost is computed from it.
//! It lives until the wait is over, and a second at most, so that changes of the bucket by other processes (a
//! reset, a refund) take effect within that second; changes by this process remove it at once
//! ([`DenyCache::forget`]).
//!
//! # Time
//!
//! The server's time is estimated as its time in the reply plus the time that has passed here since the
//! request was *sent*. The server read its clock after that, so the estimate is ahead of the server by the
//! latency of the request, and never behind: a charge that Redis would grant is never denied here.

#[cfg(test)]
mod tests;

use std::hash::BuildHasher;
use std::sync::Arc;

use hashbrown::{DefaultHashBuilder, HashTable};
use sluicegate_core::{Decision, Micros, Outcome, Quota};
use smallvec::SmallVec;

use super::call::{Part, Reply, Seen};
use super::decide::{decide_full, decide_seen};
use super::key::RedisKey;
use crate::clock::Clock;
use crate::rules::Mode;
use crate::store::{Charge, Decisions};
use crate::sync::{AtomicU64, AtomicUsize, Mutex, Ordering};

/// Maximum lifetime of an entry, and so of a denial after a reset by another process.
pub(super) const LIFETIME_MAX_US: u64 = 1_000_000;

/// Maximum of other tiers whose figures are cached with a denied one.
const OTHERS_MAX: usize = 8;

/// Maximum of shards, each with a lock.
const SHARDS_MAX: usize = 64;

/// Number of entries that are tried for eviction when a shard is full: an expired one is preferred.
const EVICTION_LOOKS: usize = 8;

/// Interval of removing expired entries from a shard.
const SWEEP_PAUSE_US: u64 = LIFETIME_MAX_US;

/// Cache of denied buckets; see the module's documentation.
#[derive(Debug)]
pub(super) struct DenyCache<C> {
    clock: C,
    hasher: DefaultHashBuilder,
    /// Empty if the cache is switched off.
    shards: Box<[Mutex<Shard>]>,
    /// Entries in all shards.
    len: AtomicUsize,
    /// Number of calls of [`forget`](Self::forget).
    forgets: AtomicU64,
    hits: AtomicU64,
}

/// Time at which a request was sent, and the number of invalidations before it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ticket {
    forgets: u64,
    sent_at: Micros,
}

/// Figures of a [`DenyCache`], for metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DenyCacheStats {
    /// Current entries, including expired ones.
    pub(super) entries: usize,
    /// Charges that were answered from the cache.
    pub(super) hits: u64,
}

#[derive(Debug)]
struct Shard {
    entries: HashTable<Entry>,
    entries_max: usize,
    /// Number of the last invalidation in this shard.
    forgotten: u64,
    swept_at: Micros,
}

/// A denied bucket.
#[derive(Clone, Debug)]
struct Entry {
    key: RedisKey,
    quota: Quota,
    seen: Seen,
    /// Cost that was denied.
    cost: u64,
    /// Time of the server at the denial.
    server_now: Micros,
    sent_at: Micros,
    lifetime_us: u64,
    /// Last figures of the other tiers of the charge.
    others: Option<Others>,
}

type Others = Arc<[(RedisKey, Decision)]>;

/// A cached denial, and the figures of the other tiers.
struct Known {
    /// Index of the denied charge.
    number: usize,
    decision: Decision,
    others: Option<Others>,
    elapsed_us: u64,
    server_now: Micros,
}

// ===== impl DenyCache =====

impl<C: Clock> DenyCache<C> {
    /// A cache of at most `max_entries`; zero switches it off. `clock` must be monotonic.
    pub(super) fn new(max_entries: usize, clock: C) -> Self {
        let shards = max_entries.min(SHARDS_MAX);
        // The remainder goes to the first shards: together they hold exactly `max_entries`.
        let shard = |number| Shard {
            entries: HashTable::new(),
            entries_max: max_entries / shards + usize::from(number < max_entries % shards),
            forgotten: 0,
            swept_at: clock.now(),
        };
        Self {
            shards: (0..shards).map(|number| Mutex::new(shard(number))).collect(),
            clock,
            hasher: DefaultHashBuilder::default(),
            len: AtomicUsize::new(0),
            forgets: AtomicU64::new(0),
            hits: AtomicU64::new(0),
        }
    }

    /// Takes a ticket right before a charge is sent, for [`insert`](Self::insert) with the reply.
    pub(super) fn ticket(&self) -> Ticket {
        Ticket { forgets: self.forgets.load(Ordering::Relaxed), sent_at: self.clock.now() }
    }

    /// Caches the enforced parts that denied a charge, except a bucket that may have been invalidated since
    /// the ticket was taken: the denial may be older than the reset. Entries of buckets that a granted charge
    /// has taken from are removed: fewer tokens are left, and the cached wait would be too short.
    pub(super) fn insert(
        &self,
        ticket: Ticket,
        parts: &[Part],
        reply: &Reply,
        decisions: &[Decision],
    ) {
        if reply.done {
            self.drop_spent(ticket, parts, decisions);
            return;
        }
        if self.shards.is_empty() {
            return;
        }
        let others = (parts.len() > 1).then(|| {
            let all = parts.iter().zip(decisions).take(OTHERS_MAX + 1);
            all.map(|(part, decision)| (part.key.clone(), *decision)).collect()
        });
        for ((part, seen), decision) in parts.iter().zip(&reply.seen).zip(decisions) {
            if part.mode != Mode::Enforce || decision.is_granted() {
                continue;
            }
            let entry = Entry {
                key: part.key.clone(),
                quota: part.quota,
                seen: *seen,
                cost: part.cost,
                server_now: reply.now,
                sent_at: ticket.sent_at,
                // A charge that can never be granted has the longest lifetime.
                lifetime_us: decision.outcome.wait().min(LIFETIME_MAX_US),
                others: others.clone(),
            };
            self.insert_entry(ticket, entry);
        }
    }

    /// Removes entries that are older than a granted charge of their buckets.
    fn drop_spent(&self, ticket: Ticket, parts: &[Part], decisions: &[Decision]) {
        if self.len.load(Ordering::Relaxed) == 0 {
            return;
        }
        let now = self.clock.now();
        let charged = parts.iter().zip(decisions).filter(|(_, decision)| decision.is_granted());
        for (part, _) in charged.filter(|(part, _)| part.cost > 0 && !part.is_probe) {
            self.with_shard(&part.key, now, |shard, hash| {
                // Replies may overtake each other: the request that was sent later is newer.
                let is_older =
                    |held: &Entry| held.key == part.key && held.sent_at <= ticket.sent_at;
                if let Ok(entry) = shard.entries.find_entry(hash, is_older) {
                    entry.remove();
                }
            });
        }
    }

    fn insert_entry(&self, ticket: Ticket, entry: Entry) {
        let now = self.clock.now();
        if entry.elapsed_us::<C>(now).is_none() {
            return;
        }
        let key = entry.key.clone();
        self.with_shard(&key, now, |shard, hash| {
            // An invalidation counts first and then takes the lock. So either its count is seen here, or it
            // takes the lock after this, and removes the entry that is inserted now.
            if shard.forgotten > ticket.forgets {
                return;
            }
            if let Some(held) = shard.entries.find_mut(hash, |held| held.key == key) {
                // Replies may overtake each other.
                if held.sent_at <= entry.sent_at {
                    *held = entry;
                }
                return;
            }
            if shard.entries.len() >= shard.entries_max {
                shard.evict::<C>(now);
            }
            shard.entries.insert_unique(hash, entry, |entry| self.hasher.hash_one(&entry.key));
        });
    }

    /// The decisions on a charge that is known to be denied: the denied tier's, with the wait counted down,
    /// and the last figures of the others. `None`: Redis must be asked.
    pub(super) fn answer(&self, charges: &[Charge<'_, RedisKey>]) -> Option<Decisions> {
        if self.len.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let now = self.clock.now();
        let known = self.known_denial(charges, now).filter(|_| !has_twins(charges));
        let known = known?;
        self.hits.fetch_add(1, Ordering::Relaxed);
        let decide = |(number, charge)| {
            if number == known.number {
                return known.decision;
            }
            self.own_entry(charge, now).unwrap_or_else(|| known.other(charge))
        };
        Some(charges.iter().enumerate().map(decide).collect())
    }

    /// The first enforced charge that an entry denies.
    fn known_denial(&self, charges: &[Charge<'_, RedisKey>], now: Micros) -> Option<Known> {
        let enforced = charges.iter().enumerate().filter(|(_, c)| c.mode == Mode::Enforce);
        enforced.filter(|(_, charge)| charge.cost > 0).find_map(|(number, charge)| {
            self.with_entry(charge, now, |entry, elapsed_us| {
                let decision = entry.decide(charge.cost, elapsed_us)?;
                let server_now = entry.server_now(elapsed_us);
                let others = entry.others.clone();
                let known = Known { number, decision, others, elapsed_us, server_now };
                (!decision.is_granted()).then_some(known)
            })
        })
    }

    /// The decision of the entry of another tier of a denied charge.
    fn own_entry(&self, charge: &Charge<'_, RedisKey>, now: Micros) -> Option<Decision> {
        self.with_entry(charge, now, |entry, elapsed_us| {
            let decision = entry.decide(charge.cost, elapsed_us)?;
            if decision.is_granted() { entry.decide(0, elapsed_us) } else { Some(decision) }
        })
    }

    /// Calls `read` with the entry of a charge, if there is one that has not expired, and the time since its
    /// request was sent.
    fn with_entry<T>(
        &self,
        charge: &Charge<'_, RedisKey>,
        now: Micros,
        read: impl FnOnce(&Entry, u64) -> Option<T>,
    ) -> Option<T> {
        self.with_shard(charge.key, now, |shard, hash| {
            let entry = shard.entries.find(hash, |entry| entry.key == *charge.key)?;
            let is_current = entry.quota == *charge.quota;
            let elapsed_us = entry.elapsed_us::<C>(now).filter(|_| is_current)?;
            read(entry, elapsed_us)
        })
    }

    /// Invalidates a bucket after a reset or a refund. Must be called after the store has done that; denials
    /// that are pending then are not cached either.
    pub(super) fn forget(&self, key: &RedisKey) {
        let number = self.forgets.fetch_add(1, Ordering::Relaxed) + 1;
        self.with_shard(key, self.clock.now(), |shard, hash| {
            shard.forgotten = shard.forgotten.max(number);
            if let Ok(entry) = shard.entries.find_entry(hash, |entry| entry.key == *key) {
                entry.remove();
            }
        });
    }

    /// Current figures.
    pub(super) fn stats(&self) -> DenyCacheStats {
        DenyCacheStats {
            entries: self.len.load(Ordering::Relaxed),
            hits: self.hits.load(Ordering::Relaxed),
        }
    }

    /// Locks the shard of a key, if there is any, and removes expired entries if that is due.
    fn with_shard<T: Default>(
        &self,
        key: &RedisKey,
        now: Micros,
        body: impl FnOnce(&mut Shard, u64) -> T,
    ) -> T {
        if self.shards.is_empty() {
            return T::default();
        }
        let hash = self.hasher.hash_one(key);
        // The table uses the lowest and the highest bits.
        let number = (hash >> 32) as usize % self.shards.len();
        self.change(&mut self.shards[number].lock(), |shard| {
            if now.since(shard.swept_at).as_micros() >= u128::from(SWEEP_PAUSE_US) {
                shard.entries.retain(|entry| entry.elapsed_us::<C>(now).is_some());
                shard.swept_at = now;
            }
            body(shard, hash)
        })
    }

    /// Changes a shard, and updates the count of entries.
    fn change<T>(&self, shard: &mut Shard, body: impl FnOnce(&mut Shard) -> T) -> T {
        let before = shard.entries.len();
        let result = body(shard);
        let after = shard.entries.len();
        if after > before {
            self.len.fetch_add(after - before, Ordering::Relaxed);
        } else if after < before {
            self.len.fetch_sub(before - after, Ordering::Relaxed);
        }
        result
    }
}

// ===== impl Shard, Entry, Known =====

impl Shard {
    /// Evicts one entry: an expired one if one is quickly found, else any. Eviction is always safe: Redis is
    /// asked then.
    fn evict<C: Clock>(&mut self, now: Micros) {
        let looks = EVICTION_LOOKS.min(self.entries.len());
        let mut looked = 0;
        let is_chosen = |entry: &mut Entry| {
            looked += 1;
            looked == looks || entry.elapsed_us::<C>(now).is_none()
        };
        self.entries.extract_if(is_chosen).next();
    }
}

impl Entry {
    /// Microseconds since the request was sent; `None` if the entry has expired, or the clock stepped back.
    fn elapsed_us<C: Clock>(&self, now: Micros) -> Option<u64> {
        // A clock reading may be this much too early, and the estimate must not be behind.
        let ahead = now.get().saturating_add(C::SKEW_US);
        ahead.checked_sub(self.sent_at.get()).filter(|elapsed_us| *elapsed_us < self.lifetime_us)
    }

    /// Estimate of the server's time, never behind it: see the module's documentation.
    fn server_now(&self, elapsed_us: u64) -> Micros {
        Micros::new(self.server_now.get().saturating_add(elapsed_us))
    }

    /// The decision on a cost now. For a log, only the wait of the denied cost is known.
    fn decide(&self, cost: u64, elapsed_us: u64) -> Option<Decision> {
        let is_known = match self.seen {
            Seen::State(_) => true,
            Seen::Log { .. } => cost == self.cost || cost == 0,
        };
        let now = self.server_now(elapsed_us);
        decide_seen(&self.quota, self.seen, now, cost).ok().filter(|_| is_known)
    }
}

impl Known {
    /// The figures of another tier without an entry: its last ones, else those of a full bucket. An enforced
    /// one that denied would have an entry, unless that was invalidated: it is shown as granted.
    fn other(&self, charge: &Charge<'_, RedisKey>) -> Decision {
        let limit = charge.quota.capacity();
        let remembered = self.others.iter().flat_map(|others| others.iter());
        let last = remembered
            .filter(|(key, decision)| key == charge.key && decision.limit == limit)
            .map(|(_, decision)| *decision)
            .next();
        let figures = last.unwrap_or_else(|| decide_full(charge.quota, self.server_now, 0));
        let wait_us = match figures.outcome {
            Outcome::Denied { retry_after } => retry_after.saturating_sub(self.elapsed_us),
            Outcome::Granted { .. } | Outcome::Never => 0,
        };
        let outcome = match charge.cost {
            0 => Outcome::Granted { delay: 0 },
            cost if cost > limit => Outcome::Never,
            _ if wait_us > 0 && charge.mode != Mode::Enforce => {
                Outcome::Denied { retry_after: wait_us }
            }
            _ => Outcome::Granted { delay: 0 },
        };
        Decision { outcome, ..figures }
    }
}

/// Is a bucket charged twice? Its cost is a sum then, which the cache does not handle.
fn has_twins(charges: &[Charge<'_, RedisKey>]) -> bool {
    let keys: SmallVec<[&RedisKey; 4]> = charges.iter().map(|charge| charge.key).collect();
    keys.iter().enumerate().any(|(number, key)| keys[..number].contains(key))
}
