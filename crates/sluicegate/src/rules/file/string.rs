//! Positions in a TOML string: from an offset into its value to an offset into the file.

/// Offset into `raw`, a TOML string with its quotes, of the character at `at` in its value; zero if it cannot be found.
pub(super) fn locate(raw: &str, at: usize) -> usize {
    let (quotes, has_escapes) = match raw.as_bytes() {
        [b'"', b'"', b'"', ..] => (3, true),
        [b'\'', b'\'', b'\'', ..] => (3, false),
        [b'"', ..] => (1, true),
        [b'\'', ..] => (1, false),
        _ => return 0,
    };
    let mut offset = quotes;
    if quotes == 3 {
        // The first newline is not part of the value.
        let rest = &raw[offset..];
        offset += if rest.starts_with("\r\n") { 2 } else { usize::from(rest.starts_with('\n')) };
    }
    let mut value_len = 0;
    loop {
        let rest = raw.get(offset..).unwrap_or_default();
        let (skipped, bytes) = match rest.chars().next() {
            Some('\\') if has_escapes => escape(rest),
            Some(c) => (c.len_utf8(), c.len_utf8()),
            None => return 0,
        };
        // An escaped end of line has no character in the value.
        if value_len >= at && bytes > 0 {
            return offset;
        }
        (offset, value_len) = (offset + skipped, value_len + bytes);
    }
}

/// Lengths in bytes of the escape sequence at the start of `raw` and of its value.
fn escape(raw: &str) -> (usize, usize) {
    let digits = match raw.as_bytes().get(1) {
        Some(b'x') => 2,
        Some(b'u') => 4,
        Some(b'U') => 8,
        // The end of a line, and all white space up to the next word.
        Some(b' ' | b'\t' | b'\r' | b'\n') => {
            let rest = raw[1..].trim_start_matches([' ', '\t', '\r', '\n']);
            return (raw.len() - rest.len(), 0);
        }
        _ => return (raw.len().min(2), 1),
    };
    let code = raw.get(2..2 + digits).and_then(|hex| u32::from_str_radix(hex, 16).ok());
    let bytes = code.and_then(char::from_u32).map_or(1, char::len_utf8);
    (raw.len().min(2 + digits), bytes)
}
