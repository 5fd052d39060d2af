//! Rows of the tables, as the rest of the service sees them.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;
use sluicegate::named_values;
use sluicegate::rules::{Override, RuleSpec};
use utoipa::ToSchema;

use crate::json::rule::RuleView;
use crate::time::Timestamp;

/// The longest subject of an override.
pub const SUBJECT_BYTES_MAX: usize = 1024;
/// The longest reason of an override.
pub const REASON_BYTES_MAX: usize = 1024;
/// The longest name of a token.
pub const TOKEN_NAME_BYTES_MAX: usize = 64;
/// The most tokens.
pub const TOKENS_MAX: usize = 1000;

/// A rule, as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredRule {
    /// Its columns as [`Rule::spec`](sluicegate::Rule::spec) gives them, conditions by attribute: `tokens` and
    /// `period` are always there, and `rate_per_second` never is.
    pub spec: RuleSpec,
    /// When it was made.
    pub created_at: Timestamp,
    /// Which version of it this is, from 1.
    pub version: u64,
}

/// The rules before and after all of them were replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replaced {
    /// The rules before, by id.
    pub old: Vec<StoredRule>,
    /// The rules after, by id.
    pub new: Vec<StoredRule>,
    /// The generation after; in a dry run, the one before, which is still current.
    pub generation: u64,
}

impl StoredRule {
    /// The rule as the API shows it.
    pub(crate) fn view(&self) -> RuleView {
        RuleView::new(&self.spec, Some(self.created_at), self.version)
    }
}

/// A change of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleChange {
    /// Its number; they grow.
    pub change_id: u64,
    /// The rule.
    pub rule_id: u64,
    /// Who made it.
    pub changed_by: String,
    /// When.
    pub changed_at: Timestamp,
    /// The rule before, as JSON as the API shows it; none if it was made.
    pub old: Option<serde_json::Value>,
    /// The rule after; none if it was deleted.
    pub new: Option<serde_json::Value>,
}

/// An override, as somebody wants it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OverrideSpec {
    /// The rule.
    pub rule_id: u64,
    /// Whose bucket: the value of the rule's subject attribute.
    pub subject: String,
    /// What it has instead of the rule's quota.
    pub instead: Override,
    /// Why, for people.
    pub reason: String,
    /// Until when; for ever if none.
    pub expires_at: Option<Timestamp>,
}

/// An override, as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredOverride {
    /// Its number.
    pub override_id: u64,
    /// What it is.
    pub spec: OverrideSpec,
    /// Who made it.
    pub created_by: String,
    /// When.
    pub created_at: Timestamp,
    /// Which version of it this is, from 1.
    pub version: u64,
}

/// Kind of an override.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "each is the variant of `Override` of that name")]
pub enum OverrideKind {
    Quota,
    Unlimited,
    Blocked,
}

/// What a token may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// Look.
    Read,
    /// Look and change.
    Admin,
}

/// A token, as it is stored: what is needed to recognise it, not to use it.
#[derive(Clone, PartialEq, Eq)]
pub struct StoredToken {
    /// Its number.
    pub token_id: u64,
    /// What people call it.
    pub name: String,
    /// What it may do.
    pub role: Role,
    /// The SHA-256 of it.
    pub hash: [u8; 32],
    /// Who made it.
    pub created_by: String,
    /// When.
    pub created_at: Timestamp,
}

/// Everything that decides, read in one go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loaded {
    /// Grows with every change of a rule, an override or a token.
    pub generation: u64,
    /// All rules, by id.
    pub rules: Vec<StoredRule>,
    /// All overrides; also those that have expired and are not deleted yet.
    pub overrides: Vec<StoredOverride>,
    /// All tokens.
    pub tokens: Vec<StoredToken>,
}

/// A part of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page {
    /// Only what comes after this one in the list's order; from its beginning if none.
    pub after: Option<u64>,
    /// How many at most.
    pub limit: usize,
}

/// Which rules.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "each is the column of that name")]
pub struct RuleFilter {
    pub plan: Option<String>,
    pub scope: Option<String>,
    pub is_active: Option<bool>,
}

/// Which overrides.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "each is the column of that name")]
pub struct OverrideFilter {
    pub rule_id: Option<u64>,
    pub subject: Option<String>,
}

