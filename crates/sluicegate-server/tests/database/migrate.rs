//! Migrations up and down, concurrent migrations, and constraints.

use sluicegate::rules::{Mode, Override, RuleSpec};
use sluicegate_server::data::{
    CallerSpec, DataError, Database, OverrideSpec, Right, Role, ViolationBatch, ViolationFilter,
    ViolationRow,
};
use sluicegate_server::time::Timestamp;

use crate::database::common::{Place, by, on_both, spec};

on_both!(
    everything_is_applied_once,
    many_may_migrate_at_once,
    up_down_and_up_again_keeps_what_is_not_taken_back,
    a_database_of_the_last_release_is_upgraded_and_taken_back,
    rules_that_replace_others_can_be_taken_back,
    migrations_of_a_newer_version_are_left_alone,
    constraints_reject_invalid_rows,
    changes_by_hand_count,
    invalid_rows_are_named,
);

async fn everything_is_applied_once(place: Place) {
    let database = place.open().await;
    let known = database.migrations().await.unwrap();
    let versions: Vec<_> = known.iter().map(|step| step.version).collect();
    assert_eq!(versions, (1..).take(known.len()).collect::<Vec<_>>());
    assert!(known.iter().all(|step| !step.is_applied));
    assert!(matches!(database.load().await, Err(DataError::Unexpected(_))));
    let done = database.migrate().await.unwrap();
    assert_eq!(done, database.migrations().await.unwrap());
    assert!(done.iter().all(|step| step.is_applied));
    assert_eq!(database.migrate().await.unwrap(), []);
    #[cfg(unix)]
    if let Place::Sqlite(folder) = &place {
        use std::os::unix::fs::PermissionsExt as _;
        for file in std::fs::read_dir(folder.path()).unwrap() {
            let mode = file.unwrap().metadata().unwrap().permissions().mode();
            assert_eq!(mode & 0o077, 0);
        }
    }
}

/// Number of migrations that this version has.
async fn steps(database: &Database) -> usize {
    database.migrations().await.unwrap().len()
}

async fn many_may_migrate_at_once(place: Place) {
    let url = place.url();
    let tasks: Vec<_> = (0..8)
        .map(|_| {
            let url = url.clone();
            tokio::spawn(async move {
                let database = Database::open(&url, crate::database::common::TIMEOUT);
                database.await.unwrap().migrate().await.unwrap().len()
            })
        })
        .collect();
    let mut applied = 0;
    for task in tasks {
        applied += task.await.unwrap();
    }
    assert_eq!(applied, steps(&place.open().await).await);
    assert_eq!(place.open().await.load().await.unwrap().rules.len(), 9);
}

