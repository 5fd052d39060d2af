//! What somebody may have meant who wrote something that does not exist.

use std::fmt;

/// Longer names are not compared with anything.
const NAME_BYTES_MAX: usize = 32;

/// The message about a name that does not exist, with the existing one that comes nearest to it. It is
/// put together when it is shown, which most of very many messages never are.
pub(super) fn unknown(what: &str, name: &str, known: &[&str]) -> impl fmt::Display {
    fmt::from_fn(move |f| match nearest(name, known) {
        Some(known) => write!(f, "unknown {what} `{name}`: did you mean `{known}`?"),
        None => write!(f, "unknown {what} `{name}`: use {}", list(known)),
    })
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

/// The known name with the fewest typing mistakes in it, if these are few enough for its length; or
/// else one that has this name among its words: `burst` of `burst_capacity`.
fn nearest<'k>(name: &str, known: &[&'k str]) -> Option<&'k str> {
    if name.len() > NAME_BYTES_MAX {
        return None;
    }
    let name = name.to_ascii_lowercase();
    let with_distance = known.iter().map(|known| (distance(&name, known), *known));
    let (mistakes, closest) = with_distance.min_by_key(|(mistakes, _)| *mistakes)?;
    if mistakes <= closest.len().div_ceil(4) {
        return Some(closest);
    }
    known.iter().copied().find(|known| known.split('_').any(|word| word == name))
}

/// How many characters must be put in, taken out or replaced to make `b` of `a`.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, to) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(from != *to);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}
