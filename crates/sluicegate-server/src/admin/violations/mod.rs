//! `/v1/violations`: who was denied, by what, and how often.

pub(crate) mod csv;
mod query;
pub(crate) mod view;

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use utoipa::OpenApi;

use self::view::{DeletedViolations, ViolationFormat};
pub(crate) use self::view::{TopBy, TopOffenders, ViolationList, ViolationMode, ViolationView};
use crate::app::App;
use crate::data::DataError;
use crate::web::access::{Admin, Reader};
use crate::web::openapi::parts::{Wrong, WrongOrDown};
use crate::web::problem::Problem;
use crate::web::query::Query;

/// The header of a page of CSV that has the cursor of the next, which JSON has as `next`.
const NEXT: HeaderName = HeaderName::from_static("x-sluicegate-next");

#[derive(OpenApi)]
#[openapi(paths(list, top, delete), components(schemas(ViolationFormat, ViolationMode, TopBy)))]
struct Document;

/// Its routes.
pub(crate) fn routes() -> Router<Arc<App>> {
    Router::new()
        .route("/v1/violations", get(list).delete(delete))
        .route("/v1/violations/top", get(top))
}

/// Its part of the API's document.
pub(crate) fn document() -> utoipa::openapi::OpenApi {
    Document::openapi()
}

/// Lists violations, newest first. Each is the denials of one bucket by one rule in one minute.
///
/// Whatever is asked for is looked for as it is recorded: where ids and addresses are cut or hashed, ask for them as
/// they are, or as a list shows them. It is CSV if `format` says so, or if `Accept` names `text/csv` first.
#[utoipa::path(
    get,
    operation_id = "list_violations",
    path = "/v1/violations",
    params(
        ("user_id" = Option<String>, Query, description = "Only those of this user"),
        ("ip" = Option<String>, Query, description = "Only those of this address"),
        ("endpoint" = Option<String>, Query, description = "Only those of this endpoint"),
        ("bucket_key" = Option<String>, Query, description = "Only those of this bucket, as a list shows it"),
        ("rule_id" = Option<u64>, Query, minimum = 0, description = "Only those of this rule"),
        ("mode" = Option<ViolationMode>, Query, description = "Only those that were denied, or only would have been"),
        ("from" = Option<String>, Query, format = DateTime, description = "Only those whose last denial was then or later"),
        ("to" = Option<String>, Query, format = DateTime, description = "Only those whose first denial was before"),
        ("after" = Option<String>, Query, pattern = "^[0-9a-f]{1,16}-[0-9a-f]{1,16}$", description = "What the page before has as `next`"),
        ("limit" = Option<u64>, Query, minimum = 1, maximum = 1000, description = "How many at most; 100 if not given"),
        ("format" = Option<ViolationFormat>, Query, description = "`json` if not given"),
    ),
    responses(
        (status = 200, description = "Violations",
            content((ViolationList = "application/json"), (String = "text/csv")),
            headers(("x-sluicegate-next" = String, description = "`next`, where the answer is CSV and there is one"))),
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
    let format = query::format(&query, &headers)?;
    let database = app.keeper.database().map_err(problem)?;
    // One more than is shown tells whether there are more.
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

/// Says who was denied most.
#[utoipa::path(
    get,
    operation_id = "top_offenders",
    path = "/v1/violations/top",
    params(
        ("by" = TopBy, Query, description = "What denials are added up by"),
        ("rule_id" = Option<u64>, Query, minimum = 0, description = "Only those of this rule"),
        ("mode" = Option<ViolationMode>, Query, description = "Only those that were denied, or only would have been"),
        ("from" = Option<String>, Query, format = DateTime, description = "Only violations whose last denial was then or later"),
        ("to" = Option<String>, Query, format = DateTime, description = "Only violations whose first denial was before"),
        ("limit" = Option<u64>, Query, minimum = 1, maximum = 1000, description = "How many at most; 100 if not given"),
    ),
    responses(
        (status = 200, description = "Those with the most denials, first the most", body = TopOffenders),
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

/// Deletes every violation of a subject, also what is not written yet. Of several, only those of all of them.
#[utoipa::path(
    delete,
    operation_id = "delete_violations",
    path = "/v1/violations",
    params(
        ("user_id" = Option<String>, Query, description = "Those of this user"),
        ("ip" = Option<String>, Query, description = "Those of this address"),
        ("bucket_key" = Option<String>, Query, description = "Those of this bucket, as a list shows it"),
    ),
    responses(
        (status = 200, description = "They are deleted", body = DeletedViolations),
        Wrong,
        (status = 503, description = "The database does not answer: some may be deleted", body = Problem,
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
        return Err(Problem::field("user_id", "name whose: user_id, ip or bucket_key"));
    }
    let filter = query::filter(&query, &app.audit)?;
    let deleted = app.audit.delete(&filter).await.map_err(problem)?;
    // Whose they were is what was to be forgotten.
    tracing::info!(by, deleted, "violations of a subject deleted");
    Ok(Json(DeletedViolations { deleted }))
}

#[expect(clippy::needless_pass_by_value, reason = "it is mapped over")]
fn problem(error: DataError) -> Problem {
    Problem::data(&error)
}
