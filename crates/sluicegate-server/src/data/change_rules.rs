//! Changes of rules: the whole set is checked before anything is written, and every change is recorded.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde_json::{Value, json};
use sluicegate::rules::{RuleSet, RuleSetError, RuleSetErrors, RuleSpec};
use sqlx::QueryBuilder;

use super::history;
use super::overrides;
use super::rules::{self, PushRows as _, RuleRow, assignments, columns, normalised, rule_json};
use super::session::{Session, on};
use super::values::{BY_BYTES_MAX, Time, clipped, signed, unsigned};
use super::{Act, Author, DataError, Replaced, StoredRule};
use crate::time::Timestamp;

/// Maximum number of rows in a statement. SQLite allows 32,766 values.
const ROWS_PER_STATEMENT: usize = 500;
const _: () = assert!(ROWS_PER_STATEMENT * RuleRow::COLUMNS.len() <= 32_766);

/// Largest id of a rule.
const RULE_ID_MAX: u64 = (1 << 53) - 1;

/// A rule before and after.
struct Change {
    old: Option<StoredRule>,
    new: Option<StoredRule>,
}

/// A set of rules by id.
type Rules = BTreeMap<u64, StoredRule>;

/// Creates a rule; id 0 takes the next one.
pub(super) async fn create(
    session: &mut Session,
    spec: &RuleSpec,
    tiers_max: usize,
    by: &Author,
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
        let detail = format!("rule {} exists already", spec.rule_id);
        return Err(DataError::Conflict { field: "rule_id", detail, rule_id: Some(spec.rule_id) });
    }
    let rule_id = spec.rule_id;
    let version = first_versions(session, &[rule_id]).await?.version(rule_id);
    let new = StoredRule { spec, created_at: Timestamp::now(), version };
    rules.insert(rule_id, new.clone());
    check(&rules, tiers_max, Some(rule_id))?;
    write(session, vec![Change { old: None, new: Some(new.clone()) }], by).await?;
    Ok(new)
}

/// Changes a rule by a function. A rule without a difference keeps its version.
pub(super) async fn update(
    session: &mut Session,
    rule_id: u64,
    tiers_max: usize,
    by: &Author,
    changed: impl FnOnce(&StoredRule) -> Result<RuleSpec, DataError>,
) -> Result<StoredRule, DataError> {
    let mut rules = read(session).await?;
    let old = rules.get(&rule_id).cloned().ok_or(DataError::NotFound("rule"))?;
    let spec = normalised(&RuleSpec { rule_id, ..changed(&old)? })?;
    if spec == old.spec {
        return Ok(old);
    }
    let new = StoredRule { spec, created_at: old.created_at, version: old.version + 1 };
    rules.insert(rule_id, new.clone());
    check(&rules, tiers_max, Some(rule_id))?;
    write(session, vec![Change { old: Some(old), new: Some(new.clone()) }], by).await?;
    Ok(new)
}

/// Deletes a rule if it has this version. A trigger deletes its overrides.
pub(super) async fn delete(
    session: &mut Session,
    rule_id: u64,
    version: Option<u64>,
    by: &Author,
) -> Result<StoredRule, DataError> {
    let old = rules::get(session, rule_id).await?;
    is_current(old.version, version)?;
    write(session, vec![Change { old: Some(old.clone()), new: None }], by).await?;
    Ok(old)
}

/// Replaces all rules. Rules without a difference keep their version.
pub(super) async fn replace(
    session: &mut Session,
    specs: &[RuleSpec],
    generation: Option<u64>,
    tiers_max: usize,
    by: &Author,
) -> Result<Replaced, DataError> {
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
            let detail = format!("{rule_id} is duplicated");
            return Err(DataError::Conflict { field: "rule_id", detail, rule_id: Some(rule_id) });
        }
    }
    check(&new, tiers_max, None)?;
    let changes = differences(old.clone(), new.clone());
    if !changes.is_empty() {
        let summary = history::Change::new(Act::RulesReplace, None, Some(counts(&changes)));
        history::record(session, by, vec![summary]).await?;
    }
    write(session, changes, by).await?;
    // A dry run does not change the generation.
    let generation =
        if session.is_dry_run() { current } else { super::generation(session).await? };
    let list = |rules: Rules| rules.into_values().collect();
    Ok(Replaced { old: list(old), new: list(new), generation })
}

/// Gives an id to each rule without one: that of the rule with its key pattern and plan, unless another of them
/// has it, or the next.
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

