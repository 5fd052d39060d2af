//! Buckets without rules: take, peek, refund, reset.

use std::time::Duration;

use sluicegate::{Limiter, Request, RuleSet};

use crate::library::support::{TestLimiter, limiter, ms, quota, rule};

fn bare() -> (TestLimiter, sluicegate::ManualClock) {
    limiter(Vec::new())
}

#[test]
fn taking_is_exact() {
    let (limiter, clock) = bare();
    let quota = quota("10/s burst 2");
    assert!(limiter.take_now("k", &quota, 1).is_granted());
    assert_eq!(limiter.take_now("k", &quota, 1).remaining, 0);
    let denied = limiter.take_now("k", &quota, 1);
    assert_eq!(denied.retry_after(), Some(ms(100)));
    clock.advance(ms(100) - Duration::from_micros(1));
    assert!(!limiter.take_now("k", &quota, 1).is_granted());
    clock.advance(Duration::from_micros(1));
    assert!(limiter.take_now("k", &quota, 1).is_granted());
}

#[test]
fn peeking_spends_nothing() {
    let (limiter, _) = bare();
    let quota = quota("1/s burst 3");
    for _ in 0..10 {
        assert_eq!(limiter.peek_now("k", &quota).remaining, 3);
    }
    assert!(limiter.take_now("k", &quota, 2).is_granted());
    let looked = limiter.peek_now("k", &quota);
    assert_eq!((looked.remaining, looked.limit, looked.reset_after_ms()), (1, 3, 2000));
}

#[test]
fn a_refund_stops_at_full() {
    let (limiter, _) = bare();
    let quota = quota("1/s burst 3");
    assert!(limiter.take_now("k", &quota, 3).is_granted());
    assert_eq!(limiter.refund_now("k", &quota, 2).remaining, 2);
    assert_eq!(limiter.refund_now("k", &quota, u64::MAX).remaining, 3);
    assert_eq!(limiter.store().stats().buckets, 0, "a full bucket is forgotten");
    assert_eq!(limiter.refund_now("never seen", &quota, 1).remaining, 3);
}

#[test]
fn a_reset_forgets() {
    let (limiter, _) = bare();
    let quota = quota("1/hour burst 3");
    assert!(!limiter.reset_now("k"));
    assert!(limiter.take_now("k", &quota, 3).is_granted());
    assert!(limiter.reset_now("k"));
    assert!(!limiter.reset_now("k"));
    assert_eq!(limiter.peek_now("k", &quota).remaining, 3);
}

#[test]
fn costs_at_the_edges() {
    let (limiter, _) = bare();
    let quota = quota("1/s burst 3");
    assert!(limiter.take_now("k", &quota, 4).is_never());
    assert!(limiter.take_now("k", &quota, u64::MAX).is_never());
    assert!(limiter.take_now("k", &quota, 0).is_granted());
    assert!(limiter.take_now("k", &quota, 3).is_granted());
}

/// A bucket taken from by key never shares a rule's bucket, whatever the key.
#[test]
fn buckets_of_rules_are_apart() {
    let (limiter, _) = limiter(vec![rule(1, "{user_id}", "1/hour")]);
    let hour = quota("1/hour");
    assert!(limiter.check_now(&Request::new().user_id("k")).is_allowed());
    assert!(limiter.take_now("k", &hour, 1).is_granted());
    assert!(limiter.take_now("1:k", &hour, 1).is_granted());
    assert!(limiter.take_now("", &hour, 1).is_granted());
    assert!(!limiter.take_now("", &hour, 1).is_granted());
}

/// Two limiters over one store share its buckets, each by its own rules.
#[test]
fn limiters_over_one_store_share_buckets() {
    let (one, _) = limiter(vec![rule(1, "a", "1/hour burst 2")]);
    let other = Limiter::on(std::sync::Arc::clone(one.store()), RuleSet::default());
    let hour = quota("1/hour");
    assert!(one.take_now("k", &hour, 1).is_granted());
    assert!(!other.take_now("k", &hour, 1).is_granted());
    assert!(other.check_now(&Request::new()).is_allowed(), "and has no rules");
}

#[cfg(feature = "tokio")]
#[tokio::test]
async fn the_asynchronous_twins_say_the_same() {
    let quota = quota("1/hour burst 3");
    let limiter = Limiter::new(
        sluicegate::MemoryStore::new(),
        RuleSet::new(vec![rule(1, "a", "1/hour")]).unwrap(),
    );
    assert_eq!(limiter.take("k", &quota, 2).await.unwrap().remaining, 1);
    assert_eq!(limiter.peek("k", &quota).await.unwrap().remaining, 1);
    assert_eq!(limiter.refund("k", &quota, 1).await.unwrap().remaining, 2);
    assert!(limiter.reset("k").await.unwrap());
    assert_eq!(limiter.peek_now("k", &quota).remaining, 3);

    assert!(limiter.check(&Request::new()).await.unwrap().is_allowed());
    let denied = limiter.check(&Request::new()).await.unwrap();
    assert_eq!(denied.violated().unwrap().rule.rule_id(), 1);
    assert!(!limiter.reserve(&Request::new()).await.unwrap().verdict().is_allowed());
}
