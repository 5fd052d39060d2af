//! Attributes of a request, by name.

use std::fmt;

/// The name of something known about a request.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Attribute {
    /// `user_id`: who asks.
    UserId,
    /// `ip`: from which address.
    Ip,
    /// `endpoint`: for what.
    Endpoint,
    /// `method`: to do what with it.
    Method,
    /// `plan`: under which plan. Rules have a column for it; as an attribute it lets one rule have a
    /// bucket for every plan.
    Plan,
    /// Anything else.
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

    /// Its name.
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

    /// May this be the name of an attribute: letters, digits, `_`, `-` and `.`, not too many?
    #[must_use]
    pub fn is_name(name: &str) -> bool {
        (1..=NAME_BYTES_MAX).contains(&name.len())
            && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-.".contains(&b))
    }
}

/// The longest name of an attribute.
pub(crate) const NAME_BYTES_MAX: usize = 64;

impl fmt::Display for Attribute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
