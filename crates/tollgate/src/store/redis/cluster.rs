//! A cluster: which node has which slot, a link to each, and following slots that move.
//!
//! The map is read without a lock, and replaced as a whole. It is learned anew after anything that hints at
//! a change, at most ten times a second, and every ten seconds anyway. Until then, a `MOVED` corrects its
//! one slot.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use redis::Value;
use tokio::sync::{Notify, watch};
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep, sleep_until, timeout, timeout_at};

use super::breaker::BreakerState;
use super::call::{Call, Op, Reply};
use super::classify::{CallError, classify};
use super::connect::connect;
use super::flight::Manner;
use super::key::SLOTS;
use super::link::{Link, Standing, Target};
use super::settings::Settings;
use super::stats::Stats;
use super::trouble::{Trouble, TroubleKind};
use super::url::Address;

/// The most redirections of one call; the server's advice to try again is one, too.
pub(super) const REDIRECTS_MAX: u32 = 8;

/// As many redirections are followed without a pause: an old map, and a slot that moves.
const REDIRECTS_AT_ONCE: u32 = 2;

/// How often the map is learned without a reason.
pub(super) const REFRESH_EVERY: Duration = Duration::from_secs(10);

/// The shortest time between two refreshes.
pub(super) const REFRESH_PAUSE: Duration = Duration::from_millis(100);

/// How long a node may take to say what it knows, once connected.
const REFRESH_TIMEOUT: Duration = Duration::from_millis(250);

/// The most nodes of a map. Redis advises against more than a thousand.
pub(super) const NODES_MAX: usize = 1024;

/// For as long, a node without slots stays in the map after an `ASK`: it is getting some.
const ASKED_KEPT: Duration = Duration::from_secs(10);

/// In the map, a slot that nobody has.
const NOBODY: u16 = u16::MAX;

/// A cluster. When it is dropped, its links end.
#[derive(Debug)]
pub(super) struct Cluster {
    inner: Arc<Inner>,
    refresher: AbortHandle,
}

#[derive(Debug)]
struct Inner {
    settings: Arc<Settings>,
    stats: Arc<Stats>,
    seeds: Vec<Address>,
    map: ArcSwap<Map>,
    /// Asks for a refresh.
    wanted: Notify,
    /// The outcome of the last refresh; `None` before the first.
    refreshed: watch::Sender<Option<Result<(), Trouble>>>,
}

/// A node that is or was a master. Its link is started when it is first needed, and ends with it.
#[derive(Debug)]
struct Node {
    address: Address,
    link: OnceLock<Link>,
    /// When a call was last sent there by `ASK`.
    asked: Mutex<Option<Instant>>,
}

/// Who has which slot.
#[derive(Clone, Debug)]
struct Map {
    /// By slot, an index of `nodes`, or [`NOBODY`].
    owners: Box<[u16]>,
    nodes: Vec<Arc<Node>>,
    /// Others who know the cluster.
    replicas: Vec<Address>,
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.refresher.abort();
    }
}

impl Cluster {
    /// Starts to learn the cluster that these are some of, on the current tokio runtime.
    pub(super) fn start(seeds: Vec<Address>, settings: Arc<Settings>, stats: Arc<Stats>) -> Self {
        let inner = Arc::new(Inner {
            settings,
            stats,
            seeds,
            map: ArcSwap::from_pointee(Map::empty()),
            wanted: Notify::new(),
            refreshed: watch::Sender::new(None),
        });
        let refresher = tokio::spawn(Arc::clone(&inner).refresh_always()).abort_handle();
        Self { inner, refresher }
    }

