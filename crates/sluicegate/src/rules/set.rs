//! A set of rules: immutable, checked as a whole, swapped as a whole.

use std::collections::HashMap;
use std::sync::Arc;
use std::{fmt, slice};

use sluicegate_core::Quota;
use thiserror::Error;

use super::index::{Index, Matched, Matches};
use super::overrides::{Number, Overridden, Override, Overrides};
use super::replacing::Replacing;
use super::rule::Rule;
use super::spec::RULE_ID_MAX;
use super::unconditional;
use super::work::Work;
use crate::request::Request;

/// Most rules in one set.
pub const RULES_MAX: usize = 10_000;

/// Most rules that one request may meet, unless the set has another bound: see [`RuleSet::bounded`].
pub const TIERS_MAX: usize = 64;

/// Largest bound that [`RuleSet::bounded`] accepts. A request that meets more rules than this before any of them is
/// replaced by another is denied, as if none were.
pub const TIERS_MAX_MAX: usize = 1023;

/// A set of rules with their overrides. Immutable: a change is another set. Clones share state.
#[derive(Clone, Debug)]
pub struct RuleSet {
    /// In the order of their ids.
    rules: Arc<[Rule]>,
    index: Arc<Index>,
    replacing: Arc<Replacing>,
    overrides: Overrides,
    overridden: Overridden,
    version: u64,
    tiers_max: usize,
}

/// Reason for refusing a set of rules. Positions count from zero, in the given list.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RuleSetError {
    /// Two rules with the same id.
    #[error("rule_id {rule_id} is duplicated")]
    SameId {
        /// The id as given.
        rule_id: u64,
        /// Position of the first rule that has it.
        first: usize,
        /// Position of the second rule.
        second: usize,
    },
    /// Two rules with the same key pattern and plan.
    #[error("key_pattern `{key_pattern}` is duplicated for {}", plan_text(plan.as_deref()))]
    SamePattern {
        /// The duplicate key pattern.
        key_pattern: String,
        /// Its plan; `None` for all plans.
        plan: Option<String>,
        /// Position of the first rule that has them.
        first: usize,
        /// Position of the second rule.
        second: usize,
    },
    /// An id that is too large to name buckets by.
    #[error("rule_id {rule_id} is above {RULE_ID_MAX}")]
    IdTooLarge {
        /// The id as given.
        rule_id: u64,
    },
    /// More than [`RULES_MAX`] rules.
    #[error("{rules} rules exceed the maximum of {RULES_MAX}")]
    TooMany {
        /// Number of rules given.
        rules: usize,
    },
    /// More rules without conditions than a request may meet: every request of the plan would be denied.
    #[error(
        "{rules} active rules without conditions are for {}, and a request may meet {tiers_max}: \
         give them conditions, or raise tiers_max",
        plan_text(plan.as_deref())
    )]
    TooManyUnconditional {
        /// Number of these rules.
        rules: usize,
        /// Their plan, together with rules for all plans; `None` for all plans.
        plan: Option<String>,
        /// The most rules that a request may meet.
        tiers_max: usize,
        /// Position of the first rule that is one too many.
        position: usize,
    },
}

/// Every reason for refusing a set of rules: at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleSetErrors(Vec<RuleSetError>);

/// Values that must be unique in a set: a rule's id, and its key pattern together with its plan.
#[derive(Clone, Copy, Debug)]
pub(super) struct Claim<'a> {
    pub(super) rule_id: Option<u64>,
    pub(super) key_pattern: Option<(&'a str, Option<&'a str>)>,
}

/// A set without rules.
impl Default for RuleSet {
    fn default() -> Self {
        Self {
            rules: Arc::default(),
            index: Arc::default(),
            replacing: Arc::default(),
            overrides: Overrides::default(),
            overridden: Overridden::default(),
            version: 0,
            tiers_max: TIERS_MAX,
        }
    }
}

fn plan_text(plan: Option<&str>) -> String {
    plan.map_or_else(|| "every plan".into(), |plan| format!("plan `{plan}`"))
}

