//! Shared helpers: a runtime, a clock, a seed, stores and their targets.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use sluicegate::{
    Charge, OnError, Quota, RedisKey, RedisStore, RedisStoreBuilder, Space, Store, TroubleKind,
};
use sluicegate_tests::cluster::Cluster;
use sluicegate_tests::proxy::FaultProxy;
use sluicegate_tests::seed::Seed;
use sluicegate_tests::servers::{Flavour, RedisServer};
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;
use tokio::time::Instant;

/// Budget of a check. More than the default: here the servers and their clients share two processors, and a
/// late reply counts as an error.
pub(crate) const BUDGET: Duration = Duration::from_millis(100);

/// Budget for tests in which a late reply spoils the count: the machine may be busy.
pub(crate) const BUDGET_LONG: Duration = Duration::from_secs(2);

/// Timeout of all waiting.
pub(crate) const SOON: Duration = Duration::from_secs(20);

/// Is this the full run?
pub(crate) fn is_full() -> bool {
    std::env::var("SLUICEGATE_FAULTS").is_ok_and(|size| size == "full")
}

/// Number of rounds, in a quick run and in a full one.
pub(crate) fn rounds(quick: usize, full: usize) -> usize {
    if is_full() { full } else { quick }
}

/// A cluster for the tests that leave it unchanged, with a proxy in front of each node. It ends with the
/// process.
pub(crate) fn shared_cluster() -> (&'static Cluster, &'static [FaultProxy]) {
    static SHARED: OnceLock<(Cluster, Vec<FaultProxy>)> = OnceLock::new();
    let (cluster, proxies) = SHARED.get_or_init(|| Cluster::start_proxied(Flavour::Redis70));
    proxies.iter().for_each(FaultProxy::heal);
    cluster.wait_ok();
    (cluster, proxies)
}

/// Runs a test on such a cluster; in a full run, on one of each flavour.
pub(crate) fn on_clusters(mut test: impl FnMut(&Cluster, &[FaultProxy])) {
    if !is_full() {
        let (cluster, proxies) = shared_cluster();
        return test(cluster, proxies);
    }
    for flavour in Flavour::ALL {
        let (cluster, proxies) = Cluster::start_proxied(flavour);
        test(&cluster, &proxies);
    }
}

pub(crate) fn cluster_url(ports: impl IntoIterator<Item = u16>) -> String {
    let hosts: Vec<_> = ports.into_iter().map(|port| format!("127.0.0.1:{port}")).collect();
    format!("redis+cluster://{}", hosts.join(","))
}

// ===== trial =====

/// One test: alone in this process, with a runtime, a clock and a seed.
pub(crate) struct Trial {
    name: &'static str,
    pub(crate) seed: Seed,
    pub(crate) runtime: Runtime,
    pub(crate) started: Instant,
    _alone: MutexGuard<'static, ()>,
}

impl Trial {
    pub(crate) fn new(name: &'static str) -> Self {
        static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
        let alone = ONE_AT_A_TIME.lock();
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap();
        let (seed, started) = (Seed::announce(name), Instant::now());
        Self { name, seed, runtime, started, _alone: alone }
    }

    /// A store like that of a separate process.
    pub(crate) fn store(
        &self,
        url: &str,
        special: impl FnOnce(RedisStoreBuilder) -> RedisStoreBuilder,
    ) -> Arc<RedisStore> {
        let _inside = self.runtime.enter();
        let builder = RedisStore::builder(url).unwrap().budget(BUDGET);
        Arc::new(special(builder).build().unwrap())
    }

    /// The flavour of this run, or of this round.
    pub(crate) fn flavour(&mut self, round: usize) -> Flavour {
        let all = Flavour::ALL;
        if is_full() { all[round % all.len()] } else { all[self.seed.below(5) as usize] }
    }

    pub(crate) fn now_us(&self) -> u64 {
        micros(self.started.elapsed())
    }

    /// Prints the line of this test.
    #[expect(clippy::print_stdout, reason = "the measurements are the result")]
    pub(crate) fn line(&self, text: &str) {
        println!("{} seed={} {text}", self.name, self.seed.seed());
    }

    /// Fails if a fault never acted: the test would have proven nothing.
    pub(crate) fn acted(&self, what: &str, count: u64) {
        assert!(count > 0, "VACUOUS: {}: {what} never happened", self.name);
    }
}

