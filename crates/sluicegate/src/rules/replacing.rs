//! Rules that put others out of force.
//!
//! Names are numbered once, when a set is made, so that nothing is compared but numbers while a request waits.
//! All replacing happens at once: a rule that is replaced replaces others nevertheless, and the order of
//! rules does not matter.

use hashbrown::HashMap;
use smallvec::SmallVec;

use super::index::Matches;
use super::rule::Rule;

/// Which name of its set one is.
type Name = u32;

/// Who replaces whom in a set of rules.
#[derive(Clone, Debug, Default)]
pub(super) struct Replacing {
    /// By position: the name of a rule that another replaces.
    names: Box<[Option<Name>]>,
    /// By position: whom a rule replaces, if it replaces anybody.
    replaces: HashMap<u32, Box<[Name]>>,
}

impl Replacing {
    /// Nothing at all if no rule replaces any name.
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

    /// Takes every rule out that another of these replaces, be it of the same request or of another.
    pub(super) fn drop_replaced(&self, matched: &mut [Matches]) {
        let replaced: SmallVec<[Name; 8]> = matched
            .iter()
            .flatten()
            .filter_map(|position| self.replaces.get(position))
            .flatten()
            .copied()
            .collect();
        if replaced.is_empty() {
            return;
        }
        for matches in matched {
            matches.retain(|position| {
                let name = self.names[*position as usize];
                name.is_none_or(|name| !replaced.contains(&name))
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

    /// Several requests are one call: what one of them meets replaces what another does.
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
            let mut matched: Vec<Matches> = matched.iter().map(|one| (*one).into()).collect();
            replacing.drop_replaced(&mut matched);
            matched.into_iter().map(Matches::into_vec).collect()
        };
        assert_eq!(left(&[&[0], &[1, 3], &[4]]), [vec![], vec![1], vec![4]]);
        // One that is replaced itself, in another request, replaces nevertheless.
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
