//! One rule: a quota, a key pattern for its buckets, and conditions.

use std::borrow::Cow;
use std::time::Duration;

use sluicegate_core::{Quota, named_values};
use thiserror::Error;

use super::attribute::{Attribute, NAME_BYTES_MAX};
use super::condition::Condition;
use super::fold::fold;
use super::glob::{Glob, GlobError};
use super::pattern::{Pattern, PatternError};
use super::spec::{DESCRIPTION, NOTES, RuleSpec};
use super::work::Work;
use crate::request::Request;

/// Longest name of a plan, in bytes.
pub(crate) const PLAN_BYTES_MAX: usize = 32;
/// Most conditions of one rule.
pub(crate) const CONDITIONS_MAX: usize = 16;
/// Longest name of a rule, in bytes.
pub(crate) const RULE_NAME_BYTES_MAX: usize = 128;
/// Most names that one rule replaces.
pub(crate) const REPLACES_MAX: usize = 32;

/// The plan of rules for requests whose own plan no other rule names.
pub(crate) const DEFAULT_PLAN: &str = "default";

/// Subject of a rule, for display and headers. Ties between denials are broken in the order of the variants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// All requests together.
    Global,
    /// A client address.
    Ip,
    /// A path or route.
    Endpoint,
    /// A user or account.
    User,
    /// Any other subject.
    Custom,
}

/// Effect of a rule's denials.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Mode {
    /// They deny the request.
    #[default]
    Enforce,
    /// They are only recorded, as would-be denials.
    Shadow,
    /// The rule applies, and so can replace others, but it has no buckets and limits nothing.
    Unlimited,
}

/// Form in which a rule compares the endpoint of a request, and takes it into its keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum PathForm {
    /// As the request has it: `/login` is not `/login/`.
    #[default]
    Exact,
    /// [Folded](super::fold()): `/login`, `/login/`, `/LOGIN` and `/login;x` are the same endpoint.
    Folded,
}

/// Policy of a rule while its store is in trouble.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum OnError {
    /// A bucket in this process answers, with a share of the quota.
    #[default]
    Local,
    /// The rule allows.
    Allow,
    /// The rule denies.
    Deny,
}

/// A quota, a key pattern for its buckets, and the conditions under which it applies.
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
    /// Texts of [`NOTES`], in their order.
    notes: [Box<str>; NOTES.len()],
    /// At most one for an attribute, in the order of their names.
    conditions: Box<[(Attribute, Condition)]>,
    name: Option<Box<str>>,
    replaces: Box<[Box<str>]>,
    path: PathForm,
}

/// Reason for refusing a rule.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RuleError {
    /// The key pattern is not valid.
    #[error(transparent)]
    Pattern(#[from] PatternError),
    /// A condition is not valid.
    #[error("condition on {attribute}: {error}")]
    Glob {
        /// Attribute of the condition.
        attribute: String,
        /// Error of its glob.
        error: GlobError,
    },
    /// A condition on a name that no attribute can have.
    #[error(
        "`{name}` is not the name of an attribute (at most {NAME_BYTES_MAX} letters, digits, `_`, `-`, `.`)"
    )]
    AttributeName {
        /// The name as given.
        name: String,
    },
    /// Duplicate conditions on one attribute.
    #[error("the condition on `{attribute}` is duplicated")]
    SameCondition {
        /// The attribute with two conditions.
        attribute: String,
    },
    /// More conditions than a rule may have.
    #[error("the rule has more than {CONDITIONS_MAX} conditions")]
    TooManyConditions,
    /// The plan's name is too long, or has control characters in it.
    #[error("a plan's name must have at most {PLAN_BYTES_MAX} bytes and no control characters")]
    PlanName,
    /// A name, its own or one that it replaces, is empty, too long, or has control characters in it.
    #[error("a name must have 1 to {RULE_NAME_BYTES_MAX} bytes and no control characters")]
    Name,
    /// More names to replace than a rule may have.
    #[error("the rule replaces more than {REPLACES_MAX} names")]
    TooManyReplaced,
    /// A duplicate name to replace.
    #[error("`{name}` is duplicated")]
    SameReplaced {
        /// The name as given.
        name: String,
    },
    /// A rule that replaces its own name.
    #[error("a rule cannot replace itself")]
    ReplacesItself,
}

