//! Doubles, which are all that Lua has, give the same answers bit for bit.
//!
//! This module is written like the script inside Redis: floating-point numbers, `math.floor` and
//! `math.ceil`, a state of two numbers. Every sum and product passes through [`exact`], which fails
//! on anything above 2^53: so no integer that a decision needs can have been rounded.

use proptest::collection::vec;
use proptest::prelude::*;
use sluicegate_core::{Decision, EXACT_MAX, Form, Outcome, Quota, State};

use crate::bucket::{Bucket, Step, Stored};
use crate::strategies::{any_quota, back_and_forth, reachable};

/// A number that doubles have exactly.
#[track_caller]
fn exact(number: f64) -> f64 {
    assert!(number.fract() == 0.0 && number.abs() <= EXACT_MAX as f64, "{number} is not exact");
    number
}

/// Input of a script: its bucket, its clock and the charge.
struct Script {
    now: f64,
    cost: f64,
    capacity: f64,
    state: Option<(f64, f64)>,
}

/// Output of a script: whether the charge was granted, the delay or else the wait, the tokens left, the
/// time to full, and the state to store, if any.
#[derive(Debug, PartialEq)]
struct Answer {
    granted: bool,
    wait: f64,
    remaining: f64,
    reset_after: f64,
    write: Option<(f64, f64)>,
}

/// Interface of all algorithms: a level that can be charged, shown and stored.
trait Level {
    /// The charged level and the delay, or the wait.
    fn take(&self, cost: f64) -> Result<(Self, f64), f64>
    where
        Self: Sized;
    fn remaining(&self) -> f64;
    fn reset_after(&self) -> f64;
    fn state(&self) -> (f64, f64);
    fn is_beyond(&self) -> bool;
}

fn answer<L: Level>(level: &L, script: &Script) -> Answer {
    let clamped = level.is_beyond().then(|| level.state());
    let (granted, wait, shown, write) = match script.cost {
        0.0 => (true, 0.0, None, None),
        cost if cost > script.capacity => (false, -1.0, None, clamped),
        cost => match level.take(cost) {
            Ok((charged, delay)) => {
                let write = charged.state();
                (true, delay, Some(charged), Some(write))
            }
            Err(wait) => (false, wait, None, clamped),
        },
    };
    let shown = shown.as_ref().unwrap_or(level);
    let (remaining, reset_after) = (shown.remaining(), shown.reset_after());
    Answer { granted, wait, remaining, reset_after, write }
}

// ===== continuous refill, and the queue =====

struct Debt {
    n: f64,
    p: f64,
    now: f64,
    debt: f64,
    empty: f64,
    /// The longest wait of a queue, in units.
    line: Option<f64>,
    beyond: bool,
}

impl Debt {
    fn read(script: &Script, n: f64, p: f64, line: Option<f64>) -> Self {
        let (now, empty) = (script.now, exact(script.capacity * p));
        let debt = match script.state {
            None => 0.0,
            Some((full_at, _)) if n == 1.0 => exact(full_at - now).max(0.0),
            // Clamped to the time to full before multiplying, on both sides of now.
            Some((debt, at)) if at > now => {
                let ahead = exact(at - now).min((empty / n).ceil() + 1.0);
                exact(exact(ahead * n).min(exact(empty + 1.0)) + debt)
            }
            Some((debt, at)) => {
                let elapsed = exact(now - at);
                if elapsed >= (debt / n).ceil() { 0.0 } else { exact(debt - exact(elapsed * n)) }
            }
        };
        Self { n, p, now, debt: debt.min(empty), empty, line, beyond: debt > empty }
    }
}

impl Level for Debt {
    fn take(&self, cost: f64) -> Result<(Self, f64), f64> {
        let debt = exact(self.debt + exact(cost * self.p));
        let no_room = (exact(debt - self.empty).max(0.0) / self.n).ceil();
        let too_late = self.line.map_or(0.0, |line| ((self.debt - line).max(0.0) / self.n).ceil());
        if no_room.max(too_late) > 0.0 {
            return Err(no_room.max(too_late));
        }
        let delay = self.line.map_or(0.0, |_| (self.debt / self.n).ceil());
        Ok((Self { debt, ..*self }, delay))
    }

