//! Violations as answers show them.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use sluicegate::named_values;
use utoipa::ToSchema;

use crate::data::{self, TopOffender, Violation};
use crate::time::Timestamp;

/// Violations, newest first.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
pub(crate) struct ViolationList {
    pub(crate) violations: Vec<ViolationView>,
    /// Give this back as `after` for the violations that follow; null if there are none.
    pub(crate) next: Option<String>,
}

/// Denials of one bucket by one rule in one minute.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
#[schema(as = Violation)]
pub(crate) struct ViolationView {
    pub(crate) violation_id: u64,
    /// The bucket: the rule's key pattern, filled in.
    pub(crate) bucket_key: String,
    /// Who asked, in the first of them.
    pub(crate) user_id: Option<String>,
    /// From which address.
    pub(crate) ip_address: Option<String>,
    /// For what.
    pub(crate) endpoint: Option<String>,
    /// To do what with it.
    pub(crate) method: Option<String>,
    /// The first of them.
    #[schema(value_type = String, format = DateTime)]
    pub(crate) requested_at: Timestamp,
    /// The last of them.
    #[schema(value_type = String, format = DateTime)]
    pub(crate) last_at: Timestamp,
    /// Whole tokens that were left at the first.
    pub(crate) tokens_at_time: u64,
    /// The rule that denied.
    pub(crate) rule_id: u64,
    /// How many there were.
    #[schema(minimum = 1)]
    pub(crate) count: u64,
    /// `shadow` if they only would have been denied.
    pub(crate) mode: ViolationMode,
}

/// Who was denied most.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
pub(crate) struct TopOffenders {
    /// What denials are added up by.
    pub(crate) by: TopBy,
    /// First the one with the most.
    pub(crate) top: Vec<TopView>,
}

/// Somebody, or something, and its denials.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
#[schema(as = TopOffender)]
pub(crate) struct TopView {
    /// The user, address, endpoint or bucket.
    pub(crate) value: String,
    /// Denials.
    pub(crate) count: u64,
    /// The violations that they are in.
    pub(crate) violations: u64,
    /// The last of them.
    #[schema(value_type = String, format = DateTime)]
    pub(crate) last_at: Timestamp,
}

/// How many were deleted.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct DeletedViolations {
    pub(super) deleted: u64,
}

/// Whether denials counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ViolationMode {
    Enforce,
    Shadow,
}

/// What denials are added up by.
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

/// The form of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum ViolationFormat {
    Json,
    Csv,
}

impl ViolationList {
    /// A page of at most `limit`; that there is one more says that there is another page.
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
