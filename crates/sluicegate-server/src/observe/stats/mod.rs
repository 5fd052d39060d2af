//! Decisions by rule over the last minutes, in this process.
//!
//! The metrics count decisions already. Their counters are sampled periodically and the differences
//! are kept for a while, so that requests pay nothing for it.

mod counts;
mod history;

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::time::{Instant, MissedTickBehavior, interval};

pub(crate) use self::counts::{Counts, Decided, LastDecided, RuleId};
use self::history::{History, SAMPLE_EVERY};
pub(crate) use self::history::{MINUTES, RuleStats};
use crate::observe::metrics::Metrics;

/// Decisions by rule and minute. Clones share state.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stats {
    history: Arc<Mutex<History>>,
}

impl Stats {
    /// Samples the counters periodically. Never returns.
    pub(crate) async fn run(self, metrics: Metrics) {
        let mut ticks = interval(SAMPLE_EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let now = ticks.tick().await;
            let decided = metrics.decided_by_rule();
            self.history.lock().sample(now, decided);
        }
    }

    /// Decisions of the last minutes up to now, in the order of the rules' ids; buckets without a
    /// rule come last.
    pub(crate) fn report(&self, metrics: &Metrics) -> Vec<RuleStats> {
        let decided = metrics.decided_by_rule();
        self.history.lock().report(Instant::now(), &decided)
    }
}
