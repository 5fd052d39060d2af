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

/// Characters that begin a formula in spreadsheets, with their full-width and small forms.
const FORMULA: [char; 12] = [
    '=', '+', '-', '@', '\u{ff1d}', '\u{ff0b}', '\u{ff0d}', '\u{ff20}', '\u{fe66}', '\u{fe62}',
    '\u{fe63}', '\u{fe6b}',
];

/// Characters other than the comma after which some spreadsheet begins a new cell: Excel in countries with a decimal
/// comma splits at semicolons only, `LibreOffice` at commas, semicolons and tabs alike.
const SEPARATORS: [char; 4] = [';', '\t', '\r', '\n'];

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

/// Text that a client may have chosen, with an apostrophe before everything that a spreadsheet would take for a formula.
///
/// A spreadsheet may split a line at other characters than commas and then ignore the quotes, so a formula may begin
/// after each of [`SEPARATORS`]. An apostrophe before a leading control character, too: spreadsheets skip some of them.
pub(in crate::admin) fn neutral(text: &str) -> Cow<'_, str> {
    let mut neutral = String::new();
    if text.starts_with(char::is_control) {
        neutral.push('\'');
    }
    let (mut is_start, mut copied) = (true, 0);
    for (at, letter) in text.char_indices() {
        if is_start && FORMULA.contains(&letter) {
            neutral.push_str(&text[copied..at]);
            neutral.push('\'');
            copied = at;
        }
        is_start = SEPARATORS.contains(&letter) || (is_start && is_skipped(letter));
    }
    if neutral.is_empty() {
        return text.into();
    }
    neutral.push_str(&text[copied..]);
    neutral.into()
}

/// True for characters that spreadsheets remove or ignore at the start of a cell: blanks, control and invisible
/// formatting characters, and quotes, which may open and close an empty text.
fn is_skipped(letter: char) -> bool {
    letter.is_whitespace()
        || letter.is_control()
        || matches!(letter,
            '"' | '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0001}'..='\u{e007f}')
}

pub(in crate::admin) fn lines<'a, const N: usize>(
    records: impl IntoIterator<Item = [Cow<'a, str>; N]>,
) -> String {
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

    fn line(value: &str) -> String {
        lines([[Cow::Borrowed("1"), neutral(value)]])
    }

    #[test]
    fn nothing_is_taken_for_a_formula() {
        for (value, expected) in [
            ("42", "42"),
            ("", ""),
            ("=1+1", "'=1+1"),
            ("+1", "'+1"),
            ("-1", "'-1"),
            ("@SUM(A1)", "'@SUM(A1)"),
            (" =1+1", " '=1+1"),
            ("\u{a0}\u{3000}\u{feff}=1", "\u{a0}\u{3000}\u{feff}'=1"),
            ("\u{202e}=1", "\u{202e}'=1"),
            ("\tx", "'\tx"),
            ("\t=1", "'\t'=1"),
            ("\r=1", "\"'\r'=1\""),
            ("\u{b}=1", "'\u{b}'=1"),
            (";=1", ";'=1"),
            ("a;b; \t-1", "a;b; \t'-1"),
            ("a\t@x", "a\t'@x"),
            ("a;\"=1", "\"a;\"\"'=1\""),
            ("=HYPERLINK(\"http://x\",\"y\")", "\"'=HYPERLINK(\"\"http://x\"\",\"\"y\"\")\""),
            ("a=1", "a=1"),
            ("a =1", "a =1"),
            ("a,b", "\"a,b\""),
            ("\"=1\"", "\"\"\"'=1\"\"\""),
            ("two\r\nlines", "\"two\r\nlines\""),
            ("two\r\n=1", "\"two\r\n'=1\""),
            ("\u{ff1d}1", "'\u{ff1d}1"),
            ("\u{fe66}1", "'\u{fe66}1"),
        ] {
            assert_eq!(line(value), format!("1,{expected}\r\n"), "{value:?}");
        }
    }

    /// Cells of a line that ends with `\r\n`, as a lenient parser splits it at these characters: quotes count only at
    /// the start of a cell, text after a closing quote is appended, and line breaks outside quotes end the cell.
    fn cells(line: &str, separators: &[char]) -> Vec<String> {
        let (mut cells, mut cell) = (Vec::new(), String::new());
        let (mut is_quoted, mut is_start) = (false, true);
        let mut letters = line.chars().peekable();
        while let Some(letter) = letters.next() {
            match letter {
                '"' if is_quoted && letters.next_if_eq(&'"').is_some() => cell.push('"'),
                '"' if is_quoted => is_quoted = false,
                '"' if is_start => is_quoted = true,
                '\r' | '\n' if !is_quoted => cells.push(std::mem::take(&mut cell)),
                letter if !is_quoted && separators.contains(&letter) => {
                    cells.push(std::mem::take(&mut cell));
                }
                letter => cell.push(letter),
            }
            is_start = !is_quoted && cell.is_empty() && letter != '"';
        }
        cells.push(cell);
        cells
    }

    proptest::proptest! {
        #[test]
        fn no_cell_is_a_formula_wherever_a_spreadsheet_splits(
            values in proptest::collection::vec("[ab =+@;,\"'\t\r\n\u{a0}\u{feff}\u{ff1d}-]{0,8}", 4)
        ) {
            let [a, b, c, d] = std::array::from_fn(|column| neutral(&values[column]));
            let line = lines([[Cow::Borrowed("1"), a, b, c, d]]);
            for separators in [&[','][..], &[';'], &['\t'], &[',', ';', '\t']] {
                for cell in cells(&line, separators) {
                    let trimmed = cell.trim_start_matches(is_skipped);
                    proptest::prop_assert!(
                        !cell.starts_with(FORMULA) && !trimmed.starts_with(FORMULA),
                        "{cell:?} of {line:?} split at {separators:?}"
                    );
                }
            }
        }

        #[test]
        fn a_parser_of_rfc_4180_reads_every_field(values in proptest::collection::vec("[a=;,\"\t\r\n]{0,6}", 3)) {
            let [a, b, c] = std::array::from_fn(|column| neutral(&values[column]));
            let expected = [&a, &b, &c].map(ToString::to_string);
            let mut line = lines([[a, b, c]]);
            line.truncate(line.len() - "\r\n".len());
            proptest::prop_assert_eq!(cells(&line, &[',']), expected);
        }
    }
}
