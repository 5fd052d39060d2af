//! Changes of rules: the whole set is looked at before anything is written, and what was changed is written down.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::Duration;

use sluicegate::rules::{RuleSet, RuleSetError, RuleSetErrors, RuleSpec, Scope};
use sqlx::QueryBuilder;

use super::rules::{
    self, capacity, columns, conditions_json, normalised, replaces_json, rule_json,
};
use super::session::{Session, on};
use super::values::{BY_BYTES_MAX, Time, clipped, signed, unsigned};
use super::{DataError, StoredRule};
use crate::time::Timestamp;

/// The most rows that one statement writes: a rule has 17 columns, and SQLite takes 32,766 values.
const ROWS_PER_STATEMENT: usize = 500;

/// The largest number of a rule.
const RULE_ID_MAX: u64 = (1 << 53) - 1;

/// A rule before and after.
struct Change {
    old: Option<StoredRule>,
    new: Option<StoredRule>,
}

/// The rules as they are to be, by id.
type Rules = BTreeMap<u64, StoredRule>;

/// Makes a rule; id 0 takes the next one.
pub(super) async fn create(
    session: &mut Session,
    spec: &RuleSpec,
    by: &str,
) -> Result<StoredRule, DataError> {
    let mut spec = normalised(spec)?;
    let mut rules = read(session).await?;
    if spec.rule_id == 0 {
        let mut next = next_id(session).await?;
        while rules.contains_key(&next) {
            next += 1;
        }
        spec.rule_id = storable_id(next)?;
    } else if rules.contains_key(&spec.rule_id) {
        let detail = format!("there is a rule {} already", spec.rule_id);
        return Err(DataError::Conflict { field: "rule_id", detail });
    }
    let rule_id = spec.rule_id;
    let version = first_versions(session, &[rule_id]).await?.version(rule_id);
    let new = StoredRule { spec, created_at: Timestamp::now(), version };
    rules.insert(rule_id, new.clone());
    check(&rules, Some(rule_id))?;
    write(session, vec![Change { old: None, new: Some(new.clone()) }], by).await?;
    Ok(new)
}

/// Changes a rule, if it has this version. A change that changes nothing leaves it as it is.
pub(super) async fn update(
    session: &mut Session,
    spec: &RuleSpec,
    version: Option<u64>,
    by: &str,
) -> Result<StoredRule, DataError> {
    let mut rules = read(session).await?;
    let old = rules.get(&spec.rule_id).cloned().ok_or(DataError::NotFound("rule"))?;
    is_current(old.version, version)?;
    let spec = normalised(spec)?;
    if spec == old.spec {
        return Ok(old);
    }
    let new = StoredRule { spec, created_at: old.created_at, version: old.version + 1 };
    rules.insert(new.spec.rule_id, new.clone());
    check(&rules, Some(new.spec.rule_id))?;
    write(session, vec![Change { old: Some(old), new: Some(new.clone()) }], by).await?;
    Ok(new)
}

/// Deletes a rule, if it has this version. Its overrides go with it, by a trigger.
pub(super) async fn delete(
    session: &mut Session,
    rule_id: u64,
    version: Option<u64>,
    by: &str,
) -> Result<StoredRule, DataError> {
    let old = rules::get(session, rule_id).await?;
    is_current(old.version, version)?;
    write(session, vec![Change { old: Some(old.clone()), new: None }], by).await?;
    Ok(old)
}

/// Makes these the rules. Those that stay as they are keep their version.
pub(super) async fn replace(
    session: &mut Session,
    specs: &[RuleSpec],
    generation: Option<u64>,
    by: &str,
) -> Result<(), DataError> {
    let current = super::generation(session).await?;
    is_current(current, generation)?;
    let old = read(session).await?;
    let mut specs = specs.iter().map(normalised).collect::<Result<Vec<_>, _>>()?;
    number(session, &mut specs, &old).await?;
    let made = specs.iter().map(|spec| spec.rule_id).filter(|id| !old.contains_key(id));
    let first_versions = first_versions(session, &made.collect::<Vec<_>>()).await?;
    let mut new = Rules::new();
    for spec in specs {
        let rule_id = spec.rule_id;
        let stored = match old.get(&rule_id) {
            Some(old) if old.spec == spec => old.clone(),
            Some(old) => StoredRule { spec, created_at: old.created_at, version: old.version + 1 },
            None => {
                let version = first_versions.version(rule_id);
                StoredRule { spec, created_at: Timestamp::now(), version }
            }
        };
        if new.insert(rule_id, stored).is_some() {
            let detail = format!("{rule_id} is there twice");
            return Err(DataError::Conflict { field: "rule_id", detail });
        }
    }
    check(&new, None)?;
    write(session, differences(old, new), by).await
}

