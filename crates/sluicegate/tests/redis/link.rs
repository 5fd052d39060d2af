//! The link to a server: errors it survives, reasons to leave a server, and servers it accepts.

use std::time::Duration;

use sluicegate::{
    Algorithm, BreakerState, Charge, OnError, OnEviction, Quota, RedisStore, RedisStoreBuilder,
    Space, Store, TroubleKind,
};
use sluicegate_tests::cluster::Cluster;
use sluicegate_tests::proxy::FaultProxy;
use sluicegate_tests::sentinel::MASTER_NAME;
use sluicegate_tests::servers::{Flavour, RedisServer};
use tokio::time::Instant;

/// Time in which a server must be used again after an error: a probe, and the longest backoff before it.
const SOON: Duration = Duration::from_secs(2);

/// All permissions that token buckets need, and none for sliding windows.
const TOKENS_ONLY: &str = "on >secret ~sg:* resetchannels -@all +evalsha +eval +script|load +info +time \
    +get +mget +set +del +exists";

fn builder(url: &str) -> RedisStoreBuilder {
    RedisStore::builder(url).unwrap().budget(Duration::from_secs(1)).deny_cache_max(0)
}

fn quota(text: &str) -> Quota {
    text.parse().unwrap()
}

/// Did Redis decide?
async fn decides(store: &RedisStore, quota: &Quota) -> bool {
    let key = store.key(Space::Take, &[format!("{quota:?}").as_bytes()]);
    let charge = Charge::new(&key, quota, 1).with_on_error(OnError::Allow);
    !store.charge(&[charge]).await.unwrap().degraded
}

async fn pause() {
    tokio::time::sleep(Duration::from_millis(5)).await;
}

/// Waits until Redis decides.
async fn decides_soon(store: &RedisStore, quota: &Quota) {
    let start = Instant::now();
    while !decides(store, quota).await {
        assert!(start.elapsed() < SOON, "{:?}", store.health());
        pause().await;
    }
}

// ===== permissions =====

#[tokio::test]
async fn a_rule_whose_commands_are_not_permitted_does_no_harm_to_others() {
    for flavour in [Flavour::Redis62, Flavour::Redis70, Flavour::Valkey9] {
        let server = RedisServer::builder(flavour).acl_user("app", TOKENS_ONLY).start();
        let store = builder(&server.url().replace("//", "//app:secret@")).build().unwrap();
        let (tokens, log) = (quota("1000/s"), quota("1000/s"));
        let log = log.with_algorithm(Algorithm::SlidingWindow).unwrap();
        let start = Instant::now();
        let mut refused = 0;
        while start.elapsed() < Duration::from_secs(1) {
            assert!(decides(&store, &tokens).await, "{flavour:?}: {:?}", store.health());
            assert!(!decides(&store, &log).await, "{flavour:?}");
            refused += 1;
        }
        let health = store.health();
        assert_eq!(health.breaker, BreakerState::Closed);
        assert_eq!(health.stats.reconnects, 0, "{flavour:?}");
        assert_eq!(health.stats.errors(TroubleKind::Auth), refused);
    }
}

#[tokio::test]
async fn a_user_without_permissions_is_retried_rarely_until_that_changes() {
    let server =
        RedisServer::builder(Flavour::Redis70).acl_user("app", "on >secret ~sg:* -@all").start();
    let store = builder(&server.url().replace("//", "//app:secret@")).build().unwrap();
    let tokens = quota("1000/s");
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(1) {
        assert!(!decides(&store, &tokens).await);
        pause().await;
    }
    let clients = server.info_number("stats", "total_connections_received");
    assert!(clients <= 20, "{clients} connections");
    assert!(store.health().stats.errors(TroubleKind::Auth) > 0);
    // The script can be loaded now, but not run: calls are refused one by one.
    server.command(&["ACL", "SETUSER", "app", "+info", "+script|load"]);
    tokio::time::sleep(Duration::from_millis(500)).await;
    let before = store.health().stats;
    for _ in 0..50 {
        assert!(!decides(&store, &tokens).await);
    }
    let after = store.health().stats;
    assert_eq!(after.reconnects, before.reconnects);
    assert_eq!(after.errors(TroubleKind::Auth), before.errors(TroubleKind::Auth) + 50);
    server.command(&["ACL", "SETUSER", "app", "+@all"]);
    decides_soon(&store, &tokens).await;
    // The user no longer exists: its connections are closed, and it cannot reconnect.
    server.command(&["ACL", "DELUSER", "app"]);
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert!(!decides(&store, &tokens).await);
    server.command(&["ACL", "SETUSER", "app", "on", ">secret", "~sg:*", "+@all"]);
    decides_soon(&store, &tokens).await;
}

