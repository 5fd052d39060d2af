//! Room for connections: as many as may be over all doors, and some that only one door has.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// So many connections each door can always take, however many come through the others.
const RESERVED_MAX: usize = 16;
/// Where there may be few connections in all, no more than one in so many is kept for each door.
const RESERVED_PART: usize = 16;

/// Room for connections, over all doors.
#[derive(Debug)]
pub(crate) struct Slots {
    shared: Places,
    /// What is kept for each door.
    reserved: Vec<Places>,
}

/// The room of one door. Clones are the same.
#[derive(Clone, Debug)]
pub(crate) struct Room {
    reserved: Arc<Semaphore>,
    shared: Arc<Semaphore>,
}

/// The place of a connection, free again when this is dropped.
pub(super) type Slot = OwnedSemaphorePermit;

#[derive(Debug)]
struct Places {
    free: Arc<Semaphore>,
    all: usize,
}

impl Slots {
    /// Room for so many, over so many doors.
    pub(crate) fn new(connections_max: usize, doors: usize) -> Self {
        let each = RESERVED_MAX.min(connections_max / RESERVED_PART.max(doors));
        Self {
            shared: Places::new(connections_max - each * doors),
            reserved: (0..doors).map(|_| Places::new(each)).collect(),
        }
    }

    /// The room of each door.
    pub(crate) fn rooms(&self) -> impl Iterator<Item = Room> {
        self.reserved.iter().map(|reserved| Room {
            reserved: Arc::clone(&reserved.free),
            shared: Arc::clone(&self.shared.free),
        })
    }

    /// How many connections there are.
    pub(crate) fn taken(&self) -> usize {
        self.places().map(Places::taken).sum()
    }

    /// Waits until there is none. Nobody may take a place any more.
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
    /// A place, if there is one: of those that are kept for this door first.
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
        // Nobody closes the semaphore.
        let _ = self.free.acquire_many(all).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes all there is.
    fn fill(room: &Room) -> Vec<Slot> {
        std::iter::from_fn(|| room.take()).collect()
    }

    #[tokio::test]
    async fn no_door_can_shut_another() {
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
    fn there_are_never_more_than_there_may_be() {
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
