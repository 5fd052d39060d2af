//! Answers as JSON, and the bounds of request bodies.

use axum::body::Body;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use sluicegate::{Algorithm, Decision, Quota};

use super::problem::Problem;
use crate::app::RequestLimits;

/// Ratio of the largest batch to the largest single request.
const BATCH_BYTES_FACTOR: usize = 16;

/// Initial capacity of an answer's buffer; larger answers grow it.
const ANSWER_BYTES: usize = 1024;

const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// Header of answers that were made without the store.
const DEGRADED: HeaderName = HeaderName::from_static("x-sluicegate-degraded");

/// Serializes an answer as JSON, [`marked`] if it was made without the store.
pub(crate) fn answer(body: &impl Serialize, degraded: bool) -> Response {
    let mut bytes = Vec::with_capacity(ANSWER_BYTES);
    if let Err(error) = serde_json::to_writer(&mut bytes, body) {
        // Unreachable: serializing numbers and strings cannot fail.
        return Problem::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response();
    }
    let mut response = Response::new(Body::from(bytes));
    response.headers_mut().insert(header::CONTENT_TYPE, JSON);
    marked(response, degraded)
}

/// Adds the header of degraded answers if the answer was made without the store.
pub(crate) fn marked(mut response: Response, degraded: bool) -> Response {
    if degraded {
        response.headers_mut().insert(DEGRADED, HeaderValue::from_static("true"));
    }
    response
}

impl RequestLimits {
    pub(crate) fn batch_bytes_max(&self) -> usize {
        self.body_bytes_max.saturating_mul(BATCH_BYTES_FACTOR)
    }

    pub(crate) fn check_length(&self, field: &str, bytes: usize) -> Result<(), Problem> {
        if bytes > self.value_bytes_max {
            let most = format!("has more than {} bytes", self.value_bytes_max);
            return Err(Problem::field(field, most));
        }
        Ok(())
    }
}

/// Queueing delay in milliseconds, rounded up; `None` unless the algorithm is a leaky bucket.
pub(crate) fn delay_ms(quota: &Quota, decision: &Decision) -> Option<u64> {
    let is_queue = quota.algorithm() == Algorithm::LeakyBucket;
    is_queue.then(|| decision.delay_ms())
}
