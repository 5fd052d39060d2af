//! Buckets as stored in Redis: small, with an absolute expiry, untouched by denials and peeks, and removed
//! when full.

use std::time::Duration;

use sluicegate::{
    Charge, Clock, Decision, ManualClock, Micros, OnError, Quota, RedisKey, RedisStore, Space,
    Store,
};
use sluicegate_tests::servers::{Flavour, RedisServer};

use crate::store::quotas;

/// About the year 2100, past the server's own time.
const START: Micros = Micros::new(4_100_000_000_000_000);
/// Maximum size of a value, except logs: up to this size it is stored in one piece with its header.
const VALUE_BYTES_MAX: i64 = 64;
/// Commands that write.
const WRITES: [&str; 6] =
    ["set", "del", "zadd", "zremrangebyscore", "zremrangebyrank", "pexpireat"];

struct Bench {
    server: RedisServer,
    store: RedisStore,
    clock: ManualClock,
}

impl Bench {
    fn new() -> Self {
        let server = RedisServer::start(Flavour::Redis70);
        let clock = ManualClock::new(START);
        let store = RedisStore::builder(&server.url()).unwrap().clock(clock.clone());
        let store = store.budget(Duration::from_secs(5)).deny_cache_max(0).build().unwrap();
        Self { server, store, clock }
    }

    async fn take(&self, key: &RedisKey, quota: &Quota, cost: u64) -> Decision {
        let charge = Charge::new(key, quota, cost).with_on_error(OnError::Deny);
        let charged = self.store.charge(&[charge]).await;
        let charged = charged.unwrap();
        assert!(!charged.degraded, "{:?}", self.store.health());
        charged.decisions[0]
    }

    fn number(&self, command: &[&str]) -> i64 {
        match self.server.command(command) {
            redis::Value::Int(number) => number,
            other => panic!("{command:?}: {other:?}"),
        }
    }

    fn writes(&self) -> u64 {
        let stats = self.server.text(&["INFO", "commandstats"]);
        let calls = |name: &str| {
            let line =
                stats.lines().find_map(|line| line.strip_prefix(&format!("cmdstat_{name}:")));
            let calls = line.and_then(|line| line.strip_prefix("calls=")?.split(',').next());
            calls.map_or(0, |calls| calls.parse::<u64>().unwrap())
        };
        WRITES.into_iter().map(calls).sum()
    }
}

#[tokio::test]
async fn e1_e2_a_bucket_expires_at_the_millisecond_it_is_full() {
    let bench = Bench::new();
    let all = [quotas::small(), quotas::usual(), quotas::extreme()].concat();
    for (number, quota) in all.iter().enumerate() {
        let key = bench.store.key(Space::Take, &[&number.to_le_bytes()]);
        for cost in [1, quota.capacity() / 2] {
            let decision = bench.take(&key, quota, cost.max(1)).await;
            let now = bench.clock.now().get();
            let expires = bench.number(&["PEXPIRETIME", key.as_str()]);
            let full_at = now + decision.reset_after;
            assert_eq!(expires, i64::try_from(full_at.div_ceil(1000)).unwrap(), "{quota:?}");
            bench.clock.advance(Duration::from_micros(7));
        }
        if !quota.keeps_log() {
            let bytes = bench.number(&["STRLEN", key.as_str()]);
            assert!((1..=VALUE_BYTES_MAX).contains(&bytes), "{bytes} bytes for {quota:?}");
        }
    }
}

#[tokio::test]
async fn k2_c4_denials_and_looks_write_nothing() {
    let bench = Bench::new();
    for (number, quota) in [quotas::small(), quotas::usual()].concat().iter().enumerate() {
        let key = bench.store.key(Space::Take, &[&number.to_le_bytes()]);
        while bench.take(&key, quota, 1).await.is_granted() {}
        let writes = bench.writes();
        for cost in [0, 1, quota.capacity(), quota.capacity() + 1, u64::MAX] {
            let decision = bench.take(&key, quota, cost).await;
            assert_eq!(decision.is_granted(), cost == 0, "{quota:?} {cost}");
        }
        assert_eq!(bench.writes(), writes, "{quota:?}");
    }
}

