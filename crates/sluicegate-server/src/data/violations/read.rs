//! Lists of violations, and the values with the most denials.

use sqlx::QueryBuilder;

use super::{SPAN_MAX_US, filter, mode, stored_text};
use crate::data::row::row;
use crate::data::session::{Session, on};
use crate::data::values::{Time, rows, signed, unsigned};
use crate::data::{
    DataError, TopBy, TopOffender, Violation, ViolationFilter, ViolationOrder, ViolationRow,
};
use crate::time::Timestamp;

/// Default span of the query for the most denials: a day.
const TOP_SPAN_US: i64 = 86_400_000_000;

row! {
    struct Row {
        violation_id: i64,
        bucket_key: String,
        bucket_id: Vec<u8>,
        user_id: Option<String>,
        ip_address: Option<String>,
        endpoint: Option<String>,
        method: Option<String>,
        requested_at: Time,
        tokens_at_time: i64,
        rule_id: i64,
        count: i64,
        last_at: Time,
        mode: String,
    }
}

row! {
    struct TopRow {
        value: String,
        count: i64,
        violations: i64,
        last_at: Time,
    }
}

/// Violations, newest first.
pub(in crate::data) async fn list(
    session: &mut Session,
    filter: &ViolationFilter,
    after: Option<ViolationOrder>,
    limit: usize,
) -> Result<Vec<Violation>, DataError> {
    let found: Vec<Row> = on!(session, connection: Dialect => {
        let mut query = QueryBuilder::<Dialect>::new(
            "SELECT violation_id, bucket_key, bucket_id, user_id, ip_address, endpoint, method, \
             requested_at, tokens_at_time, rule_id, count, last_at, mode FROM rate_limit_violations WHERE 1 = 1",
        );
        filter!(&mut query, filter);
        if let Some(after) = after {
            query.push(" AND (requested_at, violation_id) < (")
                .push_bind(Time::from(after.requested_at))
                .push(", ")
                .push_bind(signed(after.violation_id))
                .push(")");
        }
        query.push(" ORDER BY requested_at DESC, violation_id DESC LIMIT ").push_bind(rows(limit));
        query.build_query_as().fetch_all(connection).await
    })?;
    found.into_iter().map(Row::violation).collect()
}

/// Values with the most denials, in descending order.
pub(in crate::data) async fn top(
    session: &mut Session,
    filter: &ViolationFilter,
    by: TopBy,
    limit: usize,
) -> Result<Vec<TopOffender>, DataError> {
    let (column, group) = match by {
        TopBy::UserId => ("user_id", "user_id"),
        TopBy::IpAddress => ("ip_address", "ip_address"),
        TopBy::Endpoint => ("endpoint", "endpoint"),
        // Different buckets may have the same readable key.
        TopBy::BucketKey => ("bucket_key", "bucket_key, bucket_id"),
    };
    let until = filter.to.unwrap_or_else(Timestamp::now);
    let from = filter.from.unwrap_or_else(|| until.plus_micros(-TOP_SPAN_US));
    let filter = &ViolationFilter { from: Some(from), ..filter.clone() };
    let found: Vec<TopRow> = on!(session, connection: Dialect => {
        let mut query = QueryBuilder::<Dialect>::new("SELECT ");
        query.push(column).push(
            " AS value, CAST(SUM(count) AS BIGINT) AS count, COUNT(*) AS violations, \
             MAX(last_at) AS last_at FROM rate_limit_violations WHERE ",
        );
        query.push(column).push(" IS NOT NULL");
        filter!(&mut query, filter);
        query.push(" GROUP BY ").push(group)
            .push(" ORDER BY SUM(count) DESC, MAX(last_at) DESC, ").push(group)
            .push(" LIMIT ").push_bind(rows(limit));
        query.build_query_as().fetch_all(connection).await
    })?;
    found.into_iter().map(TopRow::offender).collect()
}

impl Row {
    fn violation(self) -> Result<Violation, DataError> {
        let row = ViolationRow {
            bucket_key: self.bucket_key,
            bucket_id: self.bucket_id,
            rule_id: unsigned("rule_id", self.rule_id)?,
            is_shadow: self.mode == mode(true),
            user_id: self.user_id,
            ip_address: self.ip_address,
            endpoint: self.endpoint,
            method: self.method,
            requested_at: self.requested_at.into(),
            last_at: self.last_at.into(),
            tokens_at_time: unsigned("tokens_at_time", self.tokens_at_time)?,
            count: unsigned("count", self.count)?,
        };
        Ok(Violation { violation_id: unsigned("violation_id", self.violation_id)?, row })
    }
}

impl TopRow {
    fn offender(self) -> Result<TopOffender, DataError> {
        Ok(TopOffender {
            value: self.value,
            count: unsigned("count", self.count)?,
            violations: unsigned("violations", self.violations)?,
            last_at: self.last_at.into(),
        })
    }
}
