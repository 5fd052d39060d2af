//! Configuration of envoyproxy/ratelimit: a domain and a tree of descriptors.
//!
//! That service walks down the tree with the entries of a call's descriptor. At each level it takes
//! the best matching node: the one with the entry's value, else the first whose value ends in `*`
//! and is a prefix of it, else the one without a value. The limit of the node at the last entry
//! counts.
//!
//! Here, every `rate_limit` becomes a rule. Its key pattern and conditions come from the nodes on
//! its path, and each condition excludes values of siblings with precedence. Two more conditions,
//! on attributes that the gRPC listener adds to every descriptor, require that all entries are
//! present, in order, and in this domain:
//!
//! ```text
//!   key: path, value: /login           endpoint = /login
//!   key: path, value: /api/*           endpoint = /api/**
//!   key: path                          endpoint = !/login|/api/**
//!     key: user                          and no condition on user_id
//!                                        domain = edge, descriptor = path,user
//! ```

use sluicegate::Algorithm;

use super::siblings::{Sibling, Value};
use super::text_checks::{attribute, is_literal, is_plain};
use super::yaml::{Node, parse};
use super::{ConvertError, Converted, Limit};
use crate::envoy_names::{BETWEEN_KEYS, DESCRIPTOR, DOMAIN, unit_seconds};
use crate::normalize::NAMESPACE;

/// Maximum depth of the tree.
const DEPTH_MAX: usize = 8;

/// Known fields of a descriptor.
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
/// Known fields of a limit.
const OF_LIMIT: [&str; 5] = ["unit", "requests_per_unit", "unlimited", "name", "replaces"];

/// A descriptor on the path to a limit.
#[derive(Clone, Debug)]
struct Step<'a> {
    /// Key in a call's descriptor.
    key: &'a str,
    attribute: &'a str,
    /// Part of the key pattern.
    piece: String,
    /// Condition on the attribute; `None` for any value.
    condition: Option<String>,
}

