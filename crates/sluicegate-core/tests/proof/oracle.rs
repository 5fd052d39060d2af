//! Naive models of every algorithm: obviously right rather than fast.
//!
//! A model knows one thing, whether a charge would [fit](Oracle::fits) at some instant. Every
//! figure of a decision is found by its definition, by search: what is left is the most that fits,
//! the wait is the first instant at which the charge fits, the reset the first at which everything
//! does. So no formula of the crate is repeated here, and fractions are exact because they are
//! never divided out.

use std::collections::BTreeMap;

use sluicegate_core::{Decision, Outcome, Quota};

use crate::bucket::micros;

/// A model of one bucket.
pub(crate) trait Oracle: Clone {
    /// A full bucket.
    fn new(quota: &Quota) -> Self;
    /// Gives it another capacity; what was spent stays spent.
    fn resize(&mut self, limit: u64);
    /// The most that can be taken at once.
    fn limit(&self) -> u64;
    /// Returns whether a charge would be granted at `at`, without any step until then.
    fn fits(&self, at: u64, cost: u64) -> bool;
    /// Mends what lies beyond an empty bucket, as the first charge that sees it does.
    fn mend(&mut self, at: u64);
    /// Takes what fits.
    fn take(&mut self, at: u64, cost: u64);
    /// Gives tokens back, up to full.
    fn give(&mut self, at: u64, amount: u64);
    /// Moves everything that happened in time, for windows by whole periods.
    fn shift(&mut self, by_us: i64);
    /// Delay of work granted at `at`.
    fn delay(&self, _at: u64) -> u64 {
        0
    }

    fn charge(&mut self, at: u64, cost: u64) -> Decision {
        if cost == 0 {
            let mut seen = self.clone();
            seen.mend(at);
            return seen.figures(at, Outcome::Granted { delay: 0 });
        }
        self.mend(at);
        if cost > self.limit() {
            return self.figures(at, Outcome::Never);
        }
        if self.fits(at, cost) {
            let delay = self.delay(at);
            self.take(at, cost);
            return self.figures(at, Outcome::Granted { delay });
        }
        let retry_after = first(|wait| self.fits(at + wait, cost));
        self.figures(at, Outcome::Denied { retry_after })
    }

    fn refund(&mut self, at: u64, amount: u64) {
        self.mend(at);
        self.give(at, amount);
    }

    fn figures(&self, at: u64, outcome: Outcome) -> Decision {
        let limit = self.limit();
        let left_out = first(|out| out >= limit || self.fits(at, limit - out));
        Decision {
            outcome,
            limit,
            remaining: limit - left_out,
            reset_after: first(|wait| self.fits(at + wait, limit)),
        }
    }
}

/// The least number that passes, where every greater one passes too.
fn first(passes: impl Fn(u64) -> bool) -> u64 {
    if passes(0) {
        return 0;
    }
    let (mut fails, mut most) = (0, 1);
    while !passes(most) {
        assert!(most < 1 << 60, "never passes");
        (fails, most) = (most, most * 2);
    }
    while most - fails > 1 {
        let middle = fails + (most - fails) / 2;
        if passes(middle) { most = middle } else { fails = middle }
    }
    most
}

/// An instant moved later or earlier by `by`.
pub(crate) fn moved(at: u64, by_us: i64) -> u64 {
    at.checked_add_signed(by_us).expect("an instant after 1970")
}

// ===== continuous refill =====

/// A token bucket: `tokens` drip in every `period`, evenly. What is missing from full is a fraction
/// of a token with the period as its denominator.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct TokenBucket {
    limit: u64,
    tokens: u128,
    period: u128,
    /// Missing tokens and their time; `None` for a bucket that was never used.
    missing: Option<(u128, u64)>,
}

