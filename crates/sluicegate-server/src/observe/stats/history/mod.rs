//! Counter differences by time.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use tokio::time::Instant;

use super::counts::{Counts, Decided, LastDecided, RuleId};

/// Length of the history in minutes.
pub(crate) const MINUTES: usize = 15;
/// Sampling interval, which is also the precision of a minute's edges.
pub(super) const SAMPLE_EVERY: Duration = Duration::from_secs(10);

const MINUTE: Duration = Duration::from_secs(60);

/// Maximum number of samples. With the maximum number of rules, each deciding in each sample, they
/// take 30 MB; usually next to nothing.
const SAMPLES_MAX: usize = (MINUTES as u64 * MINUTE.as_secs() / SAMPLE_EVERY.as_secs()) as usize;

/// Decisions of a rule over the last minutes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RuleStats {
    /// The rule; `None` for buckets without a rule.
    pub(crate) rule_id: RuleId,
    /// One entry per minute, counted back from now, oldest first.
    pub(crate) per_minute: [Counts; MINUTES],
}

/// Counter differences of the last minutes.
#[derive(Debug, Default)]
pub(super) struct History {
    last: LastDecided,
    /// Oldest first.
    samples: VecDeque<Sample>,
}

#[derive(Debug)]
struct Sample {
    at: Instant,
    /// Decisions added since the previous sample; rules that decided nothing are left out.
    added: Vec<(RuleId, Counts)>,
}

impl History {
    /// Adds a sample of the counters.
    pub(super) fn sample(&mut self, now: Instant, decided: Decided) {
        let gone = self.last.gone(&decided.rules);
        for sample in &mut self.samples {
            sample.added.retain(|(rule_id, _)| !gone.contains(rule_id));
        }
        let added = self.last.added(&decided, &gone);
        self.samples.retain(|sample| now - sample.at < MINUTE * MINUTES as u32);
        if self.samples.len() == SAMPLES_MAX {
            self.samples.pop_front();
        }
        self.samples.push_back(Sample { at: now, added });
        self.last.replace(decided);
    }

    /// Decisions up to now, by rule.
    pub(super) fn report(&self, now: Instant, decided: &Decided) -> Vec<RuleStats> {
        let gone = self.last.gone(&decided.rules);
        let mut by_rule: HashMap<RuleId, [Counts; MINUTES]> = HashMap::new();
        let is_kept = |(rule_id, _): &&(RuleId, Counts)| !gone.contains(rule_id);
        let kept = self.samples.iter().flat_map(|Sample { at, added }| {
            added.iter().filter(is_kept).map(|(rule_id, counts)| (*at, *rule_id, *counts))
        });
        let since = self.last.added(decided, &gone);
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
}

#[cfg(test)]
mod tests;
