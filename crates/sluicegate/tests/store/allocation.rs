//! Allocations, counted one by one: none for a charge whose buckets are stored, and a bounded number of bytes
//! for all buckets together, which are freed again.

use std::time::Duration;

use allocation_counter::measure;
use sluicegate::{
    Algorithm, Limiter, LocalStore, Override, Overrides, Quota, Rate, Refill, Request, Rule,
    RuleSet, Space, Store,
};

use crate::store::support::{ManualStore, key, manual_store, part, shadow, sweep_all, tokens};

/// Documented maximum of bytes per bucket.
const BYTES_PER_BUCKET: u64 = 50;

/// Runs `work` often enough to see rare events, and returns the number of allocations.
fn allocations(mut work: impl FnMut()) -> u64 {
    // Allocations of a thread's first use happen now.
    work();
    measure(|| (0..1000).for_each(|_| work())).count_total
}

/// A store with a full bucket and an exhausted one.
fn store() -> ManualStore {
    let (store, _) = manual_store(1000);
    for (name, cost) in [("plenty", 1), ("more", 1), ("most", 1), ("nothing", 9000)] {
        store.charge_one_now(part(&key(&store, name), &tokens(9000), cost));
    }
    store
}

#[test]
fn a_charge_of_one_bucket_allocates_nothing() {
    let (store, quota) = (store(), tokens(9000));
    let (plenty, nothing) = (key(&store, "plenty"), key(&store, "nothing"));
    let granted = || assert!(store.charge_one_now(part(&plenty, &quota, 1)).is_granted());
    let denied = || assert!(!store.charge_one_now(part(&nothing, &quota, 1)).is_granted());
    let listed = || assert!(store.charge_now(&[part(&plenty, &quota, 1)])[0].is_granted());
    assert_eq!([allocations(granted), allocations(denied), allocations(listed)], [0, 0, 0]);
    // Alternating, so that no denial is answered without the lock.
    let turns = || {
        granted();
        denied();
    };
    assert_eq!(allocations(turns), 0);
}

#[test]
fn a_charge_of_several_buckets_allocates_nothing() {
    let (store, quota) = (store(), tokens(9000));
    let [plenty, more, most, nothing] =
        ["plenty", "more", "most", "nothing"].map(|name| key(&store, name));
    let three = || {
        let charges = [part(&plenty, &quota, 1), part(&more, &quota, 1), shadow(&most, &quota, 1)];
        assert!(store.charge_now(&charges)[0].is_granted());
    };
    let four = || {
        let charges = [&plenty, &more, &most, &nothing].map(|key| part(key, &quota, 1));
        assert!(!store.charge_now(&charges)[3].is_granted());
    };
    assert_eq!([allocations(three), allocations(four)], [0, 0]);
    let turns = || {
        three();
        four();
    };
    assert_eq!(allocations(turns), 0);
}

#[test]
fn keys_looks_and_refunds_allocate_nothing() {
    let (store, quota) = (store(), tokens(9000));
    let plenty = key(&store, "plenty");
    let long = [b'x'; 1000];
    let make_keys = || {
        store.key(Space::Rule(1), &[b"user", b"42"]);
        store.key(Space::Named("limiter"), &[&long]);
    };
    let look = || assert!(store.charge_one_now(part(&plenty, &quota, 0)).is_granted());
    let look_for_new = || {
        let new = key(&store, "new");
        assert!(store.charge_one_now(part(&new, &quota, 0)).is_granted());
    };
    let refund = || {
        store.charge_one_now(part(&plenty, &quota, 2));
        store.refund_now(&plenty, &quota, 1);
    };
    assert_eq!(allocations(make_keys), 0);
    assert_eq!([allocations(look), allocations(look_for_new), allocations(refund)], [0, 0, 0]);
}

