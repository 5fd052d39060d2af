//! Differences between two readings of the decision counters.

use std::collections::{HashMap, HashSet};
use std::ops::AddAssign;

use sluicegate::{Rule, RuleSet};

/// Id of a rule; `None` for buckets without a rule.
pub(crate) type RuleId = Option<u64>;

/// A reading of the decision counters.
#[derive(Clone, Debug, Default)]
pub(crate) struct Decided {
    /// Rules in force at the reading.
    pub(crate) rules: RuleSet,
    /// Decisions by rule since the counters began.
    pub(crate) by_rule: Vec<(RuleId, Counts)>,
}

/// Decisions by outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) granted: u64,
    pub(crate) denied: u64,
    pub(crate) never: u64,
}

/// The previous reading of the counters.
#[derive(Debug, Default)]
pub(crate) struct LastDecided {
    by_rule: HashMap<RuleId, Counts>,
    /// Rules in force at that reading.
    rules: RuleSet,
}

impl LastDecided {
    /// Makes this reading the one that later differences are taken from.
    pub(crate) fn replace(&mut self, decided: Decided) {
        self.by_rule = decided.by_rule.into_iter().collect();
        self.rules = decided.rules;
    }

    /// Decisions added since, of rules that decided anything. Counters of rules in `gone` began
    /// again.
    pub(crate) fn added(&self, decided: &Decided, gone: &HashSet<RuleId>) -> Vec<(RuleId, Counts)> {
        let added = decided.by_rule.iter().filter_map(|(rule_id, counts)| {
            let last = self.by_rule.get(rule_id).filter(|_| !gone.contains(rule_id));
            let added = counts.since(last.copied().unwrap_or_default());
            (added != Counts::default()).then_some((*rule_id, added))
        });
        added.collect()
    }

    /// Ids of rules that are not in `rules`, or are a different rule there.
    pub(crate) fn gone(&self, rules: &RuleSet) -> HashSet<RuleId> {
        if self.rules.version() == rules.version() {
            return HashSet::new();
        }
        let is_gone = |rule: &&Rule| {
            let now = rules.get(rule.rule_id());
            now.is_none_or(|now| identity(now) != identity(rule))
        };
        self.rules.rules().iter().filter(is_gone).map(|rule| Some(rule.rule_id())).collect()
    }
}

/// Identity of a rule whatever its id: the labels of its counters.
fn identity(rule: &Rule) -> (&str, Option<&str>, &str) {
    (rule.key_pattern().as_str(), rule.plan(), rule.mode().name())
}

impl Counts {
    /// Sum over all outcomes.
    pub(crate) fn all(self) -> u64 {
        self.granted + self.denied + self.never
    }

    /// Decisions added since `last`. Counters below their last value began again.
    fn since(self, last: Self) -> Self {
        let added = || {
            Some(Self {
                granted: self.granted.checked_sub(last.granted)?,
                denied: self.denied.checked_sub(last.denied)?,
                never: self.never.checked_sub(last.never)?,
            })
        };
        added().unwrap_or(self)
    }
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.granted += other.granted;
        self.denied += other.denied;
        self.never += other.never;
    }
}
