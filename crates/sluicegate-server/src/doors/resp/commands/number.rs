//! Whole numbers in arguments.

use crate::doors::resp::error::Fault;

/// Parses a non-negative whole number in decimal digits, up to 2^63 - 1: clients cannot read larger
/// ones in replies.
#[inline]
pub(super) fn whole(field: &str, text: &[u8]) -> Result<u64, Fault> {
    // This many digits never overflow.
    const DIGITS: usize = 18;
    if (1..=DIGITS).contains(&text.len()) && text.iter().all(u8::is_ascii_digit) {
        return Ok(text.iter().fold(0, |sum, digit| sum * 10 + u64::from(digit - b'0')));
    }
    long(field, text)
}

/// Slow path: long or invalid numbers.
#[cold]
fn long(field: &str, text: &[u8]) -> Result<u64, Fault> {
    let number = str::from_utf8(text).ok().and_then(|text| text.parse::<i128>().ok());
    let is_number = text.iter().skip_while(|byte| b"+-".contains(byte)).all(u8::is_ascii_digit);
    match number {
        Some(number) if number < 0 => Err(Fault::field(field, "is negative")),
        Some(number) => match i64::try_from(number) {
            Ok(number) => Ok(number.unsigned_abs()),
            Err(_) => Err(Fault::field(field, "is too large")),
        },
        None if is_number && text.len() > DIGITS_OF_I128 => {
            Err(Fault::field(field, "is too large"))
        }
        None => Err(Fault::field(field, "is not a whole number")),
    }
}

/// Longer digit strings overflow `i128` and are reported as too large.
const DIGITS_OF_I128: usize = 38;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_whole_and_in_range() {
        let read = |text: &str| whole("cost", text.as_bytes()).map_err(|fault| fault.to_string());
        assert_eq!(read("0"), Ok(0));
        assert_eq!(read("007"), Ok(7));
        assert_eq!(read("+7"), Ok(7));
        assert_eq!(read("999999999999999999"), Ok(999_999_999_999_999_999));
        assert_eq!(read("9223372036854775807"), Ok(i64::MAX.unsigned_abs()));
        let refused =
            |text: &str, why: &str| assert_eq!(read(text), Err(format!("ERR cost: {why}")));
        refused("9223372036854775808", "is too large");
        refused(&"9".repeat(100), "is too large");
        refused("-1", "is negative");
        refused("-99999999999999999999", "is negative");
        for text in ["", "-", "+", "1.5", "1e3", " 1", "0x10", "\u{664}", "--1"] {
            refused(text, "is not a whole number");
        }
    }
}
