//! A cluster: the owner of each slot, a link to each node, and redirections.
//!
//! The map is read without a lock, and replaced as a whole. It is refreshed after every hint of a change, at
//! most ten times a second, and every ten seconds anyway. Until then, a `MOVED` corrects the slot that it
//! names.

pub(super) mod discovery;
mod map;

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use tokio::sync::{Notify, watch};
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep, sleep_until, timeout, timeout_at};

use self::discovery::{Slots, fetch_slots};
use self::map::{Map, NODES_MAX, Node};
use super::breaker::BreakerState;
use super::call::{Call, Op, Reply};
use super::classify::CallError;
use super::flight::SendMode;
use super::link::{Link, ServerStatus, Target};
use super::settings::Settings;
use super::stats::Stats;
use super::trouble::{Trouble, TroubleKind};
use super::url::Address;

/// Maximum of redirections of one call, including `TRYAGAIN`.
pub(super) const REDIRECTS_MAX: u32 = 8;

/// Redirections that are followed without a pause: one for an outdated map, one for a migrating slot.
const REDIRECTS_AT_ONCE: u32 = 2;

/// Interval of refreshes without a hint.
pub(super) const REFRESH_EVERY: Duration = Duration::from_secs(10);

/// Shortest time between two refreshes.
pub(super) const REFRESH_PAUSE: Duration = Duration::from_millis(100);

/// A cluster. Its links end when it is dropped.
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
    /// Requests a refresh.
    refresh_wanted: Notify,
    /// Result of the last refresh; `None` before the first.
    refreshed: watch::Sender<Option<Result<(), Trouble>>>,
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.refresher.abort();
    }
}

impl Cluster {
    /// Starts to discover the cluster from these nodes, on the current tokio runtime.
    pub(super) fn start(seeds: Vec<Address>, settings: Arc<Settings>, stats: Arc<Stats>) -> Self {
        let inner = Arc::new(Inner {
            settings,
            stats,
            seeds,
            map: ArcSwap::from_pointee(Map::empty()),
            refresh_wanted: Notify::new(),
            refreshed: watch::Sender::new(None),
        });
        let refresher = tokio::spawn(Arc::clone(&inner).refresh_always()).abort_handle();
        Self { inner, refresher }
    }

    /// Sends one call, all of whose keys are in `slot`, to the owner of the slot. Follows redirections, after
    /// which nothing was run; an undo does not. After a timeout or a lost connection the outcome is unknown,
    /// and the call is not retried.
    ///
    /// `None`: nothing was run, because the slot is migrating, and some of the call's several keys are
    /// missing on either node. Keys of full buckets are missing until the whole slot has migrated.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future charges either everything or nothing.
    ///
    /// # Errors
    ///
    /// Store errors.
    pub(super) async fn call(
        &self,
        slot: u16,
        call: Call,
        deadline: Instant,
    ) -> Result<Option<Reply>, Trouble> {
        let (mut ask, mut tries_again) = (None, 0);
        for redirects in 0..=REDIRECTS_MAX {
            let (node, manner) = match ask.take() {
                Some(node) => (node, SendMode::Asking),
                None if tries_again > 0 => {
                    (self.inner.owner(slot, deadline).await?, SendMode::Alone)
                }
                None => (self.inner.owner(slot, deadline).await?, SendMode::Together),
            };
            let error = match self.inner.link(&node).call(call.clone(), manner, deadline).await {
                Ok(reply) => return Ok(Some(reply)),
                Err(error) => error,
            };
            let is_moving = matches!(error, CallError::TryAgain);
            if matches!(call.op, Op::Undo { .. }) && !is_moving {
                // An undo uses the clock of the node that charged. The clock of another node may be behind.
                return Err(self.inner.troubled(match error {
                    CallError::Trouble(trouble) => trouble,
                    _ => Trouble::new(TroubleKind::ClusterDown, "the slot has moved since"),
                }));
            }
            match error {
                CallError::Moved { slot, address } => self.inner.moved(slot, &address, &node)?,
                CallError::Ask { address, .. } => {
                    ask = Some(self.inner.ask_target(&address, &node)?);
                }
                CallError::TryAgain if tries_again > 0 && call.has_several_keys() => {
                    return Ok(None);
                }
                CallError::TryAgain => tries_again += 1,
                CallError::Trouble(trouble) => return Err(self.inner.troubled(trouble)),
                CallError::NoScript => return Err(error.into_trouble()),
            }
            self.inner.stats.redirected();
            // Nodes that redirect to each other are about to agree.
            if is_moving || redirects >= REDIRECTS_AT_ONCE {
                sleep_until((Instant::now() + pause(redirects)).min(deadline)).await;
            }
            if Instant::now() >= deadline {
                return Err(Trouble::new(TroubleKind::Timeout, "redirected for the whole budget"));
            }
        }
        Err(Trouble::new(TroubleKind::ClusterDown, "redirected too often"))
    }

