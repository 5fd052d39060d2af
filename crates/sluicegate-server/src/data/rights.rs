//! Rights of callers.

use std::fmt;

use sluicegate::named_values;

/// An operation of the data doors that a caller may be allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Right {
    /// Checks requests against the rules.
    Check,
    /// Takes tokens from buckets without a rule.
    Take,
    /// Returns tokens to buckets.
    Refund,
    /// Asks for the authorization of requests, as proxies do.
    Authorize,
}

named_values! {
    Right:
    Check = "check",
    Take = "take",
    Refund = "refund",
    Authorize = "authorize",
}

/// A set of rights.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Rights(u8);

impl Rights {
    /// Every right.
    pub const ALL: Self = Self(0b1111);

    /// True if the set has this right.
    #[inline]
    #[must_use]
    pub const fn contains(self, right: Right) -> bool {
        self.0 & bit(right) != 0
    }

    /// True if the set has no right.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The rights of the set, in the order of [`Right`].
    pub fn iter(self) -> impl Iterator<Item = Right> {
        Right::ALL.into_iter().filter(move |right| self.contains(*right))
    }
}

const fn bit(right: Right) -> u8 {
    1 << right as u8
}

impl FromIterator<Right> for Rights {
    fn from_iter<I: IntoIterator<Item = Right>>(rights: I) -> Self {
        Self(rights.into_iter().fold(0, |set, right| set | bit(right)))
    }
}

/// Names separated by commas: `check,take`.
impl fmt::Display for Rights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, right) in self.iter().enumerate() {
            f.write_str(if position == 0 { "" } else { "," })?;
            f.write_str(right.name())?;
        }
        Ok(())
    }
}

impl fmt::Debug for Rights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_has_its_rights_and_no_others() {
        let some = Rights::from_iter([Right::Authorize, Right::Check, Right::Check]);
        assert_eq!(some.to_string(), "check,authorize");
        assert!(some.contains(Right::Check) && !some.contains(Right::Refund));
        assert_eq!(Rights::from_iter(Right::ALL), Rights::ALL);
        assert!(Rights::default().is_empty() && Rights::default().to_string().is_empty());
    }
}
