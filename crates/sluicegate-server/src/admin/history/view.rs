//! The history in answers.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

use crate::data::{Act, HistoryEntry};
use crate::time::Timestamp;

/// A page of the history, newest first.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
pub(crate) struct HistoryList {
    pub(crate) history: Vec<HistoryView>,
    /// Cursor of the next page, for `after`; null on the last page.
    pub(crate) next: Option<String>,
}

/// A recorded act, or the sum of those of one minute.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
#[schema(as = HistoryEntry)]
pub(crate) struct HistoryView {
    pub(crate) history_id: u64,
    /// Time of the act; of the first in a sum.
    #[schema(value_type = String, format = DateTime)]
    pub(crate) at: Timestamp,
    /// Author: `token:NAME`; `admin` for the token of the settings; `local` for this machine without a token;
    /// `command line (USER)`; `service` for what the service does by itself; `sql` or `sql:USER` for SQL by hand;
    /// `caller:NAME`; `unknown` for a failed sign-in.
    pub(crate) who: String,
    /// Kind of the act, such as `rule.update`. Newer versions may have further ones.
    pub(crate) act: String,
    /// Id of the rule; null if the act concerns none.
    pub(crate) rule_id: Option<u64>,
    /// Subject of the rule; null if the act concerns none.
    pub(crate) subject: Option<String>,
    /// Name of the token or caller, key of the bucket, listener of a failed sign-in; else null.
    pub(crate) target: Option<String>,
    /// State before; null if there was none.
    #[schema(value_type = Option<Object>)]
    pub(crate) before: Option<Value>,
    /// State after, or the figures of the act; null if there are none.
    #[schema(value_type = Option<Object>)]
    pub(crate) after: Option<Value>,
    /// Address of the author's connection, or network of a failed sign-in; null if it is not known.
    pub(crate) address: Option<String>,
    /// Reason given by the author; empty if none was given.
    pub(crate) reason: String,
    /// Number of acts: more than 1 in a sum, and for the rest of a large SQL statement.
    #[schema(minimum = 1)]
    pub(crate) count: u64,
    /// `done`; `failed` if the act failed after it was recorded; `started` if its result is not known: it is being done,
    /// or the process ended or lost the database before it recorded the result.
    #[schema(value_type = String, pattern = "^(started|done|failed)$")]
    pub(crate) outcome: String,
}

/// Name of an act in a query.
pub(super) struct ActName;

impl PartialSchema for ActName {
    fn schema() -> RefOr<Schema> {
        let names = ObjectBuilder::new().schema_type(Type::String);
        names.enum_values(Some(Act::NAMES.iter().copied())).build().into()
    }
}

impl ToSchema for ActName {}

impl HistoryList {
    /// A page of at most `limit`. One more in `found` means that there is a next page.
    pub(super) fn new(mut found: Vec<HistoryEntry>, limit: usize) -> Self {
        let has_more = found.len() > limit;
        found.truncate(limit);
        let next = found.last().filter(|_| has_more).map(|last| last.order().to_string());
        Self { history: found.into_iter().map(HistoryView::new).collect(), next }
    }
}

impl HistoryView {
    fn new(entry: HistoryEntry) -> Self {
        Self {
            history_id: entry.history_id,
            at: entry.at,
            who: entry.who,
            act: entry.act,
            rule_id: entry.rule_id,
            subject: entry.subject,
            target: entry.target,
            before: entry.before,
            after: entry.after,
            address: entry.address,
            reason: entry.reason,
            count: entry.count,
            outcome: entry.outcome.name().into(),
        }
    }
}
