use redis::Value;

use super::discovery::*;
use super::map::*;
use super::*;

fn address(host: &str, port: u16) -> Address {
    Address::Tcp { host: host.into(), port }
}

fn text(text: &str) -> Value {
    Value::BulkString(text.into())
}

fn node(host: Value, port: i64) -> Value {
    Value::Array(vec![host, Value::Int(port), text("id"), Value::Array(vec![])])
}

fn range(first: i64, last: i64, nodes: Vec<Value>) -> Value {
    let mut range = vec![Value::Int(first), Value::Int(last)];
    range.extend(nodes);
    Value::Array(range)
}

fn slots(ranges: &[(u16, u16, u16)]) -> Slots {
    let range = |&(first, last, port)| Range { first, last, master: address("h", port) };
    Slots { ranges: ranges.iter().map(range).collect(), replicas: Vec::new() }
}

fn owner(map: &Map, slot: u16) -> Option<Address> {
    map.owner(slot).map(|node| node.address.clone())
}

#[test]
fn slots_are_read_with_hosts_that_the_node_does_not_know() {
    let source = address("source", 1);
    let reply = Value::Array(vec![
        range(0, 5460, vec![node(text("10.0.0.1"), 7000), node(text("10.0.0.4"), 7003)]),
        range(5461, 10_922, vec![node(Value::Nil, 7001), node(text(""), 7004)]),
        range(10_923, 16_383, vec![node(text("?"), 7002)]),
    ]);
    let slots = parse(&reply, &source).unwrap();
    let masters: Vec<_> = slots.ranges.iter().map(|range| range.master.clone()).collect();
    assert_eq!(masters, [address("10.0.0.1", 7000), address("source", 7001)]);
    assert_eq!(slots.replicas, [address("10.0.0.4", 7003), address("source", 7004)]);
}

#[test]
fn nonsense_is_no_map() {
    let source = address("source", 1);
    let host = || node(text("h"), 1);
    for reply in [
        Value::Nil,
        Value::Array(vec![Value::Int(1)]),
        Value::Array(vec![range(0, 16_384, vec![host()])]),
        Value::Array(vec![range(-1, 3, vec![host()])]),
        Value::Array(vec![range(5, 3, vec![host()])]),
        Value::Array(vec![range(0, 3, vec![])]),
    ] {
        assert_eq!(parse(&reply, &source), None, "{reply:?}");
    }
    assert_eq!(parse(&Value::Array(vec![]), &source), Some(Slots::default()));
}

#[test]
fn a_failing_cluster_reports_it() {
    assert!(is_healthy(&text("cluster_state:ok\r\ncluster_slots_assigned:16384\r\n")));
    assert!(!is_healthy(&text("cluster_state:fail\r\ncluster_slots_assigned:5\r\n")));
    assert!(is_healthy(&Value::Nil));
}

#[test]
fn a_moved_slot_is_corrected_alone() {
    let map = Map::empty().learned(&slots(&[(0, 100, 1), (101, 16_383, 2)]));
    let map = map.with_owner(50, &address("h", 3));
    assert_eq!(owner(&map, 49), Some(address("h", 1)));
    assert_eq!(owner(&map, 50), Some(address("h", 3)));
    assert_eq!(owner(&map, 51), Some(address("h", 1)));
    assert_eq!(owner(&map, 16_383), Some(address("h", 2)));
    assert_eq!(map.nodes.len(), 3);
}

#[test]
fn slots_may_have_no_owner() {
    let map = Map::empty().learned(&slots(&[(5, 6, 1)]));
    assert_eq!(owner(&map, 4), None);
    assert_eq!(owner(&map, 5), Some(address("h", 1)));
    assert_eq!(owner(&map, 7), None);
    assert_eq!(owner(&map, u16::MAX), None);
}

#[tokio::test(start_paused = true)]
async fn nodes_that_stay_keep_their_links_and_nodes_that_leave_do_not() {
    let old = Map::empty().learned(&slots(&[(0, 100, 1), (101, 16_383, 2)]));
    let old = old.with_node(&address("h", 3));
    let migrating = old.node(&address("h", 3)).unwrap();
    *migrating.ask_at.lock() = Some(Instant::now());
    let new = old.learned(&slots(&[(0, 16_383, 2)]));
    let same = |port| match (old.node(&address("h", port)), new.node(&address("h", port))) {
        (Some(old), Some(new)) => Arc::ptr_eq(&old, &new),
        _ => false,
    };
    assert!(!same(1));
    assert!(same(2));
    assert!(same(3), "slots are on their way to it");
    sleep(ASK_TARGET_KEPT).await;
    assert!(new.learned(&slots(&[(0, 16_383, 2)])).node(&address("h", 3)).is_none());
}

#[test]
fn a_map_has_a_bound() {
    let mut map = Map::empty();
    for port in 1..=NODES_MAX as u16 {
        assert_eq!(map.index(Arc::new(Node::new(&address("h", port)))), port - 1);
    }
    assert_eq!(map.index(Arc::new(Node::new(&address("h", 2000)))), NO_OWNER);
    assert_eq!(map.nodes.len(), NODES_MAX);
    assert_eq!(map.index(Arc::new(Node::new(&address("h", 7)))), 6);
}

#[test]
fn waits_for_a_moving_slot_are_short() {
    let all: Vec<_> = (0..=REDIRECTS_MAX).map(|redirects| pause(redirects).as_millis()).collect();
    assert_eq!(all, [1, 2, 3, 4, 5, 5, 5, 5, 5]);
}
