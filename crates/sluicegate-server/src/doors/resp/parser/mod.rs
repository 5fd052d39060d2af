//! Parser of commands: arrays of bulk strings, and inline commands.
//!
//! Written by hand because codecs of clients copy every argument; here a command is a view of the
//! input, without copies or allocations per argument. Every length is checked against its maximum
//! when it is read, before memory is reserved for it. Parts of an incomplete command are not parsed
//! again.

use std::num::NonZeroUsize;

use thiserror::Error;

/// Maximum number of arguments, including the name.
pub const ARGUMENTS_MAX: usize = 1024;
/// Maximum bytes of an argument. Keys and values of attributes cannot be configured to be longer.
pub const ARGUMENT_BYTES_MAX: usize = 64 * 1024;
/// Maximum bytes of a command, including its framing.
pub const COMMAND_BYTES_MAX: usize = 128 * 1024;
/// Maximum digits of a length: longer ones exceed every limit.
const LENGTH_DIGITS_MAX: usize = 7;

/// Protocol error. Bytes after it cannot be parsed either.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[expect(missing_docs, reason = "the messages describe them")]
pub enum Malformed {
    #[error("invalid multibulk length: at most {ARGUMENTS_MAX} arguments are allowed")]
    ArgumentCount,
    #[error("invalid bulk length: at most {ARGUMENT_BYTES_MAX} bytes are allowed")]
    ArgumentLength,
    #[error("expected '$', got '{}'", .0.escape_ascii())]
    NoArgument(u8),
    #[error("an argument is longer than its length")]
    ArgumentEnd,
    #[error("a command has more than {0} bytes")]
    CommandBytes(usize),
    #[error("too big inline request: at most {ARGUMENT_BYTES_MAX} bytes are allowed")]
    InlineBytes,
    #[error("unbalanced quotes in request")]
    Quotes,
    #[error("escapes in quotes are not supported: send an array of bulk strings")]
    Escape,
}

/// Incremental parser of an input that grows.
#[derive(Debug, Default)]
pub struct Parser {
    /// Positions of the arguments read so far.
    spans: Vec<Span>,
    /// Arguments still missing from the array; `None` if no array has begun.
    missing: Option<NonZeroUsize>,
    /// Bytes of the command parsed, or searched for its end.
    read: usize,
}

/// Position of an argument in the input. Commands are short enough for 32 bits.
#[derive(Clone, Copy, Debug)]
struct Span {
    start: u32,
    end: u32,
}

/// A command: its name and arguments, as views of the input.
#[derive(Clone, Copy, Debug)]
pub struct Command<'p, 'i> {
    input: &'i [u8],
    spans: &'p [Span],
    bytes: usize,
    is_inline: bool,
}

// ===== impl Parser =====

impl Parser {
    /// Parses the command at the beginning of the input; `None` if it is incomplete.
    ///
    /// After a command, the next input must begin behind its [`bytes`](Command::bytes). After
    /// `None`, it must begin with the same bytes and have more of them.
    ///
    /// # Errors
    ///
    /// The input is not the beginning of a command. The parser must not be used afterwards.
    #[inline]
    pub fn next<'p, 'i>(
        &'p mut self,
        input: &'i [u8],
    ) -> Result<Option<Command<'p, 'i>>, Malformed> {
        self.next_within(input, COMMAND_BYTES_MAX)
    }

    /// Like [`next`](Self::next), with a smaller maximum size of commands.
    ///
    /// # Errors
    ///
    /// As [`next`](Self::next).
    #[inline]
    pub fn next_within<'p, 'i>(
        &'p mut self,
        input: &'i [u8],
        bytes_max: usize,
    ) -> Result<Option<Command<'p, 'i>>, Malformed> {
        let bytes_max = bytes_max.min(COMMAND_BYTES_MAX);
        let input = &input[..input.len().min(bytes_max)];
        let is_inline = match input.first() {
            None => return Ok(None),
            Some(first) => *first != b'*',
        };
        let found = if is_inline { self.inline(input)? } else { self.array(input)? };
        let Some(bytes) = found else {
            // An incomplete command of maximum size can never be completed.
            let is_full = input.len() == bytes_max;
            return if is_full { Err(Malformed::CommandBytes(bytes_max)) } else { Ok(None) };
        };
        (self.missing, self.read) = (None, 0);
        Ok(Some(Command { input, spans: &self.spans, bytes, is_inline }))
    }

    /// Continues an array, and returns its end.
    #[inline]
    fn array(&mut self, input: &[u8]) -> Result<Option<usize>, Malformed> {
        let mut missing = match self.missing {
            Some(missing) => missing.get(),
            None => {
                let Some((count, read)) = count(input)? else { return Ok(None) };
                self.spans.clear();
                self.read = read;
                count
            }
        };
        while let Some(left) = NonZeroUsize::new(missing) {
            let Some((span, read)) = argument(input, self.read)? else {
                self.missing = Some(left);
                return Ok(None);
            };
            self.spans.push(span);
            self.read = read;
            missing -= 1;
        }
        Ok(Some(self.read))
    }

