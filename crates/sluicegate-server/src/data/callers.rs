//! Callers as rows.

use sqlx::QueryBuilder;

use super::database::transaction;
use super::history::{Change, caller_json, record};
use super::row::row;
use super::session::{Aim, Session, on};
use super::values::{BY_BYTES_MAX, Time, clipped, signed, unsigned};
use super::{
    Act, Author, CALLERS_MAX, CERTIFICATE_BYTES_MAX, CallerSpec, DataError, Database,
    NAME_BYTES_MAX, Right, StoredCaller,
};
use crate::time::Timestamp;

/// User name of the Redis protocol that stands for its password.
const RESERVED_NAME: &str = "default";

macro_rules! columns {
    () => {
        "caller_id, name, rights, namespace, hash, certificate, expires_at, created_by, created_at"
    };
}

row! {
    struct CallerRow {
        caller_id: i64,
        name: String,
        rights: String,
        namespace: Option<String>,
        hash: Option<Vec<u8>>,
        certificate: Option<String>,
        expires_at: Option<Time>,
        created_by: String,
        created_at: Time,
    }
}

impl Database {
    /// All callers.
    ///
    /// # Errors
    ///
    /// As every call.
    pub async fn callers(&self) -> Result<Vec<StoredCaller>, DataError> {
        transaction!(self, Aim::Read, session => all(session))
    }

    /// Times of the last use of callers, by id, as far as processes have written them.
    ///
    /// # Errors
    ///
    /// As every call.
    pub async fn caller_uses(&self) -> Result<Vec<(u64, Timestamp)>, DataError> {
        transaction!(self, Aim::Read, session => uses(session))
    }

    /// Stores a caller with the hash of its token, if it has one.
    ///
    /// # Errors
    ///
    /// As every call, [`DataError::Refused`] if a field is invalid or there are too many callers, and
    /// [`DataError::Conflict`] if another caller has its name or certificate.
    pub async fn create_caller(
        &self,
        spec: &CallerSpec,
        hash: Option<&[u8; 32]>,
        by: &Author,
    ) -> Result<StoredCaller, DataError> {
        transaction!(self, Aim::Change, session => create(session, spec, hash, by))
    }

    /// Changes the caller of this name by a function, in one transaction. The name stays.
    ///
    /// # Errors
    ///
    /// As [`create_caller`](Self::create_caller), [`DataError::NotFound`], and the function's error.
    pub async fn change_caller(
        &self,
        name: &str,
        by: &Author,
        changed: impl FnOnce(&StoredCaller) -> Result<CallerSpec, DataError>,
    ) -> Result<StoredCaller, DataError> {
        transaction!(self, Aim::Change, session => change(session, name, by, changed))
    }

    /// Revokes the caller of this name.
    ///
    /// # Errors
    ///
    /// As every call, and [`DataError::NotFound`].
    pub async fn delete_caller(&self, name: &str, by: &Author) -> Result<StoredCaller, DataError> {
        transaction!(self, Aim::Change, session => delete(session, name, by))
    }

    /// Records that these callers were used at this time. Callers that were revoked meanwhile are left out.
    ///
    /// # Errors
    ///
    /// As every call.
    pub async fn record_caller_uses(
        &self,
        caller_ids: &[u64],
        at: Timestamp,
    ) -> Result<(), DataError> {
        if caller_ids.is_empty() {
            return Ok(());
        }
        transaction!(self, Aim::Write, session => record_uses(session, caller_ids, at))
    }
}

/// All callers.
pub(super) async fn all(session: &mut Session) -> Result<Vec<StoredCaller>, DataError> {
    let select = concat!("SELECT ", columns!(), " FROM rate_limit_callers ORDER BY caller_id");
    let rows: Vec<CallerRow> =
        on!(session, connection => sqlx::query_as(select).fetch_all(connection).await)?;
    rows.into_iter().map(CallerRow::stored).collect()
}

async fn uses(session: &mut Session) -> Result<Vec<(u64, Timestamp)>, DataError> {
    let select = "SELECT caller_id, last_used_at FROM rate_limit_caller_uses ORDER BY caller_id";
    let rows: Vec<(i64, Time)> =
        on!(session, connection => sqlx::query_as(select).fetch_all(connection).await)?;
    rows.into_iter().map(|(id, at)| Ok((unsigned("caller_id", id)?, at.into()))).collect()
}

async fn get(session: &mut Session, name: &str) -> Result<StoredCaller, DataError> {
    let select = concat!("SELECT ", columns!(), " FROM rate_limit_callers WHERE name = $1");
    let row: Option<CallerRow> = on!(session, connection => {
        sqlx::query_as(select).bind(clipped(name, usize::MAX)).fetch_optional(connection).await
    })?;
    row.ok_or(DataError::NotFound("caller"))?.stored()
}

