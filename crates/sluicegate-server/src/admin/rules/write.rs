//! Making, changing and deleting rules.

use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, Request as HttpRequest, StatusCode, header};
use axum::response::{IntoResponse, Response};
use sluicegate::rules::{FieldError, RULES_MAX, RuleSetError, RuleSpec};
use tracing::info;

use super::columns::Columns;
use super::schema::{NewRule, RulePatch};
use super::view::RuleView;
use super::{rule_id, stored, tagged};
use crate::app::{App, RequestLimits};
use crate::data::{DataError, Database, Page, RuleFilter, StoredRule};
use crate::rules::source::RulesSource;
use crate::web::access::Admin;
use crate::web::body::{self, Object};
use crate::web::etag::Versions;
use crate::web::openapi::parts::{DryRun, IfMatch, RulePath, WrongOrDown};
use crate::web::problem::Problem;
use crate::web::query::Query;

/// How often a change is tried if others change the same meanwhile.
pub(super) const TRIES_MAX: usize = 8;

/// Makes a rule. It is in force here when the answer comes.
#[utoipa::path(
    post,
    operation_id = "create_rule",
    path = "/v1/rules",
    params(DryRun),
    request_body = NewRule,
    responses(
        (status = 201, description = "The rule that was made", body = RuleView,
            headers(
                ("location" = String, description = "Where it is"),
                ("etag" = String, description = "Its version, for `If-Match`"),
            )),
        (status = 200, description = "The rule that would be made, in a dry run", body = RuleView),
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
    let bytes = read(&app.limits, request).await?;
    let Object(columns): Object<Columns<'_>> = body::parse(&bytes)?;
    let spec = columns.rule(0).map_err(|wrong| Problem::fields(&wrong))?;
    let database = writable(&app)?;
    if dry_run {
        clashes(&database, &spec, None).await.map_err(|error| Problem::data(&error))?;
        return Ok(would_be(RuleView::new(&spec, None, 1)));
    }
    let rule = database.create_rule(&spec, &by).await.map_err(|error| Problem::data(&error))?;
    log(&by, rule.spec.rule_id, rule.version, "rule created");
    app.keeper.refresh().await;
    let location = [(header::LOCATION, format!("/v1/rules/{}", rule.spec.rule_id))];
    Ok((location, tagged(StatusCode::CREATED, RuleView::stored(&rule))).into_response())
}

/// Replaces a rule, all its columns.
#[utoipa::path(
    put,
    operation_id = "replace_rule",
    path = "/v1/rules/{id}",
    params(RulePath, DryRun, IfMatch),
    request_body = NewRule,
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
    let bytes = read(&app.limits, request).await?;
    let Object(columns): Object<Columns<'_>> = body::parse(&bytes)?;
    let spec = columns.rule(change.rule_id).map_err(|wrong| Problem::fields(&wrong))?;
    change.make(&app, &by, &columns, |_| Ok(spec.clone())).await
}

/// Changes columns of a rule.
#[utoipa::path(
    patch,
    operation_id = "patch_rule",
    path = "/v1/rules/{id}",
    params(RulePath, DryRun, IfMatch),
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
    let bytes = read(&app.limits, request).await?;
    let Object(columns): Object<Columns<'_>> = body::parse(&bytes)?;
    let patched =
        |rule: &StoredRule| columns.patch(&rule.spec).map_err(|wrong| Problem::fields(&wrong));
    change.make(&app, &by, &columns, patched).await
}