async fn up_down_and_up_again_keeps_what_is_not_taken_back(place: Place) {
    let database = place.migrated().await;
    let rule = database.create_rule(&spec("new:{ip}"), &by("me")).await.unwrap();
    database.delete_rule(2, None, &by("me")).await.unwrap();
    let blocked = OverrideSpec {
        rule_id: 1,
        subject: "42".into(),
        instead: Override::Blocked,
        reason: String::new(),
        expires_at: None,
    };
    let (blocked, _) = database.put_override(&blocked, None, &by("me")).await.unwrap();
    let now = Timestamp::now();
    let row = ViolationRow {
        bucket_key: "user:42".into(),
        bucket_id: vec![1; 16],
        rule_id: 1,
        is_shadow: false,
        user_id: None,
        ip_address: None,
        endpoint: None,
        method: None,
        requested_at: now,
        last_at: now,
        tokens_at_time: 0,
        count: 3,
    };
    // A row of the same readable key, which older schemas cannot keep apart.
    let other = ViolationRow { bucket_id: vec![2; 16], count: 4, ..row.clone() };
    let batch = ViolationBatch { writer: 1, sequence: 1, rows: vec![row, other] };
    database.write_violations(&batch).await.unwrap();
    database.create_token("ci", Role::Admin, &[1; 32], &by("me")).await.unwrap();

    let generation = database.generation().await.unwrap();
    let undone = database.migrate_down(3).await.unwrap();
    assert_eq!((undone.len() + 3, undone.last().unwrap().version), (steps(&database).await, 4));
    assert!(database.generation().await.unwrap() > generation);
    database.migrate().await.unwrap();
    let loaded = database.load().await.unwrap();
    assert!(loaded.tokens.is_empty());
    assert_eq!((loaded.rules.len(), &loaded.overrides[..]), (9, &[blocked][..]));
    assert_eq!(loaded.rules.last(), Some(&rule));
    let any = ViolationFilter::default();
    let found = database.violations(&any, None, 9).await.unwrap();
    assert_eq!(found.iter().map(|found| found.row.count).collect::<Vec<_>>(), [7]);
    assert_eq!(found[0].row.bucket_id, b"user:42");

    // Down to version 1: rules stay, and starter rules are not inserted again.
    let undone = database.migrate_down(1).await.unwrap();
    let undone: Vec<_> = undone.iter().map(|step| step.version).collect();
    assert_eq!((undone.len() + 1, undone.last()), (steps(&database).await, Some(&2)));
    assert!(undone.is_sorted_by(|newer, older| newer > older), "{undone:?}");
    database.migrate().await.unwrap();
    assert_eq!(database.rule(10).await.unwrap(), rule);
    let loaded = database.load().await.unwrap();
    assert_eq!((loaded.rules.len(), loaded.overrides.len()), (9, 0));
    assert!(database.rule(2).await.is_err());
    database.delete_rule(10, None, &by("me")).await.unwrap();

    let all = steps(&database).await;
    assert_eq!(database.migrate_down(0).await.unwrap().len(), all);
    assert!(database.migrations().await.unwrap().iter().all(|step| !step.is_applied));
    assert_eq!(database.migrate().await.unwrap().len(), all);
    assert_eq!(database.load().await.unwrap().rules.len(), 9);
}

/// Newest migration of the last release.
const LAST_RELEASE: i64 = 8;

/// Upgrading a database with rows, using the new tables, and taking the upgrade back loses no row of the old ones.
async fn a_database_of_the_last_release_is_upgraded_and_taken_back(place: Place) {
    let database = place.migrated().await;
    database.create_rule(&spec("new:{ip}"), &by("me")).await.unwrap();
    let blocked = OverrideSpec {
        rule_id: 1,
        subject: "42".into(),
        instead: Override::Blocked,
        reason: "abuse".into(),
        expires_at: Some(Timestamp::from_micros(4_000_000_000_000_000)),
    };
    database.put_override(&blocked, None, &by("me")).await.unwrap();
    database.create_token("ci", Role::Admin, &[1; 32], &by("me")).await.unwrap();
    database.write_violations(&violations()).await.unwrap();
    let kept = async || {
        let loaded = database.load().await.unwrap();
        let violations = database.violations(&ViolationFilter::default(), None, 9).await.unwrap();
        (loaded.rules, loaded.overrides, loaded.tokens, violations)
    };
    let before = kept().await;
    assert_eq!((before.0.len(), before.1.len(), before.2.len(), before.3.len()), (10, 1, 1, 2));

    for _ in 0..2 {
        let undone = database.migrate_down(LAST_RELEASE).await.unwrap();
        assert_eq!(undone.last().unwrap().version, LAST_RELEASE + 1);
        for table in ["callers", "caller_uses", "history"] {
            let select = format!("SELECT COUNT(*) FROM rate_limit_{table}");
            assert!(place.by_hand(&select).await.is_err(), "{table}");
        }
        // The last release changes its tables as ever: nothing of the upgrade is left that would refuse it.
        for statement in [
            "INSERT INTO rate_limit_rules (key_pattern, scope, tokens, period, burst_capacity) \
             VALUES ('by hand', 'custom', 1, 1000000, 1)",
            "UPDATE rate_limit_rules SET description = 'x' WHERE key_pattern = 'by hand'",
            "DELETE FROM rate_limit_rules WHERE key_pattern = 'by hand'",
            "INSERT INTO rate_limit_overrides (rule_id, subject, kind) VALUES (2, 'a', 'blocked')",
            "UPDATE rate_limit_overrides SET kind = 'unlimited' WHERE subject = 'a'",
            "DELETE FROM rate_limit_overrides WHERE subject = 'a'",
            "UPDATE rate_limit_tokens SET role = 'read' WHERE name = 'ci'",
            "UPDATE rate_limit_tokens SET role = 'admin' WHERE name = 'ci'",
        ] {
            let generation = place.number("SELECT generation FROM rate_limit_generation").await;
            place.by_hand(statement).await.unwrap();
            let now = place.number("SELECT generation FROM rate_limit_generation").await;
            assert!(now > generation, "{statement}");
        }
        let done = database.migrate().await.unwrap();
        assert_eq!(done.first().unwrap().version, LAST_RELEASE + 1);
        assert_eq!(kept().await, before);
        // What the next round takes back.
        assert_eq!(database.load().await.unwrap().callers, []);
        let caller = CallerSpec {
            name: "checkout".into(),
            rights: [Right::Check].into_iter().collect(),
            namespace: Some("team-a".into()),
            certificate: None,
            expires_at: None,
        };
        database.create_caller(&caller, Some(&[2; 32]), &by("me")).await.unwrap();
    }
}

