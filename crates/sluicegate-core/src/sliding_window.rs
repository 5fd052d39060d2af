//! The exact sliding window: a log of admissions. At most N tokens in any half-open period, at the cost of one entry
//! per microsecond with an admission.
//!
//! Entries carry a running total instead of their own cost, so that every query of the log is a binary search.

use core::ops::Range;

use crate::bucket::{Level, decide_level, stale};
use crate::{Decision, EXACT_MAX, Micros, Quota};

/// The most tokens per window, and so the most entries in a log: 1 MiB of them.
pub const TOKENS_MAX: u64 = 1 << 16;

/// An admission at `at`; up to and including it, `total` tokens since the log began.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Entry {
    /// Microseconds since the Unix epoch.
    pub at: u64,
    /// The running total of costs.
    pub total: u64,
}

/// Stored form of a bucket: its entries, oldest first, and the running total before the first.
#[derive(Clone, Copy, Debug, Default)]
pub struct Log<'a> {
    /// The running total before the first entry.
    pub base: u64,
    /// The entries, with `at` and `total` ascending.
    pub entries: &'a [Entry],
}

/// Edit that brings a stored [`Log`] up to date: keep only the entries in `keep`, then append `tail`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    /// The running total before the first entry kept.
    pub base: u64,
    /// Range of the stored entries that stay.
    pub keep: Range<usize>,
    /// Entry to append to them, if any.
    pub tail: Option<Entry>,
}

/// Decides as [`decide`](crate::decide()) does, on a log. The edit, if there is one, is to be applied.
#[must_use]
pub fn decide(quota: &Quota, log: Log<'_>, now: Micros, cost: u64) -> (Decision, Option<Edit>) {
    decide_level(SlidingWindow::read(quota, log, now), quota, cost)
}

/// The edit that mends a log which lies beyond its window, as [`clamp`](crate::clamp) does for a state.
#[must_use]
pub fn clamp(quota: &Quota, log: Log<'_>, now: Micros) -> Option<Edit> {
    stale(SlidingWindow::read(quota, log, now), quota)
}

/// Gives back `amount` tokens, newest first, as [`credit`](crate::credit) does; `None` means full.
#[must_use]
pub fn credit(quota: &Quota, log: Log<'_>, now: Micros, amount: u64) -> Option<Edit> {
    SlidingWindow::read(quota, log, now).give(quota, amount).store(quota)
}

/// Tokens of a log that are spent at `now`, as [`spent`](crate::spent).
#[must_use]
pub fn spent(form: crate::Form, log: Log<'_>, now: Micros) -> u64 {
    let widest = Quota::widest(form);
    widest.capacity() - decide(&widest, log, now, 0).0.remaining
}

/// The part of a log that its window covers now, and pending changes to it.
#[derive(Clone, Copy)]
struct SlidingWindow<'a> {
    p: u64,
    now: u64,
    /// Live entries at or before `now`.
    live: &'a [Entry],
    /// Index of the first of them in the stored log.
    first: usize,
    /// Running total before the first live entry, and after everything.
    base: u64,
    total: u64,
    /// Time at which tokens in `total` beyond the live entries count as admitted.
    tail_at: u64,
    beyond: bool,
}

impl<'a> SlidingWindow<'a> {
    fn read(quota: &Quota, log: Log<'a>, now: Micros) -> Self {
        let (p, now) = (quota.p(), now.get());
        // Half-open: an admission exactly one period ago no longer counts.
        let first = log.entries.partition_point(|entry| entry.at.saturating_add(p) <= now);
        // Entries of the future mean that the clock stepped back: they count as admitted now.
        let end = log.entries.partition_point(|entry| entry.at <= now).max(first);
        let total = log.entries.last().map_or(log.base, |entry| entry.total);
        let base = match first {
            0 => log.base,
            _ => log.entries[first - 1].total,
        };
        // The log and its totals begin again where nothing in it counts, and where the next total would not be
        // exact: 2^53 tokens without a pause cannot have been spent, so the log is corrupt.
        if total <= base || total > EXACT_MAX - TOKENS_MAX {
            let first = log.entries.len();
            return Self {
                p,
                now,
                live: &[],
                first,
                base: 0,
                total: 0,
                tail_at: now,
                beyond: false,
            };
        }
        let live = &log.entries[first..end];
        Self { p, now, live, first, base, total, tail_at: now, beyond: end < log.entries.len() }
    }

    fn used(&self) -> u64 {
        self.total.saturating_sub(self.base)
    }

    /// Microseconds until at most `most` tokens are left in the window.
    fn wait_until_at_most(&self, most: u64) -> u64 {
        let index = self.live.partition_point(|e| self.total.saturating_sub(e.total) > most);
        let leaving = self.live.get(index).map_or(self.tail_at, |entry| entry.at);
        // Live entries were admitted within the last period, so only a corrupt log is clamped.
        leaving.saturating_add(self.p).saturating_sub(self.now).clamp(1, self.p)
    }
}

impl Level for SlidingWindow<'_> {
    type Stored = Edit;

    fn is_beyond(&self) -> bool {
        self.beyond
    }

    fn take(&self, quota: &Quota, cost: u64) -> Result<(Self, u64), u64> {
        if self.used().saturating_add(cost) > quota.capacity() {
            return Err(self.wait_until_at_most(quota.capacity() - cost));
        }
        Ok((Self { total: self.total.saturating_add(cost), beyond: false, ..*self }, 0))
    }

    /// Newest first: a refund usually follows its charge closely.
    fn give(&self, _: &Quota, amount: u64) -> Self {
        let total = self.total.saturating_sub(amount).max(self.base);
        let keep = self.live.partition_point(|entry| entry.total <= total);
        // The rest of an entry that was given back in part keeps its time.
        let tail_at = self.live.get(keep).map_or(self.tail_at, |entry| entry.at);
        Self { total, live: &self.live[..keep], tail_at, ..*self }
    }

    fn remaining(&self, quota: &Quota) -> u64 {
        quota.capacity().saturating_sub(self.used())
    }

    fn reset_after(&self, _: &Quota) -> u64 {
        if self.used() == 0 { 0 } else { self.wait_until_at_most(0) }
    }

    fn store(&self, _: &Quota) -> Option<Edit> {
        if self.used() == 0 {
            return None;
        }
        let (mut keep, kept) = (self.live.len(), self.live.last());
        let rest = kept.map_or(self.base, |entry| entry.total) != self.total;
        // Two admissions in one microsecond are one entry.
        if rest && kept.is_some_and(|entry| entry.at == self.tail_at) {
            keep -= 1;
        }
        let tail = rest.then_some(Entry { at: self.tail_at, total: self.total });
        Some(Edit { base: self.base, keep: self.first..self.first + keep, tail })
    }
}
