//! T29: former masters that leave their connections open.

use std::time::Duration;

use sluicegate::{OnError, TroubleKind};
use sluicegate_tests::proxy::FaultProxy;
use sluicegate_tests::sentinel::{MASTER_NAME, SentinelSet};
use sluicegate_tests::servers::RedisServer;
use sluicegate_tests::wait;

use crate::clusters::load::Shape;
use crate::clusters::sentinel::{sentinel_url, two_stores, wait_caught_up, wait_replicated};
use crate::clusters::support::{SOON, Target, Trial, errors, per_second, users_of};

/// Time in which clients must reach the new master, and longest run of READONLY errors.
const MOVED_WITHIN: Duration = Duration::from_secs(1);

/// An administrator demotes the master and leaves its connections open. Clients get READONLY, drop the
/// connection, and use the new master within a second.
#[test]
fn t29_a_demoted_master_is_left() {
    let mut trial = Trial::new("t29_a_demoted_master_is_left");
    let set = SentinelSet::start(trial.flavour(0));
    let stores = two_stores(&trial, &sentinel_url(&set));
    let watch = trial.watch(&stores, TroubleKind::ReadOnly);
    let quota = per_second(50, 100);
    let target = Target::one(&stores[0], "demoted", quota, OnError::Deny);
    let load = trial.load(&stores, vec![target], Shape::default());
    load.wait_good(100);
    wait_replicated(&set);
    let (former, heir) = (set.master(), (set.master() + 1) % 3);
    let from_us = trial.now_us();
    set.servers()[heir].command(&["REPLICAOF", "NO", "ONE"]);
    (0..3).filter(|&index| index != heir).for_each(|index| set.demote(index, heir));
    let told_us = trial.now_us();
    set.sentinels().iter().for_each(|sentinel| tell(sentinel, set.servers()[heir].port()));
    load.wait_good(200);
    let log = load.finish(&trial);
    let readonly = errors(&stores, TroubleKind::ReadOnly);
    let stretch = watch.longest(&trial);
    // After the demotion the old master refuses everything: a gap in the replies is the switch to the new
    // one.
    let moved = log.gap_max();
    let left = users_of(&set.servers()[former]);
    let excess = log.by_redis().excess(&quota);
    trial.line(&format!(
        "READONLY answers={readonly} sentinels switched after {} ms; all clients at the new master within {moved:?} (1s) \
         of the demotion, longest READONLY {stretch:?} (1s); left at the old one {left}; over-admission {} (<= 100 + {})",
        (told_us - from_us) / 1000,
        excess.tokens,
        excess.slack,
    ));
    trial.acted("READONLY", readonly);
    assert!(moved <= MOVED_WITHIN && stretch <= MOVED_WITHIN, "{moved:?} {stretch:?}");
    assert_eq!(left, 0, "connections to the old master");
    assert!(excess.tokens <= 100 + excess.slack, "{excess:?}");
}

/// Makes a sentinel watch another master under the same name, as an administrator does.
fn tell(sentinel: &RedisServer, port: u16) {
    sentinel.command(&["SENTINEL", "REMOVE", MASTER_NAME]);
    sentinel.command(&["SENTINEL", "MONITOR", MASTER_NAME, "127.0.0.1", &port.to_string(), "2"]);
}

/// One name for the master: the old one is demoted, the name points at the new one, and open connections
/// stay. Clients get READONLY, reconnect, and reach the new one.
#[test]
fn t29_a_name_that_is_pointed_elsewhere_is_followed() {
    let mut trial = Trial::new("t29_a_name_that_is_pointed_elsewhere_is_followed");
    let flavour = trial.flavour(0);
    let former = RedisServer::start(flavour);
    let heir = RedisServer::builder(flavour).replica_of(former.port()).start();
    wait::until("the replica to follow", SOON, || {
        heir.info("replication", "master_link_status").as_deref() == Some("up")
    });
    let name = FaultProxy::start(former.port());
    let stores = two_stores(&trial, &name.url());
    let quota = per_second(50, 100);
    let target = Target::one(&stores[0], "repointed", quota, OnError::Deny);
    let load = trial.load(&stores, vec![target], Shape::default());
    load.wait_good(100);
    wait_caught_up(&former, &heir);
    heir.command(&["REPLICAOF", "NO", "ONE"]);
    former.command(&["REPLICAOF", "127.0.0.1", &heir.port().to_string()]);
    name.retarget(heir.port());
    load.wait_good(200);
    let log = load.finish(&trial);
    let readonly = errors(&stores, TroubleKind::ReadOnly);
    let moved = log.gap_max();
    let (left, here) = (users_of(&former), users_of(&heir));
    let excess = log.by_redis().excess(&quota);
    trial.line(&format!(
        "READONLY answers={readonly}; all clients at the new master within {moved:?} (1s); connections \
         at the old one {left}, at the new one {here}; over-admission {} (<= 100 + {})",
        excess.tokens, excess.slack,
    ));
    trial.acted("READONLY", readonly);
    assert!(moved <= MOVED_WITHIN, "{moved:?}");
    assert_eq!((left, here), (0, 2));
    assert!(excess.tokens <= 100 + excess.slack, "{excess:?}");
}
