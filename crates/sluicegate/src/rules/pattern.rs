//! Key patterns: text with `{attribute}` placeholders. Requests with the same values share a bucket.

use std::fmt;
use std::ops::Range;

use thiserror::Error;

use super::attribute::Attribute;
use super::glob::Glob;
use super::rule::PathForm;
use crate::compat::floor_char_boundary;
use crate::request::Request;

/// Longest key pattern, in bytes.
pub(crate) const PATTERN_BYTES_MAX: usize = 256;
/// Most placeholders of a key pattern.
pub(crate) const PLACEHOLDERS_MAX: usize = 8;

/// Prefix of a pattern for one endpoint.
const ENDPOINT_PREFIX: &str = "endpoint:";

/// A parsed key pattern.
///
/// `user:{user_id}` gives every user a bucket, `api:{endpoint}:{user_id}` every user one per endpoint,
/// `global` all requests one. `endpoint:/api/search`, without a placeholder, is for that endpoint only,
/// and may be a [`Glob`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    text: Box<str>,
    pieces: Box<[Piece]>,
    /// The placeholders, the subject first.
    attributes: Box<[Attribute]>,
    endpoint: Option<Glob>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Text(Range<usize>),
    Placeholder(Attribute),
}

/// Reason for refusing a key pattern: `at` is the byte offset of the mistake.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "`at` is explained once, above")]
pub enum PatternError {
    /// It is empty.
    #[error("a key pattern must not be empty")]
    Empty,
    /// It is too long.
    #[error("the key pattern has more than {PATTERN_BYTES_MAX} bytes")]
    TooLong { at: usize },
    /// `{` without `}`.
    #[error("this `{{` is never closed")]
    Unclosed { at: usize },
    /// `}` without `{`.
    #[error("this `}}` is never opened")]
    Unopened { at: usize },
    /// A placeholder that names no attribute.
    #[error("`{name}` is not the name of an attribute: use letters, digits, `_`, `-` and `.`")]
    BadName { at: usize, name: String },
    /// A duplicate placeholder.
    #[error("`{{{name}}}` is duplicated")]
    Twice { at: usize, name: String },
    /// Too many placeholders.
    #[error("the key pattern has more than {PLACEHOLDERS_MAX} placeholders")]
    TooMany { at: usize },
    /// `endpoint:` without an endpoint.
    #[error("an endpoint is missing after `endpoint:`")]
    NoEndpoint { at: usize },
    /// A control character.
    #[error("a key pattern must not have control characters")]
    Control { at: usize },
}

impl PatternError {
    /// The byte offset of the mistake.
    #[must_use]
    pub fn at(&self) -> usize {
        match self {
            Self::Empty => 0,
            Self::TooLong { at }
            | Self::Unclosed { at }
            | Self::Unopened { at }
            | Self::BadName { at, .. }
            | Self::Twice { at, .. }
            | Self::TooMany { at }
            | Self::NoEndpoint { at }
            | Self::Control { at } => *at,
        }
    }
}

impl Pattern {
    /// Parses a key pattern.
    ///
    /// # Errors
    ///
    /// The first mistake, with its place.
    pub fn parse(text: &str) -> Result<Self, PatternError> {
        if text.is_empty() {
            return Err(PatternError::Empty);
        }
        if text.len() > PATTERN_BYTES_MAX {
            return Err(PatternError::TooLong { at: floor_char_boundary(text, PATTERN_BYTES_MAX) });
        }
        if let Some(at) = text.find(char::is_control) {
            return Err(PatternError::Control { at });
        }
        let (pieces, placeholders) = split(text)?;
        let endpoint = match text.strip_prefix(ENDPOINT_PREFIX) {
            Some("") => return Err(PatternError::NoEndpoint { at: text.len() }),
            Some(path) if placeholders.is_empty() => Some(Glob::within_limits(path)),
            _ => None,
        };
        let attributes = subject_first(placeholders);
        Ok(Self {
            text: text.into(),
            pieces: pieces.into(),
            attributes: attributes.into(),
            endpoint,
        })
    }

    /// The pattern as it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Its placeholders, the subject first: `user_id` if it is among them, else `ip`, else the first.
    #[must_use]
    pub fn attributes(&self) -> &[Attribute] {
        &self.attributes
    }

    /// Endpoints that it is limited to, if any.
    #[must_use]
    pub fn endpoint(&self) -> Option<&Glob> {
        self.endpoint.as_ref()
    }

    /// This pattern with the endpoint that it is limited to, if any, in another form.
    ///
    /// # Errors
    ///
    /// An endpoint that is empty in that form.
    pub(super) fn with_path(mut self, path: PathForm) -> Result<Self, PatternError> {
        if self.endpoint.is_some() {
            let endpoint = self.text.strip_prefix(ENDPOINT_PREFIX).unwrap_or_default();
            let endpoint = path.of(endpoint);
            if endpoint.is_empty() {
                return Err(PatternError::NoEndpoint { at: ENDPOINT_PREFIX.len() });
            }
            self.endpoint = Some(Glob::within_limits(&endpoint));
        }
        Ok(self)
    }

    /// Readable bucket key: the pattern with its placeholders filled in. `None` if the request lacks one of them.
    #[must_use]
    pub fn bucket_key(&self, request: &Request<'_>) -> Option<String> {
        self.filled(|attribute| request.get(attribute))
    }

    /// The pattern with its placeholders filled in by these values. `None` if one of them is missing.
    pub fn filled<'v>(&self, value: impl Fn(&Attribute) -> Option<&'v str>) -> Option<String> {
        let mut key = String::with_capacity(self.text.len());
        for piece in &self.pieces {
            match piece {
                Piece::Text(range) => key.push_str(&self.text[range.clone()]),
                Piece::Placeholder(attribute) => key.push_str(value(attribute)?),
            }
        }
        Some(key)
    }
}

/// Splits a pattern into text and placeholders.
fn split(text: &str) -> Result<(Vec<Piece>, Vec<Attribute>), PatternError> {
    let (mut pieces, mut placeholders) = (Vec::new(), Vec::new());
    let mut start = 0;
    while start < text.len() {
        let brace = text[start..].find(['{', '}']).map_or(text.len(), |offset| start + offset);
        if brace > start {
            pieces.push(Piece::Text(start..brace));
        }
        if brace == text.len() {
            break;
        }
        if text.as_bytes()[brace] == b'}' {
            return Err(PatternError::Unopened { at: brace });
        }
        let end = text[brace..].find('}').ok_or(PatternError::Unclosed { at: brace })? + brace;
        let (at, name) = (brace + 1, &text[brace + 1..end]);
        if !Attribute::is_name(name) {
            return Err(PatternError::BadName { at, name: name.into() });
        }
        let attribute = Attribute::new(name);
        if placeholders.contains(&attribute) {
            return Err(PatternError::Twice { at, name: name.into() });
        }
        if placeholders.len() == PLACEHOLDERS_MAX {
            return Err(PatternError::TooMany { at: brace });
        }
        placeholders.push(attribute.clone());
        pieces.push(Piece::Placeholder(attribute));
        start = end + 1;
    }
    Ok((pieces, placeholders))
}

/// Moves the subject's attribute to the front.
fn subject_first(mut placeholders: Vec<Attribute>) -> Vec<Attribute> {
    let position = |attribute: &Attribute| placeholders.iter().position(|p| p == attribute);
    if let Some(subject) = position(&Attribute::UserId).or_else(|| position(&Attribute::Ip)) {
        placeholders[..=subject].rotate_right(1);
    }
    placeholders
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
