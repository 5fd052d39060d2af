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

use super::columns::Columns;
use super::schema::NewRule;
use super::write::{TRIES_MAX, others_keep_changing, writable};
use crate::app::App;
use crate::data::DataError;
use crate::rules::diff::RulesDiff;
use crate::web::access::Admin;
use crate::web::body::{self, Object};
use crate::web::etag::{Versions, etag};
use crate::web::openapi::parts::{DryRun, WrongOrDown};
use crate::web::problem::Problem;
use crate::web::query::Query;

/// The longest body: enough for as many rules as there may be.
const SET_BYTES_MAX: usize = 16 << 20;

/// What is asked.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SetBody<'a> {
    #[serde(borrow)]
    rules: Vec<Object<Columns<'a>>>,
}

/// All the rules that there are to be.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "describes a body and is never made")]
pub(crate) struct NewRules {
    /// Those that have no `rule_id` take the place of the rule with their key pattern and plan, if there is one.
    #[schema(max_items = 10_000)]
    rules: Vec<NewRule>,
}

/// What was changed.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SetAnswer {
    #[serde(flatten)]
    diff: RulesDiff,
    /// True in a dry run, in which nothing was changed; else not there.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    dry_run: Option<bool>,
}

/// Makes these the rules, all or none, and says what that changes.
#[utoipa::path(
    put,
    operation_id = "replace_rules",
    path = "/v1/rules",
    params(
        DryRun,
        ("If-Match" = Option<String>, Header, description = "The version of all rules that is meant, as the \
            `ETag` of a dry run has it, or `*`"),
    ),
    request_body = NewRules,
    responses(
        (status = 200, description = "What was changed, or would be in a dry run", body = SetAnswer,
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
    let bytes = body::read(request, SET_BYTES_MAX, app.limits.body_timeout).await?;
    let Object(SetBody { rules }): Object<SetBody<'_>> = body::parse(&bytes)?;
    let specs = specs(&rules)?;
    let database = writable(&app)?;
    let failed = |error| Problem::data(&error);
    // Who asks for no version wants these rules, whatever there is.
    let may_try_again = if_match.as_ref().is_none_or(|versions| *versions == Versions::Any);
    for _ in 0..TRIES_MAX {
        let generation = database.generation().await.map_err(failed)?;
        if let Some(versions) = &if_match {
            versions.require(generation).map_err(failed)?;
        }
        let diff = RulesDiff::planned(&database, &specs).await.map_err(failed)?;
        if dry_run {
            return Ok(changed(diff, generation, true));
        }
        match database.replace_rules(&specs, Some(generation), &by).await {
            Err(DataError::Stale { .. }) if may_try_again => {}
            replaced => {
                replaced.map_err(failed)?;
                let (added, removed) = (diff.added.len(), diff.removed.len());
                info!(by, added, removed, changed = diff.changed.len(), "all rules replaced");
                app.keeper.refresh().await;
                let generation = database.generation().await.map_err(failed)?;
                return Ok(changed(diff, generation, false));
            }
        }
    }
    Err(others_keep_changing())
}

fn changed(diff: RulesDiff, generation: u64, dry_run: bool) -> Response {
    let answer = SetAnswer { diff, dry_run: dry_run.then_some(true) };
    (StatusCode::OK, [(header::ETAG, etag(generation))], Json(answer)).into_response()
}

/// The rules of a body. What is wrong is named with the rule that it is in.
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
