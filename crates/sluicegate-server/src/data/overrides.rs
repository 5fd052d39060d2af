//! Overrides as rows.

use std::time::Duration;

use sluicegate::rules::{OVERRIDES_MAX, Override};
use sluicegate::{Quota, Rate};
use sqlx::QueryBuilder;

use super::change_rules::is_current;
use super::history::{Change, override_json, record};
use super::row::row;
use super::rules::stored_rate;
use super::session::{Session, on};
use super::values::{BY_BYTES_MAX, Time, clipped, named, rows, signed, unsigned};
use super::{
    Act, Author, DataError, OverrideFilter, OverrideKind, OverrideSpec, Page, REASON_BYTES_MAX,
    SUBJECT_BYTES_MAX, StoredOverride,
};
use crate::time::Timestamp;

/// Author of changes that the service makes by itself.
const SERVICE: &str = "service";

/// Maximum number of overrides that are recorded one by one when their rule is deleted.
const DELETED_MAX: usize = 1000;

macro_rules! columns {
    () => {
        "override_id, rule_id, subject, kind, tokens, period, burst_capacity, algorithm, refill, max_wait, \
         reason, expires_at, created_by, created_at, version"
    };
}

row! {
    struct OverrideRow {
        override_id: i64,
        rule_id: i64,
        subject: String,
        kind: String,
        tokens: Option<i64>,
        period: Option<i64>,
        burst_capacity: Option<i64>,
        algorithm: Option<String>,
        refill: Option<String>,
        max_wait: Option<i64>,
        reason: String,
        expires_at: Option<Time>,
        created_by: String,
        created_at: Time,
        version: i64,
    }
}

/// All overrides.
pub(super) async fn all(session: &mut Session) -> Result<Vec<StoredOverride>, DataError> {
    let select = concat!("SELECT ", columns!(), " FROM rate_limit_overrides ORDER BY override_id");
    let rows: Vec<OverrideRow> =
        on!(session, connection => sqlx::query_as(select).fetch_all(connection).await)?;
    rows.into_iter().map(OverrideRow::stored).collect()
}

/// A page of overrides by id.
pub(super) async fn list(
    session: &mut Session,
    filter: &OverrideFilter,
    page: Page,
) -> Result<Vec<StoredOverride>, DataError> {
    let rows: Vec<OverrideRow> = on!(session, connection: Dialect => {
        let mut query = QueryBuilder::<Dialect>::new(concat!(
            "SELECT ", columns!(), " FROM rate_limit_overrides WHERE override_id > "
        ));
        query.push_bind(signed(page.after.unwrap_or(0)));
        if let Some(rule_id) = filter.rule_id {
            query.push(" AND rule_id = ").push_bind(signed(rule_id));
        }
        if let Some(subject) = &filter.subject {
            query.push(" AND subject = ").push_bind(subject.replace('\0', "?"));
        }
        query.push(" ORDER BY override_id LIMIT ").push_bind(rows(page.limit));
        query.build_query_as().fetch_all(connection).await
    })?;
    rows.into_iter().map(OverrideRow::stored).collect()
}

/// One override.
pub(super) async fn get(
    session: &mut Session,
    override_id: u64,
) -> Result<StoredOverride, DataError> {
    let select =
        concat!("SELECT ", columns!(), " FROM rate_limit_overrides WHERE override_id = $1");
    let row: Option<OverrideRow> = on!(session, connection => {
        sqlx::query_as(select).bind(signed(override_id)).fetch_optional(connection).await
    })?;
    row.ok_or(DataError::NotFound("override"))?.stored()
}

async fn find(
    session: &mut Session,
    spec: &OverrideSpec,
) -> Result<Option<StoredOverride>, DataError> {
    let select = concat!(
        "SELECT ",
        columns!(),
        " FROM rate_limit_overrides WHERE rule_id = $1 AND subject = $2"
    );
    let row: Option<OverrideRow> = on!(session, connection => sqlx::query_as(select)
        .bind(signed(spec.rule_id))
        .bind(&*spec.subject)
        .fetch_optional(connection)
        .await)?;
    row.map(OverrideRow::stored).transpose()
}

/// Creates an override, or replaces that of the same rule and subject; `true` if it was created.
pub(super) async fn put(
    session: &mut Session,
    spec: &OverrideSpec,
    version: Option<u64>,
    by: &Author,
) -> Result<(StoredOverride, bool), DataError> {
    check(spec)?;
    let old = find(session, spec).await?;
    match &old {
        Some(old) => is_current(old.version, version)?,
        None if version.is_some() => return Err(DataError::NotFound("override")),
        None => refuse_too_many(session).await?,
    }
    let spec = OverrideSpec {
        expires_at: spec.expires_at.map(|time| Time::from(time).into()),
        ..spec.clone()
    };
    match old {
        Some(old) if old.spec == spec => Ok((old, false)),
        old => {
            let version = old.as_ref().map_or(1, |old| old.version + 1);
            let new = save(session, &spec, version, by).await?;
            // The override's own reason is that of the change, unless another is given.
            let reason = if by.reason.is_empty() { &new.spec.reason } else { &by.reason };
            let by = Author { reason: reason.clone(), ..by.clone() };
            record(session, &by, vec![change(Act::OverrideSet, old.as_ref(), Some(&new))]).await?;
            Ok((new, old.is_none()))
        }
    }
}