async fn create(
    session: &mut Session,
    spec: &CallerSpec,
    hash: Option<&[u8; 32]>,
    by: &Author,
) -> Result<StoredCaller, DataError> {
    let spec = &normalized(spec);
    check(spec, hash.is_some())?;
    let others = all(session).await?;
    if others.len() >= CALLERS_MAX {
        let reason = format!("the maximum of {CALLERS_MAX} callers is reached: revoke one first");
        return Err(DataError::field("name", reason));
    }
    refuse_duplicate(spec, &others)?;
    let insert = concat!(
        "INSERT INTO rate_limit_callers \
         (name, rights, namespace, hash, certificate, expires_at, created_by, created_at) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8) RETURNING ",
        columns!()
    );
    let row: CallerRow = on!(session, connection => sqlx::query_as(insert)
        .bind(&*spec.name)
        .bind(spec.rights.to_string())
        .bind(spec.namespace.as_deref())
        .bind(hash.map(|hash| &hash[..]))
        .bind(spec.certificate.as_deref())
        .bind(spec.expires_at.map(Time::from))
        .bind(clipped(&by.name, BY_BYTES_MAX))
        .bind(Time::from(Timestamp::now()))
        .fetch_one(connection)
        .await)?;
    let caller = row.stored()?;
    note(session, by, Act::CallerCreate, None, Some(&caller)).await?;
    Ok(caller)
}

/// Records a change in the history.
async fn note(
    session: &mut Session,
    by: &Author,
    act: Act,
    before: Option<&StoredCaller>,
    after: Option<&StoredCaller>,
) -> Result<(), DataError> {
    let target = after.or(before).map(|caller| caller.name.clone());
    let change = Change::new(act, before.map(caller_json), after.map(caller_json));
    record(session, by, vec![Change { target, ..change }]).await
}

async fn change(
    session: &mut Session,
    name: &str,
    by: &Author,
    changed: impl FnOnce(&StoredCaller) -> Result<CallerSpec, DataError>,
) -> Result<StoredCaller, DataError> {
    let before = get(session, name).await?;
    let spec = normalized(&CallerSpec { name: before.name.clone(), ..changed(&before)? });
    check(&spec, before.hash.is_some())?;
    let mut others = all(session).await?;
    others.retain(|other| other.caller_id != before.caller_id);
    refuse_duplicate(&spec, &others)?;
    let update = concat!(
        "UPDATE rate_limit_callers SET rights = $2, namespace = $3, certificate = $4, expires_at = $5 \
         WHERE name = $1 RETURNING ",
        columns!()
    );
    let row: CallerRow = on!(session, connection => sqlx::query_as(update)
        .bind(&*spec.name)
        .bind(spec.rights.to_string())
        .bind(spec.namespace.as_deref())
        .bind(spec.certificate.as_deref())
        .bind(spec.expires_at.map(Time::from))
        .fetch_one(connection)
        .await)?;
    let after = row.stored()?;
    if caller_json(&before) != caller_json(&after) {
        note(session, by, Act::CallerUpdate, Some(&before), Some(&after)).await?;
    }
    Ok(after)
}

async fn delete(session: &mut Session, name: &str, by: &Author) -> Result<StoredCaller, DataError> {
    let delete = concat!("DELETE FROM rate_limit_callers WHERE name = $1 RETURNING ", columns!());
    let row: Option<CallerRow> = on!(session, connection => {
        sqlx::query_as(delete).bind(clipped(name, usize::MAX)).fetch_optional(connection).await
    })?;
    let caller = row.ok_or(DataError::NotFound("caller"))?.stored()?;
    note(session, by, Act::CallerRevoke, Some(&caller), None).await?;
    Ok(caller)
}

async fn record_uses(
    session: &mut Session,
    caller_ids: &[u64],
    at: Timestamp,
) -> Result<(), DataError> {
    on!(session, connection: Dialect => {
        let mut query = QueryBuilder::<Dialect>::new(
            "INSERT INTO rate_limit_caller_uses (caller_id, last_used_at) SELECT caller_id, "
        );
        query.push_bind(Time::from(at));
        query.push(" FROM rate_limit_callers WHERE caller_id IN (");
        let mut ids = query.separated(", ");
        for id in caller_ids {
            ids.push_bind(signed(*id));
        }
        // Processes write in any order: the latest use stays.
        query.push(
            ") ON CONFLICT (caller_id) DO UPDATE SET last_used_at = excluded.last_used_at \
             WHERE excluded.last_used_at > rate_limit_caller_uses.last_used_at"
        );
        query.build().execute(connection).await.map(drop)
    })?;
    Ok(())
}

/// The caller as it is stored: the DNS name of a certificate in lower case, because case does not matter there.
fn normalized(spec: &CallerSpec) -> CallerSpec {
    let lower = |name: &String| if name.contains(':') { name.clone() } else { name.to_lowercase() };
    CallerSpec { certificate: spec.certificate.as_ref().map(lower), ..spec.clone() }
}

