//! All algorithms in one verdict, delays, K1 never, K2 peek.

use std::time::Duration;

use sluicegate::{Algorithm, Micros, Quota, Refill, Request, Rule};

use crate::library::support::{limiter, ms, quota, remaining, rule, secs, violated};

const ALL: Request<'_> = Request::new();

fn counted(rule_id: u64, quota: &str, algorithm: Algorithm) -> Rule {
    let quota = self::quota(quota).with_algorithm(algorithm).unwrap();
    Rule::new(rule_id, &format!("{}{rule_id}", algorithm.name()), quota).unwrap()
}

#[test]
fn a_verdicts_delay_is_the_longest() {
    let rules = vec![
        counted(1, "10/s burst 9", Algorithm::LeakyBucket),
        counted(2, "2/s burst 9", Algorithm::LeakyBucket),
        rule(3, "bucket", "1/s burst 9"),
    ];
    let (limiter, clock) = limiter(rules);
    let delays: Vec<_> = (0..3).map(|_| limiter.check_now(&ALL).delay()).collect();
    assert_eq!(delays, [ms(0), ms(500), ms(1000)]);
    clock.advance(ms(1200));
    let verdict = limiter.check_now(&ALL);
    assert_eq!(verdict.delay(), ms(300));
    let each: Vec<_> = verdict.tiers().map(|tier| tier.decision.delay()).collect();
    assert_eq!(each, [ms(0), ms(300), ms(0)]);
}

#[test]
fn what_is_denied_has_no_delay() {
    let rules =
        vec![counted(1, "1/s burst 9", Algorithm::LeakyBucket), rule(2, "bucket", "1/hour")];
    let (limiter, _) = limiter(rules);
    assert!(limiter.check_now(&ALL).is_allowed());
    let verdict = limiter.check_now(&ALL);
    assert_eq!((violated(&verdict), verdict.delay()), (Some(2), Duration::ZERO));
}

#[test]
fn a_queue_is_as_long_as_its_longest_wait() {
    let queue = quota("1/s burst 100").with_algorithm(Algorithm::LeakyBucket).unwrap();
    let rules = vec![Rule::new(1, "a", queue.with_max_wait(secs(2)).unwrap()).unwrap()];
    let (limiter, _) = limiter(rules);
    let delays: Vec<_> = (0..3).map(|_| limiter.check_now(&ALL).delay()).collect();
    assert_eq!(delays, [secs(0), secs(1), secs(2)]);
    let verdict = limiter.check_now(&ALL);
    assert_eq!((verdict.is_allowed(), verdict.retry_after()), (false, Some(secs(1))));
}

/// One rule for every algorithm. Each admits exactly five requests at first; then the rule with the
/// longest wait is named with the exact wait, and no rule is charged until all grant.
#[test]
fn all_algorithms_decide_together() {
    let interval = Quota::per_minute(5).and_then(|quota| quota.with_refill(Refill::Interval));
    let rules = vec![
        rule(1, "bucket", "5/s"),
        Rule::new(2, "interval", interval.unwrap()).unwrap(),
        counted(3, "5 per 10s", Algorithm::FixedWindow),
        counted(4, "5 per 20s", Algorithm::SlidingWindow),
        counted(5, "5 per 30s", Algorithm::SlidingCounter),
        counted(6, "5 per 5s burst 5", Algorithm::LeakyBucket),
    ];
    let (limiter, clock) = limiter(rules);
    // The start of a window for all of them.
    clock.set(Micros::new(1_700_000_040_000_000));
    for _ in 0..5 {
        assert!(limiter.check_now(&ALL).is_allowed());
    }
    for _ in 0..50 {
        let verdict = limiter.check_now(&ALL);
        assert_eq!((violated(&verdict), verdict.retry_after()), (Some(2), Some(secs(60))));
        let denied: Vec<u64> = verdict
            .tiers()
            .filter(|tier| !tier.decision.is_granted())
            .map(|tier| tier.rule.rule_id())
            .collect();
        assert_eq!(denied, [1, 2, 3, 4, 5, 6]);
    }
    clock.advance(secs(60) - Duration::from_micros(1));
    let verdict = limiter.check_now(&ALL);
    assert_eq!(
        (violated(&verdict), verdict.retry_after()),
        (Some(2), Some(Duration::from_micros(1)))
    );
    clock.advance(Duration::from_micros(1));
    assert!(limiter.check_now(&ALL).is_allowed());
    assert_eq!(remaining(&limiter, &ALL), [4; 6]);
}

#[test]
fn k1_more_than_a_bucket_holds_is_never() {
    for algorithm in Algorithm::ALL {
        let (limiter, _) = limiter(vec![counted(1, "5/s", algorithm), rule(2, "other", "9/s")]);
        for cost in [6, 1 << 53, u64::MAX] {
            let verdict = limiter.check_now(&ALL.cost(cost));
            assert_eq!(
                (violated(&verdict), verdict.retry_after()),
                (Some(1), None),
                "{algorithm:?}"
            );
            assert!(verdict.violated().unwrap().decision.is_never());
        }
        assert_eq!(remaining(&limiter, &ALL), [5, 9]);
        assert!(limiter.check_now(&ALL.cost(5)).is_allowed());
    }
}

#[test]
fn k2_a_cost_of_zero_only_looks() {
    for algorithm in Algorithm::ALL {
        let (limiter, _) =
            limiter(vec![counted(1, "2/s", algorithm), rule(2, "other", "1/s burst 9")]);
        for _ in 0..10 {
            assert!(limiter.check_now(&ALL.cost(0)).is_allowed());
        }
        assert_eq!(limiter.store().stats().buckets, 0, "nothing is remembered of a look");
        assert!(limiter.check_now(&ALL.cost(2)).is_allowed());
        // An empty bucket may be looked at too, and shows when it will be full.
        let verdict = limiter.check_now(&ALL.cost(0));
        assert!(verdict.is_allowed(), "{algorithm:?}");
        let tightest = verdict.tightest().unwrap();
        assert_eq!((tightest.rule.rule_id(), tightest.decision.remaining), (1, 0));
        assert!(tightest.decision.reset_after > 0);
    }
}
