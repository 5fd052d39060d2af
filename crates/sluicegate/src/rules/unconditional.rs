//! Rules that certainly apply to the same requests, counted before a set is accepted.

use hashbrown::HashMap;
use smallvec::SmallVec;

use super::attribute::Attribute;
use super::rule::Rule;
use super::set::RuleSetError;

/// Placeholders of a key pattern, sorted by name.
type Placeholders<'a> = SmallVec<[&'a str; 8]>;

/// The error of a set in which more than `tiers_max` rules apply to every request of one plan that has their
/// attributes. They are active, have no conditions, and no rule replaces them.
pub(super) fn too_many(rules: &[Rule], tiers_max: usize) -> Option<RuleSetError> {
    let replaced: hashbrown::HashSet<&str> = rules.iter().flat_map(Rule::replaces).collect();
    let is_unconditional = |rule: &Rule| {
        rule.is_active()
            && rule.conditions().is_empty()
            && rule.key_pattern().endpoint().is_none()
            && rule.name().is_none_or(|name| !replaced.contains(name))
    };
    let of_set = (0..).zip(rules).filter(|(_, rule)| is_unconditional(rule));
    let unconditional: Vec<(usize, &Rule)> = of_set.collect();
    if unconditional.len() <= tiers_max {
        return None;
    }
    let counts = Counts::new(unconditional.iter().map(|(_, rule)| *rule));
    let met = unconditional.iter().map(|&(position, rule)| (position, rule, counts.met_with(rule)));
    let (position, rule, met) = { met }.find(|(_, _, met)| *met > tiers_max)?;
    Some(RuleSetError::TooManyUnconditional {
        rules: met,
        plan: rule.plan().map(Into::into),
        tiers_max,
        position,
    })
}

/// Numbers of rules by plan and placeholders.
struct Counts<'a>(HashMap<(Option<&'a str>, Placeholders<'a>), usize>);

impl<'a> Counts<'a> {
    fn new(rules: impl Iterator<Item = &'a Rule>) -> Self {
        let mut counts = HashMap::new();
        for rule in rules {
            *counts.entry((rule.plan(), placeholders(rule))).or_default() += 1;
        }
        Self(counts)
    }

    /// Number of the rules that a request meets if it has the plan and the attributes of this rule and no others.
    fn met_with(&self, rule: &'a Rule) -> usize {
        let all = placeholders(rule);
        let count = |plan, names| self.0.get(&(plan, names)).copied().unwrap_or(0);
        let of_subset = |bits| match (subset_of(&all, bits), rule.plan()) {
            (names, None) => count(None, names),
            (names, plan) => count(None, names.clone()) + count(plan, names),
        };
        (0..1_u32 << all.len()).map(of_subset).sum()
    }
}

fn placeholders(rule: &Rule) -> Placeholders<'_> {
    let mut names: Placeholders<'_> =
        rule.key_pattern().attributes().iter().map(Attribute::name).collect();
    names.sort_unstable();
    names
}

/// The names whose bits are set.
fn subset_of<'a>(names: &Placeholders<'a>, bits: u32) -> Placeholders<'a> {
    let is_in = |position: &u32| bits >> position & 1 == 1;
    (0..).zip(names).filter(|(position, _)| is_in(position)).map(|(_, name)| *name).collect()
}

#[cfg(test)]
mod tests {
    use sluicegate_core::Quota;

    use super::*;

    fn rule(rule_id: u64, pattern: &str) -> Rule {
        Rule::new(rule_id, pattern, Quota::per_second(1).unwrap()).unwrap()
    }

    /// The number of rules in the error.
    fn too_many_of(rules: &[Rule]) -> Option<usize> {
        match too_many(rules, 3)? {
            RuleSetError::TooManyUnconditional { rules, .. } => Some(rules),
            other => panic!("{other}"),
        }
    }

    fn rules(count: u64, of: impl Fn(u64) -> Rule) -> Vec<Rule> {
        (1..=count).map(of).collect()
    }

    #[test]
    fn rules_for_the_same_requests_are_counted() {
        let global = |n| rule(n, &format!("g{n}"));
        assert_eq!(too_many_of(&rules(3, global)), None);
        assert_eq!(too_many_of(&rules(4, global)), Some(4));
        // Rules for all users, and those for all requests too.
        let mixed = |n| if n == 1 { global(n) } else { rule(n, &format!("u{n}:{{user_id}}")) };
        assert_eq!(too_many_of(&rules(4, mixed)), Some(4));
        let planned = |n| if n < 3 { global(n) } else { global(n).with_plan("pro").unwrap() };
        assert_eq!(too_many_of(&rules(4, planned)), Some(4));
    }

    #[test]
    fn rules_for_other_requests_are_not() {
        let plan = |n: u64| rule(n, "g").with_plan(&format!("p{n}")).unwrap();
        let attribute = |n: u64| rule(n, &format!("{{a{n}}}"));
        let endpoint = |n: u64| rule(n, &format!("endpoint:/{n}"));
        let condition = |n: u64| rule(n, &format!("g{n}")).with_condition("method", "GET").unwrap();
        let inactive = |n: u64| rule(n, &format!("g{n}")).with_is_active(false);
        let replaced = |n: u64| match n {
            1 => rule(n, "g").with_replaces(&["old"]).unwrap(),
            n => rule(n, &format!("g{n}")).with_name("old").unwrap(),
        };
        let all: [&dyn Fn(u64) -> Rule; 6] =
            [&plan, &attribute, &endpoint, &condition, &inactive, &replaced];
        for of in all {
            assert_eq!(too_many_of(&rules(9, of)), None, "{:?}", of(1));
        }
    }
}
