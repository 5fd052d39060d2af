//! Shared access to the database, which may be reached later than the process starts, or never.

use std::sync::Arc;

use arc_swap::ArcSwapOption;

use super::{DataError, Database};

/// The database of this process, once it has been reached. Clones share state.
#[derive(Clone, Debug)]
pub struct DatabaseHandle {
    database: Arc<ArcSwapOption<Database>>,
    is_configured: bool,
}

impl DatabaseHandle {
    /// A handle to a database that is open already, or to be set when it answers. Without
    /// `is_configured` the settings name none.
    #[must_use]
    pub fn new(is_configured: bool, database: Option<Database>) -> Self {
        let database = ArcSwapOption::new(database.map(Arc::new));
        Self { database: Arc::new(database), is_configured }
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

    /// Publishes the database to all clones.
    pub(crate) fn set(&self, database: Database) {
        self.database.store(Some(Arc::new(database)));
    }
}
