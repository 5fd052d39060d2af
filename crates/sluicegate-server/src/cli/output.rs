//! Output: data on standard output, messages on standard error.

use std::fmt::Display;
use std::io::{self, IsTerminal, Write};

use serde_json::Value;

use super::failure::{CliResult, Failure};
use super::table::Table;
use crate::observe::logging::{Audience, escaped};

/// Output format.
#[derive(Clone, Copy, Debug)]
pub(super) struct Output {
    /// JSON instead of tables.
    pub(super) json: bool,
    /// Colours on standard output.
    pub(super) in_colours: bool,
}

impl Output {
    /// Output in this format, with colours on a terminal that wants them.
    pub(super) fn new(json: bool) -> Self {
        let is_wanted = Audience::wants_colours();
        Self { json, in_colours: io::stdout().is_terminal() && is_wanted }
    }

    /// Prints the value as JSON, or the text.
    pub(super) fn show(self, value: &Value, text: impl FnOnce() -> String) -> CliResult<()> {
        if self.json { Self::json(value) } else { Self::data(&text()) }
    }

    /// Prints the value as JSON, or the table. An empty table becomes the message, on standard error.
    pub(super) fn list(self, value: &Value, table: Table, if_empty: &str) -> CliResult<()> {
        if self.json {
            return Self::json(value);
        }
        if table.is_empty() {
            say(if_empty);
            return Ok(());
        }
        Self::data(&table.render(self.in_colours))
    }

    /// Prints the cursor of the next page, if there is one. JSON has it as `next`.
    pub(super) fn more(self, next: Option<&str>) {
        if let Some(next) = next.filter(|_| !self.json) {
            say(&format!("More rows follow: --after {next}"));
        }
    }

    fn json(value: &Value) -> CliResult<()> {
        let mut text = serde_json::to_string_pretty(value).unwrap_or_default();
        text.push('\n');
        // JSON does not escape all characters that control a terminal.
        Self::data(&escaped(&text, true))
    }

    /// Writes to standard output. A closed pipe is not an error.
    pub(super) fn data(text: &str) -> CliResult<()> {
        Self::piece(text).map(drop)
    }

    /// Writes a part of the data. Returns `false` if the pipe is closed.
    pub(super) fn piece(text: &str) -> CliResult<bool> {
        let mut stdout = io::stdout().lock();
        match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
            Err(error) => {
                Err(Failure::unavailable(format!("cannot write to standard output: {error}")))
            }
        }
    }
}

/// A count with its noun: singular for 1, else plural.
pub(super) fn counted<N>(count: N, one: &str, many: &str) -> String
where
    N: Copy + Display + From<u8> + PartialEq,
{
    format!("{count} {}", if count == N::from(1) { one } else { many })
}

/// Prints a message on standard error, with control characters escaped. Errors are ignored.
pub(super) fn say(text: &str) {
    say_as_it_is(&escaped(text, true));
}

/// Prints a message that is already rendered for a terminal.
pub(super) fn say_as_it_is(text: &str) {
    let _ = writeln!(io::stderr(), "{text}");
}
