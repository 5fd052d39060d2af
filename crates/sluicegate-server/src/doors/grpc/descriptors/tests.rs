use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use sluicegate::rules::{Attribute, fold};

use super::*;

fn limits() -> RequestLimits {
    RequestLimits {
        body_bytes_max: 1 << 20,
        body_timeout: Duration::from_secs(1),
        batch_max: 1,
        attributes_max: 8,
        value_bytes_max: 64,
        take_full_max: Duration::from_hours(24 * 365),
    }
}

fn call(domain: &str, entries: &[(String, String)]) -> RateLimitRequest {
    let entry =
        |(key, value): &(String, String)| Entry { key: key.clone(), value: value.clone().into() };
    let entries = entries.iter().map(entry).collect();
    let descriptor = RateLimitDescriptor { entries, ..RateLimitDescriptor::default() };
    RateLimitRequest { domain: domain.into(), descriptors: vec![descriptor], hits_addend: 0 }
}

/// Short texts of the characters that separate the parts of a key.
fn entries() -> impl Strategy<Value = Vec<(String, String)>> {
    vec(("[1:,a]{1,3}", "[1:,a]{0,3}"), 1..4)
}

proptest! {
    #[test]
    fn own_keys_are_the_same_only_for_the_same_entries(
        (domain, other_domain) in ("[1:a]{1,3}", "[1:a]{1,3}"),
        (ones, others) in (entries(), entries()),
    ) {
        let (one, other) = (call(&domain, &ones), call(&other_domain, &others));
        let limit = OwnLimit::read(&RateLimitOverride { requests_per_unit: 1, unit: 1 }, &limits()).unwrap();
        let key = |call| read(call, &limits()).unwrap()[0].own_key(&limit);
        let is_same = domain == other_domain && ones == others;
        prop_assert_eq!(key(&one) == key(&other), is_same);
    }

    /// Rules for folded paths compare the path that was sent, folded and then truncated.
    #[test]
    fn the_complete_endpoint_is_folded(path in "/?[/.;%?#aA25eEfFl*]{1,96}") {
        let call = call("d", &[("path".into(), path.clone())]);
        let descriptors = read(&call, &limits()).unwrap();
        let request = descriptors[0].request(None);
        let mut expected = fold(&path).into_owned();
        expected.truncate(limits().value_bytes_max);
        prop_assert_eq!(request.folded_endpoint(), Some(&*expected));
        let endpoint = request.get(&Attribute::Endpoint).unwrap();
        prop_assert!(endpoint.len() <= limits().value_bytes_max);
    }

    /// Any message is either read or rejected, without a panic.
    #[test]
    fn any_message_is_read_or_rejected(
        domain in ".{0,80}",
        entries in vec((".{0,80}", ".{0,80}"), 0..10),
        (hits, own_hits, is_negative_hits) in (any::<u32>(), any::<Option<u64>>(), any::<bool>()),
        limit in any::<Option<(u32, i32)>>(),
    ) {
        let mut call = call(&domain, &entries);
        call.hits_addend = hits;
        call.descriptors[0].hits_addend = own_hits;
        call.descriptors[0].is_negative_hits = is_negative_hits;
        call.descriptors[0].limit = limit
            .map(|(requests_per_unit, unit)| RateLimitOverride { requests_per_unit, unit: unit % 9 });
        if let Ok(descriptors) = read(&call, &limits()) {
            let part = descriptors[0].part(None);
            prop_assert_eq!(part.ask().is_none(), is_negative_hits);
            prop_assert_eq!(part.refund().is_some(), is_negative_hits);
        }
    }
}

#[test]
fn every_unit_takes_the_largest_limit() {
    for unit in 1..=6 {
        let limit = RateLimitOverride { requests_per_unit: u32::MAX, unit };
        let read = OwnLimit::read(&limit, &limits()).unwrap();
        assert_eq!(read.quota.capacity(), u64::from(u32::MAX), "{:?}", read.unit);
    }
}
