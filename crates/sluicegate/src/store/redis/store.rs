//! The Redis store: deny cache, calls to Redis, and policies.

use std::sync::Arc;
use std::{fmt, slice};

use futures_util::future::join_all;
use sluicegate_core::Decision;
use smallvec::SmallVec;
use tokio::time::Instant;

use super::breaker::BreakerState;
use super::builder::RedisStoreBuilder;
use super::call::{Call, Op, Parts};
use super::decide::figures;
use super::deny_cache::{DenyCache, Ticket};
use super::groups::{Group, GroupReply, Groups, split};
use super::key::RedisKey;
use super::local::Local;
use super::settings::Settings;
use super::slots::SlotReplies;
use super::stats::{RedisStats, Stats};
use super::topology::Nodes;
use super::trouble::{Trouble, TroubleKind};
use super::url::{RedisUrl, RedisUrlError};
use crate::clock::SystemClock;
use crate::rules::RuleSet;
use crate::store::memory::{MemoryStats, ReservedRoom, RoomOwner};
use crate::store::{Charge, Charged, Decisions, Space, Store, is_granted, sealed};

/// Buckets in Redis or Valkey: one server, the master of a sentinel group, or a cluster.
///
/// ```no_run
/// use sluicegate::{Limiter, RedisStore, Request, RuleSet};
///
/// # async fn example(rules: RuleSet) -> Result<(), Box<dyn std::error::Error>> {
/// let store = RedisStore::builder("redis://127.0.0.1:6379")?.build()?;
/// let limiter = Limiter::new(store, rules);
/// let verdict = limiter.check(&Request::new().user_id("42")).await?;
/// # Ok(())
/// # }
/// ```
///
/// One script call charges all buckets or none, by the server's own clock, so that any number of processes
/// share exact limits. Charges that arrive while a call is in flight are sent as one; a single charge is sent
/// at once.
///
/// # Clusters
///
/// Buckets of one subject share a slot, and are charged in one step. If a charge has buckets in several
/// slots, each slot decides by itself in the same round trip, and if one denies, the others are undone. That
/// never admits more than one step would; it may deny because of a charge that was not undone yet. While a
/// slot migrates to another node, its buckets may have to be charged one by one in the same way.
///
/// # When Redis is unavailable
///
/// A charge never fails and never waits longer than the [budget](RedisStoreBuilder::budget). Without a reply
/// in time, each bucket's [`OnError`](crate::OnError) decides, and the result is marked as degraded. A call
/// that was sent without a reply counts as spent: it is never sent twice.
///
/// # Cancel safety
///
/// Dropping a charge before it resolves charges everything or nothing.
///
/// # Panics
///
/// Outside of a tokio runtime.
pub struct RedisStore {
    shared: Arc<Shared>,
    local: Local,
}

/// State that outlives a charge: calls to a cluster's slots, and undos.
pub(super) struct Shared {
    pub(super) nodes: Nodes,
    pub(super) denied: DenyCache<SystemClock>,
    pub(super) settings: Arc<Settings>,
}

/// Health of a Redis store.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RedisHealth {
    /// State of the breaker; in a cluster, the worst of all nodes.
    pub breaker: BreakerState,
    /// Name of the server that the breaker belongs to.
    pub server: String,
    /// Reason why calls are refused; `None` if they are not.
    pub trouble: Option<String>,
    /// Counters since the store was built.
    pub stats: RedisStats,
    /// Entries in the deny cache.
    pub denied_entries: usize,
    /// Charges that were answered from the deny cache.
    pub denied_hits: u64,
    /// Figures of the local buckets, which are used while Redis is unavailable.
    pub local: MemoryStats,
}

impl RedisStore {
    /// A builder of a store for the Redis at this URL:
    ///
    /// - `redis://user:password@host:6379/0`, `rediss://...` with TLS, `unix:/run/redis.sock`
    /// - `redis+sentinel://host:26379,host:26379/mymaster`
    /// - `redis+cluster://host:6379,host:6379`
    ///
    /// # Errors
    ///
    /// An invalid URL.
    pub fn builder(url: &str) -> Result<RedisStoreBuilder, RedisUrlError> {
        Ok(RedisStoreBuilder::new(url.parse::<RedisUrl>()?))
    }

    pub(super) fn start(settings: Settings) -> Self {
        let settings = Arc::new(settings);
        let local = Local::new(&settings);
        let nodes = Nodes::start(&settings, Arc::new(Stats::default()));
        let denied = DenyCache::new(settings.deny_cache_max, SystemClock::new());
        Self { shared: Arc::new(Shared { nodes, denied, settings }), local }
    }

