//! `/v1/violations`: recorded denials by bucket, rule and minute.

pub(crate) mod csv;
mod query;
pub(crate) mod view;

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use serde_json::json;
use utoipa::OpenApi;

pub(in crate::admin) use self::query::format;
use self::view::DeletedViolations;
pub(in crate::admin) use self::view::ViolationFormat;
pub(crate) use self::view::{TopBy, TopOffenders, ViolationList, ViolationMode, ViolationView};
use super::perform::perform;
use crate::app::App;
use crate::data::{Act, Author, DataError, ViolationFilter};
use crate::observe::history::{Failed, Recorded};
use crate::web::access::{Admin, Reader};
use crate::web::openapi::parts::{Reason, Wrong, WrongOrDown};
use crate::web::problem::Problem;
use crate::web::query::Query;

/// Header with the cursor of the next page of CSV; JSON has it as `next`.
pub(in crate::admin) const NEXT: HeaderName = HeaderName::from_static("x-sluicegate-next");

#[derive(OpenApi)]
#[openapi(paths(list, top, delete), components(schemas(ViolationFormat, ViolationMode, TopBy)))]
struct Document;

/// Routes of `/v1/violations`.
pub(crate) fn routes() -> Router<Arc<App>> {
    Router::new()
        .route("/v1/violations", get(list).delete(delete))
        .route("/v1/violations/top", get(top))
}

/// OpenAPI document of `/v1/violations`.
pub(crate) fn document() -> utoipa::openapi::OpenApi {
    Document::openapi()
}

/// Lists violations, newest first. A violation stands for the denials of one bucket by one rule in one minute.
///
/// Where ids and addresses are recorded truncated or hashed, filters accept both the original value and the value as
/// recorded. The answer is CSV if `format` is `csv`, or if `Accept` names `text/csv` first.
#[utoipa::path(
    get,
    operation_id = "list_violations",
    path = "/v1/violations",
    params(
        ("user_id" = Option<String>, Query, description = "Only violations of this user"),
        ("ip" = Option<String>, Query, description = "Only violations of this address"),
        ("endpoint" = Option<String>, Query, description = "Only violations of this endpoint"),
        ("bucket_key" = Option<String>, Query, description = "Only violations of this bucket, as shown in lists"),
        ("rule_id" = Option<u64>, Query, minimum = 0, description = "Only violations of this rule"),
        ("mode" = Option<ViolationMode>, Query, description = "`enforce`: only denials; `shadow`: only denials in shadow mode"),
        ("from" = Option<String>, Query, format = DateTime, description = "Only violations whose last denial was at this time or later"),
        ("to" = Option<String>, Query, format = DateTime, description = "Only violations whose first denial was before this time"),
        ("after" = Option<String>, Query, pattern = "^[0-9a-f]{1,16}-[0-9a-f]{1,16}$", description = "Cursor: `next` of the previous page"),
        ("limit" = Option<u64>, Query, minimum = 1, maximum = 1000, description = "Page size; 100 by default"),
        ("format" = Option<ViolationFormat>, Query, description = "Format of the answer; `json` by default"),
    ),
    responses(
        (status = 200, description = "Violations",
            content((ViolationList = "application/json"), (String = "text/csv")),
            headers(("x-sluicegate-next" = String, description = "Cursor of the next page; only in CSV and if there is one"))),
        WrongOrDown,
    ),
    security(("token" = []))
)]
async fn list(
    _: Reader,
    State(app): State<Arc<App>>,
    headers: HeaderMap,
    query: Query,
) -> Result<Response, Problem> {
    let query = query.only(&query::LIST)?;
    let (filter, after, limit) =
        (query::filter(&query, &app.audit)?, query::after(&query)?, query.limit()?);
    let format = format(&query, &headers)?;
    let database = app.keeper.database().map_err(problem)?;
    // One more than the page: its presence means that there is a next page.
    let found = database.violations(&filter, after, limit + 1).await.map_err(problem)?;
    let list = ViolationList::new(found, limit);
    if format == ViolationFormat::Json {
        return Ok(Json(list).into_response());
    }
    let kind = HeaderValue::from_static("text/csv; charset=utf-8; header=present");
    let mut response =
        ([(header::CONTENT_TYPE, kind)], csv::write(&list.violations)).into_response();
    if let Some(next) = list.next.and_then(|next| HeaderValue::try_from(next).ok()) {
        response.headers_mut().insert(NEXT, next);
    }
    Ok(response)
}

