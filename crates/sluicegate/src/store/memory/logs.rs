//! The logs of a shard's exact sliding windows, which do not fit a slot.

use sluicegate_core::sliding_window::{Edit, Entry};

/// Logs by number; numbers of dropped logs are used again.
#[derive(Debug, Default)]
pub(super) struct Logs {
    buffers: Vec<Buffer>,
    free: Vec<u64>,
    /// Entries in all of them.
    len: usize,
}

/// Entries from `start` on; what is before has left the window and waits to be moved over.
#[derive(Debug, Default)]
struct Buffer {
    entries: Vec<Entry>,
    start: usize,
}

impl Logs {
    /// The number of a new log with these entries.
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

    /// Forgets a log.
    pub(super) fn remove(&mut self, number: u64) {
        self.len -= std::mem::take(&mut self.buffers[number as usize]).entries.len();
        self.free.push(number);
        // With the last one goes the memory of all.
        if self.free.len() == self.buffers.len() {
            *self = Self::default();
        }
    }

    /// Its entries, oldest first.
    pub(super) fn entries(&self, number: u64) -> &[Entry] {
        let buffer = &self.buffers[number as usize];
        &buffer.entries[buffer.start..]
    }

    /// Keeps what the edit keeps and appends what it appends.
    pub(super) fn apply(&mut self, number: u64, edit: &Edit) {
        let buffer = &mut self.buffers[number as usize];
        self.len -= buffer.entries.len();
        buffer.entries.truncate(buffer.start + edit.keep.end);
        buffer.start += edit.keep.start;
        // Moved over only when at least half of it has left: a constant share of the work per entry.
        if buffer.start * 2 > buffer.entries.len() {
            buffer.entries.drain(..buffer.start);
            buffer.start = 0;
        }
        buffer.entries.extend(edit.tail);
        self.len += buffer.entries.len();
    }

    /// Entries in all logs, those included that have left their windows and wait to be moved over.
    pub(super) fn len(&self) -> usize {
        self.len
    }
}
