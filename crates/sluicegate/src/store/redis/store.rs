//! The store itself: what is asked of Redis, and what is answered without it.

use std::fmt;
use std::sync::Arc;

use sluicegate_core::{Decision, Quota};
use smallvec::SmallVec;
use tokio::time::Instant;

use super::breaker::BreakerState;
use super::builder::RedisStoreBuilder;
use super::call::{Call, Op};
use super::decide::figures;
use super::deny_cache::{DenyCache, Ticket};
use super::groups::{Answered, Group, Groups, split};
use super::key::RedisKey;
use super::local::Local;
use super::settings::Settings;
use super::slots::Asked;
use super::stats::{RedisStats, Stats};
use super::topology::Nodes;
use super::trouble::{Trouble, TroubleKind};
use super::url::{RedisUrl, RedisUrlError};
use crate::clock::SystemClock;
use crate::store::memory::MemoryStats;
use crate::store::{Charge, Charged, Decisions, Space, Store, is_granted, sealed};

/// Buckets in Redis or Valkey: one server, a master that sentinels know, or a cluster.
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
/// One call of a script charges all buckets or none, by the server's own time, so that any number of
/// processes share exact limits. What waits while a call is on its way goes out as one; a lone charge waits
/// for nothing.
///
/// # Clusters
///
/// Buckets of one subject share a slot, and are charged in one step. Where a charge has buckets in several
/// slots, each slot decides for itself in the same round trip, and if one denies, the others are undone.
/// That never admits more than one step would; it may deny what had just been charged and was not yet
/// undone. While a slot moves to another node, its buckets may have to be charged one by one in the same way.
///
/// # When Redis is in trouble
///
/// A charge never fails and never waits longer than the [budget](RedisStoreBuilder::budget). What Redis did
/// not answer in time is answered by each bucket's [`OnError`](crate::OnError), and the answer says so.
/// What was sent and not answered counts as spent: it is never sent twice.
///
/// # Cancel safety
///
/// Dropping a charge before it is done charges everything or nothing.
///
/// # Panics
///
/// Outside of a tokio runtime.
pub struct RedisStore {
    shared: Arc<Shared>,
    local: Local,
}

/// What outlives a charge: asking a cluster's slots, and undoing.
pub(super) struct Shared {
    pub(super) nodes: Nodes,
    pub(super) denied: DenyCache<SystemClock>,
    pub(super) settings: Arc<Settings>,
}

/// How a Redis store fares now.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RedisHealth {
    /// The state of the breaker; of a cluster, the worst.
    pub breaker: BreakerState,
    /// The server it is about.
    pub server: String,
    /// Why it is not asked now, if it is not.
    pub trouble: Option<String>,
    /// The counters.
    pub stats: RedisStats,
    /// Denied buckets that are remembered.
    pub denied_entries: usize,
    /// Charges that were answered from them.
    pub denied_hits: u64,
    /// The buckets of this process that stand in while Redis is in trouble.
    pub local: MemoryStats,
}

impl RedisStore {
    /// A store in the Redis at this URL:
    ///
    /// - `redis://user:password@host:6379/0`, `rediss://...` with TLS, `unix:/run/redis.sock`
    /// - `redis+sentinel://host:26379,host:26379/mymaster`
    /// - `redis+cluster://host:6379,host:6379`
    ///
    /// # Errors
    ///
    /// What is wrong with the URL.
    pub fn builder(url: &str) -> Result<RedisStoreBuilder, RedisUrlError> {
        Ok(RedisStoreBuilder::new(url.parse::<RedisUrl>()?))
    }

    pub(super) fn start(settings: Settings) -> Self {
        let settings = Arc::new(settings);
        let local = Local::new(settings.local_max_buckets, settings.local_share_percent);
        let nodes = Nodes::start(&settings, Arc::new(Stats::default()));
        let denied = DenyCache::new(settings.deny_cache_max, SystemClock::new());
        Self { shared: Arc::new(Shared { nodes, denied, settings }), local }
    }

    /// How it fares now.
    #[must_use]
    pub fn health(&self) -> RedisHealth {
        let standing = self.shared.nodes.standing();
        let denied = self.shared.denied.stats();
        RedisHealth {
            breaker: standing.breaker,
            server: standing.server.to_string(),
            trouble: standing.trouble.map(|trouble| trouble.detail().to_owned()),
            stats: self.shared.nodes.stats(),
            denied_entries: denied.entries,
            denied_hits: denied.hits,
            local: self.local.stats(),
        }
    }

