//! `/v1/overrides`: quotas, exemptions and blocks for single subjects of a rule.

pub(crate) mod body;
mod note;
mod view;

use std::sync::Arc;

use axum::body::Body;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, Request as HttpRequest, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use serde::Serialize;
use tracing::info;
use utoipa::{OpenApi, ToSchema};

use self::body::{NewOverride, OverrideBody};
use self::note::note;
use self::view::{OverrideView, SetOverrideView};
use crate::app::{App, RequestLimits};
use crate::data::{
    Author, DataError, Database, OverrideFilter, OverrideKind, OverrideSpec, Page, StoredOverride,
};
use crate::time::Timestamp;
use crate::web::access::{Admin, Reader};
use crate::web::body::{Object, parse, read, storable};
use crate::web::etag::{Versions, etag};
use crate::web::openapi::parts::{
    CreateOnly, DryRun, IfMatch, IfNoneMatch, OverridePath, Reason, WrongOrDown,
};
use crate::web::problem::Problem;
use crate::web::query::Query;

/// Maximum number of attempts at a change while others change the same override.
const TRIES_MAX: usize = 8;

#[derive(OpenApi)]
#[openapi(paths(list, create, show, replace, delete))]
struct Document;

/// Routes of `/v1/overrides`.
pub(crate) fn routes() -> Router<Arc<App>> {
    Router::new()
        .route("/v1/overrides", get(list).post(create))
        .route("/v1/overrides/{id}", get(show).put(replace).delete(delete))
}

/// OpenAPI document of `/v1/overrides`.
pub(crate) fn document() -> utoipa::openapi::OpenApi {
    Document::openapi()
}

/// A page of overrides.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct OverrideList {
    overrides: Vec<OverrideView>,
    /// Cursor of the next page, for `after`; null on the last page.
    next: Option<String>,
}

/// Lists overrides by id.
#[utoipa::path(
    get,
    operation_id = "list_overrides",
    path = "/v1/overrides",
    params(
        ("rule_id" = Option<u64>, Query, description = "Only overrides of this rule"),
        ("subject" = Option<String>, Query, description = "Only overrides of this subject"),
        ("after" = Option<String>, Query, description = "Cursor: `next` of the previous page"),
        ("limit" = Option<u64>, Query, minimum = 1, maximum = 1000, description = "Page size"),
    ),
    responses(
        (status = 200, description = "The overrides", body = OverrideList),
        WrongOrDown,
    ),
    security(("token" = []))
)]
async fn list(
    _: Reader,
    State(app): State<Arc<App>>,
    query: Query,
) -> Result<Json<OverrideList>, Problem> {
    let query = query.only(&["rule_id", "subject", "after", "limit"])?;
    let subject = query.text("subject");
    storable("subject", subject.unwrap_or_default())?;
    let filter = OverrideFilter {
        rule_id: query.value("rule_id", "a whole number")?,
        subject: subject.map(Into::into),
    };
    let page = query.page()?;
    // One more than the page: its presence means that there is a next page.
    let more = Page { limit: page.limit + 1, ..page };
    let mut found = database(&app)?.overrides(&filter, more).await.map_err(failed)?;
    let goes_on = found.len() > page.limit;
    found.truncate(page.limit);
    let last = found.last().map(|last| last.override_id.to_string());
    let overrides = found.iter().map(OverrideView::stored).collect();
    Ok(Json(OverrideList { overrides, next: last.filter(|_| goes_on) }))
}

