//! Violations: idempotent writes, aggregation, queries, deletion.

use sluicegate_server::data::{
    TopBy, ViolationBatch, ViolationFilter, ViolationOrder, ViolationRow,
};
use sluicegate_server::time::Timestamp;

use crate::database::common::{Place, on_both};

on_both!(
    a_batch_is_written_once,
    rows_of_one_minute_are_added_up,
    buckets_with_the_same_readable_key_are_kept_apart,
    nothing_in_a_row_keeps_it_from_being_written,
    filters_hold_together,
    lists_go_on_where_they_stopped,
    the_worst_come_first,
    deleting_is_bounded_and_needs_a_filter,
    questions_find_their_index,
);

/// 2026-11-15T12:00:00Z.
const NOON: i64 = 1_794_744_000_000_000;
const SECOND: i64 = 1_000_000;

fn row(bucket_key: &str, seconds: i64, count: u64) -> ViolationRow {
    let requested_at = Timestamp::from_micros(NOON + seconds * SECOND);
    ViolationRow {
        bucket_key: bucket_key.into(),
        bucket_id: bucket_key.into(),
        rule_id: 1,
        is_shadow: false,
        user_id: Some(bucket_key.trim_start_matches("user:").into()),
        ip_address: Some("203.0.113.9".into()),
        endpoint: Some("/api/search".into()),
        method: Some("GET".into()),
        requested_at,
        last_at: requested_at,
        tokens_at_time: 0,
        count,
    }
}

fn batch(sequence: u64, rows: Vec<ViolationRow>) -> ViolationBatch {
    ViolationBatch { writer: u64::MAX - 5, sequence, rows }
}

fn any() -> ViolationFilter {
    ViolationFilter::default()
}

/// The hour from noon. Without an end, lists of the worst end now, and would not reach back to these rows.
fn of_the_hour() -> ViolationFilter {
    ViolationFilter { to: Some(Timestamp::from_micros(NOON + 3_600 * SECOND)), ..any() }
}

async fn a_batch_is_written_once(place: Place) {
    let database = place.migrated().await;
    let first = batch(1, vec![row("user:1", 0, 5), row("user:2", 0, 7)]);
    for _ in 0..3 {
        database.write_violations(&first).await.unwrap();
    }
    let found = database.violations(&any(), None, 10).await.unwrap();
    assert_eq!(found.iter().map(|found| found.row.count).sum::<u64>(), 12);
    let second = batch(2, vec![row("user:1", 1, 1)]);
    database.write_violations(&second).await.unwrap();
    database.write_violations(&first).await.unwrap();
    database.write_violations(&second).await.unwrap();
    let other = ViolationBatch { writer: 0, ..second };
    database.write_violations(&other).await.unwrap();
    let of_user = ViolationFilter { user_id: Some("1".into()), ..any() };
    let found = database.violations(&of_user, None, 10).await.unwrap();
    assert_eq!(found.iter().map(|found| found.row.count).collect::<Vec<_>>(), [7]);
    assert_eq!(place.number("SELECT COUNT(*) FROM rate_limit_writers").await, 2);
}

async fn rows_of_one_minute_are_added_up(place: Place) {
    let database = place.migrated().await;
    let shadow = ViolationRow { is_shadow: true, ..row("user:1", 5, 100) };
    let other_rule = ViolationRow { rule_id: 2, ..row("user:1", 5, 1000) };
    let rows = vec![row("user:1", 30, 1), row("user:1", 10, 2), shadow, other_rule];
    database.write_violations(&batch(1, rows)).await.unwrap();
    let rows = vec![row("user:1", 59, 4), row("user:1", 60, 8), row("user:1", 5, 16)];
    database.write_violations(&batch(2, rows)).await.unwrap();
    let found = database.violations(&any(), None, 10).await.unwrap();
    let found: Vec<_> = found
        .iter()
        .map(|found| {
            let row = &found.row;
            let seconds = |time: Timestamp| (time.micros() - NOON) / SECOND;
            (row.rule_id, row.is_shadow, row.count, seconds(row.requested_at), seconds(row.last_at))
        })
        .collect();
    assert_eq!(found.len(), 4);
    for expected in
        [(1, false, 8, 60, 60), (1, false, 23, 5, 59), (1, true, 100, 5, 5), (2, false, 1000, 5, 5)]
    {
        assert!(found.contains(&expected), "{expected:?} in {found:?}");
    }
}

async fn buckets_with_the_same_readable_key_are_kept_apart(place: Place) {
    let database = place.migrated().await;
    let of = |user: &str, count| ViolationRow {
        bucket_id: user.into(),
        user_id: Some(user.into()),
        ..row("x:a:b:c", 0, count)
    };
    database.write_violations(&batch(1, vec![of("c", 2), of("b:c", 3)])).await.unwrap();
    database.write_violations(&batch(2, vec![of("b:c", 4), of("c", 1)])).await.unwrap();
    for (by, expected) in [(TopBy::UserId, ["b:c", "c"]), (TopBy::BucketKey, ["x:a:b:c"; 2])] {
        let top = database.top_offenders(&of_the_hour(), by, 9).await.unwrap();
        let top: Vec<_> = top.iter().map(|top| (top.value.as_str(), top.count)).collect();
        assert_eq!(top, [(expected[0], 7), (expected[1], 3)]);
    }
    let of_bucket = ViolationFilter { bucket_key: Some("x:a:b:c".into()), ..any() };
    assert_eq!(database.violations(&of_bucket, None, 9).await.unwrap().len(), 2);
}