/// Violations of two buckets.
fn violations() -> ViolationBatch {
    let now = Timestamp::now();
    let row = |name: &str, id| ViolationRow {
        bucket_key: name.into(),
        bucket_id: vec![id; 16],
        rule_id: 1,
        is_shadow: false,
        user_id: Some(name.into()),
        ip_address: None,
        endpoint: Some("/search".into()),
        method: None,
        requested_at: now,
        last_at: now,
        tokens_at_time: 0,
        count: u64::from(id),
    };
    ViolationBatch { writer: 1, sequence: 1, rows: vec![row("user:42", 3), row("user:7", 4)] }
}

/// Recreating the table of rules loses no row, index or trigger.
async fn rules_that_replace_others_can_be_taken_back(place: Place) {
    let database = place.migrated().await;
    let office = RuleSpec {
        mode: Mode::Unlimited,
        name: "office".into(),
        replaces: vec!["everybody".into()],
        ..spec("office:{ip}")
    };
    let office = database.create_rule(&office, &by("me")).await.unwrap();
    let off = RuleSpec { is_active: false, ..spec("off:{ip}") };
    let off = database.create_rule(&off, &by("me")).await.unwrap();
    let gone = database.create_rule(&spec("gone:{ip}"), &by("me")).await.unwrap().spec.rule_id;
    database.delete_rule(gone, None, &by("me")).await.unwrap();

    database.migrate_down(4).await.unwrap();
    assert!(place.by_hand("SELECT name FROM rate_limit_rules").await.is_err());
    database.migrate().await.unwrap();
    let back = database.rule(office.spec.rule_id).await.unwrap();
    let without = RuleSpec {
        mode: Mode::Shadow,
        is_active: false,
        name: String::new(),
        replaces: Vec::new(),
        ..office.spec
    };
    assert_eq!((back.spec, back.version), (without, office.version));
    assert_eq!(database.rule(off.spec.rule_id).await.unwrap(), off);

    // Ids, index and triggers.
    let next = database.create_rule(&spec("next:{ip}"), &by("me")).await.unwrap();
    assert_eq!(next.spec.rule_id, gone + 1);
    assert!(database.create_rule(&spec("next:{ip}"), &by("me")).await.is_err());
    let generation = database.generation().await.unwrap();
    place.by_hand("UPDATE rate_limit_rules SET description = 'x' WHERE rule_id = 1").await.unwrap();
    assert!(database.generation().await.unwrap() > generation);
    let blocked = OverrideSpec {
        rule_id: 1,
        subject: "42".into(),
        instead: Override::Blocked,
        reason: String::new(),
        expires_at: None,
    };
    database.put_override(&blocked, None, &by("me")).await.unwrap();
    place.by_hand("DELETE FROM rate_limit_rules WHERE rule_id = 1").await.unwrap();
    assert_eq!(database.load().await.unwrap().overrides, []);
}

