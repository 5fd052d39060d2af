//! K3 refund once: a charge that can be given back. That it cannot be given back twice does not
//! compile, which the documentation of [`sluicegate::Reservation`] proves.

use sluicegate::{Mode, Request};

use crate::library::support::{TestLimiter, limiter, remaining, rule, secs, violated};

const ALL: Request<'_> = Request::new();

fn two_tiers() -> (TestLimiter, sluicegate::ManualClock) {
    limiter(vec![rule(1, "a", "1/hour burst 10"), rule(2, "b", "1/hour burst 20")])
}

#[test]
fn what_it_did_not_cost_goes_back_to_every_bucket() {
    let (limiter, _) = two_tiers();
    let reservation = limiter.reserve_now(&ALL.cost(8));
    assert!(reservation.verdict().is_allowed());
    assert_eq!(remaining(&limiter, &ALL), [2, 12]);
    reservation.commit_now(3);
    assert_eq!(remaining(&limiter, &ALL), [7, 17]);
}

#[test]
fn all_of_it_can_go_back() {
    let (limiter, _) = two_tiers();
    limiter.reserve_now(&ALL.cost(8)).refund_now();
    assert_eq!(remaining(&limiter, &ALL), [10, 20]);
}

#[test]
fn dropping_it_keeps_the_charge() {
    let (limiter, _) = two_tiers();
    drop(limiter.reserve_now(&ALL.cost(8)));
    assert_eq!(remaining(&limiter, &ALL), [2, 12]);
}

#[test]
fn more_than_was_reserved_is_not_taken() {
    let (limiter, _) = two_tiers();
    limiter.reserve_now(&ALL.cost(8)).commit_now(8);
    limiter.reserve_now(&ALL.cost(2)).commit_now(u64::MAX);
    assert_eq!(remaining(&limiter, &ALL), [0, 10]);
}

#[test]
fn a_denied_reservation_gives_nothing_back() {
    let (limiter, _) = two_tiers();
    assert!(limiter.check_now(&ALL.cost(5)).is_allowed());
    // The second tier would have granted it, and was not charged.
    let denied = limiter.reserve_now(&ALL.cost(6));
    assert_eq!(violated(denied.verdict()), Some(1));
    denied.refund_now();
    assert_eq!(remaining(&limiter, &ALL), [5, 15]);
    limiter.reserve_now(&ALL.cost(u64::MAX)).refund_now();
    limiter.reserve_now(&ALL.cost(0)).refund_now();
    assert_eq!(remaining(&limiter, &ALL), [5, 15]);
}

#[test]
fn a_shadow_tier_gets_back_what_it_gave() {
    let shadow = |id, quota| rule(id, &format!("s{id}"), quota).with_mode(Mode::Shadow);
    let rules = vec![
        rule(1, "a", "1/hour burst 10"),
        shadow(2, "1/hour burst 10"),
        shadow(3, "1/hour burst 5"),
    ];
    let (limiter, _) = limiter(rules);
    assert!(limiter.check_now(&ALL.cost(2)).is_allowed());
    let reservation = limiter.reserve_now(&ALL.cost(4));
    assert_eq!(remaining(&limiter, &ALL), [4, 4, 3]);
    reservation.refund_now();
    assert_eq!(remaining(&limiter, &ALL), [8, 8, 3], "what was not charged is not given back");
}

#[test]
fn a_refund_stops_at_full() {
    let (limiter, clock) = two_tiers();
    let reservation = limiter.reserve_now(&ALL.cost(8));
    clock.advance(secs(6 * 3600));
    reservation.refund_now();
    assert_eq!(remaining(&limiter, &ALL), [10, 20]);
}

#[test]
fn settling_gives_back_what_was_too_much() {
    let (limiter, _) = two_tiers();
    let verdict = limiter.reserve_now(&ALL.cost(8)).settle_now(3);
    assert_eq!(remaining(&limiter, &ALL), [7, 17]);
    let told: Vec<_> = verdict.tiers().map(|tier| tier.decision.remaining).collect();
    assert_eq!((verdict.is_allowed(), told), (true, vec![7, 17]));
}

#[test]
fn settling_takes_what_was_too_little_as_far_as_there_is() {
    let (limiter, _) = two_tiers();
    let left = |verdict: &sluicegate::Verdict| {
        verdict.tiers().map(|tier| tier.decision.remaining).collect::<Vec<_>>()
    };
    assert_eq!(left(&limiter.reserve_now(&ALL.cost(2)).settle_now(4)), [6, 16]);
    assert_eq!(left(&limiter.reserve_now(&ALL.cost(2)).settle_now(2)), [4, 14]);
    // The first has three more, the second thirteen.
    let verdict = limiter.reserve_now(&ALL.cost(1)).settle_now(11);
    assert!(verdict.is_allowed() && verdict.violated().is_none());
    assert_eq!(left(&verdict), [0, 3]);
    assert_eq!(remaining(&limiter, &ALL), [0, 3]);
    // Even more than any bucket can hold.
    let verdict = limiter.reserve_now(&ALL.cost(0)).settle_now(u64::MAX);
    assert_eq!((left(&verdict), remaining(&limiter, &ALL)), (vec![0, 0], vec![0, 0]));
}

