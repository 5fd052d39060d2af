//! A slot in migration from one node to another.

use super::Cluster;
use crate::servers::RedisServer;
use crate::wait;
use redis::from_redis_value;

/// Timeout of one MIGRATE.
const MIGRATE_LIMIT_MS: &str = "3000";

/// A slot that is migrating, for as long as the test needs.
///
/// Meanwhile, the old owner serves keys that it still has and redirects clients to the new one (`ASK`) for
/// all others; the new one serves clients that send `ASKING`, and redirects others back (`MOVED`). A script
/// with keys on both sides gets `TRYAGAIN`.
#[derive(Debug)]
#[must_use = "the slot stays half-moved until `finish`"]
pub struct Migration<'a> {
    cluster: &'a Cluster,
    slot: String,
    from: usize,
    to: usize,
}

impl<'a> Migration<'a> {
    pub(super) fn begin(cluster: &'a Cluster, slot: u16, to: usize) -> Self {
        let from = cluster.owner_of(slot);
        assert_ne!(from, to, "slot {slot} is there already");
        let migration = Self { cluster, slot: slot.to_string(), from, to };
        migration.set_slot(to, &["IMPORTING", &cluster.ids[from]]);
        migration.set_slot(from, &["MIGRATING", &cluster.ids[to]]);
        migration
    }

    /// Index of the old owner.
    pub const fn from(&self) -> usize {
        self.from
    }

    /// Index of the new owner.
    pub const fn to(&self) -> usize {
        self.to
    }

    /// Migrates up to `keys_max` keys and returns their number.
    ///
    /// # Panics
    ///
    /// If a node returns an error.
    pub fn step(&self, keys_max: usize) -> usize {
        let words = ["CLUSTER", "GETKEYSINSLOT", &self.slot, &keys_max.to_string()];
        let keys: Vec<String> = from_redis_value(self.source().command(&words)).expect("keys");
        let keys = keys.iter().map(String::as_str).collect::<Vec<_>>();
        if !keys.is_empty() {
            self.migrate(&keys);
        }
        keys.len()
    }

    /// Migrates these keys, which must all be in the slot. Missing keys are skipped.
    ///
    /// # Panics
    ///
    /// If a node returns an error.
    pub fn migrate(&self, keys: &[&str]) {
        let port = self.cluster.nodes[self.to].port().to_string();
        let mut words = vec!["MIGRATE", "127.0.0.1", &port, "", "0", MIGRATE_LIMIT_MS];
        if let Some((user, password)) = self.cluster.nodes[self.to].login() {
            words.extend(["AUTH2", user, password]);
        }
        words.push("KEYS");
        words.extend(keys);
        self.source().command(&words);
    }

    /// Migrates the rest, assigns the slot to its new owner, and waits until all nodes know.
    ///
    /// # Panics
    ///
    /// If a node returns an error.
    pub fn finish(self) {
        while self.step(100) > 0 {}
        let owner = &self.cluster.ids[self.to];
        // The new owner first: otherwise the slot would have no owner for a moment.
        self.set_slot(self.to, &["NODE", owner]);
        self.set_slot(self.from, &["NODE", owner]);
        for master in self.cluster.masters() {
            self.set_slot(master, &["NODE", owner]);
        }
        let slot = self.slot.parse().expect("it was a number");
        wait::until("all nodes to know the new owner", super::AGREE_LIMIT, || {
            self.cluster
                .living()
                .all(|node| super::topology::owner(node, slot).as_ref() == Some(owner))
        });
    }

    /// Cancels: the slot stays with its old owner, and migrated keys stay on the new one.
    ///
    /// # Panics
    ///
    /// If a node returns an error.
    pub fn abandon(self) {
        self.set_slot(self.to, &["STABLE"]);
        self.set_slot(self.from, &["STABLE"]);
    }

    fn source(&self) -> &RedisServer {
        &self.cluster.nodes[self.from]
    }

    fn set_slot(&self, node: usize, what: &[&str]) {
        let mut words = vec!["CLUSTER", "SETSLOT", &self.slot];
        words.extend(what);
        self.cluster.nodes[node].command(&words);
    }
}
