//! Path of the value at a position of a JSON text, for errors that name their field.
//!
//! A parser that keeps the path while it parses costs every request time. This finds it after an error, from the bytes
//! up to the error: one pass that decodes nothing and stores nothing but the open lists and objects, which the parser
//! has limited to 128.

use std::borrow::Cow;
use std::fmt::Write;

/// Position in a JSON text.
#[derive(Debug)]
pub(crate) struct Position {
    /// Path of the value, such as `[3].attributes.tenant`; empty for the whole text.
    pub(crate) path: String,
    /// True at the name of a member, or where one is expected: the path is then that of the object.
    pub(crate) is_at_name: bool,
}

/// An open list or object.
enum Level<'a> {
    List {
        index: usize,
        /// The element at `index` has begun.
        is_begun: bool,
    },
    /// A name is expected, or was cut off.
    Name,
    /// A name has been read, with its quotes; its value has not begun before the colon.
    Member { name: &'a [u8], is_value: bool },
}

impl Position {
    /// Position at the end of these bytes, which are the beginning of a JSON text.
    pub(crate) fn after(bytes: &[u8]) -> Self {
        let mut levels = Vec::new();
        let mut rest = bytes;
        while let [byte, tail @ ..] = rest {
            match byte {
                b'"' => {
                    let (text, after) = split_text(rest);
                    rest = after;
                    match (levels.last_mut(), text) {
                        (Some(level @ Level::Name), Some(name)) => {
                            *level = Level::Member { name, is_value: false };
                        }
                        _ => begin_value(&mut levels),
                    }
                    continue;
                }
                b'{' | b'[' => {
                    begin_value(&mut levels);
                    let list = Level::List { index: 0, is_begun: false };
                    levels.push(if *byte == b'[' { list } else { Level::Name });
                }
                b'}' | b']' => drop(levels.pop()),
                b',' => next_member(&mut levels),
                b' ' | b'\n' | b'\r' | b'\t' => {}
                _ => begin_value(&mut levels),
            }
            rest = tail;
        }
        Self::of(&levels)
    }

    fn of(levels: &[Level<'_>]) -> Self {
        let mut path = String::new();
        for level in levels {
            match level {
                Level::List { index, is_begun: true } => {
                    let _ = write!(path, "[{index}]");
                }
                Level::Member { name, is_value: true } => {
                    if !path.is_empty() {
                        path.push('.');
                    }
                    path.push_str(&decoded(name));
                }
                Level::List { .. } | Level::Name | Level::Member { .. } => {}
            }
        }
        let is_at_name =
            matches!(levels.last(), Some(Level::Name | Level::Member { is_value: false, .. }));
        Self { path, is_at_name }
    }
}

fn begin_value(levels: &mut [Level<'_>]) {
    match levels.last_mut() {
        Some(Level::List { is_begun, .. }) => *is_begun = true,
        // The colon of a member, or its value.
        Some(Level::Member { is_value, .. }) => *is_value = true,
        Some(Level::Name) | None => {}
    }
}

fn next_member(levels: &mut [Level<'_>]) {
    match levels.last_mut() {
        Some(Level::List { index, is_begun }) => {
            *index += 1;
            *is_begun = false;
        }
        Some(object) => *object = Level::Name,
        None => {}
    }
}

/// Text at the beginning with its quotes, and the rest; no text if it does not end.
fn split_text(bytes: &[u8]) -> (Option<&[u8]>, &[u8]) {
    let mut end = 1;
    while let Some(special) = bytes[end..].iter().position(|byte| matches!(byte, b'"' | b'\\')) {
        end += special + 1;
        if bytes[end - 1] == b'"' {
            let (text, rest) = bytes.split_at(end);
            return (Some(text), rest);
        }
        // The escaped byte may be a quote.
        end = bytes.len().min(end + 1);
    }
    (None, &[])
}

/// Text without quotes and escapes.
fn decoded(text: &[u8]) -> Cow<'_, str> {
    let plain = || String::from_utf8_lossy(&text[1..text.len() - 1]);
    if text.contains(&b'\\') {
        return serde_json::from_slice::<String>(text).map_or_else(|_| plain(), Cow::Owned);
    }
    plain()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_is_the_innermost_value() {
        for (bytes, path, is_at_name) in [
            ("", "", false),
            ("{", "", true),
            (r#"{"a"#, "", true),
            (r#"{"a""#, "", true),
            (r#"{"a":"#, "a", false),
            (r#"{"a": "x"#, "a", false),
            (r#"{"a": "x","#, "", true),
            (r#"{"a": {"b": [1, {"c\n": tru"#, "a.b[1].c\n", false),
            (r#"{"a": {"b": [1, {"c": 2}"#, "a.b[1]", false),
            (r#"{"a": {"b": [1, {"c": 2}]"#, "a.b", false),
            (r#"{"a": {"b": [1, {"c": 2}]}"#, "a", false),
            (r#"{"a": "\\\"", "b": "#, "b", false),
            ("[", "", false),
            ("[[", "[0]", false),
            ("[0,1", "[1]", false),
            ("[0,1,", "", false),
            ("[[],{", "[1]", true),
            ("]]}},", "", false),
        ] {
            let position = Position::after(bytes.as_bytes());
            assert_eq!((&*position.path, position.is_at_name), (path, is_at_name), "{bytes}");
        }
    }
}
