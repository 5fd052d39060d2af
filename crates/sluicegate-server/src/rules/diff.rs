//! Differences between two sets of rules.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sluicegate::Rule;
use sluicegate::rules::RuleSpec;
use utoipa::ToSchema;

use crate::data::{Replaced, StoredRule};
use crate::json::rule::RuleView;

/// Difference between two sets of rules. Rules are matched by id.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub(crate) struct RulesDiff {
    /// Added rules with all columns.
    #[schema(value_type = Vec<Object>)]
    pub(crate) added: Vec<Map<String, Value>>,
    /// Removed rules with all columns.
    #[schema(value_type = Vec<Object>)]
    pub(crate) removed: Vec<Map<String, Value>>,
    /// Changed rules.
    pub(crate) changed: Vec<ChangedRule>,
    /// Number of rules without a difference.
    pub(crate) unchanged: usize,
}

/// A changed rule.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub(crate) struct ChangedRule {
    /// Id of the rule.
    pub(crate) rule_id: u64,
    /// Key pattern before the change.
    pub(crate) key_pattern: String,
    /// Plan before the change.
    pub(crate) plan: String,
    /// Changed columns.
    pub(crate) columns: Vec<ChangedColumn>,
}

/// A changed column.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub(crate) struct ChangedColumn {
    /// Name of the column.
    pub(crate) name: String,
    /// Value before the change.
    #[schema(value_type = Value)]
    pub(crate) old: Value,
    /// Value after the change.
    #[schema(value_type = Value)]
    pub(crate) new: Value,
}

/// Columns that a client chooses for a rule, in the order of files.
pub(crate) fn chosen_columns() -> impl Iterator<Item = &'static str> {
    // The id is assigned by the service, and the rate follows from tokens and period.
    let columns = RuleSpec::COLUMNS.into_iter();
    columns.filter(|name| !matches!(*name, "rule_id" | "rate_per_second"))
}

/// The id of a rule, if it has one, and its chosen columns, as the API shows them.
pub(crate) fn columns(rule: &Rule) -> Map<String, Value> {
    let shown = serde_json::to_value(RuleView::in_force(rule));
    let Ok(Value::Object(mut columns)) = shown else { return Map::new() };
    let has_id = rule.rule_id() > 0;
    columns.retain(|name, _| {
        if name == "rule_id" { has_id } else { chosen_columns().any(|column| column == name) }
    });
    columns
}

impl RulesDiff {
    /// Difference of replacing `old` by `new`.
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

    /// Difference of replacing all rules of a database.
    pub(crate) fn of(replaced: &Replaced) -> Self {
        // Stored rules that are invalid are left out.
        let built = |rules: &[StoredRule]| -> Vec<Rule> {
            rules.iter().filter_map(|rule| rule.spec.build().ok()).collect()
        };
        Self::new(&built(&replaced.old), &built(&replaced.new))
    }

    /// True if there is no difference.
    pub(crate) fn is_empty(&self) -> bool {
        self.added.is_empty() && self.removed.is_empty() && self.changed.is_empty()
    }
}

impl ChangedRule {
    fn new(rule_id: u64, old: &Map<String, Value>, new: &Map<String, Value>) -> Self {
        let text = |name: &str| old.get(name).and_then(Value::as_str).unwrap_or_default().into();
        let value =
            |row: &Map<String, Value>, name: &str| row.get(name).cloned().unwrap_or_default();
        let changed = chosen_columns().filter(|name| old.get(*name) != new.get(*name));
        let columns = changed.map(|name| ChangedColumn {
            name: name.into(),
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
    use sluicegate::RuleSet;

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
