//! Commands for the limiter: their arguments and replies.

mod check;
mod number;
pub(super) mod table;
mod take;

use sluicegate::{Decision, Quota};

pub(super) use self::check::{Check, answer as answer_check};
pub(super) use self::take::{LastQuota, read_take, read_throttle};
use super::reply::Replies;

/// A command for the limiter. It borrows from the input.
#[derive(Debug)]
pub(super) enum Ask<'i> {
    /// `CL.THROTTLE` and `SG.TAKE`.
    Take(Take<'i>),
    /// `SG.CHECK`.
    Check(Check<'i>),
}

/// A charge of one bucket.
#[derive(Clone, Copy, Debug)]
pub(super) struct Take<'i> {
    pub(super) key: &'i [u8],
    pub(super) quota: Quota,
    pub(super) cost: u64,
    /// The reply is in seconds, as of `CL.THROTTLE`.
    pub(super) is_throttle: bool,
}

impl Take<'_> {
    /// Writes the reply.
    #[inline]
    pub(super) fn answer(&self, decision: &Decision, is_degraded: bool, replies: &mut Replies) {
        if self.is_throttle {
            take::answer_throttle(decision, replies);
        } else {
            take::answer_take(&self.quota, decision, is_degraded, replies);
        }
    }
}

#[cfg(test)]
mod tests;
