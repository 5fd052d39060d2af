//! Creating, changing and deleting rules.

use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, Request as HttpRequest, StatusCode, header};
use axum::response::{IntoResponse, Response};
use sluicegate::rules::RuleSpec;
use tracing::info;

use super::{rule_id, stored, tagged};
use crate::app::App;
use crate::data::{Author, DataError, Database, StoredRule};
use crate::json::Object;
use crate::json::rule::{Columns, RulePatch, RuleView};
use crate::rules::source::RulesSource;
use crate::web::access::Admin;
use crate::web::body;
use crate::web::etag::Versions;
use crate::web::openapi::parts::{DryRun, IfMatch, Reason, RulePath, WrongOrDown};
use crate::web::problem::Problem;
use crate::web::query::Query;

/// Creates a rule. It is in force in this process before the answer.
#[utoipa::path(
    post,
    operation_id = "create_rule",
    path = "/v1/rules",
    params(DryRun, Reason),
    request_body = Columns,
    responses(
        (status = 201, description = "The rule that was created", body = RuleView,
            headers(
                ("location" = String, description = "Its path"),
                ("etag" = String, description = "Its version, for `If-Match`"),
            )),
        (status = 200, description = "The rule that would be created, in a dry run", body = RuleView),
        WrongOrDown,
    ),
    security(("token" = []))
)]
pub(super) async fn create(
    Admin(by): Admin,
    State(app): State<Arc<App>>,
    query: Query,
    request: HttpRequest<Body>,
) -> Result<Response, Problem> {
    let dry_run = query.only(&["dry_run"])?.flag("dry_run")?;
    let bytes = read(&app, request).await?;
    let Object(columns): Object<Columns<'_>> = body::parse(&bytes)?;
    let spec = columns.rule(0).map_err(|wrong| Problem::fields(&wrong))?;
    let database = writable(&app, dry_run)?;
    let rule = database.create_rule(&spec, &by).await.map_err(|error| Problem::data(&error))?;
    if dry_run {
        return Ok(would_be(&rule));
    }
    log(&by, &rule, "rule created");
    app.keeper.refresh().await;
    let location = [(header::LOCATION, format!("/v1/rules/{}", rule.spec.rule_id))];
    Ok((location, tagged(StatusCode::CREATED, rule.view())).into_response())
}

/// Replaces a rule, all its columns.
#[utoipa::path(
    put,
    operation_id = "replace_rule",
    path = "/v1/rules/{id}",
    params(RulePath, DryRun, IfMatch, Reason),
    request_body = Columns,
    responses(
        (status = 200, description = "The rule as it is now, or would be in a dry run", body = RuleView,
            headers(("etag" = String, description = "Its version, for `If-Match`"))),
        WrongOrDown,
    ),
    security(("token" = []))
)]
pub(super) async fn replace(
    Admin(by): Admin,
    State(app): State<Arc<App>>,
    id: Result<Path<String>, PathRejection>,
    query: Query,
    request: HttpRequest<Body>,
) -> Result<Response, Problem> {
    let change = Change::read(&app, id, query, request.headers())?;
    let bytes = read(&app, request).await?;
    let Object(columns): Object<Columns<'_>> = body::parse(&bytes)?;
    let spec = columns.rule(change.rule_id).map_err(|wrong| Problem::fields(&wrong))?;
    change.make(&app, &by, columns.version(), |_| Ok(spec)).await
}

/// Changes columns of a rule.
#[utoipa::path(
    patch,
    operation_id = "patch_rule",
    path = "/v1/rules/{id}",
    params(RulePath, DryRun, IfMatch, Reason),
    request_body(content(
        (RulePatch = "application/json"),
        (RulePatch = "application/merge-patch+json"),
    )),
    responses(
        (status = 200, description = "The rule as it is now, or would be in a dry run", body = RuleView,
            headers(("etag" = String, description = "Its version, for `If-Match`"))),
        WrongOrDown,
    ),
    security(("token" = []))
)]
pub(super) async fn patch(
    Admin(by): Admin,
    State(app): State<Arc<App>>,
    id: Result<Path<String>, PathRejection>,
    query: Query,
    request: HttpRequest<Body>,
) -> Result<Response, Problem> {
    let change = Change::read(&app, id, query, request.headers())?;
    let bytes = read(&app, request).await?;
    let Object(RulePatch(columns)): Object<RulePatch<'_>> = body::parse(&bytes)?;
    let patched = |rule: &RuleSpec| columns.patch(rule).map_err(DataError::Refused);
    change.make(&app, &by, columns.version(), patched).await
}

