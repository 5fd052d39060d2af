//! T21: buckets that another client has overwritten.

use std::time::Duration;

use sluicegate::{Decision, OnError, Quota};
use sluicegate_tests::seed::Seed;
use sluicegate_tests::servers::{Flavour, RedisServer};

use crate::faults::support::{AMPLE, Node, algorithms, health, node_with, redis_key, report};

const CAPACITY: u64 = 5;

/// No token is refilled within the test.
const DAY: Duration = Duration::from_secs(86_400);

/// Values that are not buckets.
fn nonsense(key: &str) -> Vec<(&'static str, Vec<String>)> {
    let words = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect();
    vec![
        ("a list", words(&["RPUSH", key, "a", "b"])),
        ("a hash", words(&["HSET", key, "tokens", "5"])),
        ("a set", words(&["SADD", key, "a"])),
        ("another sorted set", words(&["ZADD", key, "1", "a", "2", "b"])),
        ("an empty text", words(&["SET", key, ""])),
        ("some text", words(&["SET", key, "hello"])),
        ("half a bucket", words(&["SET", key, "1794700000"])),
        ("a negative level", words(&["SET", key, "-000000000000001:86400000000"])),
        ("no number", words(&["SET", key, "nannannannannann:86400000000"])),
        ("binary", words(&["SET", key, "\u{0}\u{1}\u{ff}:\r\n1"])),
        ("a megabyte", words(&["SET", key, &"9".repeat(1 << 20)])),
    ]
}

/// With any value in place of a bucket, in every algorithm and server: no check fails, the next charges find
/// a full bucket, exactly B of them are granted, and every repair is counted, once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t21_nonsense_is_taken_for_a_full_bucket() {
    let seed = Seed::announce("t21_nonsense_is_taken_for_a_full_bucket");
    let (mut cases, mut repaired) = (0, 0);
    for flavour in Flavour::ALL {
        let server = RedisServer::start(flavour);
        let node = node_with(&server.url(), |builder| builder.budget(AMPLE).deny_cache_max(0));
        for (name, quota) in algorithms(DAY) {
            let key = redis_key(&node, name);
            for (what, words) in nonsense(&key) {
                let words: Vec<&str> = words.iter().map(String::as_str).collect();
                server.command(&["DEL", &key]);
                server.command(&words);
                let case = format!("{flavour:?}, {name}, {what}");
                let before = health(&node).stats.repaired;
                assert_eq!(granted(&node, name, &quota, &case).await, CAPACITY, "{case}");
                let more = health(&node).stats.repaired - before;
                assert_eq!(more, 1, "{case}: repairs are counted once");
                cases += 1;
                repaired += more;
            }
        }
    }
    report(
        "t21_nonsense_is_taken_for_a_full_bucket",
        &seed,
        format!("{cases} overwritten buckets"),
        format!(
            "over-admission 0 of at most 0 after the loss; {repaired} repairs counted, no check degraded"
        ),
    );
}

/// Number of eight charges that are granted, none of them by policy.
async fn granted(node: &Node, name: &str, quota: &Quota, case: &str) -> u64 {
    let mut granted = 0;
    for _ in 0..CAPACITY + 3 {
        granted += u64::from(charge(node, name, quota, case).await.is_granted());
    }
    granted
}

async fn charge(node: &Node, name: &str, quota: &Quota, case: &str) -> Decision {
    let charged = node.take_or(name, quota, 1, OnError::Deny).await.unwrap();
    assert!(!charged.degraded, "{case}: {:?}", health(node));
    charged.decisions[0]
}

/// A level that was edited to ten times the capacity counts as an empty bucket: denied, for no longer than an
/// empty bucket takes (a sliding counter's fades within two periods).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t21_levels_beyond_empty_are_clamped() {
    let seed = Seed::announce("t21_levels_beyond_empty_are_clamped");
    let mut cases = 0;
    for flavour in Flavour::ALL {
        let server = RedisServer::start(flavour);
        let node = node_with(&server.url(), |builder| builder.budget(AMPLE).deny_cache_max(0));
        for (name, quota) in algorithms(DAY) {
            let case = format!("{flavour:?}, {name}");
            let key = redis_key(&node, name);
            assert!(charge(&node, name, &quota, &case).await.is_granted());
            if edit(&server, &key, &quota) {
                let denied = charge(&node, name, &quota, &case).await;
                assert_eq!(
                    (denied.is_granted(), denied.remaining),
                    (false, 0),
                    "{case}: {denied:?}"
                );
                let wait = denied.retry_after().unwrap();
                // A window's count fades in the next one.
                let longest = 2 * quota.time_to_full();
                assert!(wait <= longest, "{case}: told to wait {wait:?}, {longest:?} at most");
                cases += 1;
            }
        }
        assert_eq!(health(&node).stats.repaired, 0, "a level is clamped, not lost");
    }
    report(
        "t21_levels_beyond_empty_are_clamped",
        &seed,
        format!("{cases} edited levels"),
        "over-admission 0 of at most 0; all denied, for no longer than an empty bucket",
    );
}

/// Makes the stored level ten times the capacity. False if that is not possible.
fn edit(server: &RedisServer, key: &str, quota: &Quota) -> bool {
    if quota.keeps_log() {
        // The running total of the newest entry.
        let last: Vec<(String, u64)> =
            redis::from_redis_value(server.command(&["ZRANGE", key, "-1", "-1", "WITHSCORES"]))
                .unwrap();
        server.command(&["ZREM", key, &last[0].0]);
        server.command(&["ZADD", key, &last[0].1.to_string(), "0000000000000050"]);
        return true;
    }
    let text = server.text(&["GET", key]);
    let (state, form) = text.split_at(text.find(':').unwrap());
    let edited = match state.split_once('@') {
        Some((level, at)) => {
            let level: u64 = level.parse().unwrap();
            format!("{:016}@{at}{form}", level * 10)
        }
        None => {
            let full_at: u64 = state.parse().unwrap();
            format!(
                "{:016}{form}",
                full_at + 10 * u64::try_from(quota.time_to_full().as_micros()).unwrap()
            )
        }
    };
    server.command(&["SET", key, &edited, "KEEPTTL"]);
    true
}
