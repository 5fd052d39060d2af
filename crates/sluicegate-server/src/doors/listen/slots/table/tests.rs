use std::future::pending;

use tokio::time::{Duration, advance};

use super::*;
use crate::network::network;

fn net(text: &str) -> Option<IpNet> {
    Some(network(text.parse().unwrap()))
}

/// Opens a connection, and returns its id and progress.
fn open(table: &mut Table, listener: usize, address: &str) -> (u64, Arc<Progress>) {
    let progress = Arc::new(Progress::new());
    let Admission::Admitted(id) = table.admit(listener, net(address), &progress) else {
        panic!("no slot for {address}")
    };
    table.set_task(id, tokio::spawn(pending::<()>()).abort_handle());
    (id, progress)
}

/// Evicts a connection, ends it, and returns its network.
fn evict(table: &mut Table, listener: usize) -> Option<String> {
    let before: Vec<_> = table.connections.keys().copied().collect();
    let evicted = table.make_room(listener)?;
    let id = before.into_iter().find(|id| table.connections[id].is_leaving).unwrap();
    assert_eq!(table.connections[&id].network, None);
    table.remove(id);
    Some(evicted.network.to_string())
}

#[test]
fn a_network_is_what_one_client_may_choose_from() {
    let same = |one, other| net(one) == net(other);
    assert!(same("192.0.2.1", "192.0.2.255") && !same("192.0.2.1", "192.0.3.1"));
    assert!(same("2001:db8:0:1::1", "2001:db8:0:1:ffff::9"));
    assert!(!same("2001:db8:0:1::1", "2001:db8:0:2::1"));
    assert!(same("::ffff:192.0.2.1", "192.0.2.7"));
    assert!(same("64:ff9b::192.0.2.1", "192.0.2.7"));
}

#[tokio::test(start_paused = true)]
async fn free_room_is_for_all() {
    let mut table = Table::new(100, 1);
    for _ in 0..90 {
        assert!(table.make_room(0).is_none());
        open(&mut table, 0, "192.0.2.1");
    }
    assert_eq!(evict(&mut table, 0).unwrap(), "192.0.2.0/24");
    assert!(table.make_room(0).is_none());
}

#[tokio::test(start_paused = true)]
async fn small_networks_lose_nothing_while_slots_are_free() {
    let mut table = Table::new(1_000, 1);
    // Trusted proxies fill most of the room.
    for _ in 0..990 {
        table.admit(0, None, &Arc::new(Progress::new()));
    }
    for _ in 0..10 {
        assert!(table.make_room(0).is_none());
        open(&mut table, 0, "192.0.2.1");
    }
    assert_eq!(evict(&mut table, 0).unwrap(), "192.0.2.0/24");
}

#[tokio::test(start_paused = true)]
async fn the_largest_network_loses_its_longest_idle_connection() {
    let mut table = Table::new(100, 1);
    let (_, bystander) = open(&mut table, 0, "203.0.113.5");
    let attacker: Vec<_> = (0..89).map(|n| open(&mut table, 0, &format!("192.0.2.{n}"))).collect();
    advance(Duration::from_secs(1)).await;
    for (position, (_, progress)) in attacker.iter().enumerate() {
        if position != 20 {
            progress.moved();
        }
    }
    // The bystander has been idle longer than all of them.
    assert_eq!(bystander.moved_ms(), 0);
    let evicted = table.make_room(0).unwrap();
    assert_eq!((evicted.network.to_string(), evicted.connections), ("192.0.2.0/24".into(), 89));
    assert!(table.connections[&attacker[20].0].is_leaving);
}

#[tokio::test(start_paused = true)]
async fn an_eviction_corrects_a_bounded_number_of_stamps() {
    let mut table = Table::new(1_000, 1);
    let busy: Vec<_> = (0..900).map(|_| open(&mut table, 0, "192.0.2.1")).collect();
    advance(Duration::from_secs(1)).await;
    for (_, progress) in &busy {
        progress.moved();
    }
    let corrected = |table: &Table| {
        table.connections.values().filter(|it| it.stamp > it.progress.opened()).count()
    };
    assert!(table.make_room(0).is_some());
    let corrected = corrected(&table);
    assert!((1..=2 * CORRECTIONS_MAX).contains(&corrected), "{corrected}");
}

#[tokio::test(start_paused = true)]
async fn of_equally_large_networks_the_longest_idle_loses() {
    let mut table = Table::new(180, 1);
    let busy: Vec<_> = (0..20).map(|n| open(&mut table, 0, &format!("203.0.{n}.1"))).collect();
    for n in 0..160 {
        open(&mut table, 0, &format!("198.51.{n}.1"));
    }
    let mut lost = Vec::new();
    for n in 0..150 {
        advance(Duration::from_millis(10)).await;
        for (_, progress) in &busy {
            progress.moved();
        }
        lost.push(evict(&mut table, 0).unwrap());
        open(&mut table, 0, &format!("192.{n}.2.1"));
    }
    // The first two evictions find so many stamps to correct that they stop early.
    let busy = lost.iter().filter(|network| network.starts_with("203.")).count();
    assert!(busy <= 20_usize.div_ceil(NETWORKS_MAX + 1), "{lost:?}");
}

#[tokio::test(start_paused = true)]
async fn reserved_slots_of_other_listeners_are_left_alone() {
    let mut table = Table::new(200, 2);
    for _ in 0..12 {
        open(&mut table, 1, "192.0.2.1");
    }
    for n in 0..170 {
        open(&mut table, 0, &format!("198.51.{}.1", n / 2));
    }
    // The largest network has nothing but reserved slots of the other listener.
    assert!(evict(&mut table, 0).unwrap().starts_with("198.51."));
    open(&mut table, 0, "203.0.113.5");
    assert_eq!(evict(&mut table, 1).unwrap(), "192.0.2.0/24");
}

#[tokio::test(start_paused = true)]
async fn nothing_is_left_behind() {
    let mut table = Table::new(50, 1);
    let ids: Vec<_> = (0..45).map(|n| open(&mut table, 0, &format!("192.0.{n}.1")).0).collect();
    table.set_network(ids[0], None);
    table.set_network(ids[1], net("2001:db8::1"));
    let evicted = table.make_room(0).unwrap();
    assert_eq!((table.open.total(), table.staying.total(), evicted.connections), (45, 44, 1));
    // A connection being closed cannot return into the order.
    for id in &ids {
        table.set_network(*id, net("192.0.2.1"));
    }
    assert_eq!(table.by_stamp.len(), 44);
    for id in ids {
        table.remove(id);
        table.remove(id);
    }
    assert_eq!((table.open(), table.staying.total(), table.connections.len()), (0, 0, 0));
    assert_eq!((table.networks.len(), table.by_size.len(), table.by_stamp.len()), (0, 0, 0));
}
