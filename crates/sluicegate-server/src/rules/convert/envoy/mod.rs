//! The configuration of envoyproxy/ratelimit: a domain and a tree of descriptors.
//!
//! There, a descriptor of a call goes down the tree entry by entry, at each level to the one node that fits best:
//! the one with its value, else the first whose value ends in `*` and begins it, else the one without a value. The
//! limit of the node where its last entry ends is the one that counts.
//!
//! Here, every `rate_limit` is a rule. Its key pattern and conditions are those of the nodes down to it, and each
//! condition leaves out what a better node beside it takes. Two more conditions, on the attributes that the gRPC
//! listener gives to every descriptor, see to it that all entries are there, in order, and in this domain:
//!
//! ```text
//!   key: path, value: /login           endpoint = /login
//!   key: path, value: /api/*           endpoint = /api/**
//!   key: path                          endpoint = !/login|/api/**
//!     key: user                          and no condition on user_id
//!                                        domain = edge, descriptor = path,user
//! ```

use sluicegate::Algorithm;

use super::names::{attribute, is_literal, is_plain};
use super::siblings::{Sibling, Value};
use super::yaml::{Node, parse};
use super::{Converted, Limit, Wrong};
use crate::envoy_names::{BETWEEN_KEYS, DESCRIPTOR, DOMAIN, unit_seconds};

/// Deeper trees are no configuration.
const DEPTH_MAX: usize = 8;

/// What a descriptor may say.
const OF_DESCRIPTOR: [&str; 9] = [
    "key",
    "value",
    "rate_limit",
    "descriptors",
    "shadow_mode",
    "detailed_metric",
    "value_to_metric",
    "share_threshold",
    "quota_mode",
];
/// What a limit may say.
const OF_LIMIT: [&str; 5] = ["unit", "requests_per_unit", "unlimited", "name", "replaces"];

/// One descriptor on the way down.
#[derive(Clone, Debug)]
struct Step<'a> {
    /// As a call has it.
    key: &'a str,
    attribute: &'a str,
    /// As it stands in the key pattern.
    piece: String,
    /// What the attribute must be.
    condition: Option<String>,
}

/// Converts the text of a file, to rules that are counted in this way.
///
/// # Errors
///
/// What keeps it from being such a configuration at all.
pub(crate) fn convert(text: &str, algorithm: Algorithm) -> Result<Converted, Wrong> {
    let root = parse(text)?;
    let domain = root.get("domain").and_then(Node::text).unwrap_or_default();
    let Some(descriptors) = root.get("descriptors") else {
        return Err("has no `descriptors`: is it the configuration of envoyproxy/ratelimit?".into());
    };
    if domain.is_empty() {
        return Err("has no `domain`".into());
    }
    if !is_plain(domain) {
        return Err("its domain has `{` or `}` in it, which a key pattern cannot have".into());
    }
    if !is_literal(domain) || domain.contains('*') {
        return Err("its domain has `*` or `!` in it, which mean something in a condition".into());
    }
    let mut converted = Converted::new(algorithm);
    for (name, node) in root.entries() {
        if name != "domain" && name != "descriptors" {
            converted.remark(node.line, format!("`{name}`"), "is unknown, and does nothing");
        }
    }
    let mut walk = Walk { domain, converted };
    walk.level(descriptors, &[]);
    Ok(walk.converted.finish())
}

struct Walk<'a> {
    domain: &'a str,
    converted: Converted,
}

