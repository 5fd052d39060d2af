//! Connection slots: a limit over all listeners, with some slots reserved for each.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Maximum number of slots reserved for each listener.
const RESERVED_MAX: usize = 16;
/// At most one in this many slots is reserved for each listener.
const RESERVED_PART: usize = 16;

/// Connection slots of all listeners.
#[derive(Debug)]
pub(crate) struct Slots {
    shared: SlotPool,
    /// Slots reserved for each listener.
    reserved: Vec<SlotPool>,
}

/// Slots available to one listener. Clones share state.
#[derive(Clone, Debug)]
pub(crate) struct ListenerSlots {
    reserved: Arc<Semaphore>,
    shared: Arc<Semaphore>,
}

/// Slot of a connection, released when dropped.
pub(super) type Slot = OwnedSemaphorePermit;

#[derive(Debug)]
struct SlotPool {
    free: Arc<Semaphore>,
    all: usize,
}

impl Slots {
    /// `connections_max` slots over `doors` listeners.
    pub(crate) fn new(connections_max: usize, doors: usize) -> Self {
        let each = RESERVED_MAX.min(connections_max / RESERVED_PART.max(doors));
        Self {
            shared: SlotPool::new(connections_max - each * doors),
            reserved: (0..doors).map(|_| SlotPool::new(each)).collect(),
        }
    }

    /// Slots of each listener.
    pub(crate) fn per_listener(&self) -> impl Iterator<Item = ListenerSlots> {
        self.reserved.iter().map(|reserved| ListenerSlots {
            reserved: Arc::clone(&reserved.free),
            shared: Arc::clone(&self.shared.free),
        })
    }

    /// Number of open connections.
    pub(crate) fn taken(&self) -> usize {
        self.pools().map(SlotPool::taken).sum()
    }

    /// Waits until no connection is open. No slot may be taken any more.
    pub(crate) async fn all_free(&self) {
        for pools in self.pools() {
            pools.all_free().await;
        }
    }

    fn pools(&self) -> impl Iterator<Item = &SlotPool> {
        self.reserved.iter().chain([&self.shared])
    }
}

impl ListenerSlots {
    /// Takes a slot if one is free, reserved ones first.
    pub(super) fn take(&self) -> Option<Slot> {
        let take = |pools: &Arc<Semaphore>| Arc::clone(pools).try_acquire_owned().ok();
        take(&self.reserved).or_else(|| take(&self.shared))
    }
}

impl SlotPool {
    fn new(all: usize) -> Self {
        Self { free: Arc::new(Semaphore::new(all)), all }
    }

    fn taken(&self) -> usize {
        self.all - self.free.available_permits()
    }

    async fn all_free(&self) {
        let all = u32::try_from(self.all).unwrap_or(u32::MAX);
        // The semaphore is never closed.
        let _ = self.free.acquire_many(all).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes all free slots.
    fn fill(slots: &ListenerSlots) -> Vec<Slot> {
        std::iter::from_fn(|| slots.take()).collect()
    }

    #[tokio::test]
    async fn no_listener_can_starve_another() {
        let slots = Slots::new(10_000, 3);
        let listeners: Vec<_> = slots.per_listener().collect();
        let first = fill(&listeners[0]);
        assert_eq!(first.len(), 10_000 - 2 * RESERVED_MAX);
        assert_eq!(fill(&listeners[1]).len(), RESERVED_MAX);
        let second = fill(&listeners[1]);
        let third = fill(&listeners[2]);
        assert_eq!((second.len(), third.len()), (RESERVED_MAX, RESERVED_MAX));
        assert_eq!(slots.taken(), 10_000);
        drop((first, second, third));
        slots.all_free().await;
        assert_eq!(slots.taken(), 0);
    }

    #[test]
    fn there_are_never_more_connections_than_the_limit() {
        for connections_max in [1, 2, 15, 16, 17, 100, 1_000_000] {
            for doors in 1..=3 {
                let slots = Slots::new(connections_max, doors);
                let taken: Vec<_> = slots.per_listener().map(|slots| fill(&slots)).collect();
                assert_eq!(slots.taken(), connections_max);
                assert_eq!(taken.iter().map(Vec::len).sum::<usize>(), connections_max);
                assert!(connections_max < 16 || taken.iter().all(|taken| !taken.is_empty()));
            }
        }
    }
}
