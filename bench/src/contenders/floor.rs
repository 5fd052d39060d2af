//! Lower bound of a keyed limiter: hashes the key, and compares and subtracts under an uncontended lock, in
//! an open table that costs one cache miss. No clock, no refill, no eviction.

use std::hash::{BuildHasher, RandomState};
use std::hint::black_box;

use parking_lot::Mutex;

use super::Limiter;
use crate::workloads::BURST;

const SHARDS: usize = 64;

pub(super) struct Floor {
    hasher: RandomState,
    shards: Box<[Shard]>,
}

#[repr(align(128))]
struct Shard(Mutex<Box<[Slot]>>);

#[derive(Clone, Copy)]
struct Slot {
    /// Hash of the key; zero for a free slot.
    hash: u64,
    left: u64,
}

impl Floor {
    /// A table for this number of keys, with half as many spare slots.
    pub(super) fn new(keys: u64) -> Self {
        let slots = (keys as usize / SHARDS + 8) * 3 / 2;
        let empty = Slot { hash: 0, left: BURST.into() };
        let shard = |_| Shard(Mutex::new(vec![empty; slots].into()));
        Self { hasher: RandomState::new(), shards: (0..SHARDS).map(shard).collect() }
    }
}

impl Limiter for Floor {
    type Key = String;

    #[inline]
    fn check(&self, key: &String, cost: u32) -> bool {
        let hash = self.hasher.hash_one(key);
        let mut slots = self.shards[hash as usize % SHARDS].0.lock();
        let mut index = ((u128::from(hash) * slots.len() as u128) >> 64) as usize;
        while slots[index].hash != hash && slots[index].hash != 0 {
            index = (index + 1) % slots.len();
        }
        let slot = &mut slots[index];
        slot.hash = hash;
        let left = black_box(slot.left.checked_sub(cost.into()));
        slot.left = left.unwrap_or(slot.left);
        left.is_some()
    }
}