/// Deletes a rule, and its overrides with it.
#[utoipa::path(
    delete,
    operation_id = "delete_rule",
    path = "/v1/rules/{id}",
    params(RulePath, DryRun, IfMatch, Reason),
    responses(
        (status = 204, description = "The rule is deleted"),
        (status = 200, description = "The rule that would be deleted, in a dry run", body = RuleView),
        WrongOrDown,
    ),
    security(("token" = []))
)]
pub(super) async fn delete(
    Admin(by): Admin,
    State(app): State<Arc<App>>,
    id: Result<Path<String>, PathRejection>,
    query: Query,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let change = Change::read(&app, id, query, &headers)?;
    let failed = |error| Problem::data(&error);
    let current = change.database.rule(change.rule_id).await.map_err(failed)?;
    change.require(&current, None).map_err(failed)?;
    let version = change.if_match.as_ref().is_some_and(|versions| *versions != Versions::Any);
    let version = version.then_some(current.version);
    let deleted = change.database.delete_rule(change.rule_id, version, &by).await;
    let deleted = deleted.map_err(failed)?;
    if change.dry_run {
        return Ok(would_be(&deleted));
    }
    log(&by, &deleted, "rule deleted");
    app.keeper.refresh().await;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// A requested change of a rule.
struct Change {
    database: Database,
    rule_id: u64,
    dry_run: bool,
    if_match: Option<Versions>,
}

impl Change {
    /// Parses path, query and header fields.
    fn read(
        app: &App,
        id: Result<Path<String>, PathRejection>,
        query: Query,
        headers: &HeaderMap,
    ) -> Result<Self, Problem> {
        let rule_id = rule_id(id)?;
        let dry_run = query.only(&["dry_run"])?.flag("dry_run")?;
        let if_match = Versions::if_match(headers)?;
        Ok(Self { database: writable(app, dry_run)?, rule_id, dry_run, if_match })
    }

    /// Changes the rule in one transaction, which a dry run rolls back, and answers with the rule after it.
    async fn make(
        &self,
        app: &App,
        by: &Author,
        version: Option<u64>,
        changed: impl FnOnce(&RuleSpec) -> Result<RuleSpec, DataError>,
    ) -> Result<Response, Problem> {
        let change = |current: &StoredRule| {
            self.require(current, version)?;
            changed(&current.spec)
        };
        let rule = self.database.change_rule(self.rule_id, by, change).await;
        let rule = rule.map_err(|error| Problem::data(&error))?;
        if self.dry_run {
            return Ok(would_be(&rule));
        }
        log(by, &rule, "rule changed");
        app.keeper.refresh().await;
        Ok(tagged(StatusCode::OK, rule.view()))
    }

    /// Rejects a rule whose version is not that of `If-Match` and of the body.
    fn require(&self, current: &StoredRule, in_body: Option<u64>) -> Result<(), DataError> {
        let in_body = in_body.map(|version| Versions::Of(vec![version]));
        let mut required = self.if_match.iter().chain(&in_body);
        required.try_for_each(|versions| versions.require(current.version))
    }
}

/// Logs author and rule; the columns before and after are in the history.
fn log(by: &Author, rule: &StoredRule, what: &str) {
    info!(by = by.name, rule_id = rule.spec.rule_id, version = rule.version, "{what}");
}

/// The body of a rule.
async fn read(app: &App, request: HttpRequest<Body>) -> Result<bytes::Bytes, Problem> {
    body::read(app, request, app.limits.body_bytes_max).await
}

/// The database, if rules can be changed there; for a dry run, its handle that rolls back.
pub(super) fn writable(app: &App, dry_run: bool) -> Result<Database, Problem> {
    if let Some(database) = stored(app)? {
        return Ok(if dry_run { database.dry_run() } else { Database::clone(&database) });
    }
    let detail = match app.keeper.source() {
        RulesSource::File(path) => {
            format!("the rules come from {}: change them there", path.display())
        }
        _ => "the starter rules cannot be changed: configure a database or a file of rules".into(),
    };
    Err(Problem::new(StatusCode::CONFLICT, detail))
}

/// The answer to a dry run.
fn would_be(rule: &StoredRule) -> Response {
    Json(rule.view().in_dry_run(true)).into_response()
}
