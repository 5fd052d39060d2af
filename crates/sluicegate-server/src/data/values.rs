//! Conversion of values for both dialects.

use std::str::FromStr;

use sluicegate::UnknownName;
use sqlx::encode::IsNull;
use sqlx::error::BoxDynError;
use sqlx::postgres::types::Oid;
use sqlx::postgres::{PgArgumentBuffer, PgTypeInfo, PgValueRef};
use sqlx::sqlite::{SqliteArgumentsBuffer, SqliteTypeInfo, SqliteValueRef};
use sqlx::{Decode, Encode, Postgres, Sqlite, Type};

use super::DataError;
use crate::time::Timestamp;

/// Maximum length of the name of a change's author in bytes.
pub(super) const BY_BYTES_MAX: usize = 256;

/// Type id of `timestamptz`, fixed in every PostgreSQL.
const TIMESTAMPTZ: Oid = Oid(1184);

/// 2000-01-01, from which PostgreSQL counts, in microseconds since the Unix epoch.
const POSTGRES_EPOCH: i64 = 946_684_800_000_000;

/// Last time that is stored: the end of the year 9999.
const TIME_MAX: i64 = 253_402_300_799_999_999;

/// A point in time: INTEGER microseconds in SQLite, TIMESTAMPTZ in PostgreSQL. Times before 1970 and after
/// 9999 are stored as the first and the last between them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Time(i64);

impl From<Timestamp> for Time {
    fn from(time: Timestamp) -> Self {
        Self(time.micros().clamp(0, TIME_MAX))
    }
}

impl From<Time> for Timestamp {
    fn from(time: Time) -> Self {
        Self::from_micros(time.0)
    }
}

impl Type<Sqlite> for Time {
    fn type_info() -> SqliteTypeInfo {
        <i64 as Type<Sqlite>>::type_info()
    }

    fn compatible(found: &SqliteTypeInfo) -> bool {
        <i64 as Type<Sqlite>>::compatible(found)
    }
}

impl Encode<'_, Sqlite> for Time {
    fn encode_by_ref(&self, buffer: &mut SqliteArgumentsBuffer) -> Result<IsNull, BoxDynError> {
        <i64 as Encode<'_, Sqlite>>::encode_by_ref(&self.0, buffer)
    }
}

impl<'r> Decode<'r, Sqlite> for Time {
    fn decode(value: SqliteValueRef<'r>) -> Result<Self, BoxDynError> {
        <i64 as Decode<'r, Sqlite>>::decode(value).map(Self)
    }
}

impl Type<Postgres> for Time {
    fn type_info() -> PgTypeInfo {
        PgTypeInfo::with_oid(TIMESTAMPTZ)
    }
}

impl Encode<'_, Postgres> for Time {
    fn encode_by_ref(&self, buffer: &mut PgArgumentBuffer) -> Result<IsNull, BoxDynError> {
        <i64 as Encode<'_, Postgres>>::encode_by_ref(&(self.0 - POSTGRES_EPOCH), buffer)
    }
}

impl<'r> Decode<'r, Postgres> for Time {
    fn decode(value: PgValueRef<'r>) -> Result<Self, BoxDynError> {
        // PostgreSQL's `infinity` is the largest `i64`.
        let since = <i64 as Decode<'r, Postgres>>::decode(value)?;
        Ok(Self(since.saturating_add(POSTGRES_EPOCH)))
    }
}

/// A number for a column. Numbers beyond its range become the largest, which no row has.
pub(super) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Maximum number of rows for SQL.
pub(super) fn rows(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

/// Reads a number of a row, which must not be negative.
pub(super) fn unsigned(column: &'static str, number: i64) -> Result<u64, DataError> {
    u64::try_from(number)
        .map_err(|_| DataError::Unexpected(format!("{column}: {number} is negative")))
}

/// Reads a value by its name in a column.
pub(super) fn named<T: FromStr<Err = UnknownName>>(
    column: &'static str,
    name: &str,
) -> Result<T, DataError> {
    let wrong = |error| DataError::Unexpected(format!("{column}: `{name}` {error}"));
    name.parse().map_err(wrong)
}

/// Text truncated to the column's length, and without NUL, which PostgreSQL cannot store.
pub(super) fn clipped(text: &str, bytes_max: usize) -> String {
    text[..text.floor_char_boundary(bytes_max)].replace('\0', "?")
}