/// A change of an override, for the history.
fn change(act: Act, old: Option<&StoredOverride>, new: Option<&StoredOverride>) -> Change {
    let spec = new.or(old).map(|stored| &stored.spec);
    Change {
        rule_id: spec.map(|spec| spec.rule_id),
        subject: spec.map(|spec| spec.subject.clone()),
        ..Change::new(act, old.map(override_json), new.map(override_json))
    }
}

/// Records the deletion of all overrides of rules that are about to be deleted: one row each, up to
/// [`DELETED_MAX`], and one with the number of the others.
pub(super) async fn record_deletion(
    session: &mut Session,
    rule_ids: &[i64],
    by: &Author,
) -> Result<(), DataError> {
    let count = "SELECT COUNT(*) FROM rate_limit_overrides WHERE rule_id IN (";
    let select = concat!("SELECT ", columns!(), " FROM rate_limit_overrides WHERE rule_id IN (");
    let (count, rows): (i64, Vec<OverrideRow>) = on!(session, connection: Dialect => {
        let of_rules = |select: &'static str| {
            let mut query = QueryBuilder::<Dialect>::new(select);
            let mut ids = query.separated(", ");
            rule_ids.iter().for_each(|id| _ = ids.push_bind(*id));
            query.push(")");
            query
        };
        let mut query = of_rules(count);
        let count = query.build_query_scalar().persistent(false).fetch_one(&mut *connection);
        let count = count.await?;
        let mut query = of_rules(select);
        query.push(" ORDER BY override_id LIMIT ").push_bind(rows(DELETED_MAX));
        let rows = query.build_query_as().persistent(false).fetch_all(connection).await?;
        (count, rows)
    });
    let mut changes = Vec::new();
    for row in rows {
        changes.push(change(Act::OverrideDelete, Some(&row.stored()?), None));
    }
    let others = unsigned("count", count)?.saturating_sub(changes.len() as u64);
    if others > 0 {
        changes.push(Change { count: others, ..Change::new(Act::OverrideDelete, None, None) });
    }
    record(session, by, changes).await
}

/// Creates an override. One that has expired and was not deleted yet does not count, and is replaced.
pub(super) async fn create(
    session: &mut Session,
    spec: &OverrideSpec,
    by: &Author,
) -> Result<StoredOverride, DataError> {
    check(spec)?;
    let now = Timestamp::now();
    let is_in_force = |old: &StoredOverride| old.spec.expires_at.is_none_or(|end| end > now);
    if let Some(old) = find(session, spec).await?.filter(is_in_force) {
        return Err(DataError::Exists { by: old.created_by, at: old.created_at });
    }
    Ok(put(session, spec, None, by).await?.0)
}

/// Deletes an override if it has this version.
pub(super) async fn delete(
    session: &mut Session,
    override_id: u64,
    version: Option<u64>,
    by: &Author,
) -> Result<StoredOverride, DataError> {
    let old = get(session, override_id).await?;
    is_current(old.version, version)?;
    let delete = "DELETE FROM rate_limit_overrides WHERE override_id = $1";
    on!(session, connection => {
        sqlx::query(delete).bind(signed(override_id)).execute(connection).await.map(drop)
    })?;
    record(session, by, vec![change(Act::OverrideDelete, Some(&old), None)]).await?;
    Ok(old)
}

/// Deletes overrides that expired before this time.
pub(super) async fn delete_expired(
    session: &mut Session,
    before: Timestamp,
    limit: usize,
) -> Result<u64, DataError> {
    let delete = concat!(
        "DELETE FROM rate_limit_overrides WHERE override_id IN \
         (SELECT override_id FROM rate_limit_overrides WHERE expires_at < $1 \
         ORDER BY expires_at LIMIT $2) RETURNING ",
        columns!()
    );
    let deleted: Vec<OverrideRow> = on!(session, connection => sqlx::query_as(delete)
        .bind(Time::from(before))
        .bind(rows(limit))
        .fetch_all(connection)
        .await)?;
    let mut changes = Vec::new();
    for row in deleted {
        changes.push(change(Act::OverrideExpire, Some(&row.stored()?), None));
    }
    let deleted = changes.len() as u64;
    record(session, &Author::new(SERVICE), changes).await?;
    Ok(deleted)
}

/// True if an override expired before this time.
pub(super) async fn has_expired(
    session: &mut Session,
    before: Timestamp,
) -> Result<bool, DataError> {
    let select = "SELECT EXISTS (SELECT 1 FROM rate_limit_overrides WHERE expires_at < $1)";
    Ok(on!(session, connection => {
        sqlx::query_scalar(select).bind(Time::from(before)).fetch_one(connection).await
    })?)
}

