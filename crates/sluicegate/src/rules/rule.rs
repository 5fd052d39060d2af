//! One rule: a limit, whom it counts, and when it applies.

use std::time::Duration;

use sluicegate_core::{Quota, named_values};
use thiserror::Error;

use super::attribute::{Attribute, NAME_BYTES_MAX};
use super::condition::Condition;
use super::glob::{Glob, GlobError};
use super::pattern::{Pattern, PatternError};
use super::spec::RuleSpec;
use crate::compat::floor_char_boundary;
use crate::request::Request;

/// The longest name of a plan.
pub(crate) const PLAN_BYTES_MAX: usize = 32;
/// The most conditions of one rule.
pub(crate) const CONDITIONS_MAX: usize = 16;
/// The longest name.
pub(crate) const RULE_NAME_BYTES_MAX: usize = 128;
/// The most names that one rule replaces.
pub(crate) const REPLACES_MAX: usize = 32;
/// The longest description.
pub(crate) const DESCRIPTION_BYTES_MAX: usize = 1024;

/// The plan of rules for requests whose own plan no other rule names.
pub(crate) const DEFAULT_PLAN: &str = "default";

/// What a rule is about, for people; and the order in which ties between denials are broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// Everybody together.
    Global,
    /// An address.
    Ip,
    /// An endpoint.
    Endpoint,
    /// A user.
    User,
    /// Anything else.
    Custom,
}

/// Whether a rule's denials count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Mode {
    /// They deny the request.
    #[default]
    Enforce,
    /// They are only recorded: what would have happened.
    Shadow,
    /// There are none: the rule applies, and so can replace others, but it has no buckets and limits nobody.
    Unlimited,
}

/// What a rule's answer is while its store is in trouble.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum OnError {
    /// A bucket in this process answers, with a share of the quota.
    #[default]
    Local,
    /// Yes.
    Allow,
    /// No.
    Deny,
}

/// A limit, whom it counts, and when it applies.
///
/// ```
/// use sluicegate::{Quota, Rule};
///
/// let login = Rule::new(5, "login:{ip}", Quota::per_minute(5)?)?
///     .with_condition("endpoint", "/login")?
///     .with_description("brute force");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    rule_id: u64,
    key_pattern: Pattern,
    scope: Scope,
    quota: Quota,
    plan: Option<Box<str>>,
    mode: Mode,
    on_error: OnError,
    is_active: bool,
    description: Box<str>,
    /// At most one for an attribute, in the order of their names.
    conditions: Box<[(Attribute, Condition)]>,
    name: Option<Box<str>>,
    replaces: Box<[Box<str>]>,
}

/// Why a rule was refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RuleError {
    /// Its key pattern.
    #[error(transparent)]
    Pattern(#[from] PatternError),
    /// A condition.
    #[error("condition on {attribute}: {error}")]
    Glob {
        /// The attribute it is about.
        attribute: String,
        /// What is wrong with it.
        error: GlobError,
    },
    /// A condition on something that cannot be an attribute.
    #[error(
        "`{name}` is not the name of an attribute (at most {NAME_BYTES_MAX} letters, digits, `_`, `-`, `.`)"
    )]
    AttributeName {
        /// The name.
        name: String,
    },
    /// Two conditions on one attribute.
    #[error("there is a condition on `{attribute}` already")]
    SameCondition {
        /// The attribute.
        attribute: String,
    },
    /// Too many conditions.
    #[error("a rule has at most {CONDITIONS_MAX} conditions")]
    TooManyConditions,
    /// The plan's name is too long, or has control characters in it.
    #[error("a plan's name has at most {PLAN_BYTES_MAX} bytes and no control characters")]
    PlanName,
    /// A name, its own or one that it replaces, is empty, too long, or has control characters in it.
    #[error("a name has 1 to {RULE_NAME_BYTES_MAX} bytes and no control characters")]
    Name,
    /// Too many names.
    #[error("a rule replaces at most {REPLACES_MAX} names")]
    TooManyReplaced,
    /// One name twice.
    #[error("`{name}` is replaced already")]
    SameReplaced {
        /// The name.
        name: String,
    },
    /// Its own name.
    #[error("a rule cannot replace itself")]
    ReplacesItself,
}

