//! The whole memory store under random schedules: at every atomic and every lock, another thread may
//! run next.
//!
//! ```text
//! cargo test -p sluicegate-shuttle
//! ```
//!
//! A test that fails prints its schedule; `shuttle::replay` runs that one again.

#![cfg(test)]

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use shuttle::thread;
use sluicegate_shuttle::{
    Algorithm, Charge, Decision, LocalStore, ManualClock, MemoryKey, MemoryStore, Micros, Quota,
    Rule, RuleSet, Space, Store,
};

/// Schedules per test, of each kind.
const SCHEDULES: usize = 10_000;
/// Number of preemptions in schedules of the second kind, plus one.
const DEPTH: usize = 3;
/// Number of regular shards of a small store.
const SHARDS: u64 = 64;

type ManualStore = MemoryStore<ManualClock>;

fn store(max_buckets: usize) -> (Arc<ManualStore>, ManualClock) {
    let clock = ManualClock::new(Micros::new(1_700_000_000_000_000));
    let builder = MemoryStore::builder().max_buckets(max_buckets).take_buckets_max(0);
    let store = builder.clock(clock.clone()).build();
    (Arc::new(store), clock)
}

/// One token every ten microseconds.
fn quota(capacity: u64) -> Quota {
    Quota::new(1, Duration::from_micros(10)).unwrap().with_capacity(capacity).unwrap()
}

fn key(store: &ManualStore, name: &str) -> MemoryKey {
    store.key(Space::Rule(1), &[name.as_bytes()])
}

fn part<'a>(key: &'a MemoryKey, quota: &'a Quota, cost: u64) -> Charge<'a, MemoryKey> {
    Charge::new(key, quota, cost)
}

fn take(store: &ManualStore, key: &MemoryKey, quota: &Quota, cost: u64) -> bool {
    store.charge_one_now(part(key, quota, cost)).is_granted()
}

fn remaining(store: &ManualStore, key: &MemoryKey, quota: &Quota) -> u64 {
    store.charge_one_now(part(key, quota, 0)).remaining
}

/// Nine keys that share a shard, by the half of the hash that selects it.
fn neighbours(store: &ManualStore) -> [MemoryKey; 9] {
    static NEIGHBOURS: OnceLock<[MemoryKey; 9]> = OnceLock::new();
    let is_in_first_shard = |key: &MemoryKey| {
        let shown = format!("{key:?}");
        let hash = shown.split(['[', ']']).nth(1).and_then(|hash| hash.split(", ").nth(1));
        hash.unwrap().parse::<u64>().unwrap() % SHARDS == 0
    };
    let find = || {
        let mut keys = (0..).map(|name| key(store, &format!("{name}"))).filter(is_in_first_shard);
        std::array::from_fn(|_| keys.next().unwrap())
    };
    *NEIGHBOURS.get_or_init(find)
}

/// Half of all schedules switch threads at random; in the other half a thread runs until it is preempted,
/// which is rare, so that another may do all of its work between two steps of the first.
fn check(test: fn()) {
    shuttle::check_random(test, SCHEDULES);
    shuttle::check_pct(test, SCHEDULES, DEPTH);
}

/// Spawns a thread with its own handle to the store.
fn spawn<T: Send + 'static>(
    store: &Arc<ManualStore>,
    work: impl FnOnce(&ManualStore) -> T + Send + 'static,
) -> thread::JoinHandle<T> {
    let store = Arc::clone(store);
    thread::spawn(move || work(&store))
}

// ===== exact N =====

