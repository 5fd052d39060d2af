//! OpenAPI description of `/v1/authorize`: the same for every method.

use utoipa::openapi::RefOr;
use utoipa::openapi::path::{Operation, PathItem};
use utoipa::{OpenApi, ToSchema};

use super::PATH;
use crate::web::problem::Problem;

/// Problem details of a denial, as in the IETF's draft on `RateLimit` fields. Contradictory headers
/// are denied without policies and rule.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes an answer that the library writes")]
struct QuotaExceeded {
    /// URI of the problem's type.
    #[schema(rename = "type")]
    kind: String,
    title: String,
    /// HTTP status.
    status: u16,
    /// Rule that denies, and when to retry.
    detail: String,
    /// Policies of the `RateLimit` header that deny.
    #[schema(rename = "violated-policies", nullable = false)]
    violated_policies: Option<Vec<String>>,
    /// Rule with the longest wait; null if the denial is not by a rule.
    #[schema(required = false)]
    rule_id: Option<u64>,
    /// Milliseconds to wait; null if waiting does not help.
    #[schema(required = false)]
    retry_after_ms: Option<u64>,
}

/// Checks the request that a proxy received, described by its headers. Any method is accepted, and
/// no body is needed.
#[utoipa::path(
    get,
    operation_id = "authorize",
    path = "/v1/authorize",
    params(
        ("deny" = Option<String>, Query,
            description = "`403` for denials with status 403 instead of 429. The first value counts; anything else is ignored"),
        ("X-Forwarded-Uri" = Option<String>, Header,
            description = "Path and query of the request, or its whole URI. All of these headers are read from trusted peers only"),
        ("X-Forwarded-Method" = Option<String>, Header, description = "Method of the request"),
        ("X-Forwarded-Host" = Option<String>, Header, description = "Host of the request"),
        ("X-Forwarded-For" = Option<String>, Header, description = "Address of the client"),
        ("X-Original-URI" = Option<String>, Header, description = "Same as `X-Forwarded-Uri`"),
        ("X-Original-Method" = Option<String>, Header, description = "Same as `X-Forwarded-Method`"),
    ),
    responses(
        (status = 200, description = "Allowed", headers(
            ("x-sluicegate-decision" = String, description = "`allowed`"),
            ("x-sluicegate-degraded" = String, description = "`true` if decided without the store"),
            ("ratelimit-policy" = String, description = "Limits"),
            ("ratelimit" = String, description = "Remaining tokens"),
            ("x-ratelimit-limit" = u64, description = "`q` of the tightest policy"),
            ("x-ratelimit-remaining" = u64, description = "Remaining tokens of the tightest policy"),
            ("x-ratelimit-reset" = u64, description = "Time until it is full again in seconds, or that time in Unix seconds"),
            ("x-sluicegate-delay-ms" = u64,
                description = "Milliseconds to wait in the queue; present if a `leaky_bucket` rule applies"),
        )),
        (status = 429, description = "Denied", body = QuotaExceeded, content_type = "application/problem+json", headers(
            ("x-sluicegate-decision" = String, description = "`denied`"),
            ("x-sluicegate-degraded" = String, description = "`true` if decided without the store"),
            ("ratelimit-policy" = String, description = "Limits"),
            ("ratelimit" = String, description = "Remaining tokens"),
            ("x-ratelimit-limit" = u64, description = "`q` of the tightest policy"),
            ("x-ratelimit-remaining" = u64, description = "Remaining tokens of the tightest policy"),
            ("x-ratelimit-reset" = u64, description = "Time until it is full again in seconds, or that time in Unix seconds"),
            ("retry-after" = u64, description = "Whole seconds to wait, at least 1; absent if waiting does not help"),
        )),
        (status = 431, description = "Denied: the header is too long. Without a body"),
        (status = 503, description = "The store is unavailable, and no policy may answer in its place", body = Problem,
            content_type = "application/problem+json"),
    )
)]
#[expect(dead_code, reason = "documents every method of the route, which has one handler")]
fn authorize() {}

#[derive(OpenApi)]
#[openapi(paths(authorize))]
struct Document;

/// OpenAPI document of this path.
pub(crate) fn document() -> utoipa::openapi::OpenApi {
    let mut document = Document::openapi();
    if let Some(item) = document.paths.paths.get_mut(PATH) {
        if let Some(get) = &mut item.get {
            denied_by_403(get);
        }
        for_every_method(item);
    }
    document
}

/// Adds the response with status 403.
fn denied_by_403(operation: &mut Operation) {
    let responses = &mut operation.responses.responses;
    if let Some(RefOr::T(mut denied)) = responses.get("429").cloned() {
        denied.description = "Denied, if the parameter `deny` is 403".into();
        responses.insert("403".into(), denied.into());
    }
}

fn for_every_method(item: &mut PathItem) {
    let get = item.get.clone();
    let like_get = |method: &str| {
        let mut operation: Operation = get.clone()?;
        operation.operation_id = Some(format!("authorize_{method}"));
        Some(operation)
    };
    item.head = like_get("head").map(without_bodies);
    item.post = like_get("post");
    item.put = like_get("put");
    item.patch = like_get("patch");
    item.delete = like_get("delete");
    item.options = like_get("options");
    item.trace = like_get("trace");
}

/// Responses to `HEAD` have no body.
fn without_bodies(mut operation: Operation) -> Operation {
    for response in operation.responses.responses.values_mut() {
        if let RefOr::T(response) = response {
            response.content.clear();
        }
    }
    operation
}