/// A whole check finds rules and overrides, and makes keys and a verdict, all without allocating; also for
/// subjects with an override or without one.
#[test]
fn a_check_allocates_nothing() {
    let rule = |id, pattern| Rule::new(id, pattern, tokens(9000)).unwrap();
    let rules = [rule(1, "user:{user_id}"), rule(2, "{endpoint}:{ip}"), rule(3, "global")];
    let instead = [
        ("more", Override::Quota(tokens(50_000))),
        ("free", Override::Unlimited),
        ("out", Override::Blocked),
    ];
    let overrides = Overrides::new(instead.map(|(subject, one)| (1, subject.to_owned(), one)));
    let rules = RuleSet::new(rules.to_vec()).unwrap().with_overrides(overrides.unwrap());
    let limiter = Limiter::new(manual_store(1000).0, rules);
    for (user_id, is_allowed) in [("42", true), ("more", true), ("free", true), ("out", false)] {
        let check = || {
            let request = Request::new().user_id(user_id).ip("::1").endpoint("/");
            assert_eq!(limiter.check_now(&request).is_allowed(), is_allowed);
        };
        assert_eq!(allocations(check), 0, "{user_id}");
    }
    let reserve = || {
        let reservation = limiter.reserve_now(&Request::new().user_id("more"));
        reservation.commit_now(0);
    };
    assert_eq!(allocations(reserve), 0);
}

/// A new key of a full store is cheap for a flooding client, and must be cheap for the store.
#[test]
fn a_key_that_finds_no_room_allocates_nothing() {
    let (store, quota) = (manual_store(1).0, tokens(9000));
    store.charge_one_now(part(&key(&store, "first"), &quota, 1));
    let mut number = 0u64;
    let overflow = || {
        number += 1;
        let new = store.key(Space::Rule(1), &[&number.to_le_bytes()]);
        store.charge_one_now(part(&new, &quota, 1));
    };
    assert_eq!(allocations(overflow), 0);
}

/// T41: never more bytes than documented, plus 10 percent; and when every bucket is full they are freed,
/// including those of forms and of logs.
#[test]
fn t41_bytes_are_bounded_and_given_back() {
    const BUCKETS: u64 = 100_000;
    let (store, clock) = manual_store(BUCKETS as usize);
    let charge = |number: u64, quota: &Quota| {
        let new = store.key(Space::Rule(1), &[&number.to_le_bytes()]);
        store.charge_one_now(part(&new, quota, 1));
    };
    let mut filled = 0;
    let usage = measure(|| {
        filled =
            measure(|| (0..2 * BUCKETS).for_each(|number| charge(number, &tokens(100)))).bytes_max;
        clock.advance(Duration::from_hours(24));
        sweep_all(&store);
    });
    let promised = BUCKETS * BYTES_PER_BUCKET;
    assert!(filled <= promised + promised / 10, "{filled} of {promised}");
    // An empty shard keeps its smallest table: 256 bytes of slots, 64 of forms and some more.
    assert_eq!(store.stats().buckets, 0);
    assert!(usage.bytes_current <= 128 * 512, "{usage:?}");
    let kept = measure(|| {
        for number in 0..BUCKETS {
            let rate = Rate::new(1, Duration::from_micros(1 + number)).unwrap();
            let algorithm = Algorithm::ALL[number as usize % 3];
            let refill = Refill::Continuous;
            charge(number, &Quota::build(rate, algorithm, refill, None, None).unwrap());
        }
        clock.advance(Duration::from_hours(24));
        sweep_all(&store);
    });
    assert!(kept.bytes_current <= 128 * 512, "{kept:?}");
}

/// Memory that a bucket no longer needs is reused: its forms when its quota changes often, its logs when it
/// is evicted and comes back.
#[test]
fn forms_and_logs_are_used_again() {
    let (store, _) = manual_store(1000);
    let bucket = key(&store, "bucket");
    let window = Quota::per_day(100).unwrap().with_algorithm(Algorithm::SlidingWindow).unwrap();
    let kept = |work: &dyn Fn(u64)| {
        work(0);
        measure(|| (1..2000).for_each(work)).bytes_current
    };
    let change_form = |number| {
        let quota = Quota::new(1, Duration::from_hours(1 + number)).unwrap();
        store.charge_one_now(part(&bucket, &quota, 1));
    };
    let reset_log = |_| {
        assert!(store.charge_one_now(part(&bucket, &window, 1)).is_granted());
        assert!(store.reset_now(&bucket));
    };
    assert_eq!(kept(&change_form), 0);
    store.reset_now(&bucket);
    assert_eq!(kept(&reset_log), 0);
}
