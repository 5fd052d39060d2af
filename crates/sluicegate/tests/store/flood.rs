//! E1, T41: a flood of random keys against a store that is full of buckets which must not be evicted. It
//! neither resets a bucket nor lifts a limit, and all memory is freed when it is over.

use sluicegate::{LocalStore, ManualClock, MemoryKey, MemoryStore, OnFull, Quota, Space, Store};

use crate::store::churn::Numbers;
use crate::store::naive::{Naive, Part};
use crate::store::support::{ManualStore, NOON, key, part, peek, sweep_all, tokens};

const MAX_BUCKETS: usize = 100_000;
const FLOOD: u64 = 5_000_000;
/// Quota of each key of the flooded rule, and so of all keys together that find no room.
const TOKENS: u64 = 100;

/// A store under a flood, an exhausted bucket, and some keys that continue as usual.
struct Flood {
    store: ManualStore,
    clock: ManualClock,
    quota: Quota,
    victim: MemoryKey,
    known: Vec<MemoryKey>,
    oracle: Naive,
    numbers: Numbers,
}

impl Flood {
    fn new(on_full: OnFull) -> Self {
        let clock = ManualClock::new(NOON);
        let builder =
            MemoryStore::builder().max_buckets(MAX_BUCKETS).take_buckets_max(0).on_full(on_full);
        let store = builder.clock(clock.clone()).build();
        let (quota, victim) = (tokens(TOKENS), key(&store, "victim"));
        assert!(store.charge_one_now(part(&victim, &quota, TOKENS)).is_granted());
        let known = (0..1000).map(|name| key(&store, &format!("known {name}"))).collect();
        let mut oracle = Naive::default();
        oracle.now = NOON;
        let mut flood = Self { store, clock, quota, victim, known, oracle, numbers: Numbers(41) };
        (0..1000).for_each(|name| flood.charge_known(name, 1));
        flood
    }

    /// Charges a key that has a bucket: the flood must make no difference.
    fn charge_known(&mut self, name: usize, cost: u64) {
        let mode = sluicegate::Mode::Enforce;
        let expected =
            self.oracle.charge(&[Part { name, quota: self.quota, cost, mode, is_probe: false }]);
        let decision = self.store.charge_one_now(part(&self.known[name], &self.quota, cost));
        assert_eq!(decision, expected[0], "known {name}");
    }

    /// Charges this many new keys, and returns how many of them were granted.
    fn pour(&mut self, keys: u64) -> u64 {
        let mut granted = 0;
        for poured in 0..keys {
            let name = [self.numbers.below(u64::MAX), poured].map(u64::to_le_bytes);
            let new = self.store.key(Space::Rule(1), &[name.as_flattened()]);
            granted +=
                u64::from(self.store.charge_one_now(part(&new, &self.quota, 1)).is_granted());
            if poured % 500 == 0 {
                let (name, cost) = (self.numbers.below(1000) as usize, self.numbers.below(4));
                self.charge_known(name, cost);
                assert!(
                    !self.store.charge_one_now(part(&self.victim, &self.quota, 1)).is_granted()
                );
                assert!(self.store.stats().buckets <= MAX_BUCKETS);
            }
        }
        granted
    }

    /// Number of further buckets that fit.
    fn room(&self) -> u64 {
        (MAX_BUCKETS - self.store.stats().buckets) as u64
    }

    /// The flood is over and all buckets are full: sweeps evict everything, and new keys are served.
    fn dry_up(&mut self) {
        assert!(!self.store.charge_one_now(part(&self.victim, &self.quota, 1)).is_granted());
        self.clock.advance(self.quota.time_to_full());
        sweep_all(&self.store);
        assert_eq!(self.store.stats().buckets, 0);
        let overflowed = self.store.stats().overflowed;
        let new = key(&self.store, "after the flood");
        let decision = self.store.charge_one_now(part(&new, &self.quota, 1));
        assert!(decision.is_granted() && decision.remaining == TOKENS - 1);
        assert_eq!(peek(&self.store, &self.victim, &self.quota).remaining, TOKENS);
        assert_eq!(self.store.stats().overflowed, overflowed);
    }
}

/// Five million random keys: those that find room have a bucket each, all others share one.
#[test]
fn t41_a_flood_of_random_keys_lifts_no_limit() {
    let mut flood = Flood::new(OnFull::Overflow);
    let room = flood.room();
    assert_eq!(flood.pour(FLOOD), room + TOKENS);
    assert_eq!(flood.store.stats().overflowed, FLOOD - room);
    flood.dry_up();
}

/// The same if new keys are denied: none of them is granted.
#[test]
fn t41_a_flood_is_denied_where_new_keys_are() {
    let mut flood = Flood::new(OnFull::Deny);
    let room = flood.room();
    assert_eq!(flood.pour(500_000), room);
    assert_eq!(flood.store.stats().overflowed, 500_000 - room);
    flood.dry_up();
}
