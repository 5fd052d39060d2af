//! A request to the administration, before it is known where it goes.

use axum::http::header::{ACCEPT, CONTENT_TYPE, IF_MATCH, IF_NONE_MATCH};
use axum::http::{Method, Request, request};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

use crate::cli::failure::{CliResult, Failure};
use crate::cli::options::Why;
use crate::web::access::REASON_HEADER;

/// Bytes that are escaped in a path segment. `.` is among them: `..` would name another path.
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'~');

/// A request to the administration.
#[derive(Clone, Debug)]
pub(in crate::cli) struct Call {
    method: Method,
    path: String,
    query: Vec<(String, String)>,
    if_match: Option<u64>,
    creates_only: bool,
    reason: Option<String>,
    body: Option<Value>,
}

impl Call {
    fn new(method: Method, path: impl Into<String>) -> Self {
        let (path, query) = (path.into(), Vec::new());
        Self { method, path, query, if_match: None, creates_only: false, reason: None, body: None }
    }

    pub(in crate::cli) fn get(path: impl Into<String>) -> Self {
        Self::new(Method::GET, path)
    }

    pub(in crate::cli) fn post(path: impl Into<String>, body: Value) -> Self {
        Self { body: Some(body), ..Self::new(Method::POST, path) }
    }

    pub(in crate::cli) fn put(path: impl Into<String>, body: Value) -> Self {
        Self { body: Some(body), ..Self::new(Method::PUT, path) }
    }

    pub(in crate::cli) fn patch(path: impl Into<String>, body: Value) -> Self {
        Self { body: Some(body), ..Self::new(Method::PATCH, path) }
    }

    pub(in crate::cli) fn delete(path: impl Into<String>) -> Self {
        Self::new(Method::DELETE, path)
    }

    /// Adds a query parameter.
    pub(in crate::cli) fn with(mut self, name: &str, value: impl AsRef<str>) -> Self {
        self.query.push((name.into(), value.as_ref().into()));
        self
    }

    /// Adds a query parameter if there is a value.
    pub(in crate::cli) fn maybe(self, name: &str, value: Option<impl AsRef<str>>) -> Self {
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }

    /// Adds a precondition: the resource must still have this version.
    pub(in crate::cli) fn if_match(self, version: Option<u64>) -> Self {
        Self { if_match: version, ..self }
    }

    /// Adds a precondition, if so: the resource must not exist.
    pub(in crate::cli) fn create_only(self, creates_only: bool) -> Self {
        Self { creates_only, ..self }
    }

    /// Adds the reason of a change, if there is one.
    pub(in crate::cli) fn because(self, why: &Why) -> Self {
        Self { reason: why.reason.clone(), ..self }
    }

    /// Asks for a dry run, if so.
    pub(in crate::cli) fn dry_run(self, dry_run: bool) -> Self {
        if dry_run { self.with("dry_run", "true") } else { self }
    }

    /// The request for this call to the server at a base URL. Its body is empty if the call has none.
    pub(super) fn request(&self, base: impl std::fmt::Display) -> CliResult<Request<Vec<u8>>> {
        let query =
            form_urlencoded::Serializer::new(String::new()).extend_pairs(&self.query).finish();
        let mark = if query.is_empty() { "" } else { "?" };
        let mut request: request::Builder = Request::builder()
            .method(&self.method)
            .uri(format!("{base}{}{mark}{query}", self.path))
            .header(ACCEPT, "application/json, application/problem+json");
        if let Some(version) = self.if_match {
            request = request.header(IF_MATCH, format!("\"{version}\""));
        }
        if self.creates_only {
            request = request.header(IF_NONE_MATCH, "*");
        }
        if let Some(reason) = &self.reason {
            request = request.header(REASON_HEADER, reason.as_bytes());
        }
        let body = match &self.body {
            None => Vec::new(),
            Some(body) => {
                request = request.header(CONTENT_TYPE, "application/json");
                body.to_string().into_bytes()
            }
        };
        request.body(body).map_err(|error| Failure::usage(error.to_string()))
    }
}

/// Escapes a text for use as one segment of a path.
pub(in crate::cli) fn segment(text: &str) -> String {
    utf8_percent_encode(text, SEGMENT).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_has_nothing_in_it_that_divides_paths() {
        assert_eq!(segment("user-1_~"), "user-1_~");
        assert_eq!(segment("../a b?c#%é"), "%2E%2E%2Fa%20b%3Fc%23%25%C3%A9");
    }
}
