//! `/v1/rules`: the rules, their history, and changing them.
//!
//! Rules of a database are read and changed there, and a change is in force in this process before the answer. Rules
//! of a file are shown as they are in force, and are changed in the file.

mod history;
mod replace;
mod write;

use std::sync::Arc;

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, put};
use axum::{Json, Router};
use serde::Serialize;
use sluicegate::{Rule, Scope};
use utoipa::{OpenApi, ToSchema};

pub(crate) use self::history::{ChangeList, ChangeView};
use crate::app::App;
use crate::data::{DataError, Database, Page, RuleFilter, StoredRule};
use crate::json::rule::RuleView;
use crate::json::schema::ScopeName;
use crate::rules::source::RulesSource;
use crate::web::access::Reader;
use crate::web::body::storable;
use crate::web::etag::{Versions, etag};
use crate::web::openapi::parts::{IfNoneMatch, RulePath, WrongOrDown};
use crate::web::problem::Problem;
use crate::web::query::Query;

/// A page of rules, and the state of the set in force.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RuleList {
    /// Rules by id.
    rules: Vec<RuleView>,
    /// Cursor of the next page, for `after`; null on the last page.
    next: Option<String>,
    /// Version of the set in force: this process counts its sets from 1.
    #[schema(minimum = 1)]
    version: u64,
    /// Source of the rules: URL of a database, path of a file, or `starter`.
    source: String,
    /// Reason why the latest version in the source was rejected, while the last valid set stays in force; null if it
    /// was not rejected.
    refused: Option<String>,
}

#[derive(OpenApi)]
#[openapi(paths(
    list,
    one,
    write::create,
    replace::replace_all,
    write::replace,
    write::patch,
    write::delete,
    history::of_all,
    history::of_one,
))]
struct Document;

/// Routes of `/v1/rules`.
pub(crate) fn routes() -> Router<Arc<App>> {
    Router::new()
        .route("/v1/rules", get(list).post(write::create))
        .route(
            "/v1/rules/{id}",
            get(one).put(write::replace).patch(write::patch).delete(write::delete),
        )
        .route("/v1/rules/changes", get(history::of_all))
        .route("/v1/rules/{id}/changes", get(history::of_one))
}

/// Route of the import, whose body may be much longer than others and is read only after authorisation.
pub(super) fn import_routes() -> Router<Arc<App>> {
    Router::new().route("/v1/rules", put(replace::replace_all))
}

/// OpenAPI document of `/v1/rules`.
pub(crate) fn document() -> utoipa::openapi::OpenApi {
    Document::openapi()
}

/// Lists rules by id, with the state of the set in force.
#[utoipa::path(
    get,
    operation_id = "list_rules",
    path = "/v1/rules",
    params(
        ("plan" = Option<String>, Query, description = "Only rules for this plan; empty for rules for every plan"),
        ("scope" = Option<ScopeName>, Query, description = "Only rules with this scope"),
        ("is_active" = Option<bool>, Query, description = "Only active or only inactive rules"),
        ("after" = Option<u64>, Query, description = "Cursor: `next` of the previous page"),
        ("limit" = Option<u64>, Query, minimum = 1, maximum = 1000, description = "Page size; 100 by default"),
    ),
    responses(
        (status = 200, description = "Rules", body = RuleList),
        WrongOrDown,
    ),
    security(("token" = []))
)]
async fn list(_: Reader, State(app): State<Arc<App>>, query: Query) -> Result<Response, Problem> {
    let query = query.only(&["plan", "scope", "is_active", "after", "limit"])?;
    let filter = filter(&query)?;
    let Page { after, limit } = query.page()?;
    // One more than the page: its presence means that there is a next page.
    let page = Page { after, limit: limit + 1 };
    let mut rules = match stored(&app)? {
        Some(database) => {
            let rules = database.rules(&filter, page).await;
            rules.map_err(|error| Problem::data(&error))?.iter().map(StoredRule::view).collect()
        }
        None => in_force(&app, &filter, page),
    };
    let has_more = rules.len() > limit;
    rules.truncate(limit);
    let next = rules.last().filter(|_| has_more).map(RuleView::rule_id);
    let list = RuleList {
        rules,
        next: next.map(|rule_id| rule_id.to_string()),
        version: app.limiter.rules().version(),
        source: app.keeper.source().to_string(),
        refused: app.keeper.status().all_refused(),
    };
    Ok(Json(list).into_response())
}

