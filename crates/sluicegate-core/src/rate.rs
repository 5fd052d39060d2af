//! Exact rates: read from text and decimals, kept as written, compared as ratios.

use core::fmt::{self, Write as _};
use core::hash::{Hash, Hasher};
use core::str::FromStr;
use core::time::Duration;

use crate::MICROS_MAX;

/// A decimal number as written: a whole number of tenths, hundredths and so on. Never binary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Decimal {
    mantissa: u64,
    /// Number of the mantissa's digits behind the point; the last of them is not zero.
    scale: u32,
}

/// Reason for refusing a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DecimalError {
    /// Not a decimal number.
    NotANumber,
    /// Positive or negative infinity.
    Infinite,
    /// Below zero.
    Negative,
    /// More digits than can be kept exactly.
    TooManyDigits,
}

/// Tokens per period, exactly as written.
#[derive(Clone, Copy, Debug)]
pub struct Rate {
    /// Tokens, as a reduced ratio.
    numerator: u64,
    denominator: u64,
    period_us: u64,
}

/// Reason for refusing a rate or a duration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RateError {
    /// One of its numbers is not valid.
    Number(DecimalError),
    /// Zero tokens: the bucket would never refill.
    ZeroTokens,
    /// A period of zero.
    ZeroPeriod,
    /// The period is not a whole number of microseconds.
    PeriodTooFine,
    /// The period is longer than 142 years.
    PeriodTooLong,
    /// Not of the form `10/s` or `5 per 2s`.
    Syntax,
    /// Not a unit of time.
    UnknownUnit,
    /// The burst is not a whole number.
    BadBurst,
}

/// Names of units of time, and their microseconds.
const UNITS: [(&str, u64); 24] = [
    ("us", 1),
    ("µs", 1),
    ("microsecond", 1),
    ("microseconds", 1),
    ("ms", 1_000),
    ("millisecond", 1_000),
    ("milliseconds", 1_000),
    ("s", 1_000_000),
    ("sec", 1_000_000),
    ("second", 1_000_000),
    ("seconds", 1_000_000),
    ("m", 60_000_000),
    ("min", 60_000_000),
    ("minute", 60_000_000),
    ("minutes", 60_000_000),
    ("h", 3_600_000_000),
    ("hr", 3_600_000_000),
    ("hour", 3_600_000_000),
    ("hours", 3_600_000_000),
    ("d", 86_400_000_000),
    ("day", 86_400_000_000),
    ("days", 86_400_000_000),
    ("week", 604_800_000_000),
    ("weeks", 604_800_000_000),
];

// ===== impl Decimal =====

impl Decimal {
    /// The shortest decimal that reads back as this float: most likely the number as its author wrote it.
    ///
    /// # Errors
    ///
    /// Not-a-number, infinities, negative numbers, and those with more digits than can be kept.
    pub fn from_f64(number: f64) -> Result<Self, DecimalError> {
        if number.is_nan() {
            return Err(DecimalError::NotANumber);
        }
        if number.is_infinite() {
            return Err(DecimalError::Infinite);
        }
        if number < 0.0 {
            return Err(DecimalError::Negative);
        }
        let mut text = Text { bytes: [0; 48], len: 0 };
        write!(text, "{number}").map_err(|_| DecimalError::TooManyDigits)?;
        text.as_str().parse()
    }

    /// This number of seconds as a duration in whole microseconds. Zero is a duration, but not the period of a
    /// [`Rate`].
    ///
    /// # Errors
    ///
    /// Fractions of a microsecond, and more than 142 years.
    pub fn seconds(self) -> Result<Duration, RateError> {
        self.micros(1_000_000).map(Duration::from_micros)
    }

    /// `self * unit` as a whole number of microseconds.
    fn micros(self, unit: u64) -> Result<u64, RateError> {
        let product = u128::from(self.mantissa) * u128::from(unit);
        let divisor = 10u128.pow(self.scale);
        if !product.is_multiple_of(divisor) {
            return Err(RateError::PeriodTooFine);
        }
        match u64::try_from(product / divisor) {
            Ok(micros) if micros <= MICROS_MAX => Ok(micros),
            _ => Err(RateError::PeriodTooLong),
        }
    }
}

/// A buffer for the digits of one float.
struct Text {
    bytes: [u8; 48],
    len: usize,
}

impl Text {
    fn as_str(&self) -> &str {
        core::str::from_utf8(&self.bytes[..self.len]).unwrap_or_default()
    }
}

