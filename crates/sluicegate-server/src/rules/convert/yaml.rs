//! YAML tree with line numbers.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::{MessageFormatter, Spanned, UserMessageFormatter};

use super::ConvertError;

/// A value and its line.
#[derive(Debug)]
pub(super) struct Node {
    /// Line number, from 1.
    pub(super) line: u64,
    pub(super) value: Value,
}

/// A value.
#[derive(Debug, PartialEq)]
pub(super) enum Value {
    Null,
    /// Any scalar, including numbers and booleans.
    Text(String),
    List(Vec<Node>),
    /// Names and values in order, without duplicates.
    Map(Vec<(String, Node)>),
}

impl PartialEq for Node {
    fn eq(&self, other: &Self) -> bool {
        self.value == other.value
    }
}

/// Parses a document. The caller bounds the size of the text.
///
/// # Errors
///
/// A syntax error or a duplicate name, with its position.
pub(super) fn parse(text: &str) -> Result<Node, ConvertError> {
    serde_saphyr::from_str(text).map_err(|error| {
        let error = error.without_snippet();
        let message = UserMessageFormatter.format_message(error).into_owned();
        let at = error.location().map(|at| byte_at(text, at.line(), at.column()));
        ConvertError { message, at }
    })
}

/// Byte offset of a line and a column, both counted from 1.
fn byte_at(text: &str, line: u64, column: u64) -> usize {
    let skipped = |number: u64| usize::try_from(number.saturating_sub(1)).unwrap_or(usize::MAX);
    let start: usize = text.split_inclusive('\n').take(skipped(line)).map(str::len).sum();
    let chars = text[start..].split_inclusive('\n').next().unwrap_or_default().chars();
    start + chars.take(skipped(column)).map(char::len_utf8).sum::<usize>()
}

impl Node {
    /// Value of this name; `None` if this is not a map or lacks it.
    pub(super) fn get(&self, name: &str) -> Option<&Self> {
        self.entries().iter().find(|(known, _)| known == name).map(|(_, node)| node)
    }

    /// Entries of a map; empty for anything else.
    pub(super) fn entries(&self) -> &[(String, Self)] {
        if let Value::Map(entries) = &self.value { entries } else { &[] }
    }

    /// Members of a list; empty for anything else.
    pub(super) fn members(&self) -> &[Self] {
        if let Value::List(members) = &self.value { members } else { &[] }
    }

    /// Text of a scalar.
    pub(super) fn text(&self) -> Option<&str> {
        if let Value::Text(text) = &self.value { Some(text) } else { None }
    }

    /// Whole number of a scalar; `None` if it is not one.
    pub(super) fn number(&self) -> Option<u64> {
        self.text()?.parse().ok()
    }

    /// Returns whether this is `true`.
    pub(super) fn is_true(&self) -> bool {
        self.text() == Some("true")
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let spanned = Spanned::<Value>::deserialize(deserializer)?;
        Ok(Self { line: spanned.referenced.line(), value: spanned.value })
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ValueVisitor)
    }
}

struct ValueVisitor;

impl<'de> Visitor<'de> for ValueVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Text(value.to_string()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Text(value.to_string()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Text(value.to_string()))
    }

    fn visit_u128<E>(self, value: u128) -> Result<Value, E> {
        Ok(Value::Text(value.to_string()))
    }

    fn visit_i128<E>(self, value: i128) -> Result<Value, E> {
        Ok(Value::Text(value.to_string()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Value::Text(value.to_string()))
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(Value::Text(text.to_owned()))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        let mut members = Vec::new();
        while let Some(member) = list.next_element()? {
            members.push(member);
        }
        Ok(Value::List(members))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = map.next_entry()? {
            entries.push(entry);
        }
        Ok(Value::Map(entries))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_have_line_numbers() {
        let node = parse("a: 1\nb:\n  - x: true\n    y: \"01\"\n  - ~\n").unwrap();
        assert_eq!(node.get("a").and_then(Node::number), Some(1));
        let list = node.get("b").unwrap().members();
        assert!(list[0].get("x").unwrap().is_true());
        let y = list[0].get("y").unwrap();
        assert_eq!((y.text(), y.line), (Some("01"), 4));
        assert_eq!((&list[1].value, list[1].line), (&Value::Null, 5));
    }

    #[test]
    fn errors_have_a_position() {
        for (text, at) in [("a: 1\na: 2\n", 5), ("a: 1\n é: [\n", 8), ("a: *missing\n", 3)] {
            let wrong = parse(text).unwrap_err();
            assert_eq!(wrong.at, Some(at), "{text}: {wrong:?}");
            assert!(!wrong.message.is_empty() && !wrong.message.contains("line"), "{wrong:?}");
        }
        assert!(parse("a: [1\n").unwrap_err().at.is_some());
    }
}
