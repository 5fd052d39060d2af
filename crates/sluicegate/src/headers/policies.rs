//! The policies of one answer, and the figures of all of them together.

use std::fmt::{self, Write as _};

use smallvec::SmallVec;

use super::policy::{Of, Policy, name_bytes, retry_after_s};
use crate::verdict::{Tier, Verdict};

/// Most policies of an answer: the tightest ones, if a verdict has more. Proxies and clients refuse fields that are
/// too long.
pub const POLICIES_MAX: usize = 32;

/// The policies of an answer, in the order in which they were added.
///
/// Their names are unique: of two buckets of one rule, the tighter one is kept.
#[derive(Clone, Debug, Default)]
pub struct Policies<'a> {
    members: SmallVec<[Policy<'a>; 4]>,
    excess: Option<Excess>,
}

/// A bound that one of the verdicts exceeds.
#[derive(Clone, Copy, Debug)]
pub(super) enum Excess {
    /// The most rules that a request may meet.
    Rules(usize),
    /// The work that matching a request may take.
    Work,
}

impl<'a> Policies<'a> {
    /// Policies of a verdict: its enforced tiers.
    #[must_use]
    pub fn of(verdict: &'a Verdict) -> Self {
        let mut policies = Self::default();
        policies.add_verdict(verdict);
        policies
    }

    /// Adds the policies of another verdict to the same answer.
    pub fn add_verdict(&mut self, verdict: &'a Verdict) {
        for tier in verdict.tiers().filter(Tier::is_enforced) {
            self.add(tier.into());
        }
        if verdict.too_many_rules().is_some() {
            self.excess = Some(Excess::Rules(verdict.tiers_max()));
        } else if verdict.is_too_costly() {
            self.excess = Some(Excess::Work);
        }
    }

    /// Adds a policy.
    pub fn add(&mut self, policy: Policy<'a>) {
        let mut replaced = self.members.iter().position(|member| member.is_same(&policy));
        if replaced.is_none() && self.members.len() == POLICIES_MAX {
            let members = self.members.iter().enumerate();
            replaced = members.max_by_key(|(_, member)| member.tightness()).map(|(place, _)| place);
        }
        match replaced.and_then(|place| self.members.get_mut(place)) {
            Some(member) if policy.tightness() < member.tightness() => *member = policy,
            Some(_) => {}
            None => self.members.push(policy),
        }
    }

    /// Returns whether it has no policies.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// Iterates over the policies.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Policy<'a>> {
        self.members.iter()
    }

    /// Returns whether one of them denies the request, or it meets [too many rules](Verdict::too_many_rules)
    /// or is [too costly](Verdict::is_too_costly).
    #[must_use]
    pub fn is_violated(&self) -> bool {
        self.excess.is_some() || self.members.iter().any(Policy::is_violated)
    }

    /// The bound that one of the verdicts exceeds, if any.
    pub(super) fn excess(&self) -> Option<Excess> {
        self.excess
    }

    /// Policies that deny the request.
    pub fn violated(&self) -> impl Iterator<Item = &Policy<'a>> {
        self.members.iter().filter(|policy| policy.is_violated())
    }

    /// The tightest policy: the one that denies with the longest wait, else the one with the least remaining.
    #[must_use]
    pub fn tightest(&self) -> Option<&Policy<'a>> {
        self.members.iter().min_by_key(|policy| policy.tightness())
    }

    /// Whole seconds until the same request is granted, if no other charge comes between: rounded up, at least 1. `None`
    /// if nothing denies it, and for never.
    #[must_use]
    pub fn retry_after_s(&self) -> Option<u64> {
        let tightest = self.tightest().filter(|_| self.excess.is_none());
        tightest.and_then(|policy| retry_after_s(policy.decision()))
    }

    /// The name of one of them: its rule's scope, with `-<rule_id>` where several share it. It is printable ASCII.
    pub fn name<'p>(&self, policy: &Policy<'p>) -> impl fmt::Display + use<'p> {
        self.name_of(policy)
    }

    pub(super) fn name_of<'p>(&self, policy: &Policy<'p>) -> Name<'p> {
        match policy.of() {
            Of::Name(name) => Name::Given(name),
            Of::Rule(rule) => {
                let is_same = |other: &&Policy<'_>| {
                    other.rule().is_some_and(|other| other.scope() == rule.scope())
                };
                let is_shared = self.members.iter().filter(is_same).nth(1).is_some();
                Name::Scope(rule.scope().name(), is_shared.then(|| rule.rule_id()))
            }
        }
    }
}

/// A policy's name as it is written.
pub(super) enum Name<'a> {
    Scope(&'static str, Option<u64>),
    /// Name chosen by the server, not yet restricted to printable ASCII.
    Given(&'a str),
}

impl fmt::Display for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Scope(scope, None) => f.write_str(scope),
            Self::Scope(scope, Some(rule_id)) => write!(f, "{scope}-{rule_id}"),
            Self::Given(name) => name_bytes(name).try_for_each(|byte| f.write_char(byte.into())),
        }
    }
}
