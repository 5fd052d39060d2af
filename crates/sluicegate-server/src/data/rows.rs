//! Rows of the tables as types for the rest of the service.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;
use sluicegate::named_values;
use sluicegate::rules::{Override, RuleSpec};
use utoipa::ToSchema;

use super::Rights;
use crate::json::rule::RuleView;
use crate::time::Timestamp;

/// Maximum length of an override's subject in bytes.
pub const SUBJECT_BYTES_MAX: usize = 1024;
/// Maximum length of an override's reason in bytes.
pub const REASON_BYTES_MAX: usize = 1024;
/// Maximum length of a token's name in bytes.
pub const TOKEN_NAME_BYTES_MAX: usize = 64;
/// Maximum number of tokens.
pub const TOKENS_MAX: usize = 1000;
/// Maximum length of the name of a caller, and of a namespace, in bytes.
pub const NAME_BYTES_MAX: usize = 64;
/// Maximum length of the name in a caller's certificate in bytes.
pub const CERTIFICATE_BYTES_MAX: usize = 253;
/// Maximum number of callers.
pub const CALLERS_MAX: usize = 1000;

/// A stored rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredRule {
    /// Columns as in [`Rule::spec`](sluicegate::Rule::spec), conditions by attribute: `tokens` and `period` are always
    /// present, `rate_per_second` never is.
    pub spec: RuleSpec,
    /// Time of creation.
    pub created_at: Timestamp,
    /// Version, from 1.
    pub version: u64,
}

/// The rules before and after all of them were replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replaced {
    /// The rules before, by id.
    pub old: Vec<StoredRule>,
    /// The rules after, by id.
    pub new: Vec<StoredRule>,
    /// Generation after the change; in a dry run the current one.
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
    /// Id of the change, in ascending order of time.
    pub change_id: u64,
    /// Id of the rule.
    pub rule_id: u64,
    /// Name of the caller that made it.
    pub changed_by: String,
    /// Time of the change.
    pub changed_at: Timestamp,
    /// The rule before, in the JSON form of the API; `None` if it was created.
    pub old: Option<serde_json::Value>,
    /// The rule after; `None` if it was deleted.
    pub new: Option<serde_json::Value>,
}

/// An override to be stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OverrideSpec {
    /// Id of the rule.
    pub rule_id: u64,
    /// Value of the rule's subject attribute.
    pub subject: String,
    /// Replacement of the rule's quota.
    pub instead: Override,
    /// Reason given by its author; may be empty.
    pub reason: String,
    /// End of validity; `None` if it does not expire.
    pub expires_at: Option<Timestamp>,
}

/// A stored override.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredOverride {
    /// Id of the override.
    pub override_id: u64,
    /// Columns of the override.
    pub spec: OverrideSpec,
    /// Name of the caller that set it last.
    pub created_by: String,
    /// Time at which it was last set.
    pub created_at: Timestamp,
    /// Version, from 1.
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

/// Role of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// Read-only access.
    Read,
    /// Read and write access.
    Admin,
}

/// A stored token: enough to verify it, not to use it.
#[derive(Clone, PartialEq, Eq)]
pub struct StoredToken {
    /// Id of the token.
    pub token_id: u64,
    /// Unique name.
    pub name: String,
    /// Role of the token.
    pub role: Role,
    /// SHA-256 of the token.
    pub hash: [u8; 32],
    /// Name of the caller that created it.
    pub created_by: String,
    /// Time of creation.
    pub created_at: Timestamp,
}

/// The part of a caller that its author chooses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallerSpec {
    /// Unique name of 1 to [`NAME_BYTES_MAX`] letters, digits, `.`, `_` or `-`.
    pub name: String,
    /// Operations that it may ask for; at least one.
    pub rights: Rights,
    /// Namespace of its buckets, with the characters of a name; `None` for the common one.
    pub namespace: Option<String>,
    /// Subject alternative name of its certificate, if it may use one.
    pub certificate: Option<String>,
    /// Time from which it is refused; `None` for never.
    pub expires_at: Option<Timestamp>,
}

/// A stored caller of the data doors. Its token can be verified, not used.
#[derive(Clone, PartialEq, Eq)]
pub struct StoredCaller {
    /// Id of the caller.
    pub caller_id: u64,
    /// Unique name.
    pub name: String,
    /// Operations that it may ask for.
    pub rights: Rights,
    /// Namespace of its buckets; `None` for the common one.
    pub namespace: Option<String>,
    /// SHA-256 of its token; `None` if it has a certificate only.
    pub hash: Option<[u8; 32]>,
    /// Subject alternative name of its certificate; `None` if it has a token only.
    pub certificate: Option<String>,
    /// Time from which it is refused; `None` for never.
    pub expires_at: Option<Timestamp>,
    /// Name of the author that created it.
    pub created_by: String,
    /// Time of creation.
    pub created_at: Timestamp,
}