    /// Status of the node in the worst state.
    pub(super) fn status(&self) -> ServerStatus {
        let map = self.inner.map.load();
        let links = map.nodes.iter().filter_map(|node| node.link.get());
        let worst = links.map(Link::status).max_by_key(|status| status.breaker);
        worst.unwrap_or_else(|| {
            let trouble = match &*self.inner.refreshed.borrow() {
                Some(Err(trouble)) => Some(Arc::new(trouble.clone())),
                _ => None,
            };
            let is_known = trouble.is_none();
            let breaker = if is_known { BreakerState::Closed } else { BreakerState::Open };
            ServerStatus { breaker, server: Arc::new("cluster".into()), trouble }
        })
    }

    /// Number of calls in the queues.
    pub(super) fn queued(&self) -> usize {
        let map = self.inner.map.load();
        map.nodes.iter().filter_map(|node| node.link.get()).map(Link::queued).sum()
    }
}

/// Pause for nodes to agree about a slot: one to five milliseconds.
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

    /// The owner of a slot. Waits only for the first map.
    async fn owner(&self, slot: u16, deadline: Instant) -> Result<Arc<Node>, Trouble> {
        if let Some(node) = self.map.load().owner(slot) {
            return Ok(node);
        }
        let mut refreshed = self.refreshed.subscribe();
        let outcome = match timeout_at(deadline, refreshed.wait_for(Option::is_some)).await {
            Ok(Ok(outcome)) => outcome.clone(),
            // The sender lives in `self`: only the timeout remains.
            _ => return Err(Trouble::new(TroubleKind::Timeout, "the cluster is not known yet")),
        };
        if let Some(node) = self.map.load().owner(slot) {
            return Ok(node);
        }
        self.refresh_wanted.notify_one();
        Err(match outcome {
            Some(Err(trouble)) => trouble,
            _ => Trouble::new(TroubleKind::ClusterDown, format!("no node has slot {slot}")),
        })
    }

    /// Records the new owner of a slot.
    fn moved(&self, slot: u16, address: &str, from: &Node) -> Result<(), Trouble> {
        let address = redirected(address, from)?;
        self.refresh_wanted.notify_one();
        self.map.rcu(|map| match map.owner(slot) {
            // Many calls learn this concurrently: the map is copied for the first of them.
            Some(owner) if owner.address == address => Arc::clone(map),
            _ => Arc::new(map.with_owner(slot, &address)),
        });
        Ok(())
    }

    /// The node of an `ASK` redirection.
    fn ask_target(&self, address: &str, from: &Node) -> Result<Arc<Node>, Trouble> {
        let address = redirected(address, from)?;
        let known = self.map.load().node(&address);
        let node = known.or_else(|| {
            // A node without slots so far: it is added to the map, so that its link is kept.
            self.map.rcu(|map| Arc::new(map.with_node(&address)));
            self.map.load().node(&address)
        });
        let node = node.ok_or_else(too_many)?;
        *node.ask_at.lock() = Some(Instant::now());
        Ok(node)
    }

    /// Requests a refresh if the error is one that another node might not have.
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
            self.refresh_wanted.notify_one();
        }
        trouble
    }

    async fn refresh_always(self: Arc<Self>) {
        let mut turn = 0_usize;
        loop {
            let outcome = self.refresh(turn).await;
            turn = turn.wrapping_add(1);
            if let Err(trouble) = &outcome {
                self.log_refresh_error(trouble);
            }
            let has_failed = outcome.is_err();
            self.refreshed.send_replace(Some(outcome));
            sleep(REFRESH_PAUSE).await;
            let rest = if has_failed { REFRESH_PAUSE } else { REFRESH_EVERY - REFRESH_PAUSE };
            // A request and the interval have the same effect.
            let _ = timeout(rest, self.refresh_wanted.notified()).await;
        }
    }

    /// Logs that no node reports its slots, unless the previous error had the same kind.
    fn log_refresh_error(&self, trouble: &Trouble) {
        let kind = trouble.kind();
        let is_logged = match &*self.refreshed.borrow() {
            Some(Err(last)) => last.kind() == kind,
            _ => false,
        };
        if !is_logged {
            tracing::warn!(%kind, detail = trouble.detail(), "no node of the cluster reports its slots");
        }
    }

    /// Asks nodes in turn until one returns the map of a healthy cluster; else uses the best map it got.
    async fn refresh(&self, turn: usize) -> Result<(), Trouble> {
        let mut trouble = Trouble::new(TroubleKind::Connection, "no node to ask");
        let mut doubtful = None;
        for address in self.candidates(turn) {
            match fetch_slots(&self.settings, &address).await {
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
        // A partitioned node returns an outdated map: better than none, worse than the current one.
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

    /// Nodes to ask, in order: healthy masters, starting with another one each time, then all others, the
    /// seeds last.
    fn candidates(&self, turn: usize) -> Vec<Address> {
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
    Address::redirected(address, &from.address)
        .ok_or_else(|| Trouble::new(TroubleKind::Unexpected, "redirection to an invalid address"))
}

fn too_many() -> Trouble {
    Trouble::new(TroubleKind::Unexpected, format!("more than {NODES_MAX} nodes"))
}

#[cfg(test)]
mod tests;
