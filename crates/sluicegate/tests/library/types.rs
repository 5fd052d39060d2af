//! All types and futures are `Send`.

use sluicegate::rules::{
    Applies, Attribute, FieldError, Glob, GlobError, OverridesError, Pattern, PatternError,
    RuleError, RuleSetError, RuleSetErrors, RuleSpec,
};
use sluicegate::{
    Algorithm, Bucket, Charge, Decimal, DecimalError, Decision, Decisions, KeyedLimiter, Limiter,
    ManualClock, MemoryKey, MemoryStats, MemoryStore, MemoryStoreBuilder, Micros, Mode, OnError,
    OnFull, Outcome, Override, Overrides, Quota, QuotaError, Rate, RateError, Refill, Request,
    Reservation, Rule, RuleSet, Scope, Space, SystemClock, Tier, UnknownName, Verdict,
};

use crate::library::support::{limiter, quota};

fn send_and_sync<T: Send + Sync>() {}

macro_rules! all_are_send_and_sync {
    ($($type:ty),* $(,)?) => {
        $(send_and_sync::<$type>();)*
    };
}

#[test]
fn every_public_type_is_send_and_sync() {
    all_are_send_and_sync!(
        Algorithm,
        Applies,
        Attribute,
        Bucket<MemoryStore>,
        Charge<'_, MemoryKey>,
        Decimal,
        DecimalError,
        Decision,
        Decisions,
        FieldError,
        Glob,
        GlobError,
        KeyedLimiter<str>,
        KeyedLimiter<std::rc::Rc<str>, ManualClock>,
        Limiter,
        Limiter<MemoryStore<ManualClock>>,
        ManualClock,
        MemoryKey,
        MemoryStats,
        MemoryStore,
        MemoryStoreBuilder,
        Micros,
        Mode,
        OnError,
        OnFull,
        Outcome,
        Override,
        Overrides,
        OverridesError,
        Pattern,
        PatternError,
        Quota,
        QuotaError,
        Rate,
        RateError,
        Refill,
        Request<'_>,
        Reservation<MemoryStore>,
        Rule,
        RuleError,
        RuleSet,
        RuleSetError,
        RuleSetErrors,
        RuleSpec,
        Scope,
        Space<'_>,
        SystemClock,
        Tier<'_>,
        UnknownName,
        Verdict,
    );
    #[cfg(feature = "file")]
    all_are_send_and_sync!(sluicegate::rules::FileErrors, sluicegate::rules::FileError);
    #[cfg(feature = "tokio")]
    all_are_send_and_sync!(sluicegate::WaitError<std::convert::Infallible>);
}

fn send<T: Send>(_: T) {}

#[test]
fn every_future_can_be_sent() {
    let (limiter, _) = limiter(Vec::new());
    let (request, quota) = (Request::new(), quota("1/s"));
    send(limiter.check(&request));
    send(limiter.reserve(&request));
    send(limiter.take("k", &quota, 1));
    send(limiter.peek("k", &quota));
    send(limiter.refund("k", &quota, 1));
    send(limiter.reset("k"));
    send(limiter.reserve_now(&request).commit(0));
    send(limiter.reserve_now(&request).refund());
    #[cfg(feature = "tokio")]
    {
        use std::time::Duration;
        send(limiter.until_granted("k", &quota, 1, Duration::ZERO));
        let keyed = KeyedLimiter::<str>::new("n", quota);
        send(keyed.until_granted("k", 1, Duration::ZERO));
    }
}

/// A verdict can outlive its rules and move to another thread.
#[test]
fn a_verdict_outlives_its_rules() {
    let (limiter, _) = limiter(vec![crate::library::support::rule(1, "a", "1/s")]);
    let verdicts: Vec<Verdict> = (0..50)
        .map(|_| {
            let verdict = limiter.check_now(&Request::new());
            limiter.replace_rules(limiter.rules().as_ref().clone());
            verdict
        })
        .collect();
    drop(limiter);
    let versions = std::thread::spawn(move || {
        verdicts.iter().map(|v| (v.version(), v.tiers().len())).collect::<Vec<_>>()
    });
    let expected: Vec<_> = (1..=50).map(|version| (version, 1)).collect();
    assert_eq!(versions.join().unwrap(), expected);
}
