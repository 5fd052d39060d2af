//! A cluster of three masters with a replica each, on loopback.
//!
//! Nodes 0, 1 and 2 start as masters of a third of the slots each; node 3 replicates node 0, 4 replicates 1
//! and 5 replicates 2. Later roles are queried from the nodes.

mod migration;
mod topology;

use std::time::Duration;

use crate::proxy::FaultProxy;
use crate::servers::{Builder, Flavour, RedisServer};
use crate::wait;
pub use migration::Migration;
pub use topology::Node;

/// The number of hash slots.
pub const SLOTS: u16 = 16_384;

const MASTERS: usize = 3;
const NODES: usize = 2 * MASTERS;
const NODE_TIMEOUT: Duration = Duration::from_secs(2);

/// Time in which the nodes must agree.
const AGREE_LIMIT: Duration = Duration::from_secs(30);

/// Six nodes, killed on drop.
#[derive(Debug)]
pub struct Cluster {
    nodes: Vec<RedisServer>,
    ids: Vec<String>,
}

// ===== starting =====

impl Cluster {
    /// Starts a cluster and waits until every node reports it as ok.
    ///
    /// # Panics
    ///
    /// If it does not start.
    pub fn start(flavour: Flavour) -> Self {
        Self::start_with(flavour, |_, node| node)
    }

    /// The same, with additional configuration of some nodes.
    ///
    /// # Panics
    ///
    /// If it does not start.
    pub fn start_with(flavour: Flavour, special: impl Fn(usize, Builder) -> Builder) -> Self {
        Self::join(start_nodes(flavour, special))
    }

    /// The same, with a proxy in front of each node, whose port clients and replicas use. The cluster bus
    /// does not go through it: a node whose proxy is a black hole is alive for the others, and stays a
    /// master.
    ///
    /// # Panics
    ///
    /// If it does not start.
    pub fn start_proxied(flavour: Flavour) -> (Self, Vec<FaultProxy>) {
        let proxies = (0..NODES).map(|_| FaultProxy::start(0)).collect::<Vec<_>>();
        let nodes = start_nodes(flavour, |index, node| {
            node.config(format!("cluster-announce-port {}", proxies[index].port()))
        });
        nodes.iter().zip(&proxies).for_each(|(node, proxy)| proxy.retarget(node.port()));
        (Self::join(nodes), proxies)
    }

    fn join(nodes: Vec<RedisServer>) -> Self {
        let ids = nodes.iter().map(|node| node.text(&["CLUSTER", "MYID"])).collect();
        let cluster = Self { nodes, ids };
        cluster.introduce();
        cluster.share_slots();
        cluster.attach_replicas();
        cluster.wait_ok();
        cluster
    }

    fn introduce(&self) {
        for (index, node) in self.nodes.iter().enumerate() {
            // Different epochs from the start: the nodes need not resolve collisions.
            node.command(&["CLUSTER", "SET-CONFIG-EPOCH", &(index + 1).to_string()]);
        }
        for (index, node) in self.nodes.iter().enumerate() {
            for other in &self.nodes[..index] {
                node.command(&["CLUSTER", "MEET", "127.0.0.1", &other.port().to_string()]);
            }
        }
        wait::until("the nodes to know each other", AGREE_LIMIT, || {
            self.nodes.iter().all(|node| {
                let known = topology::read(node);
                known.len() == NODES && known.iter().all(Node::is_well)
            })
        });
    }

    fn share_slots(&self) {
        let share = |index: usize| index as u16 * SLOTS / MASTERS as u16;
        for (index, node) in self.nodes.iter().take(MASTERS).enumerate() {
            let slots = share(index)..share(index + 1);
            if node.flavour().is_7_or_later() {
                let (first, last) = (slots.start.to_string(), (slots.end - 1).to_string());
                node.command(&["CLUSTER", "ADDSLOTSRANGE", &first, &last]);
            } else {
                let slots = slots.map(|slot| slot.to_string()).collect::<Vec<_>>();
                let mut words = vec!["CLUSTER", "ADDSLOTS"];
                words.extend(slots.iter().map(String::as_str));
                node.command(&words);
            }
        }
    }

    fn attach_replicas(&self) {
        for (replica, master) in self.nodes[MASTERS..].iter().zip(&self.ids) {
            replica.command(&["CLUSTER", "REPLICATE", master]);
        }
    }
}

fn start_nodes(flavour: Flavour, special: impl Fn(usize, Builder) -> Builder) -> Vec<RedisServer> {
    let start = |index| {
        let node = RedisServer::builder(flavour).cluster_node(NODE_TIMEOUT);
        special(index, node.config("repl-ping-replica-period 1")).start()
    };
    (0..NODES).map(start).collect()
}

// ===== queries =====

impl Cluster {
    /// All nodes, including dead ones.
    pub fn nodes(&self) -> &[RedisServer] {
        &self.nodes
    }

    /// The addresses of all nodes.
    pub fn urls(&self) -> Vec<String> {
        self.nodes.iter().map(RedisServer::url).collect()
    }

