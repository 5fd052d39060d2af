//! Buckets of rules, one by one: peek, grant, refund, reset.

use sluicegate::{Algorithm, Override, Overrides, Quota, Request, Rule, RuleSet};

use crate::library::support::{
    TestLimiter, allowed_in_a_row, limiter, quota, remaining, rule, secs,
};

const ALL: Request<'_> = Request::new();

fn user(user_id: &str) -> Request<'_> {
    Request::new().user_id(user_id)
}

fn overridden(limiter: &TestLimiter, subject: &str, instead: Override) {
    let overrides = Overrides::new([(1, subject.to_owned(), instead)]).unwrap();
    limiter.replace_rules(limiter.rules().as_ref().clone().with_overrides(overrides));
}

#[test]
fn a_bucket_is_looked_into_filled_and_forgotten() {
    let (limiter, clock) = limiter(vec![rule(1, "user:{user_id}", "1/hour burst 10")]);
    let bucket = limiter.bucket(1, &user("42")).unwrap();
    assert_eq!(
        (bucket.key(), bucket.quota(), bucket.overridden()),
        ("user:42", &quota("1/hour burst 10"), None)
    );
    assert_eq!(bucket.peek_now().remaining, 10);
    assert!(!bucket.reset_now(), "what is full is not there");

    assert!(limiter.check_now(&user("42").cost(10)).is_allowed());
    assert_eq!(bucket.peek_now().remaining, 0);
    assert_eq!(bucket.peek_now().reset_after(), secs(10 * 3600));
    assert_eq!(bucket.grant_now(2).remaining, 2);
    assert_eq!(bucket.refund_now(1).remaining, 3);
    assert_eq!(remaining(&limiter, &user("42")), [3]);
    assert_eq!(bucket.grant_now(u64::MAX).remaining, 10, "never more than full");
    assert_eq!(limiter.store().stats().buckets, 0, "and what is full is not kept");

    assert_eq!(allowed_in_a_row(&limiter, &user("42")), 10);
    assert_eq!(remaining(&limiter, &user("43")), [10], "others' are others'");
    assert!(bucket.reset_now());
    assert_eq!(allowed_in_a_row(&limiter, &user("42")), 10);
    clock.advance(secs(3600));
    assert_eq!(bucket.peek_now().remaining, 1);
}

/// Nothing that an operator does makes a bucket hold more than its quota says, whatever the algorithm.
#[test]
fn a_grant_is_capped_at_full_for_every_algorithm() {
    for algorithm in Algorithm::ALL {
        let quota = Quota::per_hour(10).and_then(|quota| quota.with_algorithm(algorithm)).unwrap();
        let (limiter, _) = limiter(vec![Rule::new(1, "a", quota).unwrap()]);
        assert!(limiter.check_now(&ALL.cost(10)).is_allowed(), "{algorithm:?}");
        let bucket = limiter.bucket(1, &ALL).unwrap();
        assert_eq!(bucket.grant_now(4).remaining, 4, "{algorithm:?}");
        assert_eq!(bucket.grant_now(100).remaining, 10, "{algorithm:?}");
        assert_eq!(allowed_in_a_row(&limiter, &ALL), 10, "{algorithm:?}");
        assert!(bucket.reset_now());
        assert_eq!(bucket.peek_now().remaining, 10, "{algorithm:?}");
    }
}

#[test]
fn it_is_found_by_the_rule_and_by_what_the_rule_asks_for() {
    let off = rule(1, "{endpoint}:{user_id}", "1/hour burst 3").with_is_active(false);
    let plan = rule(2, "user:{user_id}", "1/hour burst 3").with_plan("pro").unwrap();
    let login =
        rule(3, "login:{ip}", "1/hour burst 3").with_condition("endpoint", "/login").unwrap();
    let (limiter, _) = limiter(vec![off, plan, login, rule(4, "global", "1/hour burst 3")]);
    let key = |rule_id, request: &Request<'_>| {
        limiter.bucket(rule_id, request).map(|bucket| bucket.key().to_owned())
    };
    let request = user("42").ip("::1").endpoint("/");
    assert_eq!(key(1, &request).unwrap(), "/:42", "also if it is switched off");
    assert_eq!(key(2, &request).unwrap(), "user:42", "or for another plan");
    assert_eq!(key(3, &request).unwrap(), "login:::1", "or its conditions fail");
    assert_eq!(key(4, &ALL).unwrap(), "global");
    assert_eq!((key(5, &request), key(1, &user("42")), key(3, &user("42"))), (None, None, None));

    // It is the bucket that a check charges.
    assert!(
        limiter.check_now(&request.clone().plan("pro").endpoint("/login").cost(2)).is_allowed()
    );
    let left: Vec<_> =
        (2..=4).map(|id| limiter.bucket(id, &request).unwrap().peek_now().remaining).collect();
    assert_eq!(left, [1, 1, 1]);
}

#[test]
fn it_is_counted_by_the_override_in_force() {
    let (limiter, _) = limiter(vec![rule(1, "user:{user_id}", "1/hour burst 10")]);
    let more = Override::Quota(quota("1/hour burst 100"));
    overridden(&limiter, "42", more);
    assert!(limiter.check_now(&user("42").cost(70)).is_allowed());
    let bucket = limiter.bucket(1, &user("42")).unwrap();
    assert_eq!((bucket.quota().capacity(), bucket.overridden()), (100, Some(more)));
    assert_eq!(bucket.grant_now(10).remaining, 40, "nothing beyond the rule's ten was forgotten");
    assert_eq!(remaining(&limiter, &user("42")), [40]);
    assert_eq!(limiter.bucket(1, &user("43")).unwrap().quota().capacity(), 10);

    for instead in [Override::Unlimited, Override::Blocked] {
        overridden(&limiter, "43", instead);
        let bucket = limiter.bucket(1, &user("43")).unwrap();
        assert_eq!((bucket.quota().capacity(), bucket.overridden()), (10, Some(instead)));
        assert_eq!(bucket.peek_now().remaining, 10);
    }
}

#[cfg(feature = "tokio")]
#[tokio::test]
async fn the_asynchronous_twins_do_the_same() {
    let (limiter, _) = limiter(vec![rule(1, "user:{user_id}", "1/hour burst 10")]);
    assert!(limiter.check(&user("42").cost(10)).await.unwrap().is_allowed());
    let bucket = limiter.bucket(1, &user("42")).unwrap();
    assert_eq!(bucket.peek().await.unwrap().remaining, 0);
    assert_eq!(bucket.grant(1).await.unwrap().remaining, 1);
    assert_eq!(bucket.refund(1).await.unwrap().remaining, 2);
    let look = bucket.look().await.unwrap();
    assert_eq!((look.decisions[0].remaining, look.degraded), (2, false));
    assert!(bucket.reset().await.unwrap() && !bucket.reset().await.unwrap());
    assert_eq!(bucket.peek().await.unwrap().remaining, 10);
}

/// The bucket outlives the set of rules that it was found by.
#[test]
fn a_rule_that_is_gone_leaves_its_bucket() {
    let (limiter, _) = limiter(vec![rule(1, "a", "1/hour burst 2")]);
    assert!(limiter.check_now(&ALL.cost(2)).is_allowed());
    let bucket = limiter.bucket(1, &ALL).unwrap();
    limiter.replace_rules(RuleSet::default());
    assert!(limiter.bucket(1, &ALL).is_none());
    assert_eq!(bucket.peek_now().remaining, 0);
    assert!(bucket.reset_now());
}