impl TokenBucket {
    /// Missing tokens at `at`. On a clock that was set back, more by that time.
    fn missing(&self, at: u64) -> u128 {
        let Some((missing, then)) = self.missing else { return 0 };
        let drip = self.tokens * u128::from(at.abs_diff(then));
        if at < then { missing + drip } else { missing.saturating_sub(drip) }
    }

    fn empty(&self) -> u128 {
        u128::from(self.limit) * self.period
    }
}

impl Oracle for TokenBucket {
    fn new(quota: &Quota) -> Self {
        let (tokens, period) = quota.rate().tokens_and_period_us();
        Self {
            limit: quota.capacity(),
            tokens: tokens.into(),
            period: period.into(),
            missing: None,
        }
    }

    fn resize(&mut self, limit: u64) {
        self.limit = limit;
    }

    fn limit(&self) -> u64 {
        self.limit
    }

    fn fits(&self, at: u64, cost: u64) -> bool {
        self.missing(at) + u128::from(cost) * self.period <= self.empty()
    }

    fn mend(&mut self, at: u64) {
        if self.missing(at) > self.empty() {
            self.missing = Some((self.empty(), at));
        }
    }

    fn take(&mut self, at: u64, cost: u64) {
        self.missing = Some((self.missing(at) + u128::from(cost) * self.period, at));
    }

    fn give(&mut self, at: u64, amount: u64) {
        let missing = self.missing(at).saturating_sub(u128::from(amount) * self.period);
        self.missing = (missing > 0).then_some((missing, at));
    }

    fn shift(&mut self, by_us: i64) {
        self.missing = self.missing.map(|(missing, then)| (missing, moved(then, by_us)));
    }
}

// ===== the queue =====

/// A leaky bucket: what is missing from a token bucket is the work in line.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct LeakyBucket {
    line: TokenBucket,
    max_wait_us: Option<u64>,
}

impl Oracle for LeakyBucket {
    fn new(quota: &Quota) -> Self {
        Self { line: TokenBucket::new(quota), max_wait_us: quota.max_wait().map(micros) }
    }

    fn resize(&mut self, limit: u64) {
        self.line.resize(limit);
    }

    fn limit(&self) -> u64 {
        self.line.limit
    }

    fn fits(&self, at: u64, cost: u64) -> bool {
        let in_time = self.max_wait_us.is_none_or(|max_wait_us| self.delay(at) <= max_wait_us);
        in_time && self.line.fits(at, cost)
    }

    fn mend(&mut self, at: u64) {
        self.line.mend(at);
    }

    fn take(&mut self, at: u64, cost: u64) {
        self.line.take(at, cost);
    }

    fn give(&mut self, at: u64, amount: u64) {
        self.line.give(at, amount);
    }

    fn shift(&mut self, by_us: i64) {
        self.line.shift(by_us);
    }

    /// Until everything in front has been let out.
    fn delay(&self, at: u64) -> u64 {
        let in_front = self.line.missing(at).min(self.line.empty());
        first(|wait| self.line.tokens * u128::from(wait) >= in_front)
    }
}

// ===== interval refill =====

/// A token bucket into which `tokens` fall at once when a period ends, simulated period by period.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Interval {
    limit: u64,
    tokens: u64,
    period: u64,
    missing: u64,
    /// When the next tokens fall.
    next: u64,
}

impl Interval {
    /// Missing tokens at `at`, and the time of the next refill.
    fn settled(&self, at: u64) -> (u64, u64) {
        // On a clock that was set back the period starts again.
        let (mut missing, mut next) = (self.missing, self.next.min(at + self.period));
        while missing > 0 && next <= at {
            missing = missing.saturating_sub(self.tokens);
            next += self.period;
        }
        (missing, next)
    }
}

impl Oracle for Interval {
    fn new(quota: &Quota) -> Self {
        let (tokens, period) = quota.rate().tokens_and_period_us();
        Self { limit: quota.capacity(), tokens, period, missing: 0, next: 0 }
    }

