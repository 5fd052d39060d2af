//! Logs on standard error: text on a terminal, JSON elsewhere.
//!
//! A message may quote text from clients. It reaches a terminal as text only: control characters
//! and those that change the direction of text are escaped as their code point.

use std::borrow::Cow;
use std::fmt::{self, Write as _};
use std::io::{self, IsTerminal, Write};
use std::panic;

use tracing::field::Field;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::field::MakeExt;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::fmt::format::{self, Writer};

use crate::config::{Log, LogFormat};
use crate::log_limit::LogLimit;

/// Limit on lines about panics: a request that causes one can be repeated.
static PANIC_LINES: LogLimit = LogLimit::new();

/// Name of the field that is printed unchanged on lines of its own: a report with carets.
pub(crate) const REPORT: &str = "report";

/// Reader of standard error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Audience {
    /// Standard error is a terminal.
    pub is_person: bool,
    /// The terminal shows colours, and `NO_COLOR` is not set.
    pub in_colours: bool,
}

impl Audience {
    /// Detects the reader of standard error.
    #[must_use]
    pub(crate) fn of_stderr() -> Self {
        let is_person = io::stderr().is_terminal();
        Self { is_person, in_colours: is_person && Self::wants_colours() }
    }

    /// Returns whether a terminal should get colours.
    pub(crate) fn wants_colours() -> bool {
        let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let is_dumb = std::env::var_os("TERM").is_some_and(|value| value == "dumb");
        !no_color && !is_dumb
    }
}

/// Starts logging. Returns whether the log is text for people.
pub(crate) fn start(log: &Log, audience: Audience) -> bool {
    // The filter was parsed when the settings were checked.
    let filter = EnvFilter::try_new(filter(&log.level)).unwrap_or_else(|_| EnvFilter::new("info"));
    // Reporting a broken pipe to standard error would panic.
    let subscriber = tracing_subscriber::fmt().with_env_filter(filter).log_internal_errors(false);
    let is_text = match log.format {
        LogFormat::Auto => audience.is_person,
        LogFormat::Text => true,
        LogFormat::Json => false,
    };
    // A second call, as in tests of the library, keeps the first subscriber.
    let _ = if is_text {
        subscriber
            .with_writer(io::stderr)
            .with_ansi(audience.in_colours)
            .with_target(false)
            .fmt_fields(format::debug_fn(write_field).delimited(" "))
            .try_init()
    } else {
        subscriber.json().flatten_event(true).with_writer(EscapedStderr).try_init()
    };
    panic::set_hook(Box::new(log_panic));
    is_text
}

/// Log filter with the database driver at `warn`, because it logs every query and every retry,
/// unless the setting names the driver.
fn filter(level: &str) -> String {
    if level.contains("sqlx") { level.into() } else { format!("{level},sqlx=warn") }
}

fn log_panic(info: &panic::PanicHookInfo<'_>) {
    let Some(suppressed) = PANIC_LINES.admit() else { return };
    let message = info.payload_as_str().unwrap_or("no message");
    let location = info.location().map(ToString::to_string).unwrap_or_default();
    tracing::error!(panic = message, location, suppressed, "panicked");
}

/// Writes one field of a text line.
fn write_field(writer: &mut Writer<'_>, field: &Field, value: &dyn fmt::Debug) -> fmt::Result {
    let value = format!("{value:?}");
    match field.name() {
        "message" => writer.write_str(&escaped(&value, false)),
        REPORT => write!(writer, "\n{}", escaped(value.trim_end(), true)),
        name => write!(writer, "{name}={}", escaped(&value, false)),
    }
}

/// Returns whether a character is active: it moves the cursor, hides text or changes its direction.
fn is_active(letter: char) -> bool {
    letter.is_control()
        || matches!(letter, '\u{2028}' | '\u{2029}' | '\u{200e}' | '\u{200f}' | '\u{061c}')
        || matches!(letter, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Escapes every active character, with line breaks kept if `keep_line_breaks`.
pub(crate) fn escaped(text: &str, keep_line_breaks: bool) -> Cow<'_, str> {
    let must_go = |letter: char| is_active(letter) && !(keep_line_breaks && letter == '\n');
    if !text.contains(must_go) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len() + 8);
    for letter in text.chars() {
        if must_go(letter) {
            // As in JSON: none of them has more than four digits.
            let _ = write!(safe, "\\u{:04x}", u32::from(letter));
        } else {
            safe.push(letter);
        }
    }
    Cow::Owned(safe)
}

/// Standard error for JSON, which leaves some active characters as they are. A formatter writes
/// whole lines, and outside of strings JSON has none of these characters, so escaping the line is
/// sound.
struct EscapedStderr;

impl<'a> MakeWriter<'a> for EscapedStderr {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        Self
    }
}

impl Write for EscapedStderr {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(line);
        io::stderr().write_all(escaped(&text, true).as_bytes())?;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_driver_is_quiet_unless_it_is_named() {
        assert_eq!(filter("debug"), "debug,sqlx=warn");
        assert_eq!(filter("info,sqlx=debug"), "info,sqlx=debug");
        assert!(EnvFilter::try_new(filter("info,sluicegate_server=debug")).is_ok());
    }

    #[test]
    fn active_characters_are_shown_by_number() {
        assert_eq!(escaped("plain é 日本", false), "plain é 日本");
        assert_eq!(escaped("\x1b[31mred\x07\r", false), "\\u001b[31mred\\u0007\\u000d");
        assert_eq!(escaped("\u{9b}31m\u{202e}evil\u{2028}", false), "\\u009b31m\\u202eevil\\u2028");
        assert_eq!(escaped("a\nb", false), "a\\u000ab");
        assert_eq!(escaped("a\nb\x1b", true), "a\nb\\u001b");
    }
}