/// Converts the text of a file into rules with this algorithm.
///
/// # Errors
///
/// The text is not a configuration of envoyproxy/ratelimit.
pub(crate) fn convert(text: &str, algorithm: Algorithm) -> Result<Converted, ConvertError> {
    let root = parse(text)?;
    let domain = root.get("domain").and_then(Node::text).unwrap_or_default();
    let Some(descriptors) = root.get("descriptors") else {
        return Err(
            "`descriptors` is missing: is this a configuration of envoyproxy/ratelimit?".into()
        );
    };
    if domain.is_empty() {
        return Err("`domain` is missing".into());
    }
    if !is_plain(domain) {
        return Err(
            "the domain must not contain `{` or `}`, because it becomes part of a key pattern"
                .into(),
        );
    }
    if !is_literal(domain) || domain.contains('*') {
        return Err(
            "the domain must not contain `*` or `!`, which have a meaning in conditions".into()
        );
    }
    let mut converted = Converted::new(algorithm);
    for (name, node) in root.entries() {
        if name != "domain" && name != "descriptors" {
            converted.remark(node.line, format!("`{name}`"), "is an unknown field, ignored");
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
                Err((subject, reason)) => self.converted.leave_out(node.line, subject, reason),
            }
        }
        for own in &siblings {
            if let Some(other) = own.shadowed_by(&siblings) {
                let reason = format!(
                    "is never reached: the descriptor in line {} matches its values first",
                    other.line()
                );
                self.converted.leave_out(own.line(), own.to_string(), reason);
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
        let subject = subject(path);
        for (name, value) in node.entries() {
            let reason = match name.as_str() {
                "detailed_metric" | "value_to_metric" if value.is_true() => {
                    "is not supported: metrics are by rule"
                }
                name if OF_DESCRIPTOR.contains(&name) => continue,
                _ => "is an unknown field, ignored",
            };
            self.converted.remark(value.line, format!("{subject}: `{name}`"), reason);
        }
        if let Some(limit) = node.get("rate_limit") {
            self.limit(node, limit, path);
        }
        if let Some(below) = node.get("descriptors") {
            self.level(below, path);
        }
    }

    fn limit(&mut self, node: &Node, limit: &Node, path: &[Step<'_>]) {
        let subject = subject(path);
        for (name, value) in limit.entries() {
            if !OF_LIMIT.contains(&name.as_str()) {
                let about = format!("{subject}: `{name}`");
                self.converted.remark(value.line, about, "is an unknown field, ignored");
            }
        }
        if node.get("quota_mode").is_some_and(Node::is_true) {
            let reason = "is in quota mode, which is not supported; `mode = \"shadow\"` counts without denying";
            self.converted.leave_out(limit.line, subject, reason);
            return;
        }
        let is_unlimited = limit.get("unlimited").is_some_and(Node::is_true);
        let unit = limit.get("unit").and_then(Node::text).unwrap_or_default();
        let requests = limit.get("requests_per_unit").and_then(Node::number);
        let tokens = match (unit_seconds(unit), requests) {
            _ if is_unlimited => None,
            (Some(seconds), Some(tokens)) => Some((tokens, seconds)),
            _ => {
                let reason =
                    "needs a `unit` from second to year, and a whole number of `requests_per_unit`";
                self.converted.leave_out(limit.line, subject, reason);
                return;
            }
        };
        let name = limit.get("name").and_then(Node::text).unwrap_or_default();
        self.converted.add(Limit {
            line: limit.line,
            subject,
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

    /// Conditions of the path, and those of every rule.
    fn conditions(&self, path: &[Step<'_>]) -> Vec<(String, String)> {
        let keys: Vec<_> = path.iter().map(|step| step.key).collect();
        let steps = path.iter().filter_map(|step| Some((step.attribute, step.condition.clone()?)));
        let all =
            steps.chain([(DOMAIN, self.domain.to_owned()), (DESCRIPTOR, keys.join(BETWEEN_KEYS))]);
        all.map(|(attribute, condition)| (attribute.to_owned(), condition)).collect()
    }
}

/// Reads a descriptor, or returns its name and why a rule cannot express it.
fn sibling<'a>(
    node: &'a Node,
    path: &[Step<'_>],
    before: &[Sibling<'_>],
) -> Result<Sibling<'a>, (String, String)> {
    let Some(key) = node.get("key").and_then(Node::text) else {
        return Err(("descriptor".into(), "`key` is missing".into()));
    };
    let value = node.get("value").and_then(Node::text).filter(|value| !value.is_empty());
    let subject = value.map_or_else(|| format!("`{key}`"), |value| format!("`{key}: {value}`"));
    let rejected = |reason: &str| Err((subject.clone(), reason.to_owned()));
    let Some(attribute) = attribute(key) else {
        return rejected("cannot be the name of an attribute");
    };
    if [DOMAIN, DESCRIPTOR, NAMESPACE].contains(&attribute) {
        return rejected("is a reserved attribute name");
    }
    if path.iter().any(|step| step.attribute == attribute) {
        return rejected("is duplicated on its path, and an attribute has one value");
    }
    if path.len() >= DEPTH_MAX {
        return rejected("is too deep in the tree");
    }
    if value.is_some_and(|value| !is_plain(value)) {
        return rejected("has a value with a character that a key pattern cannot contain");
    }
    if value.is_some_and(|value| !is_literal(value) || value.contains('|')) {
        return rejected("has a value with `!` or `|`, which have a meaning in conditions");
    }
    let is_shared = node.get("share_threshold").is_some_and(Node::is_true);
    let value = match value.map(|value| (value, value.strip_suffix('*'))) {
        None => Value::Any,
        Some((_, Some(prefix))) if !prefix.contains('*') => Value::Prefix { prefix, is_shared },
        Some((value, None)) if !value.contains('*') => Value::Exact(value),
        Some(_) => return rejected("has a value with a `*` that is not at the end"),
    };
    let sibling = Sibling { node, key, attribute, value, position: before.len() };
    match before.iter().find(|other| other.matches_same(&sibling)) {
        Some(other) => rejected(&format!("is a duplicate of line {}", other.line())),
        None => Ok(sibling),
    }
}

/// Names of the limits that this one replaces, without duplicates.
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

/// Path of a descriptor, for notes.
fn subject(path: &[Step<'_>]) -> String {
    let pieces: Vec<_> = path.iter().map(|step| step.piece.as_str()).collect();
    format!("`{}`", pieces.join(" / "))
}

#[cfg(test)]
mod golden;
#[cfg(test)]
mod tests;
