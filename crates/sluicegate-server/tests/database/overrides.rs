//! Overrides and tokens.

use std::time::Duration;

use sluicegate::rules::Override;
use sluicegate::{Algorithm, Quota};
use sluicegate_server::data::{
    DataError, OverrideFilter, OverrideSpec, Page, REASON_BYTES_MAX, Role, SUBJECT_BYTES_MAX,
    StoredOverride,
};
use sluicegate_server::time::Timestamp;

use crate::database::common::{FIRST, Place, by, on_both};

on_both!(
    an_override_is_made_changed_and_deleted,
    an_override_is_created_once,
    every_kind_of_override_comes_back_as_it_was_written,
    overrides_are_listed,
    expired_overrides_are_deleted,
    tokens_are_kept_by_name,
);

fn blocked(rule_id: u64, subject: &str) -> OverrideSpec {
    OverrideSpec {
        rule_id,
        subject: subject.into(),
        instead: Override::Blocked,
        reason: "abuse".into(),
        expires_at: None,
    }
}

async fn an_override_is_created_once(place: Place) {
    let database = place.migrated().await;
    let spec = blocked(1, "42");
    let made = database.create_override(&spec, &by("me")).await.unwrap();
    assert_eq!((made.version, made.created_by.as_str()), (1, "me"));
    let generation = database.generation().await.unwrap();
    let exists = DataError::Exists { by: "me".into(), at: made.created_at };
    // Also if it would be the same.
    assert_eq!(database.create_override(&spec, &by("you")).await, Err(exists));
    assert_eq!(database.generation().await.unwrap(), generation);
    let other = OverrideSpec { rule_id: 2, ..spec.clone() };
    database.create_override(&other, &by("you")).await.unwrap();

    // One that has expired is not in force any more.
    let ended = Timestamp::from_micros(1_000_000);
    let past = OverrideSpec { expires_at: Some(ended), ..blocked(1, "past") };
    let (past, _) = database.put_override(&past, None, &by("me")).await.unwrap();
    let renewed = database.create_override(&blocked(1, "past"), &by("you")).await.unwrap();
    assert_eq!((renewed.override_id, renewed.version), (past.override_id, 2));
    assert_eq!(renewed.spec.expires_at, None);
}

async fn an_override_is_made_changed_and_deleted(place: Place) {
    let database = place.migrated().await;
    let missing = Err(DataError::NotFound("override"));
    let spec = blocked(1, "42");
    assert_eq!(database.put_override(&spec, Some(1), &by("me")).await.map(drop), missing);
    let (made, is_new) = database.put_override(&spec, None, &by("me")).await.unwrap();
    assert!(is_new);
    assert_eq!((&made.spec, made.version, made.created_by.as_str()), (&spec, 1, "me"));
    assert_eq!(database.get_override(made.override_id).await.unwrap(), made);

    let other = OverrideSpec { instead: Override::Unlimited, ..spec.clone() };
    let stale = Err(DataError::Stale { current: 1 });
    assert_eq!(database.put_override(&other, Some(2), &by("you")).await.map(drop), stale);
    let (changed, is_new) = database.put_override(&other, Some(1), &by("you")).await.unwrap();
    assert!(!is_new);
    assert_eq!((changed.override_id, changed.version), (made.override_id, 2));
    assert_eq!((&changed.spec, changed.created_by.as_str()), (&other, "you"));
    // An update without a difference is not a change.
    let generation = database.generation().await.unwrap();
    let (same, _) = database.put_override(&other, None, &by("they")).await.unwrap();
    assert_eq!(same, changed);
    assert_eq!(database.generation().await.unwrap(), generation);

    let stale = Err(DataError::Stale { current: 2 });
    assert_eq!(database.delete_override(made.override_id, Some(1), &by("me")).await, stale);
    assert_eq!(
        database.delete_override(made.override_id, Some(2), &by("me")).await.unwrap(),
        changed
    );
    assert_eq!(database.get_override(made.override_id).await.map(drop), missing);
    assert_eq!(
        database.delete_override(made.override_id, None, &by("me")).await.map(drop),
        missing
    );

    for (spec, field) in [
        (blocked(1, ""), "subject"),
        (blocked(1, "a\0b"), "subject"),
        (blocked(1, &"x".repeat(SUBJECT_BYTES_MAX + 1)), "subject"),
        (OverrideSpec { reason: "x".repeat(REASON_BYTES_MAX + 1), ..blocked(1, "42") }, "reason"),
    ] {
        let error = database.put_override(&spec, None, &by("me")).await.unwrap_err();
        let DataError::Refused(errors) = &error else { panic!("{error}") };
        assert_eq!(errors[0].field, field);
    }
    let longest = blocked(1, &"\u{e9}".repeat(SUBJECT_BYTES_MAX / 2));
    database.put_override(&longest, None, &by(&"b".repeat(5000))).await.unwrap();
}

