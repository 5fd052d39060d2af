//! Logs of a shard's exact sliding windows, which do not fit a slot.

use sluicegate_core::sliding_window::{Edit, Entry};

/// Capacity below which a buffer is not shrunk.
const CAPACITY_MIN: usize = 4;

/// Logs by number; numbers of removed logs are reused.
#[derive(Debug, Default)]
pub(super) struct Logs {
    buffers: Vec<Buffer>,
    free: Vec<u64>,
    /// Entries in all logs, without those that have left their windows.
    len: usize,
}

/// Entries from `start` on; those before have left the window and are drained later. They are never more than the
/// others, and the capacity is at most four times the number of the others, but at least [`CAPACITY_MIN`].
#[derive(Debug, Default)]
struct Buffer {
    entries: Vec<Entry>,
    start: usize,
}

impl Logs {
    /// Adds a log with these entries and returns its number.
    pub(super) fn insert(&mut self, entries: Vec<Entry>) -> u64 {
        self.len += entries.len();
        let buffer = Buffer { entries, start: 0 };
        if let Some(number) = self.free.pop() {
            self.buffers[number as usize] = buffer;
            return number;
        }
        self.buffers.push(buffer);
        self.buffers.len() as u64 - 1
    }

    /// Removes a log.
    pub(super) fn remove(&mut self, number: u64) {
        self.len -= std::mem::take(&mut self.buffers[number as usize]).len();
        self.free.push(number);
        // The memory of all is freed with the last one.
        if self.free.len() == self.buffers.len() {
            *self = Self::default();
        }
    }

    /// The entries of a log, oldest first.
    pub(super) fn entries(&self, number: u64) -> &[Entry] {
        let buffer = &self.buffers[number as usize];
        &buffer.entries[buffer.start..]
    }

    /// Applies an edit: keeps a range of entries and appends others.
    pub(super) fn apply(&mut self, number: u64, edit: &Edit) {
        let buffer = &mut self.buffers[number as usize];
        self.len -= buffer.len();
        buffer.entries.truncate(buffer.start + edit.keep.end);
        buffer.start += edit.keep.start;
        // Drained only when at least half of the entries have left: amortized constant work per entry.
        if buffer.start * 2 > buffer.entries.len() {
            buffer.entries.drain(..buffer.start);
            buffer.start = 0;
        }
        buffer.entries.extend(edit.tail);
        buffer.shrink();
        self.len += buffer.len();
    }

    /// Entries in all logs. Those that have left their windows are not counted, also before they are drained: a charge
    /// that drops one entry and adds another one takes no room.
    pub(super) fn len(&self) -> usize {
        self.len
    }
}

impl Buffer {
    /// Entries that have not left the window.
    fn len(&self) -> usize {
        self.entries.len() - self.start
    }

    /// Frees memory that a longer log has left, which no room is counted for.
    fn shrink(&mut self) {
        if self.entries.capacity() > CAPACITY_MIN.max(4 * self.len()) {
            self.entries.shrink_to(2 * self.len());
        }
    }
}

#[cfg(test)]
#[cfg(not(any(loom, shuttle)))]
mod tests {
    use super::*;

    /// Drops this many entries and adds one.
    fn slide(logs: &mut Logs, number: u64, dropped: usize) {
        let keep = dropped..logs.entries(number).len();
        logs.apply(number, &Edit { base: 0, keep, tail: Some(Entry { at: 0, total: 0 }) });
        let Buffer { entries, start } = &logs.buffers[number as usize];
        assert!(*start <= entries.len() - start, "{start} of {}", entries.len());
        assert!(entries.capacity() <= CAPACITY_MIN.max(4 * logs.len()));
    }

    #[test]
    fn entries_that_have_left_are_not_counted_and_their_memory_is_bounded() {
        let mut logs = Logs::default();
        let number = logs.insert(vec![Entry { at: 0, total: 0 }]);
        (1..100).for_each(|_| slide(&mut logs, number, 0));
        for _ in 0..1000 {
            slide(&mut logs, number, 1);
            assert_eq!(logs.len(), 100);
        }
        slide(&mut logs, number, 100);
        assert_eq!(logs.len(), 1);
        logs.remove(number);
        assert_eq!(logs.len(), 0);
    }
}
