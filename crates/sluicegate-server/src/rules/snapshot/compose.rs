//! Builds rule sets and overrides from rows of the database.

use std::fmt::Write;

use sluicegate::RuleSet;
use sluicegate::rules::Overrides;

use crate::data::{StoredOverride, StoredRule};
use crate::time::Timestamp;

/// Builds a rule set of which a request may meet `tiers_max` rules.
///
/// # Errors
///
/// Everything that is wrong with the rows, rule by rule.
pub(super) fn rules(rows: &[StoredRule], tiers_max: usize) -> Result<RuleSet, String> {
    let mut wrong = String::new();
    let mut rules = Vec::with_capacity(rows.len());
    for row in rows {
        match row.spec.build() {
            Ok(rule) => rules.push(rule),
            Err(errors) => {
                for error in errors {
                    // Writing to a string cannot fail.
                    let _ = writeln!(wrong, "rule {}: {error}", row.spec.rule_id);
                }
            }
        }
    }
    if !wrong.is_empty() {
        return Err(wrong.trim_end().into());
    }
    RuleSet::bounded(rules, tiers_max).map_err(|errors| errors.to_string())
}

/// Builds the overrides in force at this time.
///
/// # Errors
///
/// Too many overrides, or two for one subject of a rule.
pub(super) fn overrides(rows: &[StoredOverride], now: Timestamp) -> Result<Overrides, String> {
    let in_force = rows.iter().filter(|row| row.spec.expires_at.is_none_or(|at| at > now));
    let parts = in_force.map(|row| (row.spec.rule_id, row.spec.subject.clone(), row.spec.instead));
    Overrides::new(parts).map_err(|error| error.to_string())
}

/// Time at which the next of these overrides expires; `None` if none does.
pub(super) fn next_expiry(rows: &[StoredOverride], now: Timestamp) -> Option<Timestamp> {
    next_of(rows.iter().map(|row| row.spec.expires_at), now)
}

/// First of these ends that is still to come; `None` if none is.
pub(super) fn next_of(
    ends: impl Iterator<Item = Option<Timestamp>>,
    now: Timestamp,
) -> Option<Timestamp> {
    ends.flatten().filter(|at| *at > now).min()
}
