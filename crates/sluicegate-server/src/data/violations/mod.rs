//! Violations: written in batches, each once; asked for by who, what and when.

mod read;
mod write;

pub(super) use self::read::{list, top};
pub(super) use self::write::{delete, write};
use super::values::clipped;

/// The longest text of a column. Longer ones are cut, here as in what is asked for.
const TEXT_BYTES_MAX: usize = 1024;

/// The longest time between the first and the last denial of a row. The service sums up by the minute.
const SPAN_MAX_US: i64 = 3_600_000_000;

/// The name of a mode, as the column has it.
const fn mode(is_shadow: bool) -> &'static str {
    if is_shadow { "shadow" } else { "enforce" }
}

/// A text as its column has it.
fn stored_text(text: &str) -> String {
    clipped(text, TEXT_BYTES_MAX)
}

/// Adds what the filter asks for to a query that ends in `WHERE` and a condition. Only what is asked for is
/// there, so that each question finds its index.
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
            // Follows from the other, and the index knows this column.
            let first = from.plus_micros(-SPAN_MAX_US);
            query.push(" AND requested_at >= ").push_bind(Time::from(first));
        }
        if let Some(to) = filter.to {
            query.push(" AND requested_at < ").push_bind(Time::from(to));
        }
    }};
}
use filter;
