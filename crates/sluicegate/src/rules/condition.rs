//! Conditions on attributes: globs that must match, and exceptions that must not.

use std::fmt;

use super::glob::{Glob, GlobError};
use super::rule::PathForm;
use super::work::Work;

/// Longest list of exceptions, in bytes: a few hundred paths or addresses.
pub(crate) const EXCEPT_BYTES_MAX: usize = 8192;
/// Most exceptions with a `*`: each of them is tried in turn.
pub(crate) const EXCEPT_STARS_MAX: usize = 64;

/// Separator between a glob and its exceptions.
const BUT_NOT: &str = " !";

/// A parsed condition.
///
/// | written | holds for |
/// |---|---|
/// | `/api/**` | values that the glob matches |
/// | `!/login\|/signup` | values that none of the globs matches, and requests that lack the attribute |
/// | `/api/** !/api/login\|/api/me/*` | values that the first glob matches and none of the others does |
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    text: Box<str>,
    glob: Option<Glob>,
    except: Option<Box<Except>>,
}

/// Globs of which none may match.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Except {
    /// Exceptions without a `*`, sorted for binary search.
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
        Self::parse_as(text, PathForm::Exact)
    }

    /// Parses a condition on paths of this form: its globs are in the same form.
    pub(super) fn parse_as(text: &str, form: PathForm) -> Result<Self, GlobError> {
        let (glob, except) = match (text.strip_prefix('!'), text.split_once(BUT_NOT)) {
            (Some(except), _) => (None, Some(except)),
            (None, Some((glob, except))) => (Some(glob), Some(except)),
            (None, None) => (Some(text), None),
        };
        Ok(Self {
            text: text.into(),
            glob: glob.map(|glob| parse_glob(glob, form)).transpose()?,
            except: except.map(|except| Except::parse(except, form)).transpose()?.map(Box::new),
        })
    }

    /// The condition as it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Glob that the attribute must match; `None` if only exceptions are given.
    #[must_use]
    pub fn glob(&self) -> Option<&Glob> {
        self.glob.as_ref()
    }

    /// Returns whether it holds for this value of its attribute; `None` is a request that lacks it.
    #[inline]
    #[must_use]
    pub fn holds(&self, value: Option<&str>) -> bool {
        self.holds_within(value, &Work::unlimited())
    }

    /// As [`holds`](Self::holds). False too if the work is exhausted.
    #[inline]
    pub(super) fn holds_within(&self, value: Option<&str>, work: &Work) -> bool {
        let Some(value) = value else { return self.glob.is_none() };
        self.glob.as_ref().is_none_or(|glob| glob.matches_within(value, work))
            && self.except.as_ref().is_none_or(|except| except.spares(value, work))
    }
}

impl Except {
    fn parse(text: &str, form: PathForm) -> Result<Self, GlobError> {
        if text.len() > EXCEPT_BYTES_MAX {
            return Err(GlobError::ExceptTooLong);
        }
        let (mut literals, mut globs) = (Vec::new(), Vec::new());
        for glob in text.split('|').map(|glob| parse_glob(glob, form)) {
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

    /// Returns whether none of them matches.
    fn spares(&self, value: &str, work: &Work) -> bool {
        let differs = |glob: &Glob| !glob.matches_within(value, work) && !work.is_exhausted();
        work.spend(1).is_some()
            && self.literals.binary_search_by(|literal| (**literal).cmp(value)).is_err()
            && self.globs.iter().all(differs)
    }
}

/// Parses a glob and brings it into a form, in which it is not longer and must not be empty.
fn parse_glob(text: &str, form: PathForm) -> Result<Glob, GlobError> {
    let glob = Glob::parse(text)?;
    match form {
        PathForm::Exact => Ok(glob),
        PathForm::Folded => Glob::parse(&form.of(text)),
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
