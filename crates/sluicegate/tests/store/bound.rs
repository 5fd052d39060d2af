//! The bound: never more buckets than `max_buckets`, and the counted room is the used room, so that it never
//! leaks.

use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use sluicegate::{
    Decision, LocalStore, ManualClock, MemoryKey, MemoryStore, OnFull, Outcome, Quota, Space, Store,
};

use crate::store::quotas;
use crate::store::support::{
    ManualStore, NOON, config, key, manual_store, part, peek, remaining, sweep_all, tokens,
};

const RULES: usize = 3;
const NAMES: usize = 40;

/// Operation on a store that is too small.
#[derive(Clone, Debug)]
enum Step {
    /// Charges these: a rule, a name and a cost each.
    Charge(Vec<(usize, usize, u64)>),
    Refund(usize, usize, u64),
    Reset(usize, usize),
    /// The rule has another quota from here on.
    Change(usize, Quota),
    Advance(u64),
    SetBack(u64),
    Sweep(usize),
}

fn step() -> impl Strategy<Value = Step> {
    let amount = || prop_oneof![12 => 0..=4u64, 1 => any::<u64>()];
    let bucket = || (0..RULES, 0..NAMES);
    let part = || (0..RULES, 0..NAMES, amount());
    prop_oneof![
        12 => vec(part(), 1..=5).prop_map(Step::Charge),
        1 => part().prop_map(|(rule, name, amount)| Step::Refund(rule, name, amount)),
        1 => bucket().prop_map(|(rule, name)| Step::Reset(rule, name)),
        1 => (0..RULES, select(quotas::small())).prop_map(|(rule, quota)| Step::Change(rule, quota)),
        6 => (0..=100u64).prop_map(Step::Advance),
        1 => (0..=100u64).prop_map(Step::SetBack),
        1 => (0..1000usize).prop_map(Step::Sweep),
    ]
}

/// A store that is too small for its charges.
struct Small {
    store: ManualStore,
    clock: ManualClock,
    quotas: Vec<Quota>,
}

impl Small {
    fn key(&self, rule: usize, name: usize) -> MemoryKey {
        self.store.key(Space::Rule(rule as u64), &[&[name as u8]])
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Charge(parts) => {
                let keys: Vec<_> = parts.iter().map(|part| self.key(part.0, part.1)).collect();
                let charges: Vec<_> = parts
                    .iter()
                    .zip(&keys)
                    .map(|((rule, _, cost), key)| part(key, &self.quotas[*rule], *cost))
                    .collect();
                self.store.charge_now(&charges);
            }
            Step::Refund(rule, name, amount) => {
                self.store.refund_now(&self.key(rule, name), &self.quotas[rule], amount);
            }
            Step::Reset(rule, name) => {
                self.store.reset_now(&self.key(rule, name));
            }
            Step::Change(rule, quota) => self.quotas[rule] = quota,
            Step::Advance(by) => self.clock.advance(Duration::from_micros(by)),
            Step::SetBack(by) => self.clock.step_back(Duration::from_micros(by)),
            Step::Sweep(slots) => self.store.sweep(slots),
        }
    }
}

proptest! {
    #![proptest_config(config(400))]

    /// There are never more buckets than allowed; and when all are full, there are none.
    #[test]
    fn room_is_counted_exactly(
        max_buckets in 1..30usize,
        deny in any::<bool>(),
        quotas in vec(select(quotas::small()), RULES),
        steps in vec(step(), 1..300),
    ) {
        let clock = ManualClock::new(NOON);
        let on_full = if deny { OnFull::Deny } else { OnFull::Overflow };
        let builder = MemoryStore::builder().max_buckets(max_buckets).take_buckets_max(0).on_full(on_full);
        let mut small = Small { store: builder.clock(clock.clone()).build(), clock, quotas };
        for step in steps {
            small.step(step);
            let held = small.store.stats().buckets;
            prop_assert!(held <= max_buckets, "{} of {}", held, max_buckets);
        }
        small.clock.advance(Duration::from_secs(1));
        sweep_all(&small.store);
        prop_assert_eq!(small.store.stats().buckets, 0);
    }
}