impl RuleSet {
    /// A set of these rules, in any order.
    ///
    /// # Errors
    ///
    /// Every clash between two of them: the same id, or the same key pattern and plan (active or not); ids above
    /// 2^53 - 1; more than [`RULES_MAX`] rules; and more than [`TIERS_MAX`] of one plan that are active, have no
    /// conditions and so apply to the same requests.
    pub fn new(rules: Vec<Rule>) -> Result<Self, RuleSetErrors> {
        Self::bounded(rules, TIERS_MAX)
    }

    /// A [`new`](Self::new) set with another bound than [`TIERS_MAX`], at most [`TIERS_MAX_MAX`], for the rules that
    /// one request may meet, shadow rules included. A request that meets more is denied and charges nothing: see
    /// [`Verdict::too_many_rules`](crate::Verdict::too_many_rules).
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new).
    pub fn bounded(mut rules: Vec<Rule>, tiers_max: usize) -> Result<Self, RuleSetErrors> {
        if rules.len() > RULES_MAX {
            return Err(RuleSetErrors(vec![RuleSetError::TooMany { rules: rules.len() }]));
        }
        if let Some(rule) = rules.iter().find(|rule| rule.rule_id() > RULE_ID_MAX) {
            let rule_id = rule.rule_id();
            return Err(RuleSetErrors(vec![RuleSetError::IdTooLarge { rule_id }]));
        }
        let clashes = clashes(rules.iter().map(|rule| Claim {
            rule_id: Some(rule.rule_id()),
            key_pattern: Some((rule.key_pattern().as_str(), rule.plan())),
        }));
        if !clashes.is_empty() {
            return Err(RuleSetErrors(clashes));
        }
        let tiers_max = tiers_max.min(TIERS_MAX_MAX);
        if let Some(error) = unconditional::too_many(&rules, tiers_max) {
            return Err(RuleSetErrors(vec![error]));
        }
        rules.sort_unstable_by_key(Rule::rule_id);
        let index = Arc::new(Index::new(&rules));
        let replacing = Arc::new(Replacing::new(&rules));
        Ok(Self { rules: rules.into(), index, replacing, tiers_max, ..Self::default() })
    }

    /// The most rules that one request may meet.
    #[inline]
    #[must_use]
    pub fn tiers_max(&self) -> usize {
        self.tiers_max
    }

    /// The same rules with these overrides instead of any they had. The rules and their index are shared with this set,
    /// not rebuilt.
    #[must_use]
    pub fn with_overrides(mut self, overrides: Overrides) -> Self {
        self.overridden = Overridden::new(&self.rules, &overrides);
        self.overrides = overrides;
        self
    }

    /// Its rules, in the order of their ids.
    #[must_use]
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// The rule with this id.
    #[must_use]
    pub fn get(&self, rule_id: u64) -> Option<&Rule> {
        self.position(rule_id).map(|position| self.rule(position))
    }

    /// The position of the rule with this id.
    pub(crate) fn position(&self, rule_id: u64) -> Option<u32> {
        let found = self.rules.binary_search_by_key(&rule_id, Rule::rule_id);
        found.ok().and_then(|position| u32::try_from(position).ok())
    }

    /// Its overrides.
    #[must_use]
    pub fn overrides(&self) -> &Overrides {
        &self.overrides
    }

    /// Version: the limiter that holds it counts its sets, from 1.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.version
    }

    pub(crate) fn with_version(mut self, version: u64) -> Self {
        self.version = version;
        self
    }

    /// The rules that apply to a request, in the order of their ids. None if it is [too costly](Self::is_too_costly).
    pub fn matching<'a>(&'a self, request: &Request<'_>) -> impl Iterator<Item = &'a Rule> {
        self.applying(request).into_iter().flatten().map(|position| &self.rules[position as usize])
    }

    /// Returns whether any of its rules replaces others.
    #[inline]
    #[must_use]
    pub fn has_replacing(&self) -> bool {
        !self.replacing.is_empty()
    }

    /// Removes the rules that another matching rule of the same call replaces. These are the [`matches`](Self::matches)
    /// of the requests of one call. If one of them meets more than [`TIERS_MAX_MAX`], all stay: the call is denied.
    #[inline]
    pub(crate) fn drop_replaced(&self, matched: &mut [Matched]) {
        if self.has_replacing() && matched.iter().flatten().all(|one| one.len() <= TIERS_MAX_MAX) {
            self.replacing.drop_replaced(matched);
        }
    }

    /// Returns whether matching a request takes more work than it may, because many globs have to be compared with long
    /// values at many places. Such a request is denied and charges nothing: see
    /// [`Verdict::is_too_costly`](crate::Verdict::is_too_costly).
    #[must_use]
    pub fn is_too_costly(&self, request: &Request<'_>) -> bool {
        self.matches(request).is_err()
    }

    /// The rules that apply to a request that is a call by itself.
    #[inline]
    pub(crate) fn applying(&self, request: &Request<'_>) -> Matched {
        let mut matched = self.matches(request);
        self.drop_replaced(slice::from_mut(&mut matched));
        matched
    }

    /// The position of the rule that replaces the one at this position, if one of these does.
    pub(super) fn replaced_by(&self, position: u32, matched: &Matches) -> Option<u32> {
        let is_bounded = matched.len() <= TIERS_MAX_MAX;
        is_bounded.then(|| self.replacing.by(position, matched)).flatten()
    }

    /// Rules that match a request, before replacing.
    #[inline]
    pub(crate) fn matches(&self, request: &Request<'_>) -> Matched {
        self.index.matches(&self.rules, request)
    }

    #[inline]
    pub(crate) fn rule(&self, position: u32) -> &Rule {
        &self.rules[position as usize]
    }

    /// Number of the override that the rule at this position has for the subject of a request, if any.
    #[inline]
    pub(crate) fn overridden(&self, position: u32, request: &Request<'_>) -> Option<Number> {
        let subject = || self.rule(position).subject(request);
        self.overridden.find(&self.overrides, position, subject)
    }

    /// The override with this number.
    #[inline]
    pub(crate) fn numbered(&self, number: Option<Number>) -> Option<&Override> {
        number.and_then(|number| self.overrides.numbered(number))
    }

    /// Quota of the rule at this position, or that of this override.
    #[inline]
    pub(crate) fn quota(&self, position: u32, overridden: Option<Number>) -> &Quota {
        match self.numbered(overridden) {
            Some(Override::Quota(quota)) => quota,
            _ => self.rule(position).quota(),
        }
    }

    /// The rule with the key pattern of this one that names the plan and whose conditions match.
    pub(super) fn naming(&self, rule: &Rule, plan: &str, request: &Request<'_>) -> Option<&Rule> {
        let (pattern, work) = (rule.key_pattern().as_str(), Work::unlimited());
        self.index.naming(&self.rules, pattern, plan, request, &work)
    }
}

