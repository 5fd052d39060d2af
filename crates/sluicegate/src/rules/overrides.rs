//! What single subjects of a rule have instead of its quota.
//!
//! They are found by their rule first and by their subject then, so that a rule without any costs nothing:
//!
//! ```text
//!   rule 1    user 42: #1, user 7: #2        #1  1000/s burst 5000
//!   rule 7    203.0.113.9: #3                #2  unlimited
//!                                            #3  blocked
//! ```
//!
//! What is carried around with a request is the number: it fits in a word, and an [`Override`] does not.

use std::hash::BuildHasher;
use std::num::NonZero;
use std::ops::Range;
use std::sync::Arc;

use hashbrown::{DefaultHashBuilder, HashMap, HashTable};
use sluicegate_core::Quota;
use thiserror::Error;

use super::rule::Rule;

/// The most overrides of one set of rules: some 120 MB of them.
pub const OVERRIDES_MAX: usize = 1_000_000;

const _: () = assert!(OVERRIDES_MAX < u32::MAX as usize);

/// What one subject of a rule has instead of the rule's quota.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Override {
    /// Another quota.
    Quota(Quota),
    /// No limit: the rule does not apply.
    Unlimited,
    /// Nothing at all: the rule answers never.
    Blocked,
}

/// What single subjects of rules have instead of their rules' quotas. It never changes, and clones share
/// everything.
///
/// The subject of a rule is who its buckets are about: see [`Rule::subject`]. An override is for all
/// buckets of that subject under that rule. How long it is to last is for whoever keeps them to know: an
/// expired one is to be left out of the next set.
///
/// ```
/// use sluicegate::rules::{Override, Overrides};
/// use sluicegate::{Limiter, MemoryStore, Quota, Request, Rule, RuleSet};
///
/// let rules = RuleSet::new(vec![Rule::new(1, "user:{user_id}", Quota::per_second(10)?)?])?;
/// let overrides = Overrides::new([
///     (1, "42".to_owned(), Override::Quota(Quota::per_second(1000)?)),
///     (1, "mallory".to_owned(), Override::Blocked),
/// ])?;
/// let limiter = Limiter::new(MemoryStore::new(), rules.with_overrides(overrides));
///
/// let verdict = limiter.check_now(&Request::new().user_id("42"));
/// assert_eq!(verdict.tightest().unwrap().decision.limit, 1000);
/// let verdict = limiter.check_now(&Request::new().user_id("mallory"));
/// assert_eq!(verdict.retry_after(), None);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Overrides(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    /// By the rule's id.
    rules: HashMap<u64, Arc<Subjects>>,
    all: All,
}

/// The overrides of one rule, by subject.
type Subjects = HashTable<Number>;

/// Every override, by number.
#[derive(Debug, Default)]
struct All {
    all: Vec<(Range<usize>, Override)>,
    /// Their subjects, one behind the other. Whoever is the last to look at a set frees it, perhaps in the midst
    /// of a check: that must not take as long as freeing each of them.
    subjects: String,
    hasher: DefaultHashBuilder,
}

/// Which override of its set one is, counted from one.
pub(crate) type Number = NonZero<u32>;

/// Why overrides were refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum OverridesError {
    /// Two for one subject.
    #[error("rule_id {rule_id} has two overrides for subject `{}`", subject.escape_debug())]
    SameSubject {
        /// The rule.
        rule_id: u64,
        /// The subject.
        subject: String,
    },
    /// Too many.
    #[error("there are more than {OVERRIDES_MAX} overrides")]
    TooMany,
}

impl Overrides {
    /// The overrides of these rules, by id, and subjects. Those of a rule that is not in the set they are
    /// used [with](super::RuleSet::with_overrides) do nothing there.
    ///
    /// # Errors
    ///
    /// Two overrides for one subject of one rule, or more than [`OVERRIDES_MAX`].
    pub fn new(
        overrides: impl IntoIterator<Item = (u64, String, Override)>,
    ) -> Result<Self, OverridesError> {
        let mut all = All::default();
        let mut rules: HashMap<u64, Subjects> = HashMap::new();
        for (rule_id, subject, instead) in overrides {
            let subjects = rules.entry(rule_id).or_default();
            if all.find(subjects, &subject).is_some() {
                return Err(OverridesError::SameSubject { rule_id, subject });
            }
            let number = all.push(&subject, instead).ok_or(OverridesError::TooMany)?;
            subjects.insert_unique(all.hash(&subject), number, |number| all.hash_of(*number));
        }
        all.all.shrink_to_fit();
        all.subjects.shrink_to_fit();
        let rules = rules.into_iter().map(|(rule_id, subjects)| (rule_id, Arc::new(subjects)));
        Ok(Self(Arc::new(Inner { rules: rules.collect(), all })))
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.all.all.len()
    }

    /// Are there none?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.all.all.is_empty()
    }

    /// What a subject of a rule has instead of the rule's quota, if anything.
    #[must_use]
    pub fn get(&self, rule_id: u64, subject: &str) -> Option<&Override> {
        let number = self.0.all.find(self.0.rules.get(&rule_id)?, subject)?;
        self.numbered(number)
    }

    /// The override with this number.
    #[inline]
    pub(crate) fn numbered(&self, number: Number) -> Option<&Override> {
        self.0.all.get(number).map(|(_, instead)| instead)
    }
}

impl All {
    /// One more, if there may be.
    fn push(&mut self, subject: &str, instead: Override) -> Option<Number> {
        let number = u32::try_from(self.all.len() + 1).ok().and_then(NonZero::new);
        let number = number.filter(|_| self.all.len() < OVERRIDES_MAX)?;
        let start = self.subjects.len();
        self.subjects.push_str(subject);
        self.all.push((start..self.subjects.len(), instead));
        Some(number)
    }

    #[inline]
    fn find(&self, subjects: &Subjects, subject: &str) -> Option<Number> {
        subjects.find(self.hash(subject), |number| self.subject(*number) == subject).copied()
    }

    #[inline]
    fn get(&self, number: Number) -> Option<&(Range<usize>, Override)> {
        self.all.get(number.get() as usize - 1)
    }

    #[inline]
    fn subject(&self, number: Number) -> &str {
        self.get(number).map_or("", |(subject, _)| &self.subjects[subject.clone()])
    }

    #[inline]
    fn hash(&self, subject: &str) -> u64 {
        self.hasher.hash_one(subject)
    }

    fn hash_of(&self, number: Number) -> u64 {
        self.hash(self.subject(number))
    }
}

/// The overrides of a set's rules, by the rules' positions.
#[derive(Clone, Debug, Default)]
pub(super) struct Overridden {
    /// Empty where there are none at all.
    rules: Arc<[Option<Arc<Subjects>>]>,
}

impl Overridden {
    pub(super) fn new(rules: &[Rule], overrides: &Overrides) -> Self {
        if overrides.is_empty() {
            return Self::default();
        }
        let of_rule = |rule: &Rule| overrides.0.rules.get(&rule.rule_id()).cloned();
        Self { rules: rules.iter().map(of_rule).collect() }
    }

    /// The override of a subject, who is only asked for where the rule at this position has any.
    #[inline]
    pub(super) fn find<'s>(
        &self,
        overrides: &Overrides,
        position: u32,
        subject: impl FnOnce() -> Option<&'s str>,
    ) -> Option<Number> {
        let subjects = self.rules.get(position as usize)?.as_ref()?;
        overrides.0.all.find(subjects, subject()?)
    }
}