/// Denials of one bucket by one rule in one minute, to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ViolationRow {
    /// The bucket, readable.
    pub bucket_key: String,
    /// The rule.
    pub rule_id: u64,
    /// `true` if it only would have been denied.
    pub is_shadow: bool,
    /// Attributes of the first of them.
    pub user_id: Option<String>,
    /// Its address.
    pub ip_address: Option<String>,
    /// What it was for.
    pub endpoint: Option<String>,
    /// And how.
    pub method: Option<String>,
    /// The first of them.
    pub requested_at: Timestamp,
    /// The last of them.
    pub last_at: Timestamp,
    /// Whole tokens that were left at the first.
    pub tokens_at_time: u64,
    /// How many.
    pub count: u64,
}

/// Rows that are written together or not at all, and only once however often they are sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ViolationBatch {
    /// The process that writes: random, new at each start.
    pub writer: u64,
    /// Grows with every batch of a writer. One that was written already is not written again.
    pub sequence: u64,
    /// The rows. Of several for one bucket, rule, mode and minute, and with what is stored already, the counts
    /// are added, and the first and last times widened.
    pub rows: Vec<ViolationRow>,
}

/// A violation, as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Its number.
    pub violation_id: u64,
    /// What it is.
    pub row: ViolationRow,
}

/// Which violations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "each is the column of that name")]
pub struct ViolationFilter {
    pub user_id: Option<String>,
    pub ip_address: Option<String>,
    pub endpoint: Option<String>,
    pub bucket_key: Option<String>,
    pub rule_id: Option<u64>,
    pub is_shadow: Option<bool>,
    /// Last seen at this time or later.
    pub from: Option<Timestamp>,
    /// First seen before this time.
    pub to: Option<Timestamp>,
}

/// Where a list of violations goes on: after the one with these, newest first. As text it is the cursor of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ViolationOrder {
    /// Its time.
    pub requested_at: Timestamp,
    /// Its number.
    pub violation_id: u64,
}

/// A text that is no cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("is not what a page has as `next`")]
pub struct CursorError;

/// Somebody who was denied a lot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopOffender {
    /// The value of the column that was asked for.
    pub value: String,
    /// Denials.
    pub count: u64,
    /// Rows.
    pub violations: u64,
    /// The last of them.
    pub last_at: Timestamp,
}

named_values! {
    Role:
    Read = "read",
    Admin = "admin",
}

named_values! {
    OverrideKind:
    Quota = "quota",
    Unlimited = "unlimited",
    Blocked = "blocked",
}

impl From<&Override> for OverrideKind {
    fn from(instead: &Override) -> Self {
        match instead {
            Override::Quota(_) => Self::Quota,
            Override::Unlimited => Self::Unlimited,
            Override::Blocked => Self::Blocked,
        }
    }
}

impl Violation {
    /// Where a list goes on after this one.
    #[must_use]
    pub const fn order(&self) -> ViolationOrder {
        ViolationOrder { requested_at: self.row.requested_at, violation_id: self.violation_id }
    }
}

impl fmt::Display for ViolationOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}-{:x}", self.requested_at.micros(), self.violation_id)
    }
}

impl FromStr for ViolationOrder {
    type Err = CursorError;

    fn from_str(text: &str) -> Result<Self, CursorError> {
        let (micros, violation_id) = text.split_once('-').ok_or(CursorError)?;
        let read = |digits| u64::from_str_radix(digits, 16).map_err(|_| CursorError);
        let requested_at = Timestamp::from_micros(read(micros)?.cast_signed());
        Ok(Self { requested_at, violation_id: read(violation_id)? })
    }
}

impl fmt::Debug for StoredToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoredToken")
            .field("token_id", &self.token_id)
            .field("name", &self.name)
            .field("role", &self.role)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursors_there_and_back() {
        for (micros, violation_id) in [(0, 0), (1_785_585_600_000_001, 7), (-1, u64::MAX)] {
            let requested_at = Timestamp::from_micros(micros);
            let order = ViolationOrder { requested_at, violation_id };
            assert_eq!(order.to_string().parse(), Ok(order), "{order}");
        }
        for wrong in ["", "-", "1", "1-", "-1", "1-2-3", "x-1", "1 -1", "11111111111111111-1"] {
            assert_eq!(wrong.parse::<ViolationOrder>(), Err(CursorError), "{wrong}");
        }
    }
}
