//! Values of the Redis protocol of any type.

use std::io;

use super::wrong;

/// Length of the first value; `None` if it is incomplete.
pub(super) fn value(input: &[u8]) -> io::Result<Option<usize>> {
    let mut at = 0;
    let mut values_left = 1_usize;
    while values_left > 0 {
        let rest = input.get(at..).unwrap_or_default();
        let Some(end) = rest.iter().position(|byte| *byte == b'\n') else { return Ok(None) };
        let line = &rest[..end];
        at += end + 1;
        values_left -= 1;
        match line[0] {
            b':' | b'+' | b'_' | b'#' | b',' => {}
            b'*' => values_left += number(line)?,
            b'%' => values_left += 2 * number(line)?,
            b'$' if line[1] == b'-' => {}
            b'$' => at += number(line)? + 2,
            _ => return Err(wrong(String::from_utf8_lossy(line))),
        }
    }
    Ok((at <= input.len()).then_some(at))
}

fn number(line: &[u8]) -> io::Result<usize> {
    let digits = line[1..].trim_ascii_end();
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return Err(wrong(String::from_utf8_lossy(line)));
    }
    Ok(digits.iter().fold(0, |number, digit| number * 10 + usize::from(digit - b'0')))
}
