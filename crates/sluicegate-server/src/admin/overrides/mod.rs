//! `/v1/overrides`: what single subjects have instead of a rule's quota.

mod body;
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

use self::body::{NewOverride, OverrideBody, ReplacedOverride};
use self::note::note;
pub(super) use self::view::kind;
use self::view::{OverrideView, SetOverrideView};
use super::subject;
use crate::app::{App, RequestLimits};
use crate::data::{DataError, Database, OverrideFilter, OverrideSpec, Page, StoredOverride};
use crate::time::Timestamp;
use crate::web::access::{Admin, Reader};
use crate::web::body::{Object, parse, read, storable};
use crate::web::etag::{Versions, etag};
use crate::web::openapi::parts::{DryRun, IfMatch, IfNoneMatch, OverridePath, WrongOrDown};
use crate::web::problem::Problem;
use crate::web::query::Query;

/// How often a change is tried again if others change the same override meanwhile.
const TRIES_MAX: usize = 8;

#[derive(OpenApi)]
#[openapi(paths(list, create, show, replace, delete))]
struct Document;

/// Its routes.
pub(crate) fn routes() -> Router<Arc<App>> {
    Router::new()
        .route("/v1/overrides", get(list).post(create))
        .route("/v1/overrides/{id}", get(show).put(replace).delete(delete))
}

/// Its part of the API's document.
pub(crate) fn document() -> utoipa::openapi::OpenApi {
    Document::openapi()
}

/// A part of the overrides.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct OverrideList {
    overrides: Vec<OverrideView>,
    /// Where the list goes on: give it as `after`. Null at its end.
    next: Option<String>,
}

/// Overrides, by id.
#[utoipa::path(
    get,
    operation_id = "list_overrides",
    path = "/v1/overrides",
    params(
        ("rule_id" = Option<u64>, Query, description = "Only those of this rule"),
        ("subject" = Option<String>, Query, description = "Only those of this subject"),
        ("after" = Option<String>, Query, description = "What `next` was: where to go on"),
        ("limit" = Option<u64>, Query, minimum = 1, maximum = 1000, description = "How many at most"),
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
    // One more, to know whether the list goes on.
    let more = Page { limit: page.limit + 1, ..page };
    let mut found = database(&app)?.overrides(&filter, more).await.map_err(failed)?;
    let goes_on = found.len() > page.limit;
    found.truncate(page.limit);
    let last = found.last().map(|last| last.override_id.to_string());
    let overrides = found.iter().map(OverrideView::stored).collect();
    Ok(Json(OverrideList { overrides, next: last.filter(|_| goes_on) }))
}

/// Makes an override, or changes the one that this subject of this rule has. It is in force here when the
/// answer comes.
#[utoipa::path(
    post,
    operation_id = "set_override",
    path = "/v1/overrides",
    params(DryRun),
    request_body = NewOverride,
    responses(
        (status = 201, description = "The override that was made", body = SetOverrideView,
            headers(
                ("location" = String, description = "Where it is"),
                ("etag" = String, description = "Its version, for `If-Match`"),
            )),
        (status = 200, description = "The override that was changed, or that would be in a dry run",
            body = SetOverrideView, headers(("etag" = String, description = "Its version, for `If-Match`"))),
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
    let bytes = read(request, app.limits.body_bytes_max, app.limits.body_timeout).await?;
    let Object(body): Object<OverrideBody<'_>> = parse(&bytes)?;
    let missing = |field| move || Problem::field(field, "is missing");
    let rule_id = body.rule_id.ok_or_else(missing("rule_id"))?.0;
    let subject = &body.subject.as_ref().ok_or_else(missing("subject"))?.0;
    let (spec, note) = spec(&app, &body, rule_id, subject)?;
    let database = database(&app)?;
    if dry_run {
        let before = find(&database, &spec).await.map_err(failed)?;
        let set = OverrideView::in_dry_run(&spec, &by, before.as_ref());
        return Ok(Json(SetOverrideView { set, note }).into_response());
    }
    let (stored, is_new) = database.put_override(&spec, None, &by).await.map_err(failed)?;
    log(&app, &by, &stored, "override set");
    app.keeper.refresh().await;
    let set = SetOverrideView { set: OverrideView::stored(&stored), note };
    if !is_new {
        return Ok(tagged(StatusCode::OK, stored.version, set));
    }
    let location = [(header::LOCATION, format!("/v1/overrides/{}", stored.override_id))];
    Ok((location, tagged(StatusCode::CREATED, stored.version, set)).into_response())
}

