//! A6, C3 and E1 on any quota that can be built, from any stored state, however corrupt: no panic,
//! no word above 53 bits, and once a charge has seen the state, every figure is exact.

use std::time::Duration;

use arbitrary::{Arbitrary, Unstructured};
use sluicegate_core::sliding_window::{self, Entry, Log};
use sluicegate_core::{
    Algorithm, EXACT_MAX, MICROS_MAX, Micros, Outcome, Quota, Rate, Refill, State, clamp, credit,
    decide, is_full, spent,
};

#[derive(Arbitrary, Debug)]
struct Input {
    tokens: u64,
    period_us: u64,
    capacity: Option<u64>,
    max_wait_us: Option<u64>,
    algorithm: u8,
    interval: bool,
    state: Option<(u64, u64)>,
    base: u64,
    entries: Vec<(u64, u64)>,
    now: u64,
    charges: Vec<(u32, u64)>,
}

impl Input {
    fn quota(&self) -> Option<Quota> {
        let rate = Rate::new(self.tokens, Duration::from_micros(self.period_us)).ok()?;
        let algorithm = Algorithm::ALL[usize::from(self.algorithm) % Algorithm::ALL.len()];
        let refill = if self.interval { Refill::Interval } else { Refill::Continuous };
        let max_wait = self.max_wait_us.map(Duration::from_micros);
        Quota::build(rate, algorithm, refill, self.capacity, max_wait).ok()
    }
}

/// Runs the target.
pub fn run(data: &[u8]) {
    let Ok(input) = Input::arbitrary_take_rest(Unstructured::new(data)) else { return };
    let Some(quota) = input.quota() else { return };
    if quota.keeps_log() {
        charge_log(&quota, &input);
    } else {
        charge_state(&quota, &input);
    }
}

fn charge_state(quota: &Quota, input: &Input) {
    let mut state = input.state.map(|(a, b)| State { a, b });
    let mut now = Micros::new(input.now);
    for (pause_us, cost) in &input.charges {
        now = now.after(Duration::from_micros((*pause_us).into()));
        let _ = (clamp(quota, state, now), credit(quota, state, now, *cost));
        let (decision, write) = decide(quota, state, now, *cost);
        assert!(decision.remaining <= decision.limit);
        if let Some(State { a, b }) = write {
            assert!(a < EXACT_MAX && b < EXACT_MAX);
            state = write;
        }
        let would = |wait: u64| decide(quota, state, Micros::new(now.get() + wait), *cost).0;
        if let Outcome::Denied { retry_after } = decision.outcome
            && now.get() + retry_after < MICROS_MAX
        {
            assert!(!would(retry_after - 1).is_granted());
            assert!(would(retry_after).is_granted());
        }
        if let Some(state) = state {
            let peek = decide(quota, Some(state), now, 0).0;
            assert_eq!(is_full(quota.form(), state, now), peek.reset_after == 0);
            let _ = spent(quota.form(), state, now);
        }
    }
}

fn charge_log(quota: &Quota, input: &Input) {
    let entry = |(at, total): &(u64, u64)| Entry { at: *at, total: *total };
    let mut entries: Vec<Entry> = input.entries.iter().map(entry).collect();
    let mut base = input.base;
    let mut now = Micros::new(input.now);
    for (pause_us, cost) in &input.charges {
        now = now.after(Duration::from_micros((*pause_us).into()));
        let log = Log { base, entries: &entries };
        let _ = (
            sliding_window::clamp(quota, log, now),
            sliding_window::credit(quota, log, now, *cost),
        );
        let _ = sliding_window::spent(quota.form(), log, now);
        let (decision, edit) = sliding_window::decide(quota, log, now, *cost);
        assert!(decision.remaining <= decision.limit);
        assert!(decision.outcome.wait() > 0 || decision.is_granted());
        if let Some(edit) = edit {
            entries.truncate(edit.keep.end);
            entries.drain(..edit.keep.start);
            entries.extend(edit.tail);
            base = edit.base;
        }
    }
}