async fn nothing_in_a_row_keeps_it_from_being_written(place: Place) {
    let database = place.migrated().await;
    let long = "\u{e9}\0".repeat(100_000);
    let worst = ViolationRow {
        bucket_key: long.clone(),
        bucket_id: long.clone().into(),
        rule_id: u64::MAX,
        is_shadow: true,
        user_id: Some(long.clone()),
        ip_address: Some(String::new()),
        endpoint: Some("'; DROP TABLE rate_limit_violations; --\u{1f947}".into()),
        method: None,
        requested_at: Timestamp::from_micros(i64::MAX),
        last_at: Timestamp::from_micros(i64::MIN),
        tokens_at_time: u64::MAX,
        count: u64::MAX,
    };
    database.write_violations(&batch(1, vec![worst.clone(), worst.clone()])).await.unwrap();
    database.write_violations(&batch(2, vec![worst])).await.unwrap();
    let zero = ViolationRow { count: 0, ..row("zero", 0, 0) };
    database.write_violations(&batch(3, vec![zero])).await.unwrap();
    let of_user = ViolationFilter { user_id: Some(long), ..any() };
    let found = database.violations(&of_user, None, 10).await.unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].row.count, (1 << 53) - 1);
    database.write_violations(&batch(4, Vec::new())).await.unwrap();
    let many = (0..2000).map(|n| row(&format!("user:{n}"), n, 1)).collect();
    database.write_violations(&batch(5, many)).await.unwrap();
    assert_eq!(database.violations(&any(), None, 5000).await.unwrap().len(), 2002);
}

async fn filters_hold_together(place: Place) {
    let database = place.migrated().await;
    let rows = vec![
        row("user:1", 0, 1),
        ViolationRow { endpoint: Some("/login".into()), ..row("user:1", 60, 1) },
        ViolationRow { rule_id: 2, ip_address: None, ..row("user:2", 120, 1) },
        ViolationRow {
            is_shadow: true,
            user_id: None,
            last_at: Timestamp::from_micros(NOON + 190 * SECOND),
            ..row("user:3", 180, 1)
        },
    ];
    database.write_violations(&batch(1, rows)).await.unwrap();
    let found = async |filter: ViolationFilter| -> Vec<i64> {
        let found = database.violations(&filter, None, 10).await.unwrap();
        found.iter().map(|found| (found.row.requested_at.micros() - NOON) / SECOND).collect()
    };
    let text = |text: &str| Some(text.to_owned());
    let at = |seconds: i64| Some(Timestamp::from_micros(NOON + seconds * SECOND));
    assert_eq!(found(any()).await, [180, 120, 60, 0]);
    assert_eq!(found(ViolationFilter { user_id: text("1"), ..any() }).await, [60, 0]);
    let both = ViolationFilter { user_id: text("1"), endpoint: text("/login"), ..any() };
    assert_eq!(found(both).await, [60]);
    let ip = ViolationFilter { ip_address: text("203.0.113.9"), ..any() };
    assert_eq!(found(ip).await, [180, 60, 0]);
    assert_eq!(found(ViolationFilter { bucket_key: text("user:3"), ..any() }).await, [180]);
    assert_eq!(found(ViolationFilter { rule_id: Some(2), ..any() }).await, [120]);
    assert_eq!(found(ViolationFilter { rule_id: Some(u64::MAX), ..any() }).await, [0i64; 0]);
    assert_eq!(found(ViolationFilter { is_shadow: Some(false), ..any() }).await, [120, 60, 0]);
    // `from` compares the last denial, `to` the first.
    assert_eq!(found(ViolationFilter { from: at(120), ..any() }).await, [180, 120]);
    assert_eq!(found(ViolationFilter { from: at(190), ..any() }).await, [180]);
    assert_eq!(found(ViolationFilter { from: at(191), ..any() }).await, [0i64; 0]);
    assert_eq!(found(ViolationFilter { to: at(120), ..any() }).await, [60, 0]);
    let between = ViolationFilter { from: at(60), to: at(180), rule_id: Some(1), ..any() };
    assert_eq!(found(between).await, [60]);
    let ends = (Timestamp::from_micros(i64::MIN), Timestamp::from_micros(i64::MAX));
    let all = ViolationFilter { from: Some(ends.0), to: Some(ends.1), ..any() };
    assert_eq!(found(all).await.len(), 4);
}