/// Deletes a rule, and its overrides with it.
#[utoipa::path(
    delete,
    operation_id = "delete_rule",
    path = "/v1/rules/{id}",
    params(RulePath, DryRun, IfMatch),
    responses(
        (status = 204, description = "There is no such rule any more"),
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
    let version = change.expected(&current, None).map_err(failed)?;
    if change.dry_run {
        return Ok(would_be(RuleView::stored(&current)));
    }
    change.database.delete_rule(change.rule_id, version, &by).await.map_err(failed)?;
    log(&by, change.rule_id, current.version, "rule deleted");
    app.keeper.refresh().await;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// A change of a rule that is asked for.
struct Change {
    database: Arc<Database>,
    rule_id: u64,
    dry_run: bool,
    if_match: Option<Versions>,
}

impl Change {
    /// What the request says in front of its body.
    fn read(
        app: &App,
        id: Result<Path<String>, PathRejection>,
        query: Query,
        headers: &HeaderMap,
    ) -> Result<Self, Problem> {
        let rule_id = rule_id(id)?;
        let dry_run = query.only(&["dry_run"])?.flag("dry_run")?;
        let if_match = Versions::if_match(headers)?;
        Ok(Self { database: writable(app)?, rule_id, dry_run, if_match })
    }

    /// Changes the rule, and answers what it is then.
    async fn make(
        &self,
        app: &App,
        by: &str,
        columns: &Columns<'_>,
        changed: impl Fn(&StoredRule) -> Result<RuleSpec, Problem>,
    ) -> Result<Response, Problem> {
        let failed = |error| Problem::data(&error);
        for _ in 0..TRIES_MAX {
            let current = self.database.rule(self.rule_id).await.map_err(failed)?;
            let expected = self.expected(&current, columns.version()).map_err(failed)?;
            let spec = changed(&current)?;
            if self.dry_run {
                clashes(&self.database, &spec, Some(self.rule_id)).await.map_err(failed)?;
                // A change that changes nothing is none.
                let is_new = spec.build() != current.spec.build();
                let version = current.version + u64::from(is_new);
                return Ok(would_be(RuleView::new(&spec, Some(current.created_at), version)));
            }
            // What was read is what is changed, whether or not anybody asked for that.
            match self.database.update_rule(&spec, Some(current.version), by).await {
                Err(DataError::Stale { .. }) if expected.is_none() => {}
                updated => {
                    let rule = updated.map_err(failed)?;
                    log(by, self.rule_id, rule.version, "rule changed");
                    app.keeper.refresh().await;
                    return Ok(tagged(StatusCode::OK, RuleView::stored(&rule)));
                }
            }
        }
        Err(others_keep_changing())
    }

    /// The version that the rule must still have when it is changed, if one is asked for.
    fn expected(
        &self,
        current: &StoredRule,
        in_body: Option<u64>,
    ) -> Result<Option<u64>, DataError> {
        let in_body = in_body.map(|version| Versions::Of(vec![version]));
        let asked = [self.if_match.as_ref(), in_body.as_ref()];
        for versions in asked.into_iter().flatten() {
            versions.require(current.version)?;
        }
        let is_asked = asked.into_iter().flatten().any(|versions| *versions != Versions::Any);
        Ok(is_asked.then_some(current.version))
    }
}

/// Writes to the log who did what; what it was before and after is in the history.
fn log(by: &str, rule_id: u64, version: u64, what: &str) {
    info!(by, rule_id, version, "{what}");
}

/// The body of a rule.
async fn read(limits: &RequestLimits, request: HttpRequest<Body>) -> Result<bytes::Bytes, Problem> {
    body::read(request, limits.body_bytes_max, limits.body_timeout).await
}

pub(super) fn others_keep_changing() -> Problem {
    Problem::new(StatusCode::CONFLICT, "others keep changing this: try again")
}

/// The database, if rules can be changed there.
pub(crate) fn writable(app: &App) -> Result<Arc<Database>, Problem> {
    if let Some(database) = stored(app)? {
        return Ok(database);
    }
    let detail = match app.keeper.source() {
        RulesSource::File(path) => {
            format!("the rules come from {}: change them there", path.display())
        }
        _ => "the starter rules are in force, which nobody can change".into(),
    };
    Err(Problem::new(StatusCode::CONFLICT, detail))
}

/// Whether this rule can be among the others, in the place of `replaced` if it replaces one.
async fn clashes(
    database: &Database,
    spec: &RuleSpec,
    replaced: Option<u64>,
) -> Result<(), DataError> {
    let all = Page { after: None, limit: RULES_MAX + 1 };
    let rules = database.rules(&RuleFilter::default(), all).await?;
    let others = || rules.iter().map(|rule| &rule.spec).filter(|o| Some(o.rule_id) != replaced);
    let conflict = |field, detail: String| Err(DataError::Conflict { field, detail });
    let count = others().count() + 1;
    if count > RULES_MAX {
        let reason = RuleSetError::TooMany { rules: count }.to_string();
        let too_many = FieldError { field: "rules", of: None, at: None, reason };
        return Err(DataError::Refused(vec![too_many]));
    }
    if others().any(|other| other.rule_id == spec.rule_id) {
        return conflict("rule_id", format!("there is a rule {} already", spec.rule_id));
    }
    let is_same =
        |other: &&RuleSpec| (&other.key_pattern, &other.plan) == (&spec.key_pattern, &spec.plan);
    match others().find(is_same) {
        Some(other) => {
            let detail = format!("rule {} has the same key pattern and plan", other.rule_id);
            conflict("key_pattern", detail)
        }
        None => Ok(()),
    }
}

/// The answer to a dry run.
fn would_be(rule: RuleView) -> Response {
    Json(rule.in_dry_run()).into_response()
}