/// Rejects values that a column cannot hold, with its name.
fn check(spec: &OverrideSpec) -> Result<(), DataError> {
    let texts = [
        ("subject", &spec.subject, 1, SUBJECT_BYTES_MAX),
        ("reason", &spec.reason, 0, REASON_BYTES_MAX),
    ];
    for (field, text, bytes_min, bytes_max) in texts {
        if text.len() < bytes_min {
            return Err(DataError::field(field, "is empty"));
        }
        if text.len() > bytes_max {
            return Err(DataError::field(field, format!("has more than {bytes_max} bytes")));
        }
        if text.contains('\0') {
            return Err(DataError::field(field, "must not contain a NUL character"));
        }
    }
    Ok(())
}

async fn refuse_too_many(session: &mut Session) -> Result<(), DataError> {
    let select = "SELECT COUNT(*) FROM rate_limit_overrides";
    let count: i64 =
        on!(session, connection => sqlx::query_scalar(select).fetch_one(connection).await)?;
    if count >= rows(OVERRIDES_MAX) {
        return Err(DataError::field(
            "subject",
            format!("the maximum of {count} overrides is reached: delete one first"),
        ));
    }
    Ok(())
}

/// Inserts or updates an override.
async fn save(
    session: &mut Session,
    spec: &OverrideSpec,
    version: u64,
    by: &Author,
) -> Result<StoredOverride, DataError> {
    let upsert = concat!(
        "INSERT INTO rate_limit_overrides (rule_id, subject, kind, tokens, period, burst_capacity, \
         algorithm, refill, max_wait, reason, expires_at, created_by, created_at, version) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14) \
         ON CONFLICT (rule_id, subject) DO UPDATE SET kind = excluded.kind, tokens = excluded.tokens, \
         period = excluded.period, burst_capacity = excluded.burst_capacity, \
         algorithm = excluded.algorithm, refill = excluded.refill, max_wait = excluded.max_wait, \
         reason = excluded.reason, expires_at = excluded.expires_at, created_by = excluded.created_by, \
         created_at = excluded.created_at, version = excluded.version RETURNING ",
        columns!()
    );
    let kind = OverrideKind::from(&spec.instead).name();
    let quota = match spec.instead {
        Override::Quota(quota) => Some(quota),
        Override::Unlimited | Override::Blocked => None,
    };
    let rate = quota.map(|quota| stored_rate(quota.rate()));
    let row: OverrideRow = on!(session, connection => sqlx::query_as(upsert)
        .bind(signed(spec.rule_id))
        .bind(&*spec.subject)
        .bind(kind)
        .bind(rate.map(|(tokens, _)| signed(tokens)))
        .bind(rate.map(|(_, period)| signed(period)))
        .bind(quota.map(|quota| signed(quota.capacity())))
        .bind(quota.map(|quota| quota.algorithm().name()))
        .bind(quota.map(|quota| quota.refill().name()))
        .bind(quota.and_then(|quota| quota.max_wait()).map(micros))
        .bind(&*spec.reason)
        .bind(spec.expires_at.map(Time::from))
        .bind(clipped(&by.name, BY_BYTES_MAX))
        .bind(Time::from(Timestamp::now()))
        .bind(signed(version))
        .fetch_one(connection)
        .await)?;
    row.stored()
}

fn micros(time: Duration) -> i64 {
    i64::try_from(time.as_micros()).unwrap_or(i64::MAX)
}

impl OverrideRow {
    fn stored(self) -> Result<StoredOverride, DataError> {
        let override_id = self.override_id;
        self.read().map_err(|error| match error {
            DataError::Unexpected(what) => {
                DataError::Unexpected(format!("override {override_id}: {what}"))
            }
            error => error,
        })
    }

    fn read(self) -> Result<StoredOverride, DataError> {
        let instead = match named("kind", &self.kind)? {
            OverrideKind::Unlimited => Override::Unlimited,
            OverrideKind::Blocked => Override::Blocked,
            OverrideKind::Quota => Override::Quota(self.quota()?),
        };
        let spec = OverrideSpec {
            rule_id: unsigned("rule_id", self.rule_id)?,
            subject: self.subject,
            instead,
            reason: self.reason,
            expires_at: self.expires_at.map(Into::into),
        };
        Ok(StoredOverride {
            override_id: unsigned("override_id", self.override_id)?,
            spec,
            created_by: self.created_by,
            created_at: self.created_at.into(),
            version: unsigned("version", self.version)?,
        })
    }

    fn quota(&self) -> Result<Quota, DataError> {
        let number = |column, value: Option<i64>| unsigned(column, value.unwrap_or_default());
        let name = |value: &Option<String>| value.clone().unwrap_or_default();
        let wrong = |error: &dyn std::fmt::Display| DataError::Unexpected(error.to_string());
        let micros = Duration::from_micros;
        let rate =
            Rate::new(number("tokens", self.tokens)?, micros(number("period", self.period)?))
                .map_err(|error| wrong(&error))?;
        let wait = self.max_wait.map(|wait| unsigned("max_wait", wait)).transpose()?;
        Quota::build(
            rate,
            named("algorithm", &name(&self.algorithm))?,
            named("refill", &name(&self.refill))?,
            Some(number("burst_capacity", self.burst_capacity)?),
            wait.map(micros),
        )
        .map_err(|error| wrong(&error))
    }
}
