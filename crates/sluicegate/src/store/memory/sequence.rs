//! Sequence lock: a number that tells a reader without the lock whether the words it read are consistent.
//!
//! Writers hold the lock of the data they write. Around every change they make the number odd and then even
//! again. A reader reads the number, then the words, then the number again: if it was
//! even and has not changed, nothing was written meanwhile, and the words are consistent. Otherwise the reader
//! falls back to the lock.
//!
//! ```text
//!   writer   number = odd     (fence)   words ...   number = even (release)
//!   reader   number (acquire)           words ...   (fence)   number again
//! ```
//!
//! The writer's fence keeps its words from becoming visible before the odd number; its last store keeps them
//! from becoming visible after the even one; the reader's fence orders its second read of the number after its
//! words.
//! `model.rs` checks this protocol under every interleaving and every reordering that C11 allows.
//!
//! The number never wraps around: no process makes 2^63 changes. An unchanged number therefore means unchanged
//! words.

use crate::sync::{AtomicU64, Ordering, fence};

/// Sequence number; see the module's documentation.
#[derive(Debug)]
pub(super) struct Sequence(AtomicU64);

impl Sequence {
    pub(super) fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// The number before reading; `None` while a writer is at work.
    #[inline]
    pub(super) fn read(&self) -> Option<u64> {
        let number = self.0.load(Ordering::Acquire);
        number.is_multiple_of(2).then_some(number)
    }

    /// Has nothing been written since this number was read?
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

    /// Marks the end of a change.
    #[inline]
    pub(super) fn end(&self) {
        let number = self.0.load(Ordering::Relaxed);
        self.0.store(number.wrapping_add(1), Ordering::Release);
    }
}
