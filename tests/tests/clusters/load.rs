//! Tasks that charge stores in a loop.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use sluicegate::{RedisStore, Store as _};
use sluicegate_tests::seed::Seed;
use sluicegate_tests::wait;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::clusters::log::{Answer, Log};
use crate::clusters::support::{SOON, Target, Trial, micros};

/// Shape of a load.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    /// Tasks per store.
    pub(crate) tasks: usize,
    /// Pause between two requests of a task.
    pub(crate) pace: Duration,
    /// Maximum cost; the minimum is one.
    pub(crate) cost_max: u64,
}

impl Default for Shape {
    fn default() -> Self {
        Self { tasks: 4, pace: Duration::from_millis(4), cost_max: 1 }
    }
}

/// Tasks that run until they are stopped.
pub(crate) struct Load {
    stop: Arc<AtomicBool>,
    /// Replies of Redis itself, by store.
    good: Arc<Vec<AtomicU64>>,
    tasks: Vec<JoinHandle<Vec<Answer>>>,
}

/// State of one task.
struct Asker {
    store: Arc<RedisStore>,
    number: usize,
    targets: Arc<Vec<Target>>,
    shape: Shape,
    seed: Seed,
    started: Instant,
    stop: Arc<AtomicBool>,
    good: Arc<Vec<AtomicU64>>,
}

impl Trial {
    /// Starts tasks that charge random `targets` in a loop.
    pub(crate) fn load(
        &mut self,
        stores: &[Arc<RedisStore>],
        targets: Vec<Target>,
        shape: Shape,
    ) -> Load {
        let stop = Arc::new(AtomicBool::new(false));
        let good = Arc::new(stores.iter().map(|_| AtomicU64::new(0)).collect::<Vec<_>>());
        let targets = Arc::new(targets);
        let mut tasks = Vec::new();
        for (number, store) in stores.iter().enumerate() {
            for _ in 0..shape.tasks {
                let asker = Asker {
                    store: Arc::clone(store),
                    number,
                    targets: Arc::clone(&targets),
                    shape,
                    seed: Seed::new(self.seed.next()),
                    started: self.started,
                    stop: Arc::clone(&stop),
                    good: Arc::clone(&good),
                };
                tasks.push(self.runtime.spawn(asker.run()));
            }
        }
        Load { stop, good, tasks }
    }
}

impl Asker {
    async fn run(mut self) -> Vec<Answer> {
        let mut answers = Vec::new();
        let mut turns = tokio::time::interval(self.shape.pace);
        turns.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        while !self.stop.load(Ordering::Relaxed) {
            turns.tick().await;
            answers.push(self.ask().await);
        }
        answers
    }

    async fn ask(&mut self) -> Answer {
        let target = self.seed.below(self.targets.len() as u64) as usize;
        let cost = 1 + self.seed.below(self.shape.cost_max);
        let sent_us = micros(self.started.elapsed());
        let charged = self.store.charge(&self.targets[target].charges(cost)).await.unwrap();
        let at_us = micros(self.started.elapsed());
        if !charged.degraded {
            self.good[self.number].fetch_add(1, Ordering::Relaxed);
        }
        let granted = charged.decisions.iter().all(sluicegate::Decision::is_granted);
        let (store, degraded) = (self.number, charged.degraded);
        Answer { sent_us, at_us, store, target, cost, granted, degraded }
    }
}

impl Load {
    /// Waits until Redis itself has answered each store this many more times.
    pub(crate) fn wait_good(&self, more: u64) {
        let count = || self.good.iter().map(|good| good.load(Ordering::Relaxed));
        let before: Vec<u64> = count().collect();
        wait::until("answers by Redis itself", SOON, || {
            count().zip(&before).all(|(now, before)| now >= before + more)
        });
    }

    /// Stops the load and returns all answers, in the order of arrival.
    pub(crate) fn finish(self, trial: &Trial) -> Log {
        self.stop.store(true, Ordering::Relaxed);
        let mut answers = Vec::new();
        for task in self.tasks {
            answers.extend(trial.runtime.block_on(task).unwrap());
        }
        answers.sort_by_key(|answer| answer.at_us);
        Log(answers)
    }
}
