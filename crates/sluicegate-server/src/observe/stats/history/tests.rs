use sluicegate::{Mode, Quota, Rule, RuleSet};

use super::*;

fn rule(rule_id: u64, pattern: &str) -> Rule {
    Rule::new(rule_id, pattern, Quota::per_second(1).unwrap()).unwrap()
}

fn set(version: u64, rules: &[Rule]) -> RuleSet {
    // The version of a rule set is the number of times the limiter's rules were replaced.
    let limiter =
        sluicegate::Limiter::new(sluicegate::MemoryStore::new(), RuleSet::new(Vec::new()).unwrap());
    while limiter.rules().version() < version {
        limiter.replace_rules(RuleSet::new(rules.to_vec()).unwrap());
    }
    RuleSet::clone(&limiter.rules())
}

fn counts(granted: u64, denied: u64) -> Counts {
    Counts { granted, denied, never: 0 }
}

fn decided(rules: &RuleSet, by_rule: &[(u64, Counts)]) -> Decided {
    let by_rule = by_rule.iter().map(|(rule_id, counts)| (Some(*rule_id), *counts));
    Decided { rules: rules.clone(), by_rule: by_rule.chain([(None, counts(0, 0))]).collect() }
}

/// Sum over a rule's last minutes.
fn total(report: &[RuleStats], rule_id: u64, minutes: usize) -> Counts {
    let stats = report.iter().find(|stats| stats.rule_id == Some(rule_id)).unwrap();
    let mut sum = Counts::default();
    for counts in &stats.per_minute[MINUTES - minutes..] {
        sum += *counts;
    }
    sum
}

#[test]
fn minutes_are_counted_back_from_now_and_forgotten_after_a_while() {
    let (start, rules) = (Instant::now(), set(2, &[rule(1, "global")]));
    let mut history = History::default();
    // Ten granted and one denied in every ten seconds, for twenty minutes.
    for sample in 1..=120 {
        let so_far = decided(&rules, &[(1, counts(sample * 10, sample))]);
        history.sample(start + SAMPLE_EVERY * sample as u32, so_far);
        assert!(history.samples.len() <= SAMPLES_MAX);
    }
    let now = start + SAMPLE_EVERY * 120 + Duration::from_secs(5);
    // Some more since the last sample.
    let report = history.report(now, &decided(&rules, &[(1, counts(1203, 120))]));
    assert_eq!(total(&report, 1, 1), counts(63, 6));
    assert_eq!(total(&report, 1, 5), counts(303, 30));
    assert_eq!(total(&report, 1, 15), counts(903, 90));
    let last = report.last().unwrap();
    assert_eq!((last.rule_id, last.per_minute), (None, [Counts::default(); MINUTES]));
    // An hour later nothing is left.
    let later = now + MINUTE * 60;
    let report = history.report(later, &decided(&rules, &[(1, counts(1200, 120))]));
    assert_eq!(total(&report, 1, 15), Counts::default());
}

#[test]
fn counts_of_deleted_and_changed_rules_are_not_reported() {
    let start = Instant::now();
    let before = set(2, &[rule(1, "a:{ip}"), rule(2, "b:{ip}"), rule(3, "c:{ip}")]);
    let mut history = History::default();
    let all = [(1, counts(5, 0)), (2, counts(6, 0)), (3, counts(7, 0))];
    history.sample(start, decided(&before, &all));
    // One stays, one is deleted, one becomes a different rule, whose counters begin again.
    let after = set(3, &[rule(1, "a:{ip}"), rule(3, "c:{ip}").with_mode(Mode::Shadow)]);
    let now = decided(&after, &[(1, counts(6, 0)), (3, counts(9, 0))]);
    let check = |report: &[RuleStats]| {
        assert_eq!(report.len(), 3);
        assert_eq!((total(report, 1, 15), total(report, 3, 15)), (counts(6, 0), counts(9, 0)));
    };
    check(&history.report(start + SAMPLE_EVERY, &now));
    history.sample(start + SAMPLE_EVERY, now.clone());
    check(&history.report(start + SAMPLE_EVERY, &now));
}

#[test]
fn a_counter_that_begins_again_is_not_subtracted() {
    let (start, rules) = (Instant::now(), set(2, &[rule(1, "global")]));
    let mut history = History::default();
    history.sample(start, decided(&rules, &[(1, counts(5, 5))]));
    let again = decided(&rules, &[(1, counts(2, 9))]);
    let report = history.report(start, &again);
    assert_eq!(total(&report, 1, 1), counts(7, 14));
}
