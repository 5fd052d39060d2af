//! A master, two replicas and three sentinels.
//!
//! Servers are named by their index: 0 is the master at first. Sentinels consider a server down after one
//! second without a reply, and need a quorum of two.

use std::time::Duration;

use redis::from_redis_value;

use crate::proxy::FaultProxy;
use crate::servers::{Builder, Flavour, RedisServer};
use crate::wait;

/// Name of the master in the sentinels.
pub const MASTER_NAME: &str = "sluicegate";

const SERVERS: usize = 3;
const SENTINELS: usize = 3;
const QUORUM: usize = 2;
const DOWN_AFTER_MS: u64 = 1_000;
const FAILOVER_LIMIT_MS: u64 = 5_000;

/// Time in which they must agree.
const AGREE_LIMIT: Duration = Duration::from_secs(30);

/// Three servers and three sentinels, killed on drop.
#[derive(Debug)]
pub struct SentinelSet {
    servers: Vec<RedisServer>,
    sentinels: Vec<RedisServer>,
    /// The ports by which the servers know each other: their own, or those of their proxies.
    known_as: Vec<u16>,
}

/// A member of the set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Member {
    /// A server; 0 is the master at first.
    Server(usize),
    /// A sentinel, by its index.
    Sentinel(usize),
}

// ===== starting =====

impl SentinelSet {
    /// Starts them, and waits until the replicas are in sync and the sentinels know all members.
    ///
    /// # Panics
    ///
    /// If they do not start.
    pub fn start(flavour: Flavour) -> Self {
        Self::start_with(flavour, |_, server| server)
    }

    /// The same, with additional configuration of some members: passwords, for example, which the sentinels
    /// need too.
    ///
    /// # Panics
    ///
    /// If they do not start.
    pub fn start_with(flavour: Flavour, special: impl Fn(Member, Builder) -> Builder) -> Self {
        Self::assemble(flavour, special, &[])
    }

    /// The same, with a proxy in front of each server, whose port all others use: clients, sentinels and
    /// replicas. A server whose proxy is a black hole is partitioned, and stays alive.
    ///
    /// # Panics
    ///
    /// If they do not start.
    pub fn start_proxied(flavour: Flavour) -> (Self, Vec<FaultProxy>) {
        let proxies = (0..SERVERS).map(|_| FaultProxy::start(0)).collect::<Vec<_>>();
        (Self::assemble(flavour, |_, builder| builder, &proxies), proxies)
    }

    fn assemble(
        flavour: Flavour,
        special: impl Fn(Member, Builder) -> Builder,
        proxies: &[FaultProxy],
    ) -> Self {
        let (mut servers, mut known_as) = (Vec::new(), Vec::<u16>::new());
        for index in 0..SERVERS {
            let mut server = RedisServer::builder(flavour).config("repl-ping-replica-period 1");
            if let Some(proxy) = proxies.get(index) {
                server = server.config(format!("replica-announce-port {}", proxy.port()));
            }
            if let Some(&master) = known_as.first() {
                server = server.replica_of(master);
            }
            let server = special(Member::Server(index), server).start();
            if let Some(proxy) = proxies.get(index) {
                proxy.retarget(server.port());
            }
            known_as.push(proxies.get(index).map_or(server.port(), FaultProxy::port));
            servers.push(server);
        }
        // A sentinel queries the replicas when it starts, and then every ten seconds.
        wait::until("the replicas to follow", AGREE_LIMIT, || {
            servers[0].info_number("replication", "connected_slaves") == SERVERS as i64 - 1
                && servers[1..].iter().all(is_linked)
        });
        let master = known_as[0];
        let start = |index| special(Member::Sentinel(index), sentinel(flavour, master)).start();
        let sentinels = (0..SENTINELS).map(start).collect();
        let set = Self { servers, sentinels, known_as };
        set.wait_ok();
        set
    }
}

fn sentinel(flavour: Flavour, master: u16) -> Builder {
    RedisServer::builder(flavour)
        .sentinel()
        .config(format!("sentinel monitor {MASTER_NAME} 127.0.0.1 {master} {QUORUM}"))
        .config(format!("sentinel down-after-milliseconds {MASTER_NAME} {DOWN_AFTER_MS}"))
        .config(format!("sentinel failover-timeout {MASTER_NAME} {FAILOVER_LIMIT_MS}"))
        .config(format!("sentinel parallel-syncs {MASTER_NAME} {SERVERS}"))
}

// ===== queries =====

impl SentinelSet {
    /// The servers, including dead ones.
    pub fn servers(&self) -> &[RedisServer] {
        &self.servers
    }

    /// The sentinels, including dead ones.
    pub fn sentinels(&self) -> &[RedisServer] {
        &self.sentinels
    }

    /// URLs of the sentinels.
    pub fn sentinel_urls(&self) -> Vec<String> {
        self.sentinels.iter().map(RedisServer::url).collect()
    }

