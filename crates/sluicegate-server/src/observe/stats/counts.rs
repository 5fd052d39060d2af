//! Counters that are looked at now and then: what was added since.

use std::collections::{HashMap, HashSet};
use std::ops::AddAssign;

use sluicegate::{Rule, RuleSet};

/// A rule, or none for buckets without one.
pub(crate) type RuleId = Option<u64>;

/// The counters of the rules in force.
#[derive(Clone, Debug, Default)]
pub(crate) struct Decided {
    /// Those rules.
    pub(crate) rules: RuleSet,
    /// What each has decided since it is counted.
    pub(crate) by_rule: Vec<(RuleId, Counts)>,
}

/// How many decisions there were of each outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) granted: u64,
    pub(crate) denied: u64,
    pub(crate) never: u64,
}

/// The counters when they were last looked at.
#[derive(Debug, Default)]
pub(crate) struct LastDecided {
    by_rule: HashMap<RuleId, Counts>,
    /// The rules that they were of.
    rules: RuleSet,
}

impl LastDecided {
    /// From here on, what is added is counted from these.
    pub(crate) fn replace(&mut self, decided: Decided) {
        self.by_rule = decided.by_rule.into_iter().collect();
        self.rules = decided.rules;
    }

    /// What was added since, of the rules that decided anything. Those that are `gone` have begun again.
    pub(crate) fn added(&self, decided: &Decided, gone: &HashSet<RuleId>) -> Vec<(RuleId, Counts)> {
        let added = decided.by_rule.iter().filter_map(|(rule_id, counts)| {
            let last = self.by_rule.get(rule_id).filter(|_| !gone.contains(rule_id));
            let added = counts.since(last.copied().unwrap_or_default());
            (added != Counts::default()).then_some((*rule_id, added))
        });
        added.collect()
    }

    /// The rules that are not among these, or are others than they were.
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

/// What makes another rule of a rule, whatever its id: what its counters are labelled with.
fn identity(rule: &Rule) -> (&str, Option<&str>, &str) {
    (rule.key_pattern().as_str(), rule.plan(), rule.mode().name())
}

impl Counts {
    /// All outcomes together.
    pub(crate) fn all(self) -> u64 {
        self.granted + self.denied + self.never
    }

    /// What was added since. Counters that say less than before have begun again.
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
