//! D1: the store and the naive model give the same decisions, figure by figure, on random traces of all
//! operations of a store.

use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use sluicegate::{Charge, LocalStore, ManualClock, MemoryKey, Micros, Mode, Quota};

use crate::store::naive::{Naive, Part};
use crate::store::quotas::any_quota;
use crate::store::support::{ManualStore, NOON, config, key, manual_store, peek, sweep_all};

/// Few enough that charges share buckets, many enough that some share a shard.
const NAMES: usize = 24;

/// Operation on a store.
#[derive(Clone, Debug)]
enum Step {
    /// Charges these: a name, a cost, a mode, and whether it is a probe; some names twice.
    Charge(Vec<(usize, u64, Mode, bool)>),
    Refund(usize, u64),
    Reset(usize),
    /// The bucket has another quota from here on.
    Change(usize, Quota),
    Advance(u64),
    SetBack(u64),
    Sweep(usize),
}

fn name() -> impl Strategy<Value = usize> {
    // Half of all charges use four buckets, so that those run out.
    prop_oneof![0..4usize, 0..NAMES]
}

fn amount() -> impl Strategy<Value = u64> {
    prop_oneof![
        12 => 0..=4u64,
        3 => 5..=70u64,
        1 => any::<u64>(),
    ]
}

fn mode() -> impl Strategy<Value = Mode> {
    prop_oneof![5 => Just(Mode::Enforce), 1 => Just(Mode::Shadow)]
}

fn probe() -> impl Strategy<Value = bool> {
    prop::bool::weighted(0.2)
}

fn step() -> impl Strategy<Value = Step> {
    let pause = || prop_oneof![8 => 0..=20u64, 4 => 0..=150u64, 1 => 0..=1u64 << 33];
    prop_oneof![
        12 => vec((name(), amount(), mode(), probe()), 1..=5).prop_map(Step::Charge),
        4 => (name(), amount(), mode(), probe()).prop_map(|one| Step::Charge(vec![one])),
        2 => (name(), amount()).prop_map(|(name, amount)| Step::Refund(name, amount)),
        1 => name().prop_map(Step::Reset),
        2 => (name(), any_quota()).prop_map(|(name, quota)| Step::Change(name, quota)),
        6 => pause().prop_map(Step::Advance),
        1 => pause().prop_map(Step::SetBack),
        1 => (0..1000usize).prop_map(Step::Sweep),
    ]
}

/// The first day of the epoch, today, and the last representable microseconds.
fn start() -> impl Strategy<Value = Micros> {
    let last = Micros::new(u64::MAX).get();
    prop_oneof![
        Just(Micros::new(0)),
        Just(NOON),
        (0..1000u64).prop_map(move |before| Micros::new(last - before)),
    ]
}

/// A store, its model, and the current quota of each name.
struct Both {
    store: ManualStore,
    clock: ManualClock,
    model: Naive,
    keys: Vec<MemoryKey>,
    quotas: Vec<Quota>,
}

impl Both {
    fn new(start: Micros, quotas: Vec<Quota>) -> Self {
        let (store, clock) = manual_store(10_000);
        let keys = (0..NAMES).map(|name| key(&store, &format!("{name}"))).collect();
        let mut both = Self { store, clock, model: Naive::default(), keys, quotas };
        both.set_clock(start);
        both
    }

    fn step(&mut self, step: &Step) -> Result<(), TestCaseError> {
        let now = self.model.now.get();
        match step {
            Step::Charge(parts) => self.charge(parts)?,
            Step::Refund(name, amount) => {
                let quota = &self.quotas[*name];
                let stored = self.store.refund_now(&self.keys[*name], quota, *amount);
                prop_assert_eq!(stored, self.model.refund(*name, quota, *amount));
            }
            Step::Reset(name) => {
                let there_was = self.store.reset_now(&self.keys[*name]);
                // A full bucket may have been evicted before.
                prop_assert!(there_was || self.model.is_full(*name));
                self.model.reset(*name);
            }
            Step::Change(name, quota) => self.quotas[*name] = *quota,
            Step::Advance(by) => self.set_clock(Micros::new(now.saturating_add(*by))),
            Step::SetBack(by) => self.step_back(Micros::new(now.saturating_sub(*by)))?,
            Step::Sweep(slots) => self.store.sweep(*slots),
        }
        let must_be_held = (0..NAMES).filter(|name| !self.model.is_full(*name)).count();
        let held = self.store.stats().buckets;
        prop_assert!((must_be_held..=NAMES).contains(&held), "{} {}", held, must_be_held);
        Ok(())
    }

    fn charge(&mut self, parts: &[(usize, u64, Mode, bool)]) -> Result<(), TestCaseError> {
        let of = |(name, cost, mode, is_probe): &(usize, u64, Mode, bool)| Part {
            name: *name,
            quota: self.quotas[*name],
            cost: *cost,
            mode: *mode,
            is_probe: *is_probe,
        };
        let parts: Vec<_> = parts.iter().map(of).collect();
        let charges: Vec<_> = parts
            .iter()
            .map(|part| {
                Charge::new(&self.keys[part.name], &part.quota, part.cost)
                    .with_mode(part.mode)
                    .with_is_probe(part.is_probe)
            })
            .collect();
        prop_assert_eq!(self.store.charge_now(&charges).to_vec(), self.model.charge(&parts));
        Ok(())
    }

    fn set_clock(&mut self, now: Micros) {
        self.clock.set(now);
        self.model.now = now;
    }

    /// A full bucket may or may not have been evicted, with no visible difference until now. On an earlier
    /// clock it may be less than full again: then the model follows the store.
    fn step_back(&mut self, now: Micros) -> Result<(), TestCaseError> {
        let full: Vec<_> =
            self.model.names().into_iter().filter(|name| self.model.is_full(*name)).collect();
        self.set_clock(now);
        for name in full {
            let quota = &self.quotas[name];
            let stored = peek(&self.store, &self.keys[name], quota);
            if stored != self.model.peek(name, quota) {
                self.model.reset(name);
            }
            prop_assert_eq!(stored, self.model.peek(name, quota));
        }
        Ok(())
    }

    /// Checks all buckets one by one; and once they are full, there are none.
    fn check_all(&mut self) -> Result<(), TestCaseError> {
        for name in 0..NAMES {
            let quota = &self.quotas[name];
            let stored = peek(&self.store, &self.keys[name], quota);
            prop_assert_eq!(stored, self.model.peek(name, quota));
        }
        sweep_all(&self.store);
        let held = (0..NAMES).filter(|name| !self.model.is_full(*name)).count();
        prop_assert_eq!(self.store.stats().buckets, held);
        Ok(())
    }
}

proptest! {
    #![proptest_config(config(400))]

    /// 400 traces of up to 600 steps: 120 000 steps, and 400 000 parts of charges.
    #[test]
    fn d1_store_and_model_agree(
        start in start(),
        quotas in vec(any_quota(), NAMES),
        steps in vec(step(), 1..600),
    ) {
        let mut both = Both::new(start, quotas);
        for step in &steps {
            both.step(step)?;
        }
        both.check_all()?;
        both.set_clock(Micros::new(both.model.now.get().saturating_add(
            u64::try_from(Duration::from_hours(1).as_micros()).unwrap(),
        )));
        both.check_all()?;
    }
}