impl Rule {
    /// A rule that is enforced, for every plan, without conditions; its scope is what its key pattern
    /// suggests.
    ///
    /// # Errors
    ///
    /// What is wrong with the key pattern, and where.
    pub fn new(rule_id: u64, key_pattern: &str, quota: Quota) -> Result<Self, PatternError> {
        let key_pattern = Pattern::parse(key_pattern)?;
        Ok(Self {
            rule_id,
            scope: Scope::of(&key_pattern),
            key_pattern,
            quota,
            plan: None,
            mode: Mode::default(),
            on_error: OnError::default(),
            is_active: true,
            description: Box::default(),
            conditions: Box::default(),
            name: None,
            replaces: Box::default(),
        })
    }

    /// This rule with another scope.
    #[must_use]
    pub fn with_scope(mut self, scope: Scope) -> Self {
        self.scope = scope;
        self
    }

    /// This rule for one plan only; for all of them if the name is empty; for those that no other rule
    /// with the same key pattern names, if it is `default`. Names are case-sensitive.
    ///
    /// # Errors
    ///
    /// A name that is too long or has control characters in it.
    pub fn with_plan(mut self, plan: &str) -> Result<Self, RuleError> {
        if plan.len() > PLAN_BYTES_MAX || plan.contains(char::is_control) {
            return Err(RuleError::PlanName);
        }
        self.plan = (!plan.is_empty()).then(|| plan.into());
        Ok(self)
    }

    /// This rule for requests whose `attribute` is as a [`Condition`] says, such as `/api/**` or `!/login`,
    /// besides its other conditions, which are on other attributes.
    ///
    /// # Errors
    ///
    /// Names that cannot be attributes or have a condition already, bad globs, and too many conditions.
    pub fn with_condition(mut self, attribute: &str, condition: &str) -> Result<Self, RuleError> {
        if !Attribute::is_name(attribute) {
            return Err(RuleError::AttributeName { name: attribute.into() });
        }
        if self.conditions.len() == CONDITIONS_MAX {
            return Err(RuleError::TooManyConditions);
        }
        let condition = Condition::parse(condition)
            .map_err(|error| RuleError::Glob { attribute: attribute.into(), error })?;
        let by_name = |(other, _): &(Attribute, Condition)| other.name().cmp(attribute);
        let Err(position) = self.conditions.binary_search_by(by_name) else {
            return Err(RuleError::SameCondition { attribute: attribute.into() });
        };
        let mut conditions = self.conditions.into_vec();
        conditions.insert(position, (Attribute::new(attribute), condition));
        self.conditions = conditions.into();
        Ok(self)
    }

    /// This rule with a name, by which others can replace it; with none if it is empty. Several rules may
    /// have one name.
    ///
    /// # Errors
    ///
    /// A name that is too long or has control characters in it, or that the rule itself replaces.
    pub fn with_name(mut self, name: &str) -> Result<Self, RuleError> {
        self.name = if name.is_empty() { None } else { Some(checked_name(name)?) };
        self.replaces_others()
    }

