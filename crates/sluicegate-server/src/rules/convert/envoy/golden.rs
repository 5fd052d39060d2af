//! Rules that a descriptor matches, compared with a table and with the tree the rules were made
//! from.

use std::collections::HashMap;

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use sluicegate::{Algorithm, Mode, Request, Rule, RuleSet};

use super::convert;
use crate::rules::convert::text_checks::attribute;

const NESTING: &str = include_str!("../../../../tests/cli/fixtures/envoy/nesting.yaml");
const WILDCARDS: &str = include_str!("../../../../tests/cli/fixtures/envoy/wildcards.yaml");
const MODES: &str = include_str!("../../../../tests/cli/fixtures/envoy/modes.yaml");

/// The entries of a descriptor.
type Entries<'a> = [(&'a str, &'a str)];

fn rules(text: &str) -> RuleSet {
    let converted = convert(text, Algorithm::TokenBucket).unwrap();
    assert!(converted.notes.iter().all(|note| !note.is_left_out), "{:?}", converted.notes);
    RuleSet::new(converted.rules).unwrap()
}

/// Rules that a call's descriptor matches.
fn matching<'r>(rules: &'r RuleSet, domain: &str, entries: &Entries<'_>) -> Vec<&'r Rule> {
    let keys: Vec<_> = entries.iter().map(|(key, _)| *key).collect();
    let keys = keys.join(",");
    let mut request = Request::new().attribute("domain", domain).attribute("descriptor", &keys);
    for (key, value) in entries {
        request = request.attribute(attribute(key).unwrap(), value);
    }
    rules.matching(&request).collect()
}

/// Requests per unit of the only rule that a descriptor matches; `None` if it matches none.
fn limit(rules: &RuleSet, domain: &str, entries: &Entries<'_>) -> Option<u64> {
    match matching(rules, domain, entries)[..] {
        [] => None,
        [rule] => Some(rule.quota().capacity()),
        ref several => panic!("{entries:?} matches {several:?}"),
    }
}

#[test]
fn a_descriptor_matches_the_limit_where_it_ends() {
    let rules = rules(NESTING);
    for (entries, expected) in [
        (&[("database", "users")][..], Some(500)),
        (&[("database", "default")], Some(501)),
        (&[("database", "other")], None),
        (&[("to_number", "1")], Some(100)),
        (&[("message_type", "marketing")], None),
        (&[("message_type", "marketing"), ("to_number", "1")], Some(5)),
        // Only in this order, without other entries between or after.
        (&[("to_number", "1"), ("message_type", "marketing")], None),
        (&[("message_type", "marketing"), ("to_number", "1"), ("to_number", "2")], None),
        (&[("message_type", "marketing"), ("tenant", "x"), ("to_number", "1")], None),
        (&[("tenant", "x")], Some(1000)),
        (&[("tenant", "")], Some(1000)),
        (&[("tenant", "x"), ("path", "/")], Some(60)),
        (&[("tenant", "x"), ("path", "/login")], Some(6)),
        // The exact value has no limit of its own, so the descriptor without a value does not
        // apply.
        (&[("tenant", "x"), ("path", "/export")], None),
        (&[("tenant", "acme")], None),
        (&[("tenant", "acme"), ("path", "/")], None),
        (&[("tenant", "acme"), ("path", "/login")], None),
        (&[("tenant", "acme"), ("path", "/export")], Some(7)),
        (&[("unknown", "x")], None),
    ] {
        assert_eq!(limit(&rules, "shop", entries), expected, "{entries:?}");
        assert_eq!(limit(&rules, "shops", entries), None, "{entries:?}");
    }
}

#[test]
fn the_exact_value_comes_first_then_the_first_prefix_then_no_value() {
    let rules = {
        let converted = convert(WILDCARDS, Algorithm::TokenBucket).unwrap();
        let left_out: Vec<_> = converted.notes.iter().filter(|note| note.is_left_out).collect();
        let [never] = &left_out[..] else { panic!("{left_out:?}") };
        assert_eq!((never.line, never.subject.as_str()), (9, "`path: /img/big/*`"));
        assert_eq!(
            never.reason,
            "is never reached: the descriptor in line 6 matches its values first"
        );
        RuleSet::new(converted.rules).unwrap()
    };
    for (entries, expected) in [
        (&[("path", "/")][..], Some(1)),
        (&[("path", "/img")], Some(1)),
        (&[("path", "/img/")], Some(2)),
        (&[("path", "/img/a/b")], Some(2)),
        (&[("path", "/img/big/a")], Some(2)),
        (&[("path", "/doc/old/a")], Some(4)),
        (&[("path", "/doc/a")], Some(5)),
        (&[("path", "/doc/index")], Some(6)),
        (&[("bucket", "x"), ("verb", "get")], Some(7)),
        (&[("bucket", "x"), ("verb", "getacl")], None),
        (&[("bucket", "x"), ("verb", "put")], None),
        (&[("bucket", "logs"), ("verb", "get")], Some(8)),
        (&[("bucket", "logs"), ("verb", "getacl")], Some(8)),
    ] {
        assert_eq!(limit(&rules, "files", entries), expected, "{entries:?}");
    }
    let bucket = |path| {
        matching(&rules, "files", &[("path", path)])[0].bucket_key(&Request::new().endpoint(path))
    };
    assert_ne!(bucket("/img/a"), bucket("/img/b"));
    assert_eq!(bucket("/doc/a"), bucket("/doc/b"));
}

