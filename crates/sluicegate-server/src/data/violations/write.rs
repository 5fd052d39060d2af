//! Writes batches and deletes old violations.

use std::collections::BTreeMap;

use sqlx::QueryBuilder;

use super::{SPAN_MAX_US, filter, mode, stored_text};
use crate::data::session::{Session, on};
use crate::data::values::{Time, rows, signed};
use crate::data::{DataError, ViolationBatch, ViolationFilter, ViolationRow};
use crate::time::Timestamp;

/// Maximum number of rows in a statement: each has 13 values, and SQLite allows 32,766.
const ROWS_PER_STATEMENT: usize = 500;

/// Largest count of a row.
const COUNT_MAX: u64 = (1 << 53) - 1;

/// Largest number of tokens in a row.
const TOKENS_MAX: u64 = 1 << 52;

const MINUTE_US: i64 = 60_000_000;

/// Time after which an idle writer is deleted. A batch is resent at once, long before.
const WRITER_KEPT_US: i64 = 86_400_000_000;

/// Maximum number of idle writers deleted at a time.
const WRITERS_PER_DELETE: usize = 1000;

/// Maximum length of a bucket's id in bytes.
const BUCKET_ID_BYTES_MAX: usize = 1024;

/// Unique key of a row: bucket, rule, mode, minute. Rows are written in its order, so that two processes do not
/// deadlock.
type Key = (Vec<u8>, u64, bool, i64);

/// Writes a batch, unless it was written already.
pub(in crate::data) async fn write(
    session: &mut Session,
    batch: &ViolationBatch,
) -> Result<(), DataError> {
    if !claim(session, batch.writer, batch.sequence).await? {
        return Ok(());
    }
    let summed: Vec<_> = summed(&batch.rows).into_iter().collect();
    for rows in summed.chunks(ROWS_PER_STATEMENT) {
        upsert(session, rows).await?;
    }
    Ok(())
}

/// Claims the number of a batch; `false` if it was claimed before.
pub(in crate::data) async fn claim(
    session: &mut Session,
    writer: u64,
    sequence: u64,
) -> Result<bool, DataError> {
    let claim = "INSERT INTO rate_limit_writers (writer, sequence, written_at) VALUES ($1, $2, $3) \
                 ON CONFLICT (writer) DO UPDATE SET sequence = excluded.sequence, \
                 written_at = excluded.written_at WHERE rate_limit_writers.sequence < excluded.sequence";
    let claimed = on!(session, connection => sqlx::query(claim)
        .bind(writer.cast_signed())
        .bind(signed(sequence))
        .bind(Time::from(Timestamp::now()))
        .execute(connection)
        .await
        .map(|done| done.rows_affected()))?;
    Ok(claimed > 0)
}

/// Rows of a batch in their stored form, merged by key.
fn summed(batch: &[ViolationRow]) -> BTreeMap<Key, ViolationRow> {
    let mut rows: BTreeMap<Key, ViolationRow> = BTreeMap::new();
    for row in batch {
        let row = storable(row);
        let minute = row.requested_at.micros().div_euclid(MINUTE_US);
        let key = (row.bucket_id.clone(), row.rule_id, row.is_shadow, minute);
        let Some(sum) = rows.get_mut(&key) else {
            rows.insert(key, row);
            continue;
        };
        let (count, last_at) =
            ((sum.count + row.count).min(COUNT_MAX), sum.last_at.max(row.last_at));
        if row.requested_at < sum.requested_at {
            *sum = row;
        }
        (sum.count, sum.last_at) = (count, last_at);
    }
    rows
}

/// The row with every value within its column's range: one row must not fail the whole batch.
fn storable(row: &ViolationRow) -> ViolationRow {
    let text = |text: &Option<String>| text.as_deref().map(stored_text);
    let time = |time: Timestamp| Timestamp::from(Time::from(time));
    let requested_at = time(row.requested_at);
    let latest = time(requested_at.plus_micros(SPAN_MAX_US));
    ViolationRow {
        bucket_key: stored_text(&row.bucket_key),
        bucket_id: row.bucket_id.iter().copied().take(BUCKET_ID_BYTES_MAX).collect(),
        rule_id: row.rule_id.min(COUNT_MAX),
        is_shadow: row.is_shadow,
        user_id: text(&row.user_id),
        ip_address: text(&row.ip_address),
        endpoint: text(&row.endpoint),
        method: text(&row.method),
        requested_at,
        last_at: time(row.last_at).clamp(requested_at, latest),
        tokens_at_time: row.tokens_at_time.min(TOKENS_MAX),
        count: row.count.clamp(1, COUNT_MAX),
    }
}

