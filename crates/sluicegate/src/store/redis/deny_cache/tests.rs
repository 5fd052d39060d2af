//! Guarantees of the deny cache, on a manual clock.

use std::time::Duration;

use proptest::prelude::*;
use sluicegate_core::{Algorithm, Rate, Refill, State, decide};

use super::super::decide::decisions;
use super::*;
use crate::clock::{ManualClock, SystemClock};
use crate::store::Space;

/// The server's clock differs from ours.
const SERVER_NOW: Micros = Micros::new(1_700_000_000_000_000);
const LOCAL_NOW: Micros = Micros::new(5_000_000);

fn key(name: impl std::fmt::Display) -> RedisKey {
    RedisKey::new("sg", Space::Take, &[name.to_string().as_bytes()])
}

fn part(name: &str, quota: Quota, cost: u64, mode: Mode) -> Part {
    Part { key: key(name), quota, cost, mode, is_probe: false }
}

fn charge(part: &Part) -> Charge<'_, RedisKey> {
    let Part { key, quota, cost, mode, is_probe } = part;
    Charge::new(key, quota, *cost).with_mode(*mode).with_is_probe(*is_probe)
}

/// Ten a second, with this many tokens left.
fn ten_with(left: u64) -> (Quota, Seen) {
    let full_at = SERVER_NOW.get() + (10 - left) * 100_000;
    (Quota::per_second(10).unwrap(), Seen::State(State { a: full_at, b: 0 }))
}

fn cache(max_entries: usize) -> (DenyCache<ManualClock>, ManualClock) {
    let clock = ManualClock::new(LOCAL_NOW);
    (DenyCache::new(max_entries, clock.clone()), clock)
}

/// Inserts a charge that Redis denied, as the store does.
fn deny(cache: &DenyCache<ManualClock>, ticket: Ticket, parts: &[Part], seen: &[Seen]) {
    let seen = seen.iter().copied().collect();
    let reply = Reply { now: SERVER_NOW, done: false, repaired: 0, seen };
    cache.insert(ticket, parts, &reply, &decisions(parts, &reply).unwrap());
}

fn ask(cache: &DenyCache<ManualClock>, parts: &[Part]) -> Option<Decisions> {
    cache.answer(&parts.iter().map(charge).collect::<Vec<_>>())
}

fn outcome(cache: &DenyCache<ManualClock>, part: &Part) -> Option<Outcome> {
    ask(cache, std::slice::from_ref(part)).map(|decisions| decisions[0].outcome)
}

#[test]
fn the_wait_is_counted_down_and_over_at_its_very_microsecond() {
    let (cache, clock) = cache(100);
    let (quota, seen) = ten_with(3);
    let five = part("a", quota, 5, Mode::Enforce);
    let ticket = cache.ticket();
    clock.advance(Duration::from_micros(700)); // the round trip
    deny(&cache, ticket, std::slice::from_ref(&five), &[seen]);
    let denied = |retry_after| Some(Outcome::Denied { retry_after });
    assert_eq!(outcome(&cache, &five), denied(200_000 - 700));
    clock.set(LOCAL_NOW.after(Duration::from_micros(199_999)));
    assert_eq!(outcome(&cache, &five), denied(1));
    clock.advance(Duration::from_micros(1));
    assert_eq!(outcome(&cache, &five), None);
}

#[test]
fn probes_are_remembered_and_answered_as_charges_are() {
    let (cache, _) = cache(100);
    let (quota, seen) = ten_with(3);
    let paid = part("b", quota, 1, Mode::Enforce);
    let probe = Part { is_probe: true, ..part("a", quota, 5, Mode::Enforce) };
    let parts = [paid.clone(), probe.clone()];
    deny(&cache, cache.ticket(), &parts, &[seen, seen]);
    let answer = ask(&cache, &parts).unwrap();
    assert!(answer[0].is_granted());
    assert_eq!(answer[1].outcome, Outcome::Denied { retry_after: 200_000 });
    // An entry that denies a probe denies a charge.
    let charge = Part { is_probe: false, ..probe.clone() };
    assert_eq!(outcome(&cache, &charge), Some(Outcome::Denied { retry_after: 200_000 }));
    // A granted probe takes nothing: the entry of its bucket stays.
    let reply =
        Reply { now: SERVER_NOW, done: true, repaired: 0, seen: [seen].into_iter().collect() };
    let granted = Part { cost: 1, ..probe };
    let granted = std::slice::from_ref(&granted);
    cache.insert(cache.ticket(), granted, &reply, &decisions(granted, &reply).unwrap());
    assert!(outcome(&cache, &charge).is_some());
}

