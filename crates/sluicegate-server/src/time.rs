//! Timestamps of rows and answers.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::de::{self, Deserialize, Deserializer};
use serde::ser::{Serialize, Serializer};
use sluicegate::SystemClock;

/// Microseconds since the Unix epoch. As text it is RFC 3339, in UTC, to the microsecond.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

/// Error of a text that is not a timestamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("is not a time such as 2026-08-01T12:00:00Z")]
pub struct TimestampError;

impl Timestamp {
    /// Timestamp this many microseconds after the epoch.
    #[must_use]
    pub const fn from_micros(micros: i64) -> Self {
        Self(micros)
    }

    /// Microseconds since the epoch.
    #[must_use]
    pub const fn micros(self) -> i64 {
        self.0
    }

    /// Seconds since the epoch, as Prometheus expects them.
    #[must_use]
    pub fn seconds(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// Current wall-clock time.
    #[must_use]
    pub fn now() -> Self {
        Self(SystemClock::wall().get().cast_signed())
    }

    /// Text for people: to the second, in UTC.
    #[must_use]
    pub fn to_the_second(self) -> String {
        match jiff::Timestamp::from_microsecond(self.0) {
            Ok(time) => format!("{time:.0}"),
            Err(_) => self.to_string(),
        }
    }

    /// Timestamp this much later.
    #[must_use]
    pub fn plus(self, length: Duration) -> Self {
        self.plus_micros(i64::try_from(length.as_micros()).unwrap_or(i64::MAX))
    }

    /// Timestamp this many microseconds later, or earlier if negative.
    #[must_use]
    pub const fn plus_micros(self, micros: i64) -> Self {
        Self(self.0.saturating_add(micros))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_microsecond(self.0) {
            Ok(time) => write!(f, "{time:.6}"),
            // Beyond the year 9999: no stored timestamp is.
            Err(_) => write!(f, "{}us", self.0),
        }
    }
}

impl FromStr for Timestamp {
    type Err = TimestampError;

    fn from_str(text: &str) -> Result<Self, TimestampError> {
        let time: jiff::Timestamp = text.parse().map_err(|_| TimestampError)?;
        Ok(Self(time.as_microsecond()))
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_back() {
        let time = Timestamp::from_micros(1_785_585_600_000_001);
        assert_eq!(time.to_string(), "2026-08-01T12:00:00.000001Z");
        assert_eq!(time.to_string().parse(), Ok(time));
        assert_eq!("2026-08-01T14:00:00.000001+02:00".parse(), Ok(time));
        assert_eq!(time.plus_micros(999_998).to_the_second(), "2026-08-01T12:00:00Z");
        for wrong in ["", "yesterday", "2026-08-01", "2026-08-01T12:00:00"] {
            assert_eq!(wrong.parse::<Timestamp>(), Err(TimestampError), "{wrong}");
        }
    }
}
