//! The document that describes the API: `/openapi.json`.
//!
//! Answers describe themselves where they are made. Bodies borrow their text from the wire, so what they
//! look like is said here.

mod exact;
pub(super) mod parts;
pub(super) mod values;

use std::collections::BTreeMap;
use std::sync::LazyLock;

use axum::http::header;
use axum::response::{IntoResponse, Response};
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityScheme};
use utoipa::{Modify, OpenApi, ToSchema};

use self::values::{
    Address, AlgorithmName, AttributeName, DenyStatus, Flag, Id, RefillName, ShortFlag,
};
use super::{
    authorize, buckets, check, events, explain, health, json, overrides, preview, rules, stats,
    take, violations,
};

/// A request to be checked against the rules.
#[derive(ToSchema)]
#[schema(example = json!({"user_id": "42", "ip": "203.0.113.9", "endpoint": "/api/search", "plan": "free"}))]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "describes the body of /v1/check and is never made")]
pub(super) struct Check {
    /// Who asks: text, or a whole number.
    user_id: Option<Id>,
    /// From which address.
    ip: Option<Address>,
    /// For what: a path, or better the route's template.
    endpoint: Option<String>,
    /// To do what with it.
    method: Option<String>,
    /// Under which plan.
    plan: Option<String>,
    /// How many tokens it takes; 0 only looks.
    #[schema(default = 1)]
    cost: Option<u64>,
    /// Anything else that rules ask for.
    attributes: Option<BTreeMap<AttributeName, Id>>,
}

/// Tokens to be taken from the bucket of a key.
#[derive(ToSchema)]
#[schema(example = json!({"key": "user:123", "capacity": 10, "refill_rate": 1}))]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "describes the body of /v1/take and is never made")]
pub(super) struct Take {
    /// The bucket's name.
    key: String,
    /// The most it holds. Windows hold `refill_rate`, and need none.
    capacity: Option<u64>,
    /// Tokens per interval.
    #[schema(exclusive_minimum = 0)]
    refill_rate: f64,
    /// Seconds.
    #[schema(default = 1, exclusive_minimum = 0)]
    refill_interval: Option<f64>,
    /// How a `token_bucket` refills.
    #[schema(default = "continuous")]
    refill: Option<RefillName>,
    /// How it is counted.
    #[schema(default = "token_bucket")]
    algorithm: Option<AlgorithmName>,
    /// Seconds that granted work may have to wait in line, for a `leaky_bucket`.
    #[schema(minimum = 0)]
    max_wait: Option<f64>,
    /// How many tokens to take; 0 only looks.
    #[schema(default = 1)]
    cost: Option<u64>,
}

#[derive(OpenApi)]
#[openapi(
    info(title = "Sluicegate", description = "Exact token-bucket rate limiting, atomic over many tiers."),
    paths(
        check::check,
        check::check_batch,
        take::take,
        take::forget,
        health::live,
        health::ready,
        health::metrics,
    ),
    components(schemas(DenyStatus, Flag, ShortFlag)),
    modifiers(&Token)
)]
struct Document;

/// The token of the administration.
struct Token;

impl Modify for Token {
    fn modify(&self, document: &mut utoipa::openapi::OpenApi) {
        let scheme = SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer));
        if let Some(components) = &mut document.components {
            components.add_security_scheme("token", scheme);
        }
    }
}

static JSON: LazyLock<String> = LazyLock::new(|| {
    let mut document = Document::openapi();
    let parts = [
        authorize::document(),
        json::document(),
        rules::document(),
        explain::document(),
        preview::document(),
        overrides::document(),
        buckets::document(),
        violations::document(),
        stats::document(),
        events::document(),
    ];
    for part in parts {
        document.merge(part);
    }
    let mut document = serde_json::to_value(document).unwrap_or_default();
    exact::exact(&mut document);
    format!("{document:#}")
});

/// The document.
pub(crate) async fn document() -> Response {
    ([(header::CONTENT_TYPE, "application/json")], JSON.as_str()).into_response()
}