#[test]
fn any_cost_is_answered_from_the_state() {
    let (cache, clock) = cache(100);
    let (quota, seen) = ten_with(3);
    deny(&cache, cache.ticket(), &[part("a", quota, 9, Mode::Enforce)], &[seen]);
    let ask = |cost| outcome(&cache, &part("a", quota, cost, Mode::Enforce));
    assert_eq!(ask(3), None);
    assert_eq!(ask(4), Some(Outcome::Denied { retry_after: 100_000 }));
    assert_eq!(ask(11), Some(Outcome::Never));
    assert_eq!(ask(0), None);
    clock.advance(Duration::from_millis(100));
    assert_eq!(ask(4), None);
    assert_eq!(ask(5), Some(Outcome::Denied { retry_after: 100_000 }));
}

/// A smaller charge in between makes the wait of the larger one longer: Redis has to be asked.
#[test]
fn a_smaller_grant_removes_the_entry() {
    let (cache, clock) = cache(100);
    let (quota, seen) = ten_with(4);
    let five = part("a", quota, 5, Mode::Enforce);
    let other = part("b", quota, 5, Mode::Enforce);
    for part in [&five, &other] {
        deny(&cache, cache.ticket(), std::slice::from_ref(part), &[seen]);
    }
    let grant = |ticket, cost| {
        let parts = [part("a", quota, cost, Mode::Enforce)];
        let reply =
            Reply { now: SERVER_NOW, done: true, repaired: 0, seen: [seen].into_iter().collect() };
        cache.insert(ticket, &parts, &reply, &decisions(&parts, &reply).unwrap());
    };
    grant(cache.ticket(), 0);
    assert!(outcome(&cache, &five).is_some(), "a look takes nothing");
    let early = cache.ticket();
    clock.advance(Duration::from_micros(1));
    grant(cache.ticket(), 1);
    assert_eq!(outcome(&cache, &five), None);
    assert!(outcome(&cache, &other).is_some(), "others stay");
    deny(&cache, cache.ticket(), std::slice::from_ref(&five), &[seen]);
    grant(early, 1);
    assert!(outcome(&cache, &five).is_some(), "a reply that comes late drops nothing newer");
}

#[test]
fn an_entry_lives_a_second_at_most() {
    let (cache, clock) = cache(100);
    let quota = Quota::per_hour(1).unwrap();
    let seen = Seen::State(decide(&quota, None, SERVER_NOW, 1).1.unwrap());
    for cost in [1, 2] {
        let part = part("a", quota, cost, Mode::Enforce);
        deny(&cache, cache.ticket(), std::slice::from_ref(&part), &[seen]);
        clock.advance(Duration::from_micros(LIFETIME_MAX_US - 1));
        assert!(outcome(&cache, &part).is_some());
        clock.advance(Duration::from_micros(1));
        assert_eq!(outcome(&cache, &part), None);
    }
}

#[test]
fn a_reply_that_comes_after_the_wait_is_not_remembered() {
    let (cache, clock) = cache(100);
    let (quota, seen) = ten_with(0);
    let ticket = cache.ticket();
    clock.advance(Duration::from_millis(100));
    deny(&cache, ticket, &[part("a", quota, 1, Mode::Enforce)], &[seen]);
    assert_eq!(cache.stats().entries, 0);
}

