//! Errors of a rules file with their positions: collected, sorted and rendered.

use std::fmt;
use std::ops::Range;

use annotate_snippets::{AnnotationKind, Level, Origin, Renderer, Snippet};

use crate::compat::floor_char_boundary;

/// Most errors that are reported for one file; the others are counted.
const ERRORS_MAX: usize = 100;
/// A line is shown if its error begins within this number of bytes.
const SHOWN_BYTES_MAX: usize = 1024;
/// Longest message, in characters; the rest is truncated.
const MESSAGE_CHARS_MAX: usize = 400;

/// All errors of a rules file: at least one [`FileError`].
///
/// Displays every error with its file, line, column and a caret under it; [`coloured`](Self::coloured) for terminals.
/// Characters that could control a terminal are replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileErrors {
    name: String,
    errors: Vec<FileError>,
    left_out: usize,
}

/// One error of a rules file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileError {
    line: usize,
    column: usize,
    message: String,
    /// The line, and the range of the error in it; `None` if it is too long to be shown.
    shown: Option<(String, Range<usize>)>,
}

/// Errors found so far.
#[derive(Debug)]
pub(super) struct Problems<'t> {
    text: &'t str,
    /// Byte offset of the start of each line.
    lines: Vec<usize>,
    found: Vec<(Range<usize>, String)>,
    left_out: usize,
}

// ===== impl FileErrors, FileError =====

impl FileErrors {
    /// The name of the file.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The errors, in the order of the file: all of them, or the first hundred found.
    #[must_use]
    pub fn errors(&self) -> &[FileError] {
        &self.errors
    }

    /// Number of errors found besides [`errors`](Self::errors).
    #[must_use]
    pub fn left_out(&self) -> usize {
        self.left_out
    }

    /// The same as it displays, with colours for a terminal.
    #[must_use]
    pub fn coloured(&self) -> impl fmt::Display {
        Coloured(self)
    }

    fn render(&self, renderer: &Renderer, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, error) in self.errors.iter().enumerate() {
            let separator = if position == 0 { "" } else { "\n\n" };
            let title = Level::ERROR.primary_title(&error.message);
            let group = match &error.shown {
                Some((line, marked)) => title.element(
                    Snippet::source(line)
                        .path(&self.name)
                        .line_start(error.line)
                        .annotation(AnnotationKind::Primary.span(marked.clone())),
                ),
                None => title
                    .element(Origin::path(&self.name).line(error.line).char_column(error.column)),
            };
            write!(f, "{separator}{}", renderer.render(&[group]))?;
        }
        match self.left_out {
            0 => Ok(()),
            left_out => write!(f, "\n\nand {left_out} more"),
        }
    }
}

/// [`FileErrors`] with colours.
struct Coloured<'a>(&'a FileErrors);

impl fmt::Display for Coloured<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.render(&Renderer::styled(), f)
    }
}

impl fmt::Display for FileErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.render(&Renderer::plain(), f)
    }
}

impl std::error::Error for FileErrors {}

impl FileError {
    /// The line it is in, from 1.
    #[must_use]
    pub fn line(&self) -> usize {
        self.line
    }

    /// The character of that line at which it begins, from 1.
    #[must_use]
    pub fn column(&self) -> usize {
        self.column
    }

    /// Message, in lower case without a full stop.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.line, self.column, self.message)
    }
}

impl std::error::Error for FileError {}

// ===== impl Problems =====

impl<'t> Problems<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        // A byte order mark is not part of the first line.
        let first = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
        let newlines = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        let lines = std::iter::once(first).chain(newlines.map(|(at, _)| at + 1)).collect();
        Self { text, lines, found: Vec::new(), left_out: 0 }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    pub(super) fn add(&mut self, span: Range<usize>, message: impl fmt::Display) {
        if self.found.len() < ERRORS_MAX {
            self.found.push((span, message.to_string()));
        } else {
            self.left_out += 1;
        }
    }

    /// Line, from 1, of a byte offset.
    pub(super) fn line_of(&self, at: usize) -> usize {
        self.lines.partition_point(|start| *start <= at).max(1)
    }

    pub(super) fn into_errors(mut self, name: &str) -> FileErrors {
        self.found.sort_by_key(|(span, _)| (span.start, span.end));
        let errors = self.found.iter().map(|(span, message)| self.error(span, message)).collect();
        let name = printable(name.chars().take(MESSAGE_CHARS_MAX));
        FileErrors { name, errors, left_out: self.left_out }
    }

    fn error(&self, span: &Range<usize>, message: &str) -> FileError {
        let line = self.line_of(span.start);
        let start = self.lines[line - 1];
        let text = self.text[start..].lines().next().unwrap_or_default();
        let within = |at: usize| floor_char_boundary(text, at.saturating_sub(start));
        let (before, rest) = text.split_at(within(span.start));
        let (marked, after) = rest.split_at(within(span.end.max(span.start)) - before.len());
        let cut =
            |text: &str| printable(text[..floor_char_boundary(text, SHOWN_BYTES_MAX)].chars());
        let shown = (before.len() <= SHOWN_BYTES_MAX).then(|| {
            let (before, marked) = (cut(before), cut(marked));
            let range = before.len()..before.len() + marked.len();
            (before + &marked + &cut(after), range)
        });
        let column = before.chars().count() + 1;
        let mut message_chars = message.chars();
        let mut message = printable(message_chars.by_ref().take(MESSAGE_CHARS_MAX));
        if message_chars.next().is_some() {
            message.push_str("...");
        }
        FileError { line, column, message, shown }
    }
}

/// Replaces characters that control a terminal: control characters, and those that change the direction of text.
fn printable(text: impl Iterator<Item = char>) -> String {
    let harmless = |c: char| match c {
        '\t' => ' ',
        '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => '\u{fffd}',
        c if c.is_control() => '\u{fffd}',
        c => c,
    };
    text.map(harmless).collect()
}