/// Gives a number to each rule that has none: that of the rule with its key pattern and plan, if no other of them
/// has that, or the next.
async fn number(
    session: &mut Session,
    specs: &mut [RuleSpec],
    old: &Rules,
) -> Result<(), DataError> {
    let names: HashMap<_, _> = old
        .iter()
        .map(|(rule_id, rule)| ((&*rule.spec.key_pattern, &*rule.spec.plan), *rule_id))
        .collect();
    let mut given: HashSet<_> = specs.iter().map(|spec| spec.rule_id).collect();
    let mut next = next_id(session).await?;
    for spec in specs.iter_mut().filter(|spec| spec.rule_id == 0) {
        let same = names.get(&(&*spec.key_pattern, &*spec.plan)).copied();
        spec.rule_id = same.filter(|rule_id| !given.contains(rule_id)).unwrap_or_else(|| {
            while given.contains(&next) || old.contains_key(&next) {
                next += 1;
            }
            next
        });
        given.insert(storable_id(spec.rule_id)?);
    }
    Ok(())
}

/// The first number that no rule has ever had, but for those that somebody chose by hand.
pub(super) async fn next_id(session: &mut Session) -> Result<u64, DataError> {
    let select = if session.is_postgres() {
        "SELECT CASE WHEN is_called THEN last_value + 1 ELSE last_value END \
         FROM rate_limit_rules_rule_id_seq"
    } else {
        "SELECT COALESCE(MAX(seq), 0) + 1 FROM sqlite_sequence WHERE name = 'rate_limit_rules'"
    };
    let next: i64 =
        on!(session, connection => sqlx::query_scalar(select).fetch_one(connection).await)?;
    unsigned("rule_id", next)
}

/// Numbers end: somebody may have chosen the last.
fn storable_id(rule_id: u64) -> Result<u64, DataError> {
    if rule_id <= RULE_ID_MAX {
        return Ok(rule_id);
    }
    Err(DataError::field("rule_id", "no number is left: choose one that is free"))
}

/// The versions of rules that are made: 1, or for one that comes back more than it ever had, so that nobody takes it
/// for the one that was. Every change that gave it a version is on record.
struct FirstVersions(HashMap<u64, u64>);

impl FirstVersions {
    fn version(&self, rule_id: u64) -> u64 {
        1 + self.0.get(&rule_id).copied().unwrap_or_default()
    }
}

async fn first_versions(
    session: &mut Session,
    rule_ids: &[u64],
) -> Result<FirstVersions, DataError> {
    let mut versions = HashMap::new();
    for ids in rule_ids.chunks(ROWS_PER_STATEMENT) {
        let select = "SELECT rule_id, COUNT(*) FROM rate_limit_rule_changes WHERE rule_id IN (";
        let counts: Vec<(i64, i64)> = on!(session, connection: Dialect => {
            let mut query = QueryBuilder::<Dialect>::new(select);
            let mut list = query.separated(", ");
            ids.iter().for_each(|id| _ = list.push_bind(signed(*id)));
            let query = query.push(") GROUP BY rule_id").build_query_as();
            query.persistent(false).fetch_all(connection).await
        })?;
        for (rule_id, count) in counts {
            versions.insert(unsigned("rule_id", rule_id)?, unsigned("count", count)?);
        }
    }
    Ok(FirstVersions(versions))
}

/// What has to be done to come from one set to the other.
fn differences(mut old: Rules, new: Rules) -> Vec<Change> {
    let mut changes = Vec::new();
    for (rule_id, new) in new {
        let old = old.remove(&rule_id);
        if old.as_ref() != Some(&new) {
            changes.push(Change { old, new: Some(new) });
        }
    }
    changes.extend(old.into_values().map(|old| Change { old: Some(old), new: None }));
    changes
}

