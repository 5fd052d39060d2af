//! Tasks that ask stores, again and again.

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

/// How the load asks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    /// Tasks of each store.
    pub(crate) tasks: usize,
    /// Between two requests of a task.
    pub(crate) pace: Duration,
    /// Costs are one to this.
    pub(crate) cost_max: u64,
}

impl Default for Shape {
    fn default() -> Self {
        Self { tasks: 4, pace: Duration::from_millis(4), cost_max: 1 }
    }
}

/// Tasks that ask until they are told to stop.
pub(crate) struct Load {
    stop: Arc<AtomicBool>,
    /// Answers by Redis itself, of each store.
    good: Arc<Vec<AtomicU64>>,
    tasks: Vec<JoinHandle<Vec<Answer>>>,
}

/// What one task needs.
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
    /// Every task of every store asks for one of `targets` at random, again and again.
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
    /// Waits until Redis itself has answered each store so many more times.
    pub(crate) fn wait_good(&self, more: u64) {
        let count = || self.good.iter().map(|good| good.load(Ordering::Relaxed));
        let before: Vec<u64> = count().collect();
        wait::until("answers by Redis itself", SOON, || {
            count().zip(&before).all(|(now, before)| now >= before + more)
        });
    }

    /// Ends it: all answers, in the order of their coming.
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
