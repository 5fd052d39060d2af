//! Thousands of buckets are added and removed: tables grow, shrink and wrap around, slots are freed and
//! reused, and no bucket is ever mistaken for another.

use std::collections::HashMap;
use std::time::Duration;

use sluicegate::{LocalStore, Quota};

use crate::store::quotas::small;
use crate::store::support::{
    ManualStore, key, manual_store, part, peek, remaining, sweep_all, tokens,
};

/// A pseudo-random generator, the same in every run: `SplitMix64`.
pub(crate) struct Numbers(pub(crate) u64);

impl Numbers {
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % bound
    }
}

/// Checks all that is spent, by name.
fn check(store: &ManualStore, spent: &HashMap<u64, u64>, names: u64, quota: &Quota) {
    assert_eq!(store.stats().buckets, spent.len());
    for name in 0..names {
        let left = quota.capacity() - spent.get(&name).unwrap_or(&0);
        assert_eq!(remaining(store, &key(store, &format!("{name}")), quota), left, "name {name}");
    }
}

/// Half a million charges, refunds and resets of names in waves, so that every shard's table fills up and
/// empties again, and searches wrap around its end.
#[test]
fn no_bucket_is_mistaken_for_another() {
    const NAMES: u64 = 6000;
    let quota = tokens(100);
    let (store, _) = manual_store(100_000);
    let (mut numbers, mut spent) = (Numbers(1), HashMap::<u64, u64>::new());
    for step in 0..500_000u64 {
        let name = numbers.below(NAMES);
        let bucket = key(&store, &format!("{name}"));
        // Waves of mostly charges and of mostly resets.
        let resets = if step / 50_000 % 2 == 0 { 2 } else { 7 };
        match numbers.below(10) {
            choice if choice < resets => {
                assert_eq!(store.reset_now(&bucket), spent.remove(&name).is_some());
            }
            9 => {
                let left = store.refund_now(&bucket, &quota, 10).remaining;
                let owed = spent.remove(&name).unwrap_or(0).saturating_sub(10);
                assert_eq!(left, 100 - owed);
                if owed > 0 {
                    spent.insert(name, owed);
                }
            }
            _ => {
                let owed = spent.get(&name).copied().unwrap_or(0);
                let granted = store.charge_one_now(part(&bucket, &quota, 7)).is_granted();
                assert_eq!(granted, owed + 7 <= 100);
                if granted {
                    spent.insert(name, owed + 7);
                }
            }
        }
        if step % 100_000 == 0 {
            sweep_all(&store);
            check(&store, &spent, NAMES, &quota);
        }
    }
    check(&store, &spent, NAMES, &quota);
}

/// Every bucket under a quota of its own, thousands of forms in all, all changing often: none is ever read
/// under another's.
#[test]
fn no_form_is_mistaken_for_another() {
    const NAMES: u64 = 2000;
    let form = |number: u64| -> Quota {
        Quota::new(1, Duration::from_mins(1 + number)).unwrap().with_capacity(10).unwrap()
    };
    let (store, clock) = manual_store(10_000);
    let (mut numbers, mut forms) = (Numbers(2), HashMap::<u64, (u64, u64)>::new());
    for _ in 0..60_000 {
        let name = numbers.below(NAMES);
        let bucket = key(&store, &format!("{name}"));
        match numbers.below(8) {
            0 => {
                store.reset_now(&bucket);
                forms.remove(&name);
            }
            // Another form: spent tokens stay spent.
            1..=3 => {
                let (_, spent) = forms.get(&name).copied().unwrap_or((0, 0));
                let number = numbers.below(100_000);
                let decision = store.charge_one_now(part(&bucket, &form(number), 1));
                assert_eq!(decision.is_granted(), spent < 10);
                let spent = spent + u64::from(decision.is_granted());
                assert_eq!(decision.remaining, 10 - spent);
                forms.insert(name, (number, spent));
            }
            _ => {
                let Some((number, spent)) = forms.get(&name).copied() else { continue };
                let figures = peek(&store, &bucket, &form(number));
                assert_eq!(figures.remaining, 10 - spent);
                assert_eq!(figures.reset_after, spent * (1 + number) * 60_000_000);
            }
        }
    }
    clock.advance(Duration::from_mins(10 * 100_001));
    sweep_all(&store);
    assert_eq!(store.stats().buckets, 0);
}

/// Logs of the exact sliding window among buckets of other forms, growing, shrinking and reused.
#[test]
fn no_log_is_mistaken_for_another() {
    let window = small().into_iter().find(Quota::keeps_log).unwrap();
    let window = Quota::build(
        sluicegate::Rate::new(50, Duration::from_micros(500)).unwrap(),
        window.algorithm(),
        window.refill(),
        None,
        None,
    )
    .unwrap();
    let (store, clock) = manual_store(10_000);
    let (mut numbers, mut logs) = (Numbers(3), HashMap::<u64, Vec<(u64, u64)>>::new());
    for now in 0..200_000u64 {
        let name = numbers.below(300);
        let bucket = key(&store, &format!("{name}"));
        let log = logs.entry(name).or_default();
        log.retain(|(at, _)| at + 500 > now);
        let used: u64 = log.iter().map(|(_, cost)| cost).sum();
        match numbers.below(20) {
            0 => {
                store.reset_now(&bucket);
                log.clear();
            }
            1 => assert_eq!(remaining(&store, &bucket, &window), 50 - used),
            cost => {
                let granted = store.charge_one_now(part(&bucket, &window, cost)).is_granted();
                assert_eq!(granted, used + cost <= 50);
                if granted {
                    log.push((now, cost));
                }
            }
        }
        clock.advance(Duration::from_micros(1));
    }
}
