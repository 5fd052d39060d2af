//! Open connections in the order of their eviction.
//!
//! ```text
//!   crowded: the newcomer would be above nine tenths of the limit, and some network has more than a hundredth of it;
//!   or it finds no slot
//!     -> the network with the most connections loses the one whose last byte is the oldest
//! ```
//!
//! A connection stamps its [`Progress`] and nothing else: the order here is by the stamp that was last looked at, which
//! is never later than the real one. An eviction looks at the first of a network; if that has moved since, it is sorted
//! in again. Equally large networks are ordered by the stamp of their longest idle connection, in the same way. Every
//! such correction is paid for by bytes of that connection, and an eviction makes at most [`CORRECTIONS_MAX`] at each
//! look at a network, and corrects at most [`NETWORKS_MAX`] networks. So an accept, an eviction and a close take
//! logarithmic time, whatever clients do.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use ipnet::IpNet;
use tokio::task::AbortHandle;
use tokio::time::Instant;

use super::room::Room;
use crate::doors::progress::Progress;

/// Part of the limit that stays free where connections can be evicted.
const SPARE_PART: usize = 10;
/// Networks with at most this part of the limit lose nothing while slots are free: they are not what fills them.
const LARGE_PART: usize = 100;
/// Maximum number of equally large networks that an eviction sorts in again.
const NETWORKS_MAX: usize = 8;
/// Maximum number of connections that an eviction sorts in again at each look at a network. Beyond it the first one is
/// closed, which may be in the middle of a command. Each takes a removal and an insertion in an ordered set, about a
/// microsecond together.
const CORRECTIONS_MAX: usize = 256;

/// All open connections.
#[derive(Debug)]
pub(super) struct Table {
    opened: Instant,
    /// Slots of all connections, those being closed included.
    open: Room,
    /// Slots of connections that are not being closed.
    staying: Room,
    /// Number of connections from which on another one is crowded.
    crowded_from: usize,
    /// Number of connections above which a network is large.
    large_above: usize,
    connections: HashMap<u64, Connection>,
    networks: HashMap<IpNet, Network>,
    /// Networks by number of connections, then by stamp. The last one loses a connection.
    by_size: BTreeSet<(usize, Reverse<Instant>, IpNet)>,
    /// Connections by network, then by stamp.
    by_stamp: BTreeSet<(IpNet, Instant, u64)>,
    next_id: u64,
}

#[derive(Debug)]
struct Connection {
    listener: usize,
    /// Network that it counts for; `None` for a trusted proxy, and for a connection being closed.
    network: Option<IpNet>,
    progress: Arc<Progress>,
    /// `progress` when it was last looked at.
    stamp: Instant,
    /// Task that serves it; `None` until it is spawned.
    task: Option<AbortHandle>,
    is_leaving: bool,
}

#[derive(Clone, Copy, Debug)]
struct Network {
    connections: usize,
    /// Stamp of its longest idle connection when it was last looked at.
    stamp: Instant,
}

/// A connection to be closed.
#[derive(Debug)]
pub(super) struct Evicted {
    pub(super) listener: usize,
    pub(super) network: IpNet,
    /// Connections of the network, this one included.
    pub(super) connections: usize,
    pub(super) task: AbortHandle,
}

/// Result of asking for a slot.
#[derive(Debug)]
pub(super) enum Admission {
    Admitted(u64),
    /// No slot is free, but one will be as soon as an evicted connection has ended.
    Soon,
    /// No slot is free, and no connection can be evicted.
    Full,
}

impl Table {
    pub(super) fn new(connections_max: usize, listeners: usize) -> Self {
        let room = Room::new(connections_max, listeners);
        Self {
            opened: Instant::now(),
            open: room.clone(),
            staying: room,
            crowded_from: connections_max - connections_max / SPARE_PART,
            large_above: connections_max / LARGE_PART,
            connections: HashMap::new(),
            networks: HashMap::new(),
            by_size: BTreeSet::new(),
            by_stamp: BTreeSet::new(),
            next_id: 0,
        }
    }

    /// Number of open connections.
    pub(super) fn open(&self) -> usize {
        self.open.total()
    }

    /// Chooses a connection to close if another one would be crowded; `None` if there is room, or if all connections
    /// are those of trusted proxies.
    pub(super) fn make_room(&mut self, listener: usize) -> Option<Evicted> {
        let is_crowded = self.staying.total() >= self.crowded_from;
        let has_large = self.by_size.last().is_some_and(|(size, ..)| *size > self.large_above);
        if self.staying.has_room(listener) && !(is_crowded && has_large) {
            return None;
        }
        let id = self.victim(listener)?;
        let network = self.forget_network(id)?;
        let connections = self.size(network) + 1;
        let connection = self.connections.get_mut(&id)?;
        connection.is_leaving = true;
        self.staying.give_back(connection.listener);
        Some(Evicted {
            listener: connection.listener,
            network,
            connections,
            task: connection.task.clone()?,
        })
    }

