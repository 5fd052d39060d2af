//! The partition of the store's room, so that a flood of one kind of key denies no other.
//!
//! ```text
//!   max_buckets   without a rule: take_buckets_max | rest: one half reserves of rules, one half common
//!   outside       one bucket of each rule without placeholders, overflow buckets of each rule and of take
//! ```
//!
//! - Every rule in force that has placeholders, and every named limiter, has an equal part of one half of the rest as a
//!   reserve, which is never lent. Beyond its reserve it uses the other half, with all others.
//! - Entries of logs are divided in the same way, among the rules in force whose quota is an exact sliding window. Half
//!   of such a rule's reserve is for the logs of its overflow buckets; a rule without placeholders has all of it for its
//!   only log.
//! - The bucket of a rule without placeholders and the overflow bucket of a rule's quota are always available: there
//!   are as many as rules, which clients cannot choose. They are evicted when they are full, as all buckets, also after
//!   the rule was deleted.
//! - When rules are added, the reserves shrink. Buckets beyond a smaller reserve stay until they are full, and count as
//!   common meanwhile; a new rule has its reserve as soon as enough of them are evicted, and its overflow bucket at once.
//!
//! Each bucket is counted by the account that it was added under (see `shard`), whatever rules are in force when it is
//! evicted. A rule that comes back, such as one that was not active for a while, has the same account again as long as
//! any of its buckets are stored, so that these are within its reserve.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use arc_swap::ArcSwap;
use sluicegate_core::Quota;

use super::account::{Account, Budget, Reserves, RoomOwner};
use super::key::MemoryKey;
use super::pool::Pool;
use crate::rules::{Mode, Rule, RuleSet};
use crate::sync::Mutex;

/// Maximum of entries in all logs of exact sliding windows together, per bucket of `max_buckets`. Beyond
/// that nothing is added to a log: its bucket denies.
const LOG_ENTRIES_PER_BUCKET: usize = 4;

/// Room of a store; see the module's documentation.
#[derive(Debug)]
pub(super) struct Room {
    rules: Arc<Budget>,
    take: Arc<Account>,
    take_budget: Arc<Budget>,
    /// Account of all spaces that are not registered.
    other: Arc<Account>,
    /// Accounts by space, for readers without the lock.
    accounts: ArcSwap<HashMap<u64, Arc<Account>>>,
    spaces: Mutex<Spaces>,
}

/// Spaces that have or had an account of their own.
#[derive(Debug, Default)]
struct Spaces {
    registered: HashMap<u64, Registered>,
    /// Accounts of spaces that are no longer registered, while buckets are stored under them.
    former: HashMap<u64, Weak<Account>>,
}

/// A space with an account of its own.
#[derive(Debug)]
struct Registered {
    account: Arc<Account>,
    keeps_log: bool,
    /// Number of limiters that use it.
    limiters: usize,
}

/// Reserved room in a store, as long as this value lives; see [`Store::reserve_room`](crate::Store::reserve_room).
#[derive(Debug, Default)]
pub struct ReservedRoom {
    room: Option<Arc<Room>>,
    spaces: Vec<u64>,
}

impl Room {
    /// Room for `max_buckets`, of which `take_buckets_max` are for buckets without a rule.
    pub(super) fn new(max_buckets: usize, take_buckets_max: usize) -> Self {
        let take = take_buckets_max.min(max_buckets);
        let budget = |buckets: usize| {
            let logs = Pool::new(buckets.saturating_mul(LOG_ENTRIES_PER_BUCKET));
            Arc::new(Budget { buckets: Pool::new(buckets), logs })
        };
        let (rules, take_budget) = (budget(max_buckets - take), budget(take));
        Self {
            take: Account::new(RoomOwner::Take, &take_budget),
            take_budget,
            other: Account::new(RoomOwner::Other, &rules),
            rules,
            accounts: ArcSwap::default(),
            spaces: Mutex::new(Spaces::default()),
        }
    }

    /// Account of a key's bucket.
    pub(super) fn account(&self, key: &MemoryKey) -> Arc<Account> {
        if key.is_take() {
            return Arc::clone(&self.take);
        }
        let accounts = self.accounts.load();
        Arc::clone(accounts.get(&key.space).unwrap_or(&self.other))
    }

    /// Buckets within the budgets.
    pub(super) fn buckets(&self) -> usize {
        self.rules.buckets.used() + self.take_buckets()
    }

    /// Maximum of buckets within the budgets.
    pub(super) fn max_buckets(&self) -> usize {
        self.rules.buckets.max() + self.take_buckets_max()
    }

    pub(super) fn take_buckets(&self) -> usize {
        self.take_budget.buckets.used()
    }

    pub(super) fn take_buckets_max(&self) -> usize {
        self.take_budget.buckets.max()
    }

