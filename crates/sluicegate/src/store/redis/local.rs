//! Answers while Redis is unavailable, by each bucket's [`OnError`].

use sluicegate_core::{Decision, Micros, Outcome, Quota};
use smallvec::SmallVec;

use super::decide::decide_full;
use super::key::{KeyOwner, RedisKey};
use super::settings::Settings;
use super::share::share_of;
use crate::clock::{Clock, SystemClock};
use crate::rules::{Mode, OnError, RuleSet};
use crate::store::memory::{MemoryKey, MemoryStats, MemoryStore, ReservedRoom, RoomOwner};
use crate::store::{Charge, Decisions, LocalStore, Space, Store, is_granted};

/// `retry_after` of buckets whose policy is to deny. The time at which Redis will be back is unknown, so this
/// is a guess.
pub(super) const TROUBLE_RETRY_US: u64 = 1_000_000;

/// Space of local buckets that belong to no rule and are not without a rule either.
const OTHER: Space<'static> = Space::Named("redis");

/// Buckets of this process, each with a share of its quota, and the policies.
///
/// # Bound
///
/// Each of N processes admits at most its share: `share * (capacity + rate * t)` per bucket in an outage of
/// duration t, where the least share of a capacity is one token.
#[derive(Debug)]
pub(super) struct Local<C: Clock = SystemClock> {
    store: MemoryStore<C>,
    share_percent: u8,
}

/// A local bucket that replaces one in Redis.
struct LocalBucket {
    key: MemoryKey,
    quota: Quota,
}

impl Local {
    /// Local buckets with a share of their quotas, clamped to 1 to 100 percent. At most `local_max_buckets` are
    /// stored; beyond that new ones of one rule and quota share an overflow bucket.
    pub(super) fn new(settings: &Settings) -> Self {
        let builder = MemoryStore::builder().max_buckets(settings.local_max_buckets);
        let store = match settings.local_take_buckets_max {
            Some(take_buckets_max) => builder.take_buckets_max(take_buckets_max).build(),
            None => builder.build(),
        };
        Self::on(store, settings.local_share_percent)
    }
}

impl<C: Clock> Local<C> {
    fn on(store: MemoryStore<C>, share_percent: u8) -> Self {
        Self { store, share_percent: share_percent.clamp(1, 100) }
    }

    /// Reserves room for the local buckets of these rules.
    pub(super) fn reserve_room(&self, rules: &RuleSet) -> ReservedRoom {
        self.store.reserve_room(rules)
    }

