//! Numbers of connections: a limit over all listeners, with some slots reserved for each.

/// Maximum number of slots reserved for each listener.
pub(super) const RESERVED_MAX: usize = 16;
/// At most one in this many slots is reserved for each listener.
const RESERVED_PART: usize = 16;

/// Slots of all listeners, and the number of those taken by each.
#[derive(Clone, Debug)]
pub(super) struct Room {
    /// Slots that every listener may take.
    shared: usize,
    /// Slots reserved for each listener.
    reserved: usize,
    /// Slots taken by each listener, reserved ones first.
    taken: Vec<usize>,
    total: usize,
    /// Shared slots taken.
    shared_taken: usize,
}

impl Room {
    /// `connections_max` free slots for this many listeners.
    pub(super) fn new(connections_max: usize, listeners: usize) -> Self {
        let reserved = RESERVED_MAX.min(connections_max / RESERVED_PART.max(listeners));
        Self {
            shared: connections_max - reserved * listeners,
            reserved,
            taken: vec![0; listeners],
            total: 0,
            shared_taken: 0,
        }
    }

    /// Number of slots taken.
    pub(super) fn total(&self) -> usize {
        self.total
    }

    /// Returns whether this listener may take a slot.
    pub(super) fn has_room(&self, listener: usize) -> bool {
        self.taken[listener] < self.reserved || self.shared_taken < self.shared
    }

    /// Returns whether a connection that leaves one listener makes room at another: those in reserved slots of other
    /// listeners do not.
    pub(super) fn makes_room(&self, from: usize, to: usize) -> bool {
        from == to || self.taken[from] > self.reserved
    }

    /// Takes a slot, which must be free.
    pub(super) fn take(&mut self, listener: usize) {
        debug_assert!(self.has_room(listener), "no slot is free");
        if self.taken[listener] >= self.reserved {
            self.shared_taken += 1;
        }
        self.taken[listener] += 1;
        self.total += 1;
    }

    /// Returns a slot.
    pub(super) fn give_back(&mut self, listener: usize) {
        self.taken[listener] -= 1;
        self.total -= 1;
        if self.taken[listener] >= self.reserved {
            self.shared_taken -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes all free slots of a listener, and returns their number.
    fn fill(room: &mut Room, listener: usize) -> usize {
        let before = room.total();
        while room.has_room(listener) {
            room.take(listener);
        }
        room.total() - before
    }

    #[test]
    fn no_listener_can_starve_another() {
        let mut room = Room::new(10_000, 3);
        assert_eq!(fill(&mut room, 0), 10_000 - 2 * RESERVED_MAX);
        assert_eq!((fill(&mut room, 1), fill(&mut room, 2)), (RESERVED_MAX, RESERVED_MAX));
        assert_eq!(room.total(), 10_000);
        // A slot beyond the reserve is everyone's, a reserved one its listener's.
        assert!(room.makes_room(0, 1) && !room.makes_room(1, 0) && room.makes_room(1, 1));
        room.give_back(1);
        assert!(room.has_room(1) && !room.has_room(0));
        room.give_back(0);
        assert!(room.has_room(0) && room.has_room(2));
        for _ in 0..9_967 {
            room.give_back(0);
        }
        for listener in [1, 2] {
            while room.taken[listener] > 0 {
                room.give_back(listener);
            }
        }
        assert_eq!((room.total(), room.shared_taken), (0, 0));
    }

    #[test]
    fn there_are_never_more_connections_than_the_limit() {
        for connections_max in [1, 2, 15, 16, 17, 100, 1_000_000] {
            for listeners in 1..=3 {
                let mut room = Room::new(connections_max, listeners);
                let taken: Vec<_> = (0..listeners).map(|it| fill(&mut room, it)).collect();
                assert_eq!(room.total(), connections_max);
                assert_eq!(taken.iter().sum::<usize>(), connections_max);
                assert!(connections_max < 16 || taken.iter().all(|taken| *taken > 0));
            }
        }
    }
}
