//! Calls of the script and their replies: one decision each.

use sluicegate_core::{Micros, Quota, QuotaError, State};
use smallvec::SmallVec;

use super::key::RedisKey;
use crate::rules::Mode;

/// Maximum of decisions in one script call.
pub(super) const BATCH_MAX: usize = 32;

/// Maximum of buckets in one script call of several decisions: a server decides them well within a
/// millisecond.
pub(super) const BATCH_PARTS_MAX: usize = 128;

/// One decision. Owned, so that it can be queued and sent between tasks.
#[derive(Clone, Debug)]
pub(super) struct Call {
    pub(super) op: Op,
    /// The buckets, each charged at most once, and probed any number of times.
    pub(super) parts: Parts,
}

pub(super) type Parts = SmallVec<[Part; 4]>;

impl Call {
    /// A call of one bucket.
    pub(super) fn of_one(op: Op, key: RedisKey, quota: Quota, cost: u64) -> Self {
        let part = Part { key, quota, cost, mode: Mode::Enforce, is_probe: false };
        Self { op, parts: Parts::from_iter([part]) }
    }

    /// Does the call have more than one bucket?
    pub(super) fn has_several_keys(&self) -> bool {
        self.parts.iter().skip(1).any(|part| part.key != self.parts[0].key)
    }

    /// A call that removes a bucket.
    ///
    /// # Errors
    ///
    /// None: a removal needs no quota, so a fixed valid one is used.
    pub(super) fn forget(key: RedisKey) -> Result<Self, QuotaError> {
        Ok(Self::of_one(Op::Reset, key, Quota::per_second(1)?, 0))
    }
}

/// Operation on the buckets of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Op {
    /// Charges all buckets or none.
    Charge,
    /// Refunds, capped at the capacity.
    Refund,
    /// Undoes a charge that was made at this server's time `at`, because a bucket in another slot denied.
    /// Tokens that were refilled since are not refunded.
    Undo { at: Micros },
    /// Removes the bucket.
    Reset,
}

/// One bucket of a call.
#[derive(Clone, Debug)]
pub(super) struct Part {
    pub(super) key: RedisKey,
    pub(super) quota: Quota,
    pub(super) cost: u64,
    pub(super) mode: Mode,
    /// A probe can deny, and is not charged.
    pub(super) is_probe: bool,
}

/// Reply of the script to one call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Reply {
    /// Time of the server.
    pub(super) now: Micros,
    /// The charge was granted, the undo was done, or the removed bucket existed.
    pub(super) done: bool,
    /// Number of keys that held another value than a bucket, and were treated as full.
    pub(super) repaired: u32,
    /// Content of each bucket: before a charge, after any other operation.
    pub(super) seen: SmallVec<[Seen; 4]>,
}

/// A bucket as seen by the script, under the quota of the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Seen {
    /// State of a bucket without a log.
    State(State),
    /// Log: tokens in the window, time at which the newest was admitted, and, if a charge did not fit, time
    /// of the token that must leave the window first (else zero).
    Log { used: u64, newest: u64, leaving: u64 },
}
