//! Globs: `*` stays within one path segment, `**` crosses them.
//!
//! A glob is a list of literals with stars between them, matched from left to right, each literal at the first place
//! where it can be. The first place is always the best one, because the star behind it can take up the rest:
//!
//! ```text
//!   /api/ * .json              `*`: the first place within the segment
//!   /a ** /b * c ** /d * e     `**` before `/b`: the first place where `/b*c` matches as a whole;
//!                              `**` before `/d`: as many segments from the end as `/d*e` has
//! ```
//!
//! So a search moves forward only. It goes back within a part between two `**`, once for every segment of the text,
//! and by no more segments than that part has.

use std::fmt;

use memchr::{memchr, memmem, memrchr_iter};
use thiserror::Error;

use super::condition::{EXCEPT_BYTES_MAX, EXCEPT_STARS_MAX};
use super::work::Work;

/// Longest glob, in bytes.
pub(crate) const GLOB_BYTES_MAX: usize = 256;

/// Bytes in which one step finds the end of a segment: that is faster than finding a literal.
const SEGMENT_BYTES_PER_STEP: usize = 512;

/// A parsed glob. Without a `*` it matches one text only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Glob {
    text: Box<str>,
    /// Literals between the stars: at least two, of which the first and the last may be empty. `None` for plain text,
    /// which is compared as it is.
    pieces: Option<Box<[Piece]>>,
}

/// A literal, and the star before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Piece {
    star: Star,
    start: u16,
    end: u16,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Star {
    /// Start of the glob.
    None,
    /// `*`: any bytes but `/`.
    Segment,
    /// `**`: any bytes.
    Any,
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
        let pieces = text.contains('*').then(|| pieces(text.as_bytes()).into());
        Self { text: text.into(), pieces }
    }

    /// The glob as it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The only text it matches, if there is only one.
    #[must_use]
    pub fn literal(&self) -> Option<&str> {
        self.pieces.is_none().then_some(&self.text)
    }

    /// Its literals that are not empty: every text that it matches contains all of them.
    pub(super) fn literals(&self) -> impl Iterator<Item = &str> {
        let pieces = self.pieces.iter().flat_map(|pieces| pieces.iter());
        let literals = pieces.map(|piece| &self.text[usize::from(piece.start)..piece.end.into()]);
        self.literal().into_iter().chain(literals).filter(|literal| !literal.is_empty())
    }

    /// Returns whether it matches the whole of `text`.
    #[must_use]
    pub fn matches(&self, text: &str) -> bool {
        self.matches_within(text, &Work::unlimited())
    }

    /// As [`matches`](Self::matches). False too if the work is exhausted.
    #[inline]
    pub(super) fn matches_within(&self, text: &str, work: &Work) -> bool {
        match &self.pieces {
            None => *self.text == *text,
            Some(pieces) => self.pieces_match(pieces, text.as_bytes(), work).is_some(),
        }
    }

    /// `Some` if these pieces match the whole of `text`.
    fn pieces_match(&self, pieces: &[Piece], text: &[u8], work: &Work) -> Option<()> {
        work.spend(1)?;
        let (last, inner) = pieces.split_last()?;
        let last_start = text.strip_suffix(self.bytes(*last))?.len();
        text.strip_prefix(self.bytes(inner[0]))?;
        let mut at = self.bytes(inner[0]).len();
        let is_any = |piece: &Piece| piece.star == Star::Any;
        let last_any = pieces.iter().rposition(is_any);
        let mut next = 1;
        while next < inner.len() {
            if is_any(&inner[next]) && Some(next) != last_any {
                let length = pieces[next + 1..].iter().position(is_any)? + 1;
                at = self.find_part(&inner[next..next + length], text, at, work)?;
                next += length;
                continue;
            }
            if is_any(&inner[next]) {
                let rest = &self.text.as_bytes()[usize::from(inner[next].start)..];
                work.read(rest.len() + text.len())?;
                at = at.max(segments_from_end(text, rest)?);
            }
            at = find_in_segment(self.bytes(inner[next]), text, at, work)?;
            next += 1;
        }
        let between = text.get(at..last_start)?;
        work.spend(between.len() / SEGMENT_BYTES_PER_STEP)?;
        (is_any(last) || memchr(b'/', between).is_none()).then_some(())
    }

    /// End of the first match, from `at` on, of a part between two `**`.
    fn find_part(&self, part: &[Piece], text: &[u8], at: usize, work: &Work) -> Option<usize> {
        let (first, rest) = part.split_first()?;
        let mut from = at;
        loop {
            let start = from + find(self.bytes(*first), &text[from..], work)?;
            let end = start + self.bytes(*first).len();
            let find = |at, piece: &Piece| find_in_segment(self.bytes(*piece), text, at, work);
            let end = rest.iter().try_fold(end, find);
            if end.is_some() {
                return end;
            }
            // A later start in the same segment finds no more than this one.
            let length = memchr(b'/', &text[start..])?;
            work.spend(length / SEGMENT_BYTES_PER_STEP)?;
            from = start + length + 1;
        }
    }

    fn bytes(&self, piece: Piece) -> &[u8] {
        &self.text.as_bytes()[piece.start.into()..piece.end.into()]
    }
}

/// End of the first `literal` that starts at `at` or later in the same segment.
fn find_in_segment(literal: &[u8], text: &[u8], at: usize, work: &Work) -> Option<usize> {
    let segment_end = memchr(b'/', &text[at..]).map_or(text.len(), |length| at + length);
    work.spend((segment_end - at) / SEGMENT_BYTES_PER_STEP)?;
    let end = text.len().min(segment_end + literal.len());
    Some(at + find(literal, &text[at..end], work)? + literal.len())
}

/// Start of the first `literal` in `text`.
fn find(literal: &[u8], text: &[u8], work: &Work) -> Option<usize> {
    let found = memmem::find(text, literal);
    work.read(found.unwrap_or(text.len()))?;
    found
}

/// Start of the segment of `text` behind which it has as many slashes as `rest`. `None` if it has fewer.
fn segments_from_end(text: &[u8], rest: &[u8]) -> Option<usize> {
    let slashes = memchr::memchr_iter(b'/', rest).count();
    let mut from_end = memrchr_iter(b'/', text);
    if slashes > 0 {
        from_end.nth(slashes - 1)?;
    }
    Some(from_end.next().map_or(0, |slash| slash + 1))
}

/// Pieces of a glob with a star. Stars in a row are one: more than two mean the same as two.
fn pieces(text: &[u8]) -> Vec<Piece> {
    let position = |at: usize| u16::try_from(at).unwrap_or(u16::MAX);
    let (mut pieces, mut star, mut start) = (Vec::new(), Star::None, 0);
    while let Some(length) = memchr(b'*', &text[start..]) {
        let end = start + length;
        pieces.push(Piece { star, start: position(start), end: position(end) });
        let stars = text[end..].iter().take_while(|byte| **byte == b'*').count();
        star = if stars == 1 { Star::Segment } else { Star::Any };
        start = end + stars;
    }
    pieces.push(Piece { star, start: position(start), end: position(text.len()) });
    pieces
}

const _: () = assert!(GLOB_BYTES_MAX <= u16::MAX as usize);

impl fmt::Display for Glob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
