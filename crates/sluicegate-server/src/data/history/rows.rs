//! Rows of the history as types for the rest of the service.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use serde_json::Value;
use sluicegate::named_values;

use crate::data::CursorError;
use crate::data::rows::{read_cursor, write_cursor};
use crate::time::Timestamp;

/// Kind of an act.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(
    missing_docs,
    reason = "each is the act of that name, listed in docs/reference/database.md"
)]
pub enum Act {
    RuleCreate,
    RuleUpdate,
    RuleDelete,
    RulesReplace,
    OverrideSet,
    OverrideDelete,
    OverrideExpire,
    TokenCreate,
    TokenUpdate,
    TokenRevoke,
    CallerCreate,
    CallerUpdate,
    CallerRevoke,
    BucketReset,
    BucketGrant,
    BucketRefund,
    ViolationsDelete,
    SignInFailed,
    CallerRefund,
}

named_values! {
    Act:
    RuleCreate = "rule.create",
    RuleUpdate = "rule.update",
    RuleDelete = "rule.delete",
    RulesReplace = "rules.replace",
    OverrideSet = "override.set",
    OverrideDelete = "override.delete",
    OverrideExpire = "override.expire",
    TokenCreate = "token.create",
    TokenUpdate = "token.update",
    TokenRevoke = "token.revoke",
    CallerCreate = "caller.create",
    CallerUpdate = "caller.update",
    CallerRevoke = "caller.revoke",
    BucketReset = "bucket.reset",
    BucketGrant = "bucket.grant",
    BucketRefund = "bucket.refund",
    ViolationsDelete = "violations.delete",
    SignInFailed = "sign_in.failed",
    CallerRefund = "caller.refund",
}

/// Kinds of rows that are kept apart from each other, so that clients cannot displace the acts of administrators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HistoryKind {
    /// Acts of the administration, one per row.
    Acts,
    /// Sums per minute of what clients do: failed sign-ins and refunds.
    Sums,
}

impl HistoryKind {
    /// Acts whose rows are sums.
    pub(super) const SUMS: [Act; 2] = [Act::SignInFailed, Act::CallerRefund];
}

/// Outcome of an act.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was recorded, and its result is not known: it is being done, the process ended, or the result could not be
    /// recorded.
    Started,
    /// It was done.
    Done,
    /// It failed after it was recorded.
    Failed,
}

named_values! {
    Outcome:
    Started = "started",
    Done = "done",
    Failed = "failed",
}

/// Recording of acts: applies the privacy setting to personal data, and counts rows.
pub trait Recording: fmt::Debug + Send + Sync {
    /// Recorded form of the subject of a rule, or of a key without a rule.
    fn subject(&self, rule_id: Option<u64>, subject: &str) -> String;
    /// Recorded form of an address.
    fn address(&self, address: IpAddr) -> String;
    /// Counts rows that were written.
    fn wrote(&self, rows: u64);
}

/// An act to be recorded, in its recorded form: the privacy setting is applied.
#[derive(Clone, Debug, PartialEq)]
pub struct HistoryRow {
    /// Time of the act, or of the first in a sum.
    pub at: Timestamp,
    /// Author of the act.
    pub who: String,
    /// Kind of the act.
    pub act: Act,
    /// Id of the rule, if the act concerns one.
    pub rule_id: Option<u64>,
    /// Subject of the rule, if the act concerns one.
    pub subject: Option<String>,
    /// Name of a token or caller, key of a bucket, or listener of a failed sign-in.
    pub target: Option<String>,
    /// State before, as a JSON object.
    pub before: Option<Value>,
    /// State after, or the arguments of the act, as a JSON object.
    pub after: Option<Value>,
    /// Address of the author's connection.
    pub address: Option<String>,
    /// Reason given by the author; may be empty.
    pub reason: String,
    /// Number of acts, at least 1.
    pub count: u64,
}

/// Rows that are written atomically, and only once however often they are sent.
#[derive(Clone, Debug, PartialEq)]
pub struct HistoryBatch {
    /// Random id of the writing process, new at each start.
    pub writer: u64,
    /// Number of the batch, which grows with every batch of a writer.
    pub sequence: u64,
    /// Rows to write.
    pub rows: Vec<HistoryRow>,
}

/// A recorded act.
#[derive(Clone, Debug, PartialEq)]
pub struct HistoryEntry {
    /// Id of the row.
    pub history_id: u64,
    /// Time of the act, or of the first in a sum.
    pub at: Timestamp,
    /// Author: `token:NAME`, `admin`, `local`, `command line (USER)`, `service`, `caller:NAME`, `unknown`, `sql:USER`.
    pub who: String,
    /// Name of an [`Act`], or of one that a newer version knows.
    pub act: String,
    /// Id of the rule, if the act concerns one.
    pub rule_id: Option<u64>,
    /// Subject of the rule, if the act concerns one.
    pub subject: Option<String>,
    /// Name of a token or caller, key of a bucket, or listener of a failed sign-in.
    pub target: Option<String>,
    /// State before, as a JSON object.
    pub before: Option<Value>,
    /// State after, or the arguments of the act, as a JSON object.
    pub after: Option<Value>,
    /// Address of the author's connection.
    pub address: Option<String>,
    /// Reason given by the author; may be empty.
    pub reason: String,
    /// Number of acts.
    pub count: u64,
    /// Outcome of the act.
    pub outcome: Outcome,
}

/// Filter for the history; an absent field matches all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "each is the column of that name")]
pub struct HistoryFilter {
    pub act: Option<Act>,
    pub who: Option<String>,
    pub rule_id: Option<u64>,
    /// Recorded forms of a subject, any of which matches; empty for all.
    pub subject: Vec<String>,
    /// Recorded forms of a target, any of which matches; empty for all.
    pub target: Vec<String>,
    /// Only acts at this time or later.
    pub from: Option<Timestamp>,
    /// Only acts before this time.
    pub to: Option<Timestamp>,
}

/// Position in the history, newest first. As text it is the cursor of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HistoryOrder {
    /// Time of the act.
    pub at: Timestamp,
    /// Id of the row.
    pub history_id: u64,
}

impl HistoryEntry {
    /// Position of this row, as the cursor for the next page.
    #[must_use]
    pub const fn order(&self) -> HistoryOrder {
        HistoryOrder { at: self.at, history_id: self.history_id }
    }
}

impl fmt::Display for HistoryOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_cursor(f, self.at, self.history_id)
    }
}

impl FromStr for HistoryOrder {
    type Err = CursorError;

    fn from_str(text: &str) -> Result<Self, CursorError> {
        read_cursor(text).map(|(at, history_id)| Self { at, history_id })
    }
}