    /// Makes one call, all of whose keys are in `slot`, wherever that is. Follows redirections: after them
    /// nothing was run; an undo does not. After a timeout or a lost connection the outcome is unknown, and it is not retried.
    ///
    /// `None`: nothing was run, because the slot is moving, and of the call's several keys some are missing
    /// at either node. Those of full buckets are, until the whole slot has moved.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future charges either everything or nothing.
    ///
    /// # Errors
    ///
    /// Trouble.
    pub(super) async fn call(
        &self,
        slot: u16,
        call: Call,
        deadline: Instant,
    ) -> Result<Option<Reply>, Trouble> {
        let (mut ask, mut tries_again) = (None, 0);
        for redirects in 0..=REDIRECTS_MAX {
            let (node, manner) = match ask.take() {
                Some(node) => (node, Manner::Asking),
                None if tries_again > 0 => (self.inner.owner(slot, deadline).await?, Manner::Alone),
                None => (self.inner.owner(slot, deadline).await?, Manner::Together),
            };
            let error = match self.inner.link(&node).call(call.clone(), manner, deadline).await {
                Ok(reply) => return Ok(Some(reply)),
                Err(error) => error,
            };
            let is_moving = matches!(error, CallError::TryAgain);
            if matches!(call.op, Op::Undo { .. }) && !is_moving {
                // An undo goes by the clock of the node that charged. Another one's may be behind.
                return Err(self.inner.troubled(match error {
                    CallError::Trouble(trouble) => trouble,
                    _ => Trouble::new(TroubleKind::ClusterDown, "the slot has moved since"),
                }));
            }
            match error {
                CallError::Moved { slot, address } => self.inner.moved(slot, &address, &node)?,
                CallError::Ask { address, .. } => {
                    ask = Some(self.inner.elsewhere(&address, &node)?);
                }
                CallError::TryAgain if tries_again > 0 && call.parts.len() > 1 => return Ok(None),
                CallError::TryAgain => tries_again += 1,
                CallError::Trouble(trouble) => return Err(self.inner.troubled(trouble)),
                CallError::NoScript => return Err(error.into_trouble()),
            }
            self.inner.stats.redirected();
            // Nodes that point at each other are about to agree.
            if is_moving || redirects >= REDIRECTS_AT_ONCE {
                sleep_until((Instant::now() + pause(redirects)).min(deadline)).await;
            }
            if Instant::now() >= deadline {
                return Err(Trouble::new(TroubleKind::Timeout, "redirected for the whole budget"));
            }
        }
        Err(Trouble::new(TroubleKind::ClusterDown, "redirected too often"))
    }

    /// How it stands with the node that fares worst.
    pub(super) fn standing(&self) -> Standing {
        let map = self.inner.map.load();
        let links = map.nodes.iter().filter_map(|node| node.link.get());
        let worst = links.map(Link::standing).max_by_key(|standing| standing.breaker);
        worst.unwrap_or_else(|| {
            let trouble = match &*self.inner.refreshed.borrow() {
                Some(Err(trouble)) => Some(Arc::new(trouble.clone())),
                _ => None,
            };
            let is_known = trouble.is_none();
            let breaker = if is_known { BreakerState::Closed } else { BreakerState::Open };
            Standing { breaker, server: Arc::new("cluster".into()), trouble }
        })
    }

    /// How many calls wait to be sent.
    pub(super) fn queued(&self) -> usize {
        let map = self.inner.map.load();
        map.nodes.iter().filter_map(|node| node.link.get()).map(Link::queued).sum()
    }
}

/// How long to wait for nodes to agree about a slot: one to five milliseconds.
fn pause(redirects: u32) -> Duration {
    Duration::from_millis(u64::from(redirects + 1).min(5))
}