/// One override.
#[utoipa::path(
    get,
    operation_id = "get_override",
    path = "/v1/overrides/{id}",
    params(OverridePath, IfNoneMatch),
    responses(
        (status = 200, description = "The override", body = OverrideView,
            headers(("etag" = String, description = "Its version, for `If-Match`"))),
        (status = 304, description = "It still has the version that is known",
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

/// Replaces what an override says. Its rule and subject stay what they are, and need not be said.
#[utoipa::path(
    put,
    operation_id = "replace_override",
    path = "/v1/overrides/{id}",
    params(OverridePath, DryRun, IfMatch),
    request_body = ReplacedOverride,
    responses(
        (status = 200, description = "The override as it is now, or would be in a dry run", body = SetOverrideView,
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
    let bytes = read(request, app.limits.body_bytes_max, app.limits.body_timeout).await?;
    let Object(body): Object<OverrideBody<'_>> = parse(&bytes)?;
    let database = database(&app)?;
    for _ in 0..TRIES_MAX {
        let before = expected(&database, id, if_match.as_ref()).await?;
        let rule_id = body.rule_id.map_or(before.spec.rule_id, |rule_id| rule_id.0);
        let subject = body.subject.as_ref().map_or(&*before.spec.subject, |subject| &subject.0);
        let (spec, note) = spec(&app, &body, rule_id, subject)?;
        stays(&spec, &before.spec)?;
        if dry_run {
            let set = OverrideView::in_dry_run(&spec, &by, Some(&before));
            return Ok(Json(SetOverrideView { set, note }).into_response());
        }
        // What was read is what is changed, whether or not anybody asked for that.
        match database.put_override(&spec, Some(before.version), &by).await {
            Err(DataError::Stale { .. }) if if_match.is_none() => {}
            changed => {
                let (stored, _) = changed.map_err(failed)?;
                log(&app, &by, &stored, "override set");
                app.keeper.refresh().await;
                let set = SetOverrideView { set: OverrideView::stored(&stored), note };
                return Ok(tagged(StatusCode::OK, stored.version, set));
            }
        }
    }
    Err(Problem::new(StatusCode::CONFLICT, "others keep changing this override: try again"))
}

/// Deletes an override: its subject has the rule's quota again, here when the answer comes.
#[utoipa::path(
    delete,
    operation_id = "delete_override",
    path = "/v1/overrides/{id}",
    params(OverridePath, DryRun, IfMatch),
    responses(
        (status = 204, description = "There is no such override any more"),
        (status = 200, description = "The override that would be deleted, in a dry run", body = OverrideView),
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
    let database = database(&app)?;
    let before = expected(&database, id, if_match.as_ref()).await?;
    if dry_run {
        let by = &before.created_by;
        let view = OverrideView::in_dry_run(&before.spec, by, Some(&before));
        return Ok(Json(view).into_response());
    }
    let version = if_match.is_some_and(|versions| versions != Versions::Any);
    let version = version.then_some(before.version);
    let deleted = database.delete_override(id, version).await.map_err(failed)?;
    log(&app, &by, &deleted, "override deleted");
    app.keeper.refresh().await;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Writes to the log who did what to whom, and why: the table only has what there is now.
fn log(app: &App, by: &str, stored: &StoredOverride, what: &str) {
    let OverrideSpec { rule_id, subject, instead, reason, expires_at } = &stored.spec;
    let rules = app.limiter.rules();
    let subject = subject::recorded(app.audit.pseudonyms(), rules.get(*rule_id), subject);
    info!(
        by,
        rule_id,
        override_id = stored.override_id,
        subject = &*subject,
        kind = kind(instead),
        expires_at = expires_at.map(|time| time.to_string()),
        reason = &**reason,
        "{what}"
    );
}

/// The override of a body, for a rule in force, and what to know about it.
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

/// Refuses to move an override to another rule or subject.
fn stays(spec: &OverrideSpec, before: &OverrideSpec) -> Result<(), Problem> {
    const MOVED: &str =
        "is another one: an override stays where it is, so delete it and make another";
    if spec.rule_id != before.rule_id {
        return Err(Problem::field("rule_id", MOVED));
    }
    if spec.subject != before.subject {
        return Err(Problem::field("subject", MOVED));
    }
    Ok(())
}

/// The override, if it is of a version that is meant.
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

/// The override of the same rule and subject.
async fn find(
    database: &Database,
    spec: &OverrideSpec,
) -> Result<Option<StoredOverride>, DataError> {
    let filter =
        OverrideFilter { rule_id: Some(spec.rule_id), subject: Some(spec.subject.clone()) };
    let found = database.overrides(&filter, Page { after: None, limit: 1 }).await?;
    Ok(found.into_iter().next())
}

/// An override, with its version as a tag.
fn tagged(status: StatusCode, version: u64, view: impl Serialize) -> Response {
    (status, [(header::ETAG, etag(version))], Json(view)).into_response()
}

fn database(app: &App) -> Result<Arc<Database>, Problem> {
    app.keeper.database().map_err(failed)
}

/// The id in a path. What is no number is no override's.
fn override_id(id: Result<Path<String>, PathRejection>) -> Result<u64, Problem> {
    let id = id.ok().and_then(|Path(id)| id.parse().ok());
    id.ok_or_else(|| Problem::data(&DataError::NotFound("override")))
}

#[expect(clippy::needless_pass_by_value, reason = "what map_err hands out")]
fn failed(error: DataError) -> Problem {
    Problem::data(&error)
}
