//! Who changed which rule, when and how.

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

/// Changes of rules.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
pub(crate) struct ChangeList {
    /// Newest first.
    pub(crate) changes: Vec<ChangeView>,
    /// Give this back as `after` for older ones; null if there are none.
    pub(crate) next: Option<String>,
}

/// A change of a rule.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
#[schema(as = RuleChange)]
pub(crate) struct ChangeView {
    /// Its number; they grow.
    #[schema(minimum = 1)]
    pub(crate) change_id: u64,
    #[schema(minimum = 1)]
    pub(crate) rule_id: u64,
    /// Who made it.
    pub(crate) changed_by: String,
    /// When.
    #[schema(value_type = String, format = DateTime)]
    pub(crate) changed_at: Timestamp,
    /// The rule before; null if it was made.
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
        ("after" = Option<u64>, Query, description = "What the page before has as `next`"),
        ("limit" = Option<u64>, Query, minimum = 1, maximum = 1000, description = "How many at most; 100 if not given"),
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

/// Lists the changes of one rule, newest first; also of one that was deleted.
#[utoipa::path(
    get,
    operation_id = "list_changes_of_rule",
    path = "/v1/rules/{id}/changes",
    params(
        RulePath,
        ("after" = Option<u64>, Query, description = "What the page before has as `next`"),
        ("limit" = Option<u64>, Query, minimum = 1, maximum = 1000, description = "How many at most; 100 if not given"),
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
        // One more than is shown tells whether there are more.
        let page = Page { after, limit: limit + 1 };
        let mut changes = database.rule_changes(rule_id, page).await?;
        if let Some(rule_id) = rule_id.filter(|_| changes.is_empty()) {
            // A rule that nobody has changed has no history; one that never was has no page.
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
