//! T28: two masters for a while.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::thread;
use std::time::Duration;

use sluicegate::{OnError, RedisStore, TroubleKind};
use sluicegate_tests::proxy::{FaultProxy, Faults};
use sluicegate_tests::sentinel::{MASTER_NAME, SentinelSet};
use sluicegate_tests::wait;

use crate::clusters::load::Shape;
use crate::clusters::log::Log;
use crate::clusters::sentinel::sentinel_url;
use crate::clusters::support::{SOON, Target, Trial, errors, per_second, rounds};

/// Seconds without replicas after which a master takes no more writes.
const LAG_MAX: u64 = 2;
/// The master checks once a second, and counts whole seconds.
const NOTICED_WITHIN: u64 = 2;
const MOVED_WITHIN: Duration = Duration::from_secs(5);

/// The sentinel on the isolated side: it names the old master until the partition heals.
///
/// All real sentinels of the set reach the servers through proxies that are cut for all of them, so the one
/// that is isolated with its master is simulated.
struct IsolatedSentinel {
    port: u16,
    port_named: Arc<AtomicU16>,
}

impl IsolatedSentinel {
    fn start(master: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (port, port_named) =
            (listener.local_addr().unwrap().port(), Arc::new(AtomicU16::new(master)));
        let shared = Arc::clone(&port_named);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let port_named = Arc::clone(&shared);
                thread::spawn(move || answer(stream, &port_named));
            }
        });
        Self { port, port_named }
    }

    fn tell(&self, master: u16) {
        self.port_named.store(master, Ordering::SeqCst);
    }

    fn url(&self) -> String {
        format!("redis+sentinel://127.0.0.1:{}/{MASTER_NAME}", self.port)
    }
}

/// Replies with an address to every command: `get-master-addr-by-name` is the only one that is sent.
fn answer(mut stream: TcpStream, port_named: &AtomicU16) {
    let mut question = [0; 1024];
    while stream.read(&mut question).is_ok_and(|len| len > 0) {
        let port = port_named.load(Ordering::SeqCst).to_string();
        let text = format!("*2\r\n$9\r\n127.0.0.1\r\n${}\r\n{port}\r\n", port.len());
        if stream.write_all(text.as_bytes()).is_err() {
            return;
        }
    }
}

/// Result of one split.
#[derive(Clone, Copy, Debug)]
struct Split {
    /// Grants of the old master while it was partitioned.
    apart: u64,
    excess: i128,
    slack: i128,
    /// Time between the cut and the last grant of the old master.
    granted_for: Duration,
    moved: Duration,
    refused: u64,
    swallowed: u64,
}

/// A master is partitioned together with one client, and another takes its place. With `min-replicas-max-lag
/// 2` the old one soon takes no more writes; until then both grant, which is at most B + R (2 s + the time to
/// notice) too much. The client uses the new master within 5 s of the healing.
#[test]
#[ignore = "full size: make test-faults"]
fn t28_a_split_brain_is_short_and_ends() {
    let mut trial = Trial::new("t28_a_split_brain_is_short_and_ends");
    let splits: Vec<_> = (0..rounds(1, 5)).map(|round| split(&mut trial, round)).collect();
    let most = splits.iter().max_by_key(|split| split.excess).unwrap();
    let swallowed = splits.iter().map(|split| split.swallowed).min().unwrap();
    trial.line(&format!(
        "splits={} swallowed>={swallowed} bytes; granted apart {:?} tokens for up to {:?}, then refused {:?} times; \
         over-admission {} (<= 50 + 5 * {} + {}); moved after the healing {:?} (5s)",
        splits.len(),
        splits.iter().map(|split| split.apart).collect::<Vec<_>>(),
        splits.iter().map(|split| split.granted_for).max().unwrap(),
        splits.iter().map(|split| split.refused).collect::<Vec<_>>(),
        most.excess,
        LAG_MAX + NOTICED_WITHIN,
        most.slack,
        splits.iter().map(|split| split.moved).max().unwrap(),
    ));
    let bound = 50 + 5 * i128::from(LAG_MAX + NOTICED_WITHIN);
    for split in &splits {
        trial.acted("a swallowed byte", split.swallowed);
        trial.acted("a grant by the old master", split.apart);
        trial.acted("a refusal by the old master", split.refused);
        assert!(split.excess <= bound + split.slack, "{split:?}");
        assert!(split.moved <= MOVED_WITHIN, "{split:?}");
    }
}

fn split(trial: &mut Trial, round: usize) -> Split {
    let (set, proxies) = SentinelSet::start_proxied(trial.flavour(round));
    for server in set.servers() {
        server.command(&["CONFIG", "SET", "min-replicas-to-write", "1"]);
        server.command(&["CONFIG", "SET", "min-replicas-max-lag", &LAG_MAX.to_string()]);
    }
    let former = set.master();
    let lonely = IsolatedSentinel::start(set.servers()[former].port());
    let store = |url: &str| trial.store(url, |store| store.deny_cache_max(0));
    let stores = vec![store(&lonely.url()), store(&sentinel_url(&set))];
    connect_all(trial, &stores);

    // The worst case: a bucket that is first charged after the partition.
    let quota = per_second(5, 50);
    let target = Target::one(&stores[0], "split", quota, OnError::Deny);
    proxies[former].set_both(Faults::BLACK_HOLE);
    let cut_us = trial.now_us();
    let load = trial.load(&stores, vec![target], Shape::default());
    let master = set.wait_for_failover(former);
    wait::until("the old master to refuse", SOON, || {
        errors(&stores[..1], TroubleKind::ReadOnly) > 0
    });
    let refused = errors(&stores[..1], TroubleKind::ReadOnly);
    let swallowed = swallowed(&proxies[former]);
    let healed_us = trial.now_us();
    proxies[former].heal();
    lonely.tell(proxies[master].port());
    load.wait_good(100);
    let log = load.finish(trial).by_redis();

    let by_old = log.only(|a| a.store == 0 && a.granted && (cut_us..healed_us).contains(&a.at_us));
    let excess = log.excess(&quota);
    Split {
        apart: by_old.granted(),
        excess: excess.tokens,
        slack: excess.slack,
        granted_for: Duration::from_micros(by_old.0.last().map_or(0, |last| last.at_us - cut_us)),
        moved: first_after(&log, healed_us),
        refused,
        swallowed,
    }
}

/// Both are connected before the partition.
fn connect_all(trial: &mut Trial, stores: &[Arc<RedisStore>]) {
    let target = Target::one(&stores[0], "before", per_second(5, 50), OnError::Deny);
    let load = trial.load(stores, vec![target], Shape::default());
    load.wait_good(20);
    load.finish(trial);
}

fn swallowed(proxy: &FaultProxy) -> u64 {
    let counts = proxy.counts();
    counts.up.swallowed_bytes + counts.down.swallowed_bytes
}

/// Time between `from_us` and the next answer of Redis to the isolated client.
fn first_after(log: &Log, from_us: u64) -> Duration {
    let mut answers = log.0.iter().filter(|answer| answer.store == 0);
    let first = answers.find(|answer| answer.sent_us > from_us).unwrap();
    Duration::from_micros(first.at_us - from_us)
}
