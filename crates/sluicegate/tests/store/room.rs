//! Room apart: a flood of one kind of key denies no subject of another rule, and every rule has its overflow bucket, and
//! a rule without placeholders its only bucket, however full the store is.

use std::sync::Arc;
use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use sluicegate::{
    Algorithm, KeyedLimiter, Limiter, LocalStore, ManualClock, Mode, Quota, Request, RoomOwner,
    Rule, RuleSet, Space, Store,
};

use crate::store::naive::{Naive, Part};
use crate::store::quotas;
use crate::store::support::{
    ManualStore, NOON, config, part, remaining, store_with_take, sweep_all, tokens,
};

const MAX_BUCKETS: usize = 800;
const TAKE_BUCKETS_MAX: usize = 200;
/// A quarter of what buckets without a rule leave, with two rules that have placeholders.
const RESERVE: usize = 150;

const USERS: &str = "user:{user_id}";
const ADDRESSES: &str = "ip:{ip}";
const GLOBAL: &str = "global";

fn rules(rules: &[(u64, &str, Quota)]) -> RuleSet {
    let rule = |(id, pattern, quota): &(u64, &str, Quota)| Rule::new(*id, pattern, *quota).unwrap();
    RuleSet::new(rules.iter().map(rule).collect()).unwrap()
}

/// Limiter of users, addresses and everybody, under this quota each, on a store with the default partition.
fn limiter(quota: Quota) -> (Limiter<ManualStore>, ManualClock) {
    let (store, clock) = store_with_take(MAX_BUCKETS, TAKE_BUCKETS_MAX);
    let three = [(1, USERS, quota), (2, ADDRESSES, quota), (3, GLOBAL, tokens(50_000))];
    (Limiter::new(store, rules(&three)), clock)
}

fn user(limiter: &Limiter<ManualStore>, name: usize) -> bool {
    limiter.check_now(&Request::new().user_id(&format!("{name}"))).is_allowed()
}

fn address(limiter: &Limiter<ManualStore>, number: usize) -> bool {
    let ip = format!("10.0.{}.{}", number / 256, number % 256);
    limiter.check_now(&Request::new().ip(&ip)).is_allowed()
}

/// Charges that found no room, by the keys that needed it.
fn overflows(limiter: &Limiter<ManualStore>) -> Vec<(RoomOwner, u64)> {
    limiter.store().overflows().into_iter().filter(|(_, charges)| *charges > 0).collect()
}

/// Takes from this many keys without a rule, which stay for a year, and then under that many quotas.
fn flood_without_rule(limiter: &Limiter<ManualStore>, keys: u64, quotas: u64) {
    let year = Duration::from_hours(24 * 365);
    for number in 0..keys + quotas {
        let capacity = 1 + number.saturating_sub(keys);
        let quota = Quota::new(1, year).unwrap().with_capacity(capacity.min(100)).unwrap();
        let quota = if number < keys { quota } else { tokens(capacity) };
        let _ = limiter.take_now(&format!("{number}"), &quota, 1);
    }
}

#[test]
fn a_flood_without_a_rule_takes_no_room_of_rules() {
    let (limiter, _) = limiter(tokens(2));
    assert!(user(&limiter, 0) && address(&limiter, 0));
    flood_without_rule(&limiter, 2000, 6000);
    let stats = limiter.store().stats();
    assert_eq!((stats.take_buckets, stats.take_buckets_max), (TAKE_BUCKETS_MAX, TAKE_BUCKETS_MAX));
    assert_eq!(stats.buckets, TAKE_BUCKETS_MAX + 2);
    assert!(user(&limiter, 0) && !user(&limiter, 0), "a known user has its own bucket");
    for name in 1..2 * RESERVE {
        assert!(user(&limiter, name) && address(&limiter, name), "{name}");
    }
    let denied = limiter.take_now("new", &tokens(30_000), 1);
    assert!(!denied.is_granted(), "overflow buckets without a rule are bounded");
    assert_eq!(overflows(&limiter), [(RoomOwner::Take, 1800 + 6000 + 1)]);
}

