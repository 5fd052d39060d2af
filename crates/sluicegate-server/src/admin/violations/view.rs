//! Violations in answers.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use sluicegate::named_values;
use utoipa::ToSchema;

use crate::data::{self, TopOffender, Violation};
use crate::time::Timestamp;

/// A page of violations, newest first.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
pub(crate) struct ViolationList {
    pub(crate) violations: Vec<ViolationView>,
    /// Cursor of the next page, for `after`; null on the last page.
    pub(crate) next: Option<String>,
}

/// Denials of one bucket by one rule in one minute.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
#[schema(as = Violation)]
pub(crate) struct ViolationView {
    pub(crate) violation_id: u64,
    /// Key of the bucket: the rule's key pattern with its placeholders filled in.
    pub(crate) bucket_key: String,
    /// User of the first denied request; null if it had none.
    pub(crate) user_id: Option<String>,
    /// Client address of the first denied request; null if it had none.
    pub(crate) ip_address: Option<String>,
    /// Endpoint of the first denied request; null if it had none.
    pub(crate) endpoint: Option<String>,
    /// Method of the first denied request; null if it had none.
    pub(crate) method: Option<String>,
    /// Time of the first denial.
    #[schema(value_type = String, format = DateTime)]
    pub(crate) requested_at: Timestamp,
    /// Time of the last denial.
    #[schema(value_type = String, format = DateTime)]
    pub(crate) last_at: Timestamp,
    /// Whole tokens left at the first denial.
    pub(crate) tokens_at_time: u64,
    /// Id of the rule.
    pub(crate) rule_id: u64,
    /// Number of denials.
    #[schema(minimum = 1)]
    pub(crate) count: u64,
    /// `enforce`, or `shadow` if the rule was in shadow mode and the requests were not denied.
    pub(crate) mode: ViolationMode,
}

/// Values with the most denials.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
pub(crate) struct TopOffenders {
    /// Attribute that denials are grouped by.
    pub(crate) by: TopBy,
    /// Values in descending order of `count`.
    pub(crate) top: Vec<TopView>,
}

/// A value and its denials.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
#[schema(as = TopOffender)]
pub(crate) struct TopView {
    /// User, address, endpoint or bucket key.
    pub(crate) value: String,
    /// Number of denials.
    pub(crate) count: u64,
    /// Number of violations that these denials are recorded in.
    pub(crate) violations: u64,
    /// Time of the last denial.
    #[schema(value_type = String, format = DateTime)]
    pub(crate) last_at: Timestamp,
}

/// Number of violations deleted.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct DeletedViolations {
    pub(super) deleted: u64,
}

/// Mode of the rule at the time of a violation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ViolationMode {
    Enforce,
    Shadow,
}

/// Attribute that denials are grouped by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, ToSchema, ValueEnum)]
#[serde(rename_all = "snake_case")]
pub(crate) enum TopBy {
    /// The user
    UserId,
    /// The address
    Ip,
    /// The path
    Endpoint,
    /// The bucket
    BucketKey,
}

/// Format of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(in crate::admin) enum ViolationFormat {
    Json,
    Csv,
}

impl ViolationList {
    /// A page of at most `limit`. One more in `found` means that there is a next page.
    pub(crate) fn new(mut found: Vec<Violation>, limit: usize) -> Self {
        let has_more = found.len() > limit;
        found.truncate(limit);
        let next = found.last().filter(|_| has_more).map(|last| last.order().to_string());
        Self { violations: found.into_iter().map(ViolationView::new).collect(), next }
    }
}

impl ViolationView {
    fn new(Violation { violation_id, row }: Violation) -> Self {
        Self {
            violation_id,
            bucket_key: row.bucket_key,
            user_id: row.user_id,
            ip_address: row.ip_address,
            endpoint: row.endpoint,
            method: row.method,
            requested_at: row.requested_at,
            last_at: row.last_at,
            tokens_at_time: row.tokens_at_time,
            rule_id: row.rule_id,
            count: row.count,
            mode: ViolationMode::new(row.is_shadow),
        }
    }
}

impl ViolationMode {
    pub(crate) const fn new(is_shadow: bool) -> Self {
        if is_shadow { Self::Shadow } else { Self::Enforce }
    }
}

named_values! {
    ViolationMode:
    Enforce = "enforce",
    Shadow = "shadow",
}

impl TopOffenders {
    pub(crate) fn new(by: TopBy, top: Vec<TopOffender>) -> Self {
        let view = |TopOffender { value, count, violations, last_at }| TopView {
            value,
            count,
            violations,
            last_at,
        };
        Self { by, top: top.into_iter().map(view).collect() }
    }
}

named_values! {
    TopBy:
    UserId = "user_id",
    Ip = "ip",
    Endpoint = "endpoint",
    BucketKey = "bucket_key",
}

impl From<TopBy> for data::TopBy {
    fn from(by: TopBy) -> Self {
        match by {
            TopBy::UserId => Self::UserId,
            TopBy::Ip => Self::IpAddress,
            TopBy::Endpoint => Self::Endpoint,
            TopBy::BucketKey => Self::BucketKey,
        }
    }
}