/// Lists the users, addresses, endpoints or buckets with the most denials.
#[utoipa::path(
    get,
    operation_id = "top_offenders",
    path = "/v1/violations/top",
    params(
        ("by" = TopBy, Query, description = "Attribute to group by"),
        ("rule_id" = Option<u64>, Query, minimum = 0, description = "Only violations of this rule"),
        ("mode" = Option<ViolationMode>, Query, description = "`enforce`: only denials; `shadow`: only denials in shadow mode"),
        ("from" = Option<String>, Query, format = DateTime, description = "Only violations whose last denial was at this time or later"),
        ("to" = Option<String>, Query, format = DateTime, description = "Only violations whose first denial was before this time"),
        ("limit" = Option<u64>, Query, minimum = 1, maximum = 1000, description = "Maximum number of values; 100 by default"),
    ),
    responses(
        (status = 200, description = "The values with the most denials, in descending order", body = TopOffenders),
        WrongOrDown,
    ),
    security(("token" = []))
)]
async fn top(
    _: Reader,
    State(app): State<Arc<App>>,
    query: Query,
) -> Result<Json<TopOffenders>, Problem> {
    let query = query.only(&query::TOP)?;
    let (by, filter, limit) =
        (query::by(&query)?, query::filter(&query, &app.audit)?, query.limit()?);
    let database = app.keeper.database().map_err(problem)?;
    let top = database.top_offenders(&filter, by.into(), limit).await.map_err(problem)?;
    Ok(Json(TopOffenders::new(by, top)))
}

/// Deletes every violation of a subject, including those not written yet. With several parameters, only violations
/// that match all of them.
#[utoipa::path(
    delete,
    operation_id = "delete_violations",
    path = "/v1/violations",
    params(
        ("user_id" = Option<String>, Query, description = "Violations of this user"),
        ("ip" = Option<String>, Query, description = "Violations of this address"),
        ("bucket_key" = Option<String>, Query, description = "Violations of this bucket, as shown in lists"),
        Reason,
    ),
    responses(
        (status = 200, description = "The violations were deleted", body = DeletedViolations),
        Wrong,
        (status = 503, description = "The database does not answer: some violations may be deleted; or the history \
            cannot be written, and nothing was changed", body = Problem,
            content_type = "application/problem+json"),
    ),
    security(("token" = []))
)]
async fn delete(
    Admin(by): Admin,
    State(app): State<Arc<App>>,
    query: Query,
) -> Result<Json<DeletedViolations>, Problem> {
    let query = query.only(&query::SUBJECT)?;
    if query.pairs().next().is_none() {
        return Err(Problem::field("user_id", "is missing: give user_id, ip or bucket_key"));
    }
    let filter = query::filter(&query, &app.audit)?;
    let fields: Vec<_> = query.pairs().map(|(name, _)| name.to_owned()).collect();
    perform(async move { recorded_delete(&app, &by, &filter, &fields).await }).await
}

/// Records the deletion, and makes it.
async fn recorded_delete(
    app: &App,
    by: &Author,
    filter: &ViolationFilter,
    fields: &[String],
) -> Result<Json<DeletedViolations>, Problem> {
    let recorded = Recorded {
        act: Act::ViolationsDelete,
        rule_id: None,
        subject: None,
        target: None,
        before: None,
        // Not the subject: the caller asked to erase it.
        after: Some(json!({"by": fields})),
    };
    let receipt = app.history.record(by, recorded).await;
    let receipt = receipt.map_err(|error| Problem::unrecorded(&error))?;
    let deleted = app.audit.delete(filter).await;
    let result = match &deleted {
        Ok(deleted) => Ok(json!({"by": fields, "deleted": deleted})),
        Err(_) => Err(Failed),
    };
    app.history.settle(receipt, result).await;
    let deleted = deleted.map_err(problem)?;
    // The subject is not logged: the caller asked to erase it.
    tracing::info!(by = by.name, deleted, "violations of a subject deleted");
    Ok(Json(DeletedViolations { deleted }))
}

#[expect(clippy::needless_pass_by_value, reason = "signature required by map_err")]
fn problem(error: DataError) -> Problem {
    Problem::data(&error)
}
