//! Descriptors beside each other in a configuration of envoyproxy/ratelimit: which values each takes.

use std::borrow::Cow;
use std::fmt;

use super::yaml::Node;
use crate::normalize::address;

/// A descriptor, as far as those beside it matter.
#[derive(Debug)]
pub(super) struct Sibling<'a> {
    pub(super) node: &'a Node,
    /// As a call has it.
    pub(super) key: &'a str,
    pub(super) attribute: &'a str,
    pub(super) value: Value<'a>,
    /// Which it is of those beside it, in the order of the file.
    pub(super) position: usize,
}

/// What a descriptor says about the value of its key. None of these texts has a `*` in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Value<'a> {
    /// It is this.
    Exact(&'a str),
    /// It begins with this; all such values have one bucket, or one each.
    Prefix { prefix: &'a str, is_shared: bool },
    /// It may be anything.
    Any,
}

impl Sibling<'_> {
    pub(super) fn line(&self) -> u64 {
        self.node.line
    }

    /// Do both say the same of one key?
    pub(super) fn is_same(&self, other: &Sibling<'_>) -> bool {
        let is_same_value = match (self.value, other.value) {
            (Value::Exact(own), Value::Exact(other)) => own == other,
            (Value::Prefix { prefix: own, .. }, Value::Prefix { prefix: other, .. }) => {
                own == other
            }
            (own, other) => own == other,
        };
        self.key == other.key && is_same_value
    }

    /// As it stands in a key pattern.
    pub(super) fn piece(&self) -> String {
        let Self { key, attribute, .. } = self;
        match self.value {
            Value::Exact(value) => format!("{key}={value}"),
            Value::Prefix { prefix, is_shared: true } => format!("{key}={prefix}*"),
            Value::Prefix { prefix, is_shared: false } => {
                format!("{key}={prefix}*:{{{attribute}}}")
            }
            Value::Any => format!("{{{attribute}}}"),
        }
    }

    /// The condition on its attribute: what it takes, but for what a better one beside it does.
    pub(super) fn condition(&self, all: &[Sibling<'_>]) -> Option<String> {
        let better = all.iter().filter(|other| other.is_better(self));
        let except: Vec<_> = better.filter_map(Sibling::glob).collect();
        match (self.glob(), except.is_empty()) {
            (None, true) => None,
            (None, false) => Some(format!("!{}", except.join("|"))),
            (Some(glob), true) => Some(glob),
            (Some(glob), false) => Some(format!("{glob} !{}", except.join("|"))),
        }
    }

    /// What it takes as a glob; none if that is anything.
    fn glob(&self) -> Option<String> {
        match self.value {
            // A request has its address in one spelling, whatever the caller's was.
            Value::Exact(value) if self.attribute == "ip" => {
                Some(address(value).map_or_else(|| value.into(), Cow::into_owned))
            }
            Value::Exact(value) => Some(value.into()),
            // Theirs does not stop at a `/`.
            Value::Prefix { prefix, .. } => Some(format!("{prefix}**")),
            Value::Any => None,
        }
    }

    /// The one beside it that takes every value that it could.
    pub(super) fn is_never_reached<'s>(&self, all: &'s [Self]) -> Option<&'s Self> {
        all.iter().find(|other| match (other.value, self.value) {
            (Value::Prefix { prefix, .. }, Value::Prefix { prefix: own, .. }) => {
                own.starts_with(prefix) && other.is_better(self)
            }
            (Value::Prefix { prefix: "", .. }, Value::Any) => other.is_better(self),
            _ => false,
        })
    }

    /// Is it asked first, for some value that both could take?
    fn is_better(&self, other: &Sibling<'_>) -> bool {
        if self.key != other.key || self.denies_everything() {
            return false;
        }
        match (self.value, other.value) {
            (Value::Exact(value), Value::Prefix { prefix, .. }) => value.starts_with(prefix),
            (Value::Prefix { prefix, .. }, Value::Prefix { prefix: others, .. }) => {
                let overlap = prefix.starts_with(others) || others.starts_with(prefix);
                overlap && self.position < other.position
            }
            (Value::Exact(_) | Value::Prefix { .. }, Value::Any) => true,
            (_, Value::Exact(_)) | (Value::Any, _) => false,
        }
    }

    /// Does it let nothing through? No rule can say that, so another goes on to count what it was for.
    fn denies_everything(&self) -> bool {
        let limit = self.node.get("rate_limit");
        let is_unlimited =
            limit.and_then(|limit| limit.get("unlimited")).is_some_and(Node::is_true);
        let requests = limit.and_then(|limit| limit.get("requests_per_unit"));
        requests.and_then(Node::number) == Some(0)
            && !is_unlimited
            && self.node.get("descriptors").is_none()
    }
}

impl fmt::Display for Sibling<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = self.key;
        match self.value {
            Value::Exact(value) => write!(f, "`{key}: {value}`"),
            Value::Prefix { prefix, .. } => write!(f, "`{key}: {prefix}*`"),
            Value::Any => write!(f, "`{key}`"),
        }
    }
}