    fn resize(&mut self, limit: u64) {
        self.limit = limit;
    }

    fn limit(&self) -> u64 {
        self.limit
    }

    fn fits(&self, at: u64, cost: u64) -> bool {
        self.settled(at).0 + cost <= self.limit
    }

    fn mend(&mut self, at: u64) {
        let (missing, next) = self.settled(at);
        if missing > self.limit || missing > 0 && self.next > at + self.period {
            (self.missing, self.next) = (missing.min(self.limit), next);
        }
    }

    fn take(&mut self, at: u64, cost: u64) {
        let (missing, next) = self.settled(at);
        // A full bucket has no period under way: one starts with the charge.
        self.next = if missing == 0 { at + self.period } else { next };
        self.missing = missing + cost;
    }

    fn give(&mut self, at: u64, amount: u64) {
        let (missing, next) = self.settled(at);
        (self.missing, self.next) = (missing.saturating_sub(amount), next);
    }

    fn shift(&mut self, by_us: i64) {
        self.next = if self.missing == 0 { 0 } else { moved(self.next, by_us) };
    }
}

// ===== windows =====

/// Fixed windows: what was spent in each, by its number since 1970.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct FixedWindow {
    limit: u64,
    period: u64,
    spent: BTreeMap<u64, u64>,
}

impl FixedWindow {
    fn spent(&self, window: u64) -> u64 {
        self.spent.get(&window).copied().unwrap_or(0)
    }
}

impl Oracle for FixedWindow {
    fn new(quota: &Quota) -> Self {
        let (_, period) = quota.rate().tokens_and_period_us();
        Self { limit: quota.capacity(), period, spent: BTreeMap::new() }
    }

    fn resize(&mut self, limit: u64) {
        self.limit = limit;
    }

    fn limit(&self) -> u64 {
        self.limit
    }

    fn fits(&self, at: u64, cost: u64) -> bool {
        self.spent(at / self.period).min(self.limit) + cost <= self.limit
    }

    /// On a clock that was set back, what was spent in the latest window counts in this one, and in
    /// the next, whose edge would otherwise come too soon.
    fn mend(&mut self, at: u64) {
        let (this, next) = (at / self.period, at / self.period + 1);
        match self.spent.last_key_value() {
            Some((latest, spent)) if *latest > this => {
                let spent = if *latest > next { *spent.min(&self.limit) } else { *spent };
                self.spent = BTreeMap::from([(this, spent), (next, spent)]);
            }
            _ => {}
        }
    }

    fn take(&mut self, at: u64, cost: u64) {
        let window = at / self.period;
        self.spent = self.spent.split_off(&window);
        self.spent.entry(window).or_default();
        for (_, spent) in self.spent.range_mut(window..) {
            *spent = (*spent).min(self.limit) + cost;
        }
    }

    fn give(&mut self, at: u64, amount: u64) {
        let window = at / self.period;
        if self.spent(window).min(self.limit) <= amount {
            self.spent.clear();
        }
        for (_, spent) in self.spent.range_mut(window..) {
            *spent = (*spent).min(self.limit) - amount;
        }
    }

    fn shift(&mut self, by_us: i64) {
        let at = |window| moved(window * self.period, by_us) / self.period;
        self.spent = self.spent.iter().map(|(window, spent)| (at(window), *spent)).collect();
    }
}

/// The sliding counter's formula on the counts of this window and the one before, as fractions with
/// the period as their denominator.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct SlidingCounter {
    windows: FixedWindow,
}

impl SlidingCounter {
    /// Counts of this window and the one before.
    fn counts(&self, window: u64) -> (u64, u64) {
        let previous = window.checked_sub(1).map_or(0, |previous| self.windows.spent(previous));
        (previous, self.windows.spent(window))
    }

    /// Forgets all but this window and the one before.
    fn keep(&mut self, window: u64, previous: u64, current: u64) {
        let mut counts = BTreeMap::from([(window, current)]);
        if let Some(before) = window.checked_sub(1) {
            counts.insert(before, previous);
        }
        self.windows.spent = counts;
    }
}