#[test]
fn a_flood_of_one_rule_denies_no_subject_of_another() {
    let (limiter, _) = limiter(tokens(2));
    assert!(address(&limiter, 0));
    let admitted = (0..5000).filter(|name| user(&limiter, *name)).count();
    // Its reserve, the common half, and one overflow bucket for all others.
    assert_eq!(admitted, RESERVE + 2 * RESERVE + 2);
    assert!(address(&limiter, 0) && !address(&limiter, 0), "a known address has its own bucket");
    for number in 1..RESERVE {
        assert!(address(&limiter, number) && address(&limiter, number), "{number}");
        assert!(!address(&limiter, number), "{number}");
    }
    assert_eq!(limiter.store().stats().buckets, MAX_BUCKETS - TAKE_BUCKETS_MAX);
    assert_eq!(overflows(&limiter), [(RoomOwner::Rule(1), 5000 - 3 * RESERVE as u64)]);
    // Beyond its reserve it has an overflow bucket of its own.
    assert!(address(&limiter, 1000) && address(&limiter, 1001) && !address(&limiter, 1002));
    // And buckets without a rule have their own room.
    assert!((0..TAKE_BUCKETS_MAX).all(|name| {
        let decision = limiter.take_now(&format!("{name}"), &tokens(2), 1);
        decision.is_granted() && decision.remaining == 1
    }));
}

#[test]
fn a_rule_without_placeholders_has_its_bucket_always() {
    let (limiter, _) = limiter(tokens(2));
    flood_without_rule(&limiter, 1000, 6000);
    let _ = (0..2000).filter(|name| user(&limiter, *name) | address(&limiter, *name)).count();
    let every_rule: Vec<_> = (4..60).map(|id| (id, format!("rule {id}"), tokens(2))).collect();
    let every_rule: Vec<_> =
        every_rule.iter().map(|(id, pattern, quota)| (*id, pattern.as_str(), *quota)).collect();
    limiter.replace_rules(rules(&every_rule));
    let verdicts = [true, true, false].map(|is_allowed| {
        assert_eq!(limiter.check_now(&Request::new()).is_allowed(), is_allowed);
        limiter.check_now(&Request::new().cost(0)).tiers().map(|tier| tier.decision.remaining).max()
    });
    assert_eq!(verdicts, [Some(1), Some(0), Some(0)]);
}

#[test]
fn every_rule_has_its_overflow_bucket() {
    let (limiter, _) = limiter(tokens(2));
    let store = limiter.store();
    let _ = (0..2000).filter(|name| user(&limiter, *name)).count();
    // All overflow buckets that the rule may have for quotas of overrides.
    for capacity in 3..6000 {
        let key = store.key(Space::Rule(2), &[b"overridden"]);
        let _ = store.charge_one_now(part(&key, &tokens(capacity), 1));
        store.reset_now(&key);
        let new = store.key(Space::Rule(2), &[&capacity.to_le_bytes()]);
        let _ = store.charge_one_now(part(&new, &tokens(capacity), 1));
    }
    let beyond = store.key(Space::Rule(2), &[b"beyond"]);
    assert!(!store.charge_one_now(part(&beyond, &tokens(9000), 1)).is_granted());
    assert!(address(&limiter, 1000) && address(&limiter, 1001) && !address(&limiter, 1002));
}