async fn read(session: &mut Session) -> Result<Rules, DataError> {
    let rules = rules::all(session).await?;
    Ok(rules.into_iter().map(|rule| (rule.spec.rule_id, rule)).collect())
}

/// Is this the version that was asked for?
pub(super) fn is_current(current: u64, asked: Option<u64>) -> Result<(), DataError> {
    match asked {
        Some(asked) if asked != current => Err(DataError::Stale { current }),
        _ => Ok(()),
    }
}

/// Do these rules make sense, each by itself and all together? If only one of them is changed, it is the one that
/// clashes.
fn check(rules: &Rules, changed: Option<u64>) -> Result<(), DataError> {
    let built = rules.values().map(|rule| {
        rule.spec.build().map_err(|errors| {
            let wrong = DataError::Refused(errors);
            DataError::Unexpected(format!("rule {}: {wrong}", rule.spec.rule_id))
        })
    });
    let built = built.collect::<Result<Vec<_>, _>>()?;
    let ids: Vec<u64> = rules.keys().copied().collect();
    RuleSet::new(built).map(drop).map_err(|errors| clash(&errors, &ids, changed))
}

fn clash(errors: &RuleSetErrors, ids: &[u64], changed: Option<u64>) -> DataError {
    match errors.as_slice().first() {
        Some(RuleSetError::SamePattern { first, second, .. }) => {
            let id = |position: &usize| ids.get(*position).copied().unwrap_or_default();
            let (first, second) = (id(first), id(second));
            let detail = match changed {
                Some(changed) if changed == first => same_plan(second),
                Some(_) => same_plan(first),
                None => {
                    format!("rules {first} and {second} would have the same key pattern and plan")
                }
            };
            DataError::Conflict { field: "key_pattern", detail }
        }
        Some(error @ RuleSetError::TooMany { .. }) => DataError::field("rules", error.to_string()),
        Some(error) => DataError::field("rule_id", error.to_string()),
        None => DataError::Unexpected(errors.to_string()),
    }
}

/// The rule that stands in the way of another.
fn same_plan(rule_id: u64) -> String {
    format!("rule {rule_id} has it for the same plan")
}

// ===== writing =====

async fn write(session: &mut Session, changes: Vec<Change>, by: &str) -> Result<(), DataError> {
    let gone = changes.iter().filter(|change| change.new.is_none());
    let gone: Vec<_> = gone.filter_map(|change| change.old.as_ref()).map(id).collect();
    for ids in gone.chunks(ROWS_PER_STATEMENT) {
        let delete = "DELETE FROM rate_limit_rules WHERE rule_id IN (";
        on!(session, connection: Dialect => {
            let mut query = QueryBuilder::<Dialect>::new(delete);
            let mut list = query.separated(", ");
            ids.iter().for_each(|id| _ = list.push_bind(*id));
            query.push(")").build().persistent(false).execute(connection).await.map(drop)
        })?;
    }
    make_way(session, &changes).await?;
    let new: Vec<_> = changes.iter().filter_map(|change| change.new.as_ref()).collect();
    for rules in new.chunks(ROWS_PER_STATEMENT) {
        save(session, rules).await?;
    }
    if session.is_postgres()
        && let Some(last) = new.iter().map(|rule| id(rule)).max()
    {
        // Numbers that were given count as well: SQLite sees to that itself.
        let advance = "SELECT setval('rate_limit_rules_rule_id_seq', $1) \
                       FROM rate_limit_rules_rule_id_seq WHERE last_value < $1";
        on!(session, connection => sqlx::query(advance).bind(last).execute(connection).await.map(drop))?;
    }
    for changes in changes.chunks(ROWS_PER_STATEMENT) {
        record(session, changes, by).await?;
    }
    Ok(())
}

fn id(rule: &StoredRule) -> i64 {
    signed(rule.spec.rule_id)
}

