//! `/v1/buckets`: reading and resetting buckets, granting and refunding tokens.

use std::borrow::Cow;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::{Request as HttpRequest, StatusCode};
use axum::routing::{delete, get, post};
use axum::{Json, Router};
use serde::{Deserialize, Serialize};
use sluicegate::rules::Attribute;
use sluicegate::{AnyStore, Bucket, Decision, Request, Rule, Store, Trouble};
use tracing::info;
use utoipa::{OpenApi, ToSchema};

use super::subject;
use crate::app::App;
use crate::data::{Author, DataError, OverrideKind};
use crate::json::Whole;
use crate::web::access::{Admin, Reader};
use crate::web::body::{Object, parse, read};
use crate::web::openapi::parts::{BucketPath, Reason, Wrong};
use crate::web::problem::Problem;
use crate::web::query::Query;

/// Query parameter with the namespace of a key without a rule.
const NAMESPACE: &str = "namespace";
/// Most bytes of a namespace.
const NAMESPACE_BYTES_MAX: usize = 64;

#[derive(OpenApi)]
#[openapi(paths(forget, peek, reset, grant, refund))]
struct Document;

/// Routes of `/v1/buckets`.
pub(crate) fn routes() -> Router<Arc<App>> {
    Router::new()
        .route("/v1/buckets/{key}", delete(forget))
        .route("/v1/buckets/{rule}/{subject}", get(peek))
        .route("/v1/buckets/{rule}/{subject}/reset", post(reset))
        .route("/v1/buckets/{rule}/{subject}/grant", post(grant))
        .route("/v1/buckets/{rule}/{subject}/refund", post(refund))
}

/// OpenAPI document of `/v1/buckets`.
pub(crate) fn document() -> utoipa::openapi::OpenApi {
    Document::openapi()
}

/// State of a bucket.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Bucket)]
pub(crate) struct BucketView {
    /// Id of the rule.
    rule_id: u64,
    /// Value of the rule's subject attribute; the key pattern if the rule has none.
    subject: String,
    /// Key of the bucket, as shown in violations.
    bucket_key: String,
    /// Capacity in tokens.
    limit: u64,
    /// Tokens left.
    remaining: u64,
    /// Milliseconds until the bucket is full again.
    reset_after_ms: u64,
    /// Override of the subject: `quota`, `unlimited` or `blocked`; null if it has none. Checks skip the bucket of a
    /// subject that is unlimited or blocked.
    #[serde(rename = "override")]
    overridden: Option<OverrideKind>,
    /// True if the store held the bucket. Present only in the answer of `reset`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    existed: Option<bool>,
}

/// Tokens to add to a bucket.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = Credit, example = json!({"tokens": 10}))]
#[serde(deny_unknown_fields)]
struct CreditBody {
    /// Number of tokens. The bucket never holds more than its limit.
    #[schema(value_type = u64, minimum = 1)]
    tokens: Whole,
}

/// Reads a bucket of a rule without spending tokens.
#[utoipa::path(
    get,
    operation_id = "peek_bucket",
    path = "/v1/buckets/{rule}/{subject}",
    params(BucketPath),
    responses(
        (status = 200, description = "The bucket", body = BucketView),
        Wrong,
        (status = 503, description = "The store is unavailable", body = Problem,
            content_type = "application/problem+json"),
    ),
    security(("token" = []))
)]
async fn peek(
    _: Reader,
    State(app): State<Arc<App>>,
    path: Result<Path<(String, String)>, PathRejection>,
    query: Query,
) -> Result<Json<BucketView>, Problem> {
    let named = NamedBucket::new(&app, path, query)?;
    let decision = named.peek().await?;
    Ok(Json(named.view(&decision)))
}

/// Resets a bucket of a rule: it is full again.
#[utoipa::path(
    post,
    operation_id = "reset_bucket",
    path = "/v1/buckets/{rule}/{subject}/reset",
    params(BucketPath, Reason),
    responses(
        (status = 200, description = "The bucket afterwards", body = BucketView),
        Wrong,
        (status = 503, description = "The store failed: the bucket may or may not be reset", body = Problem,
            content_type = "application/problem+json"),
    ),
    security(("token" = []))
)]
async fn reset(
    Admin(by): Admin,
    State(app): State<Arc<App>>,
    path: Result<Path<(String, String)>, PathRejection>,
    query: Query,
) -> Result<Json<BucketView>, Problem> {
    let named = NamedBucket::new(&app, path, query)?;
    let existed = named.bucket.reset().await?;
    info!(by = by.name, rule_id = named.rule_id, subject = named.recorded, existed, "bucket reset");
    let decision = named.peek().await?;
    Ok(Json(BucketView { existed: Some(existed), ..named.view(&decision) }))
}

