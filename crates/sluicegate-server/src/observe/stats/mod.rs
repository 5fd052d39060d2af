//! What the rules decided in the last minutes, in this process.
//!
//! Decisions are counted by the metrics already. Here their counters are looked at every now and then, and what
//! was added is kept for a while: requests pay nothing for it.

mod counts;
mod history;

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::time::{Instant, MissedTickBehavior, interval};

pub(crate) use self::counts::{Counts, Decided, LastDecided, RuleId};
use self::history::{History, SAMPLE_EVERY};
pub(crate) use self::history::{MINUTES, RuleStats};
use crate::observe::metrics::Metrics;

/// Decisions by rule and minute. Clones are the same.
#[derive(Clone, Debug, Default)]
pub struct Stats {
    history: Arc<Mutex<History>>,
}

impl Stats {
    /// Looks at the counters every now and then. Ends never.
    pub async fn run(self, metrics: Metrics) {
        let mut ticks = interval(SAMPLE_EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let now = ticks.tick().await;
            let decided = metrics.decided_by_rule();
            self.history.lock().sample(now, decided);
        }
    }

    /// What was decided in the last minutes, up to now, in the order of the rules' ids; buckets without a rule
    /// come last.
    pub(crate) fn report(&self, metrics: &Metrics) -> Vec<RuleStats> {
        let decided = metrics.decided_by_rule();
        self.history.lock().report(Instant::now(), &decided)
    }
}