// ===== writes that are refused =====

#[tokio::test]
async fn a_server_that_takes_no_writes_is_not_called_until_it_does() {
    for flavour in [Flavour::Redis62, Flavour::Redis70] {
        let server = RedisServer::start(flavour);
        let store = builder(&server.url()).build().unwrap();
        let tokens = quota("1000/s");
        decides_soon(&store, &tokens).await;
        server.command(&["CONFIG", "SET", "min-replicas-to-write", "1"]);
        assert!(!decides(&store, &tokens).await);
        // The breaker opens once, and stays open.
        let start = Instant::now();
        while start.elapsed() < SOON {
            let _ = decides(&store, &tokens).await;
            if start.elapsed() > Duration::from_millis(50) {
                assert_ne!(store.health().breaker, BreakerState::Closed, "{flavour:?}");
            }
            pause().await;
        }
        assert_eq!(store.health().stats.errors(TroubleKind::ReadOnly), 1, "{flavour:?}");
        assert!(store.health().trouble.unwrap().contains("NOREPLICAS"));
        server.command(&["CONFIG", "SET", "min-replicas-to-write", "0"]);
        decides_soon(&store, &tokens).await;
        assert_eq!(server.text(&["DBSIZE"]), "1", "probes leave nothing");
    }
}

#[tokio::test]
async fn a_node_of_a_cluster_that_takes_no_writes_is_not_called_until_it_does() {
    let cluster = Cluster::start(Flavour::Redis62);
    let store = builder(&cluster.urls()[0].replace("redis:", "redis+cluster:")).build().unwrap();
    let tokens = quota("1000/s");
    decides_soon(&store, &tokens).await;
    let writes = |replicas: &str| {
        for master in cluster.masters() {
            cluster.nodes()[master].command(&["CONFIG", "SET", "min-replicas-to-write", replicas]);
        }
    };
    writes("9");
    let start = Instant::now();
    while start.elapsed() < SOON {
        assert!(!decides(&store, &tokens).await);
        pause().await;
    }
    assert_ne!(store.health().breaker, BreakerState::Closed);
    assert_eq!(store.health().stats.errors(TroubleKind::ReadOnly), 1);
    writes("0");
    decides_soon(&store, &tokens).await;
}

#[tokio::test]
async fn a_server_without_memory_is_still_called() {
    for flavour in [Flavour::Redis62, Flavour::Redis70] {
        let server = RedisServer::start(flavour);
        let store = builder(&server.url()).build().unwrap();
        let tokens = quota("1000/s");
        decides_soon(&store, &tokens).await;
        server.command(&["CONFIG", "SET", "maxmemory", "1"]);
        for _ in 0..10 {
            assert!(!decides(&store, &tokens).await);
            // Long enough for a probe.
            tokio::time::sleep(Duration::from_millis(150)).await;
            assert_eq!(store.health().breaker, BreakerState::Closed, "{flavour:?}");
        }
        assert_eq!(store.health().stats.reconnects, 0);
        server.command(&["CONFIG", "SET", "maxmemory", "0"]);
        assert!(decides(&store, &tokens).await);
    }
}

// ===== sentinels that do not agree =====

fn sentinel(master: u16) -> RedisServer {
    let monitor = format!("sentinel monitor {MASTER_NAME} 127.0.0.1 {master} 9");
    RedisServer::builder(Flavour::Redis70).sentinel().config(monitor).start()
}

/// Makes a sentinel name another master.
fn tell(sentinel: &RedisServer, port: u16) {
    sentinel.command(&["SENTINEL", "REMOVE", MASTER_NAME]);
    sentinel.command(&["SENTINEL", "MONITOR", MASTER_NAME, "127.0.0.1", &port.to_string(), "9"]);
}

