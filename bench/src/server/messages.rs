//! Messages over gRPC, with the fields used here.

use bytes::Bytes;
use prost::Message;

/// Envoy's `RateLimitRequest`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct EnvoyRequest {
    #[prost(string, tag = "1")]
    pub(crate) domain: String,
    #[prost(message, repeated, tag = "2")]
    pub(crate) descriptors: Vec<Descriptor>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Descriptor {
    #[prost(message, repeated, tag = "1")]
    pub(crate) entries: Vec<Entry>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Entry {
    #[prost(string, tag = "1")]
    pub(crate) key: String,
    #[prost(string, tag = "2")]
    pub(crate) value: String,
}

/// throttlecrab's `ThrottleRequest`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct CrabRequest {
    #[prost(string, tag = "1")]
    pub(crate) key: String,
    #[prost(int32, tag = "2")]
    pub(crate) max_burst: i32,
    #[prost(int32, tag = "3")]
    pub(crate) count_per_period: i32,
    #[prost(int32, tag = "4")]
    pub(crate) period: i32,
    #[prost(int32, tag = "5")]
    pub(crate) quantity: i32,
}

/// Envoy's `RateLimitResponse`, with a body of any size.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct EnvoyAnswer {
    #[prost(int32, tag = "1")]
    pub(crate) overall_code: i32,
    #[prost(bytes = "bytes", tag = "5")]
    pub(crate) raw_body: Bytes,
}
