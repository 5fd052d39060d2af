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
use serde_json::{Value, json};
use sluicegate::rules::Attribute;
use sluicegate::{AnyStore, Bucket, Decision, Request, Rule, Store};
use tracing::info;
use utoipa::{OpenApi, ToSchema};

use super::perform::perform;
use super::subject;
use crate::app::App;
use crate::data::{Act, Author, DataError, OverrideKind, require_plain};
use crate::json::Whole;
use crate::normalize::NAMESPACE;
use crate::observe::history::{Failed, Recorded};
use crate::web::access::{Admin, Reader};
use crate::web::body::{Object, parse, read};
use crate::web::openapi::parts::{BucketPath, Reason, Wrong};
use crate::web::problem::Problem;
use crate::web::query::Query;

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
        (status = 503, description = "The store failed: the bucket may or may not be reset; or the history cannot be written, \
            and nothing was changed", body = Problem,
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
    named.make(app, by, BucketChange::Reset).await
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
        (status = 503, description = "The store failed: the tokens may or may not be granted; or the history cannot be written, \
            and nothing was changed", body = Problem,
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
    named.make(app, by, BucketChange::Grant(tokens)).await
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
        (status = 503, description = "The store failed: the tokens may or may not be refunded; or the history cannot be written, \
            and nothing was changed", body = Problem,
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
    named.make(app, by, BucketChange::Refund(tokens)).await
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

/// Change of a bucket.
#[derive(Clone, Copy, Debug)]
enum BucketChange {
    Reset,
    /// Number of tokens.
    Grant(u64),
    /// Number of tokens.
    Refund(u64),
}

impl BucketChange {
    const fn act(self) -> Act {
        match self {
            Self::Reset => Act::BucketReset,
            Self::Grant(_) => Act::BucketGrant,
            Self::Refund(_) => Act::BucketRefund,
        }
    }

    /// Message of the log line.
    const fn message(self) -> &'static str {
        match self {
            Self::Reset => "bucket reset",
            Self::Grant(_) => "tokens granted",
            Self::Refund(_) => "tokens refunded",
        }
    }

    const fn tokens(self) -> Option<u64> {
        match self {
            Self::Reset => None,
            Self::Grant(tokens) | Self::Refund(tokens) => Some(tokens),
        }
    }
}

/// The bucket named by the path and the query.
struct NamedBucket {
    rule_id: u64,
    subject: String,
    /// The subject as recorded: pseudonymised like a violation's.
    recorded: String,
    /// The key as recorded.
    recorded_key: Option<String>,
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
        let pseudonyms = app.audit.pseudonyms();
        let recorded_key = pseudonyms.bucket(rule.key_pattern(), |name| request.get(name));
        Ok(Self {
            rule_id: rule.rule_id(),
            recorded: pseudonyms.subject(Some(rule), &subject).into_owned(),
            recorded_key: recorded_key.map(|bucket| bucket.key),
            subject: subject.to_string(),
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

    /// Records a change, makes it, and answers with the bucket.
    async fn make(
        self,
        app: Arc<App>,
        by: Author,
        change: BucketChange,
    ) -> Result<Json<BucketView>, Problem> {
        perform(async move { self.recorded_change(&app, &by, change).await }).await
    }

    async fn recorded_change(
        &self,
        app: &App,
        by: &Author,
        change: BucketChange,
    ) -> Result<Json<BucketView>, Problem> {
        let tokens = change.tokens();
        let recorded = Recorded {
            act: change.act(),
            rule_id: Some(self.rule_id),
            subject: Some(self.recorded.clone()),
            target: self.recorded_key.clone(),
            before: Some(figures(&self.peek().await?, None)),
            after: tokens.map(|tokens| json!({"tokens": tokens})),
        };
        let address = app.history.address(by);
        let receipt = app.history.record(by, recorded).await;
        let receipt = receipt.map_err(|error| Problem::unrecorded(&error))?;
        let (changed, existed) = match change {
            BucketChange::Reset => match self.bucket.reset().await {
                Ok(existed) => (self.peek().await, Some(existed)),
                Err(trouble) => (Err(trouble.into()), None),
            },
            BucketChange::Grant(tokens) => {
                (self.bucket.grant(tokens).await.map_err(Into::into), None)
            }
            BucketChange::Refund(tokens) => {
                (self.bucket.refund(tokens).await.map_err(Into::into), None)
            }
        };
        let result = match (&changed, existed) {
            (Ok(decision), _) => Ok(figures(decision, tokens)),
            // The bucket was reset, and could not be read afterwards.
            (Err(_), Some(_)) => Ok(json!({})),
            (Err(_), None) => Err(Failed),
        };
        if result.is_ok() {
            let (rule_id, subject) = (self.rule_id, &self.recorded);
            let Author { name: by, reason, .. } = by;
            info!(by, address, rule_id, subject, tokens, existed, reason, "{}", change.message());
        }
        app.history.settle(receipt, result).await;
        Ok(Json(BucketView { existed, ..self.view(&changed?) }))
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

/// State of a bucket for the history, with the tokens that were added.
fn figures(decision: &Decision, tokens: Option<u64>) -> Value {
    let mut figures = json!({"remaining": decision.remaining, "limit": decision.limit});
    if let Some(tokens) = tokens {
        figures["tokens"] = tokens.into();
    }
    figures
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
    require_plain(NAMESPACE, namespace).map_err(|error| Problem::data(&error))?;
    Ok(Some(namespace))
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
        (status = 503, description = "The store failed: the bucket may or may not be reset; or the history cannot be written, \
            and nothing was changed", body = Problem,
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
    let namespace = namespace.map(str::to_owned);
    perform(async move { reset_key(&app, &by, &key, namespace.as_deref()).await }).await
}

/// Records and makes the reset of a bucket without a rule.
async fn reset_key(
    app: &App,
    by: &Author,
    key: &str,
    namespace: Option<&str>,
) -> Result<StatusCode, Problem> {
    // A key may contain personal data of the caller's choosing.
    let recorded_key = app.audit.pseudonyms().subject(None, key).into_owned();
    let recorded = Recorded {
        act: Act::BucketReset,
        rule_id: None,
        subject: None,
        target: Some(recorded_key.clone()),
        before: None,
        after: namespace.map(|namespace| json!({"namespace": namespace})),
    };
    let receipt = app.history.record(by, recorded).await;
    let receipt = receipt.map_err(|error| Problem::unrecorded(&error))?;
    let store = app.limiter.store();
    let reset = store.reset(&store.take_key(key.as_bytes(), namespace)).await;
    let result = match &reset {
        Ok(existed) => Ok(json!({"namespace": namespace, "existed": existed})),
        Err(_) => Err(Failed),
    };
    app.history.settle(receipt, result).await;
    let existed = reset?;
    let (address, Author { name: by, reason, .. }) = (app.history.address(by), by);
    info!(by, address, key = recorded_key, namespace, existed, reason, "bucket reset");
    Ok(StatusCode::NO_CONTENT)
}
