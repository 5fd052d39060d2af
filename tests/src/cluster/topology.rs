//! A node's view of the cluster: `CLUSTER NODES`, parsed.

use std::ops::RangeInclusive;

use crate::servers::RedisServer;

/// One node, as seen by another node or itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Id of forty hexadecimal digits.
    pub id: String,
    /// Is it a master?
    pub is_master: bool,
    /// Id of its master; `None` for a master.
    pub master: Option<String>,
    /// Is it failed, suspected, or still without a handshake?
    pub failed: bool,
    /// Slots that it owns.
    pub slots: Vec<RangeInclusive<u16>>,
}

impl Node {
    pub(super) const fn is_well(&self) -> bool {
        !self.failed
    }

    pub(super) fn owns(&self, slot: u16) -> bool {
        self.slots.iter().any(|slots| slots.contains(&slot))
    }
}

/// All nodes that `node` knows.
pub(super) fn read(node: &RedisServer) -> Vec<Node> {
    node.text(&["CLUSTER", "NODES"]).lines().filter_map(parse).collect()
}

/// Parses `<id> <address> <flags> <master or -> <ping> <pong> <epoch> <link> <slots>...`
fn parse(line: &str) -> Option<Node> {
    let mut words = line.split_whitespace();
    let id = words.next()?.to_owned();
    let flags = words.nth(1)?.split(',').collect::<Vec<_>>();
    let master = words.next().filter(|&master| master != "-").map(str::to_owned);
    let link = words.nth(3)?;
    let bad = |flag: &&str| matches!(*flag, "fail" | "fail?" | "handshake" | "noaddr");
    Some(Node {
        id,
        is_master: flags.contains(&"master"),
        master,
        failed: flags.iter().any(bad) || link != "connected",
        slots: words.filter_map(parse_slots).collect(),
    })
}

/// Parses `7` or `7-9`; migrating slots (`[7->-<id>]`) belong to their old owner.
fn parse_slots(word: &str) -> Option<RangeInclusive<u16>> {
    let (first, last) = word.split_once('-').unwrap_or((word, word));
    Some(first.parse().ok()?..=last.parse().ok()?)
}

/// Id of the master that owns `slot`, as seen by `node`.
pub(super) fn owner(node: &RedisServer, slot: u16) -> Option<String> {
    read(node).into_iter().find(|node| node.is_master && node.owns(slot)).map(|node| node.id)
}

#[cfg(test)]
mod tests {
    use super::{Node, parse};

    #[test]
    fn lines_of_all_kinds() {
        let line =
            "07c3 127.0.0.1:7000@17000,host myself,master - 0 0 1 connected 0-9 11 [12->-ab]";
        let expected = Node {
            id: "07c3".to_owned(),
            is_master: true,
            master: None,
            failed: false,
            slots: vec![0..=9, 11..=11],
        };
        assert_eq!(parse(line), Some(expected));
        let replica = parse("ab 127.0.0.1:1@2 slave 07c3 0 0 1 connected").unwrap();
        assert_eq!(replica.master.as_deref(), Some("07c3"));
        assert!(!replica.is_master && !replica.failed);
        assert!(parse("ab 127.0.0.1:1@2 master,fail? - 0 0 1 connected").unwrap().failed);
        assert!(parse("ab 127.0.0.1:1@2 master - 0 0 1 disconnected").unwrap().failed);
        assert_eq!(parse(""), None);
    }
}
