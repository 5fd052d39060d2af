//! Writes rows of the history.

use serde_json::Value;
use sqlx::QueryBuilder;

use super::{Act, HistoryBatch, HistoryRow, Outcome};
use crate::data::session::{Session, on};
use crate::data::values::{BY_BYTES_MAX, Time, clipped, signed, unsigned};
use crate::data::violations::claim;
use crate::data::{Author, DataError, REASON_BYTES_MAX, SUBJECT_BYTES_MAX};
use crate::time::Timestamp;

/// Maximum number of rows in a statement: each has 13 values, and SQLite allows 32,766.
const ROWS_PER_STATEMENT: usize = 500;

/// Largest count of a row.
const COUNT_MAX: u64 = (1 << 53) - 1;

/// Author of a row that names none.
const UNKNOWN: &str = "unknown";

/// A change of a row of this database, to be recorded with it.
#[derive(Debug)]
pub(in crate::data) struct Change {
    pub(in crate::data) act: Act,
    pub(in crate::data) rule_id: Option<u64>,
    /// Subject as it is: the privacy setting is applied when it is recorded.
    pub(in crate::data) subject: Option<String>,
    pub(in crate::data) target: Option<String>,
    pub(in crate::data) before: Option<Value>,
    pub(in crate::data) after: Option<Value>,
    /// Number of rows that it stands for.
    pub(in crate::data) count: u64,
}

impl Change {
    /// A change of one row.
    pub(in crate::data) fn new(act: Act, before: Option<Value>, after: Option<Value>) -> Self {
        Self { act, rule_id: None, subject: None, target: None, before, after, count: 1 }
    }
}

/// Records changes of this transaction.
pub(in crate::data) async fn record(
    session: &mut Session,
    by: &Author,
    changes: Vec<Change>,
) -> Result<(), DataError> {
    let at = Timestamp::now();
    let recording = session.recording().cloned();
    let masked = |rule_id, subject: String| match &recording {
        Some(recording) => recording.subject(rule_id, &subject),
        None => subject,
    };
    let address = by.address.map(|address| match &recording {
        Some(recording) => recording.address(address),
        None => address.to_string(),
    });
    let row = |change: Change| HistoryRow {
        at,
        who: by.name.clone(),
        act: change.act,
        rule_id: change.rule_id,
        subject: change.subject.map(|subject| masked(change.rule_id, subject)),
        target: change.target,
        before: change.before,
        after: change.after,
        address: address.clone(),
        reason: by.reason.clone(),
        count: change.count,
    };
    let rows: Vec<_> = changes.into_iter().map(row).collect();
    // Where the privacy setting is not known, it is applied later.
    insert(session, &rows, Outcome::Done, recording.is_none()).await.map(drop)
}

/// Records one act that is about to be done, and returns the id of its row.
pub(super) async fn one(session: &mut Session, row: &HistoryRow) -> Result<u64, DataError> {
    let history_id = insert(session, std::slice::from_ref(row), Outcome::Started, false).await?;
    unsigned("history_id", history_id.unwrap_or_default())
}

/// Writes a batch, unless it was written already.
pub(super) async fn batch(session: &mut Session, batch: &HistoryBatch) -> Result<(), DataError> {
    if claim(session, batch.writer, batch.sequence).await? {
        insert(session, &batch.rows, Outcome::Done, false).await?;
    }
    Ok(())
}

/// Completes an act with the state after it; without one, its outcome is failed.
pub(super) async fn result(
    session: &mut Session,
    history_id: u64,
    after: Option<&Value>,
) -> Result<(), DataError> {
    let outcome = if after.is_some() { Outcome::Done } else { Outcome::Failed };
    let update = "UPDATE rate_limit_history SET outcome = $2, after = COALESCE($3, after) \
                  WHERE history_id = $1";
    on!(session, connection => sqlx::query(update)
        .bind(signed(history_id))
        .bind(outcome.name())
        .bind(after.map(Value::to_string))
        .execute(connection)
        .await
        .map(drop))?;
    Ok(())
}

/// Inserts rows, and returns the id of the last. Values beyond their column's range are truncated: an act must not fail
/// because of its record.
async fn insert(
    session: &mut Session,
    rows: &[HistoryRow],
    outcome: Outcome,
    is_raw: bool,
) -> Result<Option<i64>, DataError> {
    let mut last = None;
    let text = |text: &Option<String>| text.as_ref().map(|text| clipped(text, SUBJECT_BYTES_MAX));
    let json = |value: &Option<Value>| value.as_ref().map(Value::to_string);
    for rows in rows.chunks(ROWS_PER_STATEMENT) {
        let ids: Vec<i64> = on!(session, connection: Dialect => {
            let mut query = QueryBuilder::<Dialect>::new(
                "INSERT INTO rate_limit_history (at, who, act, rule_id, subject, target, before, after, address, \
                 reason, count, outcome, is_raw) ",
            );
            query.push_values(rows, |mut values, row| {
                let who = if row.who.is_empty() { UNKNOWN } else { &row.who };
                values.push_bind(Time::from(row.at))
                    .push_bind(clipped(who, BY_BYTES_MAX))
                    .push_bind(row.act.name())
                    .push_bind(row.rule_id.map(signed))
                    .push_bind(text(&row.subject))
                    .push_bind(text(&row.target))
                    .push_bind(json(&row.before))
                    .push_bind(json(&row.after))
                    .push_bind(row.address.clone())
                    .push_bind(clipped(&row.reason, REASON_BYTES_MAX))
                    .push_bind(signed(row.count.clamp(1, COUNT_MAX)))
                    .push_bind(outcome.name())
                    .push_bind(is_raw);
            });
            let query = query.push(" RETURNING history_id").build_query_scalar();
            query.persistent(false).fetch_all(connection).await
        })
        .map_err(DataError::unrecorded)?;
        last = ids.into_iter().max();
    }
    if let Some(recording) = session.recording().filter(|_| !session.is_dry_run()) {
        recording.wrote(rows.len() as u64);
    }
    Ok(last)
}
