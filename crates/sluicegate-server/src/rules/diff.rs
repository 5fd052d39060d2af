//! What changes if one set of rules takes the place of another.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sluicegate::rules::{RuleSetError, RuleSetErrors, RuleSpec};
use sluicegate::{Rule, RuleSet};
use utoipa::ToSchema;

use crate::admin::rules::RuleView;
use crate::data::{DataError, Database, Page, RuleFilter};

/// The difference between two sets of rules. A rule is the same one if it has the same id.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub(crate) struct RulesDiff {
    /// Rules that are new, with all their columns.
    #[schema(value_type = Vec<Object>)]
    pub(crate) added: Vec<Map<String, Value>>,
    /// Rules that go, with all their columns.
    #[schema(value_type = Vec<Object>)]
    pub(crate) removed: Vec<Map<String, Value>>,
    /// Rules that change.
    pub(crate) changed: Vec<ChangedRule>,
    /// How many rules stay as they are.
    pub(crate) unchanged: usize,
}

/// A rule that changes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub(crate) struct ChangedRule {
    /// Its number.
    pub(crate) rule_id: u64,
    /// Its key pattern before.
    pub(crate) key_pattern: String,
    /// Its plan before.
    pub(crate) plan: String,
    /// The columns that change.
    pub(crate) columns: Vec<ChangedColumn>,
}

/// A column that changes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub(crate) struct ChangedColumn {
    /// Its name.
    pub(crate) name: String,
    /// What it was.
    #[schema(value_type = Value)]
    pub(crate) old: Value,
    /// What it becomes.
    #[schema(value_type = Value)]
    pub(crate) new: Value,
}

/// The columns that somebody chooses, in the order in which they are read.
pub(crate) const COLUMNS: [&str; 16] = [
    "name",
    "key_pattern",
    "scope",
    "plan",
    "conditions",
    "replaces",
    "tokens",
    "period",
    "burst_capacity",
    "algorithm",
    "refill",
    "max_wait",
    "mode",
    "on_error",
    "is_active",
    "description",
];

/// The id of a rule, unless it is yet to get one, and the columns that somebody chooses, as the API shows them.
pub(crate) fn columns(rule: &Rule) -> Map<String, Value> {
    let shown = serde_json::to_value(RuleView::in_force(rule));
    let Ok(Value::Object(mut columns)) = shown else { return Map::new() };
    let has_id = rule.rule_id() > 0;
    columns.retain(|name, _| (name == "rule_id" && has_id) || COLUMNS.contains(&name.as_str()));
    columns
}

impl RulesDiff {
    /// What changes if `old` is replaced by `new`.
    pub(crate) fn new(old: &[Rule], new: &[Rule]) -> Self {
        let by_id = |rules: &[Rule]| -> BTreeMap<_, _> {
            rules.iter().map(|rule| (rule.rule_id(), columns(rule))).collect()
        };
        let (old, mut new) = (by_id(old), by_id(new));
        let mut diff = Self::default();
        for (rule_id, before) in old {
            match new.remove(&rule_id) {
                None => diff.removed.push(before),
                Some(after) if after == before => diff.unchanged += 1,
                Some(after) => diff.changed.push(ChangedRule::new(rule_id, &before, &after)),
            }
        }
        diff.added = new.into_values().collect();
        diff
    }

    /// What changes if these become the rules of a database. Those with the id 0 take the place of the rule with
    /// their key pattern and plan, if there is one, or get the next id.
    pub(crate) async fn planned(
        database: &Database,
        specs: &[RuleSpec],
    ) -> Result<Self, DataError> {
        let all = Page { after: None, limit: usize::MAX };
        let old = database.rules(&RuleFilter::default(), all).await?;
        let names: HashMap<_, _> = old
            .iter()
            .map(|rule| ((&*rule.spec.key_pattern, &*rule.spec.plan), rule.spec.rule_id))
            .collect();
        let mut taken: HashSet<_> = specs.iter().map(|spec| spec.rule_id).collect();
        let mut next = database.next_rule_id().await?;
        let mut new = Vec::with_capacity(specs.len());
        for spec in specs {
            let mut spec = spec.clone();
            if spec.rule_id == 0 {
                let same = names.get(&(&*spec.key_pattern, &*spec.plan)).copied();
                spec.rule_id =
                    same.filter(|rule_id| !taken.contains(rule_id)).unwrap_or_else(|| {
                        while taken.contains(&next) {
                            next += 1;
                        }
                        next
                    });
                taken.insert(spec.rule_id);
            }
            new.push(spec.build().map_err(DataError::Refused)?);
        }
        let new = RuleSet::new(new).map_err(|errors| clash(&errors))?;
        // A rule that makes no sense any more is none that could stay.
        let old: Vec<Rule> = old.iter().filter_map(|rule| rule.spec.build().ok()).collect();
        Ok(Self::new(&old, new.rules()))
    }

    /// Whether nothing changes.
    pub(crate) fn is_empty(&self) -> bool {
        self.added.is_empty() && self.removed.is_empty() && self.changed.is_empty()
    }
}

fn clash(errors: &RuleSetErrors) -> DataError {
    let field = match errors.as_slice().first() {
        Some(RuleSetError::SameId { .. }) => "rule_id",
        _ => "key_pattern",
    };
    DataError::Conflict { field, detail: errors.to_string() }
}

impl ChangedRule {
    fn new(rule_id: u64, old: &Map<String, Value>, new: &Map<String, Value>) -> Self {
        let text = |name: &str| old.get(name).and_then(Value::as_str).unwrap_or_default().into();
        let value =
            |row: &Map<String, Value>, name: &str| row.get(name).cloned().unwrap_or_default();
        let changed = COLUMNS.iter().filter(|name| old.get(**name) != new.get(**name));
        let columns = changed.map(|name| ChangedColumn {
            name: (*name).into(),
            old: value(old, name),
            new: value(new, name),
        });
        Self {
            rule_id,
            key_pattern: text("key_pattern"),
            plan: text("plan"),
            columns: columns.collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn rules_are_added_removed_changed_or_stay() {
        let old = RuleSet::starter();
        assert!(RulesDiff::new(old.rules(), old.rules()).is_empty());
        let text = "[[rule]]\nrule_id = 1\nkey_pattern = \"user:{user_id}\"\nplan = \"free\"\ntokens = 20\n\
                    period = 1\nburst_capacity = 50\nmode = \"shadow\"\n\
                    [[rule]]\nrule_id = 99\nkey_pattern = \"new\"\ntokens = 1\nperiod = 1\n";
        let new = RuleSet::from_toml("new", text).unwrap();
        let diff = RulesDiff::new(old.rules(), new.rules());
        assert_eq!(diff.removed.len(), old.rules().len() - 1);
        assert_eq!(diff.added.len(), 1);
        assert_eq!(diff.added[0]["key_pattern"], json!("new"));
        let [changed] = &diff.changed[..] else { panic!("{diff:?}") };
        let mut names = changed.columns.iter().map(|c| (c.name.as_str(), c.new.clone()));
        assert_eq!(names.next(), Some(("tokens", json!(20))));
        assert_eq!(names.next(), Some(("mode", json!("shadow"))));
        assert_eq!(names.next(), Some(("description", json!(""))));
        assert_eq!((diff.unchanged, names.next()), (0, None));
        let text = serde_json::to_string(&diff).unwrap();
        assert_eq!(serde_json::from_str::<RulesDiff>(&text).unwrap(), diff);
    }
}
