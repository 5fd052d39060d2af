//! Load on several nodes, and the result of every check.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use sluicegate::{OnError, Quota};
use sluicegate_tests::oracle;
use sluicegate_tests::seed::Seed;
use tokio::task::JoinHandle;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep};

use super::windows::{Admission, excess};
use super::{Node, exact, noise, now_us};

/// Shape of a load.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(crate) quota: Quota,
    pub(crate) keys: u64,
    /// Checks of each node per second.
    pub(crate) per_second: u64,
    pub(crate) on_error: OnError,
}

/// One check.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shot {
    pub(crate) node: usize,
    pub(crate) key: u64,
    pub(crate) sent_us: u64,
    pub(crate) done_us: u64,
    pub(crate) took: Duration,
    pub(crate) granted: bool,
    pub(crate) degraded: bool,
}

/// Load that runs until it is stopped.
pub(crate) struct Load {
    stop: Arc<AtomicBool>,
    tasks: Vec<JoinHandle<Vec<Shot>>>,
    started: Instant,
}

/// Maximum of concurrent checks of a node.
const TASKS: u64 = 16;

impl Load {
    pub(crate) fn start(nodes: &[Node], plan: Plan, seed: &mut Seed) -> Self {
        let (stop, started) = (Arc::new(AtomicBool::new(false)), Instant::now());
        noise::listen();
        let mut tasks = Vec::new();
        for (number, node) in nodes.iter().enumerate() {
            for _ in 0..TASKS {
                let seed = Seed::new(seed.next());
                tasks.push(tokio::spawn(fire(number, node.clone(), plan, seed, Arc::clone(&stop))));
            }
        }
        Self { stop, tasks, started }
    }

    /// Runs the load for this time.
    pub(crate) async fn run(nodes: &[Node], plan: Plan, seed: &mut Seed, time: Duration) -> Shots {
        let load = Self::start(nodes, plan, seed);
        sleep(time).await;
        load.stop().await
    }

    pub(crate) async fn stop(self) -> Shots {
        self.stop.store(true, Ordering::Relaxed);
        let mut all = Vec::new();
        for task in self.tasks {
            all.extend(task.await.expect("no check panics"));
        }
        all.sort_by_key(|shot| shot.sent_us);
        Shots { all, noise: noise::since(self.started) }
    }
}

async fn fire(
    number: usize,
    node: Node,
    plan: Plan,
    mut seed: Seed,
    stop: Arc<AtomicBool>,
) -> Vec<Shot> {
    let every = Duration::from_secs(TASKS) / u32::try_from(plan.per_second).unwrap();
    sleep(every.mul_f64(seed.below(1000) as f64 / 1000.0)).await;
    let mut ticks = interval(every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut shots = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        ticks.tick().await;
        shots.push(shoot(number, &node, plan, seed.below(plan.keys)).await);
    }
    shots
}

async fn shoot(number: usize, node: &Node, plan: Plan, key: u64) -> Shot {
    let name = format!("key {key}");
    let (sent_us, started) = (now_us(), Instant::now());
    let charged = node.take_or(&name, &plan.quota, 1, plan.on_error).await.expect("an answer");
    Shot {
        node: number,
        key,
        sent_us,
        done_us: now_us(),
        took: started.elapsed(),
        granted: charged.decisions[0].is_granted(),
        degraded: charged.degraded,
    }
}

/// Every check of a load, sorted by the time of sending.
#[derive(Debug)]
pub(crate) struct Shots {
    pub(crate) all: Vec<Shot>,
    /// The longest scheduling delay of this machine meanwhile.
    pub(crate) noise: Duration,
}

impl Shots {
    pub(crate) fn granted(&self) -> usize {
        self.all.iter().filter(|shot| shot.granted).count()
    }

    pub(crate) fn degraded(&self) -> usize {
        self.all.iter().filter(|shot| shot.degraded).count()
    }

    /// The admissions of one key by the chosen checks.
    pub(crate) fn admissions(&self, key: u64, chosen: impl Fn(&Shot) -> bool) -> Vec<Admission> {
        let own = self.all.iter().filter(|shot| shot.key == key && shot.granted && chosen(shot));
        own.map(|&Shot { sent_us, done_us, .. }| Admission { sent_us, done_us, cost: 1 }).collect()
    }

    /// The largest excess of any key over B + R·t.
    pub(crate) fn excess(&self, plan: &Plan) -> i128 {
        self.excess_of(plan, exact(&plan.quota), |_| true)
    }

    /// The same against another quota, of some checks only.
    pub(crate) fn excess_of(
        &self,
        plan: &Plan,
        quota: oracle::Quota,
        chosen: impl Fn(&Shot) -> bool + Copy,
    ) -> i128 {
        let of_key = |key| excess(quota, &self.admissions(key, chosen));
        (0..plan.keys).map(of_key).max().unwrap_or(i128::MIN)
    }

    /// Latency percentile (in thousandths) of the checks that were sent in `span`.
    pub(crate) fn took(&self, span: Range<u64>, of_thousand: usize) -> Duration {
        let mut took: Vec<Duration> = self
            .all
            .iter()
            .filter(|shot| span.contains(&shot.sent_us))
            .map(|shot| shot.took)
            .collect();
        took.sort_unstable();
        let place = (took.len() * of_thousand).div_ceil(1000).saturating_sub(1);
        took.get(place).copied().unwrap_or_default()
    }

    pub(crate) fn slowest(&self) -> Duration {
        self.took(0..u64::MAX, 1000)
    }

    /// Time from `since` until the first answer that is degraded, or is not, to a check sent after it; of the
    /// slowest node.
    pub(crate) fn until_first(&self, since: u64, degraded: bool) -> Duration {
        let nodes = self.all.iter().map(|shot| shot.node).max().map_or(0, |last| last + 1);
        let first = |node: usize| {
            let answers = self.all.iter().filter(|shot| {
                shot.node == node && shot.degraded == degraded && shot.sent_us >= since
            });
            answers.map(|shot| shot.done_us - since).min().expect("such an answer")
        };
        Duration::from_micros((0..nodes).map(first).max().unwrap_or(0))
    }

    /// The longest time that any node's answers were degraded, from the first to the last.
    pub(crate) fn outage(&self) -> Duration {
        let nodes = self.all.iter().map(|shot| shot.node).max().map_or(0, |last| last + 1);
        let of_node = |node: usize| {
            let own = || self.all.iter().filter(|shot| shot.node == node && shot.degraded);
            let (first, last) =
                (own().map(|shot| shot.sent_us).min(), own().map(|s| s.done_us).max());
            last.unwrap_or(0) - first.unwrap_or(0)
        };
        Duration::from_micros((0..nodes).map(of_node).max().unwrap_or(0))
    }
}

/// Local grants of all nodes together in an outage: N·(B' + R'·D), with a share of 1/N each.
pub(crate) fn local_bound(quota: &Quota, nodes: u8, outage: Duration) -> i128 {
    let share = share(quota, nodes);
    let refill = u128::from(share.tokens) * outage.as_micros();
    let each = u128::from(share.capacity) + refill.div_ceil(u128::from(share.period_us));
    i128::from(nodes) * i128::try_from(each).unwrap()
}

/// One node's share of a quota: 1/N of it in whole percents, at least a token.
pub(crate) fn share(quota: &Quota, nodes: u8) -> oracle::Quota {
    let (whole, percent) = (exact(quota), u64::from(100 / nodes));
    oracle::Quota {
        capacity: (whole.capacity * percent / 100).max(1),
        tokens: whole.tokens * percent,
        period_us: whole.period_us * 100,
    }
}