#[test]
fn a_denied_reservation_is_not_settled() {
    let (limiter, _) = two_tiers();
    assert!(!limiter.reserve_now(&ALL.cost(11)).settle_now(2).is_allowed());
    assert_eq!(remaining(&limiter, &ALL), [10, 20]);
    assert!(limiter.reserve_now(&ALL.cost(10)).keep().is_allowed());
    assert_eq!(remaining(&limiter, &ALL), [0, 10]);
}

/// A cost that a shadow tier could not grant is not taken from it later.
#[test]
fn settling_leaves_shadow_tiers_that_were_not_charged() {
    let shadow = |id, quota| rule(id, &format!("s{id}"), quota).with_mode(Mode::Shadow);
    let rules = vec![
        rule(1, "a", "1/hour burst 10"),
        shadow(2, "1/hour burst 10"),
        shadow(3, "1/hour burst 3"),
    ];
    let (limiter, _) = limiter(rules);
    let _ = limiter.reserve_now(&ALL.cost(4)).settle_now(6);
    assert_eq!(remaining(&limiter, &ALL), [4, 4, 3]);
}

/// No token is lost or created under concurrent settlements.
#[test]
fn many_who_settle_at_once_come_to_the_sum_of_what_they_cost() {
    let (limiter, _) =
        limiter(vec![rule(1, "a", "1/hour burst 100000"), rule(2, "b", "1/hour burst 90000")]);
    let settle = &|thread: u64| {
        let costs = (0..200).map(|call| (thread * 7 + call * 3) % 11);
        costs.map(|cost| (limiter.reserve_now(&ALL.cost(5)).settle_now(cost), cost).1).sum::<u64>()
    };
    let spent: u64 = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|thread| scope.spawn(move || settle(thread))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!(remaining(&limiter, &ALL), [100_000 - spent, 90_000 - spent]);
}

/// Settling a reservation charges or refunds the difference under every algorithm.
#[test]
fn every_algorithm_settles() {
    for algorithm in sluicegate::Algorithm::ALL {
        let quota =
            crate::library::support::quota("100/hour burst 100").with_algorithm(algorithm).unwrap();
        let (limiter, _) = limiter(vec![sluicegate::Rule::new(1, "a", quota).unwrap()]);
        let _ = limiter.reserve_now(&ALL.cost(50)).settle_now(20);
        assert_eq!(remaining(&limiter, &ALL), [80], "{algorithm:?}");
        let _ = limiter.reserve_now(&ALL.cost(10)).settle_now(40);
        assert_eq!(remaining(&limiter, &ALL), [40], "{algorithm:?}");
        let _ = limiter.reserve_now(&ALL.cost(10)).settle_now(1000);
        assert_eq!(remaining(&limiter, &ALL), [0], "{algorithm:?}");
    }
}

/// It goes back to where it came from, also if the rules are others by then.
#[test]
fn rules_may_change_meanwhile() {
    let (limiter, _) = two_tiers();
    let reservation = limiter.reserve_now(&ALL.cost(8));
    let rules = vec![rule(1, "a", "1/hour burst 10"), rule(3, "c", "1/hour burst 30")];
    limiter.replace_rules(sluicegate::RuleSet::new(rules).unwrap());
    reservation.refund_now();
    assert_eq!(remaining(&limiter, &ALL), [10, 30]);
}

/// Regression: it was given back under the quota that it was charged by, and what had been spent since
/// beyond that one's capacity was forgotten.
#[test]
fn a_limit_that_was_raised_meanwhile_is_not_lifted() {
    for raised in ["1/hour burst 100", "2/hour burst 100"] {
        let (limiter, _) = limiter(vec![rule(1, "a", "1/hour burst 10")]);
        let reservation = limiter.reserve_now(&ALL.cost(8));
        limiter.replace_rules(sluicegate::RuleSet::new(vec![rule(1, "a", raised)]).unwrap());
        assert!(limiter.check_now(&ALL.cost(60)).is_allowed());
        assert_eq!(remaining(&limiter, &ALL), [32]);
        reservation.refund_now();
        assert_eq!(remaining(&limiter, &ALL), [40]);
    }
}

/// The rule is gone by then: what it gives back is there when the rule is.
#[test]
fn a_rule_that_is_gone_gets_it_back_too() {
    let (limiter, _) = two_tiers();
    let reservation = limiter.reserve_now(&ALL.cost(8));
    let before = limiter.rules().as_ref().clone();
    limiter.replace_rules(sluicegate::RuleSet::default());
    reservation.commit_now(2);
    limiter.replace_rules(before);
    assert_eq!(remaining(&limiter, &ALL), [8, 18]);
}

#[cfg(feature = "tokio")]
#[tokio::test]
async fn the_asynchronous_twins_do_the_same() {
    let (limiter, _) = two_tiers();
    let reservation = limiter.reserve(&ALL.cost(8)).await.unwrap();
    reservation.commit(1).await.unwrap();
    assert_eq!(remaining(&limiter, &ALL), [9, 19]);
    limiter.reserve(&ALL.cost(5)).await.unwrap().refund().await.unwrap();
    assert_eq!(remaining(&limiter, &ALL), [9, 19]);
    let denied = limiter.reserve(&ALL.cost(10)).await.unwrap();
    denied.refund().await.unwrap();
    assert_eq!(remaining(&limiter, &ALL), [9, 19]);
    let verdict = limiter.reserve(&ALL.cost(1)).await.unwrap().settle(100).await.unwrap();
    assert!(verdict.is_allowed());
    assert_eq!(remaining(&limiter, &ALL), [0, 0]);
}
