//! OpenAPI description of `/json` and `/healthcheck`. Names with underscores are accepted as well.

#![expect(dead_code, reason = "describes bodies and answers that other types parse and write")]

use serde::Serialize;
use utoipa::{OpenApi, ToSchema};

use crate::web::openapi::parts::Wrong;
use crate::web::problem::Problem;

/// Envoy's `RateLimitRequest` in protobuf's JSON mapping.
#[derive(ToSchema)]
#[schema(example = json!({"domain": "edge", "descriptors": [{"entries": [{"key": "remote_address", "value": "203.0.113.9"}]}]}))]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct RateLimitRequest {
    /// Value of the attribute `domain` of every descriptor.
    #[schema(min_length = 1)]
    domain: String,
    /// Charged all or none.
    #[schema(min_items = 1, max_items = 64)]
    descriptors: Vec<RateLimitDescriptor>,
    /// Cost of each descriptor; 0 means 1.
    hits_addend: Option<ShortCount>,
}

/// A request that the rules are matched against.
#[derive(ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct RateLimitDescriptor {
    /// Attributes of the request.
    #[schema(min_items = 1)]
    entries: Vec<DescriptorEntry>,
    /// Limit used instead of the rules.
    limit: Option<DescriptorLimit>,
    /// Cost of this descriptor; 0 only reads.
    hits_addend: Option<Count>,
    /// Refund instead of a charge. Requires an admin token if tokens exist.
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

/// Requests per unit.
#[derive(ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct DescriptorLimit {
    /// 0 denies everything.
    requests_per_unit: Option<ShortCount>,
    unit: LimitUnit,
}

/// 32-bit whole number, or its digits as text.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
enum ShortCount {
    Number(Short),
    Digits(Digits),
}

/// 32-bit whole number, not negative.
#[derive(Serialize, ToSchema)]
#[schema(maximum = 4_294_967_295_u64)]
struct Short(u64);

/// 64-bit whole number, or its digits as text.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
enum Count {
    Number(u64),
    Digits(Digits),
}

#[derive(Serialize, ToSchema)]
#[schema(pattern = "^[0-9]+$", example = "1")]
struct Digits(String);

/// Unit of time, by name or number.
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

/// Envoy's `RateLimitResponse`. Fields that are zero or empty are absent.
#[derive(ToSchema)]
#[serde(rename_all = "camelCase")]
struct RateLimitResponse {
    overall_code: LimitCode,
    /// One per descriptor, in order.
    statuses: Vec<DescriptorStatus>,
    /// Header fields to add to the client's response.
    #[schema(nullable = false)]
    response_headers_to_add: Option<Vec<HeaderToAdd>>,
    /// Base64 body of the response to a denied client.
    #[schema(nullable = false)]
    raw_body: Option<String>,
    /// Rule that denied, and more.
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

/// Status of a descriptor.
#[derive(ToSchema)]
#[serde(rename_all = "camelCase")]
struct DescriptorStatus {
    code: LimitCode,
    #[schema(nullable = false)]
    current_limit: Option<CurrentLimit>,
    /// Whole tokens; absent if 0.
    #[schema(nullable = false)]
    limit_remaining: Option<Short>,
    /// Whole seconds, for example `30s`.
    #[schema(nullable = false, pattern = "^[0-9]+s$")]
    duration_until_reset: Option<String>,
}

/// Limit that the status refers to.
#[derive(ToSchema)]
#[serde(rename_all = "camelCase")]
struct CurrentLimit {
    #[schema(nullable = false)]
    name: Option<String>,
    #[schema(nullable = false)]
    requests_per_unit: Option<Short>,
    /// Absent if the refill time is not one of these units.
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
        (status = 200, description = "Allowed", body = RateLimitResponse),
        (status = 429, description = "Denied", body = RateLimitResponse),
        Wrong,
        (status = 503, description = "The store is unavailable, and no policy may answer in its place", body = Problem,
            content_type = "application/problem+json"),
    )
)]
fn should_rate_limit() {}

/// Same as `/readyz`.
#[utoipa::path(
    get,
    operation_id = "healthcheck",
    path = "/healthcheck",
    params(("verbose" = Option<String>, Query, description = "Describe every check")),
    responses(
        (status = 200, description = "Ready", body = String, content_type = "text/plain"),
        (status = 503, description = "Not ready", body = String, content_type = "text/plain"),
    )
)]
fn healthcheck() {}

#[derive(OpenApi)]
#[openapi(paths(should_rate_limit, healthcheck))]
struct Document;

/// OpenAPI document of these paths.
pub(crate) fn document() -> utoipa::openapi::OpenApi {
    Document::openapi()
}