    /// This rule in place of all rules with one of these names: wherever it applies, they do not. It does not
    /// matter what its own mode is, nor whether it is replaced itself.
    ///
    /// # Errors
    ///
    /// Names that are empty, too long, here twice or the rule's own, or have control characters in them; and
    /// too many.
    pub fn with_replaces(mut self, names: &[impl AsRef<str>]) -> Result<Self, RuleError> {
        if names.len() > REPLACES_MAX {
            return Err(RuleError::TooManyReplaced);
        }
        let names = names.iter().map(|name| checked_name(name.as_ref()));
        self.replaces = names.collect::<Result<_, _>>()?;
        let mut sorted: Vec<&str> = self.replaces().collect();
        sorted.sort_unstable();
        if let Some(same) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(RuleError::SameReplaced { name: same[0].into() });
        }
        self.replaces_others()
    }

    /// This rule, if it does not replace itself.
    fn replaces_others(self) -> Result<Self, RuleError> {
        let replaces_itself = self.name().is_some_and(|own| self.replaces().any(|n| n == own));
        if replaces_itself { Err(RuleError::ReplacesItself) } else { Ok(self) }
    }

    /// This rule enforced, in the shadow, or without a limit.
    #[must_use]
    pub fn with_mode(mut self, mode: Mode) -> Self {
        self.mode = mode;
        self
    }

    /// This rule with another policy for store trouble.
    #[must_use]
    pub fn with_on_error(mut self, on_error: OnError) -> Self {
        self.on_error = on_error;
        self
    }

    /// This rule switched on or off.
    #[must_use]
    pub fn with_is_active(mut self, is_active: bool) -> Self {
        self.is_active = is_active;
        self
    }

    /// This rule with a note for people; what is longer than a kilobyte is cut.
    #[must_use]
    pub fn with_description(mut self, description: &str) -> Self {
        let end = floor_char_boundary(description, DESCRIPTION_BYTES_MAX);
        self.description = description[..end].into();
        self
    }

    /// Its number, which names its buckets and breaks ties.
    #[must_use]
    pub fn rule_id(&self) -> u64 {
        self.rule_id
    }

    /// Which requests share a bucket.
    #[must_use]
    pub fn key_pattern(&self) -> &Pattern {
        &self.key_pattern
    }

    /// What it is about.
    #[must_use]
    pub fn scope(&self) -> Scope {
        self.scope
    }

    /// What each of its buckets holds.
    #[must_use]
    pub fn quota(&self) -> &Quota {
        &self.quota
    }

    /// The plan it is for, if it is for one.
    #[must_use]
    pub fn plan(&self) -> Option<&str> {
        self.plan.as_deref()
    }

    /// Whether its denials count.
    #[must_use]
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// Its policy for store trouble.
    #[must_use]
    pub fn on_error(&self) -> OnError {
        self.on_error
    }

    /// Is it switched on?
    #[must_use]
    pub fn is_active(&self) -> bool {
        self.is_active
    }

    /// The note for people.
    #[must_use]
    pub fn description(&self) -> &str {
        &self.description
    }

    /// What must hold, besides the endpoint that the key pattern may name; in the order of the names.
    #[must_use]
    pub fn conditions(&self) -> &[(Attribute, Condition)] {
        &self.conditions
    }

    /// By what name others replace it, if it has one.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// The names of the rules that do not apply where it does, as they were written.
    pub fn replaces(&self) -> impl ExactSizeIterator<Item = &str> {
        self.replaces.iter().map(AsRef::as_ref)
    }

    /// The columns that this rule is made of: [`RuleSpec::build`] makes the same rule of them. Tokens and period
    /// are as they were written, where they were; a rate of 0.016 a second is one per 62.5 s.
    #[must_use]
    pub fn spec(&self) -> RuleSpec {
        let (tokens, period_us) = self.quota.rate().tokens_and_period_us();
        let algorithm = self.quota.algorithm();
        let conditions = self.conditions.iter();
        RuleSpec {
            rule_id: self.rule_id,
            key_pattern: self.key_pattern.as_str().into(),
            scope: Some(self.scope),
            rate_per_second: None,
            tokens: Some(tokens),
            period: Some(Duration::from_micros(period_us)),
            burst_capacity: algorithm.has_capacity().then(|| self.quota.capacity()),
            algorithm,
            refill: self.quota.refill(),
            max_wait: self.quota.max_wait(),
            plan: self.plan().unwrap_or_default().into(),
            mode: self.mode,
            on_error: self.on_error,
            is_active: self.is_active,
            description: self.description().into(),
            conditions: conditions
                .map(|(name, condition)| (name.name().into(), condition.as_str().into()))
                .collect(),
            name: self.name().unwrap_or_default().into(),
            replaces: self.replaces().map(Into::into).collect(),
        }
    }

    /// The attribute that says who its buckets are about: `user_id` if its key pattern has it, else `ip`, else
    /// the first placeholder. `None` if it has none.
    #[must_use]
    pub fn subject_attribute(&self) -> Option<&Attribute> {
        self.key_pattern.attributes().first()
    }

    /// Who a request's bucket is about, and whose override counts: the value of the
    /// [subject attribute](Self::subject_attribute); for a rule without placeholders, its key pattern.
    /// `None` if the request lacks it.
    #[inline]
    #[must_use]
    pub fn subject<'r>(&'r self, request: &'r Request<'_>) -> Option<&'r str> {
        match self.subject_attribute() {
            Some(attribute) => request.get(attribute),
            None => Some(self.key_pattern.as_str()),
        }
    }

    /// The name that people read of a request's bucket, such as `user:42`. `None` if the request lacks one of
    /// the key pattern's attributes.
    #[must_use]
    pub fn bucket_key(&self, request: &Request<'_>) -> Option<String> {
        self.key_pattern.bucket_key(request)
    }

    /// Do all its conditions hold, and does the endpoint match in its key pattern if it names one?
    #[must_use]
    pub fn conditions_match(&self, request: &Request<'_>) -> bool {
        self.failing_condition(request).is_none()
    }

    /// The attribute of a condition that does not hold.
    #[inline]
    pub(super) fn failing_condition(&self, request: &Request<'_>) -> Option<&Attribute> {
        let mut conditions = self.conditions.iter();
        let failing = conditions.find(|(name, condition)| !condition.holds(request.get(name)));
        let is_other_endpoint = || {
            let glob = self.key_pattern.endpoint();
            let endpoint = request.get(&Attribute::Endpoint);
            glob.is_some_and(|glob| !endpoint.is_some_and(|endpoint| glob.matches(endpoint)))
        };
        failing
            .map(|(attribute, _)| attribute)
            .or_else(|| is_other_endpoint().then_some(&Attribute::Endpoint))
    }

    /// Does the request have every attribute that its key pattern asks for?
    #[must_use]
    pub fn attributes_present(&self, request: &Request<'_>) -> bool {
        self.missing_attribute(request).is_none()
    }

    /// The first attribute of its key pattern that the request lacks.
    #[inline]
    pub(super) fn missing_attribute(&self, request: &Request<'_>) -> Option<&Attribute> {
        let mut attributes = self.key_pattern.attributes().iter();
        attributes.find(|attribute| request.get(attribute).is_none())
    }

    /// The globs that an endpoint must match for this rule to apply.
    pub(crate) fn endpoint_globs(&self) -> impl Iterator<Item = &Glob> {
        let conditions = self.conditions.iter().filter(|(name, _)| *name == Attribute::Endpoint);
        let globs = conditions.filter_map(|(_, condition)| condition.glob());
        self.key_pattern.endpoint().into_iter().chain(globs)
    }
}