impl Inner {
    fn link<'a>(&self, node: &'a Node) -> &'a Link {
        node.link.get_or_init(|| {
            let target = Target::Member(node.address.clone());
            Link::start(target, Arc::clone(&self.settings), Arc::clone(&self.stats))
        })
    }

    /// The node that has a slot. Waits only for the first map of all.
    async fn owner(&self, slot: u16, deadline: Instant) -> Result<Arc<Node>, Trouble> {
        if let Some(node) = self.map.load().owner(slot) {
            return Ok(node);
        }
        let mut refreshed = self.refreshed.subscribe();
        let outcome = match timeout_at(deadline, refreshed.wait_for(Option::is_some)).await {
            Ok(Ok(outcome)) => outcome.clone(),
            // The sender lives in `self`: this is the time that is over.
            _ => return Err(Trouble::new(TroubleKind::Timeout, "the cluster is not known yet")),
        };
        if let Some(node) = self.map.load().owner(slot) {
            return Ok(node);
        }
        self.wanted.notify_one();
        Err(match outcome {
            Some(Err(trouble)) => trouble,
            _ => Trouble::new(TroubleKind::ClusterDown, format!("no node has slot {slot}")),
        })
    }

    /// A slot has a new owner.
    fn moved(&self, slot: u16, address: &str, from: &Node) -> Result<(), Trouble> {
        let address = redirected(address, from)?;
        self.wanted.notify_one();
        self.map.rcu(|map| match map.owner(slot) {
            // Many calls learn the same at once: the map is copied for the first of them.
            Some(owner) if owner.address == address => Arc::clone(map),
            _ => Arc::new(map.with_owner(slot, &address)),
        });
        Ok(())
    }

    /// The node that a call is to ask this once.
    fn elsewhere(&self, address: &str, from: &Node) -> Result<Arc<Node>, Trouble> {
        let address = redirected(address, from)?;
        let known = self.map.load().node(&address);
        let node = known.or_else(|| {
            // A node without slots so far: it is kept in the map, so that its link lives on.
            self.map.rcu(|map| Arc::new(map.with_node(&address)));
            self.map.load().node(&address)
        });
        let node = node.ok_or_else(too_many)?;
        *node.asked.lock() = Some(Instant::now());
        Ok(node)
    }

    /// Trouble that another node might not have.
    fn troubled(&self, trouble: Trouble) -> Trouble {
        let is_hint = matches!(
            trouble.kind(),
            TroubleKind::Connection
                | TroubleKind::Timeout
                | TroubleKind::Open
                | TroubleKind::Loading
                | TroubleKind::ReadOnly
                | TroubleKind::ClusterDown
        );
        if is_hint {
            self.wanted.notify_one();
        }
        trouble
    }

    async fn refresh_always(self: Arc<Self>) {
        let mut turn = 0_usize;
        loop {
            let outcome = self.refresh(turn).await;
            turn = turn.wrapping_add(1);
            if let Err(trouble) = &outcome {
                self.tell(trouble);
            }
            let has_failed = outcome.is_err();
            self.refreshed.send_replace(Some(outcome));
            sleep(REFRESH_PAUSE).await;
            let rest = if has_failed { REFRESH_PAUSE } else { REFRESH_EVERY - REFRESH_PAUSE };
            // Whether it was wanted or is due makes no difference.
            let _ = timeout(rest, self.wanted.notified()).await;
        }
    }

    /// Says that nobody tells the slots; once, because the next trouble of that kind says nothing new.
    fn tell(&self, trouble: &Trouble) {
        let kind = trouble.kind();
        let is_told = match &*self.refreshed.borrow() {
            Some(Err(last)) => last.kind() == kind,
            _ => false,
        };
        if !is_told {
            tracing::warn!(%kind, detail = trouble.detail(), "no node of the cluster tells its slots");
        }
    }

    /// Asks one node after another, until one tells the map of a cluster that works; else takes what
    /// there is.
    async fn refresh(&self, turn: usize) -> Result<(), Trouble> {
        let mut trouble = Trouble::new(TroubleKind::Connection, "no node to ask");
        let mut doubtful = None;
        for address in self.informants(turn) {
            match ask_slots(&self.settings, &address).await {
                Ok((slots, true)) if !slots.ranges.is_empty() => {
                    self.learn(&slots);
                    return Ok(());
                }
                Ok((slots, _)) => {
                    doubtful.get_or_insert(slots);
                }
                Err(error) => trouble = error,
            }
        }
        // A node that is cut off tells old news: better than nothing, worse than what is known.
        match doubtful {
            Some(slots) if self.map.load().nodes.is_empty() => self.learn(&slots),
            Some(_) => {}
            None => return Err(trouble),
        }
        Ok(())
    }

    fn learn(&self, slots: &Slots) {
        self.map.rcu(|map| Arc::new(map.learned(slots)));
    }

    /// Whom to ask, in order: masters that answer, in turn, then everybody else, the seeds last.
    fn informants(&self, turn: usize) -> Vec<Address> {
        let map = self.map.load();
        let answers = |node: &&Arc<Node>| {
            node.link.get().is_none_or(|link| link.breaker_state() == BreakerState::Closed)
        };
        let (mut good, bad): (Vec<_>, Vec<_>) = map.nodes.iter().partition(answers);
        if !good.is_empty() {
            let start = turn % good.len();
            good.rotate_left(start);
        }
        let mut addresses = Vec::new();
        let nodes = good.iter().map(|node| &node.address);
        let others = bad.iter().map(|node| &node.address);
        for address in nodes.chain(&map.replicas).chain(&self.seeds).chain(others) {
            if !addresses.contains(address) {
                addresses.push(address.clone());
            }
        }
        addresses
    }
}

fn redirected(address: &str, from: &Node) -> Result<Address, Trouble> {
    Address::redirected(address, &from.address).ok_or_else(|| {
        Trouble::new(TroubleKind::Unexpected, "a redirection to an address that is none")
    })
}

