//! Callers in request bodies.

use serde::Deserialize;
use utoipa::ToSchema;

use crate::admin::expiry::expiry;
use crate::data::{CallerSpec, Right, Rights, StoredCaller};
use crate::json::schema::{Named, Time};
use crate::json::{Choice, Column, Flag, List, Seconds, Text};
use crate::time::Timestamp;
use crate::web::problem::Problem;

/// Maximum number of rights in a list: each once.
const RIGHTS_MAX: usize = Right::NAMES.len();

impl Named for Right {
    const SCHEMA: &'static str = "Right";
    const VALUES: &'static [&'static str] = &Self::NAMES;
}

/// Schema of the names of [`Right`].
pub(super) type RightName = Choice<Right>;

/// Names of rights in a body.
type RightNames = List<RightName, RIGHTS_MAX>;

/// Caller to create. It needs a token, a certificate, or both.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(
    example = json!({"name": "checkout", "rights": ["check", "take"], "namespace": "team-a", "expires_in": "90 days"})
)]
#[serde(deny_unknown_fields)]
pub(super) struct NewCaller<'a> {
    /// Unique name; `default` is reserved.
    #[serde(borrow)]
    #[schema(value_type = String, min_length = 1, max_length = 64, pattern = "^[A-Za-z0-9._-]*$")]
    name: Text<'a>,
    /// Operations that it may ask for.
    #[schema(value_type = BTreeSet<RightName>, min_items = 1, max_items = 4)]
    rights: RightNames,
    /// Namespace of its keys and requests; none if absent.
    #[schema(value_type = Option<String>, min_length = 1, max_length = 64, pattern = "^[A-Za-z0-9._-]*$")]
    namespace: Option<Text<'a>>,
    /// Subject alternative name of its client certificate: a DNS name or a URI.
    #[schema(value_type = Option<String>, min_length = 1, max_length = 253, pattern = "^[!-~]*$")]
    certificate: Option<Text<'a>>,
    /// End of validity. Without this and `expires_in`, the caller does not expire.
    #[schema(value_type = Option<String>, format = DateTime)]
    expires_at: Option<Text<'a>>,
    /// Validity from now, in seconds or as text such as `90 days`.
    #[schema(value_type = Option<Time>)]
    expires_in: Option<Seconds>,
    /// False for a caller that has a certificate only.
    #[schema(value_type = Option<bool>, default = true)]
    token: Option<Flag>,
}

/// Fields of a caller to be changed: a merge patch (RFC 7396). An absent field stays; null removes its value. Name and
/// token cannot change.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[schema(example = json!({"rights": ["check"], "expires_at": null}))]
#[serde(deny_unknown_fields)]
pub(super) struct CallerPatch<'a> {
    /// Operations that it may ask for.
    #[serde(default)]
    #[schema(value_type = Option<BTreeSet<RightName>>, min_items = 1, max_items = 4, nullable = false)]
    rights: Column<RightNames>,
    /// Namespace of its keys and requests.
    #[serde(default, borrow)]
    #[schema(value_type = Option<String>, min_length = 1, max_length = 64, pattern = "^[A-Za-z0-9._-]*$")]
    namespace: Column<Text<'a>>,
    /// Subject alternative name of its client certificate: a DNS name or a URI.
    #[serde(default)]
    #[schema(value_type = Option<String>, min_length = 1, max_length = 253, pattern = "^[!-~]*$")]
    certificate: Column<Text<'a>>,
    /// End of validity.
    #[serde(default)]
    #[schema(value_type = Option<String>, format = DateTime)]
    expires_at: Column<Text<'a>>,
    /// Validity from now, in seconds or as text such as `90 days`.
    #[schema(value_type = Option<Time>)]
    expires_in: Option<Seconds>,
}

/// Changes of a caller, of which those that can be checked without it are.
#[derive(Debug)]
pub(super) struct Change<'a> {
    patch: &'a CallerPatch<'a>,
    rights: Option<Rights>,
    expires_at: Column<Timestamp>,
}

impl NewCaller<'_> {
    /// True if a token is created for the caller.
    pub(super) fn has_token(&self) -> bool {
        self.token.is_none_or(|Flag(has_token)| has_token)
    }

    /// The caller to store. The database checks names.
    ///
    /// # Errors
    ///
    /// Names the invalid field.
    pub(super) fn spec(&self, now: Timestamp) -> Result<CallerSpec, Problem> {
        Ok(CallerSpec {
            name: self.name.to_owned(),
            rights: rights(&self.rights)?,
            namespace: self.namespace.as_ref().map(Text::to_owned),
            certificate: self.certificate.as_ref().map(Text::to_owned),
            expires_at: expiry(self.expires_at.as_ref(), self.expires_in, now)?,
        })
    }
}

impl<'a> CallerPatch<'a> {
    /// The changes.
    ///
    /// # Errors
    ///
    /// Names the invalid field.
    pub(super) fn change(&'a self, now: Timestamp) -> Result<Change<'a>, Problem> {
        let rights = match &self.rights {
            Column::Absent => None,
            Column::Null => return Err(Problem::field("rights", "cannot be removed")),
            Column::Given(names) => Some(rights(names)?),
        };
        let expires_at = match (&self.expires_at, self.expires_in) {
            (Column::Null, Some(_)) => {
                return Err(Problem::field("expires_in", "cannot be combined with expires_at"));
            }
            (Column::Null, None) => Column::Null,
            (column, expires_in) => {
                expiry(column.given(), expires_in, now)?.map_or(Column::Absent, Column::Given)
            }
        };
        Ok(Change { patch: self, rights, expires_at })
    }
}

impl Change<'_> {
    /// The caller after the changes.
    pub(super) fn apply(&self, before: &StoredCaller) -> CallerSpec {
        let mut after = CallerSpec {
            name: before.name.clone(),
            rights: self.rights.unwrap_or(before.rights),
            namespace: before.namespace.clone(),
            certificate: before.certificate.clone(),
            expires_at: before.expires_at,
        };
        let text = |text: &Text<'_>| Some(text.to_owned());
        self.patch.namespace.set(&mut after.namespace, text);
        self.patch.certificate.set(&mut after.certificate, text);
        self.expires_at.set(&mut after.expires_at, |at| Some(*at));
        after
    }
}

/// The set of these rights, each of which is named once.
fn rights(names: &RightNames) -> Result<Rights, Problem> {
    let mut rights = Rights::default();
    for (position, Choice(name)) in names.0.iter().enumerate() {
        let field = || format!("rights[{position}]");
        let right = name.map_err(|error| Problem::field(field(), error))?;
        if rights.contains(right) {
            return Err(Problem::field(field(), "is duplicated"));
        }
        rights = rights.iter().chain([right]).collect();
    }
    Ok(rights)
}