async fn every_kind_of_override_comes_back_as_it_was_written(place: Place) {
    let database = place.migrated().await;
    let queue = Quota::new(7, Duration::from_micros(1_000_003)).unwrap();
    let queue = queue.with_algorithm(Algorithm::LeakyBucket).unwrap();
    let queue = queue.with_max_wait(Duration::from_millis(1500)).unwrap();
    let window = Quota::per_hour(1000).unwrap().with_algorithm(Algorithm::SlidingWindow).unwrap();
    let kinds = [
        Override::Unlimited,
        Override::Blocked,
        Override::Quota(queue),
        Override::Quota(window),
        Override::Quota("0.016/s burst 3".parse().unwrap()),
    ];
    for (rule_id, instead) in (100..).zip(kinds) {
        let expires_at = Some(Timestamp::from_micros(1_800_000_000_000_001));
        let spec =
            OverrideSpec { instead, expires_at, ..blocked(rule_id, "it's \"42\" \u{1f947}") };
        let (made, _) = database.put_override(&spec, None, &by("me")).await.unwrap();
        assert_eq!(made.spec, spec);
        assert_eq!(database.get_override(made.override_id).await.unwrap(), made);
    }
    let all = database.load().await.unwrap().overrides;
    assert_eq!(all.iter().map(|found| found.spec.instead).collect::<Vec<_>>(), kinds);
}

async fn overrides_are_listed(place: Place) {
    let database = place.migrated().await;
    for (rule_id, subject) in [(1, "a"), (1, "b"), (2, "a"), (2, "c")] {
        database.put_override(&blocked(rule_id, subject), None, &by("me")).await.unwrap();
    }
    let list = async |filter: OverrideFilter, page: Page| -> Vec<(u64, String)> {
        let found = database.overrides(&filter, page).await.unwrap();
        let name = |found: StoredOverride| (found.spec.rule_id, found.spec.subject);
        found.into_iter().map(name).collect()
    };
    let names = |names: &[(u64, &str)]| -> Vec<(u64, String)> {
        names.iter().map(|(rule_id, subject)| (*rule_id, (*subject).into())).collect()
    };
    let all = OverrideFilter::default();
    assert_eq!(
        list(all.clone(), Page { after: Some(1), limit: 2 }).await,
        names(&[(1, "b"), (2, "a")])
    );
    let of_rule = OverrideFilter { rule_id: Some(2), subject: None };
    assert_eq!(list(of_rule.clone(), FIRST).await, names(&[(2, "a"), (2, "c")]));
    let of_subject = OverrideFilter { rule_id: None, subject: Some("a".into()) };
    assert_eq!(list(of_subject, FIRST).await, names(&[(1, "a"), (2, "a")]));
    let both = OverrideFilter { subject: Some("a".into()), ..of_rule };
    assert_eq!(list(both, FIRST).await, names(&[(2, "a")]));
}

async fn expired_overrides_are_deleted(place: Place) {
    let database = place.migrated().await;
    let at = Timestamp::from_micros;
    for n in 1..=5 {
        let expires_at = Some(at(n * 1_000_000));
        let spec = OverrideSpec { expires_at, ..blocked(1, &n.to_string()) };
        database.put_override(&spec, None, &by("me")).await.unwrap();
    }
    database.put_override(&blocked(1, "for ever"), None, &by("me")).await.unwrap();
    let generation = database.generation().await.unwrap();
    assert_eq!(database.delete_expired_overrides(at(1_000_000), 10).await.unwrap(), 0);
    assert_eq!(database.generation().await.unwrap(), generation, "nothing has changed");
    assert_eq!(database.delete_expired_overrides(at(4_000_001), 3).await.unwrap(), 3);
    assert_eq!(database.delete_expired_overrides(at(4_000_001), 3).await.unwrap(), 1);
    assert_eq!(database.delete_expired_overrides(at(4_000_001), 3).await.unwrap(), 0);
    assert_eq!(database.load().await.unwrap().overrides.len(), 2);
    assert!(database.generation().await.unwrap() > generation);
}

async fn tokens_are_kept_by_name(place: Place) {
    let database = place.migrated().await;
    let generation = database.generation().await.unwrap();
    let made = database.create_token("ci", Role::Admin, &[7; 32], &by("me")).await.unwrap();
    assert_eq!((made.name.as_str(), made.role, made.hash), ("ci", Role::Admin, [7; 32]));
    let other = database.create_token("grafana", Role::Read, &[8; 32], &by("me")).await.unwrap();
    assert!(database.generation().await.unwrap() > generation);
    let error = database.create_token("ci", Role::Read, &[9; 32], &by("me")).await.unwrap_err();
    assert!(matches!(error, DataError::Conflict { field: "name", .. }), "{error}");
    for name in ["", "a\nb", &"x".repeat(65)] {
        let error = database.create_token(name, Role::Read, &[9; 32], &by("me")).await.unwrap_err();
        assert!(matches!(error, DataError::Refused(_)), "{error}");
    }
    assert_eq!(database.tokens().await.unwrap(), [made.clone(), other.clone()]);
    assert_eq!(database.delete_token("ci", &by("me")).await.unwrap(), made);
    assert_eq!(database.delete_token("ci", &by("me")).await, Err(DataError::NotFound("token")));
    assert_eq!(database.delete_token("a\0", &by("me")).await, Err(DataError::NotFound("token")));
    assert_eq!(database.load().await.unwrap().tokens, [other]);
}
