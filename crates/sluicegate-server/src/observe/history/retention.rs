//! Deletes old rows of the history, by age and number, and masks rows written without the privacy setting.

use std::time::Duration;

use tokio::time::sleep;
use tracing::{info, warn};

use crate::config;
use crate::data::{DataError, Database, DatabaseHandle, HistoryKind, HistoryOrder};
use crate::observe::audit::{Pseudonyms, in_batches};
use crate::observe::metrics::history::HistoryMetrics;
use crate::time::Timestamp;

/// Interval between two runs.
const LOOK_EVERY: Duration = Duration::from_secs(5 * 60);
/// Delay of the first run after the start.
const LOOK_FIRST_AFTER: Duration = Duration::from_secs(10);

const DAY_US: i64 = 24 * 60 * 60 * 1_000_000;

/// Part of the rows that sums may have, besides the others: a flood of wrong tokens must not displace acts.
const SUMS_PART: u64 = 10;

/// Deletes old rows of the history.
#[derive(Clone, Debug)]
pub(super) struct Retention {
    database: DatabaseHandle,
    /// Days that rows are kept; 0 for ever.
    days: u32,
    /// Maximum number of acts.
    rows_max: u64,
    is_private: bool,
    metrics: HistoryMetrics,
}

impl Retention {
    pub(super) fn new(
        settings: &config::History,
        database: DatabaseHandle,
        pseudonyms: &Pseudonyms,
        metrics: HistoryMetrics,
    ) -> Self {
        let (days, rows_max) = (settings.retention_days, settings.rows_max);
        Self { database, days, rows_max, is_private: !pseudonyms.are_raw(), metrics }
    }

    /// Deletes periodically. Never returns.
    pub(super) async fn run(&self) {
        let mut is_failing = false;
        if !self.database.is_configured() {
            return std::future::pending().await;
        }
        sleep(LOOK_FIRST_AFTER).await;
        loop {
            let done = match self.database.get() {
                Ok(database) => self.apply(&database, Timestamp::now()).await,
                Err(error) => Err(error),
            };
            if let (Err(error), false) = (&done, is_failing) {
                warn!(%error, "cannot delete old rows of the history");
            }
            is_failing = done.is_err();
            sleep(LOOK_EVERY).await;
        }
    }

    /// Masks rows written without the privacy setting, and deletes what is too old or too much at this time. A step
    /// that fails does not prevent the others; the first error is returned.
    async fn apply(&self, database: &Database, now: Timestamp) -> Result<(), DataError> {
        let masked = self.mask(database).await;
        let aged = self.delete_aged(database, now).await;
        let acts = self.delete_excess(database, HistoryKind::Acts, self.rows_max).await;
        let sums_max = (self.rows_max / SUMS_PART).max(1);
        let sums = self.delete_excess(database, HistoryKind::Sums, sums_max).await;
        masked.and(aged).and(acts).and(sums)
    }

    async fn mask(&self, database: &Database) -> Result<(), DataError> {
        if self.is_private {
            in_batches(|rows| database.mask_history(rows), |_| {}).await?;
        }
        Ok(())
    }

    async fn delete_aged(&self, database: &Database, now: Timestamp) -> Result<(), DataError> {
        if self.days == 0 {
            return Ok(());
        }
        let at = now.plus_micros(-i64::from(self.days) * DAY_US);
        self.delete(database, None, HistoryOrder { at, history_id: 0 }).await
    }

    async fn delete_excess(
        &self,
        database: &Database,
        kind: HistoryKind,
        keep: u64,
    ) -> Result<(), DataError> {
        match database.history_excess(kind, keep).await? {
            Some(until) => self.delete(database, Some(kind), until).await,
            None => Ok(()),
        }
    }

    async fn delete(
        &self,
        database: &Database,
        kind: Option<HistoryKind>,
        until: HistoryOrder,
    ) -> Result<(), DataError> {
        let delete = |rows| database.delete_history(kind, until, rows);
        let deleted = in_batches(delete, |rows| self.metrics.expired(rows)).await?;
        if deleted > 0 {
            info!(rows = deleted, before = %until.at, "old rows of the history deleted");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::str::FromStr as _;

    use sqlx::ConnectOptions as _;
    use sqlx::sqlite::SqliteConnectOptions;

    use super::*;
    use crate::config::{Audit, DatabaseUrl, Privacy};
    use crate::data::{Act, HistoryBatch, HistoryFilter, HistoryRow};

    const NOON: Timestamp = Timestamp::from_micros(1_785_585_600_000_000);

    fn row(act: Act, day: i64) -> HistoryRow {
        HistoryRow {
            at: NOON.plus_micros(day * DAY_US),
            who: "test".into(),
            act,
            rule_id: None,
            subject: None,
            target: None,
            before: None,
            after: None,
            address: None,
            reason: String::new(),
            count: 1,
        }
    }

    #[tokio::test]
    async fn a_step_that_fails_does_not_prevent_the_others() {
        let folder = tempfile::tempdir().unwrap();
        let text = format!("sqlite:{}", folder.path().join("old.db").display());
        let url = DatabaseUrl::parse(&text).unwrap().unwrap();
        let database = Database::open(&url, Duration::from_secs(10)).await.unwrap();
        database.migrate().await.unwrap();
        let acts = (0..10).map(|day| row(Act::BucketReset, day));
        let sums = (0..10).map(|day| row(Act::SignInFailed, day));
        let rows = acts.chain(sums).collect();
        database.write_history(&HistoryBatch { writer: 1, sequence: 1, rows }).await.unwrap();
        let blocking = "UPDATE rate_limit_rules SET description = 'by hand' WHERE rule_id = 1; \
                        CREATE TRIGGER blocking BEFORE UPDATE ON rate_limit_history \
                        BEGIN SELECT RAISE(ABORT, 'blocked'); END;";
        let mut by_hand = SqliteConnectOptions::from_str(&text).unwrap().connect().await.unwrap();
        sqlx::raw_sql(blocking).execute(&mut by_hand).await.unwrap();

        let settings = config::History { retention_days: 8, rows_max: 3, queue_max: 10 };
        let pseudonyms =
            Pseudonyms::new(&Audit { privacy: Privacy::Truncated, ..Audit::default() });
        let (handle, metrics) = (DatabaseHandle::new(true, None), HistoryMetrics::default());
        let retention = Retention::new(&settings, handle, &pseudonyms, metrics);
        let now = NOON.plus_micros(10 * DAY_US);
        let error = retention.apply(&database, now).await.unwrap_err();
        assert!(error.to_string().contains("blocked"), "{error}");
        let left = database.history(&HistoryFilter::default(), None, 100).await.unwrap();
        let count = |act: Act| left.iter().filter(|entry| entry.act == act.name()).count();
        assert_eq!((count(Act::BucketReset), count(Act::SignInFailed)), (2, 1), "{left:?}");
        assert_eq!(count(Act::RuleUpdate), 1, "the newest act");
    }
}
