//! The whole path through the library, compared with the same script called once for every check.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use redis::AsyncConnectionConfig;
use redis::aio::MultiplexedConnection;
use serde::Serialize;
use sluicegate::{Limiter, OnError, Quota, RedisStore, RuleSet, Space, Store};
use tokio::runtime::Runtime;

use crate::keys::SUBJECTS;
use crate::quiet::quiet;
use crate::stats::{median, quantile};
use crate::units::{CHARGE, NAIVE};

pub(crate) const TASKS: [usize; 4] = [1, 8, 64, 512];

/// Length of a round, and of the warm-up before it.
const ROUND: Duration = Duration::from_millis(100);
const WARM_UP: Duration = Duration::from_millis(15);

/// Time budget so long that every answer comes from Redis, even on a busy machine.
const BUDGET: Duration = Duration::from_secs(5);

/// Number of lone checks of a contender in a turn.
const LONE_ROUND: usize = 25;

/// Result of a way with a number of concurrent tasks.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Concurrent {
    pub(crate) way: Way,
    pub(crate) tasks: usize,
    /// Summary of the quiet rounds.
    pub(crate) checks_per_sec: f64,
    /// The quartiles of all rounds.
    pub(crate) quartiles: [f64; 2],
    /// Average number of checks in a script call.
    pub(crate) batch: f64,
}

/// Result of one check at a time.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Lone {
    pub(crate) way: Way,
    pub(crate) p50_us: f64,
    pub(crate) p99_us: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Way {
    /// `Limiter::take` over one store.
    Library,
    /// Our script, a call for every check, each task on a separate connection.
    OwnConnections,
    /// Our script, a call for every check, all tasks on one connection.
    OneConnection,
    /// The naive script, a call for every check, all tasks on one connection.
    Naive,
}

impl Way {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Library => "library, batched",
            Self::OwnConnections => "one EVALSHA a check, own connections",
            Self::OneConnection => "one EVALSHA a check, one connection",
            Self::Naive => "naive EVALSHA, one connection",
        }
    }
}

/// Limiter, connections and commands of the measurement.
pub(crate) struct Bench {
    runtime: Runtime,
    limiter: Limiter<RedisStore>,
    connections: Vec<MultiplexedConnection>,
    commands: Arc<Commands>,
    quota: Quota,
}

/// Commands of the contenders other than the library.
struct Commands {
    naive: String,
    charge: String,
    keys: Vec<String>,
    form: [String; 3],
    rate: String,
}

