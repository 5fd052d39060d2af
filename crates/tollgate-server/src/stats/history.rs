//! What was added to counters, by time.

use std::collections::{HashMap, HashSet, VecDeque};
use std::ops::AddAssign;
use std::time::Duration;

use tokio::time::Instant;
use tollgate::{Rule, RuleSet};

/// How far back it goes.
pub(crate) const MINUTES: usize = 15;
/// How often counters are looked at: how exact the edges of minutes are.
pub(super) const SAMPLE_EVERY: Duration = Duration::from_secs(10);

const MINUTE: Duration = Duration::from_secs(60);

/// The most samples that are kept. With as many rules as there may be, and decisions of each in each sample, they
/// take 30 MB; usually, next to nothing.
const SAMPLES_MAX: usize = (MINUTES as u64 * MINUTE.as_secs() / SAMPLE_EVERY.as_secs()) as usize;

/// A rule, or none for buckets without one.
type RuleId = Option<u64>;

/// The counters of the rules in force.
#[derive(Clone, Debug, Default)]
pub(crate) struct Decided {
    /// Those rules.
    pub(crate) rules: RuleSet,
    /// What each has decided since it is counted.
    pub(crate) by_rule: Vec<(RuleId, Counts)>,
}

/// How many decisions there were of each outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) granted: u64,
    pub(crate) denied: u64,
    pub(crate) never: u64,
}

/// What a rule decided in the last minutes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RuleStats {
    /// Which.
    pub(crate) rule_id: RuleId,
    /// By minutes, counted back from now; the oldest first.
    pub(crate) per_minute: [Counts; MINUTES],
}

/// What was added to counters in the last minutes.
#[derive(Debug, Default)]
pub(super) struct History {
    /// The counters when they were last looked at.
    last: HashMap<RuleId, Counts>,
    /// The rules that they were of.
    rules: RuleSet,
    /// Oldest first.
    samples: VecDeque<Sample>,
}

#[derive(Debug)]
struct Sample {
    at: Instant,
    /// What was added since the sample before; rules that decided nothing are left out.
    added: Vec<(RuleId, Counts)>,
}

impl History {
    /// Takes note of what the counters say now.
    pub(super) fn sample(&mut self, now: Instant, decided: Decided) {
        let gone = self.gone(&decided.rules);
        for sample in &mut self.samples {
            sample.added.retain(|(rule_id, _)| !gone.contains(rule_id));
        }
        let added = self.added(&decided, &gone);
        self.samples.retain(|sample| now - sample.at < MINUTE * MINUTES as u32);
        if self.samples.len() == SAMPLES_MAX {
            self.samples.pop_front();
        }
        self.samples.push_back(Sample { at: now, added });
        self.last = decided.by_rule.into_iter().collect();
        self.rules = decided.rules;
    }

    /// What was decided up to now, by rule.
    pub(super) fn report(&self, now: Instant, decided: &Decided) -> Vec<RuleStats> {
        let gone = self.gone(&decided.rules);
        let mut by_rule: HashMap<RuleId, [Counts; MINUTES]> = HashMap::new();
        let is_kept = |(rule_id, _): &&(RuleId, Counts)| !gone.contains(rule_id);
        let kept = self.samples.iter().flat_map(|Sample { at, added }| {
            added.iter().filter(is_kept).map(|(rule_id, counts)| (*at, *rule_id, *counts))
        });
        let since = self.added(decided, &gone);
        let since = since.into_iter().map(|(rule_id, counts)| (now, rule_id, counts));
        for (at, rule_id, counts) in kept.chain(since) {
            let minutes_ago = ((now - at).as_secs() / MINUTE.as_secs()) as usize;
            if let Some(minute) = (MINUTES - 1).checked_sub(minutes_ago) {
                by_rule.entry(rule_id).or_default()[minute] += counts;
            }
        }
        let ids = decided.rules.rules().iter().map(|rule| Some(rule.rule_id())).chain([None]);
        ids.map(|rule_id| {
            let per_minute = by_rule.remove(&rule_id).unwrap_or_default();
            RuleStats { rule_id, per_minute }
        })
        .collect()
    }

    /// What was added since the counters were last looked at. Those of rules that are others than they were have
    /// begun again.
    fn added(&self, decided: &Decided, gone: &HashSet<RuleId>) -> Vec<(RuleId, Counts)> {
        let added = decided.by_rule.iter().filter_map(|(rule_id, counts)| {
            let last = self.last.get(rule_id).filter(|_| !gone.contains(rule_id));
            let added = counts.since(last.copied().unwrap_or_default());
            (added != Counts::default()).then_some((*rule_id, added))
        });
        added.collect()
    }

    /// The rules that are not among these, or are others than they were.
    fn gone(&self, rules: &RuleSet) -> HashSet<RuleId> {
        if self.rules.version() == rules.version() {
            return HashSet::new();
        }
        let is_gone = |rule: &&Rule| {
            let now = rules.get(rule.rule_id());
            now.is_none_or(|now| identity(now) != identity(rule))
        };
        self.rules.rules().iter().filter(is_gone).map(|rule| Some(rule.rule_id())).collect()
    }
}

/// What makes another rule of a rule, whatever its id: what its counters are labelled with.
fn identity(rule: &Rule) -> (&str, Option<&str>, &str) {
    (rule.key_pattern().as_str(), rule.plan(), rule.mode().name())
}

impl Counts {
    /// What was added since. Counters that say less than before have begun again.
    fn since(self, last: Self) -> Self {
        let added = || {
            Some(Self {
                granted: self.granted.checked_sub(last.granted)?,
                denied: self.denied.checked_sub(last.denied)?,
                never: self.never.checked_sub(last.never)?,
            })
        };
        added().unwrap_or(self)
    }
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.granted += other.granted;
        self.denied += other.denied;
        self.never += other.never;
    }
}

#[cfg(test)]
mod tests;
