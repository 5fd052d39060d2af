//! Globs: `*` stays within one path segment, `**` crosses them.
//!
//! Matching keeps the set of positions in the pattern that the text so far can have led to, as bits, and advances all
//! of them with every byte: its time is linear in the text, whatever the pattern, and it never backtracks. Written by
//! hand for these two properties.

use std::fmt;

use thiserror::Error;

use super::condition::{EXCEPT_BYTES_MAX, EXCEPT_STARS_MAX};

/// Longest glob, in bytes.
pub(crate) const GLOB_BYTES_MAX: usize = 256;

/// A parsed glob. Without a `*` it matches one text only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Glob {
    text: Box<str>,
    /// `None` for plain text, which is compared as it is.
    steps: Option<Box<[Step]>>,
}

/// Reason for refusing a glob.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum GlobError {
    /// It is too long.
    #[error("the glob has more than {GLOB_BYTES_MAX} bytes")]
    TooLong,
    /// It is empty, and would match the empty text only.
    #[error("an empty glob matches nothing")]
    Empty,
    /// A list of exceptions is too long.
    #[error("the exceptions after `!` have more than {EXCEPT_BYTES_MAX} bytes")]
    ExceptTooLong,
    /// A list of exceptions has too many that are not plain text.
    #[error("more than {EXCEPT_STARS_MAX} of the exceptions after `!` have a `*`")]
    TooManyStars,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// This byte.
    Byte(u8),
    /// Any bytes but `/`.
    Star,
    /// Any bytes.
    StarStar,
}

/// Positions in a pattern, as bits: one for every step and one behind the last.
#[derive(Clone, Copy, Default)]
struct Places([u64; GLOB_BYTES_MAX / 64 + 1]);

impl Places {
    fn insert(&mut self, place: usize) {
        self.0[place / 64] |= 1 << (place % 64);
    }

    fn contains(&self, place: usize) -> bool {
        self.0[place / 64] >> (place % 64) & 1 == 1
    }

    fn is_empty(&self) -> bool {
        self.0.iter().all(|word| *word == 0)
    }

    fn for_each(&self, mut visit: impl FnMut(usize)) {
        for (index, word) in self.0.iter().enumerate() {
            let mut rest = *word;
            while rest != 0 {
                visit(index * 64 + rest.trailing_zeros() as usize);
                rest &= rest - 1;
            }
        }
    }
}

impl Glob {
    /// Parses a glob.
    ///
    /// # Errors
    ///
    /// An empty or over-long one.
    pub fn parse(text: &str) -> Result<Self, GlobError> {
        match text.len() {
            0 => Err(GlobError::Empty),
            1..=GLOB_BYTES_MAX => Ok(Self::within_limits(text)),
            _ => Err(GlobError::TooLong),
        }
    }

    /// Parses a glob that is known to be short enough.
    pub(crate) fn within_limits(text: &str) -> Self {
        debug_assert!(text.len() <= GLOB_BYTES_MAX);
        let steps = text.contains('*').then(|| steps(text.as_bytes()).into());
        Self { text: text.into(), steps }
    }

    /// The glob as it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The only text it matches, if there is only one.
    #[must_use]
    pub fn literal(&self) -> Option<&str> {
        self.steps.is_none().then_some(&self.text)
    }

    /// Returns whether it matches the whole of `text`.
    #[must_use]
    pub fn matches(&self, text: &str) -> bool {
        let Some(steps) = &self.steps else { return *self.text == *text };
        let mut places = Places::default();
        enter(steps, 0, &mut places);
        for byte in text.bytes() {
            let mut next = Places::default();
            places.for_each(|place| match steps.get(place) {
                Some(Step::Byte(expected)) if *expected == byte => {
                    enter(steps, place + 1, &mut next);
                }
                Some(Step::Star) if byte != b'/' => enter(steps, place, &mut next),
                Some(Step::StarStar) => enter(steps, place, &mut next),
                _ => {}
            });
            if next.is_empty() {
                return false;
            }
            places = next;
        }
        places.contains(steps.len())
    }
}

/// Adds a position and, since a star may match nothing, the one behind it.
fn enter(steps: &[Step], place: usize, places: &mut Places) {
    places.insert(place);
    if let Some(Step::Star | Step::StarStar) = steps.get(place) {
        // A star never follows a star.
        places.insert(place + 1);
    }
}

/// Steps of a glob. Stars in a row are one step: more than two mean the same as two.
fn steps(text: &[u8]) -> Vec<Step> {
    let mut steps = Vec::with_capacity(text.len());
    for &byte in text {
        match (byte, steps.last_mut()) {
            (b'*', Some(last @ (Step::Star | Step::StarStar))) => *last = Step::StarStar,
            (b'*', _) => steps.push(Step::Star),
            (byte, _) => steps.push(Step::Byte(byte)),
        }
    }
    steps
}

impl fmt::Display for Glob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