impl Walk<'_> {
    fn level(&mut self, descriptors: &Node, path: &[Step<'_>]) {
        let mut siblings: Vec<Sibling<'_>> = Vec::new();
        for node in descriptors.members() {
            match sibling(node, path, &siblings) {
                Ok(sibling) => siblings.push(sibling),
                Err((what, why)) => self.converted.leave_out(node.line, what, why),
            }
        }
        for own in &siblings {
            if let Some(other) = own.is_never_reached(&siblings) {
                let why = format!(
                    "is never reached: the descriptor in line {} takes its values",
                    other.line()
                );
                self.converted.leave_out(own.line(), own.to_string(), why);
                continue;
            }
            let step = Step {
                key: own.key,
                attribute: own.attribute,
                piece: own.piece(),
                condition: own.condition(&siblings),
            };
            let path: Vec<_> = path.iter().cloned().chain([step]).collect();
            self.descriptor(own.node, &path);
        }
    }

    fn descriptor(&mut self, node: &Node, path: &[Step<'_>]) {
        let what = what(path);
        for (name, value) in node.entries() {
            let why = match name.as_str() {
                "detailed_metric" | "value_to_metric" if value.is_true() => {
                    "is about metrics, which are by rule here"
                }
                name if OF_DESCRIPTOR.contains(&name) => continue,
                _ => "is unknown, and does nothing",
            };
            self.converted.remark(value.line, format!("{what}: `{name}`"), why);
        }
        if let Some(limit) = node.get("rate_limit") {
            self.limit(node, limit, path);
        }
        if let Some(below) = node.get("descriptors") {
            self.level(below, path);
        }
    }

    fn limit(&mut self, node: &Node, limit: &Node, path: &[Step<'_>]) {
        let what = what(path);
        for (name, value) in limit.entries() {
            if !OF_LIMIT.contains(&name.as_str()) {
                let about = format!("{what}: `{name}`");
                self.converted.remark(value.line, about, "is unknown, and does nothing");
            }
        }
        if node.get("quota_mode").is_some_and(Node::is_true) {
            let why =
                "is in quota mode, which has no equal; `mode = \"shadow\"` counts without denying";
            self.converted.leave_out(limit.line, what, why);
            return;
        }
        let is_unlimited = limit.get("unlimited").is_some_and(Node::is_true);
        let unit = limit.get("unit").and_then(Node::text).unwrap_or_default();
        let requests = limit.get("requests_per_unit").and_then(Node::number);
        let tokens = match (unit_seconds(unit), requests) {
            _ if is_unlimited => None,
            (Some(seconds), Some(tokens)) => Some((tokens, seconds)),
            _ => {
                let why =
                    "needs a `unit` from second to year, and a whole number of `requests_per_unit`";
                self.converted.leave_out(limit.line, what, why);
                return;
            }
        };
        let name = limit.get("name").and_then(Node::text).unwrap_or_default();
        self.converted.add(Limit {
            line: limit.line,
            what,
            key_pattern: self.key_pattern(path),
            conditions: self.conditions(path),
            tokens,
            is_shadow: node.get("shadow_mode").is_some_and(Node::is_true),
            description: name.into(),
            name: name.into(),
            replaces: replaces(limit),
        });
    }

    fn key_pattern(&self, path: &[Step<'_>]) -> String {
        let pieces: Vec<_> = path.iter().map(|step| step.piece.as_str()).collect();
        format!("{}:{}", self.domain, pieces.join(":"))
    }

    /// Those on the way down, and those of every rule.
    fn conditions(&self, path: &[Step<'_>]) -> Vec<(String, String)> {
        let keys: Vec<_> = path.iter().map(|step| step.key).collect();
        let steps = path.iter().filter_map(|step| Some((step.attribute, step.condition.clone()?)));
        let all =
            steps.chain([(DOMAIN, self.domain.to_owned()), (DESCRIPTOR, keys.join(BETWEEN_KEYS))]);
        all.map(|(attribute, condition)| (attribute.to_owned(), condition)).collect()
    }
}

/// A descriptor; or what to call it, and why it cannot be said by a rule.
fn sibling<'a>(
    node: &'a Node,
    path: &[Step<'_>],
    before: &[Sibling<'_>],
) -> Result<Sibling<'a>, (String, String)> {
    let Some(key) = node.get("key").and_then(Node::text) else {
        return Err(("descriptor".into(), "has no key".into()));
    };
    let value = node.get("value").and_then(Node::text).filter(|value| !value.is_empty());
    let what = value.map_or_else(|| format!("`{key}`"), |value| format!("`{key}: {value}`"));
    let refused = |why: &str| Err((what.clone(), why.to_owned()));
    let Some(attribute) = attribute(key) else {
        return refused("cannot be the name of an attribute");
    };
    if [DOMAIN, DESCRIPTOR].contains(&attribute) {
        return refused("is the name of an attribute that every call has already");
    }
    if path.iter().any(|step| step.attribute == attribute) {
        return refused("is on the way down twice, and an attribute has one value");
    }
    if path.len() >= DEPTH_MAX {
        return refused("is too deep in the tree");
    }
    if value.is_some_and(|value| !is_plain(value)) {
        return refused("has a character in its value that a key pattern cannot have");
    }
    if value.is_some_and(|value| !is_literal(value) || value.contains('|')) {
        return refused("has `!` or `|` in its value, which mean something in a condition");
    }
    let is_shared = node.get("share_threshold").is_some_and(Node::is_true);
    let value = match value.map(|value| (value, value.strip_suffix('*'))) {
        None => Value::Any,
        Some((_, Some(prefix))) if !prefix.contains('*') => Value::Prefix { prefix, is_shared },
        Some((value, None)) if !value.contains('*') => Value::Exact(value),
        Some(_) => return refused("has a `*` in its value that is not at its end"),
    };
    let sibling = Sibling { node, key, attribute, value, position: before.len() };
    match before.iter().find(|other| other.is_same(&sibling)) {
        Some(other) => refused(&format!("is in line {} already", other.line())),
        None => Ok(sibling),
    }
}

/// The names of the limits that one takes the place of, each once.
fn replaces(limit: &Node) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for node in limit.get("replaces").map(Node::members).unwrap_or_default() {
        let name = node.get("name").and_then(Node::text).unwrap_or_default();
        if !names.iter().any(|known| known == name) {
            names.push(name.into());
        }
    }
    names
}

/// The path of a descriptor, for people.
fn what(path: &[Step<'_>]) -> String {
    let pieces: Vec<_> = path.iter().map(|step| step.piece.as_str()).collect();
    format!("`{}`", pieces.join(" / "))
}

#[cfg(test)]
mod golden;
#[cfg(test)]
mod tests;
