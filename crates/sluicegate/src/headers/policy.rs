//! One policy: the name and quota of a limit, and the client's figures under it.

use sluicegate_core::{Decision, Form, Outcome, Quota};

use crate::rules::{Rule, Scope};
use crate::verdict::Tier;

/// Most bytes of a policy's name that are written; the rest is truncated.
pub const NAME_BYTES_MAX: usize = 64;

const MICROS_PER_SECOND: u64 = 1_000_000;

/// A limit in header fields: its name, its quota, and the client's figures under it.
///
/// A rule's policy is named by its scope, and by its id too where two rules of an answer share one:
/// [`Policies`](super::Policies) knows.
#[derive(Clone, Copy, Debug)]
pub struct Policy<'a> {
    of: Of<'a>,
    quota: &'a Quota,
    decision: &'a Decision,
}

/// Origin of a policy's name.
#[derive(Clone, Copy, Debug)]
pub(super) enum Of<'a> {
    Rule(&'a Rule),
    /// Name given for a bucket without a rule.
    Name(&'a str),
}

impl<'a> Policy<'a> {
    /// The policy of a bucket without a rule. Characters of its name other than printable ASCII are written as `_`.
    #[must_use]
    pub fn new(name: &'a str, quota: &'a Quota, decision: &'a Decision) -> Self {
        Self { of: Of::Name(name), quota, decision }
    }

    /// Decision of its bucket.
    #[must_use]
    pub fn decision(&self) -> &'a Decision {
        self.decision
    }

    /// Its rule; `None` for a bucket without one.
    #[must_use]
    pub fn rule(&self) -> Option<&'a Rule> {
        match self.of {
            Of::Rule(rule) => Some(rule),
            Of::Name(_) => None,
        }
    }

    /// Returns whether it denies the request.
    #[must_use]
    pub fn is_violated(&self) -> bool {
        !self.decision.is_granted()
    }

    /// Most tokens that can be taken at once.
    #[must_use]
    pub fn limit(&self) -> u64 {
        self.decision.limit
    }

    /// Whole tokens left.
    #[must_use]
    pub fn remaining(&self) -> u64 {
        self.decision.remaining
    }

    /// Seconds from empty to full, rounded up, at least 1; for a window, its period.
    #[must_use]
    pub fn window_s(&self) -> u64 {
        seconds_up(u64::try_from(self.quota.time_to_full().as_micros()).unwrap_or(u64::MAX)).max(1)
    }

    /// Seconds, rounded up: after a denial, until the same request is granted; else until the next token refills. `None`
    /// for never, and if the bucket is full.
    #[must_use]
    pub fn more_after_s(&self) -> Option<u64> {
        let wait = match self.decision.outcome {
            Outcome::Denied { .. } | Outcome::Never => return retry_after_s(self.decision),
            Outcome::Granted { .. } => next_token_us(self.quota, self.decision),
        };
        (wait > 0).then(|| seconds_up(wait))
    }

    /// Order of policies, tightest first: those that deny, with the longest wait first, then those with the least
    /// remaining; ties go by scope and by the lowest rule id.
    pub(super) fn tightness(&self) -> impl Ord + use<> {
        let wait = self.decision.outcome.wait();
        let remaining = if wait == 0 { self.decision.remaining } else { 0 };
        let rule =
            self.rule().map_or((Scope::Custom, u64::MAX), |rule| (rule.scope(), rule.rule_id()));
        (std::cmp::Reverse(wait), remaining, rule)
    }

    /// Returns whether both have the same name.
    pub(super) fn is_same(&self, other: &Policy<'_>) -> bool {
        match (self.of, other.of) {
            (Of::Rule(one), Of::Rule(other)) => one.rule_id() == other.rule_id(),
            (Of::Name(one), Of::Name(other)) => name_bytes(one).eq(name_bytes(other)),
            _ => false,
        }
    }

    pub(super) fn of(&self) -> Of<'a> {
        self.of
    }
}

impl<'a> From<Tier<'a>> for Policy<'a> {
    fn from(tier: Tier<'a>) -> Self {
        Self { of: Of::Rule(tier.rule), quota: tier.quota, decision: tier.decision }
    }
}

/// The chosen name restricted to printable ASCII.
pub(super) fn name_bytes(name: &str) -> impl Iterator<Item = u8> {
    let printable = |char| match char {
        ' '..='~' => char as u8,
        _ => b'_',
    };
    name.chars().take(NAME_BYTES_MAX).map(printable)
}

/// Whole seconds after which the same charge is granted, rounded up, at least 1. `None` if it was granted, and for
/// never.
#[must_use]
pub fn retry_after_s(decision: &Decision) -> Option<u64> {
    match decision.outcome {
        Outcome::Denied { retry_after } => Some(seconds_up(retry_after).max(1)),
        Outcome::Granted { .. } | Outcome::Never => None,
    }
}

/// Microseconds in whole seconds, rounded up.
pub(super) const fn seconds_up(micros: u64) -> u64 {
    micros.div_ceil(MICROS_PER_SECOND)
}

/// Microseconds until a bucket holds one token more than it does; zero if it is full.
///
/// It is never too short. Where debt is counted finer than microseconds it may be one too long, and for a sliding
/// window it is the time until the whole window is free: a decision does not carry the times of its parts.
fn next_token_us(quota: &Quota, decision: &Decision) -> u64 {
    let full = decision.reset_after;
    // Tokens still missing then. By the decision's limit: a store in trouble may have judged by a share of the
    // quota.
    let missing = decision.limit.saturating_sub(decision.remaining).saturating_sub(1);
    match quota.form() {
        Form::Continuous { n, p } | Form::LeakyBucket { n, p } => {
            let for_room = full.saturating_sub(missing.saturating_mul(p) / n);
            for_room.max(until_in_time(quota, decision))
        }
        Form::Interval { n, p } => full.saturating_sub((missing / n).saturating_mul(p)),
        Form::FixedWindow { .. } | Form::SlidingWindow { .. } | Form::SlidingCounter { .. } => full,
    }
}

/// Microseconds until the queue of a leaky bucket is short enough for its longest wait.
fn until_in_time(quota: &Quota, decision: &Decision) -> u64 {
    match quota.max_wait() {
        Some(max_wait) if decision.remaining == 0 => {
            let max_wait = u64::try_from(max_wait.as_micros()).unwrap_or(u64::MAX);
            decision.reset_after.saturating_sub(max_wait)
        }
        _ => 0,
    }
}
