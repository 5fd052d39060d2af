//! The limiter for keys of any type.

use std::hash::Hash;
use std::hint::black_box;
use std::sync::Arc;

use sluicegate::{KeyedLimiter, SystemClock};

use super::{memory, quota};
use crate::contenders::Limiter;
use crate::workloads::Key;

/// One bucket per key.
pub(in crate::contenders) struct Keyed<K>(KeyedLimiter<K>);

impl<K: Hash> Keyed<K> {
    pub(in crate::contenders) fn new(keys: u64) -> Self {
        let store = Arc::new(memory(SystemClock::new(), keys));
        Self(KeyedLimiter::on(store, "bench", quota()))
    }
}

impl<K: Key + Hash> Limiter for Keyed<K> {
    type Key = K;

    #[inline]
    fn check(&self, key: &K, cost: u32) -> bool {
        black_box(self.0.take(key, cost.into())).is_granted()
    }
}