impl Bench {
    pub(crate) fn new(url: &str) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .expect("threads can be started");
        let _inside = runtime.enter();
        let store = RedisStore::builder(url).expect("the URL is one").budget(BUDGET);
        let store = store.build().expect("the settings are right");
        let keys = (0..SUBJECTS)
            .map(|subject| {
                let subject = subject.to_string();
                store.key(Space::Take, &[subject.as_bytes()]).as_str().to_owned()
            })
            .collect();
        let limiter = Limiter::new(store, RuleSet::new(Vec::new()).expect("no rules are fine"));
        let client = redis::Client::open(url).expect("the URL is one");
        let patient = AsyncConnectionConfig::new().set_response_timeout(Some(BUDGET));
        let most = TASKS.into_iter().max().unwrap_or(1);
        let connections: Vec<_> = runtime.block_on(async {
            let mut all = Vec::new();
            for _ in 0..most {
                let connection =
                    client.get_multiplexed_async_connection_with_config(&patient).await;
                all.push(connection.expect("it connects"));
            }
            all
        });
        let mut first = connections[0].clone();
        let mut load = |source: &str| -> String {
            let mut command = redis::cmd("SCRIPT");
            command.arg("LOAD").arg(source);
            runtime.block_on(command.query_async(&mut first)).expect("it loads")
        };
        // 1,000 a day, as for the other contenders.
        let quota = Quota::per_day(1000).expect("a quota");
        let token_us = 86_400_000_u64;
        let form = [format!(":{token_us}"), token_us.to_string(), (1000 * token_us).to_string()];
        let rate = format!("{:.17}", 1e6 / token_us as f64);
        let (naive, charge) = (load(NAIVE), load(CHARGE));
        let commands = Arc::new(Commands { naive, charge, keys, form, rate });
        Self { runtime, limiter, connections, commands, quota }
    }

    /// Measures all ways with all numbers of tasks, alternately.
    pub(crate) fn concurrent(&self, turns: usize) -> Vec<Concurrent> {
        let ways = [Way::Library, Way::OwnConnections, Way::OneConnection];
        let entrants: Vec<_> =
            TASKS.into_iter().flat_map(|tasks| ways.map(|way| (way, tasks))).collect();
        let mut rounds = vec![Vec::new(); entrants.len()];
        let mut batches = vec![Vec::new(); entrants.len()];
        for _ in 0..turns {
            for (index, (way, tasks)) in entrants.iter().enumerate() {
                let before = self.limiter.store().health().stats;
                rounds[index].push(self.runtime.block_on(self.round(*way, *tasks)));
                let after = self.limiter.store().health().stats;
                let calls = (after.calls - before.calls) as f64;
                let sent = (after.batches - before.batches) as f64;
                batches[index].push(if sent > 0.0 { calls / sent } else { 1.0 });
            }
        }
        let all = entrants.into_iter().zip(rounds).zip(batches);
        all.map(|(((way, tasks), turns), batches)| Concurrent {
            way,
            tasks,
            checks_per_sec: quiet(turns.iter().copied()),
            quartiles: [0.25, 0.75].map(|share| quantile(turns.iter().copied(), share)),
            batch: median(batches.into_iter()),
        })
        .collect()
    }

    /// Runs a round, and returns checks per second.
    async fn round(&self, way: Way, tasks: usize) -> f64 {
        let (done, ended) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
        let running: Vec<_> = (0..tasks)
            .map(|task| {
                let mut checker = self.checker(way, task);
                let (done, ended) = (Arc::clone(&done), Arc::clone(&ended));
                tokio::spawn(async move {
                    while !ended.load(Ordering::Relaxed) {
                        checker.check().await;
                        done.fetch_add(1, Ordering::Relaxed);
                    }
                })
            })
            .collect();
        tokio::time::sleep(WARM_UP).await;
        let (before, started) = (done.load(Ordering::Relaxed), Instant::now());
        tokio::time::sleep(ROUND).await;
        let (after, elapsed) = (done.load(Ordering::Relaxed), started.elapsed());
        ended.store(true, Ordering::Relaxed);
        for task in running {
            task.await.expect("no check panics");
        }
        (after - before) as f64 / elapsed.as_secs_f64()
    }

    /// Measures lone checks, each way alternately.
    pub(crate) fn lone(&self, turns: usize) -> Vec<Lone> {
        let ways = [Way::Library, Way::OneConnection, Way::Naive];
        let mut checkers = ways.map(|way| (self.checker(way, 0), Vec::new()));
        // On a worker thread, as in a service.
        let running = self.runtime.spawn(async move {
            for _ in 0..turns {
                for (checker, times) in &mut checkers {
                    checker.check().await;
                    for _ in 0..LONE_ROUND {
                        let started = Instant::now();
                        checker.check().await;
                        times.push(started.elapsed().as_secs_f64() * 1e6);
                    }
                }
            }
            checkers
        });
        let checkers = self.runtime.block_on(running).expect("no check panics");
        let all = checkers.into_iter().map(|(checker, times)| (checker.way, times));
        all.map(|(way, times)| {
            let [p50_us, p99_us] = [0.5, 0.99].map(|share| quantile(times.iter().copied(), share));
            Lone { way, p50_us, p99_us }
        })
        .collect()
    }

    fn checker(&self, way: Way, task: usize) -> Checker {
        let place = if way == Way::OwnConnections { task } else { 0 };
        Checker {
            way,
            limiter: self.limiter.clone(),
            connection: self.connections[place].clone(),
            commands: Arc::clone(&self.commands),
            quota: self.quota,
            random: fastrand::Rng::new(),
        }
    }
}

/// State of one task.
struct Checker {
    way: Way,
    limiter: Limiter<RedisStore>,
    connection: MultiplexedConnection,
    commands: Arc<Commands>,
    quota: Quota,
    random: fastrand::Rng,
}

impl Checker {
    async fn check(&mut self) {
        let subject = self.random.usize(..SUBJECTS);
        let granted = match self.way {
            Way::Library => self.take(subject).await,
            Way::OwnConnections | Way::OneConnection => self.charge(subject).await,
            Way::Naive => self.naive(subject).await,
        };
        assert!(granted, "{:?}: nothing is denied here", self.way);
    }

    async fn take(&self, subject: usize) -> bool {
        let key = subject.to_string();
        let charged = self.limiter.take_or(&key, &self.quota, 1, OnError::Deny).await;
        charged.is_ok_and(|charged| !charged.degraded && charged.decisions[0].is_granted())
    }

    async fn charge(&mut self, subject: usize) -> bool {
        let Commands { charge, keys, form, .. } = &*self.commands;
        let mut command = redis::cmd("EVALSHA");
        command.arg(charge).arg(1).arg(&keys[subject]).arg("b").arg(form);
        let answer: Vec<u64> = command.query_async(&mut self.connection).await.expect("an answer");
        answer[1] == 1
    }

    async fn naive(&mut self, subject: usize) -> bool {
        let Commands { naive, rate, .. } = &*self.commands;
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let mut command = redis::cmd("EVALSHA");
        command.arg(naive).arg(1).arg(format!("rl:user:{subject}:lone")).arg(rate).arg(1000);
        command.arg(format!("{:.6}", now.unwrap_or_default().as_secs_f64())).arg(1);
        let answer: Vec<i64> = command.query_async(&mut self.connection).await.expect("an answer");
        answer[0] == 1
    }
}
