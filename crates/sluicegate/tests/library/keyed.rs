//! The typed limiter.

use std::net::IpAddr;
use std::sync::Arc;

use sluicegate::{KeyedLimiter, ManualClock, MemoryStore};

use crate::library::support::{NOW, ms, quota};

fn store() -> (Arc<MemoryStore<ManualClock>>, ManualClock) {
    let clock = ManualClock::new(NOW);
    (Arc::new(MemoryStore::builder().clock(clock.clone()).build()), clock)
}

#[test]
fn every_key_has_its_bucket() {
    let (store, clock) = store();
    let limiter = KeyedLimiter::<IpAddr, _>::on(store, "login", quota("1/s burst 2"));
    let (one, other) = (IpAddr::from([203, 0, 113, 9]), IpAddr::from([203, 0, 113, 10]));
    assert_eq!(limiter.take(&one, 2).remaining, 0);
    assert_eq!(limiter.take(&one, 1).retry_after(), Some(ms(1000)));
    assert_eq!(limiter.take(&other, 1).remaining, 1);
    clock.advance(ms(1000));
    assert!(limiter.take(&one, 1).is_granted());
    assert_eq!(limiter.quota().capacity(), 2);
}

/// Two names on one store never share a bucket; one name does, as it says.
#[test]
fn names_keep_limiters_apart() {
    let (store, _) = store();
    let on = |name: &str| KeyedLimiter::<str, _>::on(Arc::clone(&store), name, quota("1/hour"));
    for name in ["a", "b", "", "ab", "a\0", "é"] {
        assert!(on(name).take("k", 1).is_granted(), "{name:?}");
        assert!(!on(name).take("k", 1).is_granted(), "{name:?}");
    }
    // Moving text from the name to the key gives another bucket.
    assert!(on("x").take("yz", 1).is_granted());
    assert!(on("xy").take("z", 1).is_granted());
    assert_eq!(store.stats().buckets, 8);
}

#[test]
fn owned_and_borrowed_keys_are_the_same() {
    let (store, _) = store();
    let borrowed = KeyedLimiter::<str, _>::on(Arc::clone(&store), "n", quota("1/hour"));
    let owned = KeyedLimiter::<String, _>::on(Arc::clone(&store), "n", quota("1/hour"));
    assert!(borrowed.take("k", 1).is_granted());
    assert!(!owned.take(&"k".to_owned(), 1).is_granted());
    let bytes = KeyedLimiter::<[u8], _>::on(Arc::clone(&store), "bytes", quota("1/hour"));
    let vectors = KeyedLimiter::<Vec<u8>, _>::on(store, "bytes", quota("1/hour"));
    assert!(bytes.take(b"k", 1).is_granted());
    assert!(!vectors.take(&b"k".to_vec(), 1).is_granted());
}

#[test]
fn keys_may_be_of_any_type() {
    let limiter = KeyedLimiter::<(u32, &str)>::new("pairs", quota("1/hour"));
    assert!(limiter.take(&(1, "a"), 1).is_granted());
    assert!(limiter.take(&(1, "b"), 1).is_granted());
    assert!(limiter.take(&(2, "a"), 1).is_granted());
    assert!(!limiter.take(&(1, "a"), 1).is_granted());
    // The parts of a key do not run into each other.
    let texts = KeyedLimiter::<(&str, &str)>::new("texts", quota("1/hour"));
    assert!(texts.take(&("ab", "c"), 1).is_granted());
    assert!(texts.take(&("a", "bc"), 1).is_granted());
    let all = KeyedLimiter::<()>::new("all", quota("1/hour"));
    assert!(all.take(&(), 1).is_granted());
    assert!(!all.take(&(), 1).is_granted());
}

#[test]
fn clones_share_everything() {
    let limiter = KeyedLimiter::<u64>::new("n", quota("1/hour"));
    let clone = limiter.clone();
    assert!(limiter.take(&1, 1).is_granted());
    assert!(!clone.take(&1, 1).is_granted());
    assert!(Arc::ptr_eq(limiter.store(), clone.store()));
    // Two of one name, each with a store of its own, do not.
    assert!(KeyedLimiter::<u64>::new("n", quota("1/hour")).take(&1, 1).is_granted());
}

#[test]
fn a_key_may_have_a_quota_of_its_own() {
    let (store, _) = store();
    let limiter = KeyedLimiter::<str, _>::on(store, "api", quota("1/hour burst 2"));
    let paid = quota("1/minute burst 10");
    assert_eq!(limiter.take_as("paying", &paid, 1).remaining, 9);
    // One bucket, whatever the quota: what is spent stays spent.
    assert_eq!(limiter.take("paying", 1).remaining, 0);
    assert_eq!(limiter.take("paying", 1).retry_after().map(|wait| wait.as_secs()), Some(3600));
    assert_eq!(limiter.take_as("paying", &paid, 1).remaining, 7);
    assert_eq!(limiter.take("other", 1).remaining, 1);
    // And it gets its tokens back under its own.
    assert_eq!(limiter.take_as("paying", &paid, 5).remaining, 2);
    assert_eq!(limiter.refund_as("paying", &paid, 3).remaining, 5);
}

#[test]
fn peek_refund_and_reset() {
    let (store, _) = store();
    let limiter = KeyedLimiter::<u8, _>::on(store, "n", quota("1/hour burst 3"));
    assert_eq!(limiter.peek(&1).remaining, 3);
    assert!(limiter.take(&1, 3).is_granted());
    assert_eq!(limiter.refund(&1, 1).remaining, 1);
    assert_eq!(limiter.refund(&1, 9).remaining, 3);
    assert!(!limiter.reset(&1), "a full bucket is not there");
    assert!(limiter.take(&1, 2).is_granted());
    assert!(limiter.reset(&1));
    assert_eq!(limiter.peek(&1).remaining, 3);
    assert!(limiter.take(&1, 4).is_never());
}

#[test]
fn it_says_what_it_is() {
    let limiter = KeyedLimiter::<str>::new("n", quota("1/hour burst 3"));
    assert!(format!("{limiter:?}").contains("KeyedLimiter"));
}