#[test]
fn modes_and_names_are_kept() {
    let rules = rules(MODES);
    let only = |key, value| {
        let matching = matching(&rules, "api", &[(key, value)]);
        let [rule] = matching[..] else { panic!("{matching:?}") };
        let replaces: Vec<_> = rule.replaces().collect();
        (rule.mode(), rule.name(), replaces.join(", "))
    };
    assert_eq!(only("remote_address", "x"), (Mode::Enforce, Some("by address"), String::new()));
    assert_eq!(only("remote_address", "192.0.2.1"), (Mode::Unlimited, None, String::new()));
    assert_eq!(only("user", "x"), (Mode::Shadow, Some("by user"), String::new()));
    let partner = (Mode::Enforce, Some("by partner"), "by address, by user".to_owned());
    assert_eq!(only("partner", "x"), partner);
    assert_eq!(only("monitor", "x"), (Mode::Unlimited, None, "by address".to_owned()));
}

/// A descriptor in a tree.
#[derive(Clone, Debug)]
struct Branch {
    key: &'static str,
    value: Option<&'static str>,
    has_limit: bool,
    below: Vec<Self>,
}

/// Limits of a tree, by the indexes on the path to them.
type Limits = HashMap<Vec<usize>, u64>;

impl Branch {
    /// Writes branches as YAML, and numbers their limits.
    fn write(branches: &[Self], path: &[usize], text: &mut String, limits: &mut Limits) {
        let indent = "  ".repeat(path.len());
        for (position, branch) in branches.iter().enumerate() {
            let path: Vec<_> = path.iter().copied().chain([position]).collect();
            *text += &format!("{indent}- key: {}\n", branch.key);
            if let Some(value) = branch.value {
                *text += &format!("{indent}  value: '{value}'\n");
            }
            if branch.has_limit {
                let number = limits.len() as u64 + 1;
                limits.insert(path.clone(), number);
                *text += &format!(
                    "{indent}  rate_limit: {{unit: second, requests_per_unit: {number}}}\n"
                );
            }
            if !branch.below.is_empty() {
                *text += &format!("{indent}  descriptors:\n");
                Self::write(&branch.below, &path, text, limits);
            }
        }
    }

    /// Path to the node where a descriptor ends, entry by entry.
    fn find(branches: &[Self], entries: &Entries<'_>) -> Option<Vec<usize>> {
        let [(key, value), rest @ ..] = entries else { return None };
        let of_key = || branches.iter().enumerate().filter(|(_, branch)| branch.key == *key);
        let exact = of_key().find(|(_, branch)| branch.value == Some(*value));
        let starred = of_key().find(|(_, branch)| {
            let prefix = branch.value.and_then(|value| value.strip_suffix('*'));
            prefix.is_some_and(|prefix| value.starts_with(prefix))
        });
        let bare = of_key().find(|(_, branch)| branch.value.is_none());
        let (position, branch) = exact.or(starred).or(bare)?;
        let mut path = vec![position];
        if !rest.is_empty() {
            path.extend(Self::find(&branch.below, rest)?);
        }
        Some(path)
    }
}

/// Branches with keys not used further up, without duplicates.
fn branches(depth: u32) -> BoxedStrategy<Vec<Branch>> {
    let keys = [["path", "user"], ["a", "b"], ["c", "d"]][depth as usize];
    let values = vec!["x", "xy", "xyz", "/x/y", "x*", "xy*", "/*", "*"];
    let below = if depth == 2 { Just(Vec::new()).boxed() } else { branches(depth + 1) };
    let branch =
        (select(keys.to_vec()), option::weighted(0.8, select(values)), any::<bool>(), below)
            .prop_map(|(key, value, has_limit, below)| Branch { key, value, has_limit, below });
    vec(branch, 0..6)
        .prop_map(|mut branches| {
            let mut seen = std::collections::HashSet::new();
            branches.retain(|branch| seen.insert((branch.key, branch.value)));
            branches
        })
        .boxed()
}

fn entries() -> impl Strategy<Value = Vec<(&'static str, &'static str)>> {
    let value = || select(vec!["x", "xy", "xyz", "xyzz", "/x/y", "/", "z", ""]);
    let entry = |keys: [&'static str; 2]| (select(keys.to_vec()), value());
    (entry(["path", "user"]), entry(["a", "b"]), entry(["c", "d"]), 1..=3usize)
        .prop_map(|(first, second, third, depth)| vec![first, second, third][..depth].to_vec())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// A descriptor matches the rule of the limit that it ends at, and no other, in any tree.
    #[test]
    fn rules_are_what_the_tree_says(tree in branches(0), queries in vec(entries(), 1..24)) {
        let (mut text, mut limits) = ("domain: d\ndescriptors:\n".to_owned(), Limits::new());
        Branch::write(&tree, &[], &mut text, &mut limits);
        if tree.is_empty() {
            text += "  []\n";
        }
        let rules = RuleSet::new(convert(&text, Algorithm::FixedWindow).unwrap().rules).unwrap();
        for entries in queries {
            let path = Branch::find(&tree, &entries);
            let expected = path.and_then(|path| limits.get(&path).copied());
            prop_assert_eq!(limit(&rules, "d", &entries), expected, "{:?}\n{}", entries, text);
        }
    }
}
