//! Tests of the cluster harness.

use redis::Value;
use sluicegate_tests::cluster::{Cluster, SLOTS};
use sluicegate_tests::proxy::Faults;
use sluicegate_tests::servers::Flavour;

#[test]
fn a_slot_moves_in_steps() {
    let cluster = Cluster::start(Flavour::Redis70);
    let slot = cluster.slot_of("{a}");
    let from = cluster.owner_of(slot);
    let to = (from + 1) % 3;
    let node = |index: usize| &cluster.nodes()[index];
    let keys = ["{a}1", "{a}2", "{a}3"];
    for key in keys {
        node(from).command(&["SET", key, "v"]);
    }
    let code = |index: usize, words: &[&str]| {
        let error = node(index).try_command(words).unwrap_err();
        error.code().unwrap_or_default().to_owned()
    };
    let migration = cluster.begin_migration(slot, to);
    migration.migrate(&keys[..1]);
    // Half migrated: each of the three redirections that a client must handle.
    assert_eq!(code(from, &["GET", keys[0]]), "ASK");
    assert_eq!(code(to, &["GET", keys[0]]), "MOVED");
    assert_eq!(code(from, &["MGET", keys[0], keys[1]]), "TRYAGAIN");
    assert_eq!(node(from).text(&["GET", keys[1]]), "v");
    assert_eq!(migration.step(1), 1);
    migration.finish();
    assert_eq!(cluster.owner_of(slot), to);
    assert_eq!(code(from, &["GET", keys[0]]), "MOVED");
    for key in keys {
        assert_eq!(node(to).text(&["GET", key]), "v");
    }
    cluster.migrate_slot(slot, from);
    assert_eq!(cluster.owner_of(slot), from);
    cluster.begin_migration(slot, to).abandon();
    assert_eq!(node(from).command(&["EXISTS", keys[0]]), Value::Int(1));
}

#[test]
fn replicas_take_over_on_request_and_after_a_death() {
    let cluster = Cluster::start(Flavour::Valkey9);
    assert_eq!((cluster.masters(), cluster.replicas()), (vec![0, 1, 2], vec![3, 4, 5]));
    assert_eq!((cluster.owner_of(0), cluster.owner_of(SLOTS - 1)), (0, 2));
    cluster.failover(3);
    assert_eq!(cluster.owner_of(0), 3);
    let slot = cluster.slot_of("k");
    let master = cluster.owner_of(slot);
    let replicas = cluster.replicas_of(master);
    assert_eq!(replicas.len(), 1);
    cluster.kill(master);
    let heir = cluster.wait_for_failover(&replicas);
    assert_eq!((heir, cluster.owner_of(slot)), (replicas[0], replicas[0]));
    // The killed node comes back as a replica. It finds the others by its configuration file.
    cluster.nodes()[master].restart();
    cluster.wait_ok();
    assert_eq!(cluster.replicas_of(heir), [master]);
}

/// The oldest version has no slot ranges.
#[test]
fn the_oldest_flavour_makes_a_cluster_and_so_do_passwords() {
    let cluster = Cluster::start_with(Flavour::Redis62, |_, node| node.requirepass("secret"));
    let slot = cluster.slot_of("k");
    let from = cluster.owner_of(slot);
    cluster.nodes()[from].command(&["SET", "k", "v"]);
    let to = (from + 1) % 3;
    cluster.migrate_slot(slot, to);
    assert_eq!(cluster.nodes()[to].text(&["GET", "k"]), "v");
}

#[test]
fn clients_are_sent_to_the_proxies() {
    let (cluster, proxies) = Cluster::start_proxied(Flavour::Redis8);
    let slot = cluster.slot_of("k");
    let (owner, other) = (cluster.owner_of(slot), (cluster.owner_of(slot) + 1) % 3);
    let error = cluster.nodes()[other].try_command(&["GET", "k"]).unwrap_err();
    let (address, _) = error.redirect_node().unwrap();
    assert_eq!(address, format!("127.0.0.1:{}", proxies[owner].port()));
    // Replication goes through them too, and the cluster bus does not.
    proxies[owner].set_both(Faults::BLACK_HOLE);
    let mut connection = cluster.nodes()[owner].connection().unwrap();
    redis::cmd("SET").arg("k").arg("v").exec(&mut connection).unwrap();
    let copies = redis::cmd("WAIT").arg(1).arg(200).query::<u64>(&mut connection);
    assert_eq!(copies.unwrap(), 0);
    assert!(proxies[owner].counts().down.swallowed_bytes > 0);
    proxies[owner].heal();
    cluster.wait_ok();
}