    /// Charges all or none, each by its policy:
    ///
    /// - `deny` denies, for [`TROUBLE_RETRY_US`];
    /// - `allow` grants, and shows a full bucket;
    /// - `local` charges the bucket of this process, and shows its figures.
    ///
    /// Under any policy, peeks are granted, and a cost above the capacity of the quota is never granted:
    /// neither needs Redis. Shadow parts deny nothing but themselves, and probes take nothing.
    pub(super) fn charge(&self, charges: &[Charge<'_, RedisKey>]) -> Decisions {
        let by_policy: SmallVec<[Option<Decision>; 4]> =
            charges.iter().map(|charge| self.by_policy(charge)).collect();
        let is_refused = charges.iter().zip(&by_policy).any(|(charge, decision)| {
            charge.mode == Mode::Enforce && decision.is_some_and(|decision| !decision.is_granted())
        });
        let mut locals = self.charge_locals(charges, is_refused).into_iter();
        let mut decisions: Decisions = charges
            .iter()
            .zip(by_policy)
            .map(|(charge, decision)| match decision {
                Some(decision) => decision,
                // `locals` has one for each of these.
                None => locals.next().unwrap_or_else(|| refusal(charge.quota, charge.cost)),
            })
            .collect();
        if !is_granted(charges, &decisions) {
            self.show_uncharged(charges, &mut decisions);
        }
        decisions
    }

    /// Refunds a granted [`charge`](Self::charge), because buckets that Redis answered for denied, and
    /// replaces the decisions by those after the refund.
    pub(super) fn refund(&self, charges: &[Charge<'_, RedisKey>], decisions: &mut Decisions) {
        if !is_granted(charges, decisions) {
            return;
        }
        for (charge, decision) in charges.iter().zip(decisions.iter_mut()) {
            let is_charged = decision.is_granted() && charge.cost > 0 && !charge.is_probe;
            if is_charged && charge.on_error == OnError::Local {
                let LocalBucket { key, quota } = self.stand(charge);
                *decision = self.store.refund_now(&key, &quota, charge.cost);
            }
        }
        self.show_uncharged(charges, decisions);
    }

    /// Removes a bucket. False if there was none.
    pub(super) fn reset(&self, key: &RedisKey) -> bool {
        self.store.reset_now(&self.key(key))
    }

    /// Figures of the local buckets.
    pub(super) fn stats(&self) -> MemoryStats {
        self.store.stats()
    }

    /// Charges that found no room, by the keys that needed it.
    pub(super) fn overflows(&self) -> Vec<(RoomOwner, u64)> {
        self.store.overflows()
    }

    /// Evicts full buckets among this many slots.
    pub(super) fn sweep(&self, slots: usize) {
        self.store.sweep(slots);
    }

    /// The decision on a charge by its policy alone; `None` if that is `local`.
    fn by_policy(&self, charge: &Charge<'_, RedisKey>) -> Option<Decision> {
        let now = self.store.clock().now();
        match charge.on_error {
            OnError::Allow => Some(allowance(charge, now)),
            OnError::Deny => Some(refusal(charge.quota, charge.cost)),
            OnError::Local => None,
        }
    }

    /// Charges the local buckets in one step, all or none; none if the charge is denied already.
    fn charge_locals(&self, charges: &[Charge<'_, RedisKey>], is_refused: bool) -> Decisions {
        let locals = || charges.iter().filter(|charge| charge.on_error == OnError::Local);
        let stands: SmallVec<[LocalBucket; 4]> =
            locals().map(|charge| self.stand(charge)).collect();
        let refuser = self.store.key(OTHER, &[]);
        let mut parts: SmallVec<[Charge<'_, MemoryKey>; 4]> = locals()
            .zip(&stands)
            .map(|(charge, LocalBucket { key, quota })| charge.with_bucket(key, quota))
            .collect();
        // One more part, whose cost exceeds any capacity: the store charges nothing, and still returns the
        // decision on every bucket.
        if let Some(first) = parts.first().copied().filter(|_| is_refused) {
            parts.push(Charge::new(&refuser, first.quota, u64::MAX));
        }
        let mut decisions = self.store.charge_now(&parts);
        for (charge, decision) in locals().zip(&mut decisions) {
            // Only the share is too small: when Redis is back the charge may be granted.
            if decision.is_never() && charge.cost <= charge.quota.capacity() {
                decision.outcome = Outcome::Denied { retry_after: TROUBLE_RETRY_US };
            }
        }
        decisions
    }

    /// The local key of a bucket, in the space of its rule: floods take no room from other rules here either.
    fn key(&self, key: &RedisKey) -> MemoryKey {
        let text = &[key.as_str().as_bytes()][..];
        match key.owner() {
            KeyOwner::Rule { id, is_keyed: true } => self.store.key(Space::Rule(id), text),
            KeyOwner::Rule { id, is_keyed: false } => self.store.key(Space::Rule(id), &[]),
            KeyOwner::Take => self.store.key(Space::Take, text),
            KeyOwner::Other => self.store.key(OTHER, text),
        }
    }

    fn stand(&self, charge: &Charge<'_, RedisKey>) -> LocalBucket {
        let key = self.key(charge.key);
        LocalBucket { key, quota: share_of(charge.quota, self.share_percent) }
    }

    /// In a denied charge, nothing is taken from the full buckets that `allow` shows.
    fn show_uncharged(&self, charges: &[Charge<'_, RedisKey>], decisions: &mut Decisions) {
        let now = self.store.clock().now();
        for (charge, decision) in charges.iter().zip(decisions) {
            if charge.on_error == OnError::Allow && decision.is_granted() {
                *decision = decide_full(charge.quota, now, 0);
            }
        }
    }
}

/// The decision of a bucket whose policy is to allow: that of a full bucket.
fn allowance(charge: &Charge<'_, RedisKey>, now: Micros) -> Decision {
    let decision = decide_full(charge.quota, now, charge.cost);
    let is_spared = charge.is_probe && decision.is_granted();
    if is_spared { decide_full(charge.quota, now, 0) } else { decision }
}

/// The decision of a bucket whose policy is to deny: its tokens are unknown, so none are shown.
fn refusal(quota: &Quota, cost: u64) -> Decision {
    let outcome = match cost {
        0 => Outcome::Granted { delay: 0 },
        cost if cost > quota.capacity() => Outcome::Never,
        _ => Outcome::Denied { retry_after: TROUBLE_RETRY_US },
    };
    Decision { outcome, limit: quota.capacity(), remaining: 0, reset_after: TROUBLE_RETRY_US }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::clock::ManualClock;
    use crate::rules::Rule;

    const GRANTED: Outcome = Outcome::Granted { delay: 0 };
    const REFUSED: Outcome = Outcome::Denied { retry_after: TROUBLE_RETRY_US };

    fn local(share_percent: u8) -> (Local<ManualClock>, ManualClock) {
        let clock = ManualClock::new(Micros::new(1_700_000_000_000_000));
        let store = MemoryStore::builder().max_buckets(1000).clock(clock.clone()).build();
        (Local::on(store, share_percent), clock)
    }

    /// One bucket of ten a second, and its charge.
    struct Ask(RedisKey, Quota, u64, Mode, OnError);

    fn ask(name: &str, cost: u64, on_error: OnError) -> Ask {
        let key = RedisKey::new("sg", Space::Take, &[name.as_bytes()]);
        Ask(key, Quota::per_second(10).unwrap(), cost, Mode::Enforce, on_error)
    }

    fn charges(asks: &[Ask]) -> Vec<Charge<'_, RedisKey>> {
        asks.iter()
            .map(|Ask(key, quota, cost, mode, on_error)| {
                Charge::new(key, quota, *cost).with_mode(*mode).with_on_error(*on_error)
            })
            .collect()
    }

    /// Outcomes and remaining tokens.
    fn shown(decisions: &[Decision]) -> Vec<(Outcome, u64)> {
        decisions.iter().map(|decision| (decision.outcome, decision.remaining)).collect()
    }

    fn charge(local: &Local<ManualClock>, asks: &[Ask]) -> Vec<(Outcome, u64)> {
        shown(&local.charge(&charges(asks)))
    }

    #[test]
    fn every_policy_answers_for_its_bucket() {
        let (local, _) = local(50);
        let granted = [ask("a", 2, OnError::Local), ask("b", 4, OnError::Allow)];
        assert_eq!(charge(&local, &granted), [(GRANTED, 3), (GRANTED, 6)]);
        let figures = local.charge(&charges(&[ask("c", 1, OnError::Deny)]));
        let (limit, reset_after) = (10, TROUBLE_RETRY_US);
        let refused = Decision { outcome: REFUSED, limit, remaining: 0, reset_after };
        assert_eq!(figures.as_slice(), [refused]);
        assert!(local.charge(&[]).is_empty());
    }

    /// Keys without a rule that flood the local buckets take no room from rules, with placeholders or without.
    #[test]
    fn a_flood_takes_no_room_from_rules() {
        let (local, _) = local(100);
        let rule = Rule::new(1, "user:{user_id}", Quota::per_second(10).unwrap()).unwrap();
        let _room = local.reserve_room(&RuleSet::new(vec![rule]).unwrap());
        let granted = |flood: u32| {
            charge(&local, &[ask(&flood.to_string(), 10, OnError::Local)])[0].0 == GRANTED
        };
        assert_eq!((0..2000).filter(|flood| granted(*flood)).count(), 250 + 1);
        let of_rule = |id, parts: &[&[u8]]| {
            let key = RedisKey::new("sg", Space::Rule(id), parts);
            Ask(key, Quota::per_second(10).unwrap(), 10, Mode::Enforce, OnError::Local)
        };
        for user in 0..750_u32 {
            assert_eq!(charge(&local, &[of_rule(1, &[&user.to_le_bytes()])]), [(GRANTED, 0)]);
        }
        assert_eq!(charge(&local, &[of_rule(2, &[])]), [(GRANTED, 0)]);
        assert_eq!(local.stats().buckets, 1000);
    }

    #[test]
    fn any_enforced_deny_denies_and_charges_nothing() {
        let (local, _) = local(50);
        let asks = || {
            let mut asks = ["a", "b", "c", "d"].map(|name| ask(name, 2, OnError::Local));
            (asks[1].4, asks[2].4, asks[3].2) = (OnError::Allow, OnError::Deny, 6);
            asks
        };
        let expected = [(GRANTED, 5), (GRANTED, 10), (REFUSED, 0), (REFUSED, 5)];
        for _ in 0..10 {
            assert_eq!(charge(&local, &asks()), expected);
            // Also if all local buckets would have granted.
            assert_eq!(charge(&local, &asks()[..3]), expected[..3]);
        }
        assert_eq!(local.stats().buckets, 0);
    }

    #[test]
    fn a_local_denial_denies_the_whole() {
        let (local, clock) = local(50);
        let asks = || {
            [ask("a", 5, OnError::Local), ask("b", 1, OnError::Local), ask("c", 1, OnError::Allow)]
        };
        assert_eq!(charge(&local, &asks()), [(GRANTED, 0), (GRANTED, 4), (GRANTED, 9)]);
        // The share is five a second of ten.
        let denied = Outcome::Denied { retry_after: 1_000_000 };
        assert_eq!(charge(&local, &asks()), [(denied, 0), (GRANTED, 4), (GRANTED, 10)]);
        clock.advance(Duration::from_secs(1));
        assert_eq!(charge(&local, &asks()), [(GRANTED, 0), (GRANTED, 4), (GRANTED, 9)]);
    }

    #[test]
    fn shadows_deny_nothing_but_themselves() {
        let (local, _) = local(100);
        let mut asks =
            [ask("a", 8, OnError::Local), ask("b", 1, OnError::Deny), ask("c", 8, OnError::Local)];
        (asks[0].3, asks[1].3) = (Mode::Shadow, Mode::Shadow);
        assert_eq!(charge(&local, &asks), [(GRANTED, 2), (REFUSED, 0), (GRANTED, 2)]);
        asks[2].2 = 2;
        let denied = Outcome::Denied { retry_after: 600_000 };
        assert_eq!(charge(&local, &asks), [(denied, 2), (REFUSED, 0), (GRANTED, 0)]);
    }

    #[test]
    fn peeks_are_granted_and_impossible_costs_never_are() {
        let (local, _) = local(50);
        let all = [OnError::Local, OnError::Allow, OnError::Deny];
        let looks = all.map(|on_error| ask("a", 0, on_error));
        assert_eq!(charge(&local, &looks), [(GRANTED, 5), (GRANTED, 10), (GRANTED, 0)]);
        for on_error in all {
            assert_eq!(charge(&local, &[ask("a", 11, on_error)])[0].0, Outcome::Never);
        }
        // More than the capacity of the share, but not of the bucket in Redis.
        assert_eq!(charge(&local, &[ask("a", 6, OnError::Local)]), [(REFUSED, 5)]);
    }

    #[test]
    fn probes_deny_by_every_policy_and_take_nothing() {
        let (local, _) = local(100);
        let all = [OnError::Local, OnError::Allow, OnError::Deny];
        let asks = all.map(|on_error| ask("a", 10, on_error));
        let probes = asks.each_ref().map(|ask| {
            let charge = charges(std::slice::from_ref(ask))[0];
            charge.with_is_probe(true)
        });
        let paid = ask("b", 1, OnError::Local);
        let paid = charges(std::slice::from_ref(&paid))[0];
        assert_eq!(shown(&local.charge(&[paid, probes[0]])), [(GRANTED, 9), (GRANTED, 10)]);
        assert_eq!(shown(&local.charge(&[paid, probes[1]])), [(GRANTED, 8), (GRANTED, 10)]);
        assert_eq!(shown(&local.charge(&[paid, probes[2]])), [(GRANTED, 8), (REFUSED, 0)]);
        // A probe was not charged, so nothing is refunded.
        assert_eq!(charge(&local, &[ask("a", 1, OnError::Local)]), [(GRANTED, 9)]);
        let probe = Charge { cost: 9, ..probes[0] };
        let mut decisions = local.charge(&[paid, probe]);
        assert_eq!(shown(&decisions), [(GRANTED, 7), (GRANTED, 9)]);
        local.refund(&[paid, probe], &mut decisions);
        assert_eq!(shown(&decisions), [(GRANTED, 8), (GRANTED, 9)]);
        let looks = ["a", "b"].map(|name| ask(name, 0, OnError::Local));
        assert_eq!(charge(&local, &looks), [(GRANTED, 9), (GRANTED, 8)]);
    }

    #[test]
    fn a_refund_returns_the_charge_and_no_more() {
        let (local, _) = local(100);
        let mut asks = ["a", "b", "c"].map(|name| ask(name, 4, OnError::Local));
        (asks[1].4, asks[2].3) = (OnError::Allow, Mode::Shadow);
        let empty_shadow = [ask("c", 9, OnError::Local)];
        assert_eq!(charge(&local, &empty_shadow), [(GRANTED, 1)]);
        let asks = charges(&asks);
        let mut decisions = local.charge(&asks);
        let denied = Outcome::Denied { retry_after: 300_000 };
        assert_eq!(shown(&decisions), [(GRANTED, 6), (GRANTED, 6), (denied, 1)]);
        local.refund(&asks, &mut decisions);
        assert_eq!(shown(&decisions), [(GRANTED, 10), (GRANTED, 10), (denied, 1)]);

        // A denial charged nothing, so nothing is refunded.
        let spent = [ask("a", 8, OnError::Local), ask("d", 8, OnError::Local)];
        assert_eq!(charge(&local, &spent), [(GRANTED, 2), (GRANTED, 2)]);
        let asks = [ask("a", 4, OnError::Local), ask("d", 1, OnError::Local)];
        let mut decisions = local.charge(&charges(&asks));
        let denied = Outcome::Denied { retry_after: 200_000 };
        assert_eq!(shown(&decisions), [(denied, 2), (GRANTED, 2)]);
        local.refund(&charges(&asks), &mut decisions);
        let looks = ["a", "d"].map(|name| ask(name, 0, OnError::Local));
        assert_eq!(charge(&local, &looks), [(GRANTED, 2), (GRANTED, 2)]);
    }
}
