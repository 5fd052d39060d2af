//! Rules as rows and as JSON.

use std::time::Duration;

use serde_json::{Map, Value, json};
use sluicegate::rules::{FieldError, RuleSpec, Scope};
use sluicegate::{Algorithm, Rate};
use sqlx::QueryBuilder;

use super::row::row;
use super::session::{Session, on};
use super::values::{Time, named, rows, signed, unsigned};
use super::{DataError, Page, RuleChange, RuleFilter, StoredRule};

/// The most tokens and the longest period, in microseconds, that columns hold. No quota has more, reduced.
const NUMBER_MAX: u64 = 1 << 52;

/// Whole numbers up to here are the same in JSON as in every language that reads it.
const EXACT_MAX: f64 = 9_007_199_254_740_991.0;

macro_rules! columns {
    () => {
        "rule_id, key_pattern, scope, burst_capacity, plan, is_active, description, created_at, tokens, period, \
         algorithm, refill, max_wait, mode, on_error, conditions, version, name, replaces"
    };
}
pub(super) use columns;

row! {
    /// A row, as it is stored.
    pub(super) struct RuleRow {
        pub(super) rule_id: i64,
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
    }
}

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

/// A part of the rules, by id.
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
    /// The rule. Whether it makes sense is for [`RuleSpec::build`] to say.
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
        let burst = unsigned("burst_capacity", self.burst_capacity)?;
        let spec = RuleSpec {
            rule_id: unsigned("rule_id", self.rule_id)?,
            key_pattern: self.key_pattern,
            scope: Some(named("scope", &self.scope)?),
            rate_per_second: None,
            tokens: Some(unsigned("tokens", self.tokens)?),
            period: Some(micros("period", self.period)?),
            // A window has its tokens and no other capacity; the column says so.
            burst_capacity: (algorithm.has_capacity() || self.burst_capacity != self.tokens)
                .then_some(burst),
            algorithm,
            refill: named("refill", &self.refill)?,
            max_wait: self.max_wait.map(|wait| micros("max_wait", wait)).transpose()?,
            plan: self.plan.unwrap_or_default(),
            mode: named("mode", &self.mode)?,
            on_error: named("on_error", &self.on_error)?,
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

fn read_conditions(text: &str) -> Result<Vec<(String, String)>, DataError> {
    let wrong = |why: String| DataError::Unexpected(format!("conditions: {why}"));
    let object: Map<String, Value> =
        serde_json::from_str(text).map_err(|error| wrong(error.to_string()))?;
    let pair = |(attribute, glob)| match glob {
        Value::String(glob) => Ok((attribute, glob)),
        _ => Err(wrong(format!("`{attribute}` is no text"))),
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

/// The spec as it is stored: tokens and period whole, nothing left to be guessed, so that two specs of one rule are
/// equal.
pub(super) fn normalised(spec: &RuleSpec) -> Result<RuleSpec, DataError> {
    let rule = spec.build().map_err(DataError::Refused)?;
    refuse_unstorable(spec)?;
    let mut normal = rule.spec();
    let (tokens, period) = stored_rate(rule.quota().rate());
    (normal.tokens, normal.period) = (Some(tokens), Some(Duration::from_micros(period)));
    normal.conditions.sort_unstable();
    Ok(normal)
}

/// Tokens and microseconds as columns hold them: as written, or reduced where that is too much for them.
pub(super) fn stored_rate(rate: Rate) -> (u64, u64) {
    match rate.tokens_and_period_us() {
        written @ (tokens, _) if tokens <= NUMBER_MAX => written,
        _ => rate.reduced(),
    }
}

/// A rule may be sound, and yet have what a column cannot: NUL, or two conditions on one attribute.
fn refuse_unstorable(spec: &RuleSpec) -> Result<(), DataError> {
    let texts = [("key_pattern", &spec.key_pattern), ("description", &spec.description)];
    for (field, text) in texts {
        if text.contains('\0') {
            return Err(DataError::field(field, "has a NUL in it"));
        }
    }
    for (position, (attribute, _)) in spec.conditions.iter().enumerate() {
        if spec.conditions[..position].iter().any(|(earlier, _)| earlier == attribute) {
            let (of, reason) = (Some(attribute.clone()), "is there twice".into());
            let twice = FieldError { field: "conditions", of, at: None, reason };
            return Err(DataError::Refused(vec![twice]));
        }
    }
    Ok(())
}

/// The most that can be taken at once; of a window, its tokens.
pub(super) fn capacity(spec: &RuleSpec) -> u64 {
    spec.burst_capacity.or(spec.tokens).unwrap_or_default()
}

/// The conditions as a JSON object.
pub(super) fn conditions_json(spec: &RuleSpec) -> Value {
    let pair = |(attribute, glob): &(String, String)| (attribute.clone(), json!(glob));
    Value::Object(spec.conditions.iter().map(pair).collect())
}

/// The names that it replaces as a JSON array.
pub(super) fn replaces_json(spec: &RuleSpec) -> Value {
    json!(spec.replaces)
}

/// A rule as the API shows it: all its columns, lengths of time in seconds.
#[must_use]
pub fn rule_json(rule: &StoredRule) -> Value {
    let spec = &rule.spec;
    let (tokens, period) = (spec.tokens.unwrap_or(0), spec.period.unwrap_or_default());
    let per_second = Rate::new(tokens, period).map_or(0.0, |rate| rate.per_second());
    json!({
        "rule_id": spec.rule_id,
        "key_pattern": spec.key_pattern,
        "scope": spec.scope.map(Scope::name),
        "rate_per_second": number(per_second),
        "tokens": tokens,
        "period": seconds(period),
        "burst_capacity": capacity(spec),
        "plan": (!spec.plan.is_empty()).then_some(&spec.plan),
        "algorithm": spec.algorithm.name(),
        "refill": spec.refill.name(),
        "max_wait": spec.max_wait.map(seconds),
        "mode": spec.mode.name(),
        "on_error": spec.on_error.name(),
        "conditions": conditions_json(spec),
        "name": (!spec.name.is_empty()).then_some(&spec.name),
        "replaces": replaces_json(spec),
        "is_active": spec.is_active,
        "description": spec.description,
        "created_at": rule.created_at,
        "version": rule.version,
    })
}

/// A length of time in seconds. Microseconds up to 2^52 are told apart by a float.
#[expect(clippy::cast_precision_loss, reason = "microseconds of columns are below 2^53")]
fn seconds(duration: Duration) -> Value {
    number(duration.as_micros() as f64 / 1e6)
}

/// A number, without `.0` where it is whole.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "whole, and looked at before"
)]
fn number(value: f64) -> Value {
    if value.fract() == 0.0 && (0.0..=EXACT_MAX).contains(&value) {
        json!(value as u64)
    } else {
        json!(value)
    }
}
