//! Tables: fitted to the width of the terminal; one line per row elsewhere.

use comfy_table::presets::NOTHING;
use comfy_table::{
    Attribute, Cell, Color, ColumnConstraint, ContentArrangement, Table as Grid, Width,
};
use serde_json::Value;

use crate::observe::logging::escaped;
use crate::time::Timestamp;

/// Minimum width of a terminal for fitting; narrower ones wrap lines themselves.
const WIDTH_MIN: u16 = 40;

/// Spaces between two columns.
const PADDING: u16 = 2;
/// Minimum width of a column that is wrapped so that columns before it need not be.
const BROKEN_WIDTH_MIN: u16 = 10;

/// Rows under a header. Control characters in cells are escaped.
#[derive(Debug)]
pub(super) struct Table {
    header: Vec<&'static str>,
    rows: Vec<Vec<Shown>>,
    /// Columns to drop, in this order, where the width does not suffice.
    spare: &'static [&'static str],
}

/// A cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Shown {
    text: String,
    tone: Tone,
}

/// Colour of a cell, by meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tone {
    Plain,
    Good,
    Bad,
    Quiet,
}

impl Table {
    /// A table with these columns.
    pub(super) fn new(header: &[&'static str]) -> Self {
        Self { header: header.to_vec(), rows: Vec::new(), spare: &[] }
    }

    /// Marks columns that are dropped one after the other, if words would have to be broken otherwise.
    pub(super) fn sparing(self, spare: &'static [&'static str]) -> Self {
        Self { spare, ..self }
    }

    /// Adds a row.
    pub(super) fn row(&mut self, cells: impl IntoIterator<Item = Shown>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// Drops a column if all its cells are empty.
    pub(super) fn without_empty(mut self, name: &str) -> Self {
        let column = self.header.iter().position(|known| *known == name);
        let is_empty = |column: usize| self.rows.iter().all(|row| row[column].text.is_empty());
        if column.is_some_and(is_empty) {
            self.drop_column(name);
        }
        self
    }

    /// Returns `true` if there are no rows.
    pub(super) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The table as text, ending in a line break.
    pub(super) fn render(self, in_colours: bool) -> String {
        // A terminal of unknown width reports 0.
        let width = Grid::new().width().filter(|width| *width >= WIDTH_MIN);
        self.render_in(width, in_colours)
    }

    /// Renders in this width; without one, every row is one line.
    fn render_in(mut self, width: Option<u16>, in_colours: bool) -> String {
        if let Some(width) = width {
            for name in self.spare {
                if sum(&self.words()) > width {
                    self.drop_column(name);
                }
            }
        }
        let mut grid = self.grid(in_colours);
        if let Some(width) = width {
            grid.set_width(width).set_content_arrangement(ContentArrangement::Dynamic);
            let fixed = |width| ColumnConstraint::Absolute(Width::Fixed(width + PADDING));
            let widths = shares(&grid.column_max_content_widths(), &self.words(), width);
            grid.set_constraints(widths.into_iter().flatten().map(fixed));
        }
        grid.lines().map(|line| format!("{}\n", line.trim_end())).collect()
    }

    /// Length of the longest word of each column.
    fn words(&self) -> Vec<u16> {
        let mut grid = Grid::new();
        let a_line_each = |text: &str| text.replace(' ', "\n");
        grid.set_header(self.header.iter().map(|name| a_line_each(name)));
        for row in &self.rows {
            grid.add_row(row.iter().map(|shown| a_line_each(&shown.text)));
        }
        grid.column_max_content_widths()
    }

    fn drop_column(&mut self, name: &str) {
        if let Some(column) = self.header.iter().position(|known| *known == name) {
            self.header.remove(column);
            for row in &mut self.rows {
                row.remove(column);
            }
        }
    }

    fn grid(&self, in_colours: bool) -> Grid {
        let mut grid = Grid::new();
        grid.load_style(NOTHING).set_content_arrangement(ContentArrangement::Disabled);
        if in_colours {
            grid.enforce_styling();
        } else {
            grid.style_text_only();
        }
        let bold = |name: &&str| {
            let cell = Cell::new(name);
            if in_colours { cell.add_attribute(Attribute::Bold) } else { cell }
        };
        grid.set_header(self.header.iter().map(bold));
        for row in &self.rows {
            grid.add_row(row.iter().map(|shown| shown.cell(in_colours)));
        }
        for column in grid.column_iter_mut() {
            column.set_padding((0, PADDING));
        }
        grid
    }
}

/// Distributes a width over the columns: each gets its longest word at least, and the first ones as much as they need. Words
/// are broken in the last columns first. `None` if even that does not suffice.
fn shares(widths: &[u16], words: &[u16], width: u16) -> Option<Vec<u16>> {
    let mut shares = words.to_vec();
    let mut missing = sum(&shares).saturating_sub(width);
    for share in shares.iter_mut().rev() {
        let cut = missing.min(share.saturating_sub(BROKEN_WIDTH_MIN));
        *share -= cut;
        missing -= cut;
    }
    let mut left = width.saturating_sub(sum(&shares));
    for (share, wanted) in shares.iter_mut().zip(widths) {
        let more = left.min(wanted.saturating_sub(*share));
        *share += more;
        left -= more;
    }
    (missing == 0).then_some(shares)
}

/// Total width of columns, with padding.
fn sum(widths: &[u16]) -> u16 {
    widths.iter().fold(0, |sum, width| sum.saturating_add(width.saturating_add(PADDING)))
}

impl Shown {
    fn new(text: &str, tone: Tone) -> Self {
        Self { text: escaped(text, false).into_owned(), tone }
    }