    /// The slot of a key.
    ///
    /// # Panics
    ///
    /// If no node replies.
    pub fn slot_of(&self, key: &str) -> u16 {
        redis::from_redis_value(self.any().command(&["CLUSTER", "KEYSLOT", key])).expect("a slot")
    }

    /// Index of the node that owns `slot`, according to a living node.
    ///
    /// # Panics
    ///
    /// If the slot has no owner.
    pub fn owner_of(&self, slot: u16) -> usize {
        self.index_of(&topology::owner(self.any(), slot).expect("the slot has an owner"))
    }

    /// Indices of the living nodes that report themselves as masters.
    pub fn masters(&self) -> Vec<usize> {
        self.by_role("master")
    }

    /// Indices of the living nodes that are replicas.
    pub fn replicas(&self) -> Vec<usize> {
        self.by_role("slave")
    }

    /// Indices of the living replicas of a master.
    pub fn replicas_of(&self, master: usize) -> Vec<usize> {
        let known = topology::read(self.any());
        let follows = |node: &&Node| node.master.as_ref() == Some(&self.ids[master]);
        let replicas = known.iter().filter(follows).map(|node| self.index_of(&node.id));
        replicas.filter(|&index| self.nodes[index].is_running()).collect()
    }

    /// Waits until every living node reports the cluster as ok, all slots are served, and every replica is in
    /// sync.
    ///
    /// # Panics
    ///
    /// After half a minute.
    pub fn wait_ok(&self) {
        wait::until("the cluster to be whole", AGREE_LIMIT, || {
            self.living().all(is_ok) && self.agree()
        });
    }

    /// Do the living nodes report the same owners and roles?
    fn agree(&self) -> bool {
        let mut views = self.living().map(|node| {
            let mut view = topology::read(node);
            view.retain(|node| !node.failed);
            view.sort_by(|a, b| a.id.cmp(&b.id));
            view
        });
        let first = views.next().expect("a node lives");
        first.iter().all(|node| node.is_master || node.master.is_some())
            && views.all(|view| view == first)
    }

    fn by_role(&self, role: &str) -> Vec<usize> {
        let is = |&index: &usize| {
            let node = &self.nodes[index];
            node.is_running() && node.info("replication", "role").as_deref() == Some(role)
        };
        (0..self.nodes.len()).filter(is).collect()
    }

    fn living(&self) -> impl Iterator<Item = &RedisServer> {
        self.nodes.iter().filter(|node| node.is_running())
    }

    fn any(&self) -> &RedisServer {
        self.living().next().expect("a node lives")
    }

    fn index_of(&self, id: &str) -> usize {
        self.ids.iter().position(|known| known == id).expect("the node is one of ours")
    }
}

/// Does a node report the cluster as ok, and is it in sync if it is a replica?
fn is_ok(node: &RedisServer) -> bool {
    let replication = node.text(&["INFO", "replication"]);
    node.text(&["CLUSTER", "INFO"]).contains("cluster_state:ok")
        && (replication.contains("role:master") || replication.contains("master_link_status:up"))
}

// ===== faults =====

impl Cluster {
    /// Kills a node (SIGKILL).
    pub fn kill(&self, index: usize) {
        self.nodes[index].kill();
    }

    /// Waits until one of `replicas` (those of a killed master) has taken over, and the cluster is ok again;
    /// returns its index. Takes a little more than the node timeout of two seconds.
    ///
    /// # Panics
    ///
    /// After half a minute.
    pub fn wait_for_failover(&self, replicas: &[usize]) -> usize {
        let heir = || self.masters().into_iter().find(|index| replicas.contains(index));
        wait::until("a replica to take over", AGREE_LIMIT, || heir().is_some());
        self.wait_ok();
        heir().expect("it has taken over")
    }

    /// Makes a replica the master in its master's place, with both alive, and waits until all nodes agree.
    ///
    /// # Panics
    ///
    /// If `replica` is not a replica, or the nodes do not agree within half a minute.
    pub fn failover(&self, replica: usize) {
        self.nodes[replica].command(&["CLUSTER", "FAILOVER"]);
        wait::until("the replica to be a master", AGREE_LIMIT, || {
            self.nodes[replica].info("replication", "role").as_deref() == Some("master")
        });
        self.wait_ok();
    }

    /// Begins to migrate a slot, without keys: see [`Migration`].
    ///
    /// # Panics
    ///
    /// If `to` already owns it, or a node returns an error.
    pub fn begin_migration(&self, slot: u16, to: usize) -> Migration<'_> {
        Migration::begin(self, slot, to)
    }

    /// Migrates a slot and all its keys, a hundred at a time.
    ///
    /// # Panics
    ///
    /// If a node returns an error.
    pub fn migrate_slot(&self, slot: u16, to: usize) {
        let migration = self.begin_migration(slot, to);
        while migration.step(100) > 0 {}
        migration.finish();
    }
}
