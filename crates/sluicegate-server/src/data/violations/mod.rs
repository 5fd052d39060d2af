//! Violations: idempotent writes in batches, and filtered queries.

mod read;
mod write;

pub(super) use self::read::{list, top};
pub(super) use self::write::{claim, delete, write};
use super::values::clipped;

/// Maximum length of text in a column in bytes. Longer text is truncated, in rows and in filters.
const TEXT_BYTES_MAX: usize = 1024;

/// Maximum time between the first and the last denial of a row. The service aggregates by minute.
const SPAN_MAX_US: i64 = 3_600_000_000;

/// Name of a mode in the column.
const fn mode(is_shadow: bool) -> &'static str {
    if is_shadow { "shadow" } else { "enforce" }
}

/// Text in its stored form.
fn stored_text(text: &str) -> String {
    clipped(text, TEXT_BYTES_MAX)
}

/// Adds the conditions of a filter to a query that ends in `WHERE` and a condition. Absent fields add none, so that
/// each query can use its index.
macro_rules! filter {
    ($query:expr, $filter:expr) => {{
        let (query, filter): (&mut QueryBuilder<_>, &ViolationFilter) = ($query, $filter);
        let texts = [
            (" AND user_id = ", &filter.user_id),
            (" AND ip_address = ", &filter.ip_address),
            (" AND endpoint = ", &filter.endpoint),
            (" AND bucket_key = ", &filter.bucket_key),
        ];
        for (condition, text) in texts {
            if let Some(text) = text {
                query.push(condition).push_bind(stored_text(text));
            }
        }
        if let Some(rule_id) = filter.rule_id {
            query.push(" AND rule_id = ").push_bind(signed(rule_id));
        }
        if let Some(is_shadow) = filter.is_shadow {
            query.push(" AND mode = ").push_bind(mode(is_shadow));
        }
        if let Some(from) = filter.from {
            query.push(" AND last_at >= ").push_bind(Time::from(from));
            // Implied by the other condition, and this column is in the index.
            let first = from.plus_micros(-SPAN_MAX_US);
            query.push(" AND requested_at >= ").push_bind(Time::from(first));
        }
        if let Some(to) = filter.to {
            query.push(" AND requested_at < ").push_bind(Time::from(to));
        }
    }};
}
use filter;
