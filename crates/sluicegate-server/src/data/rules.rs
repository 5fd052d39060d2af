//! Rules and their history as rows.

use std::time::Duration;

use serde_json::{Map, Value, json};
use sluicegate::rules::{FieldError, NOTES, RuleSpec, Scope};
use sluicegate::{Algorithm, Rate};
use sqlx::{Postgres, QueryBuilder, Sqlite};

use super::row::row;
use super::session::{Session, on};
use super::values::{Time, named, rows, signed, unsigned};
use super::{DataError, Page, RuleChange, RuleFilter, StoredRule};

/// Largest number of tokens, and of microseconds in a period, that columns hold. No reduced quota has more.
const NUMBER_MAX: u64 = 1 << 52;

/// Defines the row of a rule and every SQL list of its columns. A new column is one line below, one in
/// [`RuleRow::new`] and one in [`RuleRow::read`].
macro_rules! rule_row {
    ($key:ident: $key_type:ty, $first:ident: $first_type:ty, $($column:ident: $type:ty),+ $(,)?) => {
        row! {
            /// Row of `rate_limit_rules`.
            pub(super) struct RuleRow {
                $key: $key_type,
                $first: $first_type,
                $($column: $type,)+
            }
        }

        /// Columns of a SELECT or an INSERT.
        macro_rules! columns {
            () => {
                concat!(
                    stringify!($key), ", ", stringify!($first) $(, ", ", stringify!($column))+
                )
            };
        }

        /// Assignments of an upsert: all columns but the key.
        macro_rules! assignments {
            () => {
                concat!(
                    stringify!($first), " = excluded.", stringify!($first)
                    $(, ", ", stringify!($column), " = excluded.", stringify!($column))+
                )
            };
        }

        impl RuleRow {
            /// Names of the columns.
            pub(super) const COLUMNS: &[&str] =
                &[stringify!($key), stringify!($first), $(stringify!($column)),+];
        }

        rule_row!(@push Sqlite: $key, $first, $($column),+);
        rule_row!(@push Postgres: $key, $first, $($column),+);
    };
    (@push $dialect:ident: $($column:ident),+) => {
        impl PushRows for QueryBuilder<$dialect> {
            fn push_rows(&mut self, rows: Vec<RuleRow>) -> &mut Self {
                self.push_values(rows, |mut values, row| {
                    $(values.push_bind(row.$column);)+
                })
            }
        }
    };
}

/// Values of an INSERT, in either dialect.
pub(super) trait PushRows {
    /// Adds `VALUES` with all columns of these rows.
    fn push_rows(&mut self, rows: Vec<RuleRow>) -> &mut Self;
}

rule_row! {
    rule_id: i64,
    key_pattern: String,
    scope: String,
    burst_capacity: i64,
    plan: Option<String>,
    is_active: bool,
    description: String,
    created_at: Time,
    tokens: i64,
    period: i64,
    algorithm: String,
    refill: String,
    max_wait: Option<i64>,
    mode: String,
    on_error: String,
    conditions: String,
    version: i64,
    name: Option<String>,
    replaces: String,
    path: String,
}
pub(super) use {assignments, columns};

row! {
    struct ChangeRow {
        change_id: i64,
        rule_id: i64,
        changed_by: String,
        changed_at: Time,
        old: Option<String>,
        new: Option<String>,
    }
}

/// All rules, by id.
pub(super) async fn all(session: &mut Session) -> Result<Vec<StoredRule>, DataError> {
    let select =
        concat!("SELECT ", columns!(), " FROM rate_limit_rules ORDER BY rate_limit_rules.rule_id");
    let rows: Vec<RuleRow> =
        on!(session, connection => sqlx::query_as(select).fetch_all(connection).await)?;
    rows.into_iter().map(RuleRow::stored).collect()
}

/// One rule.
pub(super) async fn get(session: &mut Session, rule_id: u64) -> Result<StoredRule, DataError> {
    let select = concat!("SELECT ", columns!(), " FROM rate_limit_rules WHERE rule_id = $1");
    let row: Option<RuleRow> = on!(session, connection => {
        sqlx::query_as(select).bind(signed(rule_id)).fetch_optional(connection).await
    })?;
    row.ok_or(DataError::NotFound("rule"))?.stored()
}