/// Rejects values that a column cannot hold or that cannot be used, with the name of the field.
fn check(spec: &CallerSpec, has_token: bool) -> Result<(), DataError> {
    require_plain("name", &spec.name)?;
    if spec.name == RESERVED_NAME {
        let reason = "`default` is the user of resp.password: choose another name";
        return Err(DataError::field("name", reason));
    }
    if spec.rights.is_empty() {
        let names = Right::NAMES.join(", ");
        return Err(DataError::field("rights", format!("must name at least one of {names}")));
    }
    if let Some(namespace) = &spec.namespace {
        require_plain("namespace", namespace)?;
    }
    match &spec.certificate {
        Some(certificate) if !is_alternative_name(certificate) => {
            let reason = format!(
                "must be a DNS name or URI of 1 to {CERTIFICATE_BYTES_MAX} printable ASCII characters, \
                 as in the certificate"
            );
            Err(DataError::field("certificate", reason))
        }
        None if !has_token => Err(DataError::field(
            "certificate",
            "is missing: a caller needs a token or a certificate",
        )),
        _ => Ok(()),
    }
}

fn is_alternative_name(text: &str) -> bool {
    (1..=CERTIFICATE_BYTES_MAX).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_graphic())
}

/// Requires a name or a namespace: a text that fits header fields, user names of Redis and shell arguments.
///
/// # Errors
///
/// [`DataError::Refused`] with the field.
pub(crate) fn require_plain(field: &'static str, text: &str) -> Result<(), DataError> {
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || b"._-".contains(&b);
    if (1..=NAME_BYTES_MAX).contains(&text.len()) && text.bytes().all(is_plain) {
        return Ok(());
    }
    let reason = format!("must have 1 to {NAME_BYTES_MAX} letters, digits, `.`, `_` or `-`");
    Err(DataError::field(field, reason))
}

fn refuse_duplicate(spec: &CallerSpec, others: &[StoredCaller]) -> Result<(), DataError> {
    let conflict = |field, detail| DataError::Conflict { field, detail, rule_id: None };
    for other in others {
        if other.name == spec.name {
            let detail = format!("a caller called `{}` exists already", spec.name);
            return Err(conflict("name", detail));
        }
        if spec.certificate.is_some() && other.certificate == spec.certificate {
            let detail = format!("the caller `{}` has this certificate", other.name);
            return Err(conflict("certificate", detail));
        }
    }
    Ok(())
}

impl CallerRow {
    fn stored(self) -> Result<StoredCaller, DataError> {
        let wrong = |what: &str| {
            DataError::Unexpected(format!("caller {} ({}): {what}", self.caller_id, self.name))
        };
        let hash = self.hash.map(TryInto::try_into).transpose();
        Ok(StoredCaller {
            // Rights written by hand, or by a later version, that do not exist here are none: the caller exists, others
            // are not affected, and it can be revoked.
            rights: self
                .rights
                .split(',')
                .filter_map(|right| right.parse::<Right>().ok())
                .collect(),
            hash: hash.map_err(|_| wrong("its hash must have 32 bytes"))?,
            caller_id: unsigned("caller_id", self.caller_id)?,
            name: self.name,
            namespace: self.namespace,
            certificate: self.certificate,
            expires_at: self.expires_at.map(Into::into),
            created_by: self.created_by,
            created_at: self.created_at.into(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Rights;

    fn spec() -> CallerSpec {
        CallerSpec {
            name: "checkout".into(),
            rights: Rights::ALL,
            namespace: Some("team-a".into()),
            certificate: None,
            expires_at: None,
        }
    }

    /// Field that a caller with a token is refused for.
    fn refused(spec: &CallerSpec) -> Option<String> {
        match check(spec, true) {
            Ok(()) => None,
            Err(DataError::Refused(errors)) => Some(errors[0].field.to_string()),
            Err(other) => panic!("{other}"),
        }
    }

    #[test]
    fn invalid_callers_are_refused_by_field() {
        assert_eq!(refused(&spec()), None);
        for name in ["", "a b", "default", "ä", "a/b", &"n".repeat(65)] {
            assert_eq!(
                refused(&CallerSpec { name: name.into(), ..spec() }).as_deref(),
                Some("name")
            );
        }
        let namespace = Some("a:b".into());
        assert_eq!(refused(&CallerSpec { namespace, ..spec() }).as_deref(), Some("namespace"));
        let rights = Rights::default();
        assert_eq!(refused(&CallerSpec { rights, ..spec() }).as_deref(), Some("rights"));
        for certificate in ["", "two names", &"c".repeat(254)] {
            let certificate = Some(certificate.into());
            assert_eq!(
                refused(&CallerSpec { certificate, ..spec() }).as_deref(),
                Some("certificate")
            );
        }
        let certificate = Some("spiffe://example.org/ns/shop/sa/checkout".into());
        assert_eq!(refused(&CallerSpec { certificate, ..spec() }), None);
        assert!(check(&spec(), false).is_err(), "neither token nor certificate");
    }
}
