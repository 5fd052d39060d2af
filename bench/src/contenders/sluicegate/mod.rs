//! Sluicegate's three interfaces: its memory store, its limiter of typed keys, and the whole check with rules.

pub(super) mod keyed;
pub(super) mod overrides;
pub(super) mod rules;
pub(super) mod store;

use std::time::Duration;

use sluicegate::{Clock, MemoryStore, Quota};

use crate::workloads::{BURST, PERIOD_SECS};

/// A store for this number of keys and a few more: endpoints have buckets too.
fn memory<C: Clock>(clock: C, keys: u64) -> MemoryStore<C> {
    MemoryStore::builder().clock(clock).max_buckets(keys as usize * 11 / 10 + 16).build()
}

fn quota() -> Quota {
    Quota::new(1, Duration::from_secs(PERIOD_SECS))
        .and_then(|quota| quota.with_capacity(BURST.into()))
        .expect("the benchmark's quota is sound")
}