fn too_many() -> Trouble {
    Trouble::new(TroubleKind::Unexpected, format!("more than {NODES_MAX} nodes"))
}

// ===== the map =====

impl Map {
    fn empty() -> Self {
        let owners = vec![NOBODY; usize::from(SLOTS)].into();
        Self { owners, nodes: Vec::new(), replicas: Vec::new() }
    }

    fn owner(&self, slot: u16) -> Option<Arc<Node>> {
        let index = *self.owners.get(usize::from(slot))?;
        self.nodes.get(usize::from(index)).cloned()
    }

    fn node(&self, address: &Address) -> Option<Arc<Node>> {
        self.nodes.iter().find(|node| node.address == *address).cloned()
    }

    /// The index of a node, which is added if need be; [`NOBODY`] if there are too many.
    fn index(&mut self, node: Arc<Node>) -> u16 {
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

    fn with_owner(&self, slot: u16, address: &Address) -> Self {
        let mut map = self.clone();
        let index = map.index(Arc::new(Node::new(address)));
        if let Some(owner) = map.owners.get_mut(usize::from(slot)) {
            *owner = index;
        }
        map
    }

    fn with_node(&self, address: &Address) -> Self {
        let mut map = self.clone();
        map.index(Arc::new(Node::new(address)));
        map
    }

    /// The map that a node told. Nodes that are in both keep their links; the others' end, but for those
    /// that were lately asked for slots on their way.
    fn learned(&self, slots: &Slots) -> Self {
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
    fn new(address: &Address) -> Self {
        Self { address: address.clone(), link: OnceLock::new(), asked: Mutex::new(None) }
    }

    fn is_getting_slots(&self) -> bool {
        self.asked.lock().is_some_and(|asked| asked.elapsed() < ASKED_KEPT)
    }
}

// ===== what nodes tell =====

/// The answer to `CLUSTER SLOTS`.
#[derive(Debug, Default, PartialEq, Eq)]
struct Slots {
    ranges: Vec<Range>,
    replicas: Vec<Address>,
}

#[derive(Debug, PartialEq, Eq)]
struct Range {
    first: u16,
    last: u16,
    master: Address,
}

/// What a node knows, and whether it finds its cluster in order.
async fn ask_slots(settings: &Settings, address: &Address) -> Result<(Slots, bool), Trouble> {
    let mut connection = connect(settings, address).await?.connection;
    let mut pipeline = redis::Pipeline::with_capacity(2);
    pipeline.cmd("CLUSTER").arg("SLOTS").cmd("CLUSTER").arg("INFO");
    let values = timeout(REFRESH_TIMEOUT, connection.send_packed_commands(&pipeline, 0, 2)).await;
    let values = match values {
        Ok(Ok(values)) => values,
        Ok(Err(error)) => return Err(classify(&error).into_trouble()),
        Err(_) => return Err(Trouble::new(TroubleKind::Connection, "no answer to CLUSTER SLOTS")),
    };
    match <[Value; 2]>::try_from(values) {
        Ok([Value::ServerError(error), _]) => Err(classify(&error.into()).into_trouble()),
        Ok([slots, info]) => match parse(&slots, address) {
            Some(slots) => Ok((slots, is_in_order(&info))),
            None => Err(not_understood()),
        },
        Err(_) => Err(not_understood()),
    }
}

fn not_understood() -> Trouble {
    Trouble::new(TroubleKind::Unexpected, "the answer to CLUSTER SLOTS was not understood")
}

/// A node that may not say is believed.
fn is_in_order(info: &Value) -> bool {
    match info {
        Value::BulkString(text) => !String::from_utf8_lossy(text).contains("cluster_state:fail"),
        Value::VerbatimString { text, .. } => !text.contains("cluster_state:fail"),
        _ => true,
    }
}

/// Reads `CLUSTER SLOTS`: of every range its first and last slot, its master, and its replicas, each as
/// host, port, and more that is of no use here. `None`: it is something else.
fn parse(value: &Value, asked: &Address) -> Option<Slots> {
    let Value::Array(ranges) = value else { return None };
    let mut slots = Slots::default();
    for range in ranges {
        let Value::Array(range) = range else { return None };
        let [Value::Int(first), Value::Int(last), master, replicas @ ..] = range.as_slice() else {
            return None;
        };
        let (first, last) = (u16::try_from(*first).ok()?, u16::try_from(*last).ok()?);
        if first > last || last >= SLOTS {
            return None;
        }
        // A master whose address the node does not know cannot be asked: its slots stay nobody's.
        if let Some(master) = parse_node(master, asked) {
            slots.ranges.push(Range { first, last, master });
        }
        for replica in replicas.iter().filter_map(|replica| parse_node(replica, asked)) {
            if slots.replicas.len() < NODES_MAX && !slots.replicas.contains(&replica) {
                slots.replicas.push(replica);
            }
        }
    }
    Some(slots)
}

/// A host that is not known to the node itself is the one that was asked.
fn parse_node(value: &Value, asked: &Address) -> Option<Address> {
    let Value::Array(node) = value else { return None };
    let [host, Value::Int(port), ..] = node.as_slice() else { return None };
    let host = match host {
        Value::BulkString(host) => std::str::from_utf8(host).ok()?,
        Value::SimpleString(host) => host,
        Value::Nil => "",
        _ => return None,
    };
    Address::redirected(&format!("{host}:{port}"), asked)
}

#[cfg(test)]
mod tests {
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
        let asked = address("asked", 1);
        let told = Value::Array(vec![
            range(0, 5460, vec![node(text("10.0.0.1"), 7000), node(text("10.0.0.4"), 7003)]),
            range(5461, 10_922, vec![node(Value::Nil, 7001), node(text(""), 7004)]),
            range(10_923, 16_383, vec![node(text("?"), 7002)]),
        ]);
        let slots = parse(&told, &asked).unwrap();
        let masters: Vec<_> = slots.ranges.iter().map(|range| range.master.clone()).collect();
        assert_eq!(masters, [address("10.0.0.1", 7000), address("asked", 7001)]);
        assert_eq!(slots.replicas, [address("10.0.0.4", 7003), address("asked", 7004)]);
    }

    #[test]
    fn nonsense_is_no_map() {
        let asked = address("asked", 1);
        let host = || node(text("h"), 1);
        for told in [
            Value::Nil,
            Value::Array(vec![Value::Int(1)]),
            Value::Array(vec![range(0, 16_384, vec![host()])]),
            Value::Array(vec![range(-1, 3, vec![host()])]),
            Value::Array(vec![range(5, 3, vec![host()])]),
            Value::Array(vec![range(0, 3, vec![])]),
        ] {
            assert_eq!(parse(&told, &asked), None, "{told:?}");
        }
        assert_eq!(parse(&Value::Array(vec![]), &asked), Some(Slots::default()));
    }

    #[test]
    fn a_cluster_that_fails_says_so() {
        assert!(is_in_order(&text("cluster_state:ok\r\ncluster_slots_assigned:16384\r\n")));
        assert!(!is_in_order(&text("cluster_state:fail\r\ncluster_slots_assigned:5\r\n")));
        assert!(is_in_order(&Value::Nil));
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
    fn slots_without_an_owner_are_nobodys() {
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
        let kept = old.node(&address("h", 3)).unwrap();
        *kept.asked.lock() = Some(Instant::now());
        let new = old.learned(&slots(&[(0, 16_383, 2)]));
        let same = |port| match (old.node(&address("h", port)), new.node(&address("h", port))) {
            (Some(old), Some(new)) => Arc::ptr_eq(&old, &new),
            _ => false,
        };
        assert!(!same(1));
        assert!(same(2));
        assert!(same(3), "slots are on their way to it");
        sleep(ASKED_KEPT).await;
        assert!(new.learned(&slots(&[(0, 16_383, 2)])).node(&address("h", 3)).is_none());
    }

    #[test]
    fn a_map_has_a_bound() {
        let mut map = Map::empty();
        for port in 1..=NODES_MAX as u16 {
            assert_eq!(map.index(Arc::new(Node::new(&address("h", port)))), port - 1);
        }
        assert_eq!(map.index(Arc::new(Node::new(&address("h", 2000)))), NOBODY);
        assert_eq!(map.nodes.len(), NODES_MAX);
        assert_eq!(map.index(Arc::new(Node::new(&address("h", 7)))), 6);
    }

    #[test]
    fn waits_for_a_moving_slot_are_short() {
        let all: Vec<_> =
            (0..=REDIRECTS_MAX).map(|redirects| pause(redirects).as_millis()).collect();
        assert_eq!(all, [1, 2, 3, 4, 5, 5, 5, 5, 5]);
    }
}
