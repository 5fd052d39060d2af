//! The history: every change leaves one record, by the service in its own transaction and by triggers for SQL by hand.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value, json};
use sluicegate::rules::{Override, RuleSpec};
use sluicegate_server::data::{
    Act, Author, CallerSpec, Database, HistoryBatch, HistoryEntry, HistoryFilter, HistoryKind,
    HistoryOrder, HistoryRow, Outcome, OverrideSpec, Recording, Right, Role,
};
use sluicegate_server::time::Timestamp;

use crate::database::common::{Place, on_both, spec};

on_both! {
    every_change_leaves_one_record,
    a_dry_run_and_a_change_without_a_difference_leave_none,
    sql_by_hand_is_recorded_as_such,
    bulk_sql_is_bounded,
    overrides_of_a_deleted_rule_are_recorded,
    filters_and_cursor,
    privacy_is_applied_when_written_when_read_and_later,
    rows_are_kept_by_age_and_number,
    batches_are_written_once,
}

fn author() -> Author {
    let address = Some("203.0.113.9".parse().unwrap());
    Author { name: "token:ops".into(), address, reason: "incident 7".into() }
}

fn blocked(rule_id: u64, subject: &str) -> OverrideSpec {
    let (subject, reason) = (subject.into(), "abuse".into());
    OverrideSpec { rule_id, subject, instead: Override::Blocked, reason, expires_at: None }
}

async fn all(database: &Database) -> Vec<HistoryEntry> {
    database.history(&HistoryFilter::default(), None, 10_000).await.unwrap()
}

/// Takes the records that were added since the last call, oldest first.
async fn new(database: &Database, seen: &mut usize) -> Vec<HistoryEntry> {
    let mut entries = all(database).await;
    entries.reverse();
    let new = entries.split_off(*seen);
    *seen += new.len();
    new
}

/// Asserts that exactly one record was added, and returns it.
async fn one(database: &Database, seen: &mut usize, act: &str) -> HistoryEntry {
    let mut new = new(database, seen).await;
    assert_eq!(new.iter().map(|entry| &*entry.act).collect::<Vec<_>>(), [act]);
    new.remove(0)
}