/// Clashes between these rules, in the order of the second rule of each.
pub(super) fn clashes<'a>(rules: impl IntoIterator<Item = Claim<'a>>) -> Vec<RuleSetError> {
    let (mut ids, mut patterns) = (HashMap::new(), HashMap::new());
    let mut clashes = Vec::new();
    for (second, claim) in rules.into_iter().enumerate() {
        if let Some(rule_id) = claim.rule_id {
            let first = *ids.entry(rule_id).or_insert(second);
            if first < second {
                clashes.push(RuleSetError::SameId { rule_id, first, second });
            }
        }
        if let Some((key_pattern, plan)) = claim.key_pattern {
            let first = *patterns.entry((key_pattern, plan)).or_insert(second);
            if first < second {
                let (key_pattern, plan) = (key_pattern.into(), plan.map(Into::into));
                clashes.push(RuleSetError::SamePattern { key_pattern, plan, first, second });
            }
        }
    }
    clashes
}

// ===== impl RuleSetErrors =====

impl RuleSetErrors {
    /// The reasons, in the order of the rules that clash with an earlier one.
    #[must_use]
    pub fn as_slice(&self) -> &[RuleSetError] {
        &self.0
    }
}

impl fmt::Display for RuleSetErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, error) in self.0.iter().enumerate() {
            let separator = if position == 0 { "" } else { "; " };
            write!(f, "{separator}{error}")?;
        }
        Ok(())
    }
}

impl std::error::Error for RuleSetErrors {}
