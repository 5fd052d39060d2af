//! Shared access to the database, which may be reached later than the process starts, or never.

use std::sync::{Arc, OnceLock};

use arc_swap::ArcSwapOption;

use super::{DataError, Database, Recording};

/// The database of this process, once it has been reached. Clones share state.
#[derive(Clone, Debug)]
pub struct DatabaseHandle {
    database: Arc<ArcSwapOption<Database>>,
    is_configured: bool,
    /// Privacy setting of the history, once it is known.
    recording: Arc<OnceLock<Arc<dyn Recording>>>,
}

impl DatabaseHandle {
    /// A handle to a database that is open already, or to be set when it answers. Without
    /// `is_configured` the settings name none.
    #[must_use]
    pub fn new(is_configured: bool, database: Option<Database>) -> Self {
        let database = ArcSwapOption::new(database.map(Arc::new));
        Self { database: Arc::new(database), is_configured, recording: Arc::default() }
    }

    /// The database.
    ///
    /// # Errors
    ///
    /// [`DataError::Unavailable`] if there is none, or it has not been reached yet.
    pub fn get(&self) -> Result<Arc<Database>, DataError> {
        let reason =
            if self.is_configured { "it has not been reached yet" } else { "none is configured" };
        self.database.load_full().ok_or_else(|| DataError::Unavailable(reason.into()))
    }

    /// True if the settings name a database.
    #[must_use]
    pub fn is_configured(&self) -> bool {
        self.is_configured
    }

    /// Publishes the database to all clones.
    pub(crate) fn set(&self, database: Database) {
        let database = match self.recording.get() {
            Some(recording) => database.with_recording(Arc::clone(recording)),
            None => database,
        };
        self.database.store(Some(Arc::new(database)));
    }

    /// Applies a privacy setting to the history from now on. Called once, before others use the database.
    pub(crate) fn set_recording(&self, recording: Arc<dyn Recording>) {
        let recording = self.recording.get_or_init(|| recording);
        if let Some(database) = self.database.load_full() {
            let database = Database::clone(&database).with_recording(Arc::clone(recording));
            self.database.store(Some(Arc::new(database)));
        }
    }
}