fn sentinel_store(sentinels: &[RedisServer]) -> RedisStore {
    let hosts: Vec<_> = sentinels.iter().map(|one| format!("127.0.0.1:{}", one.port())).collect();
    let url = format!("redis+sentinel://{}/{MASTER_NAME}", hosts.join(","));
    builder(&url).build().unwrap()
}

/// Checks for this long that every check is decided by Redis, over one connection.
async fn stays(store: &RedisStore, quota: &Quota, long: Duration) {
    let (start, before) = (Instant::now(), store.health());
    while start.elapsed() < long {
        assert!(decides(store, quota).await, "{:?}", store.health());
        pause().await;
    }
    let after = store.health();
    assert_eq!(after.stats.reconnects, before.stats.reconnects);
    assert_eq!(after.server, before.server);
}

#[tokio::test]
async fn one_sentinel_that_is_behind_changes_nothing() {
    let (master, other) =
        (RedisServer::start(Flavour::Redis70), RedisServer::start(Flavour::Redis70));
    // The stale sentinel names a server that is alive and whose role is master.
    let sentinels = [master.port(), master.port(), other.port()].map(sentinel);
    let store = sentinel_store(&sentinels);
    let tokens = quota("1000/s");
    decides_soon(&store, &tokens).await;
    // The first sentinel asked is random.
    if !store.health().server.ends_with(&master.port().to_string()) {
        tokio::time::sleep(Duration::from_secs(4)).await;
    }
    assert_eq!(store.health().server, format!("127.0.0.1:{}", master.port()));
    stays(&store, &tokens, Duration::from_secs(4)).await;
    other.kill();
    stays(&store, &tokens, Duration::from_secs(4)).await;
}

#[tokio::test]
async fn the_same_master_by_another_name_is_the_same_and_another_one_is_followed() {
    let (master, other) =
        (RedisServer::start(Flavour::Redis70), RedisServer::start(Flavour::Redis70));
    let sentinels = [master.port(), master.port(), master.port()].map(sentinel);
    let store = sentinel_store(&sentinels);
    let tokens = quota("1000/s");
    decides_soon(&store, &tokens).await;
    let alias = FaultProxy::start(master.port());
    sentinels.iter().for_each(|sentinel| tell(sentinel, alias.port()));
    stays(&store, &tokens, Duration::from_secs(3)).await;
    // The new master is connected before the old one is left, and sequential checks do not notice.
    sentinels.iter().for_each(|sentinel| tell(sentinel, other.port()));
    let start = Instant::now();
    while store.health().server != format!("127.0.0.1:{}", other.port()) {
        assert!(start.elapsed() < Duration::from_secs(4), "{:?}", store.health());
        assert!(decides(&store, &tokens).await);
    }
    assert_eq!(store.health().stats.reconnects, 1);
    stays(&store, &tokens, Duration::from_secs(2)).await;
}

// ===== servers that come later =====

#[tokio::test]
async fn a_server_that_appears_later_is_looked_at_too() {
    let evicting = RedisServer::builder(Flavour::Redis70)
        .config("maxmemory 100mb")
        .config("maxmemory-policy allkeys-lru")
        .start();
    evicting.kill();
    let tokens = quota("1000/s");
    let strict = builder(&evicting.url()).on_eviction(OnEviction::Refuse).build().unwrap();
    let lenient = builder(&evicting.url()).build().unwrap();
    assert!(!decides(&strict, &tokens).await);
    evicting.restart();
    decides_soon(&lenient, &tokens).await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert!(!decides(&strict, &tokens).await);
    let health = strict.health();
    assert_eq!(health.breaker, BreakerState::Open);
    assert!(health.trouble.unwrap().contains("maxmemory-policy is allkeys-lru"));
    assert!(health.stats.errors(TroubleKind::Unexpected) > 0);
    evicting.command(&["CONFIG", "SET", "maxmemory-policy", "noeviction"]);
    decides_soon(&strict, &tokens).await;
}

#[tokio::test]
async fn a_node_of_a_cluster_is_no_server_by_itself() {
    let node = RedisServer::builder(Flavour::Redis70).cluster_node(Duration::from_secs(1)).start();
    let store = builder(&node.url()).build().unwrap();
    assert!(!decides(&store, &quota("1000/s")).await);
    assert!(!decides(&store, &quota("1000/s")).await);
    assert!(store.health().trouble.unwrap().contains("redis+cluster"));
}
