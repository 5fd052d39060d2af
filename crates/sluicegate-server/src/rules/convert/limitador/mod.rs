//! The limits of Limitador: a list, each with a window, conditions and variables.
//!
//! A condition that an attribute equals a text is a condition of the rule, a variable is a placeholder. Other
//! conditions are programs (CEL), which rules do not run: their limits are left out whole, because without the
//! condition they would count others' requests.

use sluicegate::Algorithm;

use super::names::{attribute, is_literal, is_plain};
use super::yaml::{Node, Value, parse};
use super::{Converted, Limit, Wrong};

/// What a limit may say.
const OF_LIMIT: [&str; 7] =
    ["id", "namespace", "max_value", "seconds", "name", "conditions", "variables"];

/// Converts the text of a file, to rules that are counted in this way.
///
/// # Errors
///
/// What keeps it from being such a list at all.
pub(crate) fn convert(text: &str, algorithm: Algorithm) -> Result<Converted, Wrong> {
    let root = parse(text)?;
    let list = root.get("limits").unwrap_or(&root);
    if !matches!(list.value, Value::List(_)) {
        return Err("is no list of limits: is it Limitador's?".into());
    }
    let mut converted = Converted::new(algorithm);
    note_namespaces(list, &mut converted);
    for node in list.members() {
        let what = what(node);
        for (name, value) in node.entries() {
            if !OF_LIMIT.contains(&name.as_str()) {
                let about = format!("{what}: `{name}`");
                converted.remark(value.line, about, "is unknown, and does nothing");
            }
        }
        match limit(node, &what) {
            Ok(limit) => converted.add(limit),
            Err((line, why)) => converted.leave_out(line, what, why),
        }
    }
    Ok(converted.finish())
}

/// The limit of a node, or the line and the reason why it is none.
fn limit(node: &Node, what: &str) -> Result<Limit, (u64, String)> {
    let wrong = |why: &str| (node.line, why.to_owned());
    let number = |name: &str| {
        let number = node.get(name).and_then(Node::number);
        number.ok_or_else(|| (node.line, format!("needs a whole number of `{name}`")))
    };
    let (tokens, seconds) = (number("max_value")?, number("seconds")?);
    let namespace = node.get("namespace").and_then(Node::text).unwrap_or_default();
    if namespace.is_empty() || !is_plain(namespace) {
        return Err(wrong("needs a `namespace`, without `{` and `}`"));
    }
    let (mut pieces, mut conditions) = (vec![namespace.to_owned()], Vec::new());
    for node in node.get("conditions").map(Node::members).unwrap_or_default() {
        let text = node.text().unwrap_or_default();
        let (name, value) = equality(text).map_err(|why| (node.line, why))?;
        if conditions.iter().any(|(known, _)| *known == name) {
            return Err((node.line, format!("`{text}`: `{name}` has a condition already")));
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
        what: what.to_owned(),
        key_pattern: pieces.join(":"),
        conditions,
        tokens: Some((tokens, seconds)),
        is_shadow: false,
        description: node.get("name").and_then(Node::text).unwrap_or_default().into(),
        name: String::new(),
        replaces: Vec::new(),
    })
}

/// An attribute and the text that it equals.
fn equality(text: &str) -> Result<(String, String), String> {
    let beyond = || format!("the condition `{text}` is more than `attribute == 'text'`");
    let (left, right) = text.split_once("==").ok_or_else(beyond)?;
    let (left, right) = (left.trim(), right.trim());
    let (name, value) = match (literal(left), literal(right)) {
        (None, Some(value)) => (left, value),
        (Some(value), None) => (right, value),
        // As it was written before conditions were programs.
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
            "the condition `{text}` has a text that no condition of a rule can have"
        ));
    }
    Ok((name, value.to_owned()))
}

/// The text between quotes, if there is nothing else.
fn literal(text: &str) -> Option<&str> {
    ['\'', '"'].into_iter().find_map(|quote| {
        let inner = text.strip_prefix(quote)?.strip_suffix(quote)?;
        (!inner.contains([quote, '\\'])).then_some(inner)
    })
}

/// The attribute that is referred to: `descriptors[0].a`, `descriptors[0]['a']`, or just `a`.
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
    attribute(name).map(Into::into)
}

/// What to call a limit.
fn what(node: &Node) -> String {
    let text = |name| node.get(name).and_then(Node::text).filter(|text: &&str| !text.is_empty());
    match (text("name").or(text("id")), text("namespace")) {
        (Some(name), _) => format!("limit `{name}`"),
        (None, Some(namespace)) => format!("a limit of `{namespace}`"),
        (None, None) => "a limit".into(),
    }
}

/// There, a request is of one namespace; here, it meets all rules whose attributes it has.
fn note_namespaces(list: &Node, converted: &mut Converted) {
    let namespace = |node: &Node| node.get("namespace").and_then(Node::text).map(str::to_owned);
    let Some(first) = list.members().first() else { return };
    let other = list.members().iter().find(|node| namespace(node) != namespace(first));
    if let Some(other) = other {
        let about = format!("namespace `{}`", namespace(other).unwrap_or_default());
        let why = "is another one than the first limit's; here the rules of both count every request that has their attributes";
        converted.remark(other.line, about, why);
    }
}

#[cfg(test)]
mod tests;