#[test]
fn another_quota_bucket_or_mode_is_not_answered() {
    let (cache, _) = cache(100);
    let (quota, seen) = ten_with(0);
    let shadow = part("s", quota, 1, Mode::Shadow);
    let parts = [part("a", quota, 1, Mode::Enforce), shadow.clone()];
    deny(&cache, cache.ticket(), &parts, &[seen, seen]);
    assert_eq!(cache.stats().entries, 1);
    let other = quota.with_capacity(11).unwrap();
    assert_eq!(outcome(&cache, &part("a", other, 1, Mode::Enforce)), None);
    assert_eq!(outcome(&cache, &part("b", quota, 1, Mode::Enforce)), None);
    assert_eq!(outcome(&cache, &part("a", quota, 1, Mode::Shadow)), None);
    assert_eq!(outcome(&cache, &part("s", quota, 1, Mode::Enforce)), None);
    let twice = [parts[0].clone(), parts[0].clone()];
    assert_eq!(ask(&cache, &twice), None);
    assert!(ask(&cache, &parts).is_some());
    assert_eq!(cache.stats(), DenyCacheStats { entries: 1, hits: 1 });
}

#[test]
fn other_tiers_repeat_their_last_figures() {
    let (cache, clock) = cache(100);
    let quota = Quota::per_second(10).unwrap();
    let names = [("a", 1), ("granted", 1), ("shadow", 9), ("also", 8)];
    let mut parts = names.map(|(name, cost)| part(name, quota, cost, Mode::Enforce));
    parts[2].mode = Mode::Shadow;
    let seen = [0, 4, 7, 7].map(|left| ten_with(left).1);
    deny(&cache, cache.ticket(), &parts, &seen);
    assert_eq!(cache.stats().entries, 2);
    clock.advance(Duration::from_millis(40));

    let mut requests = parts.to_vec();
    requests.push(part("new", quota, 2, Mode::Enforce));
    requests.push(part("never", quota, 11, Mode::Enforce));
    let decided = ask(&cache, &requests).unwrap();
    let granted = Outcome::Granted { delay: 0 };
    let denied = |retry_after| Outcome::Denied { retry_after };
    let outcomes: Vec<_> = decided.iter().map(|decision| decision.outcome).collect();
    let expected =
        [denied(60_000), granted, denied(160_000), denied(60_000), granted, Outcome::Never];
    assert_eq!(outcomes, expected);
    let left: Vec<_> = decided.iter().map(|decision| decision.remaining).collect();
    assert_eq!(left, [0, 4, 7, 7, 10, 10]);

    // A tier with an entry of its own that grants now: its current figures.
    requests[3].cost = 7;
    let decided = ask(&cache, &requests).unwrap();
    assert_eq!((decided[3].outcome, decided[3].remaining), (granted, 7));
    // A peek is granted.
    requests[2].cost = 0;
    assert_eq!(ask(&cache, &requests).unwrap()[2].outcome, granted);
    // Figures of another quota do not apply.
    requests[1].quota = quota.with_capacity(20).unwrap();
    let decided = ask(&cache, &requests).unwrap();
    assert_eq!((decided[1].limit, decided[1].remaining), (20, 20));
    // A tier that was reset since is not shown as denied.
    requests[3].cost = 8;
    assert!(!ask(&cache, &requests).unwrap()[3].is_granted());
    cache.forget(&requests[3].key);
    assert!(ask(&cache, &requests).unwrap()[3].is_granted());
}

#[test]
fn figures_are_remembered_of_a_few_tiers_only() {
    let (cache, _) = cache(100);
    let (quota, empty) = ten_with(0);
    let names: Vec<_> = (0..20).map(|number| number.to_string()).collect();
    let parts: Vec<_> = names.iter().map(|name| part(name, quota, 1, Mode::Enforce)).collect();
    let mut seen = vec![ten_with(5).1; 20];
    seen[0] = empty;
    deny(&cache, cache.ticket(), &parts, &seen);
    let decided = ask(&cache, &parts).unwrap();
    let left: Vec<_> = decided.iter().map(|decision| decision.remaining).collect();
    assert_eq!(left[..=OTHERS_MAX], [0, 5, 5, 5, 5, 5, 5, 5, 5]);
    assert!(left[OTHERS_MAX + 1..].iter().all(|left| *left == 10));
}