    /// Text in the colour of success.
    pub(super) fn good(text: &str) -> Self {
        Self::new(text, Tone::Good)
    }

    /// Text in the colour of failure.
    pub(super) fn bad(text: &str) -> Self {
        Self::new(text, Tone::Bad)
    }

    /// Dimmed text.
    pub(super) fn quiet(text: &str) -> Self {
        Self::new(text, Tone::Quiet)
    }

    /// A member of a JSON object, as plain text.
    pub(super) fn of(row: &Value, name: &str) -> Self {
        Self::from(text_of(&row[name]))
    }

    /// A point in time of a JSON object.
    pub(super) fn time_of(row: &Value, name: &str) -> Self {
        Self::from(time_of(&row[name]))
    }

    fn cell(&self, in_colours: bool) -> Cell {
        let cell = Cell::new(&self.text);
        match self.tone {
            Tone::Good if in_colours => cell.fg(Color::Green),
            Tone::Bad if in_colours => cell.fg(Color::Red),
            Tone::Quiet if in_colours => cell.add_attribute(Attribute::Dim),
            _ => cell,
        }
    }
}

impl From<&str> for Shown {
    fn from(text: &str) -> Self {
        Self::new(text, Tone::Plain)
    }
}

impl From<String> for Shown {
    fn from(text: String) -> Self {
        Self::new(&text, Tone::Plain)
    }
}

impl From<Timestamp> for Shown {
    fn from(time: Timestamp) -> Self {
        Self::from(time.to_the_second())
    }
}

impl From<u64> for Shown {
    fn from(number: u64) -> Self {
        Self::from(number.to_string())
    }
}

impl From<&Option<String>> for Shown {
    fn from(text: &Option<String>) -> Self {
        Self::from(text.as_deref().unwrap_or_default())
    }
}

/// A time to the second; empty for `null`.
pub(super) fn time_of(value: &Value) -> String {
    let text = text_of(value);
    text.parse().map_or(text, Timestamp::to_the_second)
}

/// A JSON value as plain text: strings without quotes, `null` as empty text.
pub(super) fn text_of(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Object(members) => {
            let member = |(name, value): (&String, &Value)| format!("{name}={}", text_of(value));
            members.iter().map(member).collect::<Vec<_>>().join(" ")
        }
        Value::Array(members) => members.iter().map(text_of).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}

/// Names and values, one per line, ending in a line break.
pub(super) fn card(members: &[(&str, String)]) -> String {
    let width = members.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let line = |(name, value): &(&str, String)| {
        format!("{name:width$}  {}", escaped(value, false)).trim_end().to_owned() + "\n"
    };
    members.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn rows_are_lines_and_nothing_controls_the_terminal() {
        let mut table = Table::new(&["subject", "count"]);
        table.row([Shown::from("evil\u{1b}[2J\nrow"), Shown::bad("7")]);
        table.row([Shown::of(&json!({"subject": "日本"}), "subject"), Shown::quiet("1234")]);
        let text = table.render(false);
        assert_eq!(
            text,
            "subject                 count\nevil\\u001b[2J\\u000arow  7\n日本                    1234\n"
        );
    }

    fn rules(columns: &'static [&'static str], rows: &[&[&str]]) -> Table {
        let mut table = Table::new(columns);
        for row in rows {
            table.row(row.iter().map(|text| Shown::from(*text)));
        }
        table
    }

    /// In a narrow terminal, spare columns are dropped first, and the first columns are wrapped last.
    #[test]
    fn narrow_tables_keep_what_matters_whole() {
        let columns = &["ID", "KEY PATTERN", "CONDITIONS", "DESCRIPTION"];
        let row = ["1", "search:{user_id}:{ip}", "endpoint=/search method=POST", "all who search"];
        let table = || rules(columns, &[&row]).sparing(&["DESCRIPTION"]);
        assert_eq!(
            table().render_in(Some(71), false),
            "ID  KEY PATTERN            CONDITIONS                    DESCRIPTION\n\
             1   search:{user_id}:{ip}  endpoint=/search method=POST  all who\n                                                         \
             search\n"
        );
        assert_eq!(
            table().render_in(Some(57), false),
            "ID  KEY PATTERN            CONDITIONS\n\
             1   search:{user_id}:{ip}  endpoint=/search method=POST\n"
        );
        assert_eq!(
            table().render_in(Some(47), false),
            "ID  KEY PATTERN            CONDITIONS\n\
             1   search:{user_id}:{ip}  endpoint=/search\n                           method=POST\n"
        );
        assert_eq!(
            table().render_in(None, false),
            "ID  KEY PATTERN            CONDITIONS                    DESCRIPTION\n\
             1   search:{user_id}:{ip}  endpoint=/search method=POST  all who search\n"
        );
        let times = json!({"at": "2026-08-01T12:00:00.480050Z", "none": null, "other": "soon"});
        let shown = ["at", "none", "other"].map(|name| time_of(&times[name]));
        assert_eq!(shown, ["2026-08-01T12:00:00Z", "", "soon"]);
    }

    #[test]
    fn values_are_written_as_people_do() {
        for (value, text) in [
            (json!(null), ""),
            (json!("a"), "a"),
            (json!(1.5), "1.5"),
            (json!({"endpoint": "/x", "method": "POST"}), "endpoint=/x method=POST"),
            (json!(["a", 1]), "a, 1"),
        ] {
            assert_eq!(text_of(&value), text);
        }
    }

    #[test]
    fn a_card_has_a_line_for_everything() {
        let members =
            [("a", "1".to_owned()), ("long", "\u{7}x".to_owned()), ("none", String::new())];
        assert_eq!(card(&members), "a     1\nlong  \\u0007x\nnone\n");
    }
}
