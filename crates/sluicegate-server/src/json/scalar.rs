//! JSON values as clients in many languages write them: ids as text or numbers, whole numbers with or
//! without a point, decimals read as they were written.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::de::{self, Deserialize, Deserializer, Unexpected, Visitor};
use serde::ser::{Serialize, Serializer};
use sluicegate::{Decimal, DecimalError, RateError, UnknownName, parse_duration};

/// Text, borrowed from the body where nothing in it is escaped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Text<'a>(pub(crate) Cow<'a, str>);

/// Text, or a whole number in its place: `"42"` and `42` are the same id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Id<'a>(pub(crate) Cow<'a, str>);

/// A whole number that is not negative; `1.0` is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Whole(pub(crate) u64);

/// `true` or `false`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Flag(pub(crate) bool);

/// A decimal number, as the shortest one that reads back as the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Number(pub(crate) Decimal);

/// A time: a number of seconds, or text with a unit such as `1h`. An error is reported by the caller, who knows the
/// field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seconds(pub(crate) Result<Duration, RateError>);

/// [`Seconds`] that may be 0: the longest delay in a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wait(pub(crate) Result<Duration, RateError>);

/// A value of an enum by its name. An error is reported by the caller, who knows the field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Choice<T>(pub(crate) Result<T, UnknownName>);

/// Whole floats up to this are exact.
const WHOLE_MAX: f64 = (1u64 << 53) as f64;

/// Maximum bytes of a client's text that an error quotes. More would not help, and escaping it takes time.
const QUOTED_BYTES_MAX: usize = 64;

/// Beginning of a text, as errors quote it.
pub(crate) fn quoted(text: &str) -> &str {
    &text[..text.floor_char_boundary(QUOTED_BYTES_MAX)]
}

/// Error about text in place of another value.
#[cold]
pub(crate) fn text_instead<E: de::Error>(text: &str, expected: &dyn de::Expected) -> E {
    E::invalid_type(Unexpected::Str(quoted(text)), expected)
}

impl Text<'_> {
    /// A copy of the text.
    pub(crate) fn to_owned(&self) -> String {
        self.0.clone().into_owned()
    }
}

struct TextVisitor {
    numbers: bool,
}

impl<'de> Visitor<'de> for TextVisitor {
    type Value = Cow<'de, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.numbers { "text or a whole number" } else { "text" })
    }

    fn visit_borrowed_str<E: de::Error>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(text))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Cow::Owned(text.to_owned()))
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<Self::Value, E> {
        if self.numbers {
            return Ok(Cow::Owned(number.to_string()));
        }
        Err(E::invalid_type(Unexpected::Unsigned(number), &self))
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<Self::Value, E> {
        if self.numbers {
            return Ok(Cow::Owned(number.to_string()));
        }
        Err(E::invalid_type(Unexpected::Signed(number), &self))
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(TextVisitor { numbers: false }).map(Self)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Id<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TextVisitor { numbers: true }).map(Self)
    }
}

struct WholeVisitor;

impl Visitor<'_> for WholeVisitor {
    type Value = Whole;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a whole number that is not negative")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Whole, E> {
        Err(text_instead(text, &self))
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<Whole, E> {
        Ok(Whole(number))
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<Whole, E> {
        u64::try_from(number)
            .map(Whole)
            .map_err(|_| E::invalid_value(Unexpected::Signed(number), &self))
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "in range and whole"
    )]
    fn visit_f64<E: de::Error>(self, number: f64) -> Result<Whole, E> {
        if number.fract() == 0.0 && (0.0..=WHOLE_MAX).contains(&number) {
            return Ok(Whole(number as u64));
        }
        Err(E::invalid_value(Unexpected::Float(number), &self))
    }
}

impl<'de> Deserialize<'de> for Whole {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(WholeVisitor)
    }
}

struct FlagVisitor;

impl Visitor<'_> for FlagVisitor {
    type Value = Flag;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a boolean")
    }

    fn visit_bool<E: de::Error>(self, flag: bool) -> Result<Flag, E> {
        Ok(Flag(flag))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Flag, E> {
        Err(text_instead(text, &self))
    }
}

impl<'de> Deserialize<'de> for Flag {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(FlagVisitor)
    }
}

struct NumberVisitor;

impl NumberVisitor {
    fn read<E: de::Error>(number: Result<Decimal, DecimalError>) -> Result<Number, E> {
        number.map(Number).map_err(E::custom)
    }
}

impl Visitor<'_> for NumberVisitor {
    type Value = Number;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Number, E> {
        Err(text_instead(text, &self))
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<Number, E> {
        Self::read(number.to_string().parse())
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<Number, E> {
        Self::read(number.to_string().parse())
    }

    fn visit_f64<E: de::Error>(self, number: f64) -> Result<Number, E> {
        Self::read(Decimal::from_f64(number))
    }
}

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NumberVisitor)
    }
}

struct SecondsVisitor;

impl SecondsVisitor {
    fn read(number: Result<Decimal, DecimalError>) -> Seconds {
        Seconds(number.map_err(RateError::Number).and_then(Decimal::seconds))
    }
}

impl Visitor<'_> for SecondsVisitor {
    type Value = Seconds;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number of seconds, or text such as \"62.5s\"")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Seconds, E> {
        match parse_duration(text) {
            Err(RateError::Syntax) => Err(E::invalid_value(Unexpected::Str(quoted(text)), &self)),
            read => Ok(Seconds(read)),
        }
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<Seconds, E> {
        Ok(Self::read(number.to_string().parse()))
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<Seconds, E> {
        Ok(Self::read(number.to_string().parse()))
    }

    fn visit_f64<E: de::Error>(self, number: f64) -> Result<Seconds, E> {
        Ok(Self::read(Decimal::from_f64(number)))
    }
}

impl<'de> Deserialize<'de> for Seconds {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(SecondsVisitor)
    }
}

impl<'de> Deserialize<'de> for Wait {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Seconds::deserialize(deserializer).map(|Seconds(read)| Self(read))
    }
}

impl<'de, T: FromStr<Err = UnknownName>> Deserialize<'de> for Choice<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Text(text) = Text::deserialize(deserializer)?;
        Ok(Self(text.parse()))
    }
}

/// A number as people write it: whole ones without a point.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Plain(pub(crate) f64);

impl Serialize for Plain {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "in range and whole"
    )]
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(number) = *self;
        if number.fract() == 0.0 && (0.0..WHOLE_MAX).contains(&number) {
            return serializer.serialize_u64(number as u64);
        }
        serializer.serialize_f64(number)
    }
}
