//! What is asked of the script, and what it answers: one decision of it.

use sluicegate_core::{Micros, Quota, QuotaError, State};
use smallvec::SmallVec;

use super::key::RedisKey;
use crate::rules::Mode;

/// The most decisions in one call of the script.
pub(super) const BATCH_MAX: usize = 32;

/// The most buckets in one call of several decisions: what a server decides well within a millisecond.
pub(super) const BATCH_PARTS_MAX: usize = 128;

/// One decision, owned, so that it can wait in line and travel between tasks.
#[derive(Clone, Debug)]
pub(super) struct Call {
    pub(super) op: Op,
    /// Its buckets: each of them charged at most once, and probed any number of times.
    pub(super) parts: Parts,
}

pub(super) type Parts = SmallVec<[Part; 4]>;

impl Call {
    /// A call about one bucket.
    pub(super) fn of_one(op: Op, key: RedisKey, quota: Quota, cost: u64) -> Self {
        let part = Part { key, quota, cost, mode: Mode::Enforce, is_probe: false };
        Self { op, parts: Parts::from_iter([part]) }
    }

    /// Is it about more than one bucket?
    pub(super) fn has_several_keys(&self) -> bool {
        self.parts.iter().skip(1).any(|part| part.key != self.parts[0].key)
    }

    /// A call that forgets a bucket.
    ///
    /// # Errors
    ///
    /// None: forgetting needs no quota, so that any will do, and the one that is taken is sound.
    pub(super) fn forget(key: RedisKey) -> Result<Self, QuotaError> {
        Ok(Self::of_one(Op::Reset, key, Quota::per_second(1)?, 0))
    }
}

/// What is to be done with the buckets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Op {
    /// Charge all or none.
    Charge,
    /// Give back, capped at full.
    Refund,
    /// Take back a charge of another slot's denial, made at this server's `at`: what of it has not come
    /// in again by itself since.
    Undo { at: Micros },
    /// Forget.
    Reset,
}

/// One bucket of a call.
#[derive(Clone, Debug)]
pub(super) struct Part {
    pub(super) key: RedisKey,
    pub(super) quota: Quota,
    pub(super) cost: u64,
    pub(super) mode: Mode,
    /// It can deny, and is not charged.
    pub(super) is_probe: bool,
}

/// The script's answer to one call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Reply {
    /// The server's time.
    pub(super) now: Micros,
    /// Whether a charge was granted or undone; whether there was something to forget.
    pub(super) done: bool,
    /// Buckets that held something else than a bucket, and were taken for full.
    pub(super) repaired: u32,
    /// What each bucket held: before a charge, after anything else.
    pub(super) seen: SmallVec<[Seen; 4]>,
}

/// A bucket as the script saw it, under the quota it was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Seen {
    /// Its state.
    State(State),
    /// A log: tokens in the window, when the newest of them was admitted, and, where a charge did not
    /// fit, when the one was that must leave before it does (else zero).
    Log { used: u64, newest: u64, leaving: u64 },
}
