//! Names and texts of others, as rules can have them.

pub(super) use crate::envoy_names::attribute;

/// Text that means just itself in a condition, unless it has a `*`.
pub(super) fn is_literal(text: &str) -> bool {
    !text.starts_with('!') && !text.contains(" !")
}

/// Text that can stand in a key pattern as it is.
pub(super) fn is_plain(text: &str) -> bool {
    !text.contains(['{', '}']) && !text.contains(char::is_control)
}
