//! Errors in answers, as `application/problem+json`.

use std::time::Duration;

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use sluicegate::Trouble;
use sluicegate::rules::FieldError;
use tracing::warn;
use utoipa::ToSchema;

use crate::app::store_trouble_message;
use crate::data::DataError;
use crate::log_limit::LogLimit;

/// Log lines about changes that could not be recorded.
static UNRECORDED_LINES: LogLimit = LogLimit::new();

/// Problem details (RFC 9457).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct Problem {
    /// Always `about:blank`: the status identifies the problem.
    #[serde(rename = "type")]
    kind: &'static str,
    /// Reason phrase of the status.
    title: &'static str,
    /// HTTP status code.
    status: u16,
    /// Description of the error, as text.
    detail: String,
    /// Name of the invalid field, such as `cost`, `attributes.tenant` or `[3].ip`; absent if no field is at fault.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    field: Option<String>,
    /// Rule with the same id, or the same key pattern and plan, if a rule conflicts with it (409); otherwise absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, minimum = 1, maximum = 9_007_199_254_740_991_u64)]
    conflicting_rule_id: Option<u64>,
    /// Whole seconds to wait before a retry, for the header `Retry-After`.
    #[serde(skip)]
    retry_after_s: Option<u32>,
    /// Cause for the operator, which is not written into the body; see [`Cause`].
    #[serde(skip)]
    cause: Option<Box<Cause>>,
}

/// Cause of a problem that clients are not told, as an extension of the response. Extensions do not leave the process:
/// commands that run the administration in process show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cause(pub(crate) String);

impl Problem {
    /// Creates a problem. 503 has `Retry-After: 1`.
    pub(crate) fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        Self {
            kind: "about:blank",
            title: status.canonical_reason().unwrap_or("Error"),
            status: status.as_u16(),
            detail: detail.into(),
            field: None,
            conflicting_rule_id: None,
            retry_after_s: (status == StatusCode::SERVICE_UNAVAILABLE).then_some(1),
            cause: None,
        }
    }

    /// Sets `Retry-After`.
    pub(crate) fn retry_after(mut self, wait: Duration) -> Self {
        self.retry_after_s = Some(whole_seconds(wait).try_into().unwrap_or(u32::MAX));
        self
    }

    /// 400: the field is invalid.
    pub(crate) fn field(field: impl Into<String>, reason: impl std::fmt::Display) -> Self {
        let field = field.into();
        let mut problem = Self::new(StatusCode::BAD_REQUEST, format!("{field}: {reason}"));
        problem.field = Some(field);
        problem
    }

    /// Prefixes the field with the index of a member of a batch.
    pub(crate) fn within(mut self, member: usize) -> Self {
        let field = match self.field.take() {
            Some(field) => format!("[{member}].{field}"),
            None => format!("[{member}]"),
        };
        self.detail = format!("member {member}: {}", self.detail);
        self.field = Some(field);
        self
    }

    /// Prefixes the field with the name of the object that contains it.
    pub(crate) fn inside(mut self, parent: &str) -> Self {
        self.field = self.field.map(|field| format!("{parent}.{field}"));
        self
    }

    /// 503: an act could not be recorded in the history, and was not done.
    pub(crate) fn unrecorded(error: &DataError) -> Self {
        let detail = "the history cannot be written, so nothing was changed: try again";
        let mut problem = Self::new(StatusCode::SERVICE_UNAVAILABLE, detail);
        let cause = match error {
            DataError::Unrecorded(cause) => cause.clone(),
            error => error.to_string(),
        };
        problem.cause = Some(Box::new(Cause(cause)));
        problem
    }

    /// Converts an error of the database.
    pub(crate) fn data(error: &DataError) -> Self {
        match error {
            // The cause is for the operator only, and is logged.
            DataError::Unavailable(cause) => {
                let detail = "the database does not answer: try again";
                let mut problem = Self::new(StatusCode::SERVICE_UNAVAILABLE, detail);
                problem.cause = Some(Box::new(Cause(cause.clone())));
                problem
            }
            DataError::Unrecorded(cause) => {
                if let Some(suppressed) = UNRECORDED_LINES.admit() {
                    warn!(
                        error = cause,
                        suppressed, "change refused: it cannot be recorded in the history"
                    );
                }
                Self::unrecorded(error)
            }
            DataError::TooSlow => Self::new(StatusCode::SERVICE_UNAVAILABLE, error.to_string()),
            // The stored row is invalid: it must be corrected in the database first.
            DataError::Unexpected(_) => Self::new(StatusCode::CONFLICT, error.to_string()),
            DataError::NotFound(_) => Self::new(StatusCode::NOT_FOUND, error.to_string()),
            DataError::Conflict { field, rule_id, .. } => {
                let mut problem = Self::new(StatusCode::CONFLICT, error.to_string());
                problem.field = Some((*field).into());
                problem.conflicting_rule_id = *rule_id;
                problem
            }
            DataError::Stale { .. } | DataError::Exists { .. } => {
                Self::new(StatusCode::PRECONDITION_FAILED, error.to_string())
            }
            DataError::Refused(errors) => Self::fields(errors),
        }
    }

    /// 400: these columns of a rule are invalid.
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

/// Whole seconds, rounded up; at least one.
pub(crate) fn whole_seconds(wait: Duration) -> u64 {
    let up = u64::from(wait.subsec_nanos() > 0);
    wait.as_secs().saturating_add(up).max(1)
}

/// 503: the store failed, and no policy allows an answer without it.
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
        if let Some(cause) = self.cause {
            response.extensions_mut().insert(*cause);
        }
        response
    }
}
