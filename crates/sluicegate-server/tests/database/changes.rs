//! Watching for changes, made by any process or by hand.

use std::time::Duration;

use sluicegate::rules::Override;
use sluicegate_server::data::{Changes, OverrideSpec, Role};

use crate::database::common::{Place, by, on_both, spec};

on_both!(changes_are_noticed_from_everywhere, nothing_is_noticed_while_nothing_changes);

/// Maximum time until a change is noticed: below the 2 s within which it must be in force everywhere.
const SOON: Duration = Duration::from_millis(1800);

async fn is_noticed(changes: &mut Changes) -> bool {
    tokio::time::timeout(SOON, changes.next()).await.is_ok()
}

async fn changes_are_noticed_from_everywhere(place: Place) {
    let (here, there) = (place.migrated().await, place.open().await);
    let mut changes = there.changes().await.unwrap();
    let rule = here.create_rule(&spec("new:{ip}"), &by("me")).await.unwrap();
    assert!(is_noticed(&mut changes).await, "a rule made elsewhere");
    there.delete_rule(rule.spec.rule_id, None, &by("me")).await.unwrap();
    assert!(is_noticed(&mut changes).await, "a rule deleted here");
    let blocked = OverrideSpec {
        rule_id: 1,
        subject: "42".into(),
        instead: Override::Blocked,
        reason: String::new(),
        expires_at: None,
    };
    here.put_override(&blocked, None, &by("me")).await.unwrap();
    assert!(is_noticed(&mut changes).await, "an override");
    here.create_token("ci", Role::Read, &[1; 32], &by("me")).await.unwrap();
    assert!(is_noticed(&mut changes).await, "a token");
    place
        .by_hand("UPDATE rate_limit_rules SET burst_capacity = 9 WHERE rule_id = 1")
        .await
        .unwrap();
    assert!(is_noticed(&mut changes).await, "by hand");
    // Changes before the call count as well, and several are reported as one.
    for n in 0..5 {
        here.create_rule(&spec(&format!("rule{n}")), &by("me")).await.unwrap();
    }
    assert!(is_noticed(&mut changes).await, "before it was asked");
    assert!(!is_noticed(&mut changes).await, "that was all");
}

async fn nothing_is_noticed_while_nothing_changes(place: Place) {
    let database = place.migrated().await;
    let mut changes = database.changes().await.unwrap();
    assert!(!is_noticed(&mut changes).await);
    // A dropped future loses no change.
    database.create_rule(&spec("new:{ip}"), &by("me")).await.unwrap();
    for _ in 0..50 {
        let moment = Duration::from_millis(3);
        let _ = tokio::time::timeout(moment, changes.next()).await;
    }
    database.delete_rule(1, None, &by("me")).await.unwrap();
    assert!(is_noticed(&mut changes).await);
}
