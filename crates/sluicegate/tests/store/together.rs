//! M1 over several requests: all of them are charged or none, probes never are, and every figure is the
//! model's.

use sluicegate::{
    Answer, Ask, Limiter, LocalStore, ManualClock, MemoryStore, Mode, OnError, Override, Overrides,
    Quota, Request, Rule, RuleSet,
};
use sluicegate_tests::seed::Seed;

use crate::store::asks::{Pair, START, Tally};
use crate::store::quotas;
use crate::store::support::{
    ManualStore, NOON, key, manual_store, part, probe, remaining, shadow, tokens,
};

const ROUNDS: u64 = 60;
const STEPS_PER_ROUND: u64 = 500;

#[tokio::test]
async fn m1_together_limiter_and_model_agree() {
    let mut seed = Seed::announce("m1_together_limiter_and_model_agree");
    let mut tally = Tally::default();
    for _ in 0..ROUNDS {
        let clock = ManualClock::new(START);
        let store = MemoryStore::builder().clock(clock.clone()).build();
        let mut pair = Pair::new(store, clock, &mut seed, &quotas::small());
        for _ in 0..STEPS_PER_ROUND {
            pair.step(&mut tally).await;
        }
    }
    println!("{tally:?}, no mismatch");
    assert!(tally.granted > 1000 && tally.denied > 1000 && tally.by_probe > 100, "{tally:?}");
}

// ===== probes of a store =====

#[test]
fn a_probe_denies_the_whole_and_is_never_charged() {
    let (store, _) = manual_store(100);
    let quota = tokens(5);
    let (paid, probed) = (key(&store, "paid"), key(&store, "probed"));
    for turn in 1..=3 {
        let decisions = store.charge_now(&[part(&paid, &quota, 1), probe(&probed, &quota, 5)]);
        assert!(decisions.iter().all(sluicegate::Decision::is_granted));
        // A probe takes nothing.
        assert_eq!((decisions[0].remaining, decisions[1].remaining), (5 - turn, 5));
    }
    assert_eq!(store.stats().buckets, 1, "a probe needs no room");
    assert!(store.charge_one_now(part(&probed, &quota, 1)).is_granted());
    let decisions = store.charge_now(&[part(&paid, &quota, 1), probe(&probed, &quota, 5)]);
    assert!(decisions[0].is_granted() && !decisions[1].is_granted());
    assert_eq!((decisions[0].remaining, decisions[1].remaining), (2, 4));
    let shadowed = probe(&probed, &quota, 5).with_mode(Mode::Shadow);
    let decisions = store.charge_now(&[part(&paid, &quota, 1), shadowed]);
    assert!(!decisions[1].is_granted(), "{decisions:?}");
    assert_eq!((decisions[0].remaining, remaining(&store, &probed, &quota)), (1, 4));
}

#[test]
fn a_probe_is_decided_by_itself_on_the_state_before() {
    let (store, _) = manual_store(100);
    let (quota, key) = (tokens(5), key(&store, "a"));
    for number in 0..2 {
        // Either of them first.
        let mut charges = [part(&key, &quota, 2), probe(&key, &quota, 3), shadow(&key, &quota, 0)];
        charges.rotate_left(number);
        let mut decisions = store.charge_now(&charges);
        decisions.rotate_right(number);
        let left: Vec<_> = decisions.iter().map(|decision| decision.remaining).collect();
        assert!(decisions.iter().all(sluicegate::Decision::is_granted));
        assert_eq!(left, if number == 0 { [3, 5, 3] } else { [1, 3, 1] });
    }
    let decisions = store.charge_now(&[probe(&key, &quota, 1), probe(&key, &quota, 2)]);
    assert!(decisions[0].is_granted() && !decisions[1].is_granted());
    assert_eq!(remaining(&store, &key, &quota), 1);
}

#[test]
fn a_probe_of_nothing_is_granted_and_of_too_much_never() {
    let (store, _) = manual_store(100);
    let (quota, key) = (tokens(5), key(&store, "a"));
    assert!(store.charge_one_now(part(&key, &quota, 5)).is_granted());
    assert!(store.charge_one_now(probe(&key, &quota, 0)).is_granted());
    assert!(!store.charge_one_now(probe(&key, &quota, 1)).is_granted());
    assert!(store.charge_one_now(probe(&key, &quota, 6)).is_never());
}

// ===== a limiter =====

fn limiter(overrides: Overrides) -> Limiter<ManualStore> {
    let rules = RuleSet::new(vec![
        Rule::new(1, "user:{user_id}", tokens(3)).unwrap(),
        Rule::new(2, "global", tokens(10)).unwrap(),
    ]);
    let store = MemoryStore::builder().clock(ManualClock::new(NOON)).build();
    Limiter::new(store, rules.unwrap().with_overrides(overrides))
}

