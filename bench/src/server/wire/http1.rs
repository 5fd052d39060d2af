//! HTTP/1.1 answers with a length.

use std::io;

use super::wrong;

/// Start of a successful answer.
const OK: &[u8] = b"HTTP/1.1 200 ";
const LENGTH: &[u8] = b"content-length: ";

/// Length and body of the first answer; `None` if it is incomplete.
pub(super) fn response(input: &[u8]) -> io::Result<Option<(usize, &[u8])>> {
    let Some(head) = input.windows(4).position(|end| end == b"\r\n\r\n") else { return Ok(None) };
    let head = &input[..head + 4];
    if !head.starts_with(OK) {
        return Err(wrong(String::from_utf8_lossy(input)));
    }
    let mut lines = head.split(|byte| *byte == b'\n');
    let length = lines.find_map(|line| {
        let (name, value) = line.split_at_checked(LENGTH.len())?;
        name.eq_ignore_ascii_case(LENGTH).then(|| value.trim_ascii_end())
    });
    let length = length.ok_or_else(|| wrong("an answer without a length"))?;
    let length = length.iter().fold(0, |length, digit| length * 10 + usize::from(digit - b'0'));
    let end = head.len() + length;
    Ok(input.get(head.len()..end).map(|body| (end, body)))
}
