//! The parsing of requests that the benchmarks' null servers share with the service. Not part of the interface.

use std::hint::black_box;

pub use crate::doors::grpc::rls::envoy::service::ratelimit::v3::RateLimitRequest;
use crate::web::body::{Object, parse};
use crate::web::check_body::CheckBody;

/// True if this is the body of a check, parsed as `/v1/check` parses it.
#[must_use]
pub fn is_check(bytes: &[u8]) -> bool {
    parse::<Object<CheckBody<'_>>>(bytes).map(black_box).is_ok()
}
