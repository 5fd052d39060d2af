//! The same names in three worlds: the real one, and those of the two model checkers.
//!
//! `cfg(loom)` explores every interleaving and memory ordering of the small atomic protocol of a shard;
//! `cfg(shuttle)` explores random schedules of the whole memory store. The packages in `tests/model` set them.

#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering, fence};
#[cfg(shuttle)]
pub(crate) use shuttle::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering, fence};
#[cfg(not(any(loom, shuttle)))]
pub(crate) use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering, fence};

#[cfg(loom)]
use loom::sync as imp;
#[cfg(not(any(loom, shuttle)))]
use parking_lot as imp;
#[cfg(shuttle)]
use shuttle::sync as imp;

pub(crate) use imp::MutexGuard;

/// A mutex that is never poisoned.
#[derive(Debug)]
pub(crate) struct Mutex<T>(imp::Mutex<T>);

impl<T> Mutex<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(imp::Mutex::new(value))
    }

    #[cfg(not(any(loom, shuttle)))]
    #[inline]
    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock()
    }

    #[cfg(not(any(loom, shuttle)))]
    pub(crate) fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        self.0.try_lock()
    }

    #[cfg(any(loom, shuttle))]
    #[expect(clippy::unwrap_used, reason = "a model that panics has found its bug")]
    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap()
    }

    #[cfg(any(loom, shuttle))]
    pub(crate) fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        self.0.try_lock().ok()
    }
}
