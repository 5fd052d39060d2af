//! Errors as clients see them: `application/problem+json` that names what is wrong and where.

use std::time::Duration;

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use sluicegate::Trouble;
use sluicegate::rules::FieldError;
use utoipa::ToSchema;

use crate::app::store_trouble_message;
use crate::data::DataError;

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
    #[schema(nullable = false)]
    field: Option<String>,
    /// Whole seconds to wait before trying again; said in a header.
    #[serde(skip)]
    retry_after_s: Option<u64>,
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
            retry_after_s: (status == StatusCode::SERVICE_UNAVAILABLE).then_some(1),
        }
    }

    /// The same problem, with how long to wait before trying again.
    pub(crate) fn retry_after(mut self, wait: Duration) -> Self {
        self.retry_after_s = Some(whole_seconds(wait));
        self
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

    /// The same problem in an object that is the value of `parent`.
    pub(crate) fn inside(mut self, parent: &str) -> Self {
        self.field = self.field.map(|field| format!("{parent}.{field}"));
        self
    }

    /// What the database did not do.
    pub(crate) fn data(error: &DataError) -> Self {
        match error {
            // What it said is for the operator, and in the log.
            DataError::Unavailable(_) => {
                let detail = "the database does not answer: try again";
                Self::new(StatusCode::SERVICE_UNAVAILABLE, detail)
            }
            DataError::TooSlow => Self::new(StatusCode::SERVICE_UNAVAILABLE, error.to_string()),
            // Somebody has written it there, and has to mend it first.
            DataError::Unexpected(_) => Self::new(StatusCode::CONFLICT, error.to_string()),
            DataError::NotFound(_) => Self::new(StatusCode::NOT_FOUND, error.to_string()),
            DataError::Conflict { field, .. } => {
                let mut problem = Self::new(StatusCode::CONFLICT, error.to_string());
                problem.field = Some((*field).into());
                problem
            }
            DataError::Stale { .. } => {
                Self::new(StatusCode::PRECONDITION_FAILED, error.to_string())
            }
            DataError::Refused(errors) => Self::fields(errors),
        }
    }

    /// 400: these columns of a rule are wrong.
    pub(crate) fn fields(errors: &[FieldError]) -> Self {
        let details: Vec<_> = errors.iter().map(ToString::to_string).collect();
        let mut problem = Self::new(StatusCode::BAD_REQUEST, details.join("; "));
        problem.field = errors.first().map(|error| match &error.of {
            Some(of) => format!("{}.{of}", error.field),
            None => error.field.into(),
        });
        problem
    }

    fn status(&self) -> StatusCode {
        StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }
}

/// Whole seconds to wait, at least one.
pub(crate) fn whole_seconds(wait: Duration) -> u64 {
    let up = u64::from(wait.subsec_nanos() > 0);
    wait.as_secs().saturating_add(up).max(1)
}

/// 503: the store is in trouble, and no policy can answer in its place.
impl From<Trouble> for Problem {
    fn from(trouble: Trouble) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, store_trouble_message(&trouble))
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
        if let Some(seconds) = self.retry_after_s {
            response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
        }
        response
    }
}