async fn every_change_leaves_one_record(place: Place) {
    let (database, by, mut seen) = (place.migrated().await, author(), 0);
    let is_complete = |entry: &HistoryEntry| {
        assert_eq!(entry.who, "token:ops");
        assert_eq!(entry.address.as_deref(), Some("203.0.113.9"));
        assert_eq!((&*entry.reason, entry.count, entry.outcome), ("incident 7", 1, Outcome::Done));
    };

    let rule = database.create_rule(&spec("new:{ip}"), &by).await.unwrap().spec;
    let entry = one(&database, &mut seen, "rule.create").await;
    is_complete(&entry);
    assert_eq!((entry.rule_id, &entry.before), (Some(rule.rule_id), &None));
    assert_eq!(entry.after.as_ref().unwrap()["key_pattern"], "new:{ip}");

    let wider = RuleSpec { burst_capacity: Some(77), ..rule.clone() };
    database.update_rule(&wider, None, &by).await.unwrap();
    let entry = one(&database, &mut seen, "rule.update").await;
    is_complete(&entry);
    assert_eq!(entry.before.unwrap()["burst_capacity"], 10);
    assert_eq!(entry.after.unwrap()["burst_capacity"], 77);

    let (set, _) = database.put_override(&blocked(1, "42"), None, &by).await.unwrap();
    let entry = one(&database, &mut seen, "override.set").await;
    is_complete(&entry);
    assert_eq!((entry.rule_id, entry.subject.as_deref()), (Some(1), Some("42")));
    assert_eq!(entry.after.as_ref().unwrap()["kind"], "blocked");
    assert_eq!(entry.after.unwrap()["subject"], Value::Null, "it has a column");
    let unexplained = Author { reason: String::new(), ..by.clone() };
    let free = OverrideSpec { instead: Override::Unlimited, ..blocked(1, "42") };
    database.put_override(&free, None, &unexplained).await.unwrap();
    let entry = one(&database, &mut seen, "override.set").await;
    assert_eq!(entry.reason, "abuse", "its own reason");
    assert_eq!(entry.before.unwrap()["kind"], "blocked");
    database.delete_override(set.override_id, None, &by).await.unwrap();
    let entry = one(&database, &mut seen, "override.delete").await;
    is_complete(&entry);
    assert_eq!((entry.subject.as_deref(), entry.after), (Some("42"), None));

    database.create_token("ci", Role::Admin, &[7; 32], &by).await.unwrap();
    let entry = one(&database, &mut seen, "token.create").await;
    is_complete(&entry);
    assert_eq!(entry.target.as_deref(), Some("ci"));
    assert_eq!(entry.after, Some(json!({"token_id": 1, "name": "ci", "role": "admin"})));
    database.delete_token("ci", &by).await.unwrap();
    is_complete(&one(&database, &mut seen, "token.revoke").await);

    let caller = CallerSpec {
        name: "checkout".into(),
        rights: [Right::Check, Right::Take].into_iter().collect(),
        namespace: Some("team-a".into()),
        certificate: None,
        expires_at: None,
    };
    database.create_caller(&caller, Some(&[8; 32]), &by).await.unwrap();
    let entry = one(&database, &mut seen, "caller.create").await;
    is_complete(&entry);
    assert_eq!(entry.after.unwrap()["rights"], json!(["check", "take"]));
    let changed = CallerSpec { namespace: None, ..caller };
    database.change_caller("checkout", &by, |_| Ok(changed.clone())).await.unwrap();
    let entry = one(&database, &mut seen, "caller.update").await;
    assert_eq!(entry.before.unwrap()["namespace"], "team-a");
    assert_eq!(entry.after.unwrap()["namespace"], Value::Null);
    database.delete_caller("checkout", &by).await.unwrap();
    is_complete(&one(&database, &mut seen, "caller.revoke").await);

    database.delete_rule(rule.rule_id, None, &by).await.unwrap();
    is_complete(&one(&database, &mut seen, "rule.delete").await);

    let rules = [spec("only:{ip}"), RuleSpec { rule_id: 8, ..spec("other") }];
    database.replace_rules(&rules, None, &by).await.unwrap();
    let entries = new(&database, &mut seen).await;
    entries.iter().for_each(is_complete);
    let count = |act| entries.iter().filter(|entry| entry.act == act).count();
    assert_eq!(entries[0].act, "rules.replace");
    assert_eq!(entries[0].after, Some(json!({"added": 1, "changed": 1, "removed": 8})));
    assert_eq!((count("rule.create"), count("rule.update"), count("rule.delete")), (1, 1, 8));
    assert_eq!(entries.len(), 11);

    let expires_at = Some(Timestamp::from_micros(1_000_000));
    let expired = OverrideSpec { expires_at, ..blocked(8, "43") };
    database.put_override(&expired, None, &by).await.unwrap();
    one(&database, &mut seen, "override.set").await;
    database.delete_expired_overrides(Timestamp::from_micros(2_000_000), 10).await.unwrap();
    let entry = one(&database, &mut seen, "override.expire").await;
    assert_eq!(
        (&*entry.who, entry.subject.as_deref(), entry.address),
        ("service", Some("43"), None)
    );
    let hashes = all(&database).await;
    assert!(hashes.iter().all(|entry| !format!("{entry:?}").contains("hash")));
}

async fn a_dry_run_and_a_change_without_a_difference_leave_none(place: Place) {
    let (database, by) = (place.migrated().await, author());
    let dry = database.dry_run();
    dry.create_rule(&spec("new:{ip}"), &by).await.unwrap();
    dry.delete_rule(1, None, &by).await.unwrap();
    dry.put_override(&blocked(1, "42"), None, &by).await.unwrap();
    dry.create_token("ci", Role::Read, &[7; 32], &by).await.unwrap();
    let rule = database.rule(1).await.unwrap().spec;
    database.update_rule(&rule, None, &by).await.unwrap();
    let rules = database.load().await.unwrap().rules;
    let same: Vec<_> = rules.into_iter().map(|rule| rule.spec).collect();
    database.replace_rules(&same, None, &by).await.unwrap();
    assert!(database.create_rule(&rule, &by).await.is_err());
    assert_eq!(all(&database).await, []);
    if let Place::Sqlite(_) = place {
        assert_eq!(place.number("SELECT COUNT(*) FROM rate_limit_acting").await, 0);
    }
}