async fn lists_go_on_where_they_stopped(place: Place) {
    let database = place.migrated().await;
    // Equal times are ordered by id.
    let rows = (0..25).map(|n| row(&format!("user:{n}"), n / 5, 1)).collect();
    database.write_violations(&batch(1, rows)).await.unwrap();
    let all = database.violations(&any(), None, 100).await.unwrap();
    let (mut after, mut seen) = (None, Vec::new());
    loop {
        let part = database.violations(&any(), after, 4).await.unwrap();
        let Some(last) = part.last() else { break };
        let (requested_at, violation_id) = (last.row.requested_at, last.violation_id);
        after = Some(ViolationOrder { requested_at, violation_id });
        seen.extend(part);
    }
    assert_eq!(seen, all);
    assert!(all.is_sorted_by_key(|found| {
        std::cmp::Reverse((found.row.requested_at, found.violation_id))
    }));
}

async fn the_worst_come_first(place: Place) {
    let database = place.migrated().await;
    let rows = vec![
        row("user:1", 0, 5),
        row("user:1", 60, 6),
        row("user:2", 0, 10),
        row("user:3", 120, 1),
        ViolationRow { user_id: None, ..row("nobody", 0, 1000) },
    ];
    database.write_violations(&batch(1, rows)).await.unwrap();
    let top = database.top_offenders(&of_the_hour(), TopBy::UserId, 2).await.unwrap();
    let short: Vec<_> =
        top.iter().map(|top| (top.value.as_str(), top.count, top.violations)).collect();
    assert_eq!(short, [("1", 11, 2), ("2", 10, 1)]);
    assert_eq!(top[0].last_at.micros(), NOON + 60 * SECOND);
    for (by, value, count) in [
        (TopBy::IpAddress, "203.0.113.9", 1022),
        (TopBy::Endpoint, "/api/search", 1022),
        (TopBy::BucketKey, "nobody", 1000),
    ] {
        let top = database.top_offenders(&of_the_hour(), by, 1).await.unwrap();
        assert_eq!((top[0].value.as_str(), top[0].count), (value, count));
    }
    let late = Some(Timestamp::from_micros(NOON + 100 * SECOND));
    let late = ViolationFilter { from: late, ..of_the_hour() };
    let top = database.top_offenders(&late, TopBy::UserId, 9).await.unwrap();
    assert_eq!(top.iter().map(|top| top.value.as_str()).collect::<Vec<_>>(), ["3"]);
}

async fn deleting_is_bounded_and_needs_a_filter(place: Place) {
    let database = place.migrated().await;
    let rows = (0..10).map(|n| row(&format!("user:{n}"), n * 60, 1)).collect();
    database.write_violations(&batch(1, rows)).await.unwrap();
    assert_eq!(database.delete_violations(&any(), 100).await.unwrap(), 0);
    let old = ViolationFilter { to: Some(Timestamp::from_micros(NOON + 360 * SECOND)), ..any() };
    assert_eq!(database.delete_violations(&old, 4).await.unwrap(), 4);
    let left = database.violations(&any(), None, 100).await.unwrap();
    assert_eq!(left.last().unwrap().row.bucket_key, "user:4", "the oldest go first");
    assert_eq!(database.delete_violations(&old, 4).await.unwrap(), 2);
    assert_eq!(database.delete_violations(&old, 4).await.unwrap(), 0);
    let subject = ViolationFilter { user_id: Some("7".into()), ..any() };
    assert_eq!(database.delete_violations(&subject, 4).await.unwrap(), 1);
    assert_eq!(database.violations(&any(), None, 100).await.unwrap().len(), 3);
    // Only old writers are deleted.
    let old_writer = match &place {
        Place::Sqlite(_) => "INSERT INTO rate_limit_writers VALUES (99, 1, 0)",
        Place::Postgres { .. } => "INSERT INTO rate_limit_writers VALUES (99, 1, 'epoch')",
    };
    place.by_hand(old_writer).await.unwrap();
    database.delete_violations(&old, 1).await.unwrap();
    assert_eq!(place.number("SELECT COUNT(*) FROM rate_limit_writers").await, 1);
}

async fn questions_find_their_index(place: Place) {
    let database = place.migrated().await;
    let rows = (0..500).map(|n| row(&format!("user:{n}"), n * 60, 1)).collect();
    database.write_violations(&batch(1, rows)).await.unwrap();
    let questions = [
        ("user_id = '7'", "rate_limit_violations_user"),
        ("ip_address = 'x'", "rate_limit_violations_ip"),
        ("endpoint = '/x'", "rate_limit_violations_endpoint"),
        ("bucket_key = 'x'", "rate_limit_violations_bucket"),
        ("rule_id = 77", "rate_limit_violations_rule"),
        ("1 = 1", "rate_limit_violations_time"),
    ];
    for (condition, index) in questions {
        let select = format!(
            "SELECT violation_id FROM rate_limit_violations WHERE {condition} \
             ORDER BY requested_at DESC, violation_id DESC LIMIT 10"
        );
        let plan = place.plan(&select).await;
        assert!(plan.contains(index), "{condition}: {plan}");
        assert!(!plan.to_lowercase().contains("sort") && !plan.contains("TEMP B-TREE"), "{plan}");
    }
}