    /// Index of the master, if all living sentinels name the same one and its role is master.
    pub fn try_master(&self) -> Option<usize> {
        let mut named = self.living_sentinels().map(named_master);
        let first = named.next()??;
        let index = self.known_as.iter().position(|&port| port == first)?;
        let server = &self.servers[index];
        let agreed = named.all(|port| port == Some(first)) && server.is_running();
        (agreed && role(server).as_deref() == Some("master")).then_some(index)
    }

    /// Index of the master.
    ///
    /// # Panics
    ///
    /// If the sentinels do not agree on one within half a minute.
    pub fn master(&self) -> usize {
        wait::until("the sentinels to name one master", AGREE_LIMIT, || {
            self.try_master().is_some()
        });
        self.try_master().expect("they have just named it")
    }

    /// Waits until the sentinels agree on the master, all other running servers replicate it and are in sync,
    /// and all sentinels know each other and the replicas.
    ///
    /// # Panics
    ///
    /// After half a minute.
    pub fn wait_ok(&self) {
        self.wait_ok_but(None);
    }

    /// The same, ignoring one of the servers.
    fn wait_ok_but(&self, excused: Option<usize>) {
        wait::until("the replicas and sentinels to agree", AGREE_LIMIT, || {
            self.try_master().is_some_and(|master| {
                let mut others = (0..self.servers.len()).filter(|&index| index != master);
                others.all(|index| Some(index) == excused || self.follows(index, master))
            }) && self.living_sentinels().all(knows_all_members)
        });
    }

    fn follows(&self, index: usize, master: usize) -> bool {
        let server = &self.servers[index];
        let port = self.known_as[master].to_string();
        !server.is_running()
            || server.info("replication", "master_port") == Some(port) && is_linked(server)
    }

    fn living_sentinels(&self) -> impl Iterator<Item = &RedisServer> {
        self.sentinels.iter().filter(|sentinel| sentinel.is_running())
    }
}

fn is_linked(replica: &RedisServer) -> bool {
    replica.info("replication", "master_link_status").as_deref() == Some("up")
}

fn role(server: &RedisServer) -> Option<String> {
    server.info("replication", "role")
}

fn named_master(sentinel: &RedisServer) -> Option<u16> {
    let answer = sentinel.command(&["SENTINEL", "GET-MASTER-ADDR-BY-NAME", MASTER_NAME]);
    let address: Vec<String> = from_redis_value(answer).ok()?;
    address.get(1)?.parse().ok()
}

/// The line of `INFO sentinel` counts the sentinel itself, and dead ones.
fn knows_all_members(sentinel: &RedisServer) -> bool {
    let line = sentinel.info("sentinel", "master0").unwrap_or_default();
    line.contains(&format!("slaves={}", SERVERS - 1))
        && line.contains(&format!("sentinels={SENTINELS}"))
}

// ===== faults =====

impl SentinelSet {
    /// Kills the master (SIGKILL) and returns its index.
    ///
    /// # Panics
    ///
    /// If there is none.
    pub fn kill_master(&self) -> usize {
        let master = self.master();
        self.servers[master].kill();
        master
    }

    /// Waits until another server than `former` is the master and the third replicates it; returns its index.
    /// Takes about two seconds. `former` is ignored: it may be dead, stopped or partitioned.
    ///
    /// # Panics
    ///
    /// After half a minute.
    pub fn wait_for_failover(&self, former: usize) -> usize {
        let heir = || self.try_master().filter(|&master| master != former);
        wait::until("the sentinels to fail over", AGREE_LIMIT, || heir().is_some());
        self.wait_ok_but(Some(former));
        self.master()
    }

    /// Makes the sentinels replace a living master, as an administrator would; returns the new one's index.
    ///
    /// # Panics
    ///
    /// After half a minute.
    pub fn failover(&self) -> usize {
        let former = self.master();
        self.sentinels[0].command(&["SENTINEL", "FAILOVER", MASTER_NAME]);
        self.wait_for_failover(former)
    }

    /// Makes a server a replica of another without the sentinels, which revert that after some seconds.
    ///
    /// # Panics
    ///
    /// If the server returns an error.
    pub fn demote(&self, server: usize, below: usize) {
        self.follow(server, self.known_as[below]);
    }

    /// Inserts a proxy into each replica's connection to the master, and waits until the data flows through
    /// it. The proxies can hold back replication before the master is killed.
    ///
    /// The sentinels point the replicas at the master itself again after about eight seconds, and when they
    /// fail over: a test must be done by then.
    ///
    /// # Panics
    ///
    /// If a connection is not established.
    pub fn interpose(&self) -> Vec<FaultProxy> {
        let master = self.master();
        let replicas = (0..self.servers.len()).filter(|&index| index != master);
        replicas
            .map(|replica| {
                let proxy = FaultProxy::start(self.servers[master].port());
                self.follow(replica, proxy.port());
                let replica = &self.servers[replica];
                wait::until("the link through the proxy", AGREE_LIMIT, || is_linked(replica));
                proxy
            })
            .collect()
    }

    fn follow(&self, server: usize, port: u16) {
        self.servers[server].command(&["REPLICAOF", "127.0.0.1", &port.to_string()]);
    }
}