async fn sql_by_hand_is_recorded_as_such(place: Place) {
    let (database, mut seen) = (place.migrated().await, 0);
    let who = match &place {
        Place::Sqlite(_) => "sql".to_owned(),
        Place::Postgres { .. } => "sql:sluicegate".to_owned(),
    };
    let is_by_hand = |entry: &HistoryEntry| {
        assert_eq!((&*entry.who, &*entry.reason, entry.count), (&*who, "", 1));
    };
    place.by_hand("UPDATE rate_limit_rules SET period = 1500000 WHERE rule_id = 1").await.unwrap();
    let entry = one(&database, &mut seen, "rule.update").await;
    is_by_hand(&entry);
    let (before, after) = (entry.before.unwrap(), entry.after.unwrap());
    assert_eq!((&before["period"], &after["period"]), (&json!(1), &json!(1.5)));
    // The form is that of the service.
    let stored = database.rule(1).await.unwrap();
    let mut expected = sluicegate_server::data::rule_json(&stored);
    let mut shown = after;
    let numbers = |rule: &Value| rule["rate_per_second"].as_f64().unwrap();
    assert!((numbers(&expected) - numbers(&shown)).abs() < 1e-9);
    for rule in [&mut expected, &mut shown] {
        rule.as_object_mut().unwrap().remove("rate_per_second");
    }
    assert_eq!(shown, expected);

    let hash = "X'0707070707070707070707070707070707070707070707070707070707070707'";
    let hash = match &place {
        Place::Sqlite(_) => hash.to_owned(),
        Place::Postgres { .. } => "decode(repeat('07', 32), 'hex')".to_owned(),
    };
    let statements = [
        (
            "INSERT INTO rate_limit_overrides (rule_id, subject, kind) VALUES (1, '42', 'blocked')"
                .to_owned(),
            "override.set",
        ),
        ("UPDATE rate_limit_overrides SET kind = 'unlimited'".to_owned(), "override.set"),
        ("DELETE FROM rate_limit_overrides".to_owned(), "override.delete"),
        (
            format!(
                "INSERT INTO rate_limit_tokens (name, role, hash) VALUES ('t', 'read', {hash})"
            ),
            "token.create",
        ),
        ("UPDATE rate_limit_tokens SET role = 'admin'".to_owned(), "token.update"),
        ("DELETE FROM rate_limit_tokens".to_owned(), "token.revoke"),
        (
            format!(
                "INSERT INTO rate_limit_callers (name, rights, hash) VALUES ('c', 'check,take', {hash})"
            ),
            "caller.create",
        ),
        ("UPDATE rate_limit_callers SET rights = 'check'".to_owned(), "caller.update"),
        ("DELETE FROM rate_limit_callers".to_owned(), "caller.revoke"),
        ("DELETE FROM rate_limit_rules WHERE rule_id = 1".to_owned(), "rule.delete"),
    ];
    for (sql, act) in statements {
        place.by_hand(&sql).await.unwrap();
        let entry = one(&database, &mut seen, act).await;
        is_by_hand(&entry);
        match act.split_once('.').unwrap().0 {
            "rule" => assert_eq!(entry.rule_id, Some(1)),
            "override" => assert_eq!(entry.subject.as_deref(), Some("42")),
            "token" => assert_eq!(entry.target.as_deref(), Some("t")),
            _ => assert_eq!(entry.target.as_deref(), Some("c")),
        }
        if act == "caller.update" {
            assert_eq!(entry.before.unwrap()["rights"], json!(["check", "take"]));
            let expected = json!({
                "caller_id": 1, "name": "c", "rights": ["check"], "namespace": null,
                "certificate": null, "expires_at": null, "has_new_hash": false,
            });
            assert_eq!(entry.after.unwrap(), expected);
        }
    }

    // In a transaction, also beside a change of the service on the same connection pool.
    database.create_rule(&spec("new:{ip}"), &author()).await.unwrap();
    one(&database, &mut seen, "rule.create").await;
    let both = "BEGIN; UPDATE rate_limit_rules SET description = 'x' WHERE rule_id = 2; \
                DELETE FROM rate_limit_rules WHERE rule_id = 3; COMMIT";
    place.by_hand(both).await.unwrap();
    let entries = new(&database, &mut seen).await;
    entries.iter().for_each(is_by_hand);
    assert_eq!(entries.len(), 2);
    let undone = "BEGIN; UPDATE rate_limit_rules SET description = 'y' WHERE rule_id = 2; ROLLBACK";
    place.by_hand(undone).await.unwrap();
    assert_eq!(new(&database, &mut seen).await, []);
    if let Place::Postgres { .. } = place {
        place.by_hand("TRUNCATE rate_limit_rules").await.unwrap();
        assert_eq!(new(&database, &mut seen).await.len(), 8);
    }
}

