//! "Did you mean": the known name closest to one that does not exist.

use std::fmt;

use strsim::osa_distance;

/// Longer names are not compared: the comparison takes time in the product of both lengths.
const NAME_BYTES_MAX: usize = 64;

/// Message about an unknown name. Formatted only when displayed: of many messages most never are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unknown<'a> {
    /// Kind of the name, such as `column`.
    pub(crate) what: &'a str,
    pub(crate) name: &'a str,
    pub(crate) known: &'a [&'a str],
}

impl fmt::Display for Unknown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, name, known } = *self;
        match closest(name, known.iter().copied()) {
            Some(known) => write!(f, "unknown {what} `{name}`: did you mean `{known}`?"),
            None => write!(f, "unknown {what} `{name}`: use {}", list(known)),
        }
    }
}

/// Message about an unknown name, with the closest known one or else all of them.
pub(crate) fn unknown<'a>(what: &'a str, name: &'a str, known: &'a [&'a str]) -> Unknown<'a> {
    Unknown { what, name, known }
}

/// `a`, `b` or `c`.
fn list(names: &[&str]) -> String {
    let quoted = |name: &&str| format!("`{name}`");
    match names {
        [] => String::new(),
        [only] => quoted(only),
        [first @ .., last] => {
            let first: Vec<String> = first.iter().map(quoted).collect();
            format!("{} or {}", first.join(", "), quoted(last))
        }
    }
}

/// The known name that was probably meant, in any case of letters: at most a third of the letters differ, or the name
/// is one of its words, as `burst` is of `burst_capacity`. `None` if no name is that close.
#[must_use]
pub fn closest<'k>(name: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    if name.is_empty() || name.len() > NAME_BYTES_MAX {
        return None;
    }
    let name = name.to_ascii_lowercase();
    let mut best = None;
    let mut with_word = None;
    for known in known {
        let lower = known.to_ascii_lowercase();
        let distance = osa_distance(&name, &lower);
        let is_close = distance * 3 <= lower.len().max(name.len());
        if is_close && best.is_none_or(|(least, _)| distance < least) {
            best = Some((distance, known));
        }
        if with_word.is_none() && lower.split('_').any(|word| word == name) {
            with_word = Some(known);
        }
    }
    best.map(|(_, known)| known).or(with_word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typing_mistakes_are_recognised_and_other_names_are_not() {
        let known = ["http", "max_buckets", "on_full", "burst_capacity"];
        assert_eq!(closest("htpt", known), Some("http"));
        assert_eq!(closest("HTPT", known), Some("http"));
        assert_eq!(closest("max_bucket", known), Some("max_buckets"));
        assert_eq!(closest("on-full", known), Some("on_full"));
        assert_eq!(closest("burst", known), Some("burst_capacity"));
        assert_eq!(closest("grpc", known), None);
        assert_eq!(closest("", known), None);
        assert_eq!(closest(&"http".repeat(20), known), None);
    }
}
