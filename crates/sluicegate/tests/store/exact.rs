//! T4: N tokens, any number of threads: exactly N admitted, in every run.

use std::env;

use sluicegate::{Clock, Decision, LocalStore, MemoryStore, SystemClock};

use crate::store::support::{key, on_threads, part, remaining, tokens};

const THREADS: usize = 64;
const TOKENS: u64 = 1000;
/// Tries per thread: all of them together request twice the tokens.
const TRIES: u64 = 2 * TOKENS / THREADS as u64 + 1;

/// Number of repetitions of a test.
fn runs() -> usize {
    env::var("SLUICEGATE_RUNS").ok().and_then(|runs| runs.parse().ok()).unwrap_or(50)
}

/// Number of a thread's tries that were granted.
fn granted(mut try_once: impl FnMut() -> bool) -> u64 {
    (0..TRIES).map(|_| u64::from(try_once())).sum()
}

#[test]
fn t4_exactly_n_from_one_bucket() {
    let quota = tokens(TOKENS);
    for run in 0..runs() {
        let store = MemoryStore::new();
        let key = key(&store, "one");
        let admitted = on_threads(THREADS, |_| {
            granted(|| store.charge_one_now(part(&key, &quota, 1)).is_granted())
        });
        assert_eq!(admitted.iter().sum::<u64>(), TOKENS, "run {run}");
        assert_eq!(remaining(&store, &key, &quota), 0);
    }
}

/// Three buckets a charge: one per thread, with plenty; two shared ones, of which one runs out. Half of the
/// threads name them in the opposite order.
#[test]
fn t4_exactly_n_from_three_buckets_at_once() {
    let (own, endpoint, global) = (tokens(TRIES), tokens(TOKENS), tokens(5 * TOKENS));
    for run in 0..runs() {
        let store = MemoryStore::new();
        let (endpoint_key, global_key) = (key(&store, "endpoint"), key(&store, "global"));
        let users: Vec<_> = (0..THREADS).map(|user| key(&store, &format!("user {user}"))).collect();
        let admitted = on_threads(THREADS, |thread| {
            let mut charges = [
                part(&users[thread], &own, 1),
                part(&endpoint_key, &endpoint, 1),
                part(&global_key, &global, 1),
            ];
            if thread % 2 == 1 {
                charges.reverse();
            }
            granted(|| store.charge_now(&charges).iter().all(Decision::is_granted))
        });
        assert_eq!(admitted.iter().sum::<u64>(), TOKENS, "run {run}");
        // Every other bucket is debited exactly as often as its charges were admitted.
        assert_eq!(remaining(&store, &endpoint_key, &endpoint), 0);
        assert_eq!(remaining(&store, &global_key, &global), 4 * TOKENS);
        for (user, admitted) in users.iter().zip(admitted) {
            assert_eq!(remaining(&store, user, &own), TRIES - admitted);
        }
    }
}

/// New buckets are where a store may lose a charge: every thread's first charge is of a new key.
#[test]
fn t4_exactly_n_from_buckets_that_are_new() {
    const BUCKETS: usize = 64;
    const EACH: u64 = 3;
    let quota = tokens(EACH);
    for run in 0..runs() {
        let store = MemoryStore::new();
        let keys: Vec<_> = (0..BUCKETS).map(|bucket| key(&store, &format!("{bucket}"))).collect();
        let admitted = on_threads(8, |thread| {
            let try_each = |at| {
                let key = &keys[(at + thread * BUCKETS / 8) % BUCKETS];
                u64::from(store.charge_one_now(part(key, &quota, 1)).is_granted())
            };
            (0..BUCKETS).map(try_each).sum::<u64>()
        });
        assert_eq!(admitted.iter().sum::<u64>(), EACH * BUCKETS as u64, "run {run}");
        assert_eq!(store.stats().buckets, BUCKETS);
    }
}

/// limitador 0.14 reads all counters of a request and increments them after: its memory store let more than
/// 10 through a limit of 10 in 3 of 300 trials like these.
#[test]
fn limitador_exceeded_a_limit_of_10_in_3_of_300_trials() {
    let (limit, other) = (tokens(10), tokens(1000));
    for trial in 0..300 {
        let store = MemoryStore::new();
        let (limited, unlimited) = (key(&store, "limited"), key(&store, "unlimited"));
        let admitted = on_threads(8, |_| {
            let charges = [part(&limited, &limit, 1), part(&unlimited, &other, 1)];
            let admit = |_| u64::from(store.charge_now(&charges)[0].is_granted());
            (0..4).map(admit).sum::<u64>()
        });
        assert_eq!(admitted.iter().sum::<u64>(), 10, "trial {trial}");
        assert_eq!(remaining(&store, &unlimited, &other), 990);
    }
}

/// C1 on the machine's clock, whose readings on two cores may differ a little: a charge with an earlier time
/// than the one before must not be granted the difference.
#[test]
fn c1_no_more_than_the_rate_on_the_machines_clock() {
    const CAPACITY: u64 = 10;
    let quota = "1 per 1us burst 10".parse().unwrap();
    for run in 0..runs() {
        let store = MemoryStore::new();
        let [one, two] = ["one", "two"].map(|name| key(&store, name));
        let before = store.clock().now();
        let admitted = on_threads(4, |thread| {
            // Two buckets in two shards, so that each is charged under the times of two.
            let charges = [part(&one, &quota, 1), part(&two, &quota, 1)];
            let charges = if thread == 0 { &charges[..1] } else { &charges };
            let admit = |_| u64::from(store.charge_now(charges)[0].is_granted());
            (0..2000).map(admit).sum::<u64>()
        });
        let elapsed = store.clock().now().since(before);
        let elapsed_us = u64::try_from(elapsed.as_micros()).unwrap() + SystemClock::SKEW_US;
        let admitted: u64 = admitted.iter().sum();
        assert!(admitted <= CAPACITY + elapsed_us, "run {run}: {admitted} in {elapsed_us} us");
    }
}