/// A page of rules by id.
pub(super) async fn list(
    session: &mut Session,
    filter: &RuleFilter,
    page: Page,
) -> Result<Vec<StoredRule>, DataError> {
    let rows: Vec<RuleRow> = on!(session, connection: Dialect => {
        let mut query = QueryBuilder::<Dialect>::new(concat!(
            "SELECT ", columns!(), " FROM rate_limit_rules WHERE rule_id > "
        ));
        query.push_bind(signed(page.after.unwrap_or(0)));
        match filter.plan.as_deref() {
            None => {}
            Some("") => _ = query.push(" AND plan IS NULL"),
            Some(plan) => _ = query.push(" AND plan = ").push_bind(plan),
        }
        if let Some(scope) = &filter.scope {
            query.push(" AND scope = ").push_bind(scope);
        }
        if let Some(is_active) = filter.is_active {
            query.push(" AND is_active = ").push_bind(is_active);
        }
        query.push(" ORDER BY rule_id LIMIT ").push_bind(rows(page.limit));
        query.build_query_as().fetch_all(connection).await
    })?;
    rows.into_iter().map(RuleRow::stored).collect()
}

/// Changes, newest first.
pub(super) async fn history(
    session: &mut Session,
    rule_id: Option<u64>,
    page: Page,
) -> Result<Vec<RuleChange>, DataError> {
    let rows: Vec<ChangeRow> = on!(session, connection: Dialect => {
        let mut query = QueryBuilder::<Dialect>::new(
            "SELECT change_id, rule_id, changed_by, changed_at, old, new \
             FROM rate_limit_rule_changes WHERE change_id < ",
        );
        query.push_bind(page.after.map_or(i64::MAX, signed));
        if let Some(rule_id) = rule_id {
            query.push(" AND rule_id = ").push_bind(signed(rule_id));
        }
        query.push(" ORDER BY change_id DESC LIMIT ").push_bind(rows(page.limit));
        query.build_query_as().fetch_all(connection).await
    })?;
    rows.into_iter().map(ChangeRow::change).collect()
}

impl RuleRow {
    /// The row of a rule whose spec is [`normalised`].
    pub(super) fn new(rule: &StoredRule) -> Self {
        let spec = rule.spec.clone();
        let micros = |time: Duration| i64::try_from(time.as_micros()).unwrap_or(i64::MAX);
        let filled = |text: String| Some(text).filter(|text| !text.is_empty());
        Self {
            rule_id: signed(spec.rule_id),
            scope: spec.scope.unwrap_or(Scope::Custom).name().into(),
            // The capacity of a window is its tokens.
            burst_capacity: signed(spec.burst_capacity.or(spec.tokens).unwrap_or_default()),
            conditions: json!(Map::from_iter(texts(&spec.conditions))).to_string(),
            replaces: json!(spec.replaces).to_string(),
            key_pattern: spec.key_pattern,
            plan: filled(spec.plan),
            is_active: spec.is_active,
            description: spec.description,
            created_at: Time::from(rule.created_at),
            tokens: signed(spec.tokens.unwrap_or_default()),
            period: micros(spec.period.unwrap_or_default()),
            algorithm: spec.algorithm.name().into(),
            refill: spec.refill.name().into(),
            max_wait: spec.max_wait.map(micros),
            mode: spec.mode.name().into(),
            on_error: spec.on_error.name().into(),
            path: spec.path.name().into(),
            version: signed(rule.version),
            name: filled(spec.name),
        }
    }

    /// The rule of a row. [`RuleSpec::build`] tells whether its columns are valid.
    pub(super) fn stored(self) -> Result<StoredRule, DataError> {
        let rule_id = self.rule_id;
        self.read().map_err(|error| match error {
            DataError::Unexpected(what) => DataError::Unexpected(format!("rule {rule_id}: {what}")),
            error => error,
        })
    }

