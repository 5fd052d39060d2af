//! Header fields of anything, read by another parser.

use std::collections::HashSet;

use proptest::prelude::*;
use sfv::{BareItem, Item, List, ListEntry, Parser};
use sluicegate::Request;
use sluicegate::headers::{Headers, Policies, Policy};

use crate::http::support::{any_quota, any_rules, cases, fields, fields_of, limiter};

/// A list of strings: each with its value, and its integers by name.
fn read(field: &str) -> Vec<(String, Vec<(String, u64)>)> {
    let list: List = Parser::new(field).parse().unwrap();
    let integer = |value: &BareItem| u64::try_from(i64::from(value.as_integer().unwrap())).unwrap();
    let member = |entry: ListEntry| {
        let ListEntry::Item(Item { bare_item, params }) = entry else { panic!("{field}") };
        let name = bare_item.as_string().unwrap().as_str().to_owned();
        (name, params.iter().map(|(key, value)| (key.to_string(), integer(value))).collect())
    };
    list.into_iter().map(member).collect()
}

fn parameter(parameters: &[(String, u64)], name: &str) -> Option<u64> {
    parameters.iter().find(|(key, _)| key == name).map(|(_, value)| *value)
}

proptest! {
    #![proptest_config(cases(512))]

    /// Both fields are lists of the same strings, each once, in the order of the rules, with sensible integers.
    /// `Retry-After` is never shorter than any `t`.
    #[test]
    fn both_fields_are_what_the_verdict_says(
        rules in any_rules(),
        steps in prop::collection::vec((0..20_u64, 0..3_000_000_u64), 1..20),
    ) {
        let (limiter, clock) = limiter(rules);
        for (cost, pause_us) in steps {
            clock.advance(std::time::Duration::from_micros(pause_us));
            let verdict = limiter.check_now(&Request::new().cost(cost));
            let fields = fields(&verdict);
            let (policy, limit) = (read(&fields["ratelimit-policy"]), read(&fields["ratelimit"]));
            let tiers: Vec<_> = verdict.tiers().collect();
            prop_assert_eq!(policy.len(), tiers.len());
            prop_assert!(policy.iter().map(|(name, _)| name).eq(limit.iter().map(|(name, _)| name)));
            let names: HashSet<_> = policy.iter().map(|(name, _)| name).collect();
            prop_assert_eq!(names.len(), tiers.len());

            let retry_after = fields.get("retry-after").map(|text| text.parse::<u64>().unwrap());
            let is_never = tiers.iter().any(|tier| tier.decision.is_never());
            prop_assert_eq!(retry_after.is_some(), !verdict.is_allowed() && !is_never);
            for ((tier, (name, policy)), (_, limit)) in tiers.iter().zip(&policy).zip(&limit) {
                prop_assert!(name.starts_with(tier.rule.scope().name()));
                prop_assert_eq!(parameter(policy, "q"), Some(tier.quota.capacity()));
                prop_assert!(parameter(policy, "w").unwrap() >= 1);
                prop_assert_eq!(parameter(limit, "r"), Some(tier.decision.remaining));
                let t = parameter(limit, "t");
                prop_assert!(t.is_none_or(|t| t >= 1 && retry_after.is_none_or(|wait| wait >= t)));
                if let Some(wait) = tier.decision.retry_after().filter(|wait| !wait.is_zero()) {
                    prop_assert_eq!(t, Some(wait.as_micros().div_ceil(1_000_000) as u64));
                }
            }
            let longest = limit.iter().filter_map(|(_, limit)| parameter(limit, "t")).max();
            prop_assert!(retry_after.is_none() || retry_after == longest);
        }
    }

    /// Names that doors choose are never more than a string.
    #[test]
    fn any_name_is_one_string(name in any::<String>(), quota in any_quota()) {
        let (decision, _) = sluicegate_core::decide(&quota, None, crate::http::support::NOW, 1);
        let mut policies = Policies::default();
        policies.add(Policy::new(&name, &quota, &decision));
        let fields = fields_of(Headers::default(), &policies);
        let members = read(&fields["ratelimit"]);
        prop_assert_eq!(members.len(), 1);
        let shown = policies.name(policies.iter().next().unwrap()).to_string();
        prop_assert_eq!(&members[0].0, &shown);
        prop_assert!(shown.len() <= sluicegate::headers::NAME_BYTES_MAX);
    }
}
