//! `until_granted`, on a clock that the runtime's pauses.

use std::sync::Arc;
use std::time::Duration;

use sluicegate::{
    Algorithm, Clock, KeyedLimiter, Limiter, MemoryStore, Micros, Quota, Request, Rule, RuleSet,
    WaitError,
};
use tokio::time::{Instant, advance, timeout};

use crate::library::support::{NOW, ms, quota, rule, secs};

/// The runtime's time, as a clock for stores.
#[derive(Debug)]
struct RuntimeClock(Instant);

impl Clock for RuntimeClock {
    fn now(&self) -> Micros {
        NOW.after(self.0.elapsed())
    }
}

type Store = MemoryStore<RuntimeClock>;

fn keyed(quota: Quota) -> KeyedLimiter<str, RuntimeClock> {
    let store: Store = MemoryStore::builder().clock(RuntimeClock(Instant::now())).build();
    KeyedLimiter::on(Arc::new(store), "test", quota)
}

fn limiter() -> Limiter<Store> {
    let store = MemoryStore::builder().clock(RuntimeClock(Instant::now())).build();
    Limiter::new(store, RuleSet::default())
}

#[tokio::test(start_paused = true)]
async fn it_waits_exactly_as_long_as_it_is_told() {
    let limiter = keyed(quota("10/s burst 1"));
    let started = Instant::now();
    for granted in 0..5u64 {
        limiter.until_granted("k", 1, secs(1)).await.unwrap();
        assert_eq!(started.elapsed(), ms(100) * u32::try_from(granted).unwrap());
    }

    let limiter = self::limiter();
    let (started, quota) = (Instant::now(), quota("10/s burst 5"));
    limiter.until_granted("k", &quota, 5, secs(1)).await.unwrap();
    let decision = limiter.until_granted("k", &quota, 3, secs(1)).await.unwrap();
    assert_eq!((started.elapsed(), decision.remaining), (ms(300), 0));
}

/// The runtime's timers go by milliseconds: later than told by less than one, never earlier.
#[tokio::test(start_paused = true)]
async fn a_fraction_of_a_millisecond_is_rounded_up() {
    let limiter = keyed(quota("3/s burst 1"));
    let started = Instant::now();
    limiter.until_granted("k", 1, secs(1)).await.unwrap();
    limiter.until_granted("k", 1, secs(1)).await.unwrap();
    let exactly = Duration::from_micros(333_334);
    assert!((exactly..exactly + ms(1)).contains(&started.elapsed()), "{:?}", started.elapsed());
}

