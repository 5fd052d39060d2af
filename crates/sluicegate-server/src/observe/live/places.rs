//! Places of watchers: a limit over all, and a share for each client.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

/// Maximum number of watchers.
pub(crate) const WATCHERS_MAX: usize = 64;

/// Maximum number of watchers of one client.
pub(crate) const WATCHERS_PER_CLIENT_MAX: usize = WATCHERS_MAX / 4;

/// Number of watchers by client. A client without any has no entry, so there are at most [`WATCHERS_MAX`].
#[derive(Debug, Default)]
pub(super) struct Places(Mutex<HashMap<String, usize>>);

/// Place of a watcher, until this is dropped.
#[derive(Debug)]
pub(super) struct Place {
    client: String,
    places: Arc<Places>,
}

/// Reason why a client may not watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TooManyWatchers {
    /// The client has [`WATCHERS_PER_CLIENT_MAX`].
    OfClient,
    /// All clients together have [`WATCHERS_MAX`].
    OfAll,
}

impl Places {
    /// Takes a place for this client.
    pub(super) fn take(self: &Arc<Self>, client: &str) -> Result<Place, TooManyWatchers> {
        let mut watchers = self.0.lock();
        let of_client = watchers.get(client).copied().unwrap_or(0);
        if of_client == WATCHERS_PER_CLIENT_MAX {
            return Err(TooManyWatchers::OfClient);
        }
        if watchers.values().sum::<usize>() == WATCHERS_MAX {
            return Err(TooManyWatchers::OfAll);
        }
        watchers.insert(client.to_owned(), of_client + 1);
        Ok(Place { client: client.to_owned(), places: Arc::clone(self) })
    }

    /// Returns whether no place is taken.
    pub(super) fn is_empty(&self) -> bool {
        self.0.lock().is_empty()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut watchers = self.places.0.lock();
        if let Some(count) = watchers.get_mut(&self.client) {
            *count -= 1;
            if *count == 0 {
                watchers.remove(&self.client);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_client_has_a_share_and_all_have_a_limit() {
        let places = Arc::new(Places::default());
        let take = |client: &str| std::iter::from_fn(|| places.take(client).ok()).collect();
        let first: Vec<_> = take("token:first");
        assert_eq!(first.len(), WATCHERS_PER_CLIENT_MAX);
        assert_eq!(places.take("token:first").unwrap_err(), TooManyWatchers::OfClient);
        let others: Vec<Vec<_>> = ["127.0.0.1", "127.0.0.2", "admin"].map(take).into();
        assert_eq!(others.iter().map(Vec::len).sum::<usize>(), 3 * WATCHERS_PER_CLIENT_MAX);
        assert_eq!(places.take("token:last").unwrap_err(), TooManyWatchers::OfAll);
        drop((first, others));
        assert!(places.is_empty());
    }
}