fn take<'a, 'r>(key: &'a str, quota: &'a Quota, cost: u64) -> Ask<'a, 'r> {
    Ask::Take { key, namespace: None, quota, cost, on_error: OnError::Local, is_probe: false }
}

/// Tokens left in each bucket of an answer.
fn left(answer: &Answer) -> Vec<u64> {
    match answer {
        Answer::Verdict(verdict) => verdict.tiers().map(|tier| tier.decision.remaining).collect(),
        Answer::Decision(decision) => vec![decision.remaining],
    }
}

#[test]
fn buckets_that_asks_share_are_charged_with_all_of_them() {
    let limiter = limiter(Overrides::default());
    let (one, other) = (Request::new().user_id("1"), Request::new().user_id("2").cost(2));
    let (is_probe, quota) = (false, tokens(7));
    let asks = [
        Ask::Request { request: &one, is_probe },
        Ask::Request { request: &other, is_probe },
        take("t", &quota, 4),
    ];
    let together = limiter.check_together_now(&asks);
    assert!(together.is_allowed());
    let figures: Vec<_> = together.answers().iter().map(left).collect();
    assert_eq!(figures, [vec![2, 7], vec![1, 7], vec![3]]);
    // The second has one left of its two: nothing is charged.
    let together = limiter.check_together_now(&asks);
    assert!(!together.is_allowed());
    let allowed: Vec<_> = together.answers().iter().map(Answer::is_allowed).collect();
    assert_eq!(allowed, [true, false, false]);
    let figures: Vec<_> = together.answers().iter().map(left).collect();
    assert_eq!(figures, [vec![2, 7], vec![1, 7], vec![3]]);
    assert_eq!(together.delay(), std::time::Duration::ZERO);
    // A day for each token: one token is missing to a cost of four, which is the shorter wait.
    assert_eq!(together.retry_after(), together.answers()[1].retry_after());
}

#[test]
fn a_blocked_request_denies_all_and_the_others_show_their_figures() {
    let blocked = Overrides::new([(1, "mallory".into(), Override::Blocked)]).unwrap();
    let limiter = limiter(blocked);
    let (good, bad) = (Request::new().user_id("1"), Request::new().user_id("mallory"));
    let (is_probe, quota) = (false, tokens(7));
    let asks = [
        Ask::Request { request: &good, is_probe },
        Ask::Request { request: &bad, is_probe },
        take("t", &quota, 8),
    ];
    for _ in 0..3 {
        let together = limiter.check_together_now(&asks);
        assert_eq!((together.is_allowed(), together.retry_after()), (false, None));
        let figures: Vec<_> = together.answers().iter().map(left).collect();
        assert_eq!(figures, [vec![3, 10], vec![0], vec![7]]);
        let allowed: Vec<_> = together.answers().iter().map(Answer::is_allowed).collect();
        assert_eq!(allowed, [true, false, false]);
    }
    assert_eq!(limiter.store().stats().buckets, 0);
}

#[test]
fn a_rule_of_one_request_replaces_those_of_another() {
    let rules = RuleSet::new(vec![
        Rule::new(1, "user:{user_id}", tokens(1)).unwrap().with_name("by user").unwrap(),
        Rule::new(2, "vip:{vip}", tokens(2)).unwrap().with_replaces(&["by user"]).unwrap(),
    ]);
    let limiter = Limiter::new(MemoryStore::new(), rules.unwrap());
    let (user, vip) = (Request::new().user_id("1"), Request::new().attribute("vip", "1"));
    let ask = |request, is_probe| Ask::Request { request, is_probe };
    let both = limiter.check_together_now(&[ask(&user, false), ask(&vip, false)]);
    assert!(both.is_allowed());
    assert_eq!(both.answers().iter().map(left).collect::<Vec<_>>(), [vec![], vec![1]]);
    // Also if it is only a probe.
    let probed = limiter.check_together_now(&[ask(&user, false), ask(&vip, true)]);
    assert_eq!(probed.answers().iter().map(left).collect::<Vec<_>>(), [vec![], vec![1]]);
    let alone = limiter.check_together_now(&[ask(&user, false)]);
    assert_eq!(left(&alone.answers()[0]), [0]);
}

#[test]
fn an_empty_call_is_allowed() {
    let together = limiter(Overrides::default()).check_together_now(&[]);
    assert!(together.is_allowed() && !together.is_degraded() && together.answers().is_empty());
}

#[test]
fn a_refund_of_all_gives_to_every_bucket() {
    let limiter = limiter(Overrides::default());
    let request = Request::new().user_id("1").cost(3);
    assert!(limiter.check_now(&request).is_allowed());
    let verdict = limiter.refund_all_now(&request, 2);
    assert_eq!(left(&Answer::Verdict(verdict)), [2, 9]);
    let verdict = limiter.refund_all_now(&request, u64::MAX);
    assert_eq!(left(&Answer::Verdict(verdict)), [3, 10]);
}