async fn migrations_of_a_newer_version_are_left_alone(place: Place) {
    let database = place.migrated().await;
    let newer = match &place {
        Place::Sqlite(_) => {
            "INSERT INTO rate_limit_migrations VALUES (9000, 'newer', 0); \
             ALTER TABLE rate_limit_rules ADD COLUMN newer TEXT"
        }
        Place::Postgres { .. } => {
            "INSERT INTO rate_limit_migrations VALUES (9000, 'newer', now()); \
             ALTER TABLE rate_limit_rules ADD COLUMN newer TEXT"
        }
    };
    place.by_hand(newer).await.unwrap();
    let old = place.migrated().await;
    assert_eq!(old.load().await.unwrap().rules.len(), 9);
    old.create_rule(&spec("new:{ip}"), &by("me")).await.unwrap();
    database.create_rule(&spec("newer:{ip}"), &by("me")).await.unwrap();
    assert_eq!(steps(&old).await, steps(&database).await);
    let error = old.migrate_down(0).await.unwrap_err();
    assert!(error.to_string().contains("9000"), "{error}");
    assert_eq!(old.load().await.unwrap().rules.len(), 11);
}

async fn constraints_reject_invalid_rows(place: Place) {
    place.migrated().await;
    let long = "x".repeat(1025);
    let rule = |column: &str, value: &str| {
        let mut columns = vec![
            ("key_pattern", "'p'"),
            ("scope", "'user'"),
            ("tokens", "1"),
            ("period", "1"),
            ("burst_capacity", "1"),
        ];
        columns.retain(|(name, _)| *name != column);
        columns.push((column, value));
        let (names, values): (Vec<_>, Vec<_>) = columns.into_iter().unzip();
        let (names, values) = (names.join(", "), values.join(", "));
        format!("INSERT INTO rate_limit_rules ({names}) VALUES ({values})")
    };
    for (column, value) in [
        ("tokens", "0"),
        ("tokens", "-1"),
        ("tokens", "4503599627370497"),
        ("period", "0"),
        ("period", "4503599627370497"),
        ("burst_capacity", "0"),
        ("burst_capacity", "4503599627370497"),
        ("version", "0"),
        ("max_wait", "-1"),
        ("scope", "'users'"),
        ("mode", "'off'"),
        ("algorithm", "'gcra'"),
        ("refill", "'never'"),
        ("on_error", "'panic'"),
        ("conditions", "'[]'"),
        ("conditions", "'no json'"),
        ("replaces", "'{}'"),
        ("name", "''"),
        ("key_pattern", "''"),
        ("key_pattern", &format!("'{}'", &long[..257])),
        ("key_pattern", "NULL"),
        ("plan", "''"),
        ("plan", &format!("'{}'", &long[..33])),
        ("description", &format!("'{long}'")),
        ("rule_id", "0"),
        ("rule_id", "9007199254740992"),
        // U6: a duplicate for every plan.
        ("key_pattern", "'global'"),
    ] {
        let refused = place.by_hand(&rule(column, value)).await;
        assert!(refused.is_err(), "{column} = {value}");
    }
    place.by_hand(&rule("version", "1")).await.unwrap();
    assert!(place.by_hand(&rule("version", "1")).await.is_err(), "two rules for every plan");
    for (table, columns, values) in [
        ("overrides", "rule_id, subject, kind", "1, '', 'blocked'".into()),
        ("overrides", "rule_id, subject, kind", format!("1, '{long}', 'blocked'")),
        ("overrides", "rule_id, subject, kind", "1, 'a', 'loved'".into()),
        ("overrides", "rule_id, subject, kind", "1, 'a', 'quota'".into()),
        ("overrides", "rule_id, subject, kind, reason", format!("1, 'a', 'blocked', '{long}'")),
        ("tokens", "name, role, hash", "'a', 'root', 'x'".into()),
        ("tokens", "name, role, hash", "'a', 'read', 'x'".into()),
    ] {
        let insert = format!("INSERT INTO rate_limit_{table} ({columns}) VALUES ({values})");
        assert!(place.by_hand(&insert).await.is_err(), "{insert}");
    }
    let is_sqlite = matches!(place, Place::Sqlite(_));
    let (time, id) = if is_sqlite { ("0", "x'62'") } else { ("'epoch'", "'\\x62'") };
    let violation = |count: i64, mode: &str| {
        format!(
            "INSERT INTO rate_limit_violations (bucket_key, bucket_id, requested_at, last_at, \
             tokens_at_time, rule_id, count, mode, minute) VALUES ('b', {id}, {time}, {time}, 0, 1, {count}, '{mode}', 0)"
        )
    };
    assert!(place.by_hand(&violation(0, "enforce")).await.is_err());
    assert!(place.by_hand(&violation(1, "off")).await.is_err());
    place.by_hand(&violation(1, "enforce")).await.unwrap();
    assert!(place.by_hand(&violation(1, "enforce")).await.is_err(), "one row for each minute");
    let rate =
        "SELECT CAST(rate_per_second * 60 AS BIGINT) FROM rate_limit_rules WHERE rule_id = 5";
    assert_eq!(place.number(rate).await, 5);
}

