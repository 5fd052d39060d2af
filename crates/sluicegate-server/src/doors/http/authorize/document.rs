//! What the API's document says about `/v1/authorize`: the same for every method.

use utoipa::openapi::RefOr;
use utoipa::openapi::path::{Operation, PathItem};
use utoipa::{OpenApi, ToSchema};

use super::PATH;
use crate::web::problem::Problem;

/// Why a request is denied, as the IETF's draft on `RateLimit` fields has it. Where headers contradict each other it
/// has neither policies nor a rule.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes an answer that the library writes")]
struct QuotaExceeded {
    /// What kind of problem it is.
    #[schema(rename = "type")]
    kind: String,
    title: String,
    /// The HTTP status.
    status: u16,
    /// Which rule, and when to come back.
    detail: String,
    /// The policies in the header `RateLimit` that deny it.
    #[schema(rename = "violated-policies", nullable = false)]
    violated_policies: Option<Vec<String>>,
    /// The rule that denies it for longest; null if it is of none.
    #[schema(required = false)]
    rule_id: Option<u64>,
    /// Milliseconds to wait; null if waiting does not help.
    #[schema(required = false)]
    retry_after_ms: Option<u64>,
}

/// Checks the request that a proxy was sent, told by its headers. Any method will do, and no body is needed.
#[utoipa::path(
    get,
    operation_id = "authorize",
    path = "/v1/authorize",
    params(
        ("deny" = Option<String>, Query,
            description = "`403` to be denied by 403 instead of 429. The first one counts; anything else is ignored"),
        ("X-Forwarded-Uri" = Option<String>, Header,
            description = "The path and query that were asked for, or the whole URI; from trusted peers only, as all"),
        ("X-Forwarded-Method" = Option<String>, Header, description = "With which method"),
        ("X-Forwarded-Host" = Option<String>, Header, description = "Of which host"),
        ("X-Forwarded-For" = Option<String>, Header, description = "By whom"),
        ("X-Original-URI" = Option<String>, Header, description = "The same as `X-Forwarded-Uri`"),
        ("X-Original-Method" = Option<String>, Header, description = "The same as `X-Forwarded-Method`"),
    ),
    responses(
        (status = 200, description = "Let it through", headers(
            ("x-sluicegate-decision" = String, description = "`allowed`"),
            ("x-sluicegate-degraded" = String, description = "`true` if it was made without the store"),
            ("ratelimit-policy" = String, description = "The limits"),
            ("ratelimit" = String, description = "What is left"),
            ("x-ratelimit-limit" = u64, description = "`q` of the tightest policy"),
            ("x-ratelimit-remaining" = u64, description = "What is left under it"),
            ("x-ratelimit-reset" = u64, description = "When it is full again: in so many seconds, or in Unix seconds"),
            ("x-sluicegate-delay-ms" = u64,
                description = "Milliseconds to wait in line; there if a `leaky_bucket` rule applies"),
        )),
        (status = 429, description = "Do not", body = QuotaExceeded, content_type = "application/problem+json", headers(
            ("x-sluicegate-decision" = String, description = "`denied`"),
            ("x-sluicegate-degraded" = String, description = "`true` if it was made without the store"),
            ("ratelimit-policy" = String, description = "The limits"),
            ("ratelimit" = String, description = "What is left"),
            ("x-ratelimit-limit" = u64, description = "`q` of the tightest policy"),
            ("x-ratelimit-remaining" = u64, description = "What is left under it"),
            ("x-ratelimit-reset" = u64, description = "When it is full again: in so many seconds, or in Unix seconds"),
            ("retry-after" = u64, description = "Whole seconds to wait, at least 1; not there if waiting does not help"),
        )),
        (status = 431, description = "Do not: the header is too long to be read. Said without a body"),
        (status = 503, description = "The store is in trouble, and nothing may answer in its place", body = Problem,
            content_type = "application/problem+json"),
    )
)]
#[expect(dead_code, reason = "documents every method of the route, which has one handler")]
fn authorize() {}

#[derive(OpenApi)]
#[openapi(paths(authorize))]
struct Document;

/// Its part of the API's document.
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

/// A proxy that insists is told the same by 403.
fn denied_by_403(operation: &mut Operation) {
    let responses = &mut operation.responses.responses;
    if let Some(RefOr::T(mut denied)) = responses.get("429").cloned() {
        denied.description = "The same, if the parameter `deny` is 403".into();
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

/// `HEAD` is answered without a body.
fn without_bodies(mut operation: Operation) -> Operation {
    for response in operation.responses.responses.values_mut() {
        if let RefOr::T(response) = response {
            response.content.clear();
        }
    }
    operation
}