#[tokio::test]
async fn a_full_bucket_is_not_stored() {
    let bench = Bench::new();
    for (number, quota) in [quotas::small(), quotas::usual()].concat().iter().enumerate() {
        let key = bench.store.key(Space::Take, &[&number.to_le_bytes()]);
        assert!(bench.take(&key, quota, 0).await.is_granted());
        assert_eq!(bench.number(&["EXISTS", key.as_str()]), 0, "a look at {quota:?}");
        assert!(bench.take(&key, quota, 1).await.is_granted());
        assert_eq!(bench.number(&["EXISTS", key.as_str()]), 1, "{quota:?}");
        let decision = bench.store.refund(&key, quota, 1).await.unwrap();
        assert_eq!(decision.remaining, quota.capacity());
        assert_eq!(bench.number(&["EXISTS", key.as_str()]), 0, "a refund of {quota:?}");
        assert!(!bench.store.reset(&key).await.unwrap());
    }
}

#[tokio::test]
async fn t21_what_is_no_bucket_is_taken_for_a_full_one_and_replaced() {
    let bench = Bench::new();
    // Longer than any bucket: matching it must not take quadratic time.
    let long = "9".repeat(1 << 20);
    let texts = [
        "",
        "abc",
        ":",
        "12:",
        "1:2:3",
        "-5:100",
        "9999999999999999999:1",
        "nan:600000",
        "             nan:600000",
        "0000000000000001@x:f5",
        "4100000000000000:b600000",
        "\0\u{ff}",
        &long,
    ];
    let mut repaired = 0;
    for (number, quota) in [quotas::small(), quotas::usual()].concat().iter().enumerate() {
        let key = bench.store.key(Space::Take, &[&number.to_le_bytes()]);
        let name = key.as_str();
        let types = [
            vec!["RPUSH", name, "x"],
            vec!["HSET", name, "tokens", "5"],
            vec!["SADD", name, "member"],
            vec!["ZADD", name, "5", "member"],
        ];
        for wrong in texts.map(|text| vec!["SET", name, text]).into_iter().chain(types) {
            bench.server.command(&["DEL", name]);
            bench.server.command(&wrong);
            let decision = bench.take(&key, quota, 1).await;
            assert!(decision.is_granted(), "{wrong:?} under {quota:?}");
            repaired += 1;
            assert_eq!(bench.store.health().stats.repaired, repaired, "{wrong:?} under {quota:?}");
            let decision = bench.take(&key, quota, 0).await;
            assert_eq!(decision.remaining, quota.capacity() - 1, "{wrong:?} under {quota:?}");
        }
    }
}

#[tokio::test]
async fn t21_a_level_beyond_empty_is_clamped_and_flows_again() {
    let bench = Bench::new();
    let quota: Quota = "1/s burst 5".parse().unwrap();
    let key = bench.store.key(Space::Take, &[b"k"]);
    let far = START.get() + 3_600_000_000;
    bench.server.command(&["SET", key.as_str(), &format!("{far}:1000000")]);
    let decision = bench.take(&key, &quota, 1).await;
    assert_eq!(decision.retry_after(), Some(Duration::from_secs(1)));
    bench.clock.advance(Duration::from_secs(1));
    assert!(bench.take(&key, &quota, 1).await.is_granted());
    assert_eq!(bench.store.health().stats.repaired, 0);
}

#[tokio::test]
async fn t21_nonsense_in_a_log_is_counted_and_never_an_error() {
    let bench = Bench::new();
    let quota = quotas::usual().into_iter().find(Quota::keeps_log).unwrap();
    let now = START.get();
    let head = format!("{:016}:w60000000", 0);
    let logs = [
        // In the middle, as the newest, as the oldest that counts, and instead of all totals.
        vec![("5", 3), ("abc", 2), ("99", 1)],
        vec![("5", 3), ("zzz", 1)],
        vec![("zzz", 70), ("5", 1)],
        vec![("9007199254740991", 1)],
        vec![("-1", 2), ("nan", 1), ("1e5", 1)],
    ];
    for (number, log) in logs.iter().enumerate() {
        let key = bench.store.key(Space::Take, &[&number.to_le_bytes()]);
        bench.server.command(&["ZADD", key.as_str(), "0", &head]);
        for (total, seconds_ago) in log {
            let at = format!("{}", now - seconds_ago * 1_000_000);
            let total = total.parse().map_or((*total).into(), |total: u64| format!("{total:016}"));
            bench.server.command(&["ZADD", key.as_str(), &at, &total]);
        }
        let before = bench.store.health().stats.repaired;
        for cost in [0, 90, 100, 1] {
            bench.take(&key, &quota, cost).await;
        }
        bench.store.refund(&key, &quota, 3).await.unwrap();
        assert!(bench.store.health().stats.repaired > before, "{log:?}");
    }
}
