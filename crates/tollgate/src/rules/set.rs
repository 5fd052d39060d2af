//! A set of rules: immutable, checked as a whole, swapped as a whole.

use std::collections::HashMap;

use thiserror::Error;

use super::index::{Index, Matches};
use super::rule::Rule;
use crate::request::Request;

/// The most rules in one set.
pub const RULES_MAX: usize = 10_000;

/// Rules that belong together. It never changes: a change is another set.
#[derive(Clone, Debug, Default)]
pub struct RuleSet {
    /// In the order of their ids.
    rules: Box<[Rule]>,
    index: Index,
    version: u64,
}

/// Why a set of rules was refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RuleSetError {
    /// Two rules with one id.
    #[error("rule_id {rule_id} is there twice")]
    SameId {
        /// The id.
        rule_id: u64,
    },
    /// Two rules with one key pattern and one plan.
    #[error("{} with the key_pattern `{key_pattern}` are there already: rule_id {first} and {second}", plan_text(plan.as_deref()))]
    SamePattern {
        /// The key pattern.
        key_pattern: String,
        /// The plan.
        plan: Option<String>,
        /// The id of one.
        first: u64,
        /// The id of the other.
        second: u64,
    },
    /// Too many rules.
    #[error("{rules} rules are more than {RULES_MAX}")]
    TooMany {
        /// How many there are.
        rules: usize,
    },
}

fn plan_text(plan: Option<&str>) -> String {
    plan.map_or_else(|| "rules for every plan".into(), |plan| format!("rules for plan `{plan}`"))
}

impl RuleSet {
    /// A set of these rules, in any order.
    ///
    /// # Errors
    ///
    /// The first clash between two of them: the same id, or the same key pattern and plan.
    pub fn new(mut rules: Vec<Rule>) -> Result<Self, RuleSetError> {
        if rules.len() > RULES_MAX {
            return Err(RuleSetError::TooMany { rules: rules.len() });
        }
        rules.sort_by_key(Rule::rule_id);
        let mut seen = HashMap::new();
        for (position, rule) in rules.iter().enumerate() {
            if position > 0 && rules[position - 1].rule_id() == rule.rule_id() {
                return Err(RuleSetError::SameId { rule_id: rule.rule_id() });
            }
            let (key_pattern, plan) = (rule.key_pattern().as_str(), rule.plan());
            if let Some(first) = seen.insert((key_pattern, plan), rule.rule_id()) {
                return Err(RuleSetError::SamePattern {
                    key_pattern: key_pattern.into(),
                    plan: plan.map(Into::into),
                    first,
                    second: rule.rule_id(),
                });
            }
        }
        let index = Index::new(&rules);
        Ok(Self { rules: rules.into(), index, version: 0 })
    }

    /// Its rules, in the order of their ids.
    #[must_use]
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// Which set this is: the limiter that holds it counts the sets it has held, from 1.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.version
    }

    pub(crate) fn with_version(mut self, version: u64) -> Self {
        self.version = version;
        self
    }

    /// The rules that apply to a request, in the order of their ids.
    pub fn matching<'a>(&'a self, request: &Request<'_>) -> impl Iterator<Item = &'a Rule> {
        self.matches(request).into_iter().map(|position| &self.rules[position as usize])
    }

    #[inline]
    pub(crate) fn matches(&self, request: &Request<'_>) -> Matches {
        self.index.matches(&self.rules, request)
    }

    #[inline]
    pub(crate) fn rule(&self, position: u32) -> &Rule {
        &self.rules[position as usize]
    }
}
