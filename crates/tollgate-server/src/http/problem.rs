//! Errors as clients see them: `application/problem+json` that names what is wrong and where.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use tollgate::Trouble;
use utoipa::ToSchema;

/// What went wrong, as RFC 9457 writes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct Problem {
    /// Always `about:blank`: the status says it all.
    #[serde(rename = "type")]
    kind: &'static str,
    /// The status in words.
    title: &'static str,
    /// The HTTP status.
    status: u16,
    /// What is wrong, for people.
    detail: String,
    /// The field that is wrong, where it is one: `cost`, `attributes.tenant`, `[3].ip`.
    #[serde(skip_serializing_if = "Option::is_none")]
    field: Option<String>,
}

impl Problem {
    /// A problem with this status.
    pub(crate) fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        Self {
            kind: "about:blank",
            title: status.canonical_reason().unwrap_or("Error"),
            status: status.as_u16(),
            detail: detail.into(),
            field: None,
        }
    }

    /// 400: this field is wrong.
    pub(crate) fn field(field: impl Into<String>, reason: impl std::fmt::Display) -> Self {
        let field = field.into();
        let mut problem = Self::new(StatusCode::BAD_REQUEST, format!("{field}: {reason}"));
        problem.field = Some(field);
        problem
    }

    /// The same problem in a member of a batch.
    pub(crate) fn within(mut self, member: usize) -> Self {
        let field = match self.field.take() {
            Some(field) => format!("[{member}].{field}"),
            None => format!("[{member}]"),
        };
        self.detail = format!("member {member}: {}", self.detail);
        self.field = Some(field);
        self
    }

    /// 503: the store is in trouble, and no policy can answer in its place.
    pub(crate) fn store(trouble: &Trouble) -> Self {
        // The kind only: what the server said is for the operator, and in the log.
        let detail = format!("the store is in trouble ({}): try again", trouble.kind());
        Self::new(StatusCode::SERVICE_UNAVAILABLE, detail)
    }

    fn status(&self) -> StatusCode {
        StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let body = serde_json::to_vec(&self).unwrap_or_default();
        let kind = HeaderValue::from_static("application/problem+json");
        let mut response = (self.status(), [(header::CONTENT_TYPE, kind)], body).into_response();
        if self.status() == StatusCode::UNAUTHORIZED {
            let bearer = HeaderValue::from_static("Bearer");
            response.headers_mut().insert(header::WWW_AUTHENTICATE, bearer);
        }
        if self.status() == StatusCode::SERVICE_UNAVAILABLE {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        response
    }
}