/// The first id that no rule has ever had, except ids chosen by hand.
async fn next_id(session: &mut Session) -> Result<u64, DataError> {
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

/// Refuses an id beyond the largest, which may have been chosen by hand.
fn storable_id(rule_id: u64) -> Result<u64, DataError> {
    if rule_id <= RULE_ID_MAX {
        return Ok(rule_id);
    }
    Err(DataError::field("rule_id", "all automatic ids are used: set an unused rule_id"))
}

/// First versions of new rules: 1, or for an id that was used before, more than it ever had, so that no client mistakes
/// it for the deleted rule. Every change that gave a rule a version is in the history.
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

/// Numbers of rules added, changed and removed.
fn counts(changes: &[Change]) -> Value {
    let added = changes.iter().filter(|change| change.old.is_none()).count();
    let removed = changes.iter().filter(|change| change.new.is_none()).count();
    json!({"added": added, "changed": changes.len() - added - removed, "removed": removed})
}

/// Changes that turn one set into the other.
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

/// Rejects a version other than the current one.
pub(super) fn is_current(current: u64, asked: Option<u64>) -> Result<(), DataError> {
    match asked {
        Some(asked) if asked != current => Err(DataError::Stale { current }),
        _ => Ok(()),
    }
}

/// Validates each rule and the whole set. If only one rule is changed, a conflict names the other.
fn check(rules: &Rules, tiers_max: usize, changed: Option<u64>) -> Result<(), DataError> {
    let built = rules.values().map(|rule| {
        rule.spec.build().map_err(|errors| {
            let wrong = DataError::Refused(errors);
            DataError::Unexpected(format!("rule {}: {wrong}", rule.spec.rule_id))
        })
    });
    let built = built.collect::<Result<Vec<_>, _>>()?;
    let ids: Vec<u64> = rules.keys().copied().collect();
    RuleSet::bounded(built, tiers_max).map(drop).map_err(|errors| clash(&errors, &ids, changed))
}

fn clash(errors: &RuleSetErrors, ids: &[u64], changed: Option<u64>) -> DataError {
    match errors.as_slice().first() {
        Some(RuleSetError::SamePattern { first, second, .. }) => {
            let id = |position: &usize| ids.get(*position).copied().unwrap_or_default();
            let (first, second) = (id(first), id(second));
            let other = if changed == Some(first) { second } else { first };
            let detail = match changed {
                Some(_) => format!("rule {other} has the same key pattern and plan"),
                None => format!("rules {first} and {second} have the same key pattern and plan"),
            };
            DataError::Conflict { field: "key_pattern", detail, rule_id: Some(other) }
        }
        Some(error @ RuleSetError::TooMany { .. }) => DataError::field("rules", error.to_string()),
        Some(error @ RuleSetError::TooManyUnconditional { .. }) => {
            let field = if changed.is_some() { "conditions" } else { "rules" };
            DataError::field(field, error.to_string())
        }
        Some(error) => DataError::field("rule_id", error.to_string()),
        None => DataError::Unexpected(errors.to_string()),
    }
}

// ===== writing =====

async fn write(session: &mut Session, changes: Vec<Change>, by: &Author) -> Result<(), DataError> {
    let gone = changes.iter().filter(|change| change.new.is_none());
    let gone: Vec<_> = gone.filter_map(|change| change.old.as_ref()).map(id).collect();
    for ids in gone.chunks(ROWS_PER_STATEMENT) {
        overrides::record_deletion(session, ids, by).await?;
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
    // A sequence is not rolled back, and so not moved by a dry run.
    if session.is_postgres()
        && !session.is_dry_run()
        && let Some(last) = new.iter().map(|rule| id(rule)).max()
    {
        // Ids chosen by hand count as used; SQLite does so by itself.
        let advance = "SELECT setval('rate_limit_rules_rule_id_seq', $1) \
                       FROM rate_limit_rules_rule_id_seq WHERE last_value < $1";
        on!(session, connection => sqlx::query(advance).bind(last).execute(connection).await.map(drop))?;
    }
    for changes in changes.chunks(ROWS_PER_STATEMENT) {
        record(session, changes, by).await?;
    }
    history::record(session, by, changes.iter().map(Change::act).collect()).await
}

impl Change {
    /// The change for the history.
    fn act(&self) -> history::Change {
        let act = match (&self.old, &self.new) {
            (None, _) => Act::RuleCreate,
            (Some(_), Some(_)) => Act::RuleUpdate,
            (Some(_), None) => Act::RuleDelete,
        };
        let rule = self.new.as_ref().or(self.old.as_ref());
        history::Change {
            rule_id: rule.map(|rule| rule.spec.rule_id),
            ..history::Change::new(
                act,
                self.old.as_ref().map(rule_json),
                self.new.as_ref().map(rule_json),
            )
        }
    }
}

fn id(rule: &StoredRule) -> i64 {
    signed(rule.spec.rule_id)
}

/// Gives temporary key patterns to rules whose patterns change, so that two can swap theirs.
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

/// Inserts or updates rules.
async fn save(session: &mut Session, rules: &[&StoredRule]) -> Result<(), DataError> {
    on!(session, connection: Dialect => {
        let mut query = QueryBuilder::<Dialect>::new(
            concat!("INSERT INTO rate_limit_rules (", columns!(), ") ")
        );
        query.push_rows(rules.iter().map(|rule| RuleRow::new(rule)).collect());
        query.push(concat!(" ON CONFLICT (rule_id) DO UPDATE SET ", assignments!()));
        query.build().persistent(false).execute(connection).await.map(drop)
    })?;
    Ok(())
}

/// Records the changes in the rules' own history.
async fn record(session: &mut Session, changes: &[Change], by: &Author) -> Result<(), DataError> {
    let (by, now) = (clipped(&by.name, BY_BYTES_MAX), Time::from(Timestamp::now()));
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
