//! JSON form of the answer. Fields that are zero or empty are absent, as protobuf has it.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use prost_types::value::Kind;
use prost_types::{Struct, Value};
use serde::Serialize;
use serde_json::Value as Json;

use crate::doors::grpc::rls::envoy::config::core::v3::HeaderValue;
use crate::doors::grpc::rls::envoy::service::ratelimit::v3::RateLimitResponse;
use crate::doors::grpc::rls::envoy::service::ratelimit::v3::rate_limit_response::rate_limit::Unit;
use crate::doors::grpc::rls::envoy::service::ratelimit::v3::rate_limit_response::{
    Code, DescriptorStatus, RateLimit,
};

/// `RateLimitResponse`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Reply<'a> {
    overall_code: &'static str,
    statuses: Vec<Status<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    response_headers_to_add: Vec<Header<'a>>,
    #[serde(skip_serializing_if = "String::is_empty")]
    raw_body: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    dynamic_metadata: Option<Json>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Status<'a> {
    code: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    current_limit: Option<Limit<'a>>,
    #[serde(skip_serializing_if = "is_zero")]
    limit_remaining: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    duration_until_reset: Option<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Limit<'a> {
    #[serde(skip_serializing_if = "str::is_empty")]
    name: &'a str,
    #[serde(skip_serializing_if = "is_zero")]
    requests_per_unit: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    unit: Option<&'static str>,
}

#[derive(Debug, Serialize)]
struct Header<'a> {
    key: &'a str,
    value: &'a str,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
fn is_zero(count: &u32) -> bool {
    *count == 0
}

impl<'a> Reply<'a> {
    pub(crate) fn new(message: &'a RateLimitResponse) -> Self {
        let header = |HeaderValue { key, value, .. }: &'a HeaderValue| Header { key, value };
        Self {
            overall_code: message.overall_code().as_str_name(),
            statuses: message.statuses.iter().map(Status::new).collect(),
            response_headers_to_add: message.response_headers_to_add.iter().map(header).collect(),
            raw_body: STANDARD.encode(&message.raw_body),
            dynamic_metadata: message.dynamic_metadata.as_ref().map(object),
        }
    }

    pub(crate) fn is_over_limit(&self) -> bool {
        self.overall_code == Code::OverLimit.as_str_name()
    }
}

impl<'a> Status<'a> {
    fn new(status: &'a DescriptorStatus) -> Self {
        Self {
            code: status.code().as_str_name(),
            current_limit: status.current_limit.as_ref().map(Limit::new),
            limit_remaining: status.limit_remaining,
            // Durations here are whole seconds.
            duration_until_reset: status.duration_until_reset.map(|it| format!("{}s", it.seconds)),
        }
    }
}

impl<'a> Limit<'a> {
    fn new(limit: &'a RateLimit) -> Self {
        let unit = Some(limit.unit()).filter(|unit| *unit != Unit::Unknown);
        Self {
            name: &limit.name,
            requests_per_unit: limit.requests_per_unit,
            unit: unit.map(|unit| unit.as_str_name()),
        }
    }
}

fn object(members: &Struct) -> Json {
    members.fields.iter().map(|(name, member)| (name.clone(), value(member))).collect()
}

fn value(of: &Value) -> Json {
    match &of.kind {
        None | Some(Kind::NullValue(_)) => Json::Null,
        Some(Kind::BoolValue(flag)) => (*flag).into(),
        Some(Kind::NumberValue(number)) => whole(*number),
        Some(Kind::StringValue(text)) => text.as_str().into(),
        Some(Kind::StructValue(members)) => object(members),
        Some(Kind::ListValue(list)) => list.values.iter().map(value).collect(),
    }
}

/// Number without a fraction: `1`, not `1.0`.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "all are whole, not negative, and below 2^53"
)]
fn whole(number: f64) -> Json {
    (number as u64).into()
}