/// A name that a rule can have.
fn checked_name(name: &str) -> Result<Box<str>, RuleError> {
    let is_sound = (1..=RULE_NAME_BYTES_MAX).contains(&name.len());
    if is_sound && !name.contains(char::is_control) {
        Ok(name.into())
    } else {
        Err(RuleError::Name)
    }
}

// ===== impl Scope, Mode, OnError =====

named_values! {
    Scope:
    Global = "global",
    Ip = "ip",
    Endpoint = "endpoint",
    User = "user",
    Custom = "custom",
}

named_values! {
    Mode:
    Enforce = "enforce",
    Shadow = "shadow",
    Unlimited = "unlimited",
}

named_values! {
    OnError:
    Local = "local",
    Allow = "allow",
    Deny = "deny",
}

impl Scope {
    /// Scope of a rule that names none: derived from the subject of its key pattern.
    pub(super) fn of(pattern: &Pattern) -> Self {
        match pattern.attributes().first() {
            Some(Attribute::UserId) => Self::User,
            Some(Attribute::Ip) => Self::Ip,
            Some(Attribute::Endpoint) => Self::Endpoint,
            Some(_) => Self::Custom,
            None if pattern.endpoint().is_some() => Self::Endpoint,
            None if pattern.as_str() == "global" => Self::Global,
            None => Self::Custom,
        }
    }
}