/// Three threads charge three buckets in three orders: no deadlock, exactly as many are admitted as the
/// scarcest bucket has tokens, and the others are debited as often.
#[test]
fn t4_exactly_n_whatever_the_order_of_the_locks() {
    check(|| {
        let (store, _) = store(1000);
        let quotas = [quota(3), quota(9), quota(9)];
        let keys = ["scarce", "shared", "plenty"].map(|name| key(&store, name));
        let threads = [0, 1, 2].map(|turn| {
            spawn(&store, move |store| {
                let mut charges: Vec<_> =
                    keys.iter().zip(&quotas).map(|(key, quota)| part(key, quota, 1)).collect();
                charges.rotate_left(turn);
                let admitted =
                    |_: &i32| store.charge_now(&charges).iter().all(Decision::is_granted);
                (0..2).filter(admitted).count()
            })
        });
        let admitted: usize = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
        assert_eq!(admitted, 3);
        let left = [0, 1, 2].map(|at| remaining(&store, &keys[at], &quotas[at]));
        assert_eq!(left, [0, 6, 6]);
    });
}

/// One thread refunds a token, while others are denied without a lock: exactly one of them, or the refunding
/// thread, gets it.
#[test]
fn t4_a_refund_is_taken_exactly_once() {
    check(|| {
        let (store, _) = store(1000);
        let (key, quota) = (key(&store, "bucket"), quota(5));
        assert!(take(&store, &key, &quota, 5) && !take(&store, &key, &quota, 1));
        let others = [(); 2].map(|()| {
            spawn(&store, move |store| (0..2).filter(|_| take(store, &key, &quota, 1)).count())
        });
        store.refund_now(&key, &quota, 1);
        // After the refund has returned the token is available, or another thread has it.
        let mine = usize::from(take(&store, &key, &quota, 1));
        let theirs: usize = others.into_iter().map(|other| other.join().unwrap()).sum();
        assert_eq!(mine + theirs, 1);
        assert_eq!(remaining(&store, &key, &quota), 0);
    });
}

/// After a reset has returned, no denial is older than it.
#[test]
fn d2_no_denial_is_older_than_the_reset_before_it() {
    check(|| {
        let (store, _) = store(1000);
        let (mine, empty) = (key(&store, "mine"), key(&store, "empty"));
        let quota = quota(5);
        assert!(take(&store, &empty, &quota, 5));
        let other = spawn(&store, move |store| {
            // Reads the bucket, but is never granted.
            for _ in 0..3 {
                let charges = [part(&mine, &quota, 1), part(&empty, &quota, 1)];
                assert!(!store.charge_now(&charges)[1].is_granted());
            }
        });
        for _ in 0..2 {
            assert!(take(&store, &mine, &quota, 5));
            assert!(!take(&store, &mine, &quota, 1));
            assert!(store.reset_now(&mine));
        }
        other.join().unwrap();
    });
}

// ===== one instant =====

/// Two buckets that are always charged together are seen so, also by denials without a lock.
#[test]
fn m1_no_denial_sees_half_of_another_charge() {
    check(|| {
        let (store, _) = store(1000);
        let (quota, empty) = (quota(9), key(&store, "empty"));
        let [left, right] = ["left", "right"].map(|name| key(&store, name));
        assert!(take(&store, &empty, &quota, 9) && !take(&store, &empty, &quota, 1));
        let both = move |store: &ManualStore| {
            let charges = [part(&left, &quota, 1), part(&right, &quota, 1)];
            assert!(store.charge_now(&charges)[0].is_granted());
        };
        both(&store);
        let other = spawn(&store, both);
        for _ in 0..2 {
            let charges = [&left, &right, &empty].map(|key| part(key, &quota, 1));
            let decisions = store.charge_now(&charges);
            assert_eq!(decisions[0].remaining, decisions[1].remaining);
            assert!(!decisions[2].is_granted());
        }
        other.join().unwrap();
    });
}

/// A bucket with a token and a half: whether one charge comes before the other, five microseconds earlier, or
/// after it, there is a token for it. A denial that read the clock before the bucket would see neither.
#[test]
fn c2_no_denial_is_of_an_instant_that_never_was() {
    check(|| {
        let (store, clock) = store(1000);
        let (key, quota) = (key(&store, "bucket"), quota(2));
        assert!(take(&store, &key, &quota, 1));
        clock.advance(Duration::from_micros(5));
        assert!(!take(&store, &key, &quota, 2));
        let later = spawn(&store, move |store| {
            clock.advance(Duration::from_micros(5));
            assert!(take(store, &key, &quota, 1));
        });
        assert!(take(&store, &key, &quota, 1));
        later.join().unwrap();
    });
}

