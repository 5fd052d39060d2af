//! The parsing of requests that the benchmarks share with the service. Not part of the interface.

use std::hint::black_box;
use std::time::Duration;

use crate::app::RequestLimits;
use crate::doors::grpc;
pub use crate::doors::grpc::rls::envoy::service::ratelimit::v3::RateLimitRequest;
use crate::doors::http::{check, take};
use crate::web::body::{Object, parse};
use crate::web::check_body::CheckBody;

/// True if this is the body of a check, parsed as `/v1/check` parses it.
#[must_use]
pub fn is_check(bytes: &[u8]) -> bool {
    CheckBody::parse(bytes, &LIMITS).map(black_box).is_ok()
}

/// Limits by default.
const LIMITS: RequestLimits = RequestLimits {
    body_bytes_max: 16 * 1024,
    body_timeout: Duration::from_secs(5),
    batch_max: 100,
    attributes_max: 32,
    value_bytes_max: 1024,
    take_full_max: Duration::from_secs(366 * 24 * 60 * 60),
};

/// True if the service parses this body of a request to `path`.
#[must_use]
pub fn is_parsed(path: &str, bytes: &[u8]) -> bool {
    match path {
        check::PATH => is_check(bytes),
        "/v1/check/batch" => CheckBody::parse_batch(bytes, &LIMITS).map(black_box).is_ok(),
        "/v1/take" => parse::<Object<take::TakeBody<'_>>>(bytes).map(black_box).is_ok(),
        "/json" => parse::<Object<grpc::json::call::Call<'_>>>(bytes).map(black_box).is_ok(),
        grpc::PATH => grpc::codec::decode(bytes, LIMITS.attributes_max).map(black_box).is_ok(),
        _ => false,
    }
}
