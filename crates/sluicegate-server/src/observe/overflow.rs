//! Overflow of the memory store: a log line a minute and a note for `/readyz?verbose` while charges find no room.

use std::collections::HashMap;
use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use sluicegate::{AnyStore, RoomOwner};
use tokio::time::{Instant, MissedTickBehavior, interval};
use tracing::warn;

/// Interval at which the store's counters are read.
const READ_EVERY: Duration = Duration::from_secs(1);
/// Minimum time between two log lines, and time for which `/readyz?verbose` shows the store as degraded.
const LOG_EVERY: Duration = Duration::from_secs(60);
/// Most rules that a log line or a note names.
const NAMED_MAX: usize = 8;

/// Watch over the store's room. Clones share state.
#[derive(Clone, Debug, Default)]
pub(crate) struct OverflowWatch(Arc<Mutex<Seen>>);

#[derive(Debug, Default)]
struct Seen {
    /// Counts at the last log line.
    logged: HashMap<RoomOwner, u64>,
    logged_at: Option<Instant>,
    /// Count of all charges without room, and the time at which it was last seen to grow.
    charges: u64,
    grew_at: Option<Instant>,
}

impl OverflowWatch {
    /// Reads the store's counters periodically and logs. Never returns.
    pub(crate) async fn run(self, store: Arc<AnyStore>) {
        let mut ticks = interval(READ_EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            let grown = self.read(store.local_stats().overflowed, || store.overflows());
            if let Some(grown) = grown {
                let charges: u64 = grown.iter().map(|(_, charges)| charges).sum();
                warn!(
                    charges,
                    rules = named(&grown),
                    "the store has no room for new keys of these rules: they share an overflow \
                     bucket, or are denied. Look for a flood of keys, or raise store.max_buckets"
                );
            }
        }
    }

    /// Takes note of the counters. Returns the growth since the last log line, if it is time for another.
    fn read(
        &self,
        charges: u64,
        counts: impl FnOnce() -> Vec<(RoomOwner, u64)>,
    ) -> Option<Vec<(RoomOwner, u64)>> {
        let mut seen = self.0.lock();
        let now = Instant::now();
        if charges > seen.charges {
            (seen.charges, seen.grew_at) = (charges, Some(now));
        }
        let is_due = seen.logged_at.is_none_or(|at| now - at >= LOG_EVERY);
        let is_unsaid = seen.grew_at.is_some_and(|grew| seen.logged_at.is_none_or(|at| grew > at));
        if !is_due || !is_unsaid {
            return None;
        }
        let counts = counts();
        // The count of a rule that was deleted and came back may start again.
        let since = |&(owner, now): &(RoomOwner, u64)| {
            let before = seen.logged.get(&owner).copied().unwrap_or(0);
            (owner, now.checked_sub(before).unwrap_or(now))
        };
        let grown: Vec<_> = counts.iter().map(since).filter(|(_, charges)| *charges > 0).collect();
        // The rule may have been deleted since.
        if grown.is_empty() {
            return None;
        }
        seen.logged = counts.into_iter().collect();
        seen.logged_at = Some(now);
        Some(grown)
    }

    /// Returns whether charges found no room during the last minute.
    pub(crate) fn is_recent(&self) -> bool {
        self.0.lock().grew_at.is_some_and(|at| at.elapsed() < LOG_EVERY)
    }

    /// Description for `/readyz?verbose`; `None` if every charge found room so far.
    pub(crate) fn note(&self, store: &AnyStore) -> Option<String> {
        let (charges, grew_at) = {
            let seen = self.0.lock();
            (seen.charges, seen.grew_at?)
        };
        Some(note(charges, grew_at.elapsed(), store.overflows()))
    }
}

fn note(charges: u64, ago: Duration, mut counts: Vec<(RoomOwner, u64)>) -> String {
    counts.retain(|(_, charges)| *charges > 0);
    let rules = match &*counts {
        [] => "that are no longer in force".into(),
        counts => named(counts),
    };
    let ago_secs = ago.as_secs();
    format!(
        "no room for new keys: {charges} charges since the start, the last {ago_secs} s ago, of \
         rules {rules}"
    )
}

/// Names the owners with the most charges: ids of rules, `take` for buckets without a rule, `other` for keys of rules that
/// are no longer in force.
fn named(counts: &[(RoomOwner, u64)]) -> String {
    let mut counts = counts.to_vec();
    counts.sort_by_key(|(_, charges)| std::cmp::Reverse(*charges));
    let names: Vec<_> =
        counts.iter().take(NAMED_MAX).map(|(owner, _)| owner_name(*owner)).collect();
    let mut text = names.join(", ");
    if counts.len() > NAMED_MAX {
        // Writing to a string cannot fail.
        let _ = write!(text, " and {} more", counts.len() - NAMED_MAX);
    }
    text
}

/// Name of the keys that found no room, as in the label `rule_id` of metrics.
pub(crate) fn owner_name(owner: RoomOwner) -> String {
    match owner {
        RoomOwner::Rule(id) => id.to_string(),
        RoomOwner::Take => "take".into(),
        _ => "other".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn one_line_a_minute_with_the_growth_since_the_last() {
        let watch = OverflowWatch::default();
        let take = |charges| move || vec![(RoomOwner::Take, charges), (RoomOwner::Rule(7), 0)];
        assert_eq!(watch.read(0, take(0)), None);
        assert!(!watch.is_recent());
        assert_eq!(watch.read(5, take(5)), Some(vec![(RoomOwner::Take, 5)]));
        assert!(watch.is_recent());
        for second in 0..59 {
            tokio::time::advance(Duration::from_secs(1)).await;
            assert_eq!(watch.read(6 + second, take(6 + second)), None);
        }
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(watch.read(64, take(64)), Some(vec![(RoomOwner::Take, 59)]));
        tokio::time::advance(LOG_EVERY).await;
        assert_eq!(watch.read(64, take(64)), None, "nothing new");
        assert!(!watch.is_recent());
    }

    #[tokio::test(start_paused = true)]
    async fn no_line_without_a_rule() {
        let watch = OverflowWatch::default();
        assert_eq!(watch.read(5, Vec::new), None, "the rule was deleted");
        assert!(watch.is_recent());
        let back = || vec![(RoomOwner::Rule(7), 5)];
        assert_eq!(watch.read(5, back), Some(back()), "said as soon as it is known");
        let gone = note(5, Duration::from_secs(3), vec![(RoomOwner::Take, 0)]);
        assert!(gone.ends_with("3 s ago, of rules that are no longer in force"), "{gone}");
        assert!(note(5, Duration::ZERO, back()).ends_with("of rules 7"));
    }

    #[test]
    fn those_with_the_most_are_named() {
        let counts: Vec<_> = (1..=10).map(|id| (RoomOwner::Rule(id), id)).collect();
        assert_eq!(named(&counts), "10, 9, 8, 7, 6, 5, 4, 3 and 2 more");
        assert_eq!(named(&[(RoomOwner::Take, 1)]), "take");
    }
}