async fn upsert(session: &mut Session, rows: &[(Key, ViolationRow)]) -> Result<(), DataError> {
    on!(session, connection: Dialect => {
        let mut query = QueryBuilder::<Dialect>::new(
            "INSERT INTO rate_limit_violations (bucket_key, bucket_id, user_id, ip_address, endpoint, method, \
             requested_at, tokens_at_time, rule_id, count, last_at, mode, minute) ",
        );
        query.push_values(rows, |mut values, ((.., minute), row)| {
            values.push_bind(row.bucket_key.clone())
                .push_bind(row.bucket_id.clone())
                .push_bind(row.user_id.clone())
                .push_bind(row.ip_address.clone())
                .push_bind(row.endpoint.clone())
                .push_bind(row.method.clone())
                .push_bind(Time::from(row.requested_at))
                .push_bind(signed(row.tokens_at_time))
                .push_bind(signed(row.rule_id))
                .push_bind(signed(row.count))
                .push_bind(Time::from(row.last_at))
                .push_bind(mode(row.is_shadow))
                .push_bind(*minute);
        });
        query.push(
            " ON CONFLICT (bucket_id, rule_id, mode, minute) DO UPDATE SET \
             count = CASE WHEN rate_limit_violations.count > 9007199254740991 - excluded.count \
                 THEN 9007199254740991 ELSE rate_limit_violations.count + excluded.count END, \
             requested_at = CASE WHEN excluded.requested_at < rate_limit_violations.requested_at \
                 THEN excluded.requested_at ELSE rate_limit_violations.requested_at END, \
             last_at = CASE WHEN excluded.last_at > rate_limit_violations.last_at \
                 THEN excluded.last_at ELSE rate_limit_violations.last_at END",
        );
        query.build().persistent(false).execute(connection).await.map(drop)
    })?;
    Ok(())
}

/// Deletes at most `limit` violations, oldest first, and idle writers.
pub(in crate::data) async fn delete(
    session: &mut Session,
    filter: &ViolationFilter,
    limit: usize,
) -> Result<u64, DataError> {
    if *filter == ViolationFilter::default() {
        return Ok(0);
    }
    let of_anybody = ViolationFilter { from: filter.from, to: filter.to, ..Default::default() };
    let lock = match session.is_postgres() {
        // Processes that delete old rows at the same time take different rows and do not wait for each other.
        true if *filter == of_anybody => " FOR UPDATE SKIP LOCKED",
        // Violations of a subject are deleted completely: rows being written are waited for.
        true => " FOR UPDATE",
        false => "",
    };
    let deleted = on!(session, connection: Dialect => {
        let mut query = QueryBuilder::<Dialect>::new(
            "DELETE FROM rate_limit_violations WHERE violation_id IN \
             (SELECT violation_id FROM rate_limit_violations WHERE 1 = 1",
        );
        filter!(&mut query, filter);
        query.push(" ORDER BY requested_at LIMIT ").push_bind(rows(limit)).push(lock).push(")");
        query.build().execute(connection).await.map(|done| done.rows_affected())
    })?;
    forget_writers(session).await?;
    Ok(deleted)
}

async fn forget_writers(session: &mut Session) -> Result<(), DataError> {
    let before = Timestamp::now().plus_micros(-WRITER_KEPT_US);
    let delete = "DELETE FROM rate_limit_writers WHERE writer IN \
                  (SELECT writer FROM rate_limit_writers WHERE written_at < $1 LIMIT $2)";
    on!(session, connection => sqlx::query(delete)
        .bind(Time::from(before))
        .bind(rows(WRITERS_PER_DELETE))
        .execute(connection)
        .await
        .map(drop))?;
    Ok(())
}
