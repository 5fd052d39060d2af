//! Commands for the limiter: their arguments and replies.

mod check;
mod number;
pub(super) mod table;
mod take;

use sluicegate::{Decision, Quota};

pub(super) use self::check::{Check, answer as answer_check};
use self::table::CommandSpec;
pub(super) use self::take::{LastQuota, read_refund, read_take, read_throttle};
use super::parser::Command;
use super::reply::Replies;
use crate::app::RequestLimits;
use crate::observe::metrics::resp::CommandKind;

/// A command for the limiter. It borrows from the input.
#[derive(Debug)]
pub(super) enum Ask<'i> {
    /// `CL.THROTTLE` and `SG.TAKE`.
    Take(Take<'i>),
    /// `SG.CHECK`.
    Check(Check<'i>),
    /// `SG.REFUND`.
    Refund(Refund<'i>),
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

/// Tokens to be given back to one bucket.
#[derive(Clone, Copy, Debug)]
pub(super) struct Refund<'i> {
    pub(super) key: &'i [u8],
    pub(super) quota: Quota,
    /// At least 1.
    pub(super) amount: u64,
}

impl Ask<'_> {
    /// Key of the bucket, if it has no rule.
    pub(super) fn key(&self) -> Option<&[u8]> {
        match self {
            Self::Take(take) => Some(take.key),
            Self::Refund(refund) => Some(refund.key),
            Self::Check(_) => None,
        }
    }
}

impl Refund<'_> {
    /// Writes the reply.
    pub(super) fn answer(&self, decision: &Decision, replies: &mut Replies) {
        take::answer_take(&self.quota, decision, false, replies);
    }
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

/// Reads the arguments of any command for the limiter, and returns whether they are valid.
pub(crate) fn is_valid(command: &Command<'_, '_>, limits: &RequestLimits) -> bool {
    let known = CommandSpec::find(command.argument(0));
    let Some(known) = known.filter(|known| known.takes(command.len())) else { return false };
    match known.kind() {
        CommandKind::Check => Check::read(command, known, limits)
            .is_ok_and(|check| check.request(None).get_cost() > 0),
        CommandKind::Throttle => read_throttle(command, known, limits, &mut None).is_ok(),
        CommandKind::Take => read_take(command, known, limits).is_ok(),
        CommandKind::Refund => read_refund(command, known, limits).is_ok(),
        CommandKind::Other => false,
    }
}

#[cfg(test)]
mod tests;
