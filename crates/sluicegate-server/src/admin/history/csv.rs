//! The history as CSV, escaped as violations are.

use std::borrow::Cow;

use serde_json::Value;

use super::view::HistoryView;
use crate::admin::violations::csv::{lines, neutral};

const COLUMNS: [&str; 13] = [
    "history_id",
    "at",
    "who",
    "act",
    "rule_id",
    "subject",
    "target",
    "before",
    "after",
    "address",
    "reason",
    "count",
    "outcome",
];

/// Header line with the column names.
pub(crate) fn header() -> String {
    lines([COLUMNS.map(Cow::Borrowed)])
}

/// Formats the header and the rows.
pub(crate) fn write(history: &[HistoryView]) -> String {
    header() + &rows(history)
}

/// Formats the rows without a header, for pages after the first.
pub(crate) fn rows(history: &[HistoryView]) -> String {
    lines(history.iter().map(fields))
}

fn fields(entry: &HistoryView) -> [Cow<'_, str>; 13] {
    let text = |text: &'_ Option<String>| neutral(text.as_deref().unwrap_or_default()).into_owned();
    let json = |value: &Option<Value>| {
        neutral(&value.as_ref().map(Value::to_string).unwrap_or_default()).into_owned()
    };
    [
        entry.history_id.to_string().into(),
        entry.at.to_string().into(),
        neutral(&entry.who),
        neutral(&entry.act),
        entry.rule_id.map(|rule_id| rule_id.to_string()).unwrap_or_default().into(),
        text(&entry.subject).into(),
        text(&entry.target).into(),
        json(&entry.before).into(),
        json(&entry.after).into(),
        text(&entry.address).into(),
        neutral(&entry.reason),
        entry.count.to_string().into(),
        neutral(&entry.outcome),
    ]
}
