//! Connection slots: a limit over all listeners, and the eviction of idle connections as it comes near.

mod room;
mod table;

use std::net::IpAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use ipnet::IpNet;
use parking_lot::Mutex;
use prometheus_client::metrics::counter::Counter;
use sluicegate::client_ip::ClientIp;
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tokio::time::{Instant, timeout_at};
use tracing::warn;

use self::table::{Admission, Evicted, Table};
use crate::doors::progress::Progress;
use crate::log_limit::LogLimit;
use crate::network::network;
use crate::observe::metrics::Metrics;

/// Maximum time that an accepted connection waits for the slot of an evicted one.
const EVICTION_TIMEOUT: Duration = Duration::from_millis(500);

/// Limit on lines about evicted connections.
static EVICTED_LINES: LogLimit = LogLimit::new();

/// Connection slots of all listeners.
#[derive(Debug)]
pub(crate) struct Slots {
    shared: Arc<Shared>,
}

/// Slots available to one listener. Clones share state.
#[derive(Clone, Debug)]
pub(crate) struct ListenerSlots {
    listener: usize,
    shared: Arc<Shared>,
}

/// Slot of a connection, released when dropped.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) id: u64,
    /// To be stamped by the connection.
    pub(super) progress: Arc<Progress>,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    table: Mutex<Table>,
    /// Notified whenever a slot is released.
    released: Notify,
    /// Proxies, whose connections are those of many clients and are not evicted.
    proxies: ClientIp,
    listeners: Vec<(&'static str, Counter)>,
}

impl Slots {
    /// `connections_max` slots for listeners of these names. Connections of trusted proxies are never evicted.
    pub(crate) fn new(
        connections_max: usize,
        listeners: impl IntoIterator<Item = &'static str>,
        trusted: &[IpNet],
        metrics: &Metrics,
    ) -> Self {
        let listeners = listeners.into_iter().map(|name| (name, metrics.evictions(name)));
        let listeners: Vec<_> = listeners.collect();
        let shared = Arc::new(Shared {
            table: Mutex::new(Table::new(connections_max, listeners.len())),
            released: Notify::new(),
            proxies: ClientIp::default().trust(trusted.iter().copied()),
            listeners,
        });
        Self { shared }
    }

    /// Slots of each listener, in the order of their names.
    pub(crate) fn per_listener(&self) -> impl Iterator<Item = ListenerSlots> {
        let slots = |listener| ListenerSlots { listener, shared: Arc::clone(&self.shared) };
        (0..self.shared.listeners.len()).map(slots)
    }

    /// Number of open connections.
    pub(crate) fn taken(&self) -> usize {
        self.shared.table.lock().open()
    }

    /// Waits until no connection is open. No slot may be taken any more.
    pub(crate) async fn all_free(&self) {
        loop {
            let mut released = pin!(self.shared.released.notified());
            released.as_mut().enable();
            if self.taken() == 0 {
                return;
            }
            released.await;
        }
    }
}

impl ListenerSlots {
    /// Takes a slot for a connection of this peer. As the limit comes near, the network with the most connections loses
    /// its longest idle one. `None` if no slot is free and none can be made free.
    pub(super) async fn take(&self, peer: IpAddr) -> Option<Slot> {
        let network = self.shared.network(peer);
        let (evicted, mut admission) = {
            let mut table = self.shared.table.lock();
            (table.make_room(self.listener), table.admit(self.listener, network))
        };
        if let Some(evicted) = evicted {
            self.shared.close(&evicted);
        }
        let until = Instant::now() + EVICTION_TIMEOUT;
        loop {
            let mut released = pin!(self.shared.released.notified());
            match admission {
                Admission::Admitted(id, progress) => {
                    return Some(Slot { id, progress, shared: Arc::clone(&self.shared) });
                }
                Admission::Full => return None,
                Admission::Soon => released.as_mut().enable(),
            };
            admission = self.shared.table.lock().admit(self.listener, network);
            if let Admission::Soon = admission {
                timeout_at(until, released).await.ok()?;
            }
        }
    }

    /// Sets the task of a connection, by which it can be evicted.
    pub(super) fn set_task(&self, id: u64, task: AbortHandle) {
        self.shared.table.lock().set_task(id, task);
    }

    /// Sets the client of a proxied connection, for whose network it counts from now on.
    pub(super) fn set_client(&self, id: u64, client: IpAddr) {
        let network = self.shared.network(client);
        self.shared.table.lock().set_network(id, network);
    }
}

impl Shared {
    /// Network that a connection counts for; `None` for a trusted proxy.
    fn network(&self, peer: IpAddr) -> Option<IpNet> {
        (!self.proxies.is_trusted(peer)).then(|| network(peer))
    }

    /// Closes an evicted connection.
    fn close(&self, evicted: &Evicted) {
        evicted.task.abort();
        let (listener, evictions) = &self.listeners[evicted.listener];
        evictions.inc();
        if let Some(suppressed) = EVICTED_LINES.admit() {
            let Evicted { network, connections, .. } = evicted;
            warn!(
                listener,
                %network,
                connections,
                suppressed,
                "idle connection closed: its network has the most, and limits.connections_max is near"
            );
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.shared.table.lock().remove(self.id);
        self.shared.released.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use sluicegate::MemoryStore;

    use super::*;

    const FIRST: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1));
    const SECOND: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(198, 51, 100, 1));

    fn slots(connections_max: usize, trusted: &[IpNet]) -> Slots {
        let metrics = Metrics::new(Arc::new(MemoryStore::new().into()));
        Slots::new(connections_max, ["http", "resp"], trusted, &metrics)
    }

    /// Serves an idle connection, as a listener does.
    async fn open(slots: &ListenerSlots, peer: IpAddr) -> bool {
        let Some(slot) = slots.take(peer).await else { return false };
        let id = slot.id;
        let task = tokio::spawn(async move {
            pending::<()>().await;
            drop(slot);
        });
        slots.set_task(id, task.abort_handle());
        true
    }

    #[tokio::test]
    async fn an_evicted_connection_releases_its_slot() {
        let slots = slots(20, &[]);
        let listeners: Vec<_> = slots.per_listener().collect();
        for _ in 0..100 {
            assert!(open(&listeners[0], FIRST).await);
        }
        for listener in &listeners {
            assert!(open(listener, SECOND).await);
        }
        assert!(slots.taken() <= 20, "{}", slots.taken());
    }

    #[tokio::test]
    async fn connections_of_trusted_proxies_are_not_evicted() {
        let slots = slots(20, &["192.0.2.0/24".parse().unwrap()]);
        let listeners: Vec<_> = slots.per_listener().collect();
        for _ in 0..19 {
            assert!(open(&listeners[0], FIRST).await);
        }
        // The other listener has its reserve, and nothing beyond.
        assert!(!open(&listeners[0], SECOND).await);
        assert!(open(&listeners[1], SECOND).await);
        assert_eq!(slots.taken(), 20);
        // A proxy that names its client speaks for that client.
        let id = 0;
        listeners[0].set_client(id, SECOND);
        assert!(open(&listeners[0], SECOND).await);
        assert_eq!(slots.taken(), 20);
    }
}