impl Rule {
    /// A rule that is enforced, for every plan, without conditions; its scope is derived from its key pattern.
    ///
    /// # Errors
    ///
    /// The first mistake in the key pattern, with its position.
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
            notes: Default::default(),
            conditions: Box::default(),
            name: None,
            replaces: Box::default(),
            path: PathForm::default(),
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

    /// This rule for requests whose `attribute` meets a [`Condition`], such as `/api/**` or `!/login`, in addition to its
    /// other conditions, which are on other attributes.
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
        let is_path = attribute == Attribute::Endpoint.name();
        let form = if is_path { self.path } else { PathForm::Exact };
        let condition = Condition::parse_as(condition, form)
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

    /// This rule with another form of the endpoints that it compares and takes into its keys. With
    /// [`PathForm::Folded`] its own globs for endpoints are folded too.
    ///
    /// # Errors
    ///
    /// A glob for endpoints that is empty in that form, such as `..` or `;v=1`.
    pub fn with_path(mut self, path: PathForm) -> Result<Self, RuleError> {
        self.path = path;
        self.key_pattern = self.key_pattern.with_path(path)?;
        for (attribute, condition) in &mut self.conditions {
            if *attribute == Attribute::Endpoint {
                *condition = Condition::parse_as(condition.as_str(), path).map_err(|error| {
                    RuleError::Glob { attribute: attribute.name().into(), error }
                })?;
            }
        }
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

    /// This rule in place of all rules with one of these names: wherever it applies, they do not, whatever its own mode
    /// and even if it is itself replaced.
    ///
    /// # Errors
    ///
    /// Names that are empty, too long, duplicated or the rule's own, or have control characters in them; and too many.
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

    /// This rule in another mode.
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

    /// This rule active or inactive.
    #[must_use]
    pub fn with_is_active(mut self, is_active: bool) -> Self {
        self.is_active = is_active;
        self
    }

    /// This rule with a description for people, truncated to a kilobyte.
    #[must_use]
    pub fn with_description(mut self, description: &str) -> Self {
        self.notes[DESCRIPTION] = NOTES[DESCRIPTION].truncated(description);
        self
    }

    /// This rule with the columns of a spec that decide nothing.
    pub(super) fn with_notes_of(mut self, spec: &RuleSpec) -> Self {
        self.notes = NOTES.map(|note| note.truncated(note.get(spec)));
        self
    }

    /// Its id, which names its buckets and breaks ties.
    #[must_use]
    pub fn rule_id(&self) -> u64 {
        self.rule_id
    }

    /// Its key pattern: requests with the same values of its placeholders share a bucket.
    #[must_use]
    pub fn key_pattern(&self) -> &Pattern {
        &self.key_pattern
    }

    /// Its scope.
    #[must_use]
    pub fn scope(&self) -> Scope {
        self.scope
    }

    /// Quota of each of its buckets.
    #[must_use]
    pub fn quota(&self) -> &Quota {
        &self.quota
    }

    /// The plan it is for; `None` for all plans.
    #[must_use]
    pub fn plan(&self) -> Option<&str> {
        self.plan.as_deref()
    }

    /// Effect of its denials.
    #[must_use]
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// Its policy for store trouble.
    #[must_use]
    pub fn on_error(&self) -> OnError {
        self.on_error
    }

    /// Form of the endpoints that it compares and takes into its keys.
    #[must_use]
    pub fn path(&self) -> PathForm {
        self.path
    }

    /// The value of a request's attribute as this rule compares it and takes it into its keys.
    #[inline]
    #[must_use]
    pub fn value<'r>(&self, request: &'r Request<'_>, attribute: &Attribute) -> Option<&'r str> {
        match (self.path, attribute) {
            (PathForm::Folded, Attribute::Endpoint) => request.folded_endpoint(),
            _ => request.get(attribute),
        }
    }

    /// Returns whether it is active: an inactive rule never applies.
    #[must_use]
    pub fn is_active(&self) -> bool {
        self.is_active
    }

    /// Its description for people; empty if absent.
    #[must_use]
    pub fn description(&self) -> &str {
        &self.notes[DESCRIPTION]
    }

    /// Its conditions, in the order of the names, without the endpoint that the key pattern may name.
    #[must_use]
    pub fn conditions(&self) -> &[(Attribute, Condition)] {
        &self.conditions
    }

    /// Name by which other rules replace it, if any.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// The names of the rules that do not apply where it does, as they were written.
    pub fn replaces(&self) -> impl ExactSizeIterator<Item = &str> {
        self.replaces.iter().map(AsRef::as_ref)
    }

    /// Columns of this rule: [`RuleSpec::build`] makes the same rule of them. Tokens and period are as written where they
    /// were given; a rate of 0.016 a second is one per 62.5 s.
    #[must_use]
    pub fn spec(&self) -> RuleSpec {
        let (tokens, period_us) = self.quota.rate().tokens_and_period_us();
        let algorithm = self.quota.algorithm();
        let conditions = self.conditions.iter();
        let mut spec = RuleSpec {
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
            conditions: conditions
                .map(|(name, condition)| (name.name().into(), condition.as_str().into()))
                .collect(),
            name: self.name().unwrap_or_default().into(),
            replaces: self.replaces().map(Into::into).collect(),
            path: self.path,
            ..RuleSpec::default()
        };
        for (note, text) in NOTES.iter().zip(&self.notes) {
            *note.get_mut(&mut spec) = text.to_string();
        }
        spec
    }

    /// Attribute of the subject of its buckets: `user_id` if its key pattern has it, else `ip`, else the first
    /// placeholder. `None` without placeholders.
    #[must_use]
    pub fn subject_attribute(&self) -> Option<&Attribute> {
        self.key_pattern.attributes().first()
    }

    /// Subject of a request's bucket, by which overrides are found: the value of the
    /// [subject attribute](Self::subject_attribute); for a rule without placeholders, its key pattern. `None` if the
    /// request lacks it.
    #[inline]
    #[must_use]
    pub fn subject<'r>(&'r self, request: &'r Request<'_>) -> Option<&'r str> {
        match self.subject_attribute() {
            Some(attribute) => self.value(request, attribute),
            None => Some(self.key_pattern.as_str()),
        }
    }

    /// Readable name of a request's bucket, such as `user:42`. `None` if the request lacks one of the key pattern's
    /// attributes.
    #[must_use]
    pub fn bucket_key(&self, request: &Request<'_>) -> Option<String> {
        self.key_pattern.filled(|attribute| self.value(request, attribute))
    }

    /// Returns whether all its conditions hold, and the endpoint of its key pattern, if any, matches.
    #[must_use]
    pub fn conditions_match(&self, request: &Request<'_>) -> bool {
        self.conditions_match_within(request, &Work::unlimited())
    }

    /// As [`conditions_match`](Self::conditions_match). False too if the work is exhausted.
    #[inline]
    pub(super) fn conditions_match_within(&self, request: &Request<'_>, work: &Work) -> bool {
        self.failing_condition(request, work).is_none()
    }

    /// The attribute of a condition that does not hold.
    #[inline]
    pub(super) fn failing_condition(
        &self,
        request: &Request<'_>,
        work: &Work,
    ) -> Option<&Attribute> {
        let mut conditions = self.conditions.iter();
        let fails = |(name, condition): &&(Attribute, Condition)| {
            !condition.holds_within(self.value(request, name), work)
        };
        let failing = conditions.find(fails);
        let is_other_endpoint = || {
            let glob = self.key_pattern.endpoint();
            let endpoint = self.value(request, &Attribute::Endpoint);
            let matches =
                |glob: &Glob| endpoint.is_some_and(|text| glob.matches_within(text, work));
            glob.is_some_and(|glob| !matches(glob))
        };
        failing
            .map(|(attribute, _)| attribute)
            .or_else(|| is_other_endpoint().then_some(&Attribute::Endpoint))
    }

    /// Returns whether the request has every attribute of its key pattern.
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

/// Checks the length and characters of a rule's name.
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
    PathForm:
    Exact = "exact",
    Folded = "folded",
}

named_values! {
    OnError:
    Local = "local",
    Allow = "allow",
    Deny = "deny",
}

impl PathForm {
    /// A path, or a glob for paths, in this form.
    pub(super) fn of(self, path: &str) -> Cow<'_, str> {
        match self {
            Self::Exact => path.into(),
            Self::Folded => fold(path),
        }
    }
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
