//! Watches for changes: polls the generation, and listens for notifications of PostgreSQL.

use std::time::Duration;

use sluicegate::Backoff;
use sqlx::postgres::{PgConnectOptions, PgListener, PgPoolOptions};
use tokio::time::{sleep, timeout};

use super::{DataError, Database};

/// Polling interval of SQLite.
const SQLITE_POLL: Duration = Duration::from_millis(250);

/// Polling interval of PostgreSQL, in addition to its notifications.
const POSTGRES_POLL: Duration = Duration::from_secs(1);

/// Notification channel of the triggers.
const CHANNEL: &str = "sluicegate_changed";

/// Backoff after failures.
const BACKOFF: Backoff =
    Backoff { first: Duration::from_millis(250), longest: Duration::from_secs(4) };

/// Watcher for changes. See [`Database::changes`].
#[derive(Debug)]
pub struct Changes {
    database: Database,
    /// Connection options of the listener; `None` for SQLite.
    listening: Option<PgConnectOptions>,
    listener: Option<PgListener>,
    seen: u64,
    failures: u32,
}

impl Changes {
    pub(super) async fn new(
        database: Database,
        listening: Option<PgConnectOptions>,
    ) -> Result<Self, DataError> {
        let seen = database.generation().await?;
        Ok(Self { database, listening, listener: None, seen, failures: 0 })
    }

    /// Waits until something may have changed since it last returned. Never fails: while the database does not answer
    /// it returns from time to time. Cancel safe.
    pub async fn next(&mut self) {
        loop {
            if self.failures == 0 {
                self.wait().await;
            }
            match self.database.generation().await {
                Ok(generation) => {
                    self.failures = 0;
                    if generation != self.seen {
                        self.seen = generation;
                        return;
                    }
                }
                Err(_) => {
                    self.failures = self.failures.saturating_add(1);
                    self.listener = None;
                    sleep(BACKOFF.after(self.failures)).await;
                    return;
                }
            }
        }
    }

    /// Waits for a notification of PostgreSQL, or for the polling interval.
    async fn wait(&mut self) {
        let Some(options) = &self.listening else { return sleep(SQLITE_POLL).await };
        let look = sleep(POSTGRES_POLL);
        let Some(listener) = &mut self.listener else {
            match timeout(POSTGRES_POLL, listen(options.clone())).await {
                // Changes made before the listener existed are found by the poll that follows.
                Ok(Ok(listener)) => self.listener = Some(listener),
                _ => look.await,
            }
            return;
        };
        let said = tokio::select! {
            said = listener.try_recv() => said,
            () = look => return,
        };
        // The connection is lost: the next round reconnects.
        if !matches!(said, Ok(Some(_))) {
            self.listener = None;
        }
    }
}

/// Listens on a separate connection.
async fn listen(options: PgConnectOptions) -> Result<PgListener, sqlx::Error> {
    let pool = PgPoolOptions::new().max_connections(1).max_lifetime(None).idle_timeout(None);
    let mut listener = PgListener::connect_with(&pool.connect_lazy_with(options)).await?;
    listener.eager_reconnect(false);
    listener.listen(CHANNEL).await?;
    Ok(listener)
}