async fn changes_by_hand_count(place: Place) {
    let database = place.migrated().await;
    let mut last = database.generation().await.unwrap();
    for statement in [
        "UPDATE rate_limit_rules SET burst_capacity = 7 WHERE rule_id = 1",
        "DELETE FROM rate_limit_rules WHERE rule_id = 2",
        "INSERT INTO rate_limit_rules (key_pattern, scope, tokens, period, burst_capacity) \
         VALUES ('by hand', 'custom', 1, 1000000, 1)",
        "INSERT INTO rate_limit_overrides (rule_id, subject, kind) VALUES (1, 'a', 'blocked')",
        "UPDATE rate_limit_overrides SET kind = 'unlimited'",
        "DELETE FROM rate_limit_overrides",
        "INSERT INTO rate_limit_overrides (rule_id, subject, kind) VALUES (1, 'a', 'blocked')",
        "DELETE FROM rate_limit_rules WHERE rule_id = 1",
    ] {
        place.by_hand(statement).await.unwrap();
        let now = database.generation().await.unwrap();
        assert!(now > last, "{statement}");
        last = now;
    }
    let loaded = database.load().await.unwrap();
    assert!(loaded.overrides.is_empty(), "a rule takes its overrides with it");
    let by_hand = loaded.rules.last().unwrap();
    assert_eq!((by_hand.spec.rule_id, by_hand.version), (10, 1));
    assert_eq!(database.create_rule(&spec("next"), &by("me")).await.unwrap().spec.rule_id, 11);
}

/// U4, T35: errors that constraints cannot detect are found on loading, and named.
async fn invalid_rows_are_named(place: Place) {
    let database = place.migrated().await;
    for (column, value) in [
        ("key_pattern", "'user:{'"),
        ("conditions", "'{\"endpoint\": 7}'"),
        ("conditions", "'{\"no name\": \"x\"}'"),
        ("algorithm", "'fixed_window'"),
        ("refill", "'interval', algorithm = 'leaky_bucket'"),
        ("burst_capacity", "4503599627370496"),
    ] {
        let database = &database;
        let before = database.rule(5).await.unwrap();
        let update = format!("UPDATE rate_limit_rules SET {column} = {value} WHERE rule_id = 5");
        let update = if value == "'fixed_window'" {
            update.replace(" WHERE", ", burst_capacity = 99 WHERE")
        } else {
            update
        };
        place.by_hand(&update).await.unwrap();
        let error = database.load().await.unwrap_err();
        assert!(matches!(error, DataError::Unexpected(_)), "{error}");
        assert!(error.to_string().contains("rule 5: "), "{error}");
        let error = database.create_rule(&spec("other"), &by("me")).await.unwrap_err();
        assert!(matches!(error, DataError::Unexpected(_)), "{error}");
        // The rule can be corrected or deleted.
        if column == "conditions" && value.contains('7') {
            let mend = "UPDATE rate_limit_rules SET conditions = '{}' WHERE rule_id = 5";
            place.by_hand(mend).await.unwrap();
        }
        database.update_rule(&before.spec, None, &by("me")).await.unwrap();
        database.load().await.unwrap();
    }
}
