//! Tells when something has changed.

use std::time::Duration;

use sluicegate::Backoff;
use sqlx::postgres::{PgConnectOptions, PgListener, PgPoolOptions};
use tokio::time::{sleep, timeout};

use super::{DataError, Database};

/// How often SQLite is looked at.
const SQLITE_POLL: Duration = Duration::from_millis(250);

/// How often PostgreSQL is looked at, beside being listened to.
const POSTGRES_POLL: Duration = Duration::from_secs(1);

/// The channel of the triggers.
const CHANNEL: &str = "sluicegate_changed";

/// The pause after a failure.
const BACKOFF: Backoff =
    Backoff { first: Duration::from_millis(250), longest: Duration::from_secs(4) };

/// Tells when something may have changed. See [`Database::changes`].
#[derive(Debug)]
pub struct Changes {
    database: Database,
    /// Where PostgreSQL is listened to.
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

    /// Waits until something may have changed since the last time it said so. Never fails: while the database
    /// cannot be asked it comes back now and then. May be dropped at any time, and called again.
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

    /// Waits until it is time to look: when PostgreSQL says so, or after a while.
    async fn wait(&mut self) {
        let Some(options) = &self.listening else { return sleep(SQLITE_POLL).await };
        let look = sleep(POSTGRES_POLL);
        let Some(listener) = &mut self.listener else {
            match timeout(POSTGRES_POLL, listen(options.clone())).await {
                // What happened before there was a listener is seen by the look that follows.
                Ok(Ok(listener)) => self.listener = Some(listener),
                _ => look.await,
            }
            return;
        };
        let said = tokio::select! {
            said = listener.try_recv() => said,
            () = look => return,
        };
        // Lost: the next round listens anew.
        if !matches!(said, Ok(Some(_))) {
            self.listener = None;
        }
    }
}

/// Listens on a connection of its own.
async fn listen(options: PgConnectOptions) -> Result<PgListener, sqlx::Error> {
    let pool = PgPoolOptions::new().max_connections(1).max_lifetime(None).idle_timeout(None);
    let mut listener = PgListener::connect_with(&pool.connect_lazy_with(options)).await?;
    listener.eager_reconnect(false);
    listener.listen(CHANNEL).await?;
    Ok(listener)
}
