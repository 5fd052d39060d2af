//! Replay of recent requests against one rule.

use std::collections::HashMap;

use serde::Serialize;
use sluicegate::{Clock, Limiter, ManualClock, MemoryStore, Micros, Rule, RuleSet};
use utoipa::ToSchema;

use super::entry::RecentRequest;
use crate::time::Timestamp;

/// Maximum number of subjects in a report.
pub(crate) const TOP_MAX: usize = 10;

/// Effect that a rule would have had.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct Figures {
    /// Requests it would have applied to.
    pub applies: u64,
    /// Requests it would have allowed.
    pub allowed: u64,
    /// Requests it would have denied.
    pub denied: u64,
    /// Distinct subjects of those requests: values of the first attribute in the rule's key
    /// pattern.
    pub subjects: u64,
    /// Subjects it would have denied at least once.
    pub subjects_denied: u64,
    /// Subjects it would have denied most.
    #[schema(max_items = 10)]
    pub top: Vec<TopSubject>,
    /// Time of the first denial; null if none.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub first_denied_at: Option<Timestamp>,
}

/// A subject and its denials.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct TopSubject {
    /// Value of the first attribute in the rule's key pattern, for example a user id or an address.
    pub subject: String,
    /// Requests the rule would have applied to.
    pub requests: u64,
    /// Requests it would have denied.
    pub denied: u64,
}

/// Replays requests, in their order and at their times, against one rule alone: all buckets start
/// full, and no other rule denies. `among` is the rule set the rule belongs to: it decides which
/// plans a rule for the `default` plan applies to, and where an override replaces the rule. The
/// rule is treated as active and enforced.
///
/// Time does not pass, and no bucket of the service is charged.
#[must_use]
pub(crate) fn replay(rule: &Rule, among: &RuleSet, requests: &[RecentRequest]) -> Figures {
    let clock = ManualClock::new(Micros::new(0));
    let store = MemoryStore::builder().max_buckets(requests.len()).take_buckets_max(0);
    let store = store.clock(clock.clone()).build();
    // A rule that is in a set can be in one by itself.
    let alone = RuleSet::new(vec![rule.clone()]).unwrap_or_default();
    let limiter = Limiter::new(store, alone.with_overrides(among.overrides().clone()));
    let mut figures = Figures::default();
    let mut subjects: HashMap<&str, (u64, u64)> = HashMap::new();
    for kept in requests {
        let request = kept.request();
        let mut matching = among.matching(&request);
        if !matching.any(|matching| matching.rule_id() == rule.rule_id()) {
            continue;
        }
        clock.set(kept.at());
        let is_allowed = limiter.check_now(&request).is_allowed();
        figures.applies += 1;
        if is_allowed {
            figures.allowed += 1;
        } else {
            figures.denied += 1;
            figures.first_denied_at.get_or_insert_with(|| timestamp(clock.now()));
        }
        let subject = match rule.subject_attribute() {
            Some(attribute) => request.get(attribute).unwrap_or_default(),
            None => rule.key_pattern().as_str(),
        };
        let subject = subjects.entry(subject).or_default();
        subject.0 += 1;
        subject.1 += u64::from(!is_allowed);
    }
    figures.sum_up(&subjects);
    figures
}

/// Converts the time of a request.
pub(crate) fn timestamp(at: Micros) -> Timestamp {
    Timestamp::from_micros(at.get().cast_signed())
}

impl Figures {
    fn sum_up(&mut self, subjects: &HashMap<&str, (u64, u64)>) {
        self.subjects = subjects.len() as u64;
        self.subjects_denied = subjects.values().filter(|(_, denied)| *denied > 0).count() as u64;
        let mut top: Vec<_> = subjects.iter().collect();
        top.sort_unstable_by_key(|(subject, (requests, denied))| {
            (std::cmp::Reverse((*denied, *requests)), **subject)
        });
        let shown = top.into_iter().take(TOP_MAX);
        self.top = shown
            .map(|(subject, (requests, denied))| TopSubject {
                subject: (*subject).to_owned(),
                requests: *requests,
                denied: *denied,
            })
            .collect();
    }
}