/// Rules that are added share the reserves, as far as there is room; those that are deleted give theirs back.
#[test]
fn reserves_follow_the_rules_in_force() {
    let (limiter, clock) = limiter(tokens(2));
    let _ = (0..2000).filter(|name| user(&limiter, *name)).count();
    let _ = (0..RESERVE).filter(|number| address(&limiter, *number)).count();
    let new = "key:{api_key}";
    let four = [(1, USERS, tokens(2)), (2, ADDRESSES, tokens(2)), (4, new, tokens(2))];
    limiter.replace_rules(rules(&four));
    let of_key = |name: usize| {
        let name = format!("{name}");
        limiter.check_now(&Request::new().attribute("api_key", &name)).is_allowed()
    };
    // The store is full of buckets that must not be evicted: the overflow bucket serves.
    assert!(of_key(0) && of_key(1) && !of_key(2));
    assert!(address(&limiter, 0) && !address(&limiter, 0), "a known address keeps its bucket");
    let limit = |limiter: &Limiter<ManualStore>| limiter.store().stats().max_buckets;
    assert!(limiter.store().stats().buckets <= limit(&limiter));
    clock.advance(Duration::from_hours(48));
    sweep_all(limiter.store());
    assert_eq!(limiter.store().stats().buckets, 0);
    let _ = (0..2000).filter(|name| user(&limiter, *name)).count();
    // Three rules have a reserve now.
    assert!((0..100).all(|name| of_key(name) && of_key(name) && !of_key(name)));
    limiter.replace_rules(rules(&four[..1]));
    let users = (0..5000).filter(|name| user(&limiter, 10_000 + *name)).count();
    assert_eq!(users, 100, "the buckets of the deleted rule stay until they are full");
    clock.advance(Duration::from_hours(48));
    sweep_all(limiter.store());
    let users = (0..5000).filter(|name| user(&limiter, 20_000 + *name)).count();
    assert_eq!(users, MAX_BUCKETS - TAKE_BUCKETS_MAX + 2, "one rule has all of it");
}

#[test]
fn named_limiters_have_reserves_and_give_them_back() {
    let store = Arc::new(store_with_take(MAX_BUCKETS, TAKE_BUCKETS_MAX).0);
    let flooded = KeyedLimiter::on(Arc::clone(&store), "flooded", tokens(1));
    let quiet = KeyedLimiter::on(Arc::clone(&store), "quiet", tokens(1));
    let pour =
        |keys: std::ops::Range<u32>| keys.filter(|key| flooded.take(key, 1).is_granted()).count();
    assert_eq!(pour(0..5000), 3 * RESERVE + 1);
    assert!((0..RESERVE as u32).all(|key| quiet.take(&key, 1).is_granted()));
    let overflowed = 5000 - 3 * RESERVE as u64;
    assert_eq!(store.overflows(), [(RoomOwner::Take, 0), (RoomOwner::Other, overflowed)]);
    drop(quiet.clone());
    (0..RESERVE as u32).for_each(|key| assert!(quiet.reset(&key)));
    assert_eq!(pour(5000..6000), 0, "the reserve of the other one");
    drop(quiet);
    assert_eq!(pour(6000..7000), RESERVE);
}

// ===== logs =====

fn window(tokens: u64) -> Quota {
    let quota = Quota::new(tokens, Duration::from_hours(1)).unwrap();
    quota.with_algorithm(Algorithm::SlidingWindow).unwrap()
}

/// A flood of logs denies neither known nor new subjects of another rule, nor one without placeholders.
#[test]
fn a_flood_of_logs_denies_no_subject_of_another_rule() {
    let (store, clock) = store_with_take(MAX_BUCKETS, TAKE_BUCKETS_MAX);
    let three = [(1, USERS, window(1000)), (2, ADDRESSES, window(4)), (3, GLOBAL, window(100))];
    let limiter = Limiter::new(store, rules(&three));
    let everybody = limiter.store().key(Space::Rule(3), &[]);
    let pass = |space, name: u64, quota: Quota| {
        clock.advance(Duration::from_micros(1));
        let key = limiter.store().key(space, &[&name.to_le_bytes()]);
        limiter.store().charge_one_now(part(&key, &quota, 1)).is_granted()
    };
    assert!(pass(Space::Rule(2), 0, window(4)));
    // Rules have 2,400 entries; a third of one half is the reserve of each, and half of that for its overflow bucket.
    let reserve = 2400 / 2 / 3;
    let of_users = (0..20_000).filter(|name| pass(Space::Rule(1), name % 40, window(1000))).count();
    assert_eq!(of_users, reserve / 2 + 1200);
    let of_take = (0..20_000).filter(|name| pass(Space::Take, name % 40, window(1000))).count();
    assert_eq!(of_take, 4 * TAKE_BUCKETS_MAX);
    assert!((0..3).all(|_| pass(Space::Rule(2), 0, window(4))), "a known address");
    assert!(!pass(Space::Rule(2), 0, window(4)), "which has no more than its limit");
    for number in 1..40 {
        assert!((0..4).all(|_| pass(Space::Rule(2), number, window(4))), "{number}");
    }
    let global = || {
        clock.advance(Duration::from_micros(1));
        limiter.store().charge_one_now(part(&everybody, &window(100), 1)).is_granted()
    };
    assert_eq!((0..200).filter(|_| global()).count(), 100);
    clock.advance(Duration::from_hours(1));
    assert!(pass(Space::Rule(1), 0, window(1000)), "room becomes free at the end of the window");
}

