//! Callers of the data doors.

use sluicegate_server::data::{CallerSpec, DataError, Right, Rights};
use sluicegate_server::time::Timestamp;

use crate::database::common::{Place, by, on_both};

on_both!(
    a_caller_is_made_changed_and_revoked,
    callers_of_one_name_or_certificate_are_refused,
    a_use_is_recorded_and_is_not_a_change,
);

fn spec(name: &str) -> CallerSpec {
    CallerSpec {
        name: name.into(),
        rights: Rights::from_iter([Right::Check, Right::Take]),
        namespace: Some("team-a".into()),
        certificate: Some(format!("{name}.example")),
        expires_at: Some(Timestamp::from_micros(1_785_585_600_000_000)),
    }
}

async fn a_caller_is_made_changed_and_revoked(place: Place) {
    let database = place.migrated().await;
    let before = database.generation().await.unwrap();
    let made = database.create_caller(&spec("checkout"), Some(&[7; 32]), &by("me")).await.unwrap();
    assert_eq!(
        (made.name.as_str(), made.hash, made.created_by.as_str()),
        ("checkout", Some([7; 32]), "me")
    );
    assert_eq!(made.rights.to_string(), "check,take");
    assert_eq!(
        (made.namespace.as_deref(), made.certificate.as_deref()),
        (Some("team-a"), Some("checkout.example"))
    );
    assert_eq!(database.load().await.unwrap().callers, std::slice::from_ref(&made));
    let created = database.generation().await.unwrap();
    assert_ne!(created, before);

    let changed = database
        .change_caller("checkout", &by("me"), |before| {
            assert_eq!(before, &made);
            Ok(CallerSpec {
                rights: Rights::ALL,
                namespace: None,
                certificate: None,
                ..spec("other")
            })
        })
        .await
        .unwrap();
    assert_eq!((changed.name.as_str(), changed.caller_id), ("checkout", made.caller_id));
    assert_eq!((changed.rights, changed.namespace.as_deref()), (Rights::ALL, None));
    assert_ne!(database.generation().await.unwrap(), created);

    let missing = Err(DataError::NotFound("caller"));
    assert_eq!(
        database.change_caller("other", &by("me"), |_| Ok(spec("x"))).await.map(drop),
        missing
    );
    assert_eq!(database.delete_caller("checkout", &by("me")).await.unwrap(), changed);
    assert_eq!(database.delete_caller("checkout", &by("me")).await.map(drop), missing);
    assert!(database.callers().await.unwrap().is_empty());
}

async fn callers_of_one_name_or_certificate_are_refused(place: Place) {
    let database = place.migrated().await;
    database.create_caller(&spec("one"), None, &by("me")).await.unwrap();
    let conflict = |result: Result<_, DataError>| match result {
        Err(DataError::Conflict { field, .. }) => field,
        other => panic!("{:?}", other.map(drop)),
    };
    assert_eq!(conflict(database.create_caller(&spec("one"), None, &by("me")).await), "name");
    let same = CallerSpec { certificate: spec("one").certificate, ..spec("two") };
    assert_eq!(conflict(database.create_caller(&same, None, &by("me")).await), "certificate");
    let neither = CallerSpec { certificate: None, ..spec("two") };
    let refused = database.create_caller(&neither, None, &by("me")).await;
    assert!(matches!(refused, Err(DataError::Refused(_))));
    // Several callers without a certificate, and the constraint by hand.
    database.create_caller(&neither, Some(&[1; 32]), &by("me")).await.unwrap();
    let neither = CallerSpec { name: "three".into(), ..neither };
    database.create_caller(&neither, Some(&[2; 32]), &by("me")).await.unwrap();
    let insert = "INSERT INTO rate_limit_callers (name, rights) VALUES ('four', 'check')";
    assert!(place.by_hand(insert).await.unwrap_err().contains("credentials"));
}

async fn a_use_is_recorded_and_is_not_a_change(place: Place) {
    let database = place.migrated().await;
    let caller = database.create_caller(&spec("one"), None, &by("me")).await.unwrap();
    let generation = database.generation().await.unwrap();
    let (id, at) = (caller.caller_id, Timestamp::from_micros);
    database.record_caller_uses(&[], at(1)).await.unwrap();
    database.record_caller_uses(&[id, 99], at(2_000_000)).await.unwrap();
    // Another process writes an earlier use later.
    database.record_caller_uses(&[id], at(1_000_000)).await.unwrap();
    assert_eq!(database.caller_uses().await.unwrap(), [(id, at(2_000_000))]);
    assert_eq!(database.generation().await.unwrap(), generation);
    database.delete_caller("one", &by("me")).await.unwrap();
    assert!(database.caller_uses().await.unwrap().is_empty());
}
