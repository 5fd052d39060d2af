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
    shared: Places,
    /// Slots reserved for each listener.
    reserved: Vec<Places>,
}

/// Slots available to one listener. Clones share state.
#[derive(Clone, Debug)]
pub(crate) struct Room {
    reserved: Arc<Semaphore>,
    shared: Arc<Semaphore>,
}

/// Slot of a connection, released when dropped.
pub(super) type Slot = OwnedSemaphorePermit;

#[derive(Debug)]
struct Places {
    free: Arc<Semaphore>,
    all: usize,
}

impl Slots {
    /// `connections_max` slots over `doors` listeners.
    pub(crate) fn new(connections_max: usize, doors: usize) -> Self {
        let each = RESERVED_MAX.min(connections_max / RESERVED_PART.max(doors));
        Self {
            shared: Places::new(connections_max - each * doors),
            reserved: (0..doors).map(|_| Places::new(each)).collect(),
        }
    }

    /// Slots of each listener.
    pub(crate) fn rooms(&self) -> impl Iterator<Item = Room> {
        self.reserved.iter().map(|reserved| Room {
            reserved: Arc::clone(&reserved.free),
            shared: Arc::clone(&self.shared.free),
        })
    }

    /// Number of open connections.
    pub(crate) fn taken(&self) -> usize {
        self.places().map(Places::taken).sum()
    }

    /// Waits until no connection is open. No slot may be taken any more.
    pub(crate) async fn all_free(&self) {
        for places in self.places() {
            places.all_free().await;
        }
    }

    fn places(&self) -> impl Iterator<Item = &Places> {
        self.reserved.iter().chain([&self.shared])
    }
}

impl Room {
    /// Takes a slot if one is free, reserved ones first.
    pub(super) fn take(&self) -> Option<Slot> {
        let take = |places: &Arc<Semaphore>| Arc::clone(places).try_acquire_owned().ok();
        take(&self.reserved).or_else(|| take(&self.shared))
    }
}

impl Places {
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
    fn fill(room: &Room) -> Vec<Slot> {
        std::iter::from_fn(|| room.take()).collect()
    }

    #[tokio::test]
    async fn no_listener_can_starve_another() {
        let slots = Slots::new(10_000, 3);
        let rooms: Vec<_> = slots.rooms().collect();
        let first = fill(&rooms[0]);
        assert_eq!(first.len(), 10_000 - 2 * RESERVED_MAX);
        assert_eq!(fill(&rooms[1]).len(), RESERVED_MAX);
        let second = fill(&rooms[1]);
        let third = fill(&rooms[2]);
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
                let taken: Vec<_> = slots.rooms().map(|room| fill(&room)).collect();
                assert_eq!(slots.taken(), connections_max);
                assert_eq!(taken.iter().map(Vec::len).sum::<usize>(), connections_max);
                assert!(connections_max < 16 || taken.iter().all(|taken| !taken.is_empty()));
            }
        }
    }
}
