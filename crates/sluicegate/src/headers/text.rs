//! Text on its way into a header field. It is on every answer, so that it is put together by hand, without
//! formatting.

use http::HeaderValue;

/// The most digits of an integer.
const DIGITS_MAX: usize = 20;

/// Printable ASCII that becomes the value of a field.
pub(super) struct Text(Vec<u8>);

impl Text {
    /// Nothing yet, with room for so many bytes.
    pub(super) fn with_capacity(bytes: usize) -> Self {
        Self(Vec::with_capacity(bytes))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn push(&mut self, text: &str) {
        self.0.extend_from_slice(text.as_bytes());
    }

    pub(super) fn push_byte(&mut self, byte: u8) {
        self.0.push(byte);
    }

    pub(super) fn push_integer(&mut self, integer: u64) {
        self.0.extend_from_slice(digits(integer, &mut [0; DIGITS_MAX]));
    }

    /// The value; none if it is empty.
    pub(super) fn into_value(self) -> Option<HeaderValue> {
        if self.is_empty() { None } else { value(&self.0) }
    }
}

/// An integer alone.
pub(super) fn integer(integer: u64) -> Option<HeaderValue> {
    value(digits(integer, &mut [0; DIGITS_MAX]))
}

/// A copy that is as long as the text. There is nothing in it that a field could not hold.
fn value(text: &[u8]) -> Option<HeaderValue> {
    HeaderValue::from_bytes(text).ok()
}

/// Writes an integer to the end of `to`, and returns what it wrote.
fn digits(mut integer: u64, to: &mut [u8; DIGITS_MAX]) -> &[u8] {
    let mut first = DIGITS_MAX;
    loop {
        first -= 1;
        to[first] = b'0' + (integer % 10) as u8;
        integer /= 10;
        if integer == 0 {
            return &to[first..];
        }
    }
}
