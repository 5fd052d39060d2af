//! The configuration of envoyproxy/ratelimit: a domain and a tree of descriptors.
//!
//! A descriptor's key is an attribute. With a value it is a condition, without one it parts buckets, and with
//! a value that ends in `*` it is both. Every `rate_limit` is a rule whose conditions and placeholders are
//! those of the descriptors down to it.

use super::names::{attribute, is_plain};
use super::yaml::{Node, parse};
use super::{Converted, Limit, Wrong};

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
struct Step {
    attribute: String,
    /// As it stands in the key pattern.
    piece: String,
    /// What the attribute must match.
    glob: Option<String>,
}

/// Converts the text of a file.
///
/// # Errors
///
/// What keeps it from being such a configuration at all.
pub(crate) fn convert(text: &str) -> Result<Converted, Wrong> {
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
    let mut converted = Converted::default();
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
    fn level(&mut self, descriptors: &Node, path: &[Step]) {
        for node in descriptors.members() {
            if let Some(step) = self.step(node, path) {
                let path: Vec<_> = path.iter().cloned().chain([step]).collect();
                self.descriptor(node, &path, descriptors.members());
            }
        }
    }

    /// What a descriptor adds to the path; none if it cannot be said by a rule.
    fn step(&mut self, node: &Node, path: &[Step]) -> Option<Step> {
        let Some(key) = node.get("key").and_then(Node::text) else {
            self.converted.leave_out(node.line, "descriptor", "has no key");
            return None;
        };
        let value = node.get("value").and_then(Node::text).filter(|value| !value.is_empty());
        let what = value.map_or_else(|| format!("`{key}`"), |value| format!("`{key}: {value}`"));
        let why = match attribute(key) {
            None => "cannot be the name of an attribute",
            Some(attribute) if path.iter().any(|step| step.attribute == attribute) => {
                "is on the way down twice, and an attribute has one value"
            }
            Some(_) if path.len() >= DEPTH_MAX => "is too deep in the tree",
            Some(_) if value.is_some_and(|value| !is_plain(value)) => {
                "has a character in its value that a key pattern cannot have"
            }
            Some(_) if value.is_some_and(|value| value.trim_end_matches('*').contains('*')) => {
                "has a `*` in its value that is not at its end"
            }
            Some(attribute) => {
                let is_shared = node.get("share_threshold").is_some_and(Node::is_true);
                return Some(Step::new(attribute, key, value, is_shared));
            }
        };
        self.converted.leave_out(node.line, what, why);
        None
    }

    fn descriptor(&mut self, node: &Node, path: &[Step], siblings: &[Node]) {
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
        let below = node.get("descriptors");
        if let Some(limit) = node.get("rate_limit") {
            self.limit(node, limit, path);
            if below.is_some_and(|below| !below.members().is_empty()) {
                let why = "counts requests too that the descriptors below it are for";
                self.converted.remark(limit.line, what.clone(), why);
            }
            self.note_siblings(node, siblings, &what);
        }
        if let Some(below) = below {
            self.level(below, path);
        }
    }

    fn limit(&mut self, node: &Node, limit: &Node, path: &[Step]) {
        let what = what(path);
        for (name, value) in limit.entries() {
            let why = match name.as_str() {
                "replaces" => "has no equal: all rules that match a request apply to it",
                name if OF_LIMIT.contains(&name) => continue,
                _ => "is unknown, and does nothing",
            };
            self.converted.remark(value.line, format!("{what}: `{name}`"), why);
        }
        if limit.get("unlimited").is_some_and(Node::is_true) {
            let why = "is unlimited: no rule is needed, or an override `unlimited` of the rule that it is an exception to";
            self.converted.leave_out(limit.line, what, why);
            return;
        }
        if node.get("quota_mode").is_some_and(Node::is_true) {
            let why =
                "is in quota mode, which has no equal; `mode = \"shadow\"` counts without denying";
            self.converted.leave_out(limit.line, what, why);
            return;
        }
        let unit = limit.get("unit").and_then(Node::text).unwrap_or_default();
        let requests = limit.get("requests_per_unit").and_then(Node::number);
        let (Some(seconds), Some(tokens)) = (seconds(unit), requests) else {
            let why =
                "needs a `unit` from second to year, and a whole number of `requests_per_unit`";
            self.converted.leave_out(limit.line, what, why);
            return;
        };
        let pieces: Vec<_> = path.iter().map(|step| step.piece.as_str()).collect();
        let conditions =
            path.iter().filter_map(|step| Some((step.attribute.clone(), step.glob.clone()?)));
        self.converted.add(Limit {
            line: limit.line,
            what,
            key_pattern: format!("{}:{}", self.domain, pieces.join(":")),
            conditions: conditions.collect(),
            tokens,
            seconds,
            is_shadow: node.get("shadow_mode").is_some_and(Node::is_true),
            description: limit.get("name").and_then(Node::text).unwrap_or_default().into(),
        });
    }

    /// There, the more exact of two descriptors counts alone; here, both do.
    fn note_siblings(&mut self, node: &Node, siblings: &[Node], what: &str) {
        let key = |node: &Node| node.get("key").and_then(Node::text).map(str::to_owned);
        let is_exact = |node: &Node| {
            let value = node.get("value").and_then(Node::text);
            value.is_some_and(|value| !value.is_empty() && !value.ends_with('*'))
        };
        if is_exact(node) {
            return;
        }
        let exact = siblings.iter().find(|other| {
            is_exact(other) && key(other) == key(node) && other.get("rate_limit").is_some()
        });
        if let Some(exact) = exact {
            let line = exact.line;
            let why = format!(
                "also counts requests that the descriptor in line {line} is for, beside it and not instead of it"
            );
            self.converted.remark(node.line, what, why);
        }
    }
}

impl Step {
    fn new(attribute: String, key: &str, value: Option<&str>, is_shared: bool) -> Self {
        let (piece, glob) = match value {
            None => (format!("{{{attribute}}}"), None),
            Some(value) => match value.strip_suffix('*') {
                None => (format!("{key}={value}"), Some(value.to_owned())),
                // Ours would stop at the next `/`.
                Some(prefix) if is_shared => {
                    (format!("{key}={value}"), Some(format!("{prefix}**")))
                }
                Some(prefix) => {
                    (format!("{key}={value}:{{{attribute}}}"), Some(format!("{prefix}**")))
                }
            },
        };
        Self { attribute, piece, glob }
    }
}

/// The path of a descriptor, for people.
fn what(path: &[Step]) -> String {
    let pieces: Vec<_> = path.iter().map(|step| step.piece.as_str()).collect();
    format!("`{}`", pieces.join(" / "))
}

/// How long the window of a unit is there.
fn seconds(unit: &str) -> Option<u64> {
    const DAY: u64 = 24 * 60 * 60;
    Some(match unit.to_ascii_lowercase().as_str() {
        "second" => 1,
        "minute" => 60,
        "hour" => 60 * 60,
        "day" => DAY,
        "week" => 7 * DAY,
        "month" => 30 * DAY,
        "year" => 365 * DAY,
        _ => return None,
    })
}

#[cfg(test)]
mod tests;
