//! What a command shows: data on standard output, messages on standard error.

use std::fmt::Display;
use std::io::{self, IsTerminal, Write};

use serde_json::Value;

use super::failure::{CliResult, Failure};
use super::table::Table;
use crate::observe::logging::{Audience, escaped};

/// In which form, and for whom.
#[derive(Clone, Copy, Debug)]
pub(super) struct Output {
    /// JSON for programs, instead of tables for people.
    pub(super) json: bool,
    /// Whether standard output is read in colours.
    pub(super) in_colours: bool,
}

impl Output {
    /// Output in this form, to whoever reads.
    pub(super) fn new(json: bool) -> Self {
        let is_wanted = Audience::wants_colours();
        Self { json, in_colours: io::stdout().is_terminal() && is_wanted }
    }

    /// The value if programs read, the text if people do.
    pub(super) fn show(self, value: &Value, text: impl FnOnce() -> String) -> CliResult<()> {
        if self.json { Self::json(value) } else { Self::data(&text()) }
    }

    /// The value if programs read, the table if people do, or the remark if there is nothing in it.
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

    /// Tells people how to go on, where there is more than was shown. Programs read `next`.
    pub(super) fn more(self, next: Option<&str>) {
        if let Some(next) = next.filter(|_| !self.json) {
            say(&format!("There are more: --after {next}"));
        }
    }

    fn json(value: &Value) -> CliResult<()> {
        let mut text = serde_json::to_string_pretty(value).unwrap_or_default();
        text.push('\n');
        // JSON leaves some characters as they are that a terminal acts on; escaped, they are the same text.
        Self::data(&escaped(&text, true))
    }

    /// Writes data. Whoever closes the pipe has seen enough.
    pub(super) fn data(text: &str) -> CliResult<()> {
        Self::piece(text).map(drop)
    }

    /// Writes some of the data, and says whether anybody reads on.
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

/// So many of something: the words for one, or for another number.
pub(super) fn counted<N>(count: N, one: &str, many: &str) -> String
where
    N: Copy + Display + From<u8> + PartialEq,
{
    format!("{count} {}", if count == N::from(1) { one } else { many })
}

/// Tells whoever started this process, without anything that would control their terminal. If nobody reads
/// it, nothing can be done about that.
pub(super) fn say(text: &str) {
    say_as_it_is(&escaped(text, true));
}

/// The same with what was rendered for a terminal.
pub(super) fn say_as_it_is(text: &str) {
    let _ = writeln!(io::stderr(), "{text}");
}
