//! `/v1/history`: acts of the administration, and sums of failed sign-ins and refunds.

pub(crate) mod csv;
mod view;

use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use sluicegate::UnknownName;
use utoipa::OpenApi;

use self::view::ActName;
pub(crate) use self::view::{HistoryList, HistoryView};
use super::violations::{NEXT, ViolationFormat, format};
use crate::app::App;
use crate::data::{DataError, HistoryFilter};
use crate::observe::audit::Pseudonyms;
use crate::time::Timestamp;
use crate::web::access::Reader;
use crate::web::openapi::parts::WrongOrDown;
use crate::web::problem::Problem;
use crate::web::query::Query;

/// Parameters of the list.
const PARAMETERS: [&str; 10] =
    ["act", "who", "rule_id", "subject", "target", "from", "to", "after", "limit", "format"];

#[derive(OpenApi)]
#[openapi(paths(list), components(schemas(ActName)))]
struct Document;

/// Routes of `/v1/history`.
pub(crate) fn routes() -> Router<Arc<App>> {
    Router::new().route("/v1/history", get(list))
}

/// OpenAPI document of `/v1/history`.
pub(crate) fn document() -> utoipa::openapi::OpenApi {
    Document::openapi()
}

/// Lists acts, newest first: changes of rules, overrides, tokens and callers, also by SQL; resets, grants and refunds;
/// deletions of violations. Failed sign-ins and refunds of callers are sums of a minute.
///
/// Where ids and addresses are recorded truncated or hashed, filters accept both the original value and the value as
/// recorded. The answer is CSV if `format` is `csv`, or if `Accept` names `text/csv` first.
#[utoipa::path(
    get,
    operation_id = "list_history",
    path = "/v1/history",
    params(
        ("act" = Option<ActName>, Query, description = "Only acts of this kind"),
        ("who" = Option<String>, Query, description = "Only acts of this author, such as `token:ops`"),
        ("rule_id" = Option<u64>, Query, minimum = 0, description = "Only acts on this rule, its overrides and buckets"),
        ("subject" = Option<String>, Query, description = "Only acts on this subject of a rule"),
        ("target" = Option<String>, Query, description = "Only acts on this token, caller or bucket key, or failed sign-ins at this listener. Bucket keys match as recorded: where ids or addresses are hashed or truncated, use `rule_id` and `subject`"),
        ("from" = Option<String>, Query, format = DateTime, description = "Only acts at this time or later"),
        ("to" = Option<String>, Query, format = DateTime, description = "Only acts before this time"),
        ("after" = Option<String>, Query, pattern = "^[0-9a-f]{1,16}-[0-9a-f]{1,16}$", description = "Cursor: `next` of the previous page"),
        ("limit" = Option<u64>, Query, minimum = 1, maximum = 1000, description = "Page size; 100 by default"),
        ("format" = Option<ViolationFormat>, Query, description = "Format of the answer; `json` by default"),
    ),
    responses(
        (status = 200, description = "Acts",
            content((HistoryList = "application/json"), (String = "text/csv")),
            headers(("x-sluicegate-next" = String, description = "Cursor of the next page; only in CSV and if there is one"))),
        WrongOrDown,
    ),
    security(("token" = []))
)]
async fn list(
    _: Reader,
    State(app): State<Arc<App>>,
    headers: HeaderMap,
    query: Query,
) -> Result<Response, Problem> {
    let query = query.only(&PARAMETERS)?;
    let filter = filter(&query, app.audit.pseudonyms())?;
    let wrong = |error| Problem::field("after", error);
    let after = query.text("after").map(|text| text.parse().map_err(wrong)).transpose()?;
    let limit = query.limit()?;
    let format = format(&query, &headers)?;
    let failed = |error: DataError| Problem::data(&error);
    let database = app.keeper.database().map_err(failed)?;
    // One more than the page: its presence means that there is a next page.
    let found = database.history(&filter, after, limit + 1).await.map_err(failed)?;
    let list = HistoryList::new(found, limit);
    if format == ViolationFormat::Json {
        return Ok(Json(list).into_response());
    }
    let kind = HeaderValue::from_static("text/csv; charset=utf-8; header=present");
    let mut response = ([(header::CONTENT_TYPE, kind)], csv::write(&list.history)).into_response();
    if let Some(next) = list.next.and_then(|next| HeaderValue::try_from(next).ok()) {
        response.headers_mut().insert(NEXT, next);
    }
    Ok(response)
}

/// Parses the filter.
fn filter(query: &Query, pseudonyms: &Pseudonyms) -> Result<HistoryFilter, Problem> {
    let time = |name| query.value::<Timestamp>(name, "a time such as 2026-08-01T12:00:00Z");
    let act = query.text("act").map(str::parse).transpose();
    let forms = |name| query.text(name).map(|text| forms(pseudonyms, text)).unwrap_or_default();
    Ok(HistoryFilter {
        act: act.map_err(|error: UnknownName| Problem::field("act", error))?,
        who: query.text("who").map(str::to_owned),
        rule_id: query.value("rule_id", "a whole number")?,
        subject: forms("subject"),
        target: forms("target"),
        from: time("from")?,
        to: time("to")?,
    })
}

/// Forms in which a subject or a target may be recorded: as it is, or as an id or an address.
fn forms(pseudonyms: &Pseudonyms, text: &str) -> Vec<String> {
    let mut forms = vec![text.to_owned(), pseudonyms.id(text).into_owned()];
    if let Ok(address) = text.parse::<IpAddr>() {
        // Addresses are recorded in canonical form.
        let address = address.to_canonical().to_string();
        forms.push(pseudonyms.ip(&address).into_owned());
        forms.push(address);
    }
    forms.dedup();
    forms
}
