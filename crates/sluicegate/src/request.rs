//! A request: attributes, a plan, a cost.

use std::borrow::Cow;
use std::sync::OnceLock;

use smallvec::SmallVec;

use crate::compat::floor_char_boundary;
use crate::rules::{Attribute, fold};

/// A request to be checked against the rules: its attributes, its plan and its cost.
///
/// It borrows everything: making one allocates nothing, as long as it has few extra attributes.
///
/// ```
/// use sluicegate::Request;
///
/// let request = Request::new()
///     .user_id("42")
///     .ip("203.0.113.9")
///     .endpoint("/api/search")
///     .method("GET")
///     .plan("free")
///     .attribute("tenant", "acme")
///     .cost(1);
/// ```
#[derive(Clone, Debug)]
pub struct Request<'a> {
    user_id: Option<&'a str>,
    ip: Option<&'a str>,
    endpoint: Option<&'a str>,
    /// The path that the endpoint was made from, if it is not the endpoint itself, and the most bytes of its folded form.
    written: Option<(&'a str, usize)>,
    method: Option<&'a str>,
    plan: Option<&'a str>,
    others: SmallVec<[(&'a str, &'a str); 4]>,
    cost: u64,
    /// The path in folded form, once a rule has asked for it; `None` if it is in that form already.
    folded: OnceLock<Option<Box<str>>>,
}

impl Default for Request<'_> {
    fn default() -> Self {
        Self::new()
    }
}

impl<'a> Request<'a> {
    /// A request without attributes that costs one token.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            user_id: None,
            ip: None,
            endpoint: None,
            written: None,
            method: None,
            plan: None,
            others: SmallVec::new_const(),
            cost: 1,
            folded: OnceLock::new(),
        }
    }

    /// Sets the attribute `user_id`.
    #[must_use]
    pub const fn user_id(mut self, user_id: &'a str) -> Self {
        self.user_id = Some(user_id);
        self
    }

    /// Sets the attribute `ip`. Any text is accepted; spell one address one way.
    #[must_use]
    pub const fn ip(mut self, ip: &'a str) -> Self {
        self.ip = Some(ip);
        self
    }

    /// Sets the attribute `endpoint`: a path, or better the route's template.
    #[inline]
    #[must_use]
    pub fn endpoint(mut self, endpoint: &'a str) -> Self {
        self.endpoint = Some(endpoint);
        self.written = None;
        self.folded = OnceLock::new();
        self
    }

    /// Sets the attribute `endpoint` to a path that was normalized or truncated. Rules with
    /// [`PathForm::Folded`](crate::PathForm::Folded) fold the path as it was written, complete, and truncate the result to
    /// `bytes_max`: normalizing or truncating first would leave some spellings of a path apart.
    ///
    /// ```
    /// use sluicegate::Request;
    ///
    /// let request = Request::new().normalized_endpoint("/login/x/..;", "/login/x/..;", 1024);
    /// assert_eq!(request.folded_endpoint(), Some("/login"));
    /// ```
    #[inline]
    #[must_use]
    pub fn normalized_endpoint(
        mut self,
        endpoint: &'a str,
        written: &'a str,
        bytes_max: usize,
    ) -> Self {
        self = self.endpoint(endpoint);
        self.written = Some((written, bytes_max));
        self
    }

    /// Sets the attribute `method`.
    #[must_use]
    pub const fn method(mut self, method: &'a str) -> Self {
        self.method = Some(method);
        self
    }

    /// Sets the plan. Names are case-sensitive; without a plan the rules for `default` apply.
    #[must_use]
    pub const fn plan(mut self, plan: &'a str) -> Self {
        self.plan = Some(plan);
        self
    }

    /// Sets the tokens to take from every bucket; zero is a peek.
    #[must_use]
    pub const fn cost(mut self, cost: u64) -> Self {
        self.cost = cost;
        self
    }

    /// Sets any attribute by name. The names of the methods above set the same attributes; of two values for one name
    /// the last counts.
    #[inline]
    #[must_use]
    pub fn attribute(mut self, name: &'a str, value: &'a str) -> Self {
        match name {
            "user_id" => self.user_id = Some(value),
            "ip" => self.ip = Some(value),
            "endpoint" => return self.endpoint(value),
            "method" => self.method = Some(value),
            "plan" => self.plan = Some(value),
            name => self.others.push((name, value)),
        }
        self
    }

    /// Value of an attribute, if it is set.
    #[inline]
    #[must_use]
    pub fn get(&self, attribute: &Attribute) -> Option<&'a str> {
        match attribute {
            Attribute::UserId => self.user_id,
            Attribute::Ip => self.ip,
            Attribute::Endpoint => self.endpoint,
            Attribute::Method => self.method,
            Attribute::Plan => self.get_plan(),
            Attribute::Other(name) => {
                let found = self.others.iter().rev().find(|(other, _)| **other == **name);
                found.map(|(_, value)| *value)
            }
        }
    }

    /// The endpoint in [folded](fold) form, which rules with [`PathForm::Folded`](crate::PathForm::Folded) compare. Made
    /// once, without allocating if it is in that form already.
    #[must_use]
    pub fn folded_endpoint(&self) -> Option<&str> {
        let endpoint = self.endpoint?;
        let (path, bytes_max) = self.written.unwrap_or((endpoint, usize::MAX));
        let folded = self.folded.get_or_init(|| match fold(path) {
            Cow::Borrowed(_) => None,
            Cow::Owned(folded) => Some(folded.into()),
        });
        let folded = folded.as_deref().unwrap_or(path);
        Some(&folded[..floor_char_boundary(folded, bytes_max)])
    }

    /// Bytes of all its values.
    pub(crate) fn value_bytes(&self) -> usize {
        let known = [self.user_id, self.ip, self.endpoint, self.method, self.plan];
        let others = self.others.iter().map(|(_, value)| *value);
        known.into_iter().flatten().chain(others).map(str::len).sum()
    }

    /// The same request for another endpoint.
    pub(crate) fn with_other_endpoint<'b>(&'b self, endpoint: &'b str) -> Request<'b> {
        Request {
            user_id: self.user_id,
            ip: self.ip,
            endpoint: Some(endpoint),
            written: None,
            method: self.method,
            plan: self.plan,
            others: self.others.iter().copied().collect(),
            cost: self.cost,
            folded: OnceLock::new(),
        }
    }

    /// Attributes without a method of their own, with their names, in the order in which they were set.
    pub fn others(&self) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.others.iter().copied()
    }

    /// Its plan; `None` if it is empty.
    #[inline]
    #[must_use]
    pub fn get_plan(&self) -> Option<&'a str> {
        self.plan.filter(|plan| !plan.is_empty())
    }

    /// Tokens to take from every bucket.
    #[inline]
    #[must_use]
    pub const fn get_cost(&self) -> u64 {
        self.cost
    }
}
