//! What the null servers of the benchmarks have in common with the service: how requests are read. No part of
//! the interface.

pub use crate::doors::grpc::rls::envoy::service::ratelimit::v3::RateLimitRequest;
pub use crate::doors::http::check::is_check;
