//! Map of a cluster: the owner of each slot, as far as known.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use super::discovery::Slots;
use crate::store::redis::key::SLOTS;
use crate::store::redis::link::Link;
use crate::store::redis::url::Address;

/// Maximum of nodes in a map. Redis advises against more than a thousand.
pub(super) const NODES_MAX: usize = 1024;

/// Time for which a node without slots stays in the map after an `ASK`: slots are migrating to it.
pub(super) const ASK_TARGET_KEPT: Duration = Duration::from_secs(10);

/// Owner index of a slot without an owner.
pub(super) const NO_OWNER: u16 = u16::MAX;

/// A node that is or was a master. Its link is started on first use, and ends with the node.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) address: Address,
    pub(super) link: OnceLock<Link>,
    /// Time of the last call that was sent to it by `ASK`.
    pub(super) ask_at: Mutex<Option<Instant>>,
}

/// Owners of all slots.
#[derive(Clone, Debug)]
pub(super) struct Map {
    /// Index into `nodes` by slot, or [`NO_OWNER`].
    pub(super) owners: Box<[u16]>,
    pub(super) nodes: Vec<Arc<Node>>,
    /// Replicas, which can be asked for the map too.
    pub(super) replicas: Vec<Address>,
}

impl Map {
    pub(super) fn empty() -> Self {
        let owners = vec![NO_OWNER; usize::from(SLOTS)].into();
        Self { owners, nodes: Vec::new(), replicas: Vec::new() }
    }

    pub(super) fn owner(&self, slot: u16) -> Option<Arc<Node>> {
        let index = *self.owners.get(usize::from(slot))?;
        self.nodes.get(usize::from(index)).cloned()
    }

    pub(super) fn node(&self, address: &Address) -> Option<Arc<Node>> {
        self.nodes.iter().find(|node| node.address == *address).cloned()
    }

    /// The index of a node, which is added if it is new; [`NO_OWNER`] if there are too many.
    pub(super) fn index(&mut self, node: Arc<Node>) -> u16 {
        let known = self.nodes.iter().position(|other| other.address == node.address);
        let index = known.unwrap_or_else(|| {
            if self.nodes.len() < NODES_MAX {
                self.nodes.push(node);
                self.nodes.len() - 1
            } else {
                usize::from(NO_OWNER)
            }
        });
        u16::try_from(index).unwrap_or(NO_OWNER)
    }

    pub(super) fn with_owner(&self, slot: u16, address: &Address) -> Self {
        let mut map = self.clone();
        let index = map.index(Arc::new(Node::new(address)));
        if let Some(owner) = map.owners.get_mut(usize::from(slot)) {
            *owner = index;
        }
        map
    }

    pub(super) fn with_node(&self, address: &Address) -> Self {
        let mut map = self.clone();
        map.index(Arc::new(Node::new(address)));
        map
    }

    /// The map from a node's reply. Nodes that are in both maps keep their links; the links of others end,
    /// except of nodes that slots are migrating to.
    pub(super) fn learned(&self, slots: &Slots) -> Self {
        let mut map = Self::empty();
        for range in &slots.ranges {
            let node =
                self.node(&range.master).unwrap_or_else(|| Arc::new(Node::new(&range.master)));
            let index = map.index(node);
            map.owners[usize::from(range.first)..=usize::from(range.last)].fill(index);
        }
        for node in self.nodes.iter().filter(|node| node.is_getting_slots()) {
            map.index(Arc::clone(node));
        }
        map.replicas = slots.replicas.clone();
        map
    }
}

impl Node {
    pub(super) fn new(address: &Address) -> Self {
        Self { address: address.clone(), link: OnceLock::new(), ask_at: Mutex::new(None) }
    }

    pub(super) fn is_getting_slots(&self) -> bool {
        self.ask_at.lock().is_some_and(|at| at.elapsed() < ASK_TARGET_KEPT)
    }
}