pub(crate) fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap()
}

// ===== targets =====

/// A request: the buckets it charges, and their policy for store errors.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub(crate) tiers: Vec<(RedisKey, Quota)>,
    pub(crate) on_error: OnError,
}

impl Target {
    /// One bucket without a rule.
    pub(crate) fn one(store: &RedisStore, name: &str, quota: Quota, on_error: OnError) -> Self {
        Self { tiers: vec![(key(store, name), quota)], on_error }
    }

    pub(crate) fn charges(&self, cost: u64) -> Vec<Charge<'_, RedisKey>> {
        let tiers = self.tiers.iter();
        tiers
            .map(|(key, quota)| Charge::new(key, quota, cost).with_on_error(self.on_error))
            .collect()
    }
}

pub(crate) fn key(store: &RedisStore, name: &str) -> RedisKey {
    store.key(Space::Take, &[name.as_bytes()])
}

/// A continuous quota of this many tokens per second.
pub(crate) fn per_second(tokens: u64, capacity: u64) -> Quota {
    Quota::per_second(tokens).unwrap().with_capacity(capacity).unwrap()
}

/// A quota that hardly refills while a test runs: a token an hour.
pub(crate) fn hardly_any(capacity: u64) -> Quota {
    Quota::per_hour(1).unwrap().with_capacity(capacity).unwrap()
}

// ===== duration of errors =====

/// Measures for how long errors of a kind last.
pub(crate) struct Watch {
    stop: Arc<AtomicBool>,
    task: JoinHandle<Duration>,
}

/// Gap between errors that ends a run of them.
const STRETCH_ENDS: Duration = Duration::from_millis(300);

impl Trial {
    pub(crate) fn watch(&self, stores: &[Arc<RedisStore>], kind: TroubleKind) -> Watch {
        let stop = Arc::new(AtomicBool::new(false));
        let (stopped, stores) = (Arc::clone(&stop), stores.to_vec());
        let task = self.runtime.spawn(async move {
            let mut stretches = vec![Stretch::default(); stores.len()];
            while !stopped.load(Ordering::Relaxed) {
                tokio::time::sleep(Duration::from_millis(10)).await;
                for (store, stretch) in stores.iter().zip(&mut stretches) {
                    stretch.look(store.health().stats.errors(kind));
                }
            }
            stretches.iter().map(|stretch| stretch.longest).max().unwrap_or_default()
        });
        Watch { stop, task }
    }
}

impl Watch {
    /// The longest run of errors of any store.
    pub(crate) fn longest(self, trial: &Trial) -> Duration {
        self.stop.store(true, Ordering::Relaxed);
        trial.runtime.block_on(self.task).unwrap()
    }
}

#[derive(Clone, Debug, Default)]
struct Stretch {
    count: u64,
    first_and_last: Option<(Instant, Instant)>,
    longest: Duration,
}

impl Stretch {
    fn look(&mut self, count: u64) {
        if std::mem::replace(&mut self.count, count) == count {
            return;
        }
        let now = Instant::now();
        let first = match self.first_and_last {
            Some((first, last)) if now - last < STRETCH_ENDS => first,
            _ => now,
        };
        self.first_and_last = Some((first, now));
        self.longest = self.longest.max(now - first);
    }
}

/// Sum of a counter over stores.
pub(crate) fn errors(stores: &[Arc<RedisStore>], kind: TroubleKind) -> u64 {
    stores.iter().map(|store| store.health().stats.errors(kind)).sum()
}

/// Number of charges whose undo failed.
pub(crate) fn undos_lost(stores: &[Arc<RedisStore>]) -> u64 {
    stores.iter().map(|store| store.health().stats.undo_lost).sum()
}

/// Kinds of errors with their counts.
pub(crate) fn kinds(stores: &[Arc<RedisStore>]) -> String {
    let counted = TroubleKind::ALL.into_iter().map(|kind| (kind, errors(stores, kind)));
    let words: Vec<_> =
        counted.filter(|(_, n)| *n > 0).map(|(kind, n)| format!("{kind} {n}")).collect();
    words.join(", ")
}

/// Number of open connections that have run the script on this server.
pub(crate) fn users_of(server: &RedisServer) -> usize {
    let list = server.text(&["CLIENT", "LIST"]);
    list.lines().filter(|line| line.contains("cmd=eval")).count()
}
