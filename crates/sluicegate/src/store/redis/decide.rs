//! Decisions from the states that the script saw.
//!
//! The script evaluates and writes; every figure of a decision is computed here from the states it saw, by
//! the functions that the memory store uses, so that the two cannot differ.

use sluicegate_core::sliding_window::{self, Log};
use sluicegate_core::{Decision, Form, Micros, Outcome, Quota, decide};

use super::call::{Part, Reply, Seen};
use super::trouble::{Trouble, TroubleKind};
use crate::rules::Mode;
use crate::store::Decisions;

/// The decisions on a charge, in the order of its parts, as required by
/// [`Store::charge`](crate::Store::charge).
///
/// # Errors
///
/// [`TroubleKind::Unexpected`] if the reply does not match these parts, or the script granted a charge that
/// is denied here or the other way round. The latter never happens.
pub(super) fn decisions(parts: &[Part], reply: &Reply) -> Result<Decisions, Trouble> {
    if parts.len() != reply.seen.len() {
        return Err(mismatch());
    }
    let mut all_granted = true;
    let mut decisions = Decisions::new();
    for (part, seen) in parts.iter().zip(&reply.seen) {
        let decision = decide_seen(&part.quota, *seen, reply.now, part.cost)?;
        all_granted &= part.mode != Mode::Enforce || decision.is_granted();
        // A denied charge and a probe take nothing.
        let is_spared = (!reply.done || part.is_probe) && decision.is_granted();
        decisions.push(if is_spared {
            decide_seen(&part.quota, *seen, reply.now, 0)?
        } else {
            decision
        });
    }
    if all_granted == reply.done { Ok(decisions) } else { Err(disagreement()) }
}

/// The figures of buckets as peeks: the reply to a refund of these parts.
///
/// # Errors
///
/// [`TroubleKind::Unexpected`] if the reply does not match these parts.
pub(super) fn figures(parts: &[Part], reply: &Reply) -> Result<Decisions, Trouble> {
    if parts.len() != reply.seen.len() {
        return Err(mismatch());
    }
    let both = parts.iter().zip(&reply.seen);
    both.map(|(part, seen)| decide_seen(&part.quota, *seen, reply.now, 0)).collect()
}

/// The decision on a bucket as seen. For a log it is correct for the cost of the call and for all granted
/// costs: the wait of another cost is not known.
///
/// # Errors
///
/// [`TroubleKind::Unexpected`] for a log under a quota without one, or the other way round.
pub(super) fn decide_seen(
    quota: &Quota,
    seen: Seen,
    now: Micros,
    cost: u64,
) -> Result<Decision, Trouble> {
    match (seen, quota.form()) {
        (Seen::Log { used, newest, leaving }, Form::SlidingWindow { p }) => {
            let window = Window { limit: quota.capacity(), p, now, used };
            Ok(window.decide(newest, leaving, cost))
        }
        (Seen::State(state), form) if !matches!(form, Form::SlidingWindow { .. }) => {
            Ok(decide(quota, Some(state), now, cost).0)
        }
        _ => Err(mismatch()),
    }
}

/// The decision on a full bucket.
pub(super) fn decide_full(quota: &Quota, now: Micros, cost: u64) -> Decision {
    if quota.keeps_log() {
        sliding_window::decide(quota, Log::default(), now, cost).0
    } else {
        decide(quota, None, now, cost).0
    }
}

/// An exact sliding window of which only sums are known.
struct Window {
    limit: u64,
    p: u64,
    now: Micros,
    used: u64,
}

impl Window {
    /// Same result as [`sliding_window::decide`].
    fn decide(&self, newest: u64, leaving: u64, cost: u64) -> Decision {
        let limit = self.limit;
        let remaining = limit.saturating_sub(self.used);
        if (1..=remaining).contains(&cost) {
            // The newest entry is that of this charge.
            let outcome = Outcome::Granted { delay: 0 };
            return Decision { outcome, limit, remaining: remaining - cost, reset_after: self.p };
        }
        let outcome = match cost {
            0 => Outcome::Granted { delay: 0 },
            cost if cost > limit => Outcome::Never,
            _ => Outcome::Denied { retry_after: self.until_gone(leaving) },
        };
        let reset_after = if self.used == 0 { 0 } else { self.until_gone(newest) };
        Decision { outcome, limit, remaining, reset_after }
    }

    /// Microseconds until the tokens that were admitted at `at` leave the window.
    fn until_gone(&self, at: u64) -> u64 {
        // Tokens in the window were admitted within the last period, so only a corrupt log is clamped.
        at.saturating_add(self.p).saturating_sub(self.now.get()).clamp(1, self.p)
    }
}