    /// Parses a line, and returns its end.
    fn inline(&mut self, input: &[u8]) -> Result<Option<usize>, Malformed> {
        let unread = &input[self.read.min(input.len())..];
        let Some(line) = unread.iter().position(|byte| *byte == b'\n') else {
            self.read = input.len();
            let is_short = input.len() <= ARGUMENT_BYTES_MAX;
            return if is_short { Ok(None) } else { Err(Malformed::InlineBytes) };
        };
        let end = self.read + line;
        if end > ARGUMENT_BYTES_MAX {
            return Err(Malformed::InlineBytes);
        }
        let line = input[..end].strip_suffix(b"\r").unwrap_or(&input[..end]);
        self.spans.clear();
        let mut at = 0;
        while let Some((span, next)) = word(line, at)? {
            if self.spans.len() == ARGUMENTS_MAX {
                return Err(Malformed::ArgumentCount);
            }
            self.spans.push(span);
            at = next;
        }
        Ok(Some(end + 1))
    }
}

/// Number of arguments of an array, and the position of the first. Empty and null arrays have none.
#[inline]
fn count(input: &[u8]) -> Result<Option<(usize, usize)>, Malformed> {
    if input.get(1) == Some(&b'-') {
        return Ok(length(input, 2, Malformed::ArgumentCount)?.map(|(_, read)| (0, read)));
    }
    match length(input, 1, Malformed::ArgumentCount)? {
        Some((count, _)) if count > ARGUMENTS_MAX => Err(Malformed::ArgumentCount),
        found => Ok(found),
    }
}

/// Argument at this position, and the position of the next.
#[inline]
fn argument(input: &[u8], at: usize) -> Result<Option<(Span, usize)>, Malformed> {
    match input.get(at) {
        None => return Ok(None),
        Some(b'$') => {}
        Some(other) => return Err(Malformed::NoArgument(*other)),
    }
    let Some((bytes, start)) = length(input, at + 1, Malformed::ArgumentLength)? else {
        return Ok(None);
    };
    if bytes > ARGUMENT_BYTES_MAX {
        return Err(Malformed::ArgumentLength);
    }
    let end = start + bytes;
    match input.get(end..end + 2) {
        Some(b"\r\n") => Ok(Some((Span::new(start, end)?, end + 2))),
        Some(_) => Err(Malformed::ArgumentEnd),
        None => Ok(None),
    }
}

/// Length at this position, and the position after its line.
#[inline]
fn length(input: &[u8], at: usize, wrong: Malformed) -> Result<Option<(usize, usize)>, Malformed> {
    let mut length = 0;
    let digits = input.get(at..).unwrap_or_default();
    for (position, byte) in digits.iter().enumerate() {
        match byte {
            b'0'..=b'9' if position < LENGTH_DIGITS_MAX => {
                length = length * 10 + usize::from(byte - b'0');
            }
            b'\r' if position > 0 => {
                return match digits.get(position + 1) {
                    None => Ok(None),
                    Some(b'\n') => Ok(Some((length, at + position + 2))),
                    Some(_) => Err(wrong),
                };
            }
            _ => return Err(wrong),
        }
    }
    Ok(None)
}

/// Next word of a line, possibly quoted, and the position after it.
fn word(line: &[u8], at: usize) -> Result<Option<(Span, usize)>, Malformed> {
    let is_blank = |byte: &u8| byte.is_ascii_whitespace();
    let rest = line.get(at..).unwrap_or_default();
    let Some(blanks) = rest.iter().position(|byte| !is_blank(byte)) else { return Ok(None) };
    let (at, word) = (at + blanks, &rest[blanks..]);
    if let quote @ (b'"' | b'\'') = word[0] {
        let inside = &word[1..];
        let end = inside.iter().position(|byte| *byte == quote).ok_or(Malformed::Quotes)?;
        if inside[..end].contains(&b'\\') {
            return Err(Malformed::Escape);
        }
        if inside.get(end + 1).is_some_and(|byte| !is_blank(byte)) {
            return Err(Malformed::Quotes);
        }
        return Ok(Some((Span::new(at + 1, at + 1 + end)?, at + end + 2)));
    }
    let end = word.iter().position(is_blank).unwrap_or(word.len());
    Ok(Some((Span::new(at, at + end)?, at + end)))
}

impl Span {
    #[inline]
    fn new(start: usize, end: usize) -> Result<Self, Malformed> {
        match (u32::try_from(start), u32::try_from(end)) {
            (Ok(start), Ok(end)) => Ok(Self { start, end }),
            _ => Err(Malformed::CommandBytes(COMMAND_BYTES_MAX)),
        }
    }
}

// ===== impl Command =====

impl<'i> Command<'_, 'i> {
    /// Bytes of the input that it takes.
    #[inline]
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns whether it is an inline command.
    #[must_use]
    pub fn is_inline(&self) -> bool {
        self.is_inline
    }

    /// Number of arguments, including the name. An empty command is not answered.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// Returns whether it has no arguments, not even a name.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// Argument at a position, with the name at 0; empty if there is none.
    #[inline]
    #[must_use]
    pub fn argument(&self, position: usize) -> &'i [u8] {
        let span = self.spans.get(position);
        let bytes = span.and_then(|span| self.input.get(span.start as usize..span.end as usize));
        bytes.unwrap_or_default()
    }

    /// Arguments from a position on.
    pub fn arguments(&self, from: usize) -> impl ExactSizeIterator<Item = &'i [u8]> {
        (from.min(self.len())..self.len()).map(|position| self.argument(position))
    }
}

#[cfg(test)]
mod tests;