/// Grants extra tokens to a bucket of a rule. The bucket never holds more than its limit.
#[utoipa::path(
    post,
    operation_id = "grant_tokens",
    path = "/v1/buckets/{rule}/{subject}/grant",
    params(BucketPath, Reason),
    request_body = CreditBody,
    responses(
        (status = 200, description = "The bucket afterwards", body = BucketView),
        Wrong,
        (status = 503, description = "The store failed: the tokens may or may not be granted", body = Problem,
            content_type = "application/problem+json"),
    ),
    security(("token" = []))
)]
async fn grant(
    Admin(by): Admin,
    State(app): State<Arc<App>>,
    path: Result<Path<(String, String)>, PathRejection>,
    query: Query,
    request: HttpRequest<Body>,
) -> Result<Json<BucketView>, Problem> {
    let named = NamedBucket::new(&app, path, query)?;
    let tokens = tokens(&app, request).await?;
    named.credited(&by, tokens, "tokens granted", named.bucket.grant(tokens).await)
}

/// Returns spent tokens to a bucket of a rule. The bucket never holds more than its limit.
#[utoipa::path(
    post,
    operation_id = "refund_tokens",
    path = "/v1/buckets/{rule}/{subject}/refund",
    params(BucketPath, Reason),
    request_body = CreditBody,
    responses(
        (status = 200, description = "The bucket afterwards", body = BucketView),
        Wrong,
        (status = 503, description = "The store failed: the tokens may or may not be refunded", body = Problem,
            content_type = "application/problem+json"),
    ),
    security(("token" = []))
)]
async fn refund(
    Admin(by): Admin,
    State(app): State<Arc<App>>,
    path: Result<Path<(String, String)>, PathRejection>,
    query: Query,
    request: HttpRequest<Body>,
) -> Result<Json<BucketView>, Problem> {
    let named = NamedBucket::new(&app, path, query)?;
    let tokens = tokens(&app, request).await?;
    named.credited(&by, tokens, "tokens refunded", named.bucket.refund(tokens).await)
}

/// Reads the number of tokens from a body.
async fn tokens(app: &App, request: HttpRequest<Body>) -> Result<u64, Problem> {
    let bytes = read(app, request, app.limits.body_bytes_max).await?;
    let Object(CreditBody { tokens: Whole(tokens) }) = parse(&bytes)?;
    if tokens == 0 {
        return Err(Problem::field("tokens", "must be at least 1"));
    }
    Ok(tokens)
}

/// The bucket named by the path and the query.
struct NamedBucket {
    rule_id: u64,
    subject: String,
    /// The subject as written to the log: pseudonymised like a violation's.
    recorded: String,
    bucket: Bucket<AnyStore>,
}

impl NamedBucket {
    fn new(
        app: &App,
        path: Result<Path<(String, String)>, PathRejection>,
        query: Query,
    ) -> Result<Self, Problem> {
        let Path((rule_id, subject)) =
            path.map_err(|_| Problem::field("subject", "is not UTF-8"))?;
        let no_such_rule = || Problem::data(&DataError::NotFound("rule"));
        let rules = app.limiter.rules();
        let rule = rule_id.parse().ok().and_then(|rule_id| rules.get(rule_id));
        let rule = rule.ok_or_else(no_such_rule)?;
        let subject = subject::subject(rule, &subject, &app.limits)?;
        let others = other_placeholders(app, rule, query)?;
        let mut request = Request::new();
        if let Some(attribute) = rule.subject_attribute() {
            request = request.attribute(attribute.name(), &subject);
        }
        for (attribute, value) in &others {
            request = request.attribute(attribute.name(), value);
        }
        // A rule that has just been deleted has no buckets any more.
        let bucket = app.limiter.bucket(rule.rule_id(), &request).ok_or_else(no_such_rule)?;
        let recorded = subject::recorded(app.audit.pseudonyms(), Some(rule), &subject);
        Ok(Self {
            rule_id: rule.rule_id(),
            subject: subject.to_string(),
            recorded: recorded.into_owned(),
            bucket,
        })
    }

