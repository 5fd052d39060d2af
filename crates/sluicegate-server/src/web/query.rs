//! What follows the `?`: names that are known, each once, and values that make sense.

use std::borrow::Cow;
use std::str::FromStr;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;

use super::problem::Problem;
use crate::data::Page;

/// The parameter that says where a list goes on.
const AFTER: &str = "after";

/// How many rows a list has if nobody says, and at most.
pub(crate) const LIMIT_DEFAULT: usize = 100;
pub(crate) const LIMIT_MAX: usize = 1000;

/// The parameters of a request, as they were given.
#[derive(Debug)]
pub(crate) struct Query(Vec<(String, String)>);

impl<S: Sync> FromRequestParts<S> for Query {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        Self::read(parts.uri.query().unwrap_or_default())
    }
}

impl Query {
    /// The parameters in this text.
    ///
    /// # Errors
    ///
    /// That one is not UTF-8: reading it nevertheless would find, or delete, something else.
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
            // Many call it so, for that is what it is.
            let name = if name == "cursor" { AFTER.into() } else { name };
            (name.into(), value.into())
        };
        Self(pairs.map(owned).collect())
    }

    /// Refuses parameters other than these, and any that is there twice.
    pub(crate) fn only(self, known: &[&str]) -> Result<Self, Problem> {
        for (position, (name, _)) in self.0.iter().enumerate() {
            if !known.contains(&name.as_str()) {
                let names = if known.is_empty() { "none".into() } else { known.join(", ") };
                let detail = format!("is no parameter here; there are {names}");
                return Err(Problem::field(name.as_str(), detail));
            }
            if self.0[..position].iter().any(|(earlier, _)| earlier == name) {
                return Err(Problem::field(name.as_str(), "is there twice"));
            }
        }
        Ok(self)
    }

    /// The text of a parameter.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// All of them, in their order.
    pub(crate) fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// The value of a parameter. `what` says what it should be: "a whole number".
    pub(crate) fn value<T: FromStr>(&self, name: &str, what: &str) -> Result<Option<T>, Problem> {
        let read = |text: &str| {
            text.parse().map_err(|_| Problem::field(name, format_args!("is not {what}")))
        };
        self.text(name).map(read).transpose()
    }

    /// Whether something is asked for: `dry_run`, `dry_run=true` or `dry_run=1`.
    pub(crate) fn flag(&self, name: &str) -> Result<bool, Problem> {
        match self.text(name) {
            None | Some("false" | "0") => Ok(false),
            Some("" | "true" | "1") => Ok(true),
            Some(_) => Err(Problem::field(name, "is neither true nor false")),
        }
    }

    /// `limit`, within bounds.
    pub(crate) fn limit(&self) -> Result<usize, Problem> {
        match self.value("limit", "a whole number")? {
            None => Ok(LIMIT_DEFAULT),
            Some(limit) if (1..=LIMIT_MAX).contains(&limit) => Ok(limit),
            Some(_) => Err(Problem::field("limit", format_args!("is not from 1 to {LIMIT_MAX}"))),
        }
    }

    /// `after` and `limit`, for a list whose cursor is a number.
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
                    "is no parameter here; there are limit, dry_run"
                } else {
                    "is there twice"
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
