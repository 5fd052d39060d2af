//! Deletes old rows of the history, and masks those that were written without the privacy setting.

use sqlx::QueryBuilder;

use super::read::masked;
use super::{HistoryKind, HistoryOrder};
use crate::data::DataError;
use crate::data::row::row;
use crate::data::session::{Session, on};
use crate::data::values::{Time, rows, signed, unsigned};

row! {
    struct RawRow {
        history_id: i64,
        rule_id: Option<i64>,
        subject: Option<String>,
        address: Option<String>,
    }
}

/// Condition for rows of this kind. The names are constants without quotes.
fn condition(kind: HistoryKind) -> String {
    let names = HistoryKind::SUMS.map(|act| format!("'{}'", act.name())).join(", ");
    match kind {
        HistoryKind::Acts => format!("act NOT IN ({names})"),
        HistoryKind::Sums => format!("act IN ({names})"),
    }
}

/// Position of the newest row that is too many.
pub(super) async fn excess(
    session: &mut Session,
    kind: HistoryKind,
    keep: u64,
) -> Result<Option<HistoryOrder>, DataError> {
    let found: Option<(Time, i64)> = on!(session, connection: Dialect => {
        let mut query =
            QueryBuilder::<Dialect>::new("SELECT at, history_id FROM rate_limit_history WHERE ");
        query.push(condition(kind)).push(" ORDER BY at DESC, history_id DESC LIMIT 1 OFFSET ");
        query.push_bind(signed(keep)).build_query_as().fetch_optional(connection).await
    })?;
    let order = |(at, history_id): (Time, i64)| {
        Ok(HistoryOrder { at: at.into(), history_id: unsigned("history_id", history_id)? })
    };
    found.map(order).transpose()
}

/// Deletes rows up to this position.
pub(super) async fn delete(
    session: &mut Session,
    kind: Option<HistoryKind>,
    until: HistoryOrder,
    limit: usize,
) -> Result<u64, DataError> {
    let lock = skip_locked(session);
    let deleted = on!(session, connection: Dialect => {
        let mut query = QueryBuilder::<Dialect>::new(
            "DELETE FROM rate_limit_history WHERE history_id IN \
             (SELECT history_id FROM rate_limit_history WHERE (at, history_id) <= (",
        );
        query.push_bind(Time::from(until.at)).push(", ").push_bind(signed(until.history_id));
        query.push(")");
        if let Some(kind) = kind {
            query.push(" AND ").push(condition(kind));
        }
        query.push(" ORDER BY at, history_id LIMIT ").push_bind(rows(limit)).push(lock).push(")");
        query.build().execute(connection).await.map(|done| done.rows_affected())
    })?;
    Ok(deleted)
}

/// Masks rows that were written without the privacy setting.
pub(super) async fn mask(session: &mut Session, limit: usize) -> Result<u64, DataError> {
    let (is_raw, lock) =
        (if session.is_postgres() { "is_raw" } else { "is_raw = 1" }, skip_locked(session));
    let found: Vec<RawRow> = on!(session, connection: Dialect => {
        let mut query = QueryBuilder::<Dialect>::new(
            "SELECT history_id, rule_id, subject, address FROM rate_limit_history WHERE ",
        );
        query.push(is_raw).push(" ORDER BY history_id LIMIT ").push_bind(rows(limit)).push(lock);
        query.build_query_as().fetch_all(connection).await
    })?;
    let count = found.len() as u64;
    let update = "UPDATE rate_limit_history SET subject = $2, address = $3, is_raw = $4 \
                  WHERE history_id = $1";
    for RawRow { history_id, rule_id, subject, address } in found {
        let rule_id = rule_id.map(|rule_id| unsigned("rule_id", rule_id)).transpose()?;
        let (subject, address) = masked(session, rule_id, subject, address);
        on!(session, connection => sqlx::query(update)
            .bind(history_id)
            .bind(subject)
            .bind(address)
            .bind(false)
            .execute(connection)
            .await
            .map(drop))?;
    }
    Ok(count)
}

/// Processes that do the same at the same time take different rows and do not wait for each other.
fn skip_locked(session: &Session) -> &'static str {
    if session.is_postgres() { " FOR UPDATE SKIP LOCKED" } else { "" }
}
