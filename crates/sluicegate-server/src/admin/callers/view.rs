//! Callers in answers.

use std::collections::BTreeMap;

use serde::Serialize;
use utoipa::ToSchema;

use super::body::RightName;
use crate::config::Secret;
use crate::data::{DataError, Database, Right, StoredCaller};
use crate::time::Timestamp;

/// Identity of the data doors. Its token cannot be shown again.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
#[schema(as = Caller)]
pub(crate) struct CallerView {
    /// Id of the caller; null only in a dry run that would create one.
    #[schema(minimum = 1)]
    caller_id: Option<u64>,
    /// Unique name.
    name: String,
    /// Operations that it may ask for.
    #[schema(value_type = BTreeSet<RightName>)]
    rights: Vec<&'static str>,
    /// Namespace of its keys and requests; null for none.
    namespace: Option<String>,
    /// Subject alternative name of its client certificate; null if it has a token only.
    certificate: Option<String>,
    /// Time from which it is refused; null if it does not expire.
    #[schema(value_type = Option<String>, format = DateTime)]
    expires_at: Option<Timestamp>,
    /// Time of its last use, up to 30 s late; null if it was never used.
    #[schema(value_type = Option<String>, format = DateTime)]
    last_used_at: Option<Timestamp>,
    /// Name of its author.
    created_by: String,
    /// Time at which it was created.
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
    /// True in a dry run, which changes nothing; else absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    dry_run: Option<bool>,
}

/// A caller that was created, or would be created by a dry run.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = CreatedCaller)]
pub(crate) struct CreatedCallerView {
    #[serde(flatten)]
    pub(super) caller: CallerView,
    /// Its token, shown only here; absent in a dry run, and for a caller with a certificate only.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "exposed")]
    #[schema(value_type = Option<String>, nullable = false)]
    pub(super) token: Option<Secret>,
}

/// Times of the last use of callers, by id.
#[derive(Debug)]
pub(crate) struct Uses(BTreeMap<u64, Timestamp>);

impl Uses {
    /// The times in the database.
    pub(crate) async fn load(database: &Database) -> Result<Self, DataError> {
        Ok(Self(database.caller_uses().await?.into_iter().collect()))
    }
}

impl CallerView {
    /// View of a stored caller.
    pub(crate) fn stored(caller: &StoredCaller, uses: &Uses) -> Self {
        Self { last_used_at: uses.0.get(&caller.caller_id).copied(), ..Self::created(caller) }
    }

    /// View of a caller that has just been created.
    pub(crate) fn created(caller: &StoredCaller) -> Self {
        Self {
            caller_id: Some(caller.caller_id),
            name: caller.name.clone(),
            rights: caller.rights.iter().map(Right::name).collect(),
            namespace: caller.namespace.clone(),
            certificate: caller.certificate.clone(),
            expires_at: caller.expires_at,
            last_used_at: None,
            created_by: caller.created_by.clone(),
            created_at: caller.created_at,
            dry_run: None,
        }
    }

    /// The view in the answer to a dry run. A new caller gets its id when it is saved.
    pub(crate) fn in_dry_run(self, is_new: bool) -> Self {
        Self { caller_id: self.caller_id.filter(|_| !is_new), dry_run: Some(true), ..self }
    }
}

/// Writes a token into the one answer that shows it.
#[expect(clippy::ref_option, reason = "signature required by serde")]
fn exposed<S: serde::Serializer>(token: &Option<Secret>, serializer: S) -> Result<S::Ok, S::Error> {
    token.as_ref().map(Secret::expose).serialize(serializer)
}
