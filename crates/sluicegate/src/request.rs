//! What is asked: attributes, a plan, a cost.

use smallvec::SmallVec;

use crate::rules::Attribute;

/// A request to be checked against the rules: what is known about it, its plan, and what it costs.
///
/// It borrows everything, so that making one costs next to nothing.
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
    method: Option<&'a str>,
    plan: Option<&'a str>,
    others: SmallVec<[(&'a str, &'a str); 4]>,
    cost: u64,
}

impl Default for Request<'_> {
    fn default() -> Self {
        Self::new()
    }
}

impl<'a> Request<'a> {
    /// A request of which nothing is known, that costs one token.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            user_id: None,
            ip: None,
            endpoint: None,
            method: None,
            plan: None,
            others: SmallVec::new_const(),
            cost: 1,
        }
    }

    /// Who asks.
    #[must_use]
    pub const fn user_id(mut self, user_id: &'a str) -> Self {
        self.user_id = Some(user_id);
        self
    }

    /// From which address. Any text will do; give one address one spelling.
    #[must_use]
    pub const fn ip(mut self, ip: &'a str) -> Self {
        self.ip = Some(ip);
        self
    }

    /// For what: a path, or better the route's template.
    #[must_use]
    pub const fn endpoint(mut self, endpoint: &'a str) -> Self {
        self.endpoint = Some(endpoint);
        self
    }

    /// To do what with it.
    #[must_use]
    pub const fn method(mut self, method: &'a str) -> Self {
        self.method = Some(method);
        self
    }

    /// Under which plan. Names are case-sensitive; without a plan the rules for `default` apply.
    #[must_use]
    pub const fn plan(mut self, plan: &'a str) -> Self {
        self.plan = Some(plan);
        self
    }

    /// How many tokens it takes from every bucket; zero only looks.
    #[must_use]
    pub const fn cost(mut self, cost: u64) -> Self {
        self.cost = cost;
        self
    }

    /// Anything else, by name. The names of the methods above mean the same here; of two values for
    /// one name the last counts.
    #[must_use]
    pub fn attribute(mut self, name: &'a str, value: &'a str) -> Self {
        match name {
            "user_id" => self.user_id = Some(value),
            "ip" => self.ip = Some(value),
            "endpoint" => self.endpoint = Some(value),
            "method" => self.method = Some(value),
            "plan" => self.plan = Some(value),
            name => self.others.push((name, value)),
        }
        self
    }

    /// The value of an attribute, if it is known.
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

    /// The attributes that have no method of their own, by name, in the order in which they were given.
    pub fn others(&self) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.others.iter().copied()
    }

    /// Its plan; an empty one is none.
    #[inline]
    #[must_use]
    pub fn get_plan(&self) -> Option<&'a str> {
        self.plan.filter(|plan| !plan.is_empty())
    }

    /// Its cost.
    #[inline]
    #[must_use]
    pub const fn get_cost(&self) -> u64 {
        self.cost
    }
}
