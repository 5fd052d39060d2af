//! `/v1/callers`: identities of the data doors, with their rights.

mod body;
mod view;

use std::sync::Arc;

use axum::body::Body;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::{Request as HttpRequest, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, patch};
use axum::{Json, Router};
use serde::Serialize;
use tracing::info;
use utoipa::{OpenApi, ToSchema};

use self::body::{CallerPatch, NewCaller};
use self::view::CreatedCallerView;
pub(crate) use self::view::{CallerView, Uses};
use crate::app::App;
use crate::auth::tokens;
use crate::data::{Author, DataError, Database, StoredCaller};
use crate::time::Timestamp;
use crate::web::access::{Admin, Reader};
use crate::web::body::{Object, parse, read};
use crate::web::openapi::parts::{CallerPath, DryRun, Reason, WrongOrDown};
use crate::web::problem::Problem;
use crate::web::query::Query;

#[derive(OpenApi)]
#[openapi(paths(list, create, change, revoke))]
struct Document;

/// Routes of `/v1/callers`.
pub(crate) fn routes() -> Router<Arc<App>> {
    Router::new()
        .route("/v1/callers", get(list).post(create))
        .route("/v1/callers/{name}", patch(change).delete(revoke))
}

/// OpenAPI document of `/v1/callers`.
pub(crate) fn document() -> utoipa::openapi::OpenApi {
    Document::openapi()
}

/// All callers: at most 1,000, expired ones included.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct CallerList {
    callers: Vec<CallerView>,
}

/// Lists the callers by id.
#[utoipa::path(
    get,
    operation_id = "list_callers",
    path = "/v1/callers",
    responses(
        (status = 200, description = "The callers", body = CallerList),
        WrongOrDown,
    ),
    security(("token" = []))
)]
async fn list(
    _: Reader,
    State(app): State<Arc<App>>,
    query: Query,
) -> Result<Json<CallerList>, Problem> {
    query.only(&[])?;
    let database = app.keeper.database().map_err(failed)?;
    let callers = database.callers().await.map_err(failed)?;
    let uses = Uses::load(&database).await.map_err(failed)?;
    let callers = callers.iter().map(|caller| CallerView::stored(caller, &uses)).collect();
    Ok(Json(CallerList { callers }))
}

/// Creates a caller. It is in force in this process when the answer is sent, which is the only one with its token.
#[utoipa::path(
    post,
    operation_id = "create_caller",
    path = "/v1/callers",
    params(DryRun, Reason),
    request_body = NewCaller,
    responses(
        (status = 201, description = "The caller that was created, with its token", body = CreatedCallerView),
        (status = 200, description = "The caller that this dry run would create", body = CreatedCallerView),
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
    let bytes = read(&app, request, app.limits.body_bytes_max).await?;
    let Object(body): Object<NewCaller<'_>> = parse(&bytes)?;
    let spec = body.spec(Timestamp::now())?;
    let (token, hash) = if body.has_token() {
        let (token, hash) = tokens::mint().map_err(|error| no_randomness(&error))?;
        (Some(token), Some(hash))
    } else {
        (None, None)
    };
    let database = writable(&app, dry_run)?;
    let stored = database.create_caller(&spec, hash.as_ref(), &by).await.map_err(failed)?;
    let caller = CallerView::created(&stored);
    if dry_run {
        let caller = caller.in_dry_run(true);
        return Ok(Json(CreatedCallerView { caller, token: None }).into_response());
    }
    log(&by, &stored, "caller created");
    app.keeper.refresh().await;
    let created = Json(CreatedCallerView { caller, token });
    Ok((StatusCode::CREATED, created).into_response())
}

/// Changes a caller. The change is in force in this process when the answer is sent.
#[utoipa::path(
    patch,
    operation_id = "change_caller",
    path = "/v1/callers/{name}",
    params(CallerPath, DryRun, Reason),
    request_body(content(
        (CallerPatch = "application/json"),
        (CallerPatch = "application/merge-patch+json"),
    )),
    responses(
        (status = 200, description = "The caller after the change, or as this dry run would leave it", body = CallerView),
        WrongOrDown,
    ),
    security(("token" = []))
)]
async fn change(
    Admin(by): Admin,
    State(app): State<Arc<App>>,
    name: Result<Path<String>, PathRejection>,
    query: Query,
    request: HttpRequest<Body>,
) -> Result<Response, Problem> {
    let name = caller_name(name)?;
    let dry_run = query.only(&["dry_run"])?.flag("dry_run")?;
    let bytes = read(&app, request, app.limits.body_bytes_max).await?;
    let Object(body): Object<CallerPatch<'_>> = parse(&bytes)?;
    let change = body.change(Timestamp::now())?;
    let database = writable(&app, dry_run)?;
    let uses = Uses::load(&database).await.map_err(failed)?;
    let changed = |before: &StoredCaller| Ok(change.apply(before));
    let stored = database.change_caller(&name, &by, changed).await.map_err(failed)?;
    let caller = CallerView::stored(&stored, &uses);
    if dry_run {
        return Ok(Json(caller.in_dry_run(false)).into_response());
    }
    log(&by, &stored, "caller changed");
    app.keeper.refresh().await;
    Ok(Json(caller).into_response())
}

/// Revokes a caller. This process refuses it when the answer is sent.
#[utoipa::path(
    delete,
    operation_id = "revoke_caller",
    path = "/v1/callers/{name}",
    params(CallerPath, DryRun, Reason),
    responses(
        (status = 204, description = "The caller was revoked"),
        (status = 200, description = "The caller that this dry run would revoke", body = CallerView),
        WrongOrDown,
    ),
    security(("token" = []))
)]
async fn revoke(
    Admin(by): Admin,
    State(app): State<Arc<App>>,
    name: Result<Path<String>, PathRejection>,
    query: Query,
) -> Result<Response, Problem> {
    let name = caller_name(name)?;
    let dry_run = query.only(&["dry_run"])?.flag("dry_run")?;
    let database = writable(&app, dry_run)?;
    let uses = Uses::load(&database).await.map_err(failed)?;
    let revoked = database.delete_caller(&name, &by).await.map_err(failed)?;
    if dry_run {
        let caller = CallerView::stored(&revoked, &uses).in_dry_run(false);
        return Ok(Json(caller).into_response());
    }
    log(&by, &revoked, "caller revoked");
    app.keeper.refresh().await;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Logs a change with its author. Neither token nor hash is logged.
fn log(by: &Author, caller: &StoredCaller, what: &str) {
    info!(
        by = by.name,
        caller = caller.name,
        rights = %caller.rights,
        namespace = caller.namespace,
        certificate = caller.certificate,
        expires_at = caller.expires_at.map(|time| time.to_string()),
        "{what}"
    );
}

/// The database; for a dry run, its handle that rolls back.
fn writable(app: &App, dry_run: bool) -> Result<Database, Problem> {
    let database = app.keeper.database().map_err(failed)?;
    Ok(if dry_run { database.dry_run() } else { Database::clone(&database) })
}

/// Name in a path. Text that is not UTF-8 is answered as not found.
fn caller_name(name: Result<Path<String>, PathRejection>) -> Result<String, Problem> {
    name.map(|Path(name)| name).map_err(|_| Problem::data(&DataError::NotFound("caller")))
}

fn no_randomness(error: &getrandom::Error) -> Problem {
    let detail = format!("the operating system has no random numbers: {error}; try again");
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, detail)
}

#[expect(clippy::needless_pass_by_value, reason = "signature required by map_err")]
fn failed(error: DataError) -> Problem {
    Problem::data(&error)
}
