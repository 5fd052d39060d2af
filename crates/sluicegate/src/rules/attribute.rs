//! Attributes of a request, by name.

use std::fmt;

/// Name of an attribute of a request.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Attribute {
    /// `user_id`: the user or account.
    UserId,
    /// `ip`: the client's address.
    Ip,
    /// `endpoint`: the path, or the route's template.
    Endpoint,
    /// `method`: the method of the request.
    Method,
    /// `plan`: the plan. Rules have a column for it; as an attribute it gives one rule a bucket for every plan.
    Plan,
    /// Any other attribute, by its name.
    Other(Box<str>),
}

impl Attribute {
    /// The attribute of this name.
    #[must_use]
    pub fn new(name: &str) -> Self {
        match name {
            "user_id" => Self::UserId,
            "ip" => Self::Ip,
            "endpoint" => Self::Endpoint,
            "method" => Self::Method,
            "plan" => Self::Plan,
            other => Self::Other(other.into()),
        }
    }

    /// Name in key patterns, conditions and requests.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::UserId => "user_id",
            Self::Ip => "ip",
            Self::Endpoint => "endpoint",
            Self::Method => "method",
            Self::Plan => "plan",
            Self::Other(name) => name,
        }
    }

    /// Returns whether this is a valid name: letters, digits, `_`, `-` and `.`, at most 64 of them.
    #[must_use]
    pub fn is_name(name: &str) -> bool {
        (1..=NAME_BYTES_MAX).contains(&name.len())
            && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-.".contains(&b))
    }
}

/// Longest name of an attribute, in bytes.
pub(crate) const NAME_BYTES_MAX: usize = 64;

impl fmt::Display for Attribute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