    /// Reads the bucket from the store. A degraded answer is an error: the fallback does not know the bucket.
    async fn peek(&self) -> Result<Decision, Problem> {
        let peeked = self.bucket.look().await?;
        if peeked.degraded {
            let detail = "the store is unavailable: try again";
            return Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, detail));
        }
        Ok(peeked.decisions[0])
    }

    /// Logs a grant or refund and answers with the bucket.
    fn credited(
        &self,
        by: &Author,
        tokens: u64,
        what: &str,
        result: Result<Decision, Trouble>,
    ) -> Result<Json<BucketView>, Problem> {
        let decision = result?;
        info!(by = by.name, rule_id = self.rule_id, subject = self.recorded, tokens, "{what}");
        Ok(Json(self.view(&decision)))
    }

    fn view(&self, decision: &Decision) -> BucketView {
        BucketView {
            rule_id: self.rule_id,
            subject: self.subject.clone(),
            bucket_key: self.bucket.key().into(),
            limit: decision.limit,
            remaining: decision.remaining,
            reset_after_ms: decision.reset_after_ms(),
            overridden: self.bucket.overridden().as_ref().map(OverrideKind::from),
            existed: None,
        }
    }
}

/// Values of the key pattern's placeholders after the first, from query parameters of the same names. Each is
/// required, and no others are allowed.
fn other_placeholders(
    app: &App,
    rule: &Rule,
    query: Query,
) -> Result<Vec<(Attribute, String)>, Problem> {
    let attributes = rule.key_pattern().attributes().iter().skip(1);
    let names: Vec<_> = attributes.clone().map(Attribute::name).collect();
    let query = query.only(&names)?;
    attributes
        .map(|attribute| {
            let name = attribute.name();
            let missing = || {
                let pattern = rule.key_pattern().as_str();
                Problem::field(name, format!("is missing: the key pattern is {pattern:?}"))
            };
            let text = query.text(name).ok_or_else(missing)?;
            let value = subject::value(name, attribute, text, &app.limits)?;
            Ok((attribute.clone(), Cow::into_owned(value)))
        })
        .collect()
}

/// The namespace of the query parameter of that name; `None` if it is absent.
fn namespace(query: &Query) -> Result<Option<&str>, Problem> {
    let Some(namespace) = query.text(NAMESPACE) else { return Ok(None) };
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    if (1..=NAMESPACE_BYTES_MAX).contains(&namespace.len()) && namespace.bytes().all(is_allowed) {
        return Ok(Some(namespace));
    }
    let detail = format!("must have 1 to {NAMESPACE_BYTES_MAX} letters, digits, `.`, `_` or `-`");
    Err(Problem::field(NAMESPACE, detail))
}

/// Resets the bucket of a key: it is full again. A caller with a namespace has buckets of its own: the parameter
/// names it.
#[utoipa::path(
    delete,
    operation_id = "forget_bucket",
    path = "/v1/buckets/{key}",
    params(
        ("key" = String, Path, description = "The key, as given to `/v1/take`"),
        ("namespace" = Option<String>, Query, description = "Namespace of the caller that took from the bucket; \
            without it, the bucket of callers without a namespace"),
        Reason,
    ),
    responses(
        (status = 204, description = "The bucket is full"),
        (status = "4XX", description = "The key is invalid, or the caller lacks the role", body = Problem,
            content_type = "application/problem+json"),
        (status = 503, description = "The store failed: the bucket may or may not be reset", body = Problem,
            content_type = "application/problem+json"),
    ),
    security(("token" = []))
)]
pub(crate) async fn forget(
    Admin(by): Admin,
    State(app): State<Arc<App>>,
    key: Result<Path<String>, PathRejection>,
    query: Query,
) -> Result<StatusCode, Problem> {
    let Path(key) = key.map_err(|_| Problem::field("key", "is not UTF-8"))?;
    let query = query.only(&[NAMESPACE])?;
    app.limits.check_length("key", key.len())?;
    let namespace = namespace(&query)?;
    let store = app.limiter.store();
    let existed = store.reset(&store.take_key(key.as_bytes(), namespace)).await?;
    // A key may contain personal data of the caller's choosing.
    let recorded = subject::recorded(app.audit.pseudonyms(), None, &key);
    info!(by = by.name, key = &*recorded, namespace, existed, "bucket reset");
    Ok(StatusCode::NO_CONTENT)
}