/// Rules, overrides, tokens and callers, read in one transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loaded {
    /// Grows with every change of a rule, an override, a token or a caller.
    pub generation: u64,
    /// All rules, by id.
    pub rules: Vec<StoredRule>,
    /// All overrides, including expired ones that are not deleted yet.
    pub overrides: Vec<StoredOverride>,
    /// All tokens.
    pub tokens: Vec<StoredToken>,
    /// All callers, including expired ones.
    pub callers: Vec<StoredCaller>,
}

/// A page of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page {
    /// Cursor: only rows after it in the list's order; `None` for the first page.
    pub after: Option<u64>,
    /// Maximum number of rows.
    pub limit: usize,
}

/// Filter for rules; an absent field matches all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "each is the column of that name")]
pub struct RuleFilter {
    pub plan: Option<String>,
    pub scope: Option<String>,
    pub is_active: Option<bool>,
}

/// Filter for overrides; an absent field matches all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "each is the column of that name")]
pub struct OverrideFilter {
    pub rule_id: Option<u64>,
    pub subject: Option<String>,
}

/// Denials of one bucket by one rule in one minute, to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ViolationRow {
    /// Readable key of the bucket.
    pub bucket_key: String,
    /// Hash of the values in the key, which distinguishes buckets whose readable keys are the same.
    pub bucket_id: Vec<u8>,
    /// Id of the rule.
    pub rule_id: u64,
    /// True if the rule was in shadow mode.
    pub is_shadow: bool,
    /// User of the first denied request.
    pub user_id: Option<String>,
    /// Client address of the first denied request.
    pub ip_address: Option<String>,
    /// Endpoint of the first denied request.
    pub endpoint: Option<String>,
    /// Method of the first denied request.
    pub method: Option<String>,
    /// Time of the first denial.
    pub requested_at: Timestamp,
    /// Time of the last denial.
    pub last_at: Timestamp,
    /// Whole tokens left at the first denial.
    pub tokens_at_time: u64,
    /// Number of denials.
    pub count: u64,
}

/// Rows that are written atomically, and only once however often they are sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ViolationBatch {
    /// Random id of the writing process, new at each start.
    pub writer: u64,
    /// Number of the batch, which grows with every batch of a writer. A batch is not written twice.
    pub sequence: u64,
    /// Rows to write. Rows of one bucket, rule, mode and minute are merged, also with stored ones: counts are added,
    /// and the times of first and last denial widened.
    pub rows: Vec<ViolationRow>,
}

/// A stored violation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Id of the violation.
    pub violation_id: u64,
    /// Columns of the violation.
    pub row: ViolationRow,
}

/// Filter for violations; an absent field matches all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "each is the column of that name")]
pub struct ViolationFilter {
    pub user_id: Option<String>,
    pub ip_address: Option<String>,
    pub endpoint: Option<String>,
    pub bucket_key: Option<String>,
    pub rule_id: Option<u64>,
    pub is_shadow: Option<bool>,
    /// Only violations whose last denial was at this time or later.
    pub from: Option<Timestamp>,
    /// Only violations whose first denial was before this time.
    pub to: Option<Timestamp>,
}

/// Position in the list of violations, newest first. As text it is the cursor of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ViolationOrder {
    /// Time of its first denial.
    pub requested_at: Timestamp,
    /// Id of the violation.
    pub violation_id: u64,
}

/// Error of text that is not a cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("is not a cursor: send `next` of the previous page")]
pub struct CursorError;

/// Value with many denials.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopOffender {
    /// Value of the column grouped by.
    pub value: String,
    /// Number of denials.
    pub count: u64,
    /// Number of violations.
    pub violations: u64,
    /// Time of the last denial.
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
    /// Position of this violation, as the cursor for the next page.
    #[must_use]
    pub const fn order(&self) -> ViolationOrder {
        ViolationOrder { requested_at: self.row.requested_at, violation_id: self.violation_id }
    }
}

impl fmt::Display for ViolationOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_cursor(f, self.requested_at, self.violation_id)
    }
}

impl FromStr for ViolationOrder {
    type Err = CursorError;

    fn from_str(text: &str) -> Result<Self, CursorError> {
        let (requested_at, violation_id) = read_cursor(text)?;
        Ok(Self { requested_at, violation_id })
    }
}

/// Writes the cursor of a list by time and id.
pub(super) fn write_cursor(f: &mut fmt::Formatter<'_>, at: Timestamp, id: u64) -> fmt::Result {
    write!(f, "{:x}-{id:x}", at.micros())
}

/// Reads the cursor of a list by time and id.
pub(super) fn read_cursor(text: &str) -> Result<(Timestamp, u64), CursorError> {
    let (micros, id) = text.split_once('-').ok_or(CursorError)?;
    let read = |digits| u64::from_str_radix(digits, 16).map_err(|_| CursorError);
    Ok((Timestamp::from_micros(read(micros)?.cast_signed()), read(id)?))
}

/// Without the hash.
impl fmt::Debug for StoredCaller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoredCaller")
            .field("caller_id", &self.caller_id)
            .field("name", &self.name)
            .field("rights", &self.rights)
            .field("namespace", &self.namespace)
            .finish_non_exhaustive()
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
