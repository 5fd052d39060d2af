//! The number that lets a reader without the lock know whether the words it read belong together.
//!
//! Writers hold the lock of what they write. Around every change they make the number odd and then even
//! again. A reader takes the number, reads the words it wants, and looks at the number again: if it was
//! even and has not changed, no writer was at work meanwhile, and the words belong together. Otherwise it
//! has wasted a few loads.
//!
//! ```text
//!   writer   number = odd     (fence)   words ...   number = even (release)
//!   reader   number (acquire)           words ...   (fence)   number again
//! ```
//!
//! The writer's fence keeps its words from being seen before the odd number; its last store keeps them
//! from being seen after the even one; the reader's fence keeps its second look behind its words.
//! `model.rs` checks this protocol under every interleaving and every reordering that C11 allows.
//!
//! Numbers are used up one by one, and 2^63 changes are more than any process makes: that a number has
//! not changed always means that nothing has.

use crate::sync::{AtomicU64, Ordering, fence};

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Sequence(AtomicU64);

impl Sequence {
    pub(super) fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// The number to read under, unless a writer is at work.
    #[inline]
    pub(super) fn read(&self) -> Option<u64> {
        let number = self.0.load(Ordering::Acquire);
        number.is_multiple_of(2).then_some(number)
    }

    /// Has nothing been written since this number was taken?
    #[inline]
    pub(super) fn is_current(&self, number: u64) -> bool {
        fence(Ordering::Acquire);
        self.0.load(Ordering::Relaxed) == number
    }

    /// Marks the beginning of a change; the caller holds the lock.
    #[inline]
    pub(super) fn begin(&self) {
        let number = self.0.load(Ordering::Relaxed);
        self.0.store(number.wrapping_add(1), Ordering::Relaxed);
        fence(Ordering::Release);
    }

    /// Marks its end.
    #[inline]
    pub(super) fn end(&self) {
        let number = self.0.load(Ordering::Relaxed);
        self.0.store(number.wrapping_add(1), Ordering::Release);
    }
}
