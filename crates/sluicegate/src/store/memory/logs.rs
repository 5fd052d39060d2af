//! Logs of a shard's exact sliding windows, which do not fit a slot.

use sluicegate_core::sliding_window::{Edit, Entry};

/// Logs by number; numbers of removed logs are reused.
#[derive(Debug, Default)]
pub(super) struct Logs {
    buffers: Vec<Buffer>,
    free: Vec<u64>,
    /// Entries in all buffers.
    len: usize,
}

/// Entries from `start` on; those before have left the window and are drained later.
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
        self.len -= std::mem::take(&mut self.buffers[number as usize]).entries.len();
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
        self.len -= buffer.entries.len();
        buffer.entries.truncate(buffer.start + edit.keep.end);
        buffer.start += edit.keep.start;
        // Drained only when at least half of the entries have left: amortized constant work per entry.
        if buffer.start * 2 > buffer.entries.len() {
            buffer.entries.drain(..buffer.start);
            buffer.start = 0;
        }
        buffer.entries.extend(edit.tail);
        self.len += buffer.entries.len();
    }

    /// Entries in all logs, including those that have left their windows and are not drained yet.
    pub(super) fn len(&self) -> usize {
        self.len
    }
}