#[test]
fn logs_are_answered_for_the_cost_that_was_denied() {
    let (cache, clock) = cache(100);
    let quota = Quota::per_second(10).unwrap();
    let quota = quota.with_algorithm(Algorithm::SlidingWindow).unwrap();
    let ago = |us| SERVER_NOW.get() - us;
    let seen = Seen::Log { used: 8, newest: ago(100_000), leaving: ago(600_000) };
    deny(&cache, cache.ticket(), &[part("a", quota, 4, Mode::Enforce)], &[seen]);
    let ask = |cost| outcome(&cache, &part("a", quota, cost, Mode::Enforce));
    for other in [1, 3, 5] {
        assert_eq!(ask(other), None);
    }
    clock.advance(Duration::from_micros(399_999));
    assert_eq!(ask(4), Some(Outcome::Denied { retry_after: 1 }));
    clock.advance(Duration::from_micros(1));
    assert_eq!(ask(4), None);
}

#[test]
fn an_invalidated_entry_is_not_restored_by_a_late_denial() {
    let (cache, _) = cache(100);
    let (quota, seen) = ten_with(0);
    let parts = [part("a", quota, 1, Mode::Enforce)];
    let early = cache.ticket();
    deny(&cache, early, &parts, &[seen]);
    cache.forget(&parts[0].key);
    assert_eq!(ask(&cache, &parts), None);
    deny(&cache, early, &parts, &[seen]);
    assert_eq!(ask(&cache, &parts), None);
    let late = cache.ticket();
    deny(&cache, late, &parts, &[seen]);
    assert!(ask(&cache, &parts).is_some());
    cache.forget(&parts[0].key);
    deny(&cache, late, &parts, &[seen]);
    assert_eq!((ask(&cache, &parts), cache.stats().entries), (None, 0));
}

#[test]
fn forgetting_one_bucket_does_not_keep_others_from_being_remembered() {
    let (cache, _) = cache(10_000);
    let (quota, seen) = ten_with(0);
    let ticket = cache.ticket();
    cache.forget(&key("forgotten"));
    for number in 0..1000 {
        let part = part(&number.to_string(), quota, 1, Mode::Enforce);
        deny(&cache, ticket, &[part], &[seen]);
    }
    // All but those of one shard of 64.
    assert!(cache.stats().entries > 900);
}

#[test]
fn a_later_denial_is_not_replaced_by_an_earlier_one() {
    let (cache, clock) = cache(100);
    let quota = Quota::per_second(10).unwrap();
    let parts = [part("a", quota, 9, Mode::Enforce)];
    let early = cache.ticket();
    clock.advance(Duration::from_millis(1));
    deny(&cache, cache.ticket(), &parts, &[ten_with(0).1]);
    deny(&cache, early, &parts, &[ten_with(8).1]);
    assert_eq!(outcome(&cache, &parts[0]), Some(Outcome::Denied { retry_after: 900_000 }));
}

#[test]
fn there_are_never_more_entries_than_allowed() {
    let (quota, seen) = ten_with(0);
    for max in [0, 1, 3, 64, 100] {
        let (cache, clock) = cache(max);
        for number in 0..2000 {
            let part = part(&number.to_string(), quota, 1, Mode::Enforce);
            deny(&cache, cache.ticket(), std::slice::from_ref(&part), &[seen]);
            assert!(cache.stats().entries <= max);
            assert_eq!(outcome(&cache, &part).is_some(), max > 0);
        }
        assert_eq!(cache.stats().entries, max);
        let held: usize = cache.shards.iter().map(|shard| shard.lock().entries.len()).sum();
        assert_eq!(held, max);
        // Expired entries are removed on the next access.
        clock.advance(Duration::from_secs(2));
        for number in 0..2000 {
            let _ = outcome(&cache, &part(&number.to_string(), quota, 1, Mode::Enforce));
        }
        assert_eq!(cache.stats().entries, 0);
    }
}

#[test]
fn a_clock_that_goes_back_forgets() {
    let (cache, clock) = cache(100);
    let (quota, seen) = ten_with(0);
    let parts = [part("a", quota, 1, Mode::Enforce)];
    deny(&cache, cache.ticket(), &parts, &[seen]);
    clock.step_back(Duration::from_micros(1));
    assert_eq!(ask(&cache, &parts), None);
}

