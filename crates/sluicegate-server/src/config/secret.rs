//! Secrets: text that is never printed.

use std::fmt;

/// A password or token. Printing it shows only that it is set; [`expose`](Self::expose) returns it, and is easy to search
/// for.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Box<str>);

/// Placeholder for a secret.
pub(crate) const SHOWN: &str = "(set, not shown)";

impl Secret {
    /// Wraps a text.
    pub fn new(text: impl Into<Box<str>>) -> Self {
        Self(text.into())
    }

    /// The text.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(SHOWN)
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(SHOWN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_never_printed() {
        let secret = Secret::new("canary");
        assert_eq!(secret.expose(), "canary");
        for printed in [format!("{secret:?}"), format!("{secret}"), format!("{secret:#?}")] {
            assert_eq!(printed, "(set, not shown)");
        }
    }
}
