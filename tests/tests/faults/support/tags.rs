//! Checks whose replies cannot be mistaken for each other.
//!
//! Every key has its own band of levels, a thousand tokens wide, and only one task charges it. So a reply to
//! another key shows a level of another band, and a reply to an earlier check of the same key shows an
//! earlier level.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use sluicegate::{OnError, Quota};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use super::{Node, quota};

const CAPACITY: u64 = 1_000_000;
/// Width of a band: more checks than any key gets.
const BAND: u64 = 10_000;
pub(crate) const TASKS: u64 = 48;
/// Pause between two checks of a task.
const PAUSE: Duration = Duration::from_millis(2);

/// Results of the checks of one key.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    /// Checks, each of one token.
    pub(crate) asked: u64,
    /// Checks that Redis did not answer.
    pub(crate) unanswered: u64,
    /// Replies that do not belong to their checks.
    pub(crate) mismatched: u64,
    /// Longest time of a check.
    pub(crate) slowest: Duration,
}

/// Checks that run until they are stopped.
pub(crate) struct Tags {
    stop: Arc<AtomicBool>,
    tasks: Vec<JoinHandle<Tally>>,
}

fn tagged() -> Quota {
    quota(&format!("1/hour burst {CAPACITY}"))
}

fn name(task: u64) -> String {
    format!("tag {task}")
}

impl Tags {
    /// Puts every key into its band, over `direct`, and starts to check over `node`.
    pub(crate) async fn start(direct: &Node, node: &Node) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let mut tasks = Vec::new();
        for task in 0..TASKS {
            let charged =
                direct.take_or(&name(task), &tagged(), task * BAND, OnError::Deny).await.unwrap();
            assert!(charged.decisions[0].is_granted() && !charged.degraded, "{charged:?}");
            tasks.push(tokio::spawn(check(node.clone(), task, Arc::clone(&stop))));
        }
        Self { stop, tasks }
    }

    /// Stops, and adds up. Redis must have charged every check once at most, and every answered one.
    pub(crate) async fn stop(self, direct: &Node) -> Tally {
        self.stop.store(true, Ordering::Relaxed);
        let mut sum = Tally::default();
        for (number, task) in (0..).zip(self.tasks) {
            let tally = task.await.expect("no check panics");
            let looked = direct.peek(&name(number), &tagged()).await.unwrap();
            let charged = CAPACITY - looked.remaining - number * BAND;
            let answered = tally.asked - tally.unanswered;
            assert!((answered..=tally.asked).contains(&charged), "{charged} charged: {tally:?}");
            sum.asked += tally.asked;
            sum.unanswered += tally.unanswered;
            sum.mismatched += tally.mismatched;
            sum.slowest = sum.slowest.max(tally.slowest);
        }
        sum
    }
}

async fn check(node: Node, task: u64, stop: Arc<AtomicBool>) -> Tally {
    let (name, quota) = (name(task), tagged());
    let mut tally = Tally::default();
    let mut last = task * BAND;
    while !stop.load(Ordering::Relaxed) && tally.asked < BAND - 1 {
        let started = Instant::now();
        let charged = node.take_or(&name, &quota, 1, OnError::Deny).await.unwrap();
        tally.slowest = tally.slowest.max(started.elapsed());
        tally.asked += 1;
        if charged.degraded {
            tally.unanswered += 1;
        } else {
            // At least one more than the last reply showed, and at most all checks.
            let used = CAPACITY - charged.decisions[0].remaining;
            let fits = (last + 1..=task * BAND + tally.asked).contains(&used);
            tally.mismatched += u64::from(!fits);
            last = used;
        }
        sleep(PAUSE).await;
    }
    tally
}