/// Making room for one bucket of a charge may evict another of the same charge, which is full. It is new
/// then, and takes room again.
#[test]
fn a_charge_that_forgets_one_of_its_own_buckets_counts_it_again() {
    let quota = "1 per 10us burst 5".parse().unwrap();
    let (store, clock) = manual_store(1000);
    // One in 64 pairs shares a shard.
    for pair in 0..4000 {
        let (old, new) = (key(&store, &format!("old {pair}")), key(&store, &format!("new {pair}")));
        store.charge_one_now(part(&old, &quota, 5));
        clock.advance(quota.time_to_full());
        store.charge_now(&[part(&old, &quota, 1), part(&new, &quota, 1)]);
        assert_eq!(store.stats().buckets, 2, "pair {pair}");
        assert!(store.reset_now(&old) && store.reset_now(&new));
        assert_eq!(store.stats().buckets, 0, "pair {pair}");
    }
}

/// A full store of one bucket.
fn full_store(on_full: OnFull) -> (ManualStore, ManualClock) {
    let clock = ManualClock::new(NOON);
    let builder = MemoryStore::builder().max_buckets(1).take_buckets_max(0).on_full(on_full);
    let store = builder.clock(clock.clone()).build();
    assert!(store.charge_one_now(part(&key(&store, "first"), &tokens(1), 1)).is_granted());
    (store, clock)
}

/// Overflow buckets do not count towards the bound, so evicting one frees no room.
#[test]
fn an_overflow_bucket_that_is_forgotten_gives_no_room_back() {
    let (before, after) = ("1/s burst 5".parse().unwrap(), "1 per 2s burst 5".parse().unwrap());
    let (store, clock) = full_store(OnFull::Overflow);
    let new = key(&store, "new");
    assert!(store.charge_one_now(part(&new, &before, 5)).is_granted());
    clock.advance(Duration::from_secs(5));
    // Its quota has changed, it is full, and the charge leaves it full: nothing is stored.
    assert!(store.charge_one_now(part(&new, &after, 6)).is_never());
    assert!(store.charge_now(&[part(&new, &before, 6), part(&new, &before, 0)])[0].is_never());
    assert_eq!(store.stats().buckets, 1);
    sweep_all(&store);
    assert_eq!(store.stats().buckets, 1);
}

/// Two new keys of one rule in one charge share that rule's overflow bucket, and pay both costs.
#[test]
fn new_keys_of_one_charge_share_their_overflow_bucket() {
    let quota = tokens(5);
    let (store, _) = full_store(OnFull::Overflow);
    let (one, two) = (key(&store, "one"), key(&store, "two"));
    let three_each = [part(&one, &quota, 3), part(&two, &quota, 3)];
    assert!(!store.charge_now(&three_each)[0].is_granted());
    let two_each = [part(&one, &quota, 2), part(&two, &quota, 2)];
    let decisions = store.charge_now(&two_each);
    assert!(decisions.iter().all(|decision| decision.is_granted() && decision.remaining == 1));
    assert_eq!(remaining(&store, &key(&store, "three"), &quota), 1);
    // Another rule has another overflow bucket.
    let elsewhere = store.key(Space::Rule(2), &[b"one"]);
    assert_eq!(remaining(&store, &elsewhere, &quota), 5);
    assert_eq!(store.stats().overflowed, 4);
}

/// If new keys are denied, a peek still succeeds and an impossible cost is never granted.
#[test]
fn on_full_deny_denies_charges_and_nothing_else() {
    let (quota, nine) = (tokens(5), tokens(9));
    let (store, _) = full_store(OnFull::Deny);
    let (first, new) = (key(&store, "first"), key(&store, "new"));
    let denied = store.charge_one_now(part(&new, &quota, 1));
    assert!(matches!(denied.outcome, Outcome::Denied { retry_after: 1.. }));
    assert_eq!(store.charge_one_now(part(&new, &quota, 6)).outcome, Outcome::Never);
    let look = peek(&store, &new, &quota);
    assert_eq!((look.is_granted(), look.remaining), (true, 0));
    // Together with a bucket that is stored.
    let charges = [part(&first, &nine, 1), part(&new, &quota, 1)];
    let decisions = store.charge_now(&charges);
    assert!(decisions[0].is_granted() && !decisions[1].is_granted());
    let looks = [part(&first, &nine, 1), part(&new, &quota, 0)];
    assert!(store.charge_now(&looks).iter().all(Decision::is_granted));
    assert_eq!(remaining(&store, &first, &nine), 7);
    assert_eq!(store.stats().buckets, 1);
}

#[test]
fn a_store_of_nothing_remembers_one_bucket() {
    let (store, _) = manual_store(0);
    assert_eq!(store.stats().max_buckets, 1);
}
