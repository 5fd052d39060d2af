//! Which node has which slot, as far as is known.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use super::told::Slots;
use crate::store::redis::key::SLOTS;
use crate::store::redis::link::Link;
use crate::store::redis::url::Address;

/// The most nodes of a map. Redis advises against more than a thousand.
pub(super) const NODES_MAX: usize = 1024;

/// For as long, a node without slots stays in the map after an `ASK`: it is getting some.
pub(super) const ASKED_KEPT: Duration = Duration::from_secs(10);

/// In the map, a slot that nobody has.
pub(super) const NOBODY: u16 = u16::MAX;

/// A node that is or was a master. Its link is started when it is first needed, and ends with it.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) address: Address,
    pub(super) link: OnceLock<Link>,
    /// When a call was last sent there by `ASK`.
    pub(super) asked: Mutex<Option<Instant>>,
}

/// Who has which slot.
#[derive(Clone, Debug)]
pub(super) struct Map {
    /// By slot, an index of `nodes`, or [`NOBODY`].
    pub(super) owners: Box<[u16]>,
    pub(super) nodes: Vec<Arc<Node>>,
    /// Others who know the cluster.
    pub(super) replicas: Vec<Address>,
}

impl Map {
    pub(super) fn empty() -> Self {
        let owners = vec![NOBODY; usize::from(SLOTS)].into();
        Self { owners, nodes: Vec::new(), replicas: Vec::new() }
    }

    pub(super) fn owner(&self, slot: u16) -> Option<Arc<Node>> {
        let index = *self.owners.get(usize::from(slot))?;
        self.nodes.get(usize::from(index)).cloned()
    }

    pub(super) fn node(&self, address: &Address) -> Option<Arc<Node>> {
        self.nodes.iter().find(|node| node.address == *address).cloned()
    }

    /// The index of a node, which is added if need be; [`NOBODY`] if there are too many.
    pub(super) fn index(&mut self, node: Arc<Node>) -> u16 {
        let known = self.nodes.iter().position(|other| other.address == node.address);
        let index = known.unwrap_or_else(|| {
            if self.nodes.len() < NODES_MAX {
                self.nodes.push(node);
                self.nodes.len() - 1
            } else {
                usize::from(NOBODY)
            }
        });
        u16::try_from(index).unwrap_or(NOBODY)
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

    /// The map that a node told. Nodes that are in both keep their links; the others' end, but for those
    /// that were lately asked for slots on their way.
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
        Self { address: address.clone(), link: OnceLock::new(), asked: Mutex::new(None) }
    }

    pub(super) fn is_getting_slots(&self) -> bool {
        self.asked.lock().is_some_and(|asked| asked.elapsed() < ASKED_KEPT)
    }
}