async fn bulk_sql_is_bounded(place: Place) {
    let (database, mut seen) = (place.migrated().await, 0);
    let insert = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000) \
                  INSERT INTO rate_limit_overrides (rule_id, subject, kind) \
                  SELECT 1, 's' || i, 'blocked' FROM n";
    for (sql, act) in [
        (insert, "override.set"),
        ("UPDATE rate_limit_overrides SET kind = 'unlimited'", "override.set"),
        ("DELETE FROM rate_limit_overrides", "override.delete"),
    ] {
        place.by_hand(sql).await.unwrap();
        let entries = new(&database, &mut seen).await;
        assert_eq!(entries.len(), 101, "{sql}");
        assert!(entries.iter().all(|entry| entry.act == act));
        assert_eq!(entries.iter().map(|entry| entry.count).sum::<u64>(), 3000, "{sql}");
        let others = entries.iter().find(|entry| entry.count > 1).unwrap();
        assert_eq!((others.count, &others.subject, &others.after), (2900, &None, &None));
    }
}

async fn overrides_of_a_deleted_rule_are_recorded(place: Place) {
    let (database, mut seen) = (place.migrated().await, 0);
    let insert = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1500) \
                  INSERT INTO rate_limit_overrides (rule_id, subject, kind) \
                  SELECT 1, 's' || i, 'blocked' FROM n";
    place.by_hand(insert).await.unwrap();
    new(&database, &mut seen).await;
    database.delete_rule(1, None, &author()).await.unwrap();
    let mut entries = new(&database, &mut seen).await;
    assert!(entries.iter().all(|entry| entry.who == "token:ops"));
    assert_eq!(entries.pop().unwrap().act, "rule.delete");
    assert!(entries.iter().all(|entry| entry.act == "override.delete"));
    assert_eq!((entries.len(), entries.iter().map(|entry| entry.count).sum()), (1001, 1500_u64));
}

async fn filters_and_cursor(place: Place) {
    let database = place.migrated().await;
    let other = Author::new("token:other");
    for n in 0..5 {
        let by = if n == 3 { &other } else { &author() };
        database.put_override(&blocked(n % 2 + 1, &format!("s{n}")), None, by).await.unwrap();
    }
    database.create_token("ci", Role::Read, &[7; 32], &other).await.unwrap();
    let found =
        async |filter: HistoryFilter| database.history(&filter, None, 100).await.unwrap().len();
    let none = HistoryFilter::default;
    assert_eq!(found(none()).await, 6);
    assert_eq!(found(HistoryFilter { act: Some(Act::OverrideSet), ..none() }).await, 5);
    assert_eq!(found(HistoryFilter { who: Some("token:other".into()), ..none() }).await, 2);
    assert_eq!(found(HistoryFilter { rule_id: Some(2), ..none() }).await, 2);
    assert_eq!(found(HistoryFilter { subject: vec!["s1".into(), "s2".into()], ..none() }).await, 2);
    assert_eq!(found(HistoryFilter { target: vec!["ci".into()], ..none() }).await, 1);
    let entries = all(&database).await;
    let third = entries[3].at;
    assert_eq!(found(HistoryFilter { from: Some(third), ..none() }).await, 4);
    assert_eq!(found(HistoryFilter { to: Some(third), ..none() }).await, 2);
    let (mut walked, mut after) = (Vec::new(), None);
    loop {
        let page = database.history(&none(), after, 2).await.unwrap();
        let Some(last) = page.last() else { break };
        after = Some(last.order().to_string().parse().unwrap());
        walked.extend(page);
    }
    assert_eq!(walked, entries);
}

/// Privacy that is easy to see.
#[derive(Debug, Default)]
struct Upper {
    rows: AtomicU64,
}

impl Recording for Upper {
    fn subject(&self, _: Option<u64>, subject: &str) -> String {
        subject.to_uppercase()
    }

    fn address(&self, _: IpAddr) -> String {
        "hidden".into()
    }

    fn wrote(&self, rows: u64) {
        self.rows.fetch_add(rows, Ordering::Relaxed);
    }
}

