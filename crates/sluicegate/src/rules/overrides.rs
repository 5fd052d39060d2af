//! Overrides: quotas, exemptions and blocks for single subjects of a rule.
//!
//! They are found by their rule first and then by their subject, so that a rule without overrides costs nothing:
//!
//! ```text
//!   rule 1    user 42: #1, user 7: #2        #1  1000/s burst 5000
//!   rule 7    203.0.113.9: #3                #2  unlimited
//!                                            #3  blocked
//! ```
//!
//! A request carries the number: it fits in a word, and an [`Override`] does not.

use std::hash::BuildHasher;
use std::num::NonZero;
use std::ops::Range;
use std::sync::Arc;

use hashbrown::{DefaultHashBuilder, HashMap, HashTable};
use sluicegate_core::Quota;
use thiserror::Error;

use super::rule::Rule;

/// Most overrides of one set of rules: some 120 MB.
pub const OVERRIDES_MAX: usize = 1_000_000;

const _: () = assert!(OVERRIDES_MAX < u32::MAX as usize);

/// Replacement of the rule's quota for one subject.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Override {
    /// Another quota.
    Quota(Quota),
    /// No limit: the rule does not apply.
    Unlimited,
    /// A block: the rule denies every request, with `Never`.
    Blocked,
}

/// Overrides of single subjects of rules. Immutable; clones share state.
///
/// See [`Rule::subject`] for the subject of a rule. An override is for all buckets of that subject under that rule.
/// Expiry is left to the caller, who leaves expired overrides out of the next set.
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
    /// Overrides of a rule, by the rule's id.
    rules: HashMap<u64, Arc<Subjects>>,
    all: All,
}

/// The overrides of one rule, by subject.
type Subjects = HashTable<Number>;

/// All overrides, indexed by number.
#[derive(Debug, Default)]
struct All {
    all: Vec<(Range<usize>, Override)>,
    /// Their subjects, concatenated. The last user of a set frees it, perhaps during a check: that must not take as long
    /// as freeing each subject.
    subjects: String,
    hasher: DefaultHashBuilder,
}

/// Number of an override in its set, from 1.
pub(crate) type Number = NonZero<u32>;

/// Reason for refusing overrides.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum OverridesError {
    /// Two overrides for one subject of a rule.
    #[error("rule_id {rule_id} has two overrides for subject `{}`", subject.escape_debug())]
    SameSubject {
        /// Id of the rule.
        rule_id: u64,
        /// The subject with two overrides.
        subject: String,
    },
    /// More than [`OVERRIDES_MAX`].
    #[error("there are more than {OVERRIDES_MAX} overrides")]
    TooMany,
}

impl Overrides {
    /// Overrides by rule id and subject. Those of a rule that is not in the set they are used
    /// [with](super::RuleSet::with_overrides) do nothing there.
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

    /// Number of overrides.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.all.all.len()
    }

    /// Returns whether it has no overrides.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.all.all.is_empty()
    }

    /// The override of a subject of a rule, if any.
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
    /// Next free number; an error at [`OVERRIDES_MAX`].
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
    /// Empty without any overrides.
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

    /// The override of a subject. `subject` is only called if the rule at this position has overrides.
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