#[tokio::test(start_paused = true)]
async fn what_would_be_too_late_is_refused_at_once() {
    let limiter = keyed(quota("10/s burst 1"));
    let started = Instant::now();
    assert!(limiter.take("k", 1).is_granted());
    let just_too_short = ms(100) - Duration::from_micros(1);
    let refused = limiter.until_granted("k", 1, just_too_short).await;
    assert_eq!(refused, Err(WaitError::TooLate { retry_after: ms(100) }));
    let refused = limiter.until_granted("k", 1, Duration::ZERO).await;
    assert_eq!(refused, Err(WaitError::TooLate { retry_after: ms(100) }));
    assert_eq!(started.elapsed(), Duration::ZERO);
    assert_eq!(refused.unwrap_err().to_string(), "the wait of 100 ms exceeds the deadline");
    // Refused, nothing was spent; just in time, it is granted.
    assert!(limiter.until_granted("k", 1, ms(100)).await.is_ok());
    assert_eq!(started.elapsed(), ms(100));
    // What is there needs no time.
    advance(ms(100)).await;
    assert!(limiter.until_granted("k", 1, Duration::ZERO).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn what_can_never_be_is_refused_at_once() {
    let started = Instant::now();
    let refused = keyed(quota("10/s burst 2")).until_granted("k", 3, Duration::MAX).await;
    assert_eq!(refused, Err(WaitError::Never));
    let quota = quota("10/s");
    let refused = limiter().until_granted("k", &quota, u64::MAX, Duration::MAX).await;
    assert_eq!(refused, Err(WaitError::Never));
    assert_eq!(started.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn dropping_it_spends_nothing() {
    let limiter = keyed(quota("10/s burst 1"));
    assert!(limiter.take("k", 1).is_granted());
    for _ in 0..20 {
        let given_up = timeout(ms(1), limiter.until_granted("k", 1, secs(1))).await;
        assert!(given_up.is_err());
    }
    // Its first look was 20 ms ago; had any of them spent anything, this would have to wait longer.
    assert_eq!(limiter.take("k", 1).retry_after(), Some(ms(80)));
    advance(ms(80)).await;
    assert!(limiter.take("k", 1).is_granted());
}

#[tokio::test(start_paused = true)]
async fn a_future_that_was_never_polled_spends_nothing() {
    let limiter = keyed(quota("1/hour"));
    drop(limiter.until_granted("k", 1, secs(1)));
    assert!(limiter.take("k", 1).is_granted());
}

/// Another charge takes the token it was waiting for: it waits for the next one, or gives up as soon as
/// that is too late.
#[tokio::test(start_paused = true)]
async fn others_may_be_faster() {
    let limiter = keyed(quota("10/s burst 1"));
    assert!(limiter.take("k", 1).is_granted());
    let started = Instant::now();
    let (one, two, three) = tokio::join!(
        limiter.until_granted("k", 1, ms(300)),
        limiter.until_granted("k", 1, ms(200)),
        limiter.until_granted("k", 1, ms(199)),
    );
    let granted = [&one, &two, &three].iter().filter(|result| result.is_ok()).count();
    assert_eq!(granted, 2);
    assert_eq!(three, Err(WaitError::TooLate { retry_after: ms(100) }));
    assert_eq!(started.elapsed(), ms(200));
}

/// Twenty wait for tokens that come ten a second: all of them get one, the last after two seconds.
#[tokio::test(start_paused = true)]
async fn all_who_wait_get_through_in_time() {
    let limiter = Arc::new(keyed(quota("10/s burst 1")));
    assert!(limiter.take("k", 1).is_granted());
    let started = Instant::now();
    let waiters: Vec<_> = (0..20)
        .map(|_| {
            let limiter = Arc::clone(&limiter);
            tokio::spawn(async move {
                limiter.until_granted("k", 1, secs(2)).await.map(|_| started.elapsed())
            })
        })
        .collect();
    let mut granted_at = Vec::new();
    for waiter in waiters {
        granted_at.push(waiter.await.unwrap().unwrap());
    }
    granted_at.sort_unstable();
    let expected: Vec<_> = (1..=20).map(|turn| ms(100) * turn).collect();
    assert_eq!(granted_at, expected);
}

#[tokio::test(start_paused = true)]
async fn a_key_that_waits_holds_up_no_other() {
    let limiter = keyed(quota("1/hour"));
    assert!(limiter.take("busy", 1).is_granted());
    let started = Instant::now();
    let (busy, free) = tokio::join!(limiter.until_granted("busy", 1, secs(7200)), async {
        limiter.until_granted("free", 1, secs(1)).await.map(|_| started.elapsed())
    },);
    assert_eq!(free, Ok(Duration::ZERO));
    assert!(busy.is_ok());
    assert_eq!(started.elapsed(), secs(3600));
}

/// A queue grants at once and says how long the work must wait; that is the caller's to do.
#[tokio::test(start_paused = true)]
async fn a_queue_has_its_own_delay() {
    let queue = quota("1/s burst 2").with_algorithm(Algorithm::LeakyBucket).unwrap();
    let limiter = keyed(queue);
    let started = Instant::now();
    let mut delays = Vec::new();
    for _ in 0..3 {
        delays.push(limiter.until_granted("k", 1, secs(9)).await.unwrap().delay());
    }
    assert_eq!(delays, [secs(0), secs(1), secs(1)]);
    assert_eq!(started.elapsed(), secs(1), "the third waited for room in the queue");
}

/// The delay is part of the deadline: work that could not start in time is denied.
#[tokio::test(start_paused = true)]
async fn a_queue_that_is_too_long_is_refused_at_once() {
    let queue = quota("1/s burst 10").with_algorithm(Algorithm::LeakyBucket).unwrap();
    let limiter = keyed(queue);
    let started = Instant::now();
    for delay in 0..4 {
        assert_eq!(limiter.until_granted("k", 1, secs(3)).await.unwrap().delay(), secs(delay));
    }
    let refused = limiter.until_granted("k", 1, secs(3)).await;
    assert_eq!(refused, Err(WaitError::TooLate { retry_after: secs(4) }));
    assert_eq!(started.elapsed(), secs(0));
    assert_eq!(limiter.peek("k").remaining, 6, "and nothing was spent");
}

/// The clock of the store stands still, so that the tokens never come: it gives up in time.
#[tokio::test(start_paused = true)]
async fn it_ends_even_if_the_stores_clock_does_not_move() {
    let clock = sluicegate::ManualClock::new(NOW);
    let store = Arc::new(MemoryStore::builder().clock(clock).build());
    let limiter = KeyedLimiter::<str, _>::on(store, "test", quota("10/s burst 1"));
    assert!(limiter.take("k", 1).is_granted());
    let started = Instant::now();
    let refused = limiter.until_granted("k", 1, ms(950)).await;
    assert_eq!(refused, Err(WaitError::TooLate { retry_after: ms(100) }));
    assert_eq!(started.elapsed(), ms(900));
}

fn of_rules(rules: Vec<Rule>) -> Limiter<Store> {
    let store = MemoryStore::builder().clock(RuntimeClock(Instant::now())).build();
    Limiter::new(store, RuleSet::new(rules).unwrap())
}

#[tokio::test(start_paused = true)]
async fn a_request_waits_for_all_of_its_tiers() {
    let limiter = of_rules(vec![rule(1, "a", "10/s burst 1"), rule(2, "b", "5/s burst 1")]);
    let started = Instant::now();
    for granted in 0..4 {
        let verdict = limiter.until_allowed(&Request::new(), secs(1)).await.unwrap();
        assert!(verdict.is_allowed());
        assert_eq!(started.elapsed(), ms(200) * granted);
    }
    let refused = limiter.until_allowed(&Request::new(), ms(199)).await.unwrap_err();
    assert_eq!(refused, WaitError::TooLate { retry_after: ms(200) });
    let refused = limiter.until_allowed(&Request::new().cost(2), secs(9)).await.unwrap_err();
    assert_eq!(refused, WaitError::Never);
    assert_eq!(started.elapsed(), ms(600), "both at once");
    // Refused, nothing was spent.
    assert!(limiter.until_allowed(&Request::new(), ms(200)).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_request_that_would_stand_in_line_for_too_long_is_taken_out_again() {
    let queue = quota("1/s burst 10").with_algorithm(Algorithm::LeakyBucket).unwrap();
    let limiter = of_rules(vec![Rule::new(1, "a", queue).unwrap(), rule(2, "b", "1/hour burst 9")]);
    for delay in 0..3 {
        let verdict = limiter.until_allowed(&Request::new(), secs(2)).await.unwrap();
        assert_eq!(verdict.delay(), secs(delay));
    }
    for _ in 0..3 {
        let refused = limiter.until_allowed(&Request::new(), secs(2)).await.unwrap_err();
        assert_eq!(refused, WaitError::TooLate { retry_after: secs(3) });
    }
    let verdict = limiter.check(&Request::new().cost(0)).await.unwrap();
    let left: Vec<_> = verdict.tiers().map(|tier| tier.decision.remaining).collect();
    assert_eq!(left, [7, 6]);
}

/// Rules that were replaced meanwhile count at the next look.
#[tokio::test(start_paused = true)]
async fn a_limit_that_is_lifted_meanwhile_is_lifted() {
    let limiter = of_rules(vec![rule(1, "a", "1/s burst 1")]);
    assert!(limiter.check(&Request::new()).await.unwrap().is_allowed());
    let waiting = tokio::spawn({
        let limiter = limiter.clone();
        async move { limiter.until_allowed(&Request::new(), secs(1)).await.map(drop) }
    });
    advance(ms(500)).await;
    limiter.replace_rules(RuleSet::default());
    assert!(waiting.await.unwrap().is_ok());
}