async fn privacy_is_applied_when_written_when_read_and_later(place: Place) {
    let raw = place.migrated().await;
    let upper = Arc::new(Upper::default());
    let private = raw.clone().with_recording(Arc::<Upper>::clone(&upper));
    let stored = "SELECT COUNT(*) FROM rate_limit_history WHERE subject = 'alice'";
    private.put_override(&blocked(1, "alice"), None, &author()).await.unwrap();
    assert_eq!(place.number(stored).await, 0, "masked when written");
    assert_eq!(upper.rows.load(Ordering::Relaxed), 1);
    let insert =
        "INSERT INTO rate_limit_overrides (rule_id, subject, kind) VALUES (2, 'alice', 'blocked')";
    place.by_hand(insert).await.unwrap();
    raw.put_override(&blocked(3, "alice"), None, &author()).await.unwrap();
    assert_eq!(place.number(stored).await, 2, "the setting was not known");
    for entry in all(&private).await {
        assert_eq!(entry.subject.as_deref(), Some("ALICE"), "masked when read");
        assert!(entry.address.is_none_or(|address| address == "hidden"));
    }
    assert_eq!(private.mask_history(1).await.unwrap(), 1);
    assert_eq!(private.mask_history(10).await.unwrap(), 1);
    assert_eq!(private.mask_history(10).await.unwrap(), 0);
    assert_eq!(place.number(stored).await, 0, "masked later");
    assert_eq!(all(&private).await.len(), 3);
}

fn sum(count: u64, at: Timestamp) -> HistoryRow {
    HistoryRow {
        at,
        who: "unknown".into(),
        act: Act::SignInFailed,
        rule_id: None,
        subject: None,
        target: Some("http".into()),
        before: None,
        after: None,
        address: Some("203.0.113.0/24".into()),
        reason: String::new(),
        count,
    }
}

async fn rows_are_kept_by_age_and_number(place: Place) {
    let database = place.migrated().await;
    let minute = |n: i64| Timestamp::from_micros(1_785_585_600_000_000 + n * 60_000_000);
    let rows = (0..20).map(|n| sum(1, minute(n))).collect();
    let batch = HistoryBatch { writer: 1, sequence: 1, rows };
    database.write_history(&batch).await.unwrap();
    for n in 0..5 {
        let act = HistoryRow { act: Act::BucketReset, ..sum(1, minute(n)) };
        database.record_act(&act).await.unwrap();
    }
    let old = HistoryOrder { at: minute(2), history_id: 0 };
    assert_eq!(database.delete_history(None, old, 3).await.unwrap(), 3);
    assert_eq!(database.delete_history(None, old, 3).await.unwrap(), 1);
    assert_eq!(database.delete_history(None, old, 3).await.unwrap(), 0);
    // Sums do not displace acts.
    let excess = database.history_excess(HistoryKind::Sums, 4).await.unwrap().unwrap();
    assert_eq!(excess.at, minute(15));
    let sums = Some(HistoryKind::Sums);
    assert_eq!(database.delete_history(sums, excess, 100).await.unwrap(), 14);
    assert_eq!(database.history_excess(HistoryKind::Sums, 4).await.unwrap(), None);
    assert_eq!(database.history_excess(HistoryKind::Acts, 3).await.unwrap(), None);
    let excess = database.history_excess(HistoryKind::Acts, 2).await.unwrap().unwrap();
    assert_eq!(excess.at, minute(2));
    assert_eq!(all(&database).await.len(), 7);

    // Acts are counted in the index, without reading rows.
    let count = "SELECT at, history_id FROM rate_limit_history WHERE act NOT IN ('sign_in.failed', 'caller.refund') \
                 ORDER BY at DESC, history_id DESC LIMIT 1 OFFSET 1000";
    place.by_hand("ANALYZE rate_limit_history").await.unwrap();
    let plan = place.plan(count).await;
    let is_covered = [
        "COVERING INDEX rate_limit_history_at",
        "Index Only Scan Backward using rate_limit_history_at",
    ];
    assert!(is_covered.iter().any(|words| plan.contains(words)), "{plan}");
}

async fn batches_are_written_once(place: Place) {
    let database = place.migrated().await;
    let batch = HistoryBatch { writer: 9, sequence: 1, rows: vec![sum(3, Timestamp::now())] };
    database.write_history(&batch).await.unwrap();
    database.write_history(&batch).await.unwrap();
    assert_eq!(all(&database).await.len(), 1);
    let id = database.record_act(&sum(1, Timestamp::now())).await.unwrap();
    let entry = all(&database).await.remove(0);
    assert_eq!((entry.history_id, entry.outcome), (id, Outcome::Started), "not known");
    database.record_result(id, None).await.unwrap();
    let entry = all(&database).await.remove(0);
    assert_eq!((entry.history_id, entry.outcome), (id, Outcome::Failed));
    database.record_result(id, Some(&json!({"remaining": 5}))).await.unwrap();
    let entry = all(&database).await.remove(0);
    assert_eq!((entry.outcome, entry.after), (Outcome::Done, Some(json!({"remaining": 5}))));
}
