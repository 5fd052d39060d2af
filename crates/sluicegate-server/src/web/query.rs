//! Query parameters: rejects unknown, duplicate and invalid ones.

use std::borrow::Cow;
use std::str::FromStr;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;

use super::problem::Problem;
use crate::data::Page;

/// Parameter with the cursor of a list.
const AFTER: &str = "after";

/// Default page size of a list.
pub(crate) const LIMIT_DEFAULT: usize = 100;
/// Maximum page size of a list.
pub(crate) const LIMIT_MAX: usize = 1000;

/// Query parameters of a request, in their order.
#[derive(Debug)]
pub(crate) struct Query(Vec<(String, String)>);

impl<S: Sync> FromRequestParts<S> for Query {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        Self::read(parts.uri.query().unwrap_or_default())
    }
}

impl Query {
    /// Parses a query string.
    ///
    /// # Errors
    ///
    /// If a parameter is not UTF-8: with replacement characters it would find, or delete, something else.
    pub(crate) fn read(text: &str) -> Result<Self, Problem> {
        const REPLACEMENT: char = char::REPLACEMENT_CHARACTER;
        for part in text.split('&') {
            let written = part.to_ascii_lowercase().matches("%ef%bf%bd").count();
            let replaced = form_urlencoded::parse(part.as_bytes()).find(|(name, value)| {
                name.matches(REPLACEMENT).count() + value.matches(REPLACEMENT).count() > written
            });
            if let Some((name, _)) = replaced {
                return Err(Problem::field(name, "is not UTF-8"));
            }
        }
        Ok(Self::parse(text))
    }

    pub(crate) fn parse(text: &str) -> Self {
        let pairs = form_urlencoded::parse(text.as_bytes());
        let owned = |(name, value): (Cow<'_, str>, Cow<'_, str>)| {
            // Alias of `after`.
            let name = if name == "cursor" { AFTER.into() } else { name };
            (name.into(), value.into())
        };
        Self(pairs.map(owned).collect())
    }

    /// Rejects unknown and duplicate parameters.
    pub(crate) fn only(self, known: &[&str]) -> Result<Self, Problem> {
        for (position, (name, _)) in self.0.iter().enumerate() {
            if !known.contains(&name.as_str()) {
                let detail = if known.is_empty() {
                    "is not a parameter: none are allowed here".into()
                } else {
                    format!("is not a parameter: must be one of {}", known.join(", "))
                };
                return Err(Problem::field(name.as_str(), detail));
            }
            if self.0[..position].iter().any(|(earlier, _)| earlier == name) {
                return Err(Problem::field(name.as_str(), "is duplicated"));
            }
        }
        Ok(self)
    }

    /// Text of a parameter; `None` if it is absent.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Names and values, in their order.
    pub(crate) fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Parses the value of a parameter. `what` describes a valid value in the error: "a whole number".
    pub(crate) fn value<T: FromStr>(&self, name: &str, what: &str) -> Result<Option<T>, Problem> {
        let read = |text: &str| {
            text.parse().map_err(|_| Problem::field(name, format_args!("is not {what}")))
        };
        self.text(name).map(read).transpose()
    }

    /// Parses a flag, which is set by `dry_run`, `dry_run=true` or `dry_run=1`.
    pub(crate) fn flag(&self, name: &str) -> Result<bool, Problem> {
        match self.text(name) {
            None | Some("false" | "0") => Ok(false),
            Some("" | "true" | "1") => Ok(true),
            Some(_) => Err(Problem::field(name, "must be true or false")),
        }
    }

    /// Parses `limit`: from 1 to [`LIMIT_MAX`], by default [`LIMIT_DEFAULT`].
    pub(crate) fn limit(&self) -> Result<usize, Problem> {
        match self.value("limit", "a whole number")? {
            None => Ok(LIMIT_DEFAULT),
            Some(limit) if (1..=LIMIT_MAX).contains(&limit) => Ok(limit),
            Some(_) => Err(Problem::field("limit", format_args!("must be from 1 to {LIMIT_MAX}"))),
        }
    }

    /// Parses `after` and `limit`, for a list whose cursor is a number.
    pub(crate) fn page(&self) -> Result<Page, Problem> {
        Ok(Page { after: self.value(AFTER, "a cursor")?, limit: self.limit()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_known_and_there_once() {
        let known = ["limit", "dry_run"];
        let query = Query::parse("limit=5&dry_run").only(&known).unwrap();
        assert_eq!((query.limit(), query.flag("dry_run")), (Ok(5), Ok(true)));
        for (wrong, field) in [("limits=5", "limits"), ("limit=5&limit=5", "limit")] {
            let problem = Query::parse(wrong).only(&known).unwrap_err();
            assert_eq!(problem, {
                let detail = if wrong.starts_with("limits") {
                    "is not a parameter: must be one of limit, dry_run"
                } else {
                    "is duplicated"
                };
                Problem::field(field, detail)
            });
        }
        for wrong in ["0", "1001", "-1", "x", ""] {
            assert!(Query::parse(&format!("limit={wrong}")).limit().is_err(), "{wrong}");
        }
        assert_eq!(Query::parse("").limit(), Ok(LIMIT_DEFAULT));
        let page = |text: &str| Query::parse(text).only(&["after", "limit"])?.page();
        assert_eq!(page("cursor=7"), page("after=7"));
        assert!(page("cursor=7&after=7").is_err(), "twice the same");
    }

    #[test]
    fn parameters_are_utf_8() {
        for right in ["", "plan=%EF%BF%BD", "plan=%ef%bf%bd&user_id=%C3%A4", "a&&b=+"] {
            assert!(Query::read(right).is_ok(), "{right}");
        }
        for wrong in ["plan=%ff", "limit=1&plan=%ef%bf%bd%ff", "plan=%ed%a0%80&x=%ef%bf%bd"] {
            let problem = Query::read(wrong).unwrap_err();
            assert_eq!(problem, Problem::field("plan", "is not UTF-8"), "{wrong}");
        }
    }
}
