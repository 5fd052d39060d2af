//! Text that must not be seen.

use std::fmt;

/// A password or token. Printing it in any way shows that it is there, never what it is; whoever needs
/// it asks with [`expose`](Self::expose), which is easy to search for.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Box<str>);

/// What is shown in place of a secret.
pub(crate) const SHOWN: &str = "(set, not shown)";

impl Secret {
    /// Keeps this text secret.
    pub fn new(text: impl Into<Box<str>>) -> Self {
        Self(text.into())
    }

    /// The text itself.
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
