//! Buffer for the value of a header field. Every answer has some, so it avoids the formatting machinery.

use http::HeaderValue;

/// Most digits of an integer.
const DIGITS_MAX: usize = 20;

/// Printable ASCII of a field value.
pub(super) struct Text(Vec<u8>);

impl Text {
    /// An empty buffer with this capacity.
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

    /// The field value; `None` if it is empty.
    pub(super) fn into_value(self) -> Option<HeaderValue> {
        if self.is_empty() { None } else { value(&self.0) }
    }
}

/// Field value of an integer.
pub(super) fn integer(integer: u64) -> Option<HeaderValue> {
    value(digits(integer, &mut [0; DIGITS_MAX]))
}

/// Field value of exactly this text, which is always valid as one.
fn value(text: &[u8]) -> Option<HeaderValue> {
    HeaderValue::from_bytes(text).ok()
}

/// Writes an integer to the end of `to` and returns the digits.
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