    fn remaining(&self) -> f64 {
        let too_late = self.line.is_some_and(|line| self.debt > line);
        if too_late { 0.0 } else { (exact(self.empty - self.debt) / self.p).floor() }
    }

    fn reset_after(&self) -> f64 {
        (self.debt / self.n).ceil()
    }

    fn state(&self) -> (f64, f64) {
        if self.n == 1.0 { (exact(self.now + self.debt), 0.0) } else { (self.debt, self.now) }
    }

    fn is_beyond(&self) -> bool {
        self.beyond
    }
}

// ===== interval refill =====

struct Interval {
    n: f64,
    p: f64,
    now: f64,
    capacity: f64,
    missing: f64,
    anchor: f64,
    beyond: bool,
}

impl Interval {
    fn read(script: &Script, n: f64, p: f64) -> Self {
        let (now, capacity) = (script.now, script.capacity);
        let (missing, stored_anchor) = script.state.unwrap_or((0.0, now));
        let anchor = stored_anchor.min(now);
        let periods = (exact(now - anchor) / p).floor();
        let came_in = periods >= (missing / n).ceil();
        let missing = if came_in { 0.0 } else { exact(missing - exact(periods * n)) };
        Self {
            n,
            p,
            now,
            capacity,
            missing: missing.min(capacity),
            anchor: if came_in { now } else { exact(anchor + exact(periods * p)) },
            beyond: missing > 0.0 && (stored_anchor > now || missing > capacity),
        }
    }

    fn wait_for(&self, tokens: f64) -> f64 {
        exact(exact(self.anchor + exact((tokens / self.n).ceil() * self.p)) - self.now)
    }
}

impl Level for Interval {
    fn take(&self, cost: f64) -> Result<(Self, f64), f64> {
        let missing = exact(self.missing + cost);
        if missing > self.capacity {
            return Err(self.wait_for(exact(missing - self.capacity)));
        }
        Ok((Self { missing, ..*self }, 0.0))
    }

    fn remaining(&self) -> f64 {
        self.capacity - self.missing
    }

    fn reset_after(&self) -> f64 {
        if self.missing == 0.0 { 0.0 } else { self.wait_for(self.missing) }
    }

    fn state(&self) -> (f64, f64) {
        (self.missing, self.anchor)
    }

    fn is_beyond(&self) -> bool {
        self.beyond
    }
}

// ===== windows =====

struct FixedWindow {
    capacity: f64,
    count: f64,
    start: f64,
    left: f64,
    beyond: bool,
}

impl FixedWindow {
    fn read(script: &Script, p: f64) -> Self {
        let elapsed = script.now % p;
        let (start, left) = (exact(script.now - elapsed), p - elapsed);
        let (count, at) = script.state.unwrap_or((0.0, 0.0));
        let (count, capacity) = (count.min(script.capacity), script.capacity);
        if at == start {
            Self { capacity, count, start, left, beyond: false }
        } else if at > start {
            let next = exact(start + p);
            Self { capacity, count, start: next, left: exact(left + p), beyond: at != next }
        } else {
            Self { capacity, count: 0.0, start, left, beyond: false }
        }
    }
}

impl Level for FixedWindow {
    fn take(&self, cost: f64) -> Result<(Self, f64), f64> {
        let count = exact(self.count + cost);
        if count > self.capacity { Err(self.left) } else { Ok((Self { count, ..*self }, 0.0)) }
    }

    fn remaining(&self) -> f64 {
        self.capacity - self.count
    }

    fn reset_after(&self) -> f64 {
        if self.count == 0.0 { 0.0 } else { self.left }
    }

    fn state(&self) -> (f64, f64) {
        (self.count, self.start)
    }

    fn is_beyond(&self) -> bool {
        self.beyond
    }
}

struct SlidingCounter {
    capacity: f64,
    p: f64,
    previous: f64,
    current: f64,
    start: f64,
    left: f64,
    beyond: bool,
}