/// An exhausted window is over, and there is enough for both in the next. A denial that combined the count of
/// the one with the time of the other would be wrong.
#[test]
fn c2_no_denial_is_of_a_state_that_never_was() {
    check(|| {
        let (store, clock) = store(1000);
        let (key, period) = (key(&store, "bucket"), Duration::from_micros(50));
        let quota = Quota::new(5, period).unwrap();
        let quota = quota.with_algorithm(Algorithm::FixedWindow).unwrap();
        assert!(take(&store, &key, &quota, 5) && !take(&store, &key, &quota, 1));
        clock.advance(period);
        let other = spawn(&store, move |store| assert!(take(store, &key, &quota, 1)));
        assert!(take(&store, &key, &quota, 1));
        other.join().unwrap();
        assert_eq!(remaining(&store, &key, &quota), 3);
    });
}

/// New keys of a full store share one bucket, behind locks of their own. A charge that read the clock before
/// it waited for that bucket would see it beyond empty, and clamp it by giving tokens away.
#[test]
fn c1_no_overflow_bucket_is_mended_that_was_whole() {
    check(|| {
        let (store, clock) = store(1);
        let (first, quota) = (key(&store, "first"), quota(1));
        let slow = Quota::per_day(1).unwrap();
        assert!(take(&store, &first, &slow, 1));
        let keys = ["one", "two", "three"].map(|name| key(&store, name));
        let later = {
            let clock = clock.clone();
            spawn(&store, move |store| {
                clock.advance(Duration::from_micros(10));
                take(store, &keys[0], &quota, 1)
            })
        };
        let now = take(&store, &keys[1], &quota, 1);
        let later = later.join().unwrap();
        let last = take(&store, &keys[2], &quota, 1);
        // One at the beginning, one more after ten microseconds.
        assert!(u8::from(now) + u8::from(later) + u8::from(last) <= 2);
        assert!(!(later && last), "two at one instant from a bucket of one");
    });
}

// ===== tables =====

/// A table that grows, shrinks and is swapped while it is read: an exhausted bucket among those that are
/// added and removed stays exhausted, and is never missed.
#[test]
fn e1_no_reader_is_misled_by_a_table_that_is_swapped() {
    check(|| {
        let (store, clock) = store(1000);
        let (slow, quick) = (Quota::per_day(2).unwrap(), quota(1));
        let keys = neighbours(&store);
        let exhausted = keys[0];
        assert!(take(&store, &exhausted, &slow, 2) && !take(&store, &exhausted, &slow, 1));
        let reader = spawn(&store, move |store| {
            for _ in 0..3 {
                let decision = store.charge_one_now(part(&exhausted, &slow, 1));
                assert!(!decision.is_granted() && decision.remaining == 0);
            }
        });
        let sweeper = spawn(&store, move |store| {
            clock.advance(Duration::from_micros(10));
            store.sweep(2);
            clock.advance(Duration::from_micros(10));
            store.sweep(2);
        });
        for key in &keys[1..] {
            assert!(take(&store, key, &quick, 1));
        }
        // It may be full by now, and evicted.
        store.reset_now(&keys[8]);
        reader.join().unwrap();
        sweeper.join().unwrap();
        assert_eq!(remaining(&store, &exhausted, &slow), 0);
    });
}

/// A quota that changes while the old one is read: spent tokens stay spent under either.
#[test]
fn u1_no_reader_is_misled_by_a_quota_that_changes() {
    check(|| {
        let (store, _) = store(1000);
        let key = key(&store, "bucket");
        let (before, after) = (Quota::per_day(2).unwrap(), Quota::per_hour(2).unwrap());
        assert!(take(&store, &key, &before, 2) && !take(&store, &key, &before, 1));
        let threads = [[before, after], [after, before]].map(|quotas| {
            spawn(&store, move |store| {
                for quota in &quotas {
                    assert!(!take(store, &key, quota, 1));
                }
            })
        });
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(store.stats().buckets, 1);
    });
}

