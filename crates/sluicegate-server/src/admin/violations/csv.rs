//! Violations as CSV (RFC 4180), escaped against formula injection.

use std::fmt::Write;

use super::view::ViolationView;

/// Header line with the column names.
pub(crate) const HEADER: &str = "violation_id,bucket_key,user_id,ip_address,endpoint,method,requested_at,last_at,\
                      tokens_at_time,rule_id,count,mode\r\n";

/// Characters that begin a formula in spreadsheets, or that they skip before one.
const FORMULA: [char; 11] =
    ['=', '+', '-', '@', '\t', '\r', '\n', '\u{ff1d}', '\u{ff0b}', '\u{ff0d}', '\u{ff20}'];

/// Formats the header and the rows.
pub(crate) fn write(violations: &[ViolationView]) -> String {
    HEADER.to_owned() + &rows(violations)
}

/// Formats the rows without a header, for pages after the first.
pub(crate) fn rows(violations: &[ViolationView]) -> String {
    let mut csv = String::new();
    for violation in violations {
        row(&mut csv, violation);
    }
    csv
}

fn row(csv: &mut String, violation: &ViolationView) {
    let ViolationView {
        violation_id, requested_at, last_at, tokens_at_time, rule_id, count, ..
    } = violation;
    // Writing to a string cannot fail.
    let _ = write!(csv, "{violation_id},");
    text(csv, &violation.bucket_key);
    let sample =
        [&violation.user_id, &violation.ip_address, &violation.endpoint, &violation.method];
    for value in sample {
        csv.push(',');
        text(csv, value.as_deref().unwrap_or_default());
    }
    let mode = violation.mode.name();
    let _ = write!(csv, ",{requested_at},{last_at},{tokens_at_time},{rule_id},{count},{mode}\r\n");
}

/// Writes text that a client may have chosen: formulas are prefixed with an apostrophe, and text with separators or
/// quotes is quoted.
fn text(csv: &mut String, value: &str) {
    let apostrophe = if value.starts_with(FORMULA) { "'" } else { "" };
    if value.contains(['"', ',', '\r', '\n']) {
        let _ = write!(csv, "\"{apostrophe}{}\"", value.replace('"', "\"\""));
    } else {
        let _ = write!(csv, "{apostrophe}{value}");
    }
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
            let mut csv = String::new();
            text(&mut csv, value);
            assert_eq!(csv, expected, "{value:?}");
        }
    }
}