/// Creates an override, or changes the existing one of this rule and subject; with `If-None-Match: *`, creates it only. It
/// is in force in this process when the answer is sent.
#[utoipa::path(
    post,
    operation_id = "set_override",
    path = "/v1/overrides",
    params(DryRun, CreateOnly, Reason),
    request_body = NewOverride,
    responses(
        (status = 201, description = "The override was created", body = SetOverrideView,
            headers(
                ("location" = String, description = "Path of the override"),
                ("etag" = String, description = "Its version, for `If-Match`"),
            )),
        (status = 200, description = "The override was changed, or would be set by this dry run",
            body = SetOverrideView, headers(("etag" = String, description = "Its version, for `If-Match`"))),
        (status = 412, description = "With `If-None-Match: *`: the subject has an override already. The detail names who set it, \
            and when", body = Problem, content_type = "application/problem+json"),
        WrongOrDown,
    ),
    security(("token" = []))
)]
async fn create(
    Admin(by): Admin,
    State(app): State<Arc<App>>,
    query: Query,
    request: HttpRequest<Body>,
) -> Result<Response, Problem> {
    let dry_run = query.only(&["dry_run"])?.flag("dry_run")?;
    let is_create_only = Versions::is_create_only(request.headers())?;
    let bytes = read(&app, request, app.limits.body_bytes_max).await?;
    let Object(NewOverride(body)): Object<NewOverride<'_>> = parse(&bytes)?;
    let missing = |field| move || Problem::field(field, "is missing");
    let rule_id = body.rule_id.ok_or_else(missing("rule_id"))?.0;
    let subject = &body.subject.as_ref().ok_or_else(missing("subject"))?.0;
    let (spec, note) = spec(&app, &body, rule_id, subject)?;
    let database = writable(&app, dry_run)?;
    let (stored, is_new) = if is_create_only {
        (database.create_override(&spec, &by).await.map_err(failed)?, true)
    } else {
        database.put_override(&spec, None, &by).await.map_err(failed)?
    };
    if dry_run {
        let set = OverrideView::in_dry_run(&stored, is_new);
        return Ok(Json(SetOverrideView { set, note }).into_response());
    }
    log(&app, &by, &stored, "override set");
    app.keeper.refresh().await;
    let set = SetOverrideView { set: OverrideView::stored(&stored), note };
    if !is_new {
        return Ok(tagged(StatusCode::OK, stored.version, set));
    }
    let location = [(header::LOCATION, format!("/v1/overrides/{}", stored.override_id))];
    Ok((location, tagged(StatusCode::CREATED, stored.version, set)).into_response())
}

/// Gets an override.
#[utoipa::path(
    get,
    operation_id = "get_override",
    path = "/v1/overrides/{id}",
    params(OverridePath, IfNoneMatch),
    responses(
        (status = 200, description = "The override", body = OverrideView,
            headers(("etag" = String, description = "Its version, for `If-Match`"))),
        (status = 304, description = "The override still has the version in `If-None-Match`",
            headers(("etag" = String, description = "Its version"))),
        WrongOrDown,
    ),
    security(("token" = []))
)]
async fn show(
    _: Reader,
    State(app): State<Arc<App>>,
    id: Result<Path<String>, PathRejection>,
    query: Query,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let id = override_id(id)?;
    query.only(&[])?;
    let known = Versions::if_none_match(&headers)?;
    let stored = database(&app)?.get_override(id).await.map_err(failed)?;
    if known.is_some_and(|known| known.contain(stored.version)) {
        let etag = [(header::ETAG, etag(stored.version))];
        return Ok((StatusCode::NOT_MODIFIED, etag).into_response());
    }
    Ok(tagged(StatusCode::OK, stored.version, OverrideView::stored(&stored)))
}

/// Replaces an override. Its rule and subject cannot change and may be omitted.
#[utoipa::path(
    put,
    operation_id = "replace_override",
    path = "/v1/overrides/{id}",
    params(OverridePath, DryRun, IfMatch, Reason),
    request_body = OverrideBody,
    responses(
        (status = 200, description = "The override after the change, or as this dry run would leave it", body = SetOverrideView,
            headers(("etag" = String, description = "Its version, for `If-Match`"))),
        WrongOrDown,
    ),
    security(("token" = []))
)]
async fn replace(
    Admin(by): Admin,
    State(app): State<Arc<App>>,
    id: Result<Path<String>, PathRejection>,
    query: Query,
    request: HttpRequest<Body>,
) -> Result<Response, Problem> {
    let id = override_id(id)?;
    let dry_run = query.only(&["dry_run"])?.flag("dry_run")?;
    let if_match = Versions::if_match(request.headers())?;
    let bytes = read(&app, request, app.limits.body_bytes_max).await?;
    let Object(body): Object<OverrideBody<'_>> = parse(&bytes)?;
    let database = writable(&app, dry_run)?;
    for _ in 0..TRIES_MAX {
        let before = expected(&database, id, if_match.as_ref()).await?;
        let rule_id = body.rule_id.map_or(before.spec.rule_id, |rule_id| rule_id.0);
        let subject = body.subject.as_ref().map_or(&*before.spec.subject, |subject| &subject.0);
        let (spec, note) = spec(&app, &body, rule_id, subject)?;
        require_same_target(&spec, &before.spec)?;
        // Compare and swap on the version that was read, also without `If-Match`.
        match database.put_override(&spec, Some(before.version), &by).await {
            Err(DataError::Stale { .. }) if if_match.is_none() => {}
            changed => {
                let (stored, is_new) = changed.map_err(failed)?;
                if dry_run {
                    let set = OverrideView::in_dry_run(&stored, is_new);
                    return Ok(Json(SetOverrideView { set, note }).into_response());
                }
                log(&app, &by, &stored, "override set");
                app.keeper.refresh().await;
                let set = SetOverrideView { set: OverrideView::stored(&stored), note };
                return Ok(tagged(StatusCode::OK, stored.version, set));
            }
        }
    }
    Err(Problem::new(StatusCode::CONFLICT, "others keep changing this override: try again"))
}

