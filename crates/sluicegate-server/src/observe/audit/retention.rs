//! Deletes old violations and expired overrides.

use std::time::Duration;

use tokio::time::sleep;
use tracing::{info, warn};

use crate::data::{DataError, Database, DatabaseHandle, ViolationFilter};
use crate::observe::metrics::audit::AuditMetrics;
use crate::time::Timestamp;

/// Interval between two runs. Nothing stays longer than this after its time.
const LOOK_EVERY: Duration = Duration::from_secs(5 * 60);
/// Delay of the first run after the start.
const LOOK_FIRST_AFTER: Duration = Duration::from_secs(10);
/// Maximum number of rows deleted by one statement,
const ROWS_MAX: usize = 1000;
/// and the pause between two, in which others can use the database.
const PAUSE: Duration = Duration::from_millis(100);

const DAY_US: i64 = 24 * 60 * 60 * 1_000_000;

/// Deletes old violations and expired overrides.
#[derive(Clone, Debug)]
pub(super) struct Retention {
    database: DatabaseHandle,
    /// Days that violations are kept; 0 for ever.
    days: u32,
    metrics: AuditMetrics,
}

impl Retention {
    pub(super) fn new(database: DatabaseHandle, days: u32, metrics: AuditMetrics) -> Self {
        Self { database, days, metrics }
    }

    /// Deletes periodically. Never returns.
    pub(super) async fn run(self) {
        let mut is_failing = false;
        sleep(LOOK_FIRST_AFTER).await;
        loop {
            let deleted = self.delete_old().await;
            if let (Err(error), false) = (&deleted, is_failing) {
                warn!(%error, "cannot delete old violations");
            }
            is_failing = deleted.is_err();
            sleep(LOOK_EVERY).await;
        }
    }

    async fn delete_old(&self) -> Result<(), DataError> {
        let database = self.database.get()?;
        delete(&database, self.days, Timestamp::now(), &self.metrics).await
    }
}

/// Deletes everything that is old enough at this time.
async fn delete(
    database: &Database,
    days: u32,
    now: Timestamp,
    metrics: &AuditMetrics,
) -> Result<(), DataError> {
    if days > 0 {
        let before = now.plus_micros(-i64::from(days) * DAY_US);
        let old = ViolationFilter { to: Some(before), ..ViolationFilter::default() };
        let delete = |rows| database.delete_violations(&old, rows);
        let deleted = in_batches(delete, |rows| metrics.expired(rows)).await?;
        if deleted > 0 {
            info!(rows = deleted, %before, "old violations deleted");
        }
    }
    // Kept for another day: clocks differ, and a process whose clock is ahead must not end
    // overrides for the others.
    let ended = now.plus_micros(-DAY_US);
    let delete = |rows| database.delete_expired_overrides(ended, rows);
    let deleted = in_batches(delete, |overrides| metrics.overrides_expired(overrides)).await?;
    if deleted > 0 {
        info!(overrides = deleted, "expired overrides deleted");
    }
    Ok(())
}

/// Deletes in batches until nothing is left, and returns the number of rows.
pub(in crate::observe) async fn in_batches<F>(
    mut delete: impl FnMut(usize) -> F,
    mut count: impl FnMut(u64),
) -> Result<u64, DataError>
where
    F: Future<Output = Result<u64, DataError>>,
{
    let mut deleted = 0;
    loop {
        let rows = delete(ROWS_MAX).await?;
        count(rows);
        deleted += rows;
        if rows < ROWS_MAX as u64 {
            return Ok(deleted);
        }
        sleep(PAUSE).await;
    }
}

#[cfg(test)]
mod tests {
    use sluicegate::rules::Override;

    use super::super::test_support::{NOON, row};
    use super::*;
    use crate::config::DatabaseUrl;
    use crate::data::{Author, OverrideSpec, Page, ViolationBatch};

    #[tokio::test]
    async fn only_old_violations_and_expired_overrides_are_deleted() {
        let folder = tempfile::tempdir().unwrap();
        let url = format!("sqlite:{}", folder.path().join("old.db").display());
        let url = DatabaseUrl::parse(&url).unwrap().unwrap();
        let database = Database::open(&url, Duration::from_secs(5)).await.unwrap();
        database.migrate().await.unwrap();
        // One a minute, over three days.
        let rows = (0..3 * 24 * 60).map(|minute| row("42", NOON.plus_micros(minute * 60_000_000)));
        let batch = ViolationBatch { writer: 1, sequence: 1, rows: rows.collect() };
        database.write_violations(&batch).await.unwrap();
        let just_now = Some(NOON.plus_micros(DAY_US));
        let overrides = [("ended", Some(NOON)), ("just ended", just_now), ("endless", None)];
        for (subject, expires_at) in overrides {
            let (subject, reason) = (subject.into(), String::new());
            let instead = Override::Unlimited;
            let spec = OverrideSpec { rule_id: 1, subject, instead, reason, expires_at };
            database.put_override(&spec, None, &Author::new("test")).await.unwrap();
        }
        let (metrics, days) = (AuditMetrics::default(), 2);
        let left = async || {
            let (filter, page) = (ViolationFilter::default(), Page { after: None, limit: 10 });
            let violations = database.violations(&filter, None, 10_000).await.unwrap();
            let overrides = database.overrides(&Default::default(), page).await.unwrap();
            let subjects: Vec<_> = overrides.into_iter().map(|it| it.spec.subject).collect();
            (violations.len(), violations.last().unwrap().row.requested_at, subjects)
        };
        // A day and a half after the first: nothing is two days old.
        let now = NOON.plus_micros(36 * 3_600_000_000);
        delete(&database, days, now, &metrics).await.unwrap();
        let kept = ["just ended", "endless"].map(String::from).to_vec();
        assert_eq!(left().await, (4320, NOON, kept));
        // After three days, those of the first day.
        let now = NOON.plus_micros(3 * DAY_US);
        delete(&database, 0, now, &metrics).await.unwrap();
        assert_eq!(left().await.0, 4320, "kept for ever");
        delete(&database, days, now, &metrics).await.unwrap();
        assert_eq!((left().await.0, left().await.1), (2880, NOON.plus_micros(DAY_US)));
    }
}