impl fmt::Write for Text {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let end = self.len + text.len();
        self.bytes.get_mut(self.len..end).ok_or(fmt::Error)?.copy_from_slice(text.as_bytes());
        self.len = end;
        Ok(())
    }
}

/// Reads `12`, `0.016`, `62.5`: digits, perhaps a point, perhaps a sign. No exponents.
impl FromStr for Decimal {
    type Err = DecimalError;

    fn from_str(text: &str) -> Result<Self, DecimalError> {
        let (negative, text) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
        let is_digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
        if !is_digits(whole) || !is_digits(fraction) {
            return Err(match text {
                "inf" | "Infinity" | "infinity" => DecimalError::Infinite,
                _ => DecimalError::NotANumber,
            });
        }
        // Before the digits are counted: a negative number is refused for its sign, whatever its length.
        if negative && text.bytes().any(|digit| matches!(digit, b'1'..=b'9')) {
            return Err(DecimalError::Negative);
        }
        let fraction = fraction.trim_end_matches('0');
        let mut digits = whole.bytes().chain(fraction.bytes());
        let mantissa = digits
            .try_fold(0u64, |sum, digit| sum.checked_mul(10)?.checked_add(u64::from(digit - b'0')))
            .ok_or(DecimalError::TooManyDigits)?;
        // A u64 has at most 20 digits, but zeros behind the point are not in it.
        let scale = u32::try_from(fraction.len()).unwrap_or(u32::MAX);
        if scale > 20 {
            return Err(DecimalError::TooManyDigits);
        }
        Ok(Self { mantissa, scale })
    }
}

/// Writes the number so that it reads back as the same.
impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let power = 10u128.pow(self.scale);
        let (whole, fraction) =
            (u128::from(self.mantissa) / power, u128::from(self.mantissa) % power);
        match self.scale {
            0 => write!(f, "{whole}"),
            scale => write!(f, "{whole}.{fraction:0width$}", width = scale as usize),
        }
    }
}

// ===== impl Rate =====

impl Rate {
    /// A whole number of tokens per period.
    ///
    /// # Errors
    ///
    /// Zero tokens, and periods that are zero, not whole microseconds, or above 142 years.
    pub fn new(tokens: u64, period: Duration) -> Result<Self, RateError> {
        Self::from_decimal(Decimal { mantissa: tokens, scale: 0 }, period)
    }

    /// A decimal number of tokens per period, as the exact ratio written.
    ///
    /// # Errors
    ///
    /// As [`Rate::new`].
    pub fn from_decimal(tokens: Decimal, period: Duration) -> Result<Self, RateError> {
        if tokens.mantissa == 0 {
            return Err(RateError::ZeroTokens);
        }
        let nanos = period.as_nanos();
        if nanos == 0 {
            return Err(RateError::ZeroPeriod);
        }
        if !nanos.is_multiple_of(1000) {
            return Err(RateError::PeriodTooFine);
        }
        let period_us = u64::try_from(nanos / 1000).map_err(|_| RateError::PeriodTooLong)?;
        if period_us > MICROS_MAX {
            return Err(RateError::PeriodTooLong);
        }
        let too_fine = RateError::Number(DecimalError::TooManyDigits);
        let denominator = 10u64.checked_pow(tokens.scale).ok_or(too_fine)?;
        let divisor = gcd(tokens.mantissa, denominator);
        Ok(Self {
            numerator: tokens.mantissa / divisor,
            denominator: denominator / divisor,
            period_us,
        })
    }

    /// Whole tokens per whole microseconds, both known to be above zero.
    pub(crate) const fn whole(tokens: u64, period_us: u64) -> Self {
        Self { numerator: tokens, denominator: 1, period_us }
    }

    /// Tokens and period as written, if the tokens are a whole number.
    #[must_use]
    pub const fn written(&self) -> Option<(u64, u64)> {
        if self.denominator == 1 { Some((self.numerator, self.period_us)) } else { None }
    }

    /// Whole tokens per whole microseconds: as written where they were, else the reduced ratio. This
    /// is what a database stores: `0.016/s` is 1 per 62500000.
    #[must_use]
    pub fn tokens_and_period_us(&self) -> (u64, u64) {
        self.written().unwrap_or_else(|| self.reduced())
    }

    /// Tokens per second as a float, for people to read; never used to decide.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "shown to people, never computed with")]
    pub fn per_second(&self) -> f64 {
        let (n, p) = self.reduced();
        n as f64 * 1e6 / p as f64
    }

