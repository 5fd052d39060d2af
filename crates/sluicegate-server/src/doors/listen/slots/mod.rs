//! Connection slots: a limit over all listeners, one of each listener that has its own, and the eviction of idle
//! connections as a limit comes near.

mod room;
mod table;

use std::net::IpAddr;
use std::pin::pin;
use std::slice;
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
    /// Under the limit of all listeners.
    all: Arc<Pool>,
    /// Under the limit of each listener, if it has one.
    own: Vec<Option<Arc<Pool>>>,
}

/// A listener, and the limit of its connections.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ListenerLimit {
    pub(crate) listener: &'static str,
    /// Maximum number of its connections; `None` if only the limit of all listeners applies.
    pub(crate) connections_max: Option<usize>,
}

/// Slots available to one listener. Clones share state.
#[derive(Clone, Debug)]
pub(crate) struct ListenerSlots {
    listener: usize,
    all: Arc<Pool>,
    own: Option<Arc<Pool>>,
}

/// Slot of a connection, released when dropped.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) id: SlotId,
    /// To be stamped by the connection.
    pub(super) progress: Arc<Progress>,
    slots: ListenerSlots,
}

/// Numbers of a connection in the pools.
#[derive(Clone, Copy, Debug)]
pub(super) struct SlotId {
    all: u64,
    own: Option<u64>,
}

/// Connections under one limit.
#[derive(Debug)]
struct Pool {
    /// Setting of the limit.
    limit: &'static str,
    table: Mutex<Table>,
    /// Notified whenever a slot is released.
    released: Notify,
    /// Proxies, whose connections are those of many clients and are not evicted.
    proxies: ClientIp,
    listeners: Vec<(&'static str, Counter)>,
}

impl Slots {
    /// `connections_max` slots for these listeners. Connections of trusted proxies are never evicted.
    pub(crate) fn new(
        connections_max: usize,
        listeners: &[ListenerLimit],
        trusted: &[IpNet],
        metrics: &Metrics,
    ) -> Self {
        let pool = |limit, connections_max, listeners: &[ListenerLimit]| {
            let counter =
                |limit: &ListenerLimit| (limit.listener, metrics.evictions(limit.listener));
            Arc::new(Pool {
                limit,
                table: Mutex::new(Table::new(connections_max, listeners.len())),
                released: Notify::new(),
                proxies: ClientIp::default().trust(trusted.iter().copied()),
                listeners: listeners.iter().map(counter).collect(),
            })
        };
        let own = |limit: &ListenerLimit| {
            Some(pool("its own connections_max", limit.connections_max?, slice::from_ref(limit)))
        };
        let all = pool("limits.connections_max", connections_max, listeners);
        Self { all, own: listeners.iter().map(own).collect() }
    }

    /// Slots of each listener, in the order of their names.
    pub(crate) fn per_listener(&self) -> impl Iterator<Item = ListenerSlots> {
        self.own.iter().enumerate().map(|(listener, own)| ListenerSlots {
            listener,
            all: Arc::clone(&self.all),
            own: own.clone(),
        })
    }

    /// Number of open connections.
    pub(crate) fn taken(&self) -> usize {
        self.all.table.lock().open()
    }

    /// Waits until no connection is open. No slot may be taken any more.
    pub(crate) async fn all_free(&self) {
        loop {
            let mut released = pin!(self.all.released.notified());
            released.as_mut().enable();
            if self.taken() == 0 {
                return;
            }
            released.await;
        }
    }
}

impl ListenerSlots {
    /// Takes a slot for a connection of this peer. As a limit comes near, the network with the most connections under it
    /// loses its longest idle one. `None` if no slot is free and none can be made free.
    pub(super) async fn take(&self, peer: IpAddr) -> Option<Slot> {
        let progress = Arc::new(Progress::new());
        let own = match &self.own {
            None => None,
            Some(pool) => Some(pool.take(0, peer, &progress).await?),
        };
        let all = self.all.take(self.listener, peer, &progress).await;
        if let (None, Some(pool), Some(id)) = (all, &self.own, own) {
            pool.remove(id);
        }
        Some(Slot { id: SlotId { all: all?, own }, progress, slots: self.clone() })
    }

