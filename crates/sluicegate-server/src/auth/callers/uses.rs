//! Recording of the last uses of callers.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;
use tracing::warn;

use super::Callers;
use crate::data::{DataError, DatabaseHandle};
use crate::log_limit::LogLimit;
use crate::time::Timestamp;

/// Interval between two batches.
const RECORD_EVERY: Duration = Duration::from_secs(30);

/// Log lines about batches that could not be written.
static FAILED_LINES: LogLimit = LogLimit::new();

/// Writes to the database which callers were used, apart from their requests. Clones share state.
#[derive(Clone, Debug)]
pub(crate) struct UseRecorder {
    callers: Arc<Callers>,
    database: DatabaseHandle,
}

impl UseRecorder {
    pub(crate) fn new(callers: Arc<Callers>, database: DatabaseHandle) -> Self {
        Self { callers, database }
    }

    /// Records uses periodically. Never returns.
    pub(crate) async fn run(self) {
        loop {
            sleep(RECORD_EVERY).await;
            self.record().await;
        }
    }

    /// Records the callers that were used since the last call, in one batch. A batch that cannot be written is part of
    /// the next one.
    pub(crate) async fn record(&self) {
        let used = self.callers.take_used();
        if used.is_empty() {
            return;
        }
        if let Err(error) = self.write(&used).await {
            self.callers.note_uses(&used);
            if let Some(suppressed) = FAILED_LINES.admit() {
                let callers = used.len();
                warn!(%error, callers, suppressed, "cannot record the last uses of callers: trying again with the next ones");
            }
        }
    }

    async fn write(&self, used: &[u64]) -> Result<(), DataError> {
        self.database.get()?.record_caller_uses(used, Timestamp::now()).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::DatabaseUrl;
    use crate::data::{Author, CallerSpec, Database, Rights};

    #[tokio::test]
    async fn uses_are_recorded_once_and_kept_while_the_database_is_down() {
        let folder = tempfile::tempdir().unwrap();
        let url = format!("sqlite:{}", folder.path().join("t.db").display());
        let url = DatabaseUrl::parse(&url).unwrap().unwrap();
        let database = Database::open(&url, Duration::from_secs(10)).await.unwrap();
        database.migrate().await.unwrap();
        let mut stored = Vec::new();
        for (name, hash) in [("one", [1; 32]), ("other", [2; 32])] {
            let spec = CallerSpec {
                name: name.into(),
                rights: Rights::ALL,
                namespace: None,
                certificate: None,
                expires_at: None,
            };
            let by = Author::new("test");
            stored.push(database.create_caller(&spec, Some(&hash), &by).await.unwrap());
        }
        let callers = Arc::new(Callers::default());
        callers.set(&stored, Timestamp::now());
        let handle = DatabaseHandle::new(true, None);
        let recorder = UseRecorder::new(Arc::clone(&callers), handle.clone());

        callers.by_hash(&[2; 32]).unwrap().note_use();
        recorder.record().await;
        let before = Timestamp::now();
        handle.set(database);
        recorder.record().await;
        let uses = handle.get().unwrap().caller_uses().await.unwrap();
        assert_eq!((uses.len(), uses[0].0), (1, stored[1].caller_id), "{uses:?}");
        assert!(uses[0].1 >= before, "{uses:?}");
        recorder.record().await;
        assert_eq!(handle.get().unwrap().caller_uses().await.unwrap(), uses, "not used again");
    }
}