    /// The whole tokens of one period.
    pub(crate) const fn whole_tokens(&self) -> u64 {
        self.numerator / self.denominator
    }

    /// N tokens per P microseconds, reduced. A value that overflows saturates, and [`Quota`](crate::Quota) refuses it.
    #[must_use]
    pub fn reduced(&self) -> (u64, u64) {
        // Both parts of the ratio are reduced already, so only these two pairs can share a factor.
        let divisor = gcd(self.numerator, self.period_us);
        (self.numerator / divisor, self.denominator.saturating_mul(self.period_us / divisor))
    }
}

/// Two rates are equal if their ratios are: `10/s` is `600/minute`.
impl PartialEq for Rate {
    fn eq(&self, other: &Self) -> bool {
        self.reduced() == other.reduced()
    }
}

impl Eq for Rate {}

impl Hash for Rate {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.reduced().hash(state);
    }
}

fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// Parses a duration, such as a period or a waiting time: `2s`, `62.5 s`, `minute`, `1 day`, `0s`.
///
/// # Errors
///
/// Text that is not a number and a unit of time, fractions of a microsecond, and more than 142 years.
pub fn parse_duration(text: &str) -> Result<Duration, RateError> {
    let text = text.trim();
    let number_len = text.find(|c: char| c != '.' && c != '-' && !c.is_ascii_digit());
    let (number, unit) = text.split_at(number_len.ok_or(RateError::Syntax)?);
    let number = match number {
        "" => Decimal { mantissa: 1, scale: 0 },
        number => number.parse().map_err(RateError::Number)?,
    };
    let unit = unit.trim_start();
    let (_, unit_us) =
        UNITS.iter().find(|(name, _)| *name == unit).ok_or(RateError::UnknownUnit)?;
    number.micros(*unit_us).map(Duration::from_micros)
}

/// Reads `10/s`, `100/minute`, `5 per 2s`, `0.016/s`.
impl FromStr for Rate {
    type Err = RateError;

    fn from_str(text: &str) -> Result<Self, RateError> {
        let (tokens, period) =
            text.split_once('/').or_else(|| text.split_once(" per ")).ok_or(RateError::Syntax)?;
        let tokens = tokens.trim().parse().map_err(RateError::Number)?;
        Self::from_decimal(tokens, parse_duration(period)?)
    }
}

/// Writes the rate so that it reads back as the same: `10/s`, `5 per 2s`, `1 per 62.5s`.
impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (tokens, period_us) = self.tokens_and_period_us();
        let shortest = [("d", 86_400_000_000), ("h", 3_600_000_000), ("min", 60_000_000)];
        if period_us == 1_000_000 {
            return write!(f, "{tokens}/s");
        }
        for (name, unit_us) in shortest {
            if period_us == unit_us {
                return write!(f, "{tokens}/{name}");
            }
            if period_us.is_multiple_of(unit_us) {
                return write!(f, "{tokens} per {}{name}", period_us / unit_us);
            }
        }
        let (seconds, micros) = (period_us / 1_000_000, period_us % 1_000_000);
        if micros == 0 {
            return write!(f, "{tokens} per {seconds}s");
        }
        let (mut fraction, mut digits) = (micros, 6);
        while fraction.is_multiple_of(10) {
            (fraction, digits) = (fraction / 10, digits - 1);
        }
        write!(f, "{tokens} per {seconds}.{fraction:0digits$}s")
    }
}

// ===== impl RateError, DecimalError =====

impl fmt::Display for DecimalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotANumber => "not a decimal number",
            Self::Infinite => "infinity is not allowed",
            Self::Negative => "negative",
            Self::TooManyDigits => "too many digits to be kept exactly",
        })
    }
}

impl core::error::Error for DecimalError {}

impl fmt::Display for RateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Number(error) => return error.fmt(f),
            Self::ZeroTokens => "a rate of zero never refills",
            Self::ZeroPeriod => "the period must be longer than zero",
            Self::PeriodTooFine => "the period is not a whole number of microseconds",
            Self::PeriodTooLong => "the period is longer than 142 years",
            Self::Syntax => "not a rate: write it as `10/s`, `100/minute` or `5 per 2s`",
            Self::UnknownUnit => "not a unit of time: use us, ms, s, minute, hour, day or week",
            Self::BadBurst => "the burst is not a whole number",
        })
    }
}

impl core::error::Error for RateError {}
