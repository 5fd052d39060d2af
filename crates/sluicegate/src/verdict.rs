//! The answer to a request, made of its tiers' decisions.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::Guard;
use sluicegate_core::{Decision, Quota};
use smallvec::SmallVec;

use crate::rules::{Mode, Number, Override, Rule, RuleSet};

/// The answer to a request.
///
/// It is allowed if every enforced tier granted it, or if no rule applied. If not, nothing was charged,
/// and the verdict names the denying tier with the longest wait, because that is when the client may come
/// back; never is longest. Ties go by [`Scope`](crate::Scope) and then by the lowest rule id.
///
/// A subject that is [blocked](Override::Blocked) by an enforced rule is denied whatever the wait: then no bucket was
/// charged, and the verdict has only the tiers with the block.
///
/// A request that meets [too many rules](Self::too_many_rules) or is [too costly](Self::is_too_costly) to match is denied
/// without any tiers.
pub struct Verdict {
    /// Borrowed from the limiter without counting references, so that threads do not contend for a counter.
    rules: Guard<Arc<RuleSet>>,
    tiers: SmallVec<[Judged; 4]>,
    violated: Option<u32>,
    excess: Option<Excess>,
    degraded: bool,
    unlimited: bool,
}

/// A bound that a request exceeds, so that it is denied without tiers.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Excess {
    /// It meets this many rules.
    Rules(u32),
    /// Matching it takes too much work.
    Work,
}

/// A rule applied to a request, with the decision of its bucket.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Tier<'a> {
    /// The rule that applied.
    pub rule: &'a Rule,
    /// Decision of its bucket; `Never` if its subject is blocked.
    pub decision: &'a Decision,
    /// The quota that its bucket was charged by: that of the override if it has one, else the rule's.
    pub quota: &'a Quota,
    /// The override of its subject, if any.
    pub overridden: Option<&'a Override>,
}

/// Stored form of a [`Tier`].
#[derive(Debug)]
pub(crate) struct Judged {
    /// Position of its rule in the set.
    pub(crate) rule: u32,
    pub(crate) overridden: Option<Number>,
    pub(crate) decision: Decision,
}

impl Verdict {
    pub(crate) fn new(
        rules: Guard<Arc<RuleSet>>,
        tiers: SmallVec<[Judged; 4]>,
        degraded: bool,
        unlimited: bool,
        excess: Option<Excess>,
    ) -> Self {
        let mut verdict = Self { rules, tiers, violated: None, excess, degraded, unlimited };
        verdict.violated = verdict.find_violated();
        verdict
    }