    fn read(self) -> Result<StoredRule, DataError> {
        let micros = |column, number| unsigned(column, number).map(Duration::from_micros);
        let algorithm: Algorithm = named("algorithm", &self.algorithm)?;
        let has_burst = algorithm.has_capacity() || self.burst_capacity != self.tokens;
        let burst = unsigned("burst_capacity", self.burst_capacity)?;
        let spec = RuleSpec {
            rule_id: unsigned("rule_id", self.rule_id)?,
            key_pattern: self.key_pattern,
            scope: Some(named("scope", &self.scope)?),
            rate_per_second: None,
            tokens: Some(unsigned("tokens", self.tokens)?),
            period: Some(micros("period", self.period)?),
            burst_capacity: has_burst.then_some(burst),
            algorithm,
            refill: named("refill", &self.refill)?,
            max_wait: self.max_wait.map(|wait| micros("max_wait", wait)).transpose()?,
            plan: self.plan.unwrap_or_default(),
            mode: named("mode", &self.mode)?,
            on_error: named("on_error", &self.on_error)?,
            path: named("path", &self.path)?,
            is_active: self.is_active,
            description: self.description,
            conditions: read_conditions(&self.conditions)?,
            name: self.name.unwrap_or_default(),
            replaces: read_replaces(&self.replaces)?,
        };
        let version = unsigned("version", self.version)?;
        Ok(StoredRule { spec, created_at: self.created_at.into(), version })
    }
}

/// Members of a JSON object of strings.
fn texts(pairs: &[(String, String)]) -> impl Iterator<Item = (String, Value)> {
    pairs.iter().map(|(name, text)| (name.clone(), json!(text)))
}

fn read_conditions(text: &str) -> Result<Vec<(String, String)>, DataError> {
    let wrong = |why: String| DataError::Unexpected(format!("conditions: {why}"));
    let object: Map<String, Value> =
        serde_json::from_str(text).map_err(|error| wrong(error.to_string()))?;
    let pair = |(attribute, glob)| match glob {
        Value::String(glob) => Ok((attribute, glob)),
        _ => Err(wrong(format!("`{attribute}` is not text"))),
    };
    object.into_iter().map(pair).collect()
}

fn read_replaces(text: &str) -> Result<Vec<String>, DataError> {
    serde_json::from_str(text).map_err(|error| DataError::Unexpected(format!("replaces: {error}")))
}

impl ChangeRow {
    fn change(self) -> Result<RuleChange, DataError> {
        let read = |text: Option<String>| {
            let value = text.map(|text| serde_json::from_str(&text)).transpose();
            value.map_err(|error| {
                DataError::Unexpected(format!("change {}: {error}", self.change_id))
            })
        };
        Ok(RuleChange {
            change_id: unsigned("change_id", self.change_id)?,
            rule_id: unsigned("rule_id", self.rule_id)?,
            old: read(self.old)?,
            new: read(self.new)?,
            changed_by: self.changed_by,
            changed_at: self.changed_at.into(),
        })
    }
}

/// The spec in its stored form, with whole tokens and period and all defaults filled in, so that two specs of one
/// rule are equal.
pub(super) fn normalised(spec: &RuleSpec) -> Result<RuleSpec, DataError> {
    let rule = spec.build().map_err(DataError::Refused)?;
    refuse_unstorable(spec)?;
    let mut normal = rule.spec();
    let (tokens, period) = stored_rate(rule.quota().rate());
    (normal.tokens, normal.period) = (Some(tokens), Some(Duration::from_micros(period)));
    normal.conditions.sort_unstable();
    Ok(normal)
}

/// Tokens and microseconds for the columns: as written, or reduced if they exceed the columns' range.
pub(super) fn stored_rate(rate: Rate) -> (u64, u64) {
    match rate.tokens_and_period_us() {
        written @ (tokens, _) if tokens <= NUMBER_MAX => written,
        _ => rate.reduced(),
    }
}

/// Rejects values that are valid in a rule but not in a column: NUL, or two conditions on one attribute.
fn refuse_unstorable(spec: &RuleSpec) -> Result<(), DataError> {
    let notes = NOTES.iter().map(|note| (note.name(), note.get(spec)));
    for (field, text) in notes.chain([("key_pattern", &*spec.key_pattern)]) {
        if text.contains('\0') {
            return Err(DataError::field(field, "must not contain a NUL character"));
        }
    }
    for (position, (attribute, _)) in spec.conditions.iter().enumerate() {
        if spec.conditions[..position].iter().any(|(earlier, _)| earlier == attribute) {
            let (of, reason) = (Some(attribute.clone()), "is duplicated".into());
            let duplicate = FieldError { field: "conditions", of, at: None, reason };
            return Err(DataError::Refused(vec![duplicate]));
        }
    }
    Ok(())
}

/// A rule as the API shows it, which is also how the history stores it.
#[must_use]
pub fn rule_json(rule: &StoredRule) -> Value {
    json!(rule.view())
}