#[test]
fn readings_that_may_be_early_are_taken_for_later() {
    let clock = ManualClock::new(LOCAL_NOW);
    let (quota, seen) = ten_with(0);
    let entry = Entry {
        key: key("a"),
        quota,
        seen,
        cost: 1,
        server_now: SERVER_NOW,
        sent_at: clock.now(),
        lifetime_us: 100_000,
        others: None,
    };
    assert_eq!(entry.elapsed_us::<SystemClock>(clock.now()), Some(SystemClock::SKEW_US));
    assert_eq!(entry.elapsed_us::<ManualClock>(clock.now()), Some(0));
}

#[test]
fn threads_keep_count() {
    let (cache, _) = cache(50);
    let (quota, seen) = ten_with(0);
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let cache = &cache;
            scope.spawn(move || {
                for number in 0..2000 {
                    let part = part(&(number % 97).to_string(), quota, 1, Mode::Enforce);
                    deny(cache, cache.ticket(), std::slice::from_ref(&part), &[seen]);
                    let _ = outcome(cache, &part);
                    if number % (thread + 2) == 0 {
                        cache.forget(&part.key);
                    }
                }
            });
        }
    });
    let held: usize = cache.shards.iter().map(|shard| shard.lock().entries.len()).sum();
    assert_eq!(cache.stats().entries, held);
    assert!(held <= 50);
}

fn quotas() -> impl Strategy<Value = Quota> {
    let algorithm = prop::sample::select(vec![
        Algorithm::TokenBucket,
        Algorithm::FixedWindow,
        Algorithm::SlidingCounter,
        Algorithm::LeakyBucket,
    ]);
    (1..20_u64, 1..3_000_000_u64, algorithm, any::<bool>()).prop_map(
        |(tokens, period_us, algorithm, interval)| {
            let rate = Rate::new(tokens, Duration::from_micros(period_us)).unwrap();
            let is_interval = interval && algorithm == Algorithm::TokenBucket;
            let refill = if is_interval { Refill::Interval } else { Refill::Continuous };
            Quota::build(rate, algorithm, refill, None, None).unwrap()
        },
    )
}

proptest! {
    /// For any denial, and any latency of request and reply: the server denies all that the cache denies, and
    /// the wait is too short by no more than the latency of the request.
    #[test]
    fn never_denies_a_charge_that_the_server_would_grant(
        quota in quotas(),
        before in prop::collection::vec((0..400_000_u64, 1..20_u64), 1..20),
        denied_cost in 1..25_u64,
        charge_cost in 1..25_u64,
        there_us in 0..20_000_u64,
        back_us in 0..20_000_u64,
        later_us in prop::collection::vec(0..300_000_u64, 1..10),
    ) {
        let (mut server_now, mut state) = (SERVER_NOW.get(), None);
        for (step, cost) in before {
            server_now += step;
            state = decide(&quota, state, Micros::new(server_now), cost).1.or(state);
        }
        let seen_at = Micros::new(server_now);
        let Some(seen) = state else { return Ok(()) };
        if decide(&quota, state, seen_at, denied_cost).0.is_granted() {
            return Ok(());
        }
        let (cache, clock) = cache(4);
        let parts = [part("a", quota, denied_cost, Mode::Enforce)];
        let ticket = cache.ticket();
        clock.advance(Duration::from_micros(there_us));
        let reply = Reply {
            now: seen_at,
            done: false,
            repaired: 0,
            seen: [Seen::State(seen)].into_iter().collect(),
        };
        clock.advance(Duration::from_micros(back_us));
        server_now += back_us;
        cache.insert(ticket, &parts, &reply, &decisions(&parts, &reply).unwrap());
        for step in later_us {
            clock.advance(Duration::from_micros(step));
            server_now += step;
            let truth = decide(&quota, state, Micros::new(server_now), charge_cost).0;
            let request = part("a", quota, charge_cost, Mode::Enforce);
            if let Some(outcome) = outcome(&cache, &request) {
                prop_assert!(!truth.is_granted());
                prop_assert!(outcome.wait() <= truth.outcome.wait());
                prop_assert!(
                    truth.is_never() || outcome.wait() + there_us >= truth.outcome.wait()
                );
            }
        }
    }
}