    /// Position of the denying tier with the longest wait.
    #[inline]
    fn find_violated(&self) -> Option<u32> {
        if self.tiers.iter().all(|tier| tier.decision.is_granted()) {
            return None;
        }
        let longest_first = |tier: &Tier<'_>| {
            let wait = tier.decision.outcome.wait();
            (std::cmp::Reverse(wait), tier.rule.scope(), tier.rule.rule_id())
        };
        (0..)
            .zip(self.tiers())
            .filter(|(_, tier)| tier.is_enforced() && !tier.decision.is_granted())
            .min_by_key(|(_, tier)| longest_first(tier))
            .map(|(position, _)| position)
    }

    /// Sets the figures of a rule's bucket after the charge was corrected. The outcome stays.
    pub(crate) fn set_left(&mut self, rule_id: u64, left: &Decision) {
        let rules = &self.rules;
        let of_rule = |tier: &&mut Judged| rules.rule(tier.rule).rule_id() == rule_id;
        if let Some(tier) = self.tiers.iter_mut().find(of_rule) {
            tier.decision = Decision { outcome: tier.decision.outcome, ..*left };
        }
    }

    /// Returns whether the request is allowed, perhaps after a [`delay`](Self::delay).
    #[inline]
    #[must_use]
    pub fn is_allowed(&self) -> bool {
        self.violated.is_none() && self.excess.is_none()
    }

    /// Number of the rules that the request meets, if they are more than
    /// [`RuleSet::tiers_max`](crate::RuleSet::tiers_max): it is then denied, nothing was charged, and the verdict has no
    /// tiers.
    #[must_use]
    pub fn too_many_rules(&self) -> Option<u32> {
        match self.excess? {
            Excess::Rules(rules) => Some(rules),
            Excess::Work => None,
        }
    }

    /// Returns whether matching the request takes more work than it may, because many globs have to be compared with long
    /// values at many places: it is then denied, nothing was charged, and the verdict has no tiers.
    #[must_use]
    pub fn is_too_costly(&self) -> bool {
        matches!(self.excess, Some(Excess::Work))
    }

    /// The most rules that a request may meet in the set that judged it.
    #[must_use]
    pub fn tiers_max(&self) -> usize {
        self.rules.tiers_max()
    }

    /// Returns whether the store was in trouble, so that some tiers were decided by their rules'
    /// [`OnError`](crate::OnError).
    #[must_use]
    pub fn is_degraded(&self) -> bool {
        self.degraded
    }

    /// Returns whether a rule applied that limits nothing, because its mode is [unlimited](Mode::Unlimited) or its
    /// subject [is](Override::Unlimited). It is not among the tiers.
    #[must_use]
    pub fn is_unlimited(&self) -> bool {
        self.unlimited
    }

    /// The tiers, in the order of their rules' ids; shadow tiers too.
    pub fn tiers(&self) -> impl ExactSizeIterator<Item = Tier<'_>> {
        self.tiers.iter().map(|tier| Tier {
            rule: self.rules.rule(tier.rule),
            decision: &tier.decision,
            quota: self.rules.quota(tier.rule, tier.overridden),
            overridden: self.rules.numbered(tier.overridden),
        })
    }

    /// The tier that denied it: the enforced one with the longest wait. `None` if it was allowed, and if it met
    /// [too many rules](Self::too_many_rules) or was [too costly](Self::is_too_costly).
    #[must_use]
    pub fn violated(&self) -> Option<Tier<'_>> {
        self.violated.and_then(|position| self.tiers().nth(position as usize))
    }

    /// The tier with the figures of the whole verdict: the one that denied it, else the enforced one with the least
    /// remaining. `None` if no enforced rule applied.
    #[must_use]
    pub fn tightest(&self) -> Option<Tier<'_>> {
        self.violated().or_else(|| {
            self.tiers().filter(Tier::is_enforced).min_by_key(|tier| {
                (tier.decision.remaining, tier.rule.scope(), tier.rule.rule_id())
            })
        })
    }

    /// Wait before the same request is allowed: zero when allowed, `None` for never.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        match self.violated() {
            Some(tier) => tier.decision.retry_after(),
            None => self.is_allowed().then_some(Duration::ZERO),
        }
    }

    /// Delay before the work may start: the longest of its enforced `leaky_bucket` tiers; zero without any, and if it
    /// was denied.
    #[must_use]
    pub fn delay(&self) -> Duration {
        if !self.is_allowed() {
            return Duration::ZERO;
        }
        let enforced = self.tiers().filter(Tier::is_enforced);
        enforced.map(|tier| tier.decision.delay()).max().unwrap_or_default()
    }

    /// The version of the rule set that judged it.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.rules.version()
    }
}

impl Tier<'_> {
    /// Returns whether its denial denies the request.
    #[must_use]
    pub fn is_enforced(&self) -> bool {
        self.rule.mode() == Mode::Enforce
    }
}

impl fmt::Debug for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Verdict")
            .field("version", &self.version())
            .field("violated", &self.violated().map(|tier| tier.rule.rule_id()))
            .field("excess", &self.excess)
            .field("degraded", &self.degraded)
            .field("tiers", &self.tiers)
            .finish_non_exhaustive()
    }
}
