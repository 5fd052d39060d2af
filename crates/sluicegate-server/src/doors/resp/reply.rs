//! Writes replies in both versions of the protocol.

use std::fmt::Display;
use std::io::Write;

/// Version of the protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Protocol {
    /// Version that every client begins with.
    #[default]
    Resp2,
    /// Version that clients request with `HELLO 3`.
    Resp3,
}

/// Maximum digits of an integer, with its sign.
const DIGITS_MAX: usize = 20;

/// Replies to be sent, in order.
#[derive(Debug, Default)]
pub(super) struct Replies {
    /// Serialized replies.
    pub(super) bytes: Vec<u8>,
    pub(super) protocol: Protocol,
}

impl Replies {
    /// `+OK`
    pub(super) fn ok(&mut self) {
        self.status("OK");
    }

    /// Simple string, such as `OK`.
    pub(super) fn status(&mut self, word: &str) {
        self.line(b'+', word.as_bytes());
    }

    /// Error. Line breaks in its text become spaces.
    pub(super) fn error(&mut self, text: impl Display) {
        let start = self.bytes.len() + 1;
        // Writing to a vector cannot fail.
        let _ = write!(self.bytes, "-{text}");
        for byte in &mut self.bytes[start..] {
            if *byte == b'\r' || *byte == b'\n' {
                *byte = b' ';
            }
        }
        self.bytes.extend_from_slice(b"\r\n");
    }

    /// Writes an integer.
    #[inline]
    pub(super) fn integer(&mut self, number: i64) {
        self.number(b':', number);
    }

    /// Writes an unsigned integer. All values here are below 2^63.
    #[inline]
    pub(super) fn unsigned(&mut self, number: u64) {
        self.integer(i64::try_from(number).unwrap_or(i64::MAX));
    }

    /// Writes a boolean; an integer in RESP2.
    pub(super) fn boolean(&mut self, yes: bool) {
        match self.protocol {
            Protocol::Resp2 => self.integer(yes.into()),
            Protocol::Resp3 => self.line(b'#', if yes { b"t" } else { b"f" }),
        }
    }

    /// Writes null.
    pub(super) fn null(&mut self) {
        let null: &[u8] = match self.protocol {
            Protocol::Resp2 => b"$-1\r\n",
            Protocol::Resp3 => b"_\r\n",
        };
        self.bytes.extend_from_slice(null);
    }

    /// Bulk string of any bytes.
    pub(super) fn bulk(&mut self, bytes: impl AsRef<[u8]>) {
        let bytes = bytes.as_ref();
        self.header(b'$', bytes.len());
        self.bytes.extend_from_slice(bytes);
        self.bytes.extend_from_slice(b"\r\n");
    }

    /// Verbatim string; a bulk string in RESP2.
    pub(super) fn verbatim(&mut self, text: &str) {
        match self.protocol {
            Protocol::Resp2 => self.bulk(text),
            Protocol::Resp3 => {
                self.header(b'=', text.len() + "txt:".len());
                self.bytes.extend_from_slice(b"txt:");
                self.bytes.extend_from_slice(text.as_bytes());
                self.bytes.extend_from_slice(b"\r\n");
            }
        }
    }

    /// Header of an array; its members follow.
    #[inline]
    pub(super) fn array(&mut self, members: usize) {
        self.header(b'*', members);
    }

    /// Header of a map; its names and values follow. A flat array in RESP2.
    pub(super) fn map(&mut self, pairs: usize) {
        match self.protocol {
            Protocol::Resp2 => self.array(2 * pairs),
            Protocol::Resp3 => self.header(b'%', pairs),
        }
    }

    /// Header of a record: values in a fixed order. In RESP3 it is a map, whose names
    /// [`named`](Self::named) writes.
    pub(super) fn record(&mut self, values: usize) {
        match self.protocol {
            Protocol::Resp2 => self.array(values),
            Protocol::Resp3 => self.header(b'%', values),
        }
    }

    /// Name of the next value of a [`record`](Self::record).
    pub(super) fn named(&mut self, name: &str) -> &mut Self {
        if self.protocol == Protocol::Resp3 {
            self.bulk(name);
        }
        self
    }

    fn header(&mut self, kind: u8, length: usize) {
        self.number(kind, i64::try_from(length).unwrap_or(i64::MAX));
    }

    fn line(&mut self, kind: u8, text: &[u8]) {
        self.bytes.push(kind);
        self.bytes.extend_from_slice(text);
        self.bytes.extend_from_slice(b"\r\n");
    }

    /// Writes a line of one number: built from its end, and appended at once.
    #[inline]
    fn number(&mut self, kind: u8, number: i64) {
        if let 0..=9 = number {
            let digit = b'0' + number.to_le_bytes()[0];
            self.bytes.extend_from_slice(&[kind, digit, b'\r', b'\n']);
            return;
        }
        let mut line = [0; DIGITS_MAX + 3];
        let mut start = DIGITS_MAX + 1;
        line[start..].copy_from_slice(b"\r\n");
        let mut rest = number.unsigned_abs();
        while rest > 0 {
            start -= 1;
            line[start] = b'0' + (rest % 10).to_le_bytes()[0];
            rest /= 10;
        }
        if number < 0 {
            start -= 1;
            line[start] = b'-';
        }
        start -= 1;
        line[start] = kind;
        self.bytes.extend_from_slice(&line[start..]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_whole() {
        for number in [0, 1, 9, 10, -1, -10, 99, 100, 1 << 52, i64::MAX, i64::MIN] {
            let mut replies = Replies::default();
            replies.integer(number);
            assert_eq!(replies.bytes, format!(":{number}\r\n").into_bytes());
        }
    }

    #[test]
    fn an_error_is_one_line() {
        let mut replies = Replies::default();
        replies.error("ERR a\r\n+OK\nb");
        assert_eq!(replies.bytes, b"-ERR a  +OK b\r\n");
    }
}
