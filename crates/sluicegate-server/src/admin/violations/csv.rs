//! Violations as CSV (RFC 4180), that spreadsheets show and do not run.

use std::fmt::Write;

use super::view::ViolationView;

/// The names of the columns.
pub(crate) const HEADER: &str = "violation_id,bucket_key,user_id,ip_address,endpoint,method,requested_at,last_at,\
                      tokens_at_time,rule_id,count,mode\r\n";

/// What a spreadsheet takes for the beginning of a formula, or skips to find one.
const FORMULA: [char; 11] =
    ['=', '+', '-', '@', '\t', '\r', '\n', '\u{ff1d}', '\u{ff0b}', '\u{ff0d}', '\u{ff20}'];

/// The header and the rows.
pub(crate) fn write(violations: &[ViolationView]) -> String {
    HEADER.to_owned() + &rows(violations)
}

/// The rows alone, behind others.
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

/// A text that somebody may have chosen: what looks like a formula gets an apostrophe in front, and what would
/// end the field is put in quotes.
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
