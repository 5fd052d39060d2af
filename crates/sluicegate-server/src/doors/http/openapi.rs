//! The OpenAPI document, `/openapi.json`.
//!
//! Bodies and answers are described by the types that parse and write them.

use std::sync::LazyLock;

use axum::http::header;
use axum::response::{IntoResponse, Response};
use utoipa::openapi::security::{ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::{Modify, OpenApi};

use super::{authorize, check, health, refund, take};
use crate::admin;
use crate::doors::grpc::json;
use crate::web::openapi::exact;

#[derive(OpenApi)]
#[openapi(
    info(title = "Sluicegate", description = "Exact token-bucket rate limiting, atomic over many tiers."),
    paths(
        check::check,
        check::check_batch,
        take::take,
        refund::refund,
        health::live,
        health::ready,
        health::metrics,
    ),
    modifiers(&Tokens, &HealthCheck)
)]
struct Document;

/// Security schemes of tokens.
struct Tokens;

impl Modify for Tokens {
    fn modify(&self, document: &mut utoipa::openapi::OpenApi) {
        let token = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).description(Some(
            "Token of the administration, or of a caller for checks, takes and refunds",
        ));
        let caller_token = ApiKeyValue::with_description(
            "X-Sluicegate-Token",
            "Token of the proxy's caller, which needs the right `authorize`; ignored while no caller is needed",
        );
        if let Some(components) = &mut document.components {
            components.add_security_scheme("token", SecurityScheme::Http(token.build()));
            let caller_token = SecurityScheme::ApiKey(ApiKey::Header(caller_token));
            components.add_security_scheme("caller_token", caller_token);
        }
    }
}

/// `/healthcheck`, which has the handler of `/readyz`.
struct HealthCheck;

impl Modify for HealthCheck {
    fn modify(&self, document: &mut utoipa::openapi::OpenApi) {
        let paths = &mut document.paths.paths;
        let Some(mut item) = paths.get("/readyz").cloned() else { return };
        if let Some(get) = &mut item.get {
            get.operation_id = Some("healthcheck".into());
            get.summary = Some("Same as `/readyz`.".into());
            get.description = None;
        }
        paths.insert("/healthcheck".into(), item);
    }
}

static JSON: LazyLock<String> = LazyLock::new(|| {
    let mut document = Document::openapi();
    let doors = [authorize::document(), json::document()];
    for part in doors.into_iter().chain(admin::documents()) {
        document.merge(part);
    }
    let mut document = serde_json::to_value(document).unwrap_or_default();
    exact::exact(&mut document);
    format!("{document:#}")
});

/// Serves the document.
pub(crate) async fn document() -> Response {
    ([(header::CONTENT_TYPE, "application/json")], JSON.as_str()).into_response()
}
