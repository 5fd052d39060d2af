//! What the API's document says about `/json` and `/healthcheck`. Names are also taken as the protocol has them, with
//! underscores.

#![expect(dead_code, reason = "describes bodies and answers, which are never made of this")]

use serde::Serialize;
use utoipa::{OpenApi, ToSchema};

use crate::web::openapi::parts::Wrong;
use crate::web::problem::Problem;

/// Envoy's `RateLimitRequest`, as protobuf writes it in JSON.
#[derive(ToSchema)]
#[schema(example = json!({"domain": "edge", "descriptors": [{"entries": [{"key": "remote_address", "value": "203.0.113.9"}]}]}))]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct RateLimitRequest {
    /// The attribute `domain` of every descriptor.
    #[schema(min_length = 1)]
    domain: String,
    /// All are charged, or none.
    #[schema(min_items = 1, max_items = 64)]
    descriptors: Vec<RateLimitDescriptor>,
    /// What each descriptor costs; 0 is 1.
    hits_addend: Option<ShortCount>,
}

/// One request to the rules.
#[derive(ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct RateLimitDescriptor {
    /// Its attributes.
    #[schema(min_items = 1)]
    entries: Vec<DescriptorEntry>,
    /// Counts instead of the rules.
    limit: Option<DescriptorLimit>,
    /// What it costs instead; 0 only asks.
    hits_addend: Option<Count>,
    /// Whether to give back instead, which needs the token of an administrator where there are tokens.
    is_negative_hits: Option<bool>,
}

/// An attribute.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
struct DescriptorEntry {
    #[schema(min_length = 1)]
    key: String,
    value: Option<String>,
}

/// So many requests per unit.
#[derive(ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct DescriptorLimit {
    /// 0 lets nothing through.
    requests_per_unit: Option<ShortCount>,
    unit: LimitUnit,
}

/// A whole number of 32 bits, or its digits as text.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
enum ShortCount {
    Number(Short),
    Digits(Digits),
}

/// A whole number of 32 bits, without a sign.
#[derive(Serialize, ToSchema)]
#[schema(maximum = 4_294_967_295_u64)]
struct Short(u64);

/// A whole number of 64 bits, or its digits as text.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
enum Count {
    Number(u64),
    Digits(Digits),
}

#[derive(Serialize, ToSchema)]
#[schema(pattern = "^[0-9]+$", example = "1")]
struct Digits(String);

/// A unit of time, by name or by number.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
enum LimitUnit {
    Name(UnitName),
    Number(UnitNumber),
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
enum UnitName {
    Second,
    Minute,
    Hour,
    Day,
    Month,
    Year,
}

#[derive(Serialize, ToSchema)]
#[schema(minimum = 1, maximum = 6)]
struct UnitNumber(u32);

/// Envoy's `RateLimitResponse`: what is zero or empty is left out.
#[derive(ToSchema)]
#[serde(rename_all = "camelCase")]
struct RateLimitResponse {
    overall_code: LimitCode,
    /// One for each descriptor, in their order.
    statuses: Vec<DescriptorStatus>,
    /// What to add to the answer that the client gets.
    #[schema(nullable = false)]
    response_headers_to_add: Option<Vec<HeaderToAdd>>,
    /// The body for a client that is denied, in Base64.
    #[schema(nullable = false)]
    raw_body: Option<String>,
    /// Which rule denied it, and more.
    #[schema(value_type = Object, required = false)]
    dynamic_metadata: (),
}

#[derive(ToSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[derive(Serialize)]
enum LimitCode {
    Ok,
    OverLimit,
}

/// How a descriptor stands.
#[derive(ToSchema)]
#[serde(rename_all = "camelCase")]
struct DescriptorStatus {
    code: LimitCode,
    #[schema(nullable = false)]
    current_limit: Option<CurrentLimit>,
    /// Whole tokens; 0 if it is not there.
    #[schema(nullable = false)]
    limit_remaining: Option<Short>,
    /// Whole seconds: `30s`.
    #[schema(nullable = false, pattern = "^[0-9]+s$")]
    duration_until_reset: Option<String>,
}

/// The limit that it stands by.
#[derive(ToSchema)]
#[serde(rename_all = "camelCase")]
struct CurrentLimit {
    #[schema(nullable = false)]
    name: Option<String>,
    #[schema(nullable = false)]
    requests_per_unit: Option<Short>,
    /// Not there if the time that it takes to fill is no unit.
    #[schema(nullable = false)]
    unit: Option<CurrentUnit>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
enum CurrentUnit {
    Second,
    Minute,
    Hour,
    Day,
    Week,
    Month,
    Year,
}

#[derive(ToSchema)]
struct HeaderToAdd {
    key: String,
    value: String,
}

/// Envoy's rate limit protocol without gRPC.
#[utoipa::path(
    post,
    operation_id = "should_rate_limit",
    path = "/json",
    request_body = RateLimitRequest,
    responses(
        (status = 200, description = "It is allowed", body = RateLimitResponse),
        (status = 429, description = "It is denied", body = RateLimitResponse),
        Wrong,
        (status = 503, description = "The store is in trouble, and nothing may answer in its place", body = Problem,
            content_type = "application/problem+json"),
    )
)]
fn should_rate_limit() {}

/// The same as `/readyz`.
#[utoipa::path(
    get,
    operation_id = "healthcheck",
    path = "/healthcheck",
    params(("verbose" = Option<String>, Query, description = "Say more")),
    responses(
        (status = 200, description = "Ready", body = String, content_type = "text/plain"),
        (status = 503, description = "Not ready", body = String, content_type = "text/plain"),
    )
)]
fn healthcheck() {}

#[derive(OpenApi)]
#[openapi(paths(should_rate_limit, healthcheck))]
struct Document;

/// Their part of the API's document.
pub(crate) fn document() -> utoipa::openapi::OpenApi {
    Document::openapi()
}
