//! Sluicegate's three interfaces: its memory store, its limiter of typed keys, and the whole check with rules.

pub(super) mod keyed;
pub(super) mod overrides;
pub(super) mod rules;
pub(super) mod store;

use std::time::Duration;

use sluicegate::{Clock, MemoryStore, Quota};

use crate::workloads::{BURST, PERIOD_SECS};

/// A store for this number of keys and a few more: endpoints have buckets too. With rules, half of it may be reserved for
/// other rules.
fn memory<C: Clock>(clock: C, keys: u64) -> MemoryStore<C> {
    let max_buckets = keys as usize * 11 / 10 + 16;
    MemoryStore::builder().clock(clock).max_buckets(max_buckets).take_buckets_max(0).build()
}

fn quota() -> Quota {
    Quota::new(1, Duration::from_secs(PERIOD_SECS))
        .and_then(|quota| quota.with_capacity(BURST.into()))
        .expect("the benchmark's quota is sound")
}