    /// Looks through so many slots of the buckets of this process that stand in while Redis is in trouble,
    /// and forgets those that are full again, as [`MemoryStore::sweep`](crate::MemoryStore::sweep) does.
    pub fn sweep(&self, slots: usize) {
        self.local.sweep(slots);
    }

    pub(super) fn settings(&self) -> &Settings {
        &self.shared.settings
    }

    fn deadline(&self) -> Instant {
        Instant::now() + self.shared.settings.budget
    }

    /// Charges buckets of one slot, or of a server that has none.
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
            Ok(Answered { reply, decisions }) => {
                self.shared.denied.insert(ticket, &group.parts, &reply, &decisions);
                let mut all = unanswered(charges);
                group.spread(&decisions, &mut all);
                Charged { decisions: all.into_iter().flatten().collect(), degraded: false }
            }
            Err(_) => Charged { decisions: self.local.charge(charges), degraded: true },
        }
    }

    /// Charges buckets of several slots: if one denies, or a policy that answers for one, nothing is charged.
    async fn charge_groups(
        &self,
        charges: &[Charge<'_, RedisKey>],
        groups: Groups,
        ticket: Ticket,
        deadline: Instant,
    ) -> Charged {
        let Ok(mut asked) = Asked::ask(&self.shared, groups, deadline).await else {
            return Charged { decisions: self.local.charge(charges), degraded: true };
        };
        let mut all = unanswered(charges);
        let is_denied = asked.is_denied();
        let (degraded, is_refused) = self.answer_for_silent(charges, &asked, is_denied, &mut all);
        asked.settle(!is_denied && !is_refused);
        if is_denied {
            asked.remember(ticket);
        }
        for (group, answered) in asked.answered() {
            group.spread(&answered.decisions, &mut all);
        }
        Charged { decisions: all.into_iter().flatten().collect(), degraded }
    }

    /// Answers by policy for the groups that Redis did not answer for. Says whether there were any, and
    /// whether their policies deny the whole.
    fn answer_for_silent(
        &self,
        charges: &[Charge<'_, RedisKey>],
        asked: &Asked,
        is_denied: bool,
        all: &mut [Option<Decision>],
    ) -> (bool, bool) {
        let theirs: SmallVec<[Charge<'_, RedisKey>; 4]> =
            asked.silent().flat_map(|group| group.charges(charges)).collect();
        if theirs.is_empty() {
            return (false, false);
        }
        let mut decisions = self.local.charge(&theirs);
        let is_refused = !is_granted(&theirs, &decisions);
        if is_denied {
            self.local.refund(&theirs, &mut decisions);
        }
        let mut rest = decisions.as_slice();
        for group in asked.silent() {
            let (own, others) = rest.split_at(group.len().min(rest.len()));
            group.spread_each(own, all);
            rest = others;
        }
        (true, is_refused)
    }
}

impl Shared {
    /// Takes a charge back, or counts that it could not.
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

/// Forgets what is known of a bucket when a call about it ends, however it ends.
struct Forget<'a> {
    denied: &'a DenyCache<SystemClock>,
    key: &'a RedisKey,
}

impl Drop for Forget<'_> {
    fn drop(&mut self) {
        self.denied.forget(self.key);
    }
}

impl sealed::Sealed for RedisStore {}

impl Store for RedisStore {
    type Key = RedisKey;
    type Error = Trouble;

    fn key(&self, space: Space<'_>, parts: &[&[u8]]) -> RedisKey {
        RedisKey::new(&self.shared.settings.prefix, space, parts)
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

    async fn refund(
        &self,
        key: &RedisKey,
        quota: &Quota,
        amount: u64,
    ) -> Result<Decision, Trouble> {
        let _forget = Forget { denied: &self.shared.denied, key };
        let call = Call::of_one(Op::Refund, key.clone(), *quota, amount);
        let reply = self.shared.nodes.call(call.clone(), self.deadline()).await?;
        figures(&call.parts[0], &reply)
    }

    async fn reset(&self, key: &RedisKey) -> Result<bool, Trouble> {
        let _forget = Forget { denied: &self.shared.denied, key };
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