fn mismatch() -> Trouble {
    Trouble::new(TroubleKind::Unexpected, "the script's reply does not match the call")
}

fn disagreement() -> Trouble {
    Trouble::new(TroubleKind::Unexpected, "the script and this program decide differently")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use sluicegate_core::sliding_window::Entry;
    use sluicegate_core::{Algorithm, Rate, Refill, State};
    use smallvec::smallvec;

    use super::super::key::RedisKey;
    use super::*;
    use crate::store::Space;

    const NOW: Micros = Micros::new(1_700_000_000_000_000);

    fn part(name: &str, quota: Quota, cost: u64, mode: Mode) -> Part {
        let key = RedisKey::new("sg", Space::Take, &[name.as_bytes()]);
        Part { key, quota, cost, mode, is_probe: false }
    }

    fn reply(done: bool, seen: &[Seen]) -> Reply {
        Reply { now: NOW, done, repaired: 0, seen: seen.iter().copied().collect() }
    }

    /// Ten a second, with this many tokens left.
    fn ten_with(left: u64) -> (Quota, Seen) {
        let quota = Quota::per_second(10).unwrap();
        // One token per 100 000 us; the stored state is the time at which the bucket is full.
        let full_at = NOW.get() + (10 - left) * 100_000;
        (quota, Seen::State(State { a: full_at, b: 0 }))
    }

    #[test]
    fn a_grant_shows_what_is_left_after_it() {
        let (quota, seen) = ten_with(3);
        let parts = [part("a", quota, 2, Mode::Enforce), part("b", quota, 4, Mode::Shadow)];
        let decisions = decisions(&parts, &reply(true, &[seen, seen])).unwrap();
        assert_eq!((decisions[0].is_granted(), decisions[0].remaining), (true, 1));
        assert_eq!(decisions[1].outcome, Outcome::Denied { retry_after: 100_000 });
        assert_eq!(decisions[1].remaining, 3);
    }

    #[test]
    fn a_denial_shows_what_is_left_without_it() {
        let (quota, seen) = ten_with(3);
        let costs =
            [(2, Mode::Enforce), (4, Mode::Enforce), (1, Mode::Shadow), (11, Mode::Enforce)];
        let parts = costs.map(|(cost, mode)| part("a", quota, cost, mode));
        let decisions = decisions(&parts, &reply(false, &[seen; 4])).unwrap();
        let outcomes: Vec<_> = decisions.iter().map(|decision| decision.outcome).collect();
        let granted = Outcome::Granted { delay: 0 };
        let denied = Outcome::Denied { retry_after: 100_000 };
        assert_eq!(outcomes, [granted, denied, granted, Outcome::Never]);
        assert!(decisions.iter().all(|decision| decision.remaining == 3));
    }

    #[test]
    fn a_probe_shows_what_is_left_without_it() {
        let (quota, seen) = ten_with(3);
        let probe = |cost, mode| Part { is_probe: true, ..part("a", quota, cost, mode) };
        let parts =
            [part("a", quota, 2, Mode::Enforce), probe(3, Mode::Enforce), probe(4, Mode::Shadow)];
        let granted = decisions(&parts, &reply(true, &[seen; 3])).unwrap();
        let left: Vec<_> = granted.iter().map(|decision| decision.remaining).collect();
        assert_eq!(left, [1, 3, 3]);
        assert!(granted[1].is_granted() && !granted[2].is_granted());
        // A probe that denies, denies the whole charge.
        let parts = [part("a", quota, 2, Mode::Enforce), probe(4, Mode::Enforce)];
        let denied = decisions(&parts, &reply(false, &[seen; 2])).unwrap();
        assert!(denied[0].is_granted() && !denied[1].is_granted());
        assert!(denied.iter().all(|decision| decision.remaining == 3));
        assert!(decisions(&parts, &reply(true, &[seen; 2])).is_err());
    }

    #[test]
    fn a_script_that_disagrees_is_trouble() {
        let (quota, seen) = ten_with(3);
        let disagrees = |cost, mode, done| {
            let result = decisions(&[part("a", quota, cost, mode)], &reply(done, &[seen]));
            result.map_err(|trouble| trouble.kind())
        };
        assert_eq!(disagrees(4, Mode::Enforce, true), Err(TroubleKind::Unexpected));
        assert_eq!(disagrees(3, Mode::Enforce, false), Err(TroubleKind::Unexpected));
        assert_eq!(disagrees(4, Mode::Shadow, false), Err(TroubleKind::Unexpected));
        assert!(disagrees(4, Mode::Shadow, true).is_ok());
        assert!(disagrees(0, Mode::Enforce, true).is_ok());
    }

    #[test]
    fn an_answer_to_something_else_is_trouble() {
        let (quota, seen) = ten_with(3);
        let log = Seen::Log { used: 0, newest: 0, leaving: 0 };
        let parts = [part("a", quota, 1, Mode::Enforce)];
        for wrong in [reply(true, &[]), reply(true, &[seen, seen]), reply(true, &[log])] {
            assert!(decisions(&parts, &wrong).is_err());
        }
        assert!(figures(&parts, &reply(true, &[])).is_err());
        let window = quota.with_algorithm(Algorithm::SlidingWindow).unwrap();
        assert!(figures(&[part("a", window, 1, Mode::Enforce)], &reply(true, &[seen])).is_err());
    }

    fn quotas() -> impl Strategy<Value = Quota> {
        let algorithm = prop::sample::select(Algorithm::ALL.to_vec());
        (1..50_u64, 1..5_000_000_u64, algorithm, any::<bool>()).prop_map(
            |(tokens, period_us, algorithm, interval)| {
                let rate = Rate::new(tokens, std::time::Duration::from_micros(period_us)).unwrap();
                let is_interval = interval && algorithm == Algorithm::TokenBucket;
                let refill = if is_interval { Refill::Interval } else { Refill::Continuous };
                Quota::build(rate, algorithm, refill, None, None).unwrap()
            },
        )
    }

    proptest! {
        /// After any earlier charges, a charge is decided as the core decides it.
        #[test]
        fn states_are_decided_by_the_core(
            quota in quotas().prop_filter("no log", |quota| !quota.keeps_log()),
            before in prop::collection::vec((0..2_000_000_u64, 1..20_u64), 0..20),
            cost in 0..60_u64,
        ) {
            let (mut now, mut state) = (NOW.get(), None);
            for (step, cost) in before {
                now += step;
                state = decide(&quota, state, Micros::new(now), cost).1.or(state);
            }
            let now = Micros::new(now);
            let expected = decide(&quota, state, now, cost).0;
            let Some(state) = state else {
                prop_assert_eq!(decide_full(&quota, now, cost), expected);
                return Ok(());
            };
            let done = expected.is_granted();
            let reply = Reply { now, done, repaired: 0, seen: smallvec![Seen::State(state)] };
            let part = part("a", quota, cost, Mode::Enforce);
            let decided = decisions(std::slice::from_ref(&part), &reply).unwrap();
            prop_assert_eq!(decided.as_slice(), &[expected]);
            let look = decide(&quota, Some(state), now, 0).0;
            prop_assert_eq!(figures(&[part], &reply).unwrap()[0], look);
        }

        /// A log of which only sums are known is decided as the core decides the whole log.
        #[test]
        fn logs_are_decided_as_the_core_does(
            limit in 1..30_u64,
            p in 1..2_000_u64,
            steps in prop::collection::vec((1..300_u64, 1..8_u64), 0..30),
            later in 0..2_500_u64,
            cost in 0..40_u64,
        ) {
            let rate = Rate::new(limit, std::time::Duration::from_micros(p)).unwrap();
            let algorithm = Algorithm::SlidingWindow;
            let quota = Quota::build(rate, algorithm, Refill::Continuous, None, None).unwrap();
            // Also more than the limit, as after a change of quota.
            let (mut at, mut total, mut entries) = (NOW.get(), 0, Vec::new());
            for (step, tokens) in steps {
                at += step;
                total += tokens;
                entries.push(Entry { at, total });
            }
            let now = Micros::new(at + later);
            let seen = sums(&entries, &quota, p, now, cost);
            let log = Log { base: 0, entries: &entries };
            let expected = sliding_window::decide(&quota, log, now, cost).0;
            prop_assert_eq!(decide_seen(&quota, seen, now, cost).unwrap(), expected);
        }
    }

    /// The script's view of a log, counted token by token.
    fn sums(entries: &[Entry], quota: &Quota, p: u64, now: Micros, cost: u64) -> Seen {
        let mut tokens = Vec::new();
        let mut before = 0;
        for entry in entries {
            if entry.at + p > now.get() {
                tokens.extend((before..entry.total).map(|_| entry.at));
            }
            before = entry.total;
        }
        let used = tokens.len() as u64;
        let over = (used + cost).saturating_sub(quota.capacity());
        let fits = over == 0 || cost > quota.capacity();
        let leaving = if fits { 0 } else { tokens[over as usize - 1] };
        Seen::Log { used, newest: tokens.last().copied().unwrap_or_default(), leaving }
    }
}
