//! Conditions: what an attribute must be for a rule to apply, and what it must not be.

use std::fmt;

use super::glob::{Glob, GlobError};

/// The longest list of exceptions, in bytes: a few hundred paths or addresses.
pub(crate) const EXCEPT_BYTES_MAX: usize = 8192;
/// The most exceptions with a `*` in them: each has to be tried.
pub(crate) const EXCEPT_STARS_MAX: usize = 64;

/// What parts a glob from its exceptions.
const BUT_NOT: &str = " !";

/// A parsed condition.
///
/// | written | holds for |
/// |---|---|
/// | `/api/**` | what the glob matches |
/// | `!/login\|/signup` | what none of the globs matches, and requests that lack the attribute |
/// | `/api/** !/api/login\|/api/me/*` | what the first glob matches and none of the others does |
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    text: Box<str>,
    glob: Option<Glob>,
    except: Option<Box<Except>>,
}

/// Globs of which none may match.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Except {
    /// Those without a `*`, in order, so that one of many is soon found.
    literals: Box<[Box<str>]>,
    globs: Box<[Glob]>,
}

impl Condition {
    /// Parses a condition.
    ///
    /// # Errors
    ///
    /// A glob that is empty or too long, or too many of them.
    pub fn parse(text: &str) -> Result<Self, GlobError> {
        let (glob, except) = match (text.strip_prefix('!'), text.split_once(BUT_NOT)) {
            (Some(except), _) => (None, Some(except)),
            (None, Some((glob, except))) => (Some(glob), Some(except)),
            (None, None) => (Some(text), None),
        };
        Ok(Self {
            text: text.into(),
            glob: glob.map(Glob::parse).transpose()?,
            except: except.map(Except::parse).transpose()?.map(Box::new),
        })
    }

    /// The condition as it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// What the attribute must match; `None` if anything will do that is no exception.
    #[must_use]
    pub fn glob(&self) -> Option<&Glob> {
        self.glob.as_ref()
    }

    /// Does it hold for this value of its attribute, or for a request that lacks it?
    #[inline]
    #[must_use]
    pub fn holds(&self, value: Option<&str>) -> bool {
        let Some(value) = value else { return self.glob.is_none() };
        self.glob.as_ref().is_none_or(|glob| glob.matches(value))
            && self.except.as_ref().is_none_or(|except| !except.matches(value))
    }
}

impl Except {
    fn parse(text: &str) -> Result<Self, GlobError> {
        if text.len() > EXCEPT_BYTES_MAX {
            return Err(GlobError::ExceptTooLong);
        }
        let (mut literals, mut globs) = (Vec::new(), Vec::new());
        for glob in text.split('|').map(Glob::parse) {
            let glob = glob?;
            match glob.literal() {
                Some(literal) => literals.push(Box::from(literal)),
                None => globs.push(glob),
            }
        }
        if globs.len() > EXCEPT_STARS_MAX {
            return Err(GlobError::TooManyStars);
        }
        literals.sort_unstable();
        Ok(Self { literals: literals.into(), globs: globs.into() })
    }

    fn matches(&self, value: &str) -> bool {
        self.literals.binary_search_by(|literal| (**literal).cmp(value)).is_ok()
            || self.globs.iter().any(|glob| glob.matches(value))
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
