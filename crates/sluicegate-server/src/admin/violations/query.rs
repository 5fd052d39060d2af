//! Query parameters of violations.

use axum::http::{HeaderMap, header};
use sluicegate::UnknownName;

use super::view::{TopBy, ViolationFormat, ViolationMode};
use crate::data::{ViolationFilter, ViolationOrder};
use crate::observe::audit::{Audit, record};
use crate::time::Timestamp;
use crate::web::problem::Problem;
use crate::web::query::Query;

/// Parameters of the list.
pub(super) const LIST: [&str; 11] = [
    "user_id",
    "ip",
    "endpoint",
    "bucket_key",
    "rule_id",
    "mode",
    "from",
    "to",
    "after",
    "limit",
    "format",
];
/// Parameters of the top offenders.
pub(super) const TOP: [&str; 6] = ["by", "rule_id", "mode", "from", "to", "limit"];
/// Parameters of the deletion.
pub(super) const SUBJECT: [&str; 3] = ["user_id", "ip", "bucket_key"];

/// Parses the filter, with ids and addresses pseudonymised as they are recorded.
pub(super) fn filter(query: &Query, audit: &Audit) -> Result<ViolationFilter, Problem> {
    let text = |name| query.text(name).map(str::to_owned);
    let time = |name| query.value::<Timestamp>(name, "a time such as 2026-08-01T12:00:00Z");
    let mode = query.text("mode").map(str::parse::<ViolationMode>).transpose();
    let mode = mode.map_err(|error| Problem::field("mode", error))?;
    let is_shadow = mode.map(|mode| mode == ViolationMode::Shadow);
    let filter = ViolationFilter {
        user_id: text("user_id"),
        ip_address: text("ip"),
        endpoint: text("endpoint"),
        bucket_key: text("bucket_key"),
        rule_id: query.value("rule_id", "a whole number")?,
        is_shadow,
        from: time("from")?,
        to: time("to")?,
    };
    let no_address = || Problem::field("ip", "is not an address");
    record::filter(audit.pseudonyms(), filter).ok_or_else(no_address)
}

/// Parses the attribute to group by.
pub(super) fn by(query: &Query) -> Result<TopBy, Problem> {
    let Some(text) = query.text("by") else {
        let names = TopBy::NAMES.join(", ");
        return Err(Problem::field("by", format_args!("is missing: one of {names}")));
    };
    text.parse().map_err(|error: UnknownName| Problem::field("by", error))
}

/// Chooses the format: `format`, or else the first known type in `Accept`.
pub(in crate::admin) fn format(
    query: &Query,
    headers: &HeaderMap,
) -> Result<ViolationFormat, Problem> {
    match query.text("format") {
        Some("csv") => return Ok(ViolationFormat::Csv),
        Some("json") => return Ok(ViolationFormat::Json),
        Some(_) => {
            return Err(Problem::field("format", "must be one of json, csv"));
        }
        None => {}
    }
    let accepted = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let mut kinds = accepted.flat_map(|value| value.split(','));
    let first = kinds.find_map(|kind| match kind.split(';').next()?.trim() {
        kind if kind.eq_ignore_ascii_case("text/csv") => Some(ViolationFormat::Csv),
        kind if kind.eq_ignore_ascii_case("application/json") => Some(ViolationFormat::Json),
        _ => None,
    });
    Ok(first.unwrap_or(ViolationFormat::Json))
}

/// Parses the cursor.
pub(super) fn after(query: &Query) -> Result<Option<ViolationOrder>, Problem> {
    let wrong = |error| Problem::field("after", error);
    query.text("after").map(|text| text.parse().map_err(wrong)).transpose()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(text: &str) -> Query {
        Query::parse(text)
    }

    #[test]
    fn csv_is_asked_for_by_name() {
        let accepting =
            |value: &str| HeaderMap::from_iter([(header::ACCEPT, value.parse().unwrap())]);
        for (value, expected) in [
            ("text/csv", ViolationFormat::Csv),
            ("TEXT/CSV;q=0.9, */*", ViolationFormat::Csv),
            ("*/*", ViolationFormat::Json),
            ("application/json, text/csv", ViolationFormat::Json),
            ("text/html", ViolationFormat::Json),
        ] {
            assert_eq!(format(&query(""), &accepting(value)), Ok(expected), "{value}");
        }
        assert_eq!(
            format(&query("format=json"), &accepting("text/csv")),
            Ok(ViolationFormat::Json)
        );
        assert_eq!(format(&query("format=csv"), &HeaderMap::new()), Ok(ViolationFormat::Csv));
        assert!(format(&query("format=xml"), &HeaderMap::new()).is_err());
    }
}