    /// Charges that found no room, by owner, in order.
    pub(super) fn overflows(&self) -> Vec<(RoomOwner, u64)> {
        let accounts = self.accounts.load();
        let all = accounts.values().chain([&self.take, &self.other]);
        let mut counts = HashMap::new();
        for account in all {
            *counts.entry(account.owner()).or_default() += account.overflowed();
        }
        let mut counts: Vec<_> = counts.into_iter().collect();
        counts.sort_unstable();
        counts
    }

    /// Reserves room for the rules in this set that charge buckets.
    pub(super) fn reserve_for_rules(self: &Arc<Self>, rules: &RuleSet) -> ReservedRoom {
        let charging = rules.rules().iter().filter(|rule| is_charging(rule));
        let spaces = charging.map(|rule| {
            let is_keyed = !rule.key_pattern().attributes().is_empty();
            let key = MemoryKey::of_rule(rule.rule_id(), is_keyed);
            (key, RoomOwner::Rule(rule.rule_id()), *rule.quota())
        });
        self.reserve(spaces)
    }

    /// Reserves room for a named limiter.
    pub(super) fn reserve_for_named(
        self: &Arc<Self>,
        key: &MemoryKey,
        quota: &Quota,
    ) -> ReservedRoom {
        self.reserve([(*key, RoomOwner::Other, *quota)].into_iter())
    }

    fn reserve(
        self: &Arc<Self>,
        spaces: impl Iterator<Item = (MemoryKey, RoomOwner, Quota)>,
    ) -> ReservedRoom {
        let mut all = self.spaces.lock();
        let Spaces { registered, former } = &mut *all;
        let mut reserved = ReservedRoom { room: Some(Arc::clone(self)), spaces: Vec::new() };
        for (key, owner, quota) in spaces {
            let entry = registered.entry(key.space).or_insert_with(|| {
                let account = former.remove(&key.space).and_then(|account| account.upgrade());
                let account = account.unwrap_or_else(|| Account::new(owner, &self.rules));
                Registered { account, keeps_log: false, limiters: 0 }
            });
            entry.keeps_log = quota.keeps_log();
            entry.limiters += 1;
            entry.account.set_overflow_always(key.overflow(&quota).hash);
            reserved.spaces.push(key.space);
        }
        self.divide(registered);
        reserved
    }

    fn release(&self, spaces: &[u64]) {
        let mut all = self.spaces.lock();
        let Spaces { registered, former } = &mut *all;
        for space in spaces {
            if let Some(entry) = registered.get_mut(space) {
                entry.limiters -= 1;
                if entry.limiters == 0 {
                    entry.account.lower_reserves(Reserves::default());
                    former.insert(*space, Arc::downgrade(&entry.account));
                    registered.remove(space);
                }
            }
        }
        self.divide(registered);
        // No more than there are accounts with buckets.
        former.retain(|_, account| account.strong_count() > 0);
    }

    /// Divides the reserves among the registered spaces, and publishes their accounts.
    fn divide(&self, registered: &HashMap<u64, Registered>) {
        let count = |is_counted: fn(u64, &Registered) -> bool| {
            registered.iter().filter(|(space, entry)| is_counted(**space, entry)).count()
        };
        let (keyed, logs) = (count(|space, _| is_keyed(space)), count(|_, entry| entry.keeps_log));
        let part = |pool: &Pool, parts: usize| (pool.max() / 2).checked_div(parts).unwrap_or(0);
        let Budget { buckets: bucket_pool, logs: log_pool } = &*self.rules;
        let (buckets, logs_each) = (part(bucket_pool, keyed), part(log_pool, logs));
        let reserves = |space: u64, entry: &Registered| {
            let logs = if entry.keeps_log { logs_each } else { 0 };
            let own = if is_keyed(space) { logs / 2 } else { 0 };
            let buckets = if is_keyed(space) { buckets } else { 0 };
            Reserves { buckets, logs: own, logs_apart: logs - own }
        };
        for (space, entry) in registered {
            entry.account.lower_reserves(reserves(*space, entry));
        }
        bucket_pool.set_reserved(buckets * keyed);
        log_pool.set_reserved(logs_each * logs);
        for (space, entry) in registered {
            entry.account.raise_reserves(reserves(*space, entry));
        }
        let account = |(space, entry): (&u64, &Registered)| (*space, Arc::clone(&entry.account));
        self.accounts.store(Arc::new(registered.iter().map(account).collect()));
    }
}

/// Does the rule charge buckets?
fn is_charging(rule: &Rule) -> bool {
    rule.is_active() && rule.mode() != Mode::Unlimited
}

/// Do the buckets of this space have keys of their own?
fn is_keyed(space: u64) -> bool {
    space & 1 == 1
}

impl Drop for ReservedRoom {
    fn drop(&mut self) {
        if let Some(room) = &self.room {
            room.release(&self.spaces);
        }
    }
}
