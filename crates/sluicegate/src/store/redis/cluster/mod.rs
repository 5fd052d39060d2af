//! A cluster: which node has which slot, a link to each, and following slots that move.
//!
//! The map is read without a lock, and replaced as a whole. It is learned anew after anything that hints at
//! a change, at most ten times a second, and every ten seconds anyway. Until then, a `MOVED` corrects its
//! one slot.

mod map;
mod told;

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use tokio::sync::{Notify, watch};
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep, sleep_until, timeout, timeout_at};

use self::map::{Map, NODES_MAX, Node};
use self::told::{Slots, ask_slots};
use super::breaker::BreakerState;
use super::call::{Call, Op, Reply};
use super::classify::CallError;
use super::flight::Manner;
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
                CallError::TryAgain if tries_again > 0 && call.has_several_keys() => {
                    return Ok(None);
                }
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

#[cfg(test)]
mod tests;
