//! Tests of the sentinel harness.

use std::time::Duration;

use sluicegate_tests::proxy::Faults;
use sluicegate_tests::sentinel::{MASTER_NAME, Member, SentinelSet};
use sluicegate_tests::servers::Flavour;
use sluicegate_tests::wait;

#[test]
fn a_killed_master_is_replaced_and_unreplicated_data_is_lost() {
    let set = SentinelSet::start(Flavour::Redis70);
    let former = set.master();
    assert_eq!(former, 0);
    let mut connection = set.servers()[former].connection().unwrap();
    redis::cmd("SET").arg("kept").arg("v").exec(&mut connection).unwrap();
    let copies = redis::cmd("WAIT").arg(2).arg(2_000).query::<u64>(&mut connection);
    assert_eq!(copies.unwrap(), 2);
    let proxies = set.interpose();
    proxies.iter().for_each(|proxy| proxy.set_both(Faults::BLACK_HOLE));
    set.servers()[former].command(&["SET", "lost", "v"]);
    wait::until("replication to be swallowed", Duration::from_secs(5), || {
        proxies.iter().all(|proxy| proxy.counts().down.swallowed_bytes > 0)
    });
    assert_eq!(set.kill_master(), former);
    let master = set.wait_for_failover(former);
    assert_ne!(master, former);
    assert_eq!(set.servers()[master].text(&["GET", "kept"]), "v");
    assert_eq!(set.servers()[master].command(&["EXISTS", "lost"]), redis::Value::Int(0));
}

#[test]
fn a_living_master_is_replaced_on_request() {
    let set = SentinelSet::start(Flavour::Valkey9);
    let former = set.master();
    let master = set.failover();
    assert_ne!(master, former);
    set.demote(master, former);
    let error = set.servers()[master].try_command(&["SET", "k", "v"]).unwrap_err();
    assert_eq!(error.code(), Some("READONLY"));
}

/// The split brain that a rate limiter must survive: two masters for a while.
#[test]
fn a_cut_off_master_lives_and_is_replaced() {
    let (set, proxies) = SentinelSet::start_proxied(Flavour::Valkey8);
    let former = set.master();
    proxies[former].set_both(Faults::BLACK_HOLE);
    let master = set.wait_for_failover(former);
    assert_ne!(master, former);
    assert!(proxies[former].counts().up.swallowed_bytes > 0);
    for index in [former, master] {
        assert_eq!(set.servers()[index].info("replication", "role").as_deref(), Some("master"));
    }
    // When it is back it is made a replica, which the sentinels do after eight seconds.
    proxies[former].heal();
    set.wait_ok();
    assert_eq!(set.master(), master);
}

#[test]
fn passwords_do_not_stop_the_sentinels() {
    let set = SentinelSet::start_with(Flavour::Redis70, |member, builder| match member {
        Member::Server(_) => builder.requirepass("secret"),
        Member::Sentinel(_) => builder.config(format!("sentinel auth-pass {MASTER_NAME} secret")),
    });
    assert_eq!(set.master(), 0);
}