impl SlidingCounter {
    fn read(script: &Script, p: f64) -> Self {
        const BASE: f64 = 67_108_864.0;
        let elapsed = script.now % p;
        let (start, left) = (exact(script.now - elapsed), p - elapsed);
        let (counts, at) = script.state.unwrap_or((0.0, start));
        let (previous, current) = ((counts / BASE).floor(), counts % BASE);
        let (capacity, beyond) = (script.capacity, at > start);
        let (previous, current) = if at == start {
            (previous, current)
        } else if at > start {
            (0.0, (previous + current).min(capacity))
        } else if exact(start - at) == p {
            (current, 0.0)
        } else {
            (0.0, 0.0)
        };
        Self { capacity, p, previous, current, start, left, beyond }
    }

    fn room(&self) -> f64 {
        let used = exact(exact(self.previous * self.left) + exact(self.current * self.p));
        exact(exact(self.capacity * self.p) - used).max(0.0)
    }
}

impl Level for SlidingCounter {
    fn take(&self, cost: f64) -> Result<(Self, f64), f64> {
        let (current, limit) = (self.current + cost, self.capacity);
        if exact(cost * self.p) <= self.room() {
            Ok((Self { current, ..*self }, 0.0))
        } else if current <= limit {
            Err(self.left - (exact((limit - current) * self.p) / self.previous).floor())
        } else {
            let left = (exact((limit - cost) * self.p) / self.current).floor();
            Err(exact(self.left + self.p - left))
        }
    }

    fn remaining(&self) -> f64 {
        (self.room() / self.p).floor()
    }

    fn reset_after(&self) -> f64 {
        match (self.previous, self.current) {
            (0.0, 0.0) => 0.0,
            (_, 0.0) => self.left,
            _ => exact(self.left + self.p),
        }
    }

    fn state(&self) -> (f64, f64) {
        (exact(self.previous * 67_108_864.0 + self.current), self.start)
    }

    fn is_beyond(&self) -> bool {
        self.beyond
    }
}

// ===== side by side =====

/// The script's answer; `None` for a log, which is no state of two numbers.
fn run(quota: &Quota, state: Option<State>, now: u64, cost: u64) -> Option<Answer> {
    let script = Script {
        now: now as f64,
        // Compared before it is used, a cost need not be exact.
        cost: cost as f64,
        capacity: quota.capacity() as f64,
        state: state.map(|state| (exact(state.a as f64), exact(state.b as f64))),
    };
    Some(match quota.form() {
        Form::Continuous { n, p } => {
            answer(&Debt::read(&script, n as f64, p as f64, None), &script)
        }
        Form::LeakyBucket { n, p } => {
            let max_wait = quota.max_wait().map_or(u64::MAX as f64, |wait| wait.as_micros() as f64);
            let line = Some(max_wait * n as f64);
            answer(&Debt::read(&script, n as f64, p as f64, line), &script)
        }
        Form::Interval { n, p } => answer(&Interval::read(&script, n as f64, p as f64), &script),
        Form::FixedWindow { p } => answer(&FixedWindow::read(&script, p as f64), &script),
        Form::SlidingCounter { p } => answer(&SlidingCounter::read(&script, p as f64), &script),
        Form::SlidingWindow { .. } => return None,
    })
}

/// The crate's own answer, as doubles.
fn expected(decision: &Decision, write: Option<State>) -> Answer {
    let (granted, wait) = match decision.outcome {
        Outcome::Granted { delay } => (true, delay as f64),
        Outcome::Denied { retry_after } => (false, retry_after as f64),
        Outcome::Never => (false, -1.0),
    };
    Answer {
        granted,
        wait,
        remaining: exact(decision.remaining as f64),
        reset_after: exact(decision.reset_after as f64),
        write: write.map(|state| (exact(state.a as f64), exact(state.b as f64))),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    #[test]
    fn a4_doubles_agree(
        mut bucket in reachable(any_quota()),
        steps in vec(back_and_forth(), 1..20),
    ) {
        for step in steps {
            if let (Step::Charge(amount), Stored::State(state)) = (step, bucket.stored.clone()) {
                let Bucket { quota, now, .. } = bucket;
                let cost = amount.of(&bucket);
                let (decision, write) = sluicegate_core::decide(
                    &quota,
                    state,
                    sluicegate_core::Micros::new(now),
                    cost,
                );
                if let Some(answer) = run(&quota, state, now, cost) {
                    prop_assert_eq!(answer, expected(&decision, write), "cost {}", cost);
                }
            }
            bucket.step(step);
        }
    }
}