// ===== the bound =====

/// Threads that fill a store beyond its bound: never more buckets than allowed, and reserved room that is not
/// used is released.
#[test]
fn e1_the_bound_holds_and_room_is_given_back() {
    check(|| {
        let (store, clock) = store(3);
        let (quick, none) = (quota(1), quota(1));
        let threads = [0, 1, 2].map(|thread| {
            let clock = clock.clone();
            spawn(&store, move |store| {
                let keys = [0, 1].map(|name| key(store, &format!("{thread} {name}")));
                // Denied: the second part costs more than its capacity.
                store.charge_now(&[part(&keys[0], &quick, 1), part(&keys[1], &none, 2)]);
                store.charge_now(&[part(&keys[0], &quick, 1), part(&keys[1], &quick, 1)]);
                assert!(store.stats().buckets <= 3);
                clock.advance(Duration::from_micros(5));
                store.reset_now(&keys[1]);
            })
        });
        for thread in threads {
            thread.join().unwrap();
        }
        assert!(store.stats().buckets <= 3);
        clock.advance(Duration::from_millis(1));
        store.sweep(2 * 65 * 256);
        assert_eq!(store.stats().buckets, 0);
    });
}

/// Threads flood one rule, and the rules are put in force again meanwhile: keys of another rule within its reserve have a
/// bucket each, the bound holds, and all room is released.
#[test]
fn s5_a_reserve_is_available_whatever_others_do() {
    check(|| {
        let (store, clock) = store(8);
        let slow = Quota::per_day(2).unwrap();
        let rules = [(1, "user:{user_id}"), (2, "ip:{ip}")];
        let rules = rules.map(|(id, pattern)| Rule::new(id, pattern, slow).unwrap());
        let rules = RuleSet::new(rules.to_vec()).unwrap();
        let mut room = store.reserve_room(&rules);
        let threads = [0, 1].map(|thread| {
            spawn(&store, move |store| {
                for name in 0..4 {
                    take(store, &key(store, &format!("{thread} {name}")), &slow, 1);
                }
                assert!(store.stats().buckets <= 8);
                store.reset_now(&key(store, &format!("{thread} 0")));
            })
        });
        for name in ["one", "two"] {
            let key = store.key(Space::Rule(2), &[name.as_bytes()]);
            assert!(take(&store, &key, &slow, 1));
            assert_eq!(remaining(&store, &key, &slow), 1, "a bucket of its own");
            room = store.reserve_room(&rules);
        }
        for thread in threads {
            thread.join().unwrap();
        }
        drop(room);
        clock.advance(Duration::from_hours(24));
        store.sweep(2 * 66 * 256);
        assert_eq!(store.stats().buckets, 0);
    });
}

/// A rule is deleted while a charge within its reserve finds the store full: all of the room can be used afterwards.
#[test]
fn s5_no_room_is_lost_with_a_rule() {
    check(|| {
        let (store, clock) = store(2);
        let slow = Quota::per_day(2).unwrap();
        let other = |name: &[u8]| store.key(Space::Rule(9), &[name]);
        assert!(take(&store, &other(b"one"), &slow, 1) && take(&store, &other(b"two"), &slow, 1));
        let rule = Rule::new(1, "user:{user_id}", slow).unwrap();
        let room = store.reserve_room(&RuleSet::new(vec![rule]).unwrap());
        let charging = spawn(&store, move |store| take(store, &key(store, "new"), &slow, 1));
        drop(room);
        assert!(charging.join().unwrap(), "from the overflow bucket");
        clock.advance(Duration::from_hours(24));
        store.sweep(2 * 66 * 256);
        assert_eq!(store.stats().buckets, 0);
        assert!(take(&store, &other(b"one"), &slow, 1) && take(&store, &other(b"two"), &slow, 1));
        assert_eq!(store.stats().buckets, 2);
    });
}