impl Oracle for SlidingCounter {
    fn new(quota: &Quota) -> Self {
        Self { windows: FixedWindow::new(quota) }
    }

    fn resize(&mut self, limit: u64) {
        self.windows.resize(limit);
    }

    fn limit(&self) -> u64 {
        self.windows.limit
    }

    fn fits(&self, at: u64, cost: u64) -> bool {
        let (window, elapsed) = (at / self.windows.period, at % self.windows.period);
        let (previous, current) = self.counts(window);
        let period = u128::from(self.windows.period);
        let fading = u128::from(previous) * (period - u128::from(elapsed));
        fading + u128::from(current + cost) * period <= u128::from(self.windows.limit) * period
    }

    /// On a clock that was set back, all that was spent counts in this window: how much of it had
    /// faded cannot be known.
    fn mend(&mut self, at: u64) {
        let window = at / self.windows.period;
        match self.windows.spent.last_key_value() {
            Some((latest, _)) if *latest > window => {
                let (previous, current) = self.counts(*latest);
                self.keep(window, 0, (previous + current).min(self.windows.limit));
            }
            _ => {}
        }
    }

    fn take(&mut self, at: u64, cost: u64) {
        let window = at / self.windows.period;
        let (previous, current) = self.counts(window);
        self.keep(window, previous, current + cost);
    }

    /// Taken from the current window first, then from the previous one.
    fn give(&mut self, at: u64, amount: u64) {
        let window = at / self.windows.period;
        let (previous, current) = self.counts(window);
        let rest = amount.saturating_sub(current);
        self.keep(window, previous.saturating_sub(rest), current.saturating_sub(amount));
        if self.counts(window) == (0, 0) {
            self.windows.spent.clear();
        }
    }

    fn shift(&mut self, by_us: i64) {
        self.windows.shift(by_us);
    }
}

/// The exact sliding window: a plain list of what was admitted when.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct SlidingWindow {
    limit: u64,
    period: u64,
    admitted: Vec<(u64, u64)>,
}

impl SlidingWindow {
    /// Forgets what has left the window.
    fn forget(&mut self, at: u64) {
        let period = self.period;
        self.admitted.retain(|(then, _)| then + period > at);
    }
}

impl Oracle for SlidingWindow {
    fn new(quota: &Quota) -> Self {
        let (_, period) = quota.rate().tokens_and_period_us();
        Self { limit: quota.capacity(), period, admitted: Vec::new() }
    }

    fn resize(&mut self, limit: u64) {
        self.limit = limit;
    }

    fn limit(&self) -> u64 {
        self.limit
    }

    fn fits(&self, at: u64, cost: u64) -> bool {
        let live = self.admitted.iter().filter(|(then, _)| then + self.period > at);
        live.map(|(_, cost)| cost).sum::<u64>() + cost <= self.limit
    }

    /// On a clock that was set back, what lies in the future counts as admitted now.
    fn mend(&mut self, at: u64) {
        if self.admitted.iter().any(|(then, _)| *then > at) {
            self.forget(at);
            self.admitted.iter_mut().for_each(|(then, _)| *then = (*then).min(at));
        }
    }

    fn take(&mut self, at: u64, cost: u64) {
        self.forget(at);
        self.admitted.push((at, cost));
    }

    /// Newest first.
    fn give(&mut self, at: u64, mut amount: u64) {
        self.forget(at);
        while let Some((_, cost)) = self.admitted.last_mut() {
            if *cost > amount {
                *cost -= amount;
                return;
            }
            amount -= *cost;
            self.admitted.pop();
        }
    }

    fn shift(&mut self, by_us: i64) {
        self.admitted.iter_mut().for_each(|(then, _)| *then = moved(*then, by_us));
    }
}
