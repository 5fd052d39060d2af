//! Ends of validity in request bodies.

use std::time::Duration;

use crate::json::{Seconds, Text};
use crate::time::Timestamp;
use crate::web::problem::Problem;

/// End of validity, which a body gives as `expires_at` or as `expires_in`; `None` without either.
///
/// # Errors
///
/// Names the field: both are given, one is malformed, or the end is not in the future.
pub(super) fn expiry(
    expires_at: Option<&Text<'_>>,
    expires_in: Option<Seconds>,
    now: Timestamp,
) -> Result<Option<Timestamp>, Problem> {
    let at = match (expires_at, expires_in) {
        (Some(_), Some(_)) => {
            return Err(Problem::field("expires_in", "cannot be combined with expires_at"));
        }
        (None, None) => return Ok(None),
        (Some(Text(text)), None) => {
            text.parse().map_err(|error| Problem::field("expires_at", error))?
        }
        (None, expires_in) => {
            let length = seconds("expires_in", expires_in)?.unwrap_or_default();
            if length.is_zero() {
                return Err(Problem::field("expires_in", "must be longer than zero"));
            }
            now.plus(length)
        }
    };
    if at <= now {
        return Err(Problem::field("expires_at", "is not in the future"));
    }
    Ok(Some(at))
}

/// Duration in a field, if it is given.
pub(super) fn seconds(field: &str, given: Option<Seconds>) -> Result<Option<Duration>, Problem> {
    let read = |Seconds(read)| read.map_err(|error| Problem::field(field, error));
    given.map(read).transpose()
}
