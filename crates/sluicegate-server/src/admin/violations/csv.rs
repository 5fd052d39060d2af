//! Violations as CSV (RFC 4180), escaped against formula injection.

use std::borrow::Cow;

use csv::{Terminator, WriterBuilder};

use super::view::ViolationView;

const COLUMNS: [&str; 12] = [
    "violation_id",
    "bucket_key",
    "user_id",
    "ip_address",
    "endpoint",
    "method",
    "requested_at",
    "last_at",
    "tokens_at_time",
    "rule_id",
    "count",
    "mode",
];

/// Characters that begin a formula in spreadsheets, or that they skip before one.
const FORMULA: [char; 11] =
    ['=', '+', '-', '@', '\t', '\r', '\n', '\u{ff1d}', '\u{ff0b}', '\u{ff0d}', '\u{ff20}'];

/// Header line with the column names.
pub(crate) fn header() -> String {
    lines([COLUMNS.map(Cow::Borrowed)])
}

/// Formats the header and the rows.
pub(crate) fn write(violations: &[ViolationView]) -> String {
    header() + &rows(violations)
}

/// Formats the rows without a header, for pages after the first.
pub(crate) fn rows(violations: &[ViolationView]) -> String {
    lines(violations.iter().map(fields))
}

fn fields(violation: &ViolationView) -> [Cow<'_, str>; 12] {
    [
        violation.violation_id.to_string().into(),
        neutral(&violation.bucket_key),
        neutral(violation.user_id.as_deref().unwrap_or_default()),
        neutral(violation.ip_address.as_deref().unwrap_or_default()),
        neutral(violation.endpoint.as_deref().unwrap_or_default()),
        neutral(violation.method.as_deref().unwrap_or_default()),
        violation.requested_at.to_string().into(),
        violation.last_at.to_string().into(),
        violation.tokens_at_time.to_string().into(),
        violation.rule_id.to_string().into(),
        violation.count.to_string().into(),
        violation.mode.name().into(),
    ]
}

/// Text that a client may have chosen, with an apostrophe before what looks like a formula.
fn neutral(text: &str) -> Cow<'_, str> {
    if text.starts_with(FORMULA) { format!("'{text}").into() } else { text.into() }
}

fn lines<'a, const N: usize>(records: impl IntoIterator<Item = [Cow<'a, str>; N]>) -> String {
    let mut writer = WriterBuilder::new().terminator(Terminator::CRLF).from_writer(Vec::new());
    for record in records {
        // Writing to memory cannot fail.
        let _ = writer.write_record(record.iter().map(|field| field.as_bytes()));
    }
    writer.into_inner().ok().and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_taken_for_a_formula() {
        for (value, expected) in [
            ("42", "42"),
            ("", ""),
            ("=1+1", "'=1+1"),
            ("+1", "'+1"),
            ("-1", "'-1"),
            ("@SUM(A1)", "'@SUM(A1)"),
            ("\tx", "'\tx"),
            ("\rx", "\"'\rx\""),
            ("=HYPERLINK(\"http://x\",\"y\")", "\"'=HYPERLINK(\"\"http://x\"\",\"\"y\"\")\""),
            ("a=1", "a=1"),
            ("a,b", "\"a,b\""),
            ("\"=1\"", "\"\"\"=1\"\"\""),
            ("two\r\nlines", "\"two\r\nlines\""),
            ("\u{ff1d}1", "'\u{ff1d}1"),
        ] {
            let line = lines([[Cow::Borrowed("1"), neutral(value)]]);
            assert_eq!(line, format!("1,{expected}\r\n"), "{value:?}");
        }
    }
}
