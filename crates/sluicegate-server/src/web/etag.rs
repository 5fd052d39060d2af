//! Versions in headers (`ETag`, `If-Match`, `If-None-Match`), which prevent lost updates.

use axum::http::{HeaderMap, HeaderName, HeaderValue, header};

use super::problem::Problem;
use crate::data::DataError;

/// `ETag` of a version.
pub(crate) fn etag(version: u64) -> HeaderValue {
    HeaderValue::from_str(&format!("\"{version}\""))
        .unwrap_or_else(|_| HeaderValue::from_static(""))
}

/// Versions accepted by a conditional request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Versions {
    /// `*`: any version of an existing resource.
    Any,
    /// Only these versions.
    Of(Vec<u64>),
}

impl Versions {
    /// Parses `If-Match`; `None` if it is absent.
    pub(crate) fn if_match(headers: &HeaderMap) -> Result<Option<Self>, Problem> {
        Self::read(headers, &header::IF_MATCH, |tag| tag)
    }

    /// Parses `If-None-Match`; `None` if it is absent. Weak tags are accepted: proxies that compress answers weaken
    /// them.
    pub(crate) fn if_none_match(headers: &HeaderMap) -> Result<Option<Self>, Problem> {
        Self::read(headers, &header::IF_NONE_MATCH, |tag| tag.strip_prefix("W/").unwrap_or(tag))
    }

    /// True if a request creates only: `If-None-Match: *`. False without the field.
    ///
    /// # Errors
    ///
    /// Any other value: there is no version yet.
    pub(crate) fn is_create_only(headers: &HeaderMap) -> Result<bool, Problem> {
        let mut values = headers.get_all(header::IF_NONE_MATCH).iter();
        match values.next() {
            None => Ok(false),
            Some(value) if value.as_bytes().trim_ascii() == b"*" && values.next().is_none() => {
                Ok(true)
            }
            Some(_) => {
                Err(Problem::field("If-None-Match", "must be * here: there is no version yet"))
            }
        }
    }

    fn read(
        headers: &HeaderMap,
        name: &HeaderName,
        strong: impl Fn(&str) -> &str,
    ) -> Result<Option<Self>, Problem> {
        let shown = if *name == header::IF_MATCH { "If-Match" } else { "If-None-Match" };
        let wrong = || Problem::field(shown, "must be a version such as \"3\", or *");
        let mut versions = Vec::new();
        for value in headers.get_all(name) {
            let value = value.to_str().map_err(|_| wrong())?.trim();
            if value == "*" {
                return Ok(Some(Self::Any));
            }
            for tag in value.split(',') {
                let tag = strong(tag.trim()).strip_prefix('"').and_then(|t| t.strip_suffix('"'));
                versions.push(tag.and_then(|tag| tag.parse().ok()).ok_or_else(wrong)?);
            }
        }
        Ok((!versions.is_empty()).then_some(Self::Of(versions)))
    }

    /// True if the version is one of them.
    pub(crate) fn contain(&self, version: u64) -> bool {
        match self {
            Self::Any => true,
            Self::Of(versions) => versions.contains(&version),
        }
    }

    /// # Errors
    ///
    /// [`DataError::Stale`] if the version is not one of them.
    pub(crate) fn require(&self, current: u64) -> Result<(), DataError> {
        if self.contain(current) { Ok(()) } else { Err(DataError::Stale { current }) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(name: &HeaderName, values: &[&'static str]) -> HeaderMap {
        values.iter().map(|value| (name.clone(), HeaderValue::from_static(value))).collect()
    }

    #[test]
    fn tags_are_versions() {
        let read =
            |values: &[&'static str]| Versions::if_match(&headers(&header::IF_MATCH, values));
        assert_eq!(etag(3), "\"3\"");
        assert_eq!(read(&[]), Ok(None));
        assert_eq!(read(&["*"]), Ok(Some(Versions::Any)));
        assert_eq!(read(&["\"3\""]), Ok(Some(Versions::Of(vec![3]))));
        assert_eq!(read(&["\"3\", \"4\"", "\"5\""]), Ok(Some(Versions::Of(vec![3, 4, 5]))));
        for wrong in ["", "3", "\"x\"", "\"3", "W/\"3\"", "\"3\",", "\"-1\""] {
            let problem = read(&[wrong]).unwrap_err();
            assert!(format!("{problem:?}").contains("If-Match"), "{wrong}");
        }
        let weak = headers(&header::IF_NONE_MATCH, &["W/\"3\""]);
        assert_eq!(Versions::if_none_match(&weak), Ok(Some(Versions::Of(vec![3]))));
    }

    #[test]
    fn another_version_is_stale() {
        let three = Versions::Of(vec![3]);
        assert_eq!((three.require(3), Versions::Any.require(4)), (Ok(()), Ok(())));
        assert_eq!(three.require(4), Err(DataError::Stale { current: 4 }));
    }
}
