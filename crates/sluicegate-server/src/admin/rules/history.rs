//! History of rules.

use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::rule_id;
use crate::app::App;
use crate::data::{DataError, Database, Page, RuleChange};
use crate::time::Timestamp;
use crate::web::access::Reader;
use crate::web::openapi::parts::{RulePath, WrongOrDown};
use crate::web::problem::Problem;
use crate::web::query::Query;

/// A page of changes.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
pub(crate) struct ChangeList {
    /// Newest first.
    pub(crate) changes: Vec<ChangeView>,
    /// Cursor of the next page, for `after`; null on the last page.
    pub(crate) next: Option<String>,
}

/// A change of a rule.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
#[schema(as = RuleChange)]
pub(crate) struct ChangeView {
    /// Id of the change, in ascending order of time.
    #[schema(minimum = 1)]
    pub(crate) change_id: u64,
    #[schema(minimum = 1)]
    pub(crate) rule_id: u64,
    /// Name of the caller that made it.
    pub(crate) changed_by: String,
    /// Time of the change.
    #[schema(value_type = String, format = DateTime)]
    pub(crate) changed_at: Timestamp,
    /// The rule before; null if it was created.
    #[schema(value_type = Option<Object>)]
    pub(crate) old: Option<serde_json::Value>,
    /// The rule after; null if it was deleted.
    #[schema(value_type = Option<Object>)]
    pub(crate) new: Option<serde_json::Value>,
}

/// Lists the changes of all rules, newest first.
#[utoipa::path(
    get,
    operation_id = "list_rule_changes",
    path = "/v1/rules/changes",
    params(
        ("after" = Option<u64>, Query, description = "Cursor: `next` of the previous page"),
        ("limit" = Option<u64>, Query, minimum = 1, maximum = 1000, description = "Page size; 100 by default"),
    ),
    responses(
        (status = 200, description = "Changes", body = ChangeList),
        WrongOrDown,
    ),
    security(("token" = []))
)]
pub(super) async fn of_all(
    _: Reader,
    State(app): State<Arc<App>>,
    query: Query,
) -> Result<Json<ChangeList>, Problem> {
    list(&app, None, query).await.map(Json)
}

/// Lists the changes of one rule, newest first, also of a deleted rule.
#[utoipa::path(
    get,
    operation_id = "list_changes_of_rule",
    path = "/v1/rules/{id}/changes",
    params(
        RulePath,
        ("after" = Option<u64>, Query, description = "Cursor: `next` of the previous page"),
        ("limit" = Option<u64>, Query, minimum = 1, maximum = 1000, description = "Page size; 100 by default"),
    ),
    responses(
        (status = 200, description = "Changes", body = ChangeList),
        WrongOrDown,
    ),
    security(("token" = []))
)]
pub(super) async fn of_one(
    _: Reader,
    State(app): State<Arc<App>>,
    id: Result<Path<String>, PathRejection>,
    query: Query,
) -> Result<Json<ChangeList>, Problem> {
    let rule_id = rule_id(id)?;
    list(&app, Some(rule_id), query).await.map(Json)
}

async fn list(app: &App, rule_id: Option<u64>, query: Query) -> Result<ChangeList, Problem> {
    let page = query.only(&["after", "limit"])?.page()?;
    let failed = |error| Problem::data(&error);
    let database = app.keeper.database().map_err(failed)?;
    ChangeList::read(&database, rule_id, page).await.map_err(failed)
}

impl ChangeList {
    /// A page of the changes of all rules, or of one.
    pub(crate) async fn read(
        database: &Database,
        rule_id: Option<u64>,
        Page { after, limit }: Page,
    ) -> Result<Self, DataError> {
        // One more than the page: its presence means that there is a next page.
        let page = Page { after, limit: limit + 1 };
        let mut changes = database.rule_changes(rule_id, page).await?;
        if let Some(rule_id) = rule_id.filter(|_| changes.is_empty()) {
            // A starter rule that was never changed has an empty history; a rule that never existed is not found.
            database.rule(rule_id).await?;
        }
        let has_more = changes.len() > limit;
        changes.truncate(limit);
        let next = changes.last().filter(|_| has_more).map(|change| change.change_id.to_string());
        Ok(Self { changes: changes.into_iter().map(ChangeView::from).collect(), next })
    }
}

impl From<RuleChange> for ChangeView {
    fn from(change: RuleChange) -> Self {
        let RuleChange { change_id, rule_id, changed_by, changed_at, old, new } = change;
        Self { change_id, rule_id, changed_by, changed_at, old, new }
    }
}
