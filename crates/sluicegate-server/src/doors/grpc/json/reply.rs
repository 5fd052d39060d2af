//! JSON form of the answer. Fields that are zero or empty are absent, as protobuf has it.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use prost_types::value::Kind;
use prost_types::{Struct, Value};
use serde::Serialize;
use serde_json::Value as Json;
use utoipa::ToSchema;
use utoipa::openapi::schema::{Object, ObjectBuilder, Type};

use crate::doors::grpc::rls::envoy::config::core::v3::HeaderValue;
use crate::doors::grpc::rls::envoy::service::ratelimit::v3::RateLimitResponse;
use crate::doors::grpc::rls::envoy::service::ratelimit::v3::rate_limit_response::rate_limit::Unit;
use crate::doors::grpc::rls::envoy::service::ratelimit::v3::rate_limit_response::{
    Code, DescriptorStatus, RateLimit,
};

/// Envoy's `RateLimitResponse`. Fields that are zero or empty are absent.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = RateLimitResponse)]
pub(crate) struct Reply<'a> {
    #[schema(schema_with = limit_code)]
    overall_code: &'static str,
    /// One per descriptor, in order.
    statuses: Vec<Status<'a>>,
    /// Header fields to add to the client's response.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    response_headers_to_add: Vec<Header<'a>>,
    /// Base64 body of the response to a denied client.
    #[serde(skip_serializing_if = "String::is_empty")]
    raw_body: String,
    /// Rule that denied, and more.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Object, required = false)]
    dynamic_metadata: Option<Json>,
}

/// Status of a descriptor.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = DescriptorStatus)]
struct Status<'a> {
    #[schema(schema_with = limit_code)]
    code: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    current_limit: Option<Limit<'a>>,
    /// Whole tokens; absent if 0.
    #[serde(skip_serializing_if = "is_zero")]
    #[schema(value_type = u64, maximum = 4_294_967_295_u64)]
    limit_remaining: u32,
    /// Whole seconds, for example `30s`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, pattern = "^[0-9]+s$")]
    duration_until_reset: Option<String>,
}

/// Limit that the status refers to.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = CurrentLimit)]
struct Limit<'a> {
    #[serde(skip_serializing_if = "str::is_empty")]
    name: &'a str,
    #[serde(skip_serializing_if = "is_zero")]
    #[schema(value_type = u64, maximum = 4_294_967_295_u64)]
    requests_per_unit: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = current_unit, required = false)]
    unit: Option<&'static str>,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = HeaderToAdd)]
struct Header<'a> {
    key: &'a str,
    value: &'a str,
}

fn limit_code() -> Object {
    let codes = [Code::Ok, Code::OverLimit].map(|code| code.as_str_name());
    ObjectBuilder::new().schema_type(Type::String).enum_values(Some(codes)).build()
}

fn current_unit() -> Object {
    use Unit::{Day, Hour, Minute, Month, Second, Week, Year};
    let units = [Second, Minute, Hour, Day, Week, Month, Year].map(|unit| unit.as_str_name());
    ObjectBuilder::new()
        .schema_type(Type::String)
        .enum_values(Some(units))
        .description(Some("Absent if the refill time is not one of these units."))
        .build()
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