    /// Sets the task of a connection, by which it can be evicted.
    pub(super) fn set_task(&self, id: SlotId, task: &AbortHandle) {
        for (pool, id) in self.pools(id) {
            pool.table.lock().set_task(id, task.clone());
        }
    }

    /// Sets the client of a proxied connection, for whose network it counts from now on.
    pub(super) fn set_client(&self, id: SlotId, client: IpAddr) {
        for (pool, id) in self.pools(id) {
            let network = pool.network(client);
            pool.table.lock().set_network(id, network);
        }
    }

    /// Pools that a connection is in, with its number in each.
    fn pools(&self, id: SlotId) -> impl Iterator<Item = (&Pool, u64)> {
        let own = self.own.as_deref().zip(id.own);
        [(&*self.all, id.all)].into_iter().chain(own)
    }
}

impl Pool {
    /// Takes a slot for a connection of this peer, and returns its number.
    async fn take(&self, listener: usize, peer: IpAddr, progress: &Arc<Progress>) -> Option<u64> {
        let network = self.network(peer);
        let (evicted, mut admission) = {
            let mut table = self.table.lock();
            (table.make_room(listener), table.admit(listener, network, progress))
        };
        if let Some(evicted) = evicted {
            self.close(&evicted);
        }
        let until = Instant::now() + EVICTION_TIMEOUT;
        loop {
            let mut released = pin!(self.released.notified());
            match admission {
                Admission::Admitted(id) => return Some(id),
                Admission::Full => return None,
                Admission::Soon => released.as_mut().enable(),
            };
            admission = self.table.lock().admit(listener, network, progress);
            if let Admission::Soon = admission {
                timeout_at(until, released).await.ok()?;
            }
        }
    }

    /// Releases a slot.
    fn remove(&self, id: u64) {
        self.table.lock().remove(id);
        self.released.notify_waiters();
    }

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
                "idle connection closed: its network has the most, and {} is near",
                self.limit
            );
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        for (pool, id) in self.slots.pools(self.id) {
            pool.remove(id);
        }
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
        let limit = |listener| ListenerLimit { listener, connections_max: None };
        Slots::new(connections_max, &["http", "resp"].map(limit), trusted, &metrics)
    }

    /// Serves an idle connection, as a listener does.
    async fn open(slots: &ListenerSlots, peer: IpAddr) -> bool {
        let Some(slot) = slots.take(peer).await else { return false };
        let id = slot.id;
        let task = tokio::spawn(async move {
            pending::<()>().await;
            drop(slot);
        });
        slots.set_task(id, &task.abort_handle());
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
        let id = SlotId { all: 0, own: None };
        listeners[0].set_client(id, SECOND);
        assert!(open(&listeners[0], SECOND).await);
        assert_eq!(slots.taken(), 20);
    }

    #[tokio::test]
    async fn a_listener_keeps_to_its_own_limit_and_leaves_others_alone() {
        let metrics = Metrics::new(Arc::new(MemoryStore::new().into()));
        let limits = [("http", None), ("admin", Some(5))]
            .map(|(listener, connections_max)| ListenerLimit { listener, connections_max });
        let trusted = "198.51.100.0/24".parse().unwrap();
        let slots = Slots::new(100, &limits, &[trusted], &metrics);
        let [http, admin] = &slots.per_listener().collect::<Vec<_>>()[..] else { panic!() };
        for _ in 0..20 {
            assert!(open(http, FIRST).await);
        }
        // Its own longest idle connections make room, and those of trusted proxies do not.
        for _ in 0..20 {
            assert!(open(admin, FIRST).await);
        }
        assert!(slots.taken() <= 25, "{}", slots.taken());
        for _ in 0..5 {
            assert!(open(admin, SECOND).await);
        }
        assert!(!open(admin, SECOND).await);
        assert!(open(http, SECOND).await);
        // A refused connection holds no slot.
        assert_eq!(slots.taken(), 26);
    }
}
