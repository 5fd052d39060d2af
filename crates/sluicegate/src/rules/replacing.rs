//! Rules that replace others by name.
//!
//! Names are numbered once, when a set is made, so that checks only compare numbers. All replacing happens at once: a
//! rule that is replaced still replaces others, and the order of rules does not matter.

use hashbrown::HashMap;
use smallvec::SmallVec;

use super::index::{Matched, Matches};
use super::rule::Rule;

/// Number of a name in its set.
type Name = u32;

/// The names of a set's rules, and the names that each rule replaces.
#[derive(Clone, Debug, Default)]
pub(super) struct Replacing {
    /// By position: the name of a rule, if another rule replaces it.
    names: Box<[Option<Name>]>,
    /// By position: the names that a rule replaces.
    replaces: HashMap<u32, Box<[Name]>>,
}

impl Replacing {
    /// `None` if no rule replaces any name.
    pub(super) fn new(rules: &[Rule]) -> Self {
        let mut numbers: HashMap<&str, Name> = HashMap::new();
        for name in rules.iter().flat_map(Rule::replaces) {
            let next = Name::try_from(numbers.len()).unwrap_or(Name::MAX);
            numbers.entry(name).or_insert(next);
        }
        if numbers.is_empty() {
            return Self::default();
        }
        let number = |name: &str| numbers.get(name).copied();
        let replaces = (0..).zip(rules).filter_map(|(position, rule)| {
            let names: Box<[Name]> = rule.replaces().filter_map(number).collect();
            (!names.is_empty()).then_some((position, names))
        });
        Self {
            names: rules.iter().map(|rule| rule.name().and_then(number)).collect(),
            replaces: replaces.collect(),
        }
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.replaces.is_empty()
    }

    /// Removes every rule that another of these replaces, of the same request or of another.
    pub(super) fn drop_replaced(&self, matched: &mut [Matched]) {
        let mut replaced: SmallVec<[Name; 8]> = matched
            .iter()
            .flatten()
            .flatten()
            .filter_map(|position| self.replaces.get(position))
            .flatten()
            .copied()
            .collect();
        if replaced.is_empty() {
            return;
        }
        replaced.sort_unstable();
        for matches in matched.iter_mut().flatten() {
            matches.retain(|position| {
                let name = self.names[*position as usize];
                name.is_none_or(|name| replaced.binary_search(&name).is_err())
            });
        }
    }

    /// The first of these rules that replaces the one at this position.
    pub(super) fn by(&self, position: u32, matched: &Matches) -> Option<u32> {
        let name = (*self.names.get(position as usize)?)?;
        let replaces = |other: &u32| self.replaces.get(other).is_some_and(|n| n.contains(&name));
        matched.iter().copied().find(replaces)
    }
}

#[cfg(test)]
mod tests {
    use sluicegate_core::Quota;
    use smallvec::smallvec;

    use super::*;

    fn rule(rule_id: u64, name: &str, replaces: &[&str]) -> Rule {
        let quota = Quota::per_second(1).unwrap();
        let rule = Rule::new(rule_id, &format!("r{rule_id}"), quota).unwrap();
        rule.with_name(name).unwrap().with_replaces(replaces).unwrap()
    }

    /// Several requests are one call: a rule of one of them replaces rules of the others.
    #[test]
    fn rules_are_replaced_across_requests() {
        let rules = [
            rule(1, "a", &[]),
            rule(2, "b", &["a"]),
            rule(3, "", &["b", "nobody"]),
            rule(4, "a", &[]),
            rule(5, "c", &[]),
        ];
        let replacing = Replacing::new(&rules);
        let left = |matched: &[&[u32]]| -> Vec<Vec<u32>> {
            let mut matched: Vec<Matched> = matched.iter().map(|one| Ok((*one).into())).collect();
            replacing.drop_replaced(&mut matched);
            matched.into_iter().flatten().map(Matches::into_vec).collect()
        };
        assert_eq!(left(&[&[0], &[1, 3], &[4]]), [vec![], vec![1], vec![4]]);
        // A rule that is itself replaced in another request still replaces.
        assert_eq!(left(&[&[0, 4], &[1], &[2]]), [vec![4], vec![], vec![2]]);
        assert_eq!(left(&[&[0, 3], &[], &[4]]), [vec![0, 3], vec![], vec![4]]);
        assert_eq!(left(&[]), Vec::<Vec<u32>>::new());
        assert_eq!(replacing.by(0, &smallvec![0, 1]), Some(1));
        assert_eq!(replacing.by(4, &smallvec![0, 1, 2, 4]), None);
    }

    #[test]
    fn without_names_there_is_nothing_to_do() {
        assert!(Replacing::new(&[rule(1, "a", &[]), rule(2, "", &[])]).is_empty());
        assert!(!Replacing::new(&[rule(1, "", &["gone"])]).is_empty());
    }
}