    /// Current health.
    #[must_use]
    pub fn health(&self) -> RedisHealth {
        let status = self.shared.nodes.status();
        let denied = self.shared.denied.stats();
        RedisHealth {
            breaker: status.breaker,
            server: status.server.to_string(),
            trouble: status.trouble.map(|trouble| trouble.detail().to_owned()),
            stats: self.shared.nodes.stats(),
            denied_entries: denied.entries,
            denied_hits: denied.hits,
            local: self.local.stats(),
        }
    }

    /// Visits this many slots of the local buckets, which are used while Redis is unavailable, and evicts
    /// those that are full again, as [`MemoryStore::sweep`](crate::MemoryStore::sweep) does.
    pub fn sweep(&self, slots: usize) {
        self.local.sweep(slots);
    }

    /// Charges that found no room in the local buckets, by the keys that needed it, as
    /// [`MemoryStore::overflows`](crate::MemoryStore::overflows).
    pub fn overflows(&self) -> Vec<(RoomOwner, u64)> {
        self.local.overflows()
    }

    pub(super) fn settings(&self) -> &Settings {
        &self.shared.settings
    }

    fn deadline(&self) -> Instant {
        Instant::now() + self.shared.settings.budget
    }

    /// Charges buckets of one slot, or of a server without slots.
    async fn charge_group(
        &self,
        charges: &[Charge<'_, RedisKey>],
        group: &Group,
        ticket: Ticket,
    ) -> Charged {
        let deadline = self.deadline();
        let reply = match self.shared.nodes.call_whole(group.charge(), deadline).await {
            Ok(None) => return self.charge_groups(charges, group.apart(), ticket, deadline).await,
            Ok(Some(reply)) => {
                group.read(reply).inspect_err(|trouble| self.shared.nodes.report(trouble))
            }
            Err(trouble) => Err(trouble),
        };
        match reply {
            Ok(GroupReply { reply, decisions }) => {
                self.shared.denied.insert(ticket, &group.parts, &reply, &decisions);
                let mut all = unanswered(charges);
                group.spread(&decisions, &mut all);
                Charged { decisions: all.into_iter().flatten().collect(), degraded: false }
            }
            Err(_) => Charged { decisions: self.local.charge(charges), degraded: true },
        }
    }

    /// Refunds the buckets of one slot, or of a server without slots. While the slot migrates, one by one.
    async fn refund_group(&self, group: &Group, deadline: Instant) -> Result<Decisions, Trouble> {
        let nodes = &self.shared.nodes;
        if let Some(reply) = nodes.call_whole(group.refund(), deadline).await? {
            return figures(&group.parts, &reply);
        }
        let mut decisions = Decisions::new();
        for part in &group.parts {
            let call = Call { op: Op::Refund, parts: Parts::from_iter([part.clone()]) };
            let reply = nodes.call(call, deadline).await?;
            decisions.extend(figures(slice::from_ref(part), &reply)?);
        }
        Ok(decisions)
    }

    /// Charges buckets of several slots: if one denies, or the policy of one without a reply, nothing is
    /// charged.
    async fn charge_groups(
        &self,
        charges: &[Charge<'_, RedisKey>],
        groups: Groups,
        ticket: Ticket,
        deadline: Instant,
    ) -> Charged {
        let Ok(mut replies) = SlotReplies::ask(&self.shared, groups, deadline).await else {
            return Charged { decisions: self.local.charge(charges), degraded: true };
        };
        let mut all = unanswered(charges);
        let is_denied = replies.is_denied();
        let (degraded, is_refused) = self.answer_for_silent(charges, &replies, is_denied, &mut all);
        replies.settle(!is_denied && !is_refused);
        if is_denied {
            replies.remember(ticket);
        }
        for (group, answered) in replies.answered() {
            group.spread(&answered.decisions, &mut all);
        }
        Charged { decisions: all.into_iter().flatten().collect(), degraded }
    }

    /// Decides by policy for the groups without a reply. Returns whether there were any, and whether their
    /// policies deny the charge.
    fn answer_for_silent(
        &self,
        charges: &[Charge<'_, RedisKey>],
        replies: &SlotReplies,
        is_denied: bool,
        all: &mut [Option<Decision>],
    ) -> (bool, bool) {
        let theirs: SmallVec<[Charge<'_, RedisKey>; 4]> =
            replies.silent().flat_map(|group| group.charges(charges)).collect();
        if theirs.is_empty() {
            return (false, false);
        }
        let mut decisions = self.local.charge(&theirs);
        let is_refused = !is_granted(&theirs, &decisions);
        if is_denied {
            self.local.refund(&theirs, &mut decisions);
        }
        let mut rest = decisions.as_slice();
        for group in replies.silent() {
            let (own, others) = rest.split_at(group.len().min(rest.len()));
            group.spread_each(own, all);
            rest = others;
        }
        (true, is_refused)
    }
}

impl Shared {
    /// Undoes a charge, or counts a failure to do so.
    pub(super) async fn undo(&self, call: Call, deadline: Instant) {
        let key = call.parts.first().map(|part| part.key.clone());
        let is_undone = self.nodes.call(call, deadline).await.is_ok_and(|reply| reply.done);
        if !is_undone {
            self.nodes.counters().undo_lost();
        }
        if let Some(key) = key {
            self.denied.forget(&key);
        }
    }
}

fn unanswered(charges: &[Charge<'_, RedisKey>]) -> SmallVec<[Option<Decision>; 4]> {
    SmallVec::from_elem(None, charges.len())
}

/// Removes the entries of buckets from the deny cache when a call begins, so that charges sent after it on the same
/// connection are not answered from before it; and again when it ends, also if it is cancelled.
struct Forget<'a> {
    denied: &'a DenyCache<SystemClock>,
    keys: SmallVec<[&'a RedisKey; 4]>,
}

impl<'a> Forget<'a> {
    fn new(denied: &'a DenyCache<SystemClock>, keys: SmallVec<[&'a RedisKey; 4]>) -> Self {
        let forget = Self { denied, keys };
        forget.now();
        forget
    }

    fn now(&self) {
        for key in &self.keys {
            self.denied.forget(key);
        }
    }
}

impl Drop for Forget<'_> {
    fn drop(&mut self) {
        self.now();
    }
}

impl sealed::Sealed for RedisStore {}

impl Store for RedisStore {
    type Key = RedisKey;
    type Error = Trouble;

    fn key(&self, space: Space<'_>, parts: &[&[u8]]) -> RedisKey {
        RedisKey::new(&self.shared.settings.prefix, space, parts)
    }

    fn reserve_room(&self, rules: &RuleSet) -> ReservedRoom {
        self.local.reserve_room(rules)
    }

    async fn charge(&self, charges: &[Charge<'_, RedisKey>]) -> Result<Charged, Trouble> {
        if charges.is_empty() {
            return Ok(Charged { decisions: Decisions::new(), degraded: false });
        }
        if let Some(decisions) = self.shared.denied.answer(charges) {
            return Ok(Charged { decisions, degraded: false });
        }
        let ticket = self.shared.denied.ticket();
        let groups = split(charges, self.shared.nodes.is_cluster());
        Ok(match groups.as_slice() {
            [group] => self.charge_group(charges, group, ticket).await,
            _ => self.charge_groups(charges, groups, ticket, self.deadline()).await,
        })
    }

    async fn refund_many(&self, credits: &[Charge<'_, RedisKey>]) -> Result<Decisions, Trouble> {
        let keys = credits.iter().map(|credit| credit.key).collect();
        let _forget = Forget::new(&self.shared.denied, keys);
        let (groups, deadline) = (split(credits, self.shared.nodes.is_cluster()), self.deadline());
        let calls = groups.iter().map(|group| self.refund_group(group, deadline));
        let mut all = unanswered(credits);
        for (group, decisions) in groups.iter().zip(join_all(calls).await) {
            group.spread(&decisions?, &mut all);
        }
        Ok(all.into_iter().flatten().collect())
    }

    async fn reset(&self, key: &RedisKey) -> Result<bool, Trouble> {
        let _forget = Forget::new(&self.shared.denied, SmallVec::from_iter([key]));
        let was_local = self.local.reset(key);
        let call = Call::forget(key.clone())
            .map_err(|error| Trouble::new(TroubleKind::Unexpected, error.to_string()))?;
        let reply = self.shared.nodes.call(call, self.deadline()).await?;
        Ok(reply.done || was_local)
    }
}

impl fmt::Debug for RedisStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisStore")
            .field("url", &self.shared.settings.url)
            .field("health", &self.health())
            .finish_non_exhaustive()
    }
}
