//! Sibling descriptors in a configuration of envoyproxy/ratelimit, and the values each of them
//! matches.

use std::borrow::Cow;
use std::fmt;

use super::yaml::Node;
use crate::normalize::address;

/// A descriptor and what its siblings depend on.
#[derive(Debug)]
pub(super) struct Sibling<'a> {
    pub(super) node: &'a Node,
    /// Key in a call's descriptor.
    pub(super) key: &'a str,
    pub(super) attribute: &'a str,
    pub(super) value: Value<'a>,
    /// Index among its siblings, in the order of the file.
    pub(super) position: usize,
}

/// Values that a descriptor matches. None of these texts contains `*`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Value<'a> {
    /// This value only.
    Exact(&'a str),
    /// Values with this prefix: one bucket for all of them, or one each.
    Prefix { prefix: &'a str, is_shared: bool },
    /// Any value.
    Any,
}

impl Sibling<'_> {
    pub(super) fn line(&self) -> u64 {
        self.node.line
    }

    /// Returns whether both match the same values of the same key.
    pub(super) fn matches_same(&self, other: &Sibling<'_>) -> bool {
        let is_same_value = match (self.value, other.value) {
            (Value::Exact(own), Value::Exact(other)) => own == other,
            (Value::Prefix { prefix: own, .. }, Value::Prefix { prefix: other, .. }) => {
                own == other
            }
            (own, other) => own == other,
        };
        self.key == other.key && is_same_value
    }

    /// Its part of a key pattern.
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

    /// Condition on its attribute: the values it matches, except those of a sibling with
    /// precedence.
    pub(super) fn condition(&self, all: &[Sibling<'_>]) -> Option<String> {
        let preferred = all.iter().filter(|other| other.has_precedence_over(self));
        let except: Vec<_> = preferred.filter_map(Sibling::glob).collect();
        match (self.glob(), except.is_empty()) {
            (None, true) => None,
            (None, false) => Some(format!("!{}", except.join("|"))),
            (Some(glob), true) => Some(glob),
            (Some(glob), false) => Some(format!("{glob} !{}", except.join("|"))),
        }
    }

    /// Values it matches as a glob; `None` if any.
    fn glob(&self) -> Option<String> {
        match self.value {
            // Requests have addresses in normalized form.
            Value::Exact(value) if self.attribute == "ip" => {
                Some(address(value).map_or_else(|| value.into(), Cow::into_owned))
            }
            Value::Exact(value) => Some(value.into()),
            // Envoy's `*` also matches `/`.
            Value::Prefix { prefix, .. } => Some(format!("{prefix}**")),
            Value::Any => None,
        }
    }

    /// Sibling that takes precedence for every value this one matches.
    pub(super) fn shadowed_by<'s>(&self, all: &'s [Self]) -> Option<&'s Self> {
        all.iter().find(|other| match (other.value, self.value) {
            (Value::Prefix { prefix, .. }, Value::Prefix { prefix: own, .. }) => {
                own.starts_with(prefix) && other.has_precedence_over(self)
            }
            (Value::Prefix { prefix: "", .. }, Value::Any) => other.has_precedence_over(self),
            _ => false,
        })
    }

    /// Returns whether it takes precedence over `other` for a value that both match.
    fn has_precedence_over(&self, other: &Sibling<'_>) -> bool {
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

    /// Returns whether it denies everything. A rule cannot, so a sibling's rule counts those
    /// requests.
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