/// Gets a rule.
#[utoipa::path(
    get,
    operation_id = "get_rule",
    path = "/v1/rules/{id}",
    params(RulePath, IfNoneMatch),
    responses(
        (status = 200, description = "The rule", body = RuleView,
            headers(("etag" = String, description = "Its version, for `If-Match`"))),
        (status = 304, description = "The rule still has the version in `If-None-Match`",
            headers(("etag" = String, description = "Its version"))),
        WrongOrDown,
    ),
    security(("token" = []))
)]
async fn one(
    _: Reader,
    State(app): State<Arc<App>>,
    id: Result<Path<String>, PathRejection>,
    query: Query,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let rule_id = rule_id(id)?;
    query.only(&[])?;
    let known = Versions::if_none_match(&headers)?;
    let rule = match stored(&app)? {
        Some(database) => {
            let rule = database.rule(rule_id).await.map_err(|error| Problem::data(&error))?;
            rule.view()
        }
        None => {
            let rules = app.limiter.rules();
            RuleView::in_force(rules.get(rule_id).ok_or_else(no_such_rule)?)
        }
    };
    if known.is_some_and(|known| known.contain(rule.version())) {
        let etag = [(header::ETAG, etag(rule.version()))];
        return Ok((StatusCode::NOT_MODIFIED, etag).into_response());
    }
    Ok(tagged(StatusCode::OK, rule))
}

/// Answers with a rule and its version as `ETag`.
fn tagged(status: StatusCode, rule: RuleView) -> Response {
    (status, [(header::ETAG, etag(rule.version()))], Json(rule)).into_response()
}

/// The database, if rules come from it.
fn stored(app: &App) -> Result<Option<Arc<Database>>, Problem> {
    match app.keeper.source() {
        RulesSource::Starter | RulesSource::File(_) => Ok(None),
        RulesSource::Database(_) => {
            app.keeper.database().map(Some).map_err(|error| Problem::data(&error))
        }
    }
}

/// Page of the rules in force that match the filter.
fn in_force(app: &App, filter: &RuleFilter, Page { after, limit }: Page) -> Vec<RuleView> {
    let is_meant = |rule: &&Rule| {
        after.is_none_or(|after| rule.rule_id() > after)
            && filter.plan.as_ref().is_none_or(|plan| rule.plan().unwrap_or_default() == plan)
            && filter.scope.as_ref().is_none_or(|scope| rule.scope().name() == scope)
            && filter.is_active.is_none_or(|is_active| rule.is_active() == is_active)
    };
    let rules = app.limiter.rules();
    rules.rules().iter().filter(is_meant).take(limit).map(RuleView::in_force).collect()
}

fn filter(query: &Query) -> Result<RuleFilter, Problem> {
    let scope = query.text("scope");
    if let Some(Err(error)) = scope.map(str::parse::<Scope>) {
        return Err(Problem::field("scope", error));
    }
    storable("plan", query.text("plan").unwrap_or_default())?;
    Ok(RuleFilter {
        plan: query.text("plan").map(Into::into),
        scope: scope.map(Into::into),
        is_active: query.value("is_active", "true or false")?,
    })
}

/// Parses the id in a path. Text that is not a number is answered as not found.
fn rule_id(id: Result<Path<String>, PathRejection>) -> Result<u64, Problem> {
    let id = id.ok().and_then(|Path(id)| id.parse().ok());
    id.ok_or_else(no_such_rule)
}

fn no_such_rule() -> Problem {
    Problem::data(&DataError::NotFound("rule"))
}