/// Gives stand-ins for their key patterns to rules that will have others, so that two can swap theirs.
async fn make_way(session: &mut Session, changes: &[Change]) -> Result<(), DataError> {
    let moved = |change: &Change| match (&change.old, &change.new) {
        (Some(old), Some(new)) => {
            let is_moved =
                old.spec.key_pattern != new.spec.key_pattern || old.spec.plan != new.spec.plan;
            is_moved.then(|| id(old))
        }
        _ => None,
    };
    let moved: Vec<_> = changes.iter().filter_map(moved).collect();
    if moved.len() < 2 {
        return Ok(());
    }
    for ids in moved.chunks(ROWS_PER_STATEMENT) {
        let update = "UPDATE rate_limit_rules SET key_pattern = '~' || CAST(rule_id AS TEXT) \
                      WHERE rule_id IN (";
        on!(session, connection: Dialect => {
            let mut query = QueryBuilder::<Dialect>::new(update);
            let mut list = query.separated(", ");
            ids.iter().for_each(|id| _ = list.push_bind(*id));
            query.push(")").build().persistent(false).execute(connection).await.map(drop)
        })?;
    }
    Ok(())
}

/// Writes rules, be they new or not.
async fn save(session: &mut Session, rules: &[&StoredRule]) -> Result<(), DataError> {
    on!(session, connection: Dialect => {
        let mut query = QueryBuilder::<Dialect>::new(
            concat!("INSERT INTO rate_limit_rules (", columns!(), ") ")
        );
        query.push_values(rules, |mut row, rule| {
            let spec = &rule.spec;
            let micros = |time: Duration| i64::try_from(time.as_micros()).unwrap_or(i64::MAX);
            row.push_bind(id(rule))
                .push_bind(spec.key_pattern.clone())
                .push_bind(spec.scope.unwrap_or(Scope::Custom).name())
                .push_bind(signed(capacity(spec)))
                .push_bind((!spec.plan.is_empty()).then(|| spec.plan.clone()))
                .push_bind(spec.is_active)
                .push_bind(spec.description.clone())
                .push_bind(Time::from(rule.created_at))
                .push_bind(signed(spec.tokens.unwrap_or_default()))
                .push_bind(micros(spec.period.unwrap_or_default()))
                .push_bind(spec.algorithm.name())
                .push_bind(spec.refill.name())
                .push_bind(spec.max_wait.map(micros))
                .push_bind(spec.mode.name())
                .push_bind(spec.on_error.name())
                .push_bind(conditions_json(spec).to_string())
                .push_bind(signed(rule.version))
                .push_bind((!spec.name.is_empty()).then(|| spec.name.clone()))
                .push_bind(replaces_json(spec).to_string());
        });
        query.push(
            " ON CONFLICT (rule_id) DO UPDATE SET key_pattern = excluded.key_pattern, \
             scope = excluded.scope, burst_capacity = excluded.burst_capacity, plan = excluded.plan, \
             is_active = excluded.is_active, description = excluded.description, tokens = excluded.tokens, \
             period = excluded.period, algorithm = excluded.algorithm, refill = excluded.refill, \
             max_wait = excluded.max_wait, mode = excluded.mode, on_error = excluded.on_error, \
             conditions = excluded.conditions, version = excluded.version, name = excluded.name, \
             replaces = excluded.replaces",
        );
        query.build().persistent(false).execute(connection).await.map(drop)
    })?;
    Ok(())
}

/// Writes down who changed what.
async fn record(session: &mut Session, changes: &[Change], by: &str) -> Result<(), DataError> {
    let (by, now) = (clipped(by, BY_BYTES_MAX), Time::from(Timestamp::now()));
    let text = |rule: &StoredRule| rule_json(rule).to_string();
    on!(session, connection: Dialect => {
        let mut query = QueryBuilder::<Dialect>::new(
            "INSERT INTO rate_limit_rule_changes (rule_id, changed_by, changed_at, old, new) ",
        );
        query.push_values(changes, |mut row, change| {
            let rule = change.new.as_ref().or(change.old.as_ref());
            row.push_bind(rule.map(id))
                .push_bind(by.clone())
                .push_bind(now)
                .push_bind(change.old.as_ref().map(text))
                .push_bind(change.new.as_ref().map(text));
        });
        query.build().persistent(false).execute(connection).await.map(drop)
    })?;
    Ok(())
}
