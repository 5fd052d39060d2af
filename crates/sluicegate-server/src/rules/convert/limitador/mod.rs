//! Limits of Limitador: a list, each with a window, conditions and variables.
//!
//! A condition that an attribute equals a text becomes a condition of the rule; a variable becomes
//! a placeholder. Other conditions are CEL expressions, which rules do not evaluate: their limits
//! are left out, because without the condition they would count other requests.

use sluicegate::Algorithm;

use super::text_checks::{attribute, is_literal, is_plain};
use super::yaml::{Node, Value, parse};
use super::{ConvertError, Converted, Limit};
use crate::normalize::NAMESPACE;

/// Known fields of a limit.
const OF_LIMIT: [&str; 7] =
    ["id", "namespace", "max_value", "seconds", "name", "conditions", "variables"];

/// Converts the text of a file into rules with this algorithm.
///
/// # Errors
///
/// The text is not a list of limits.
pub(crate) fn convert(text: &str, algorithm: Algorithm) -> Result<Converted, ConvertError> {
    let root = parse(text)?;
    let list = root.get("limits").unwrap_or(&root);
    if !matches!(list.value, Value::List(_)) {
        return Err("is not a list of limits: is this a file of Limitador?".into());
    }
    let mut converted = Converted::new(algorithm);
    note_namespaces(list, &mut converted);
    for node in list.members() {
        let subject = subject(node);
        for (name, value) in node.entries() {
            if !OF_LIMIT.contains(&name.as_str()) {
                let about = format!("{subject}: `{name}`");
                converted.remark(value.line, about, "is an unknown field, ignored");
            }
        }
        match limit(node, &subject) {
            Ok(limit) => converted.add(limit),
            Err((line, reason)) => converted.leave_out(line, subject, reason),
        }
    }
    Ok(converted.finish())
}

/// Reads the limit of a node, or returns the line and the reason why it cannot be converted.
fn limit(node: &Node, subject: &str) -> Result<Limit, (u64, String)> {
    let wrong = |reason: &str| (node.line, reason.to_owned());
    let number = |name: &str| {
        let number = node.get(name).and_then(Node::number);
        number.ok_or_else(|| (node.line, format!("`{name}` must be a whole number")))
    };
    let (tokens, seconds) = (number("max_value")?, number("seconds")?);
    let namespace = node.get("namespace").and_then(Node::text).unwrap_or_default();
    if namespace.is_empty() || !is_plain(namespace) {
        return Err(wrong("`namespace` is required, without `{` and `}`"));
    }
    let (mut pieces, mut conditions) = (vec![namespace.to_owned()], Vec::new());
    for node in node.get("conditions").map(Node::members).unwrap_or_default() {
        let text = node.text().unwrap_or_default();
        let (name, value) = equality(text).map_err(|reason| (node.line, reason))?;
        if conditions.iter().any(|(known, _)| *known == name) {
            return Err((node.line, format!("`{text}`: `{name}` has more than one condition")));
        }
        pieces.push(format!("{name}={value}"));
        conditions.push((name, value));
    }
    for node in node.get("variables").map(Node::members).unwrap_or_default() {
        let text = node.text().unwrap_or_default();
        let name = reference(text).ok_or_else(|| {
            (node.line, format!("the variable `{text}` is not the name of an attribute"))
        })?;
        pieces.push(format!("{{{name}}}"));
    }
    Ok(Limit {
        line: node.line,
        subject: subject.to_owned(),
        key_pattern: pieces.join(":"),
        conditions,
        tokens: Some((tokens, seconds)),
        is_shadow: false,
        description: node.get("name").and_then(Node::text).unwrap_or_default().into(),
        name: String::new(),
        replaces: Vec::new(),
    })
}

/// Attribute and text of an equality.
fn equality(text: &str) -> Result<(String, String), String> {
    let beyond = || format!("the condition `{text}` is not of the form `attribute == 'text'`");
    let (left, right) = text.split_once("==").ok_or_else(beyond)?;
    let (left, right) = (left.trim(), right.trim());
    let (name, value) = match (literal(left), literal(right)) {
        (None, Some(value)) => (left, value),
        (Some(value), None) => (right, value),
        // Older syntax, without quotes.
        (None, None)
            if right
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"_-./".contains(&byte)) =>
        {
            (left, right)
        }
        _ => return Err(beyond()),
    };
    let name = reference(name).ok_or_else(beyond)?;
    if value.is_empty() || value.contains('*') || !is_plain(value) || !is_literal(value) {
        return Err(format!(
            "the condition `{text}` has a text that a rule's condition cannot contain"
        ));
    }
    Ok((name, value.to_owned()))
}

/// Text between quotes; `None` if there is anything else.
fn literal(text: &str) -> Option<&str> {
    ['\'', '"'].into_iter().find_map(|quote| {
        let inner = text.strip_prefix(quote)?.strip_suffix(quote)?;
        (!inner.contains([quote, '\\'])).then_some(inner)
    })
}

/// Attribute of a reference: `descriptors[0].a`, `descriptors[0]['a']`, or `a`. `None` for the one that the service sets.
fn reference(text: &str) -> Option<String> {
    let name = match text.strip_prefix("descriptors[") {
        None => text,
        Some(rest) => {
            let (index, rest) = rest.split_once(']')?;
            index.parse::<u16>().ok()?;
            match rest.strip_prefix('.') {
                Some(name) => name,
                None => literal(rest.strip_prefix('[')?.strip_suffix(']')?)?,
            }
        }
    };
    attribute(name).filter(|name| *name != NAMESPACE).map(Into::into)
}

/// Name of a limit for notes.
fn subject(node: &Node) -> String {
    let text = |name| node.get(name).and_then(Node::text).filter(|text: &&str| !text.is_empty());
    match (text("name").or(text("id")), text("namespace")) {
        (Some(name), _) => format!("limit `{name}`"),
        (None, Some(namespace)) => format!("a limit of `{namespace}`"),
        (None, None) => "a limit".into(),
    }
}

/// Notes several namespaces. Limitador applies the limits of one namespace to a request; rules
/// apply to every request with their attributes.
fn note_namespaces(list: &Node, converted: &mut Converted) {
    let namespace = |node: &Node| node.get("namespace").and_then(Node::text).map(str::to_owned);
    let Some(first) = list.members().first() else { return };
    let other = list.members().iter().find(|node| namespace(node) != namespace(first));
    if let Some(other) = other {
        let about = format!("namespace `{}`", namespace(other).unwrap_or_default());
        let reason = "differs from the first limit's; rules of both count every request that has their attributes";
        converted.remark(other.line, about, reason);
    }
}

#[cfg(test)]
mod tests;
