//! Checks of names and texts from other limiters' files.

pub(super) use crate::envoy_names::attribute;

/// Returns whether a text without `*` means itself in a condition.
pub(super) fn is_literal(text: &str) -> bool {
    !text.starts_with('!') && !text.contains(" !")
}

/// Returns whether a text can be part of a key pattern unchanged.
pub(super) fn is_plain(text: &str) -> bool {
    !text.contains(['{', '}']) && !text.contains(char::is_control)
}