    /// Takes a slot for a connection of this network; `None` for one of a trusted proxy.
    pub(super) fn admit(
        &mut self,
        listener: usize,
        network: Option<IpNet>,
        progress: &Arc<Progress>,
    ) -> Admission {
        if !self.open.has_room(listener) {
            return match self.staying.has_room(listener) {
                true => Admission::Soon,
                false => Admission::Full,
            };
        }
        self.open.take(listener);
        self.staying.take(listener);
        let id = self.next_id;
        self.next_id += 1;
        let connection = Connection {
            listener,
            network: None,
            stamp: progress.last(),
            progress: Arc::clone(progress),
            task: None,
            is_leaving: false,
        };
        self.connections.insert(id, connection);
        self.set_network(id, network);
        Admission::Admitted(id)
    }

    /// Sets the task that serves a connection, unless it has ended already. Only then can it be evicted.
    pub(super) fn set_task(&mut self, id: u64, task: AbortHandle) {
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.task = Some(task);
        }
    }

    /// Sets the network that a connection counts for.
    pub(super) fn set_network(&mut self, id: u64, network: Option<IpNet>) {
        self.forget_network(id);
        let Some(connection) = self.connections.get_mut(&id) else { return };
        if connection.is_leaving {
            return;
        }
        connection.network = network;
        if let Some(network) = network {
            self.by_stamp.insert((network, connection.stamp, id));
            self.resize(network, self.size(network) + 1);
        }
    }

    /// Removes a connection that has ended.
    pub(super) fn remove(&mut self, id: u64) {
        self.forget_network(id);
        let Some(connection) = self.connections.remove(&id) else { return };
        self.open.give_back(connection.listener);
        if !connection.is_leaving {
            self.staying.give_back(connection.listener);
        }
    }

    /// Takes a connection out of the order, and returns its network if it was in it.
    fn forget_network(&mut self, id: u64) -> Option<IpNet> {
        let connection = self.connections.get_mut(&id)?;
        let network = connection.network.take()?;
        self.by_stamp.remove(&(network, connection.stamp, id));
        self.resize(network, self.size(network) - 1);
        Some(network)
    }

    /// Number of connections of a network.
    fn size(&self, network: IpNet) -> usize {
        self.networks.get(&network).map_or(0, |network| network.connections)
    }

    /// Sets the number of connections of a network.
    fn resize(&mut self, network: IpNet, connections: usize) {
        let first = self.by_stamp.range((network, self.opened, 0)..).next();
        let stamp = first.map_or(self.opened, |(_, stamp, _)| *stamp);
        self.sort_in(network, Network { connections, stamp });
    }

    /// Replaces a network; one without connections is removed.
    fn sort_in(&mut self, name: IpNet, network: Network) {
        if let Some(before) = self.networks.remove(&name) {
            self.by_size.remove(&(before.connections, Reverse(before.stamp), name));
        }
        if network.connections > 0 {
            self.by_size.insert((network.connections, Reverse(network.stamp), name));
            self.networks.insert(name, network);
        }
    }

    /// Connection to close: of the largest network, the one that has been idle longest.
    fn victim(&mut self, listener: usize) -> Option<u64> {
        let (mut passed_over, mut corrections) = (0, 0);
        loop {
            let (connections, Reverse(stamp), network) =
                *self.by_size.iter().rev().nth(passed_over)?;
            let Some((last, id)) = self.longest_idle(network, listener) else {
                // All of its connections are in the few reserved slots of other listeners.
                passed_over += 1;
                continue;
            };
            if last <= stamp || corrections == NETWORKS_MAX {
                return Some(id);
            }
            corrections += 1;
            self.sort_in(network, Network { connections, stamp: last });
        }
    }

    /// Connection of a network that has been idle longest, with the time of its last byte; `None` if closing none of
    /// them would make room.
    fn longest_idle(&mut self, network: IpNet, listener: usize) -> Option<(Instant, u64)> {
        for corrections in 0.. {
            let (_, stamp, id) = self.first(network, listener)?;
            let connection = self.connections.get_mut(&id)?;
            let last = connection.progress.last();
            if last <= stamp || corrections == CORRECTIONS_MAX {
                return Some((last, id));
            }
            connection.stamp = last;
            self.by_stamp.remove(&(network, stamp, id));
            self.by_stamp.insert((network, last, id));
        }
        None
    }

    /// First connection of a network in the order of stamps that would make room.
    fn first(&self, network: IpNet, listener: usize) -> Option<(IpNet, Instant, u64)> {
        let of_network = self.by_stamp.range((network, self.opened, 0)..);
        let mut of_network = of_network.take_while(|(of, ..)| *of == network);
        let makes_room = |connection: &Connection| {
            connection.task.is_some() && self.staying.makes_room(connection.listener, listener)
        };
        of_network.find(|(.., id)| self.connections.get(id).is_some_and(makes_room)).copied()
    }
}

#[cfg(test)]
mod tests;