/// A log whose entries leave the window one by one takes no more room than its entries within the window, for hours.
#[test]
fn a_flood_of_logs_that_slide_denies_no_subject_of_another_rule() {
    let (store, clock) = store_with_take(MAX_BUCKETS, TAKE_BUCKETS_MAX);
    let three = [(1, USERS, window(1000)), (2, ADDRESSES, window(4)), (3, GLOBAL, window(100))];
    let limiter = Limiter::new(store, rules(&three));
    let pass = |space, name: u64, quota: Quota| {
        let key = limiter.store().key(space, &[&name.to_le_bytes()]);
        limiter.store().charge_one_now(part(&key, &quota, 1)).is_granted()
    };
    // All entries that the rule may have, evenly over an hour, then replaced one by one for almost another hour: expired
    // entries that are not removed yet are the most then.
    let (reserve, entries) = (200, 1400);
    let of_users = |turns: u64| {
        (0..turns).all(|turn| {
            clock.advance(Duration::from_hours(1) / entries as u32 + Duration::from_micros(1));
            pass(Space::Rule(1), turn % 40, window(1000))
        })
    };
    assert!(of_users(entries) && of_users(entries - 80));
    assert!(!pass(Space::Rule(1), 0, window(1000)), "it has no more room");
    for turn in 0..reserve {
        clock.advance(Duration::from_micros(1));
        assert!(pass(Space::Rule(2), turn / 4, window(4)), "{turn}");
    }
    assert_eq!(overflows(&limiter), [(RoomOwner::Rule(1), 1)]);
}

/// A rule that was deleted, or not active for a while, has its reserve again, for known subjects too.
#[test]
fn a_rule_that_comes_back_has_its_reserve_for_known_subjects() {
    let (store, clock) = store_with_take(MAX_BUCKETS, TAKE_BUCKETS_MAX);
    let both = [(1, USERS, window(1000)), (2, ADDRESSES, window(1000))];
    let limiter = Limiter::new(store, rules(&both));
    let pass = |rule, name: u64| {
        clock.advance(Duration::from_micros(1));
        let key = limiter.store().key(Space::Rule(rule), &[&name.to_le_bytes()]);
        limiter.store().charge_one_now(part(&key, &window(1000), 1)).is_granted()
    };
    assert!(pass(2, 0));
    limiter.replace_rules(rules(&both[..1]));
    limiter.replace_rules(rules(&both));
    // Each of the two rules has a quarter of 2,400 entries, half of it for overflow buckets.
    let reserve = 300;
    assert_eq!((0..5000).filter(|name| pass(1, name % 40)).count(), reserve + 1200);
    assert_eq!((0..1000).filter(|_| pass(2, 0)).count(), reserve - 1);
    let denied = |admitted: usize, charges: usize| (charges - admitted) as u64;
    let expected = [
        (RoomOwner::Rule(1), denied(reserve + 1200, 5000)),
        (RoomOwner::Rule(2), denied(reserve - 1, 1000)),
    ];
    assert_eq!(overflows(&limiter), expected);
}

/// The overflow bucket of a rule has room for its log when all of its other logs are at their maximum.
#[test]
fn an_overflow_bucket_has_room_for_its_log() {
    let (store, clock) = store_with_take(8, 0);
    let limiter = Limiter::new(store, rules(&[(1, USERS, window(100))]));
    let pass = |name: usize| {
        clock.advance(Duration::from_micros(1));
        user(&limiter, name)
    };
    assert!((0..8).all(pass));
    let known = (0..400).filter(|turn| pass(turn % 8)).count();
    // Of 32 entries: eight are stored, the common half is used up, and a quarter is for overflow buckets.
    assert_eq!(known, 32 - 8 - 8);
    assert!((0..8).all(|name| pass(1000 + name)), "new users share the overflow bucket");
    assert!(!pass(2000));
}

