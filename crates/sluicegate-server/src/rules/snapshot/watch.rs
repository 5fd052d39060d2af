//! Detection of changes: by notification, by polling every second, and at known expiry times.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use sluicegate::Backoff;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep};
use tracing::warn;

use super::start::{migrate, must_not_be_made};
use super::{Keeper, file};
use crate::config::DatabaseUrl;
use crate::data::{DataError, Database};
use crate::time::Timestamp;

/// Polling interval of the database, in addition to its notifications.
const CONFIRM_EVERY: Duration = Duration::from_secs(1);
/// Pause between two writes of the snapshot file, as a multiple of the time one takes, and its
/// maximum: each write is the whole file.
const WRITE_PAUSE: u32 = 4;
const WRITE_PAUSE_MAX: Duration = Duration::from_secs(1);
/// Backoff for a database that could not be opened.
const REACH_AGAIN: Backoff =
    Backoff { first: Duration::from_millis(500), longest: Duration::from_secs(1) };

impl Keeper {
    /// Keeps the rules up to date. Never returns.
    pub(crate) async fn run(self) {
        let Some(url) = self.inner.url.clone() else { return };
        tokio::join!(self.keep_up(&url), self.let_expire(), self.write_files());
    }

    /// Applies the database's contents whenever they change. Never returns.
    async fn keep_up(&self, url: &DatabaseUrl) {
        let database = self.reach(url).await;
        self.confirm(&database).await;
        loop {
            match database.changes().await {
                Ok(changes) => self.follow(&database, changes).await,
                Err(error) => self.trouble(&error),
            }
            sleep(REACH_AGAIN.first).await;
        }
    }

    /// Applies every change as it arrives. Never returns.
    async fn follow(&self, database: &Database, mut changes: crate::data::Changes) {
        let mut look = interval(CONFIRM_EVERY);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = changes.next() => self.confirm(database).await,
                _ = look.tick() => self.confirm(database).await,
            }
        }
    }

    /// Waits until the database can be opened.
    async fn reach(&self, url: &DatabaseUrl) -> Arc<Database> {
        let mut failures = 0;
        loop {
            if let Ok(database) = self.database() {
                return database;
            }
            match self.open(url).await {
                Ok(database) => self.inner.database.set(database),
                Err(error) => {
                    self.trouble(&error);
                    failures += 1;
                    sleep(REACH_AGAIN.after(failures)).await;
                }
            }
        }
    }

    async fn open(&self, url: &DatabaseUrl) -> Result<Database, DataError> {
        must_not_be_made(url, self.inner.file.as_deref())?;
        let database = Database::open(url, self.inner.timeout).await?;
        let database = database.with_tiers_max(self.inner.tiers_max);
        migrate(&database).await?;
        Ok(database)
    }

    /// Writes the snapshot file whenever its contents change, but not too often. Never returns.
    async fn write_files(&self) {
        let Some(path) = &self.inner.file else { return };
        let mut latest = self.inner.latest.subscribe();
        latest.mark_changed();
        // Never fails: `self` holds the sender.
        while latest.changed().await.is_ok() {
            let loaded = latest.borrow_and_update().clone();
            let Some(loaded) = loaded else { continue };
            let (path, now, began) = (path.clone(), Timestamp::now(), Instant::now());
            let shown = path.display().to_string();
            let written = spawn_blocking(move || file::write(&path, &loaded, now)).await;
            if let Ok(Err(error)) = written {
                warn!(file = shown, %error, "cannot write the snapshot file: a start while the database is down will fail");
            }
            sleep((began.elapsed() * WRITE_PAUSE).min(WRITE_PAUSE_MAX)).await;
        }
    }

    /// Removes overrides and callers when they expire, also while the database is down. Never returns.
    async fn let_expire(&self) {
        loop {
            tokio::select! {
                () = self.until_expiry() => self.expire().await,
                // A new one may expire earlier.
                () = sleep(CONFIRM_EVERY) => {}
            }
        }
    }

    /// Waits until the next override or caller expires.
    async fn until_expiry(&self) {
        let Some(at) = self.next_expiry().await else { return pending().await };
        let left = at.micros().saturating_sub(Timestamp::now().micros());
        sleep(Duration::from_micros(u64::try_from(left).unwrap_or_default())).await;
    }
}
