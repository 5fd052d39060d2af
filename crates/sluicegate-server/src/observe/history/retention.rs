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

    /// Masks rows written without the privacy setting, and deletes what is too old or too much at this time.
    async fn apply(&self, database: &Database, now: Timestamp) -> Result<(), DataError> {
        if self.is_private {
            in_batches(|rows| database.mask_history(rows), |_| {}).await?;
        }
        if self.days > 0 {
            let at = now.plus_micros(-i64::from(self.days) * DAY_US);
            self.delete(database, None, HistoryOrder { at, history_id: 0 }).await?;
        }
        let kinds = [
            (HistoryKind::Acts, self.rows_max),
            (HistoryKind::Sums, (self.rows_max / SUMS_PART).max(1)),
        ];
        for (kind, keep) in kinds {
            if let Some(until) = database.history_excess(kind, keep).await? {
                self.delete(database, Some(kind), until).await?;
            }
        }
        Ok(())
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