// ===== properties =====

/// Step of a trace in which one rule is quiet and all others are flooded.
#[derive(Clone, Debug)]
enum Step {
    /// Charges these subjects of the quiet rule: a name and a cost each.
    Quiet(Vec<(usize, u64)>),
    /// Charges this many new keys of the flooded rule, of a rule that is not in force, or without a rule.
    Flood(usize, u64, Quota),
    Advance(u64),
    /// Puts the same rules in force again, with another quota for the flooded one.
    Replace(Quota),
    Sweep(usize),
}

const QUIET_NAMES: usize = 6;

fn step() -> impl Strategy<Value = Step> {
    let quota = || select(quotas::small());
    prop_oneof![
        8 => vec((0..QUIET_NAMES, 0..=4u64), 1..=3).prop_map(Step::Quiet),
        4 => (0..3usize, 1..60u64, prop_oneof![quota(), Just(tokens(3)), Just(window(3))])
            .prop_map(|(kind, keys, quota)| Step::Flood(kind, keys, quota)),
        4 => (0..=40u64).prop_map(Step::Advance),
        1 => quota().prop_map(Step::Replace),
        1 => (0..2000usize).prop_map(Step::Sweep),
    ]
}

proptest! {
    #![proptest_config(config(200))]

    /// The decisions of a rule that stays within its reserve are those of a store without a bound, whatever happens to
    /// others; and no bound is exceeded.
    #[test]
    fn a_flood_changes_no_decision_of_a_rule_within_its_reserve(
        quota in select(quotas::small()),
        steps in vec(step(), 1..200),
    ) {
        let (store, clock) = store_with_take(80, 20);
        let in_force = |flooded| rules(&[(1, USERS, quota), (2, ADDRESSES, flooded)]);
        let mut reserved = store.reserve_room(&in_force(tokens(3)));
        let mut model = Naive::default();
        model.now = NOON;
        let mut flooded = 0u64;
        for step in steps {
            match step {
                Step::Quiet(parts) => {
                    let key = |(name, _): &(usize, u64)| store.key(Space::Rule(1), &[&[*name as u8]]);
                    let keys: Vec<_> = parts.iter().map(key).collect();
                    let charges: Vec<_> =
                        parts.iter().zip(&keys).map(|((_, cost), key)| part(key, &quota, *cost)).collect();
                    let mode = Mode::Enforce;
                    let parts: Vec<_> = parts
                        .iter()
                        .map(|&(name, cost)| Part { name, quota, cost, mode, is_probe: false })
                        .collect();
                    prop_assert_eq!(store.charge_now(&charges).to_vec(), model.charge(&parts));
                }
                Step::Flood(kind, keys, quota) => {
                    for number in flooded..flooded + keys {
                        let space = [Space::Rule(2), Space::Rule(9), Space::Take][kind];
                        let key = store.key(space, &[&number.to_le_bytes()]);
                        store.charge_one_now(part(&key, &quota, 1));
                    }
                    flooded += keys;
                }
                Step::Advance(by) => clock.advance(Duration::from_micros(by)),
                Step::Replace(quota) => reserved = store.reserve_room(&in_force(quota)),
                Step::Sweep(slots) => store.sweep(slots),
            }
            model.now = sluicegate::Clock::now(&clock);
            let stats = store.stats();
            prop_assert!(stats.buckets <= 80 && stats.take_buckets <= 20, "{:?}", stats);
        }
        clock.advance(Duration::from_hours(24 * 3));
        sweep_all(&store);
        prop_assert_eq!(store.stats().buckets, 0);
        drop(reserved);
        let names = 0..60u64;
        let all_fit = names.map(|name| store.key(Space::Rule(9), &[&name.to_le_bytes()])).all(|key| {
            store.charge_one_now(part(&key, &tokens(2), 1)).is_granted() && remaining(&store, &key, &tokens(2)) == 1
        });
        prop_assert!(all_fit, "no room has leaked");
    }
}