/// Deletes an override. The rule's quota applies to its subject again, in this process when the answer is sent.
#[utoipa::path(
    delete,
    operation_id = "delete_override",
    path = "/v1/overrides/{id}",
    params(OverridePath, DryRun, IfMatch, Reason),
    responses(
        (status = 204, description = "The override was deleted"),
        (status = 200, description = "The override that this dry run would delete", body = OverrideView),
        WrongOrDown,
    ),
    security(("token" = []))
)]
async fn delete(
    Admin(by): Admin,
    State(app): State<Arc<App>>,
    id: Result<Path<String>, PathRejection>,
    query: Query,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let id = override_id(id)?;
    let dry_run = query.only(&["dry_run"])?.flag("dry_run")?;
    let if_match = Versions::if_match(&headers)?;
    let database = writable(&app, dry_run)?;
    let before = expected(&database, id, if_match.as_ref()).await?;
    let version = if_match.is_some_and(|versions| versions != Versions::Any);
    let version = version.then_some(before.version);
    let deleted = database.delete_override(id, version, &by).await.map_err(failed)?;
    if dry_run {
        return Ok(Json(OverrideView::in_dry_run(&deleted, false)).into_response());
    }
    log(&app, &by, &deleted, "override deleted");
    app.keeper.refresh().await;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Logs a change with its author, subject and reason: the table keeps only the current state.
fn log(app: &App, by: &Author, stored: &StoredOverride, what: &str) {
    let OverrideSpec { rule_id, subject, instead, reason, expires_at } = &stored.spec;
    let rules = app.limiter.rules();
    let subject = app.audit.pseudonyms().subject(rules.get(*rule_id), subject);
    info!(
        by = by.name,
        rule_id,
        override_id = stored.override_id,
        subject = &*subject,
        kind = OverrideKind::from(instead).name(),
        expires_at = expires_at.map(|time| time.to_string()),
        reason = &**reason,
        "{what}"
    );
}

/// Parses the override of a body for a rule in force, with the note for the answer.
fn spec(
    app: &App,
    body: &OverrideBody<'_>,
    rule_id: u64,
    subject: &str,
) -> Result<(OverrideSpec, Option<String>), Problem> {
    let rules = app.limiter.rules();
    let missing = || Problem::field("rule_id", format_args!("there is no rule {rule_id}"));
    let rule = rules.get(rule_id).ok_or_else(missing)?;
    let limits: &RequestLimits = &app.limits;
    let spec = body.spec(rule, subject, limits, Timestamp::now())?;
    let note = note(rule, &spec.instead);
    Ok((spec, note))
}

/// Rejects a change of an override's rule or subject.
fn require_same_target(spec: &OverrideSpec, before: &OverrideSpec) -> Result<(), Problem> {
    const MOVED: &str = "cannot change: delete this override and create another";
    if spec.rule_id != before.rule_id {
        return Err(Problem::field("rule_id", MOVED));
    }
    if spec.subject != before.subject {
        return Err(Problem::field("subject", MOVED));
    }
    Ok(())
}

/// Reads the override and checks its version against `If-Match`.
async fn expected(
    database: &Database,
    id: u64,
    if_match: Option<&Versions>,
) -> Result<StoredOverride, Problem> {
    let stored = database.get_override(id).await.map_err(failed)?;
    if let Some(versions) = if_match {
        versions.require(stored.version).map_err(failed)?;
    }
    Ok(stored)
}

/// Answers with an override and its version as `ETag`.
fn tagged(status: StatusCode, version: u64, view: impl Serialize) -> Response {
    (status, [(header::ETAG, etag(version))], Json(view)).into_response()
}

/// The database; for a dry run, its handle that rolls back.
fn writable(app: &App, dry_run: bool) -> Result<Database, Problem> {
    let database = database(app)?;
    Ok(if dry_run { database.dry_run() } else { Database::clone(&database) })
}

fn database(app: &App) -> Result<Arc<Database>, Problem> {
    app.keeper.database().map_err(failed)
}

/// Parses the id in a path. Text that is not a number is answered as not found.
fn override_id(id: Result<Path<String>, PathRejection>) -> Result<u64, Problem> {
    let id = id.ok().and_then(|Path(id)| id.parse().ok());
    id.ok_or_else(|| Problem::data(&DataError::NotFound("override")))
}

#[expect(clippy::needless_pass_by_value, reason = "signature required by map_err")]
fn failed(error: DataError) -> Problem {
    Problem::data(&error)
}
