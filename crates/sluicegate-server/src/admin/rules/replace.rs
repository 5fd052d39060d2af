//! Replacing all rules at once, as an import does.

use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::{Request as HttpRequest, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use sluicegate::rules::{RULES_MAX, RuleSetError, RuleSpec};
use tracing::info;
use utoipa::ToSchema;

use super::write::writable;
use crate::app::App;
use crate::json::Object;
use crate::json::rule::Columns;
use crate::rules::diff::RulesDiff;
use crate::web::access::Admin;
use crate::web::body;
use crate::web::etag::{Versions, etag};
use crate::web::openapi::parts::{DryRun, Reason, WrongOrDown};
use crate::web::problem::Problem;
use crate::web::query::Query;

/// Maximum size of the body: enough for the maximum number of rules.
const SET_BYTES_MAX: usize = 16 << 20;

/// All rules: those that are not listed are deleted.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = NewRules)]
#[serde(deny_unknown_fields)]
struct SetBody<'a> {
    /// A rule without `rule_id` replaces the rule with its key pattern and plan, if there is one.
    #[serde(borrow)]
    #[schema(value_type = Vec<Columns>, max_items = 10_000)]
    rules: Vec<Object<Columns<'a>>>,
}

/// The difference that replacing all rules makes.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SetAnswer {
    #[serde(flatten)]
    diff: RulesDiff,
    /// True in a dry run, which changes nothing; else absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    dry_run: Option<bool>,
}

/// Replaces all rules, all or none, and answers with the difference.
#[utoipa::path(
    put,
    operation_id = "replace_rules",
    path = "/v1/rules",
    params(
        DryRun,
        Reason,
        ("If-Match" = Option<String>, Header, description = "The version of all rules that is meant, as the \
            `ETag` of a dry run has it, or `*`"),
    ),
    request_body = SetBody,
    responses(
        (status = 200, description = "The difference that was made, or would be in a dry run", body = SetAnswer,
            headers(("etag" = String, description = "The version of all rules, for `If-Match`"))),
        WrongOrDown,
    ),
    security(("token" = []))
)]
pub(super) async fn replace_all(
    Admin(by): Admin,
    State(app): State<Arc<App>>,
    query: Query,
    request: HttpRequest<Body>,
) -> Result<Response, Problem> {
    let dry_run = query.only(&["dry_run"])?.flag("dry_run")?;
    let if_match = Versions::if_match(request.headers())?;
    let bytes = body::read(&app, request, SET_BYTES_MAX).await?;
    let Object(SetBody { rules }): Object<SetBody<'_>> = body::parse(&bytes)?;
    let specs = specs(&rules)?;
    let database = writable(&app, dry_run)?;
    let failed = |error| Problem::data(&error);
    let expected = match &if_match {
        None | Some(Versions::Any) => None,
        Some(versions) => {
            let generation = database.generation().await.map_err(failed)?;
            versions.require(generation).map_err(failed)?;
            Some(generation)
        }
    };
    let replaced = database.replace_rules(&specs, expected, &by).await.map_err(failed)?;
    let diff = RulesDiff::of(&replaced);
    if !dry_run {
        let (added, removed) = (diff.added.len(), diff.removed.len());
        info!(by = by.name, added, removed, changed = diff.changed.len(), "all rules replaced");
        app.keeper.refresh().await;
    }
    let answer = SetAnswer { diff, dry_run: dry_run.then_some(true) };
    let tag = [(header::ETAG, etag(replaced.generation))];
    Ok((StatusCode::OK, tag, Json(answer)).into_response())
}

/// The rules of a body. An error names the position of its rule.
fn specs(rules: &[Object<Columns<'_>>]) -> Result<Vec<RuleSpec>, Problem> {
    if rules.len() > RULES_MAX {
        let too_many = RuleSetError::TooMany { rules: rules.len() };
        return Err(Problem::field("rules", too_many));
    }
    let one = |(position, Object(columns)): (usize, &Object<Columns<'_>>)| {
        let wrong = |wrong: Vec<_>| Problem::fields(&wrong).inside(&format!("rules[{position}]"));
        columns.rule(0).map_err(wrong)
    };
    rules.iter().enumerate().map(one).collect()
}
