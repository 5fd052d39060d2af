//! The store itself: what is asked of Redis, and what is answered without it.

use std::fmt;
use std::sync::Arc;

use futures_util::future::join_all;
use smallvec::SmallVec;
use tokio::time::Instant;
use tollgate_core::{Decision, Quota};

use super::breaker::BreakerState;
use super::builder::RedisStoreBuilder;
use super::call::{Call, Op, Part, Parts};
use super::decide::figures;
use super::deny_cache::{DenyCache, Ticket};
use super::groups::{Answered, Group, Groups, split};
use super::key::RedisKey;
use super::local::Local;
use super::settings::Settings;
use super::stats::{RedisStats, Stats};
use super::topology::Nodes;
use super::trouble::{Trouble, TroubleKind};
use super::url::{RedisUrl, RedisUrlError};
use crate::clock::SystemClock;
use crate::rules::Mode;
use crate::store::memory::MemoryStats;
use crate::store::{Charge, Charged, Decisions, Space, Store, is_granted, sealed};

/// Buckets in Redis or Valkey: one server, a master that sentinels know, or a cluster.
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
/// undone.
///
/// # When Redis is in trouble
///
/// A charge never fails and never waits longer than the [budget](RedisStoreBuilder::budget). What Redis did
/// not answer in time is answered by each bucket's [`OnError`](crate::OnError), and the answer says so.
/// What was sent and not answered counts as spent: it is never sent twice.
///
/// # Cancel safety
///
/// Dropping a charge before it is done charges everything or nothing in a slot; a cluster's other slots
/// are not undone then.
///
/// # Panics
///
/// Never.
pub struct RedisStore {
    shared: Arc<Shared>,
    local: Local,
}

/// What undoing needs beyond the charge it belongs to.
struct Shared {
    nodes: Nodes,
    denied: DenyCache<SystemClock>,
    settings: Arc<Settings>,
}

/// How a Redis store fares now.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RedisHealth {
    /// The state of the breaker; of a cluster, the worst.
    pub breaker: BreakerState,
    /// The server it is about.
    pub server: String,
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
        let (breaker, server) = self.shared.nodes.breaker_state();
        let denied = self.shared.denied.stats();
        RedisHealth {
            breaker,
            server: server.to_string(),
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
        let reply = self.shared.nodes.call(group.charge(), self.deadline()).await;
        match reply.and_then(|reply| group.read(reply)) {
            Ok(Answered { reply, decisions }) => {
                self.shared.denied.insert(ticket, &group.parts, &reply, &decisions);
                let mut all = unanswered(charges);
                group.spread(&decisions, &mut all);
                Charged { decisions: all.into_iter().flatten().collect(), degraded: false }
            }
            Err(_) => Charged { decisions: self.local.charge(charges), degraded: true },
        }
    }

    /// Charges buckets of several slots: each slot decides in the same round trip, and if one denies, or a
    /// policy that answers for one, the others are undone.
    async fn charge_groups(
        &self,
        charges: &[Charge<'_, RedisKey>],
        groups: &Groups,
        ticket: Ticket,
    ) -> Charged {
        let deadline = self.deadline();
        let calls = groups.iter().map(|group| async move {
            let reply = self.shared.nodes.call(group.charge(), deadline).await?;
            group.read(reply)
        });
        let mut answers = join_all(calls).await;

        let mut all = unanswered(charges);
        let is_denied = answers.iter().flatten().any(|answered| !answered.reply.done);
        let (degraded, is_refused) =
            self.answer_for_silent(charges, groups, &answers, is_denied, &mut all);
        if is_denied || is_refused {
            self.undo(groups, &mut answers);
        }
        if is_denied {
            self.remember(groups, &answers, ticket);
        }
        for (group, answered) in groups.iter().zip(answers.iter()) {
            if let Ok(answered) = answered {
                group.spread(&answered.decisions, &mut all);
            }
        }
        Charged { decisions: all.into_iter().flatten().collect(), degraded }
    }

    /// Answers by policy for the groups that Redis did not answer for. Says whether there were any, and
    /// whether their policies deny the whole.
    fn answer_for_silent(
        &self,
        charges: &[Charge<'_, RedisKey>],
        groups: &Groups,
        answers: &[Result<Answered, Trouble>],
        is_denied: bool,
        all: &mut [Option<Decision>],
    ) -> (bool, bool) {
        let silent = || groups.iter().zip(answers).filter(|(_, answer)| answer.is_err());
        let theirs: SmallVec<[Charge<'_, RedisKey>; 4]> =
            silent().flat_map(|(group, _)| group.charges(charges)).collect();
        if theirs.is_empty() {
            return (false, false);
        }
        let mut decisions = self.local.charge(&theirs);
        let is_refused = !is_granted(&theirs, &decisions);
        if is_denied {
            self.local.refund(&theirs, &mut decisions);
        }
        let mut rest = decisions.as_slice();
        for (group, _) in silent() {
            let (own, others) = rest.split_at(group.charges(charges).len().min(rest.len()));
            group.spread_each(own, all);
            rest = others;
        }
        (true, is_refused)
    }

    /// Takes back what was granted in some slots of a charge that is denied. Nobody waits for it.
    fn undo(&self, groups: &Groups, answers: &mut [Result<Answered, Trouble>]) {
        let granted = groups.iter().zip(answers).filter_map(|(group, answer)| {
            answer.as_mut().ok().filter(|answered| answered.reply.done).map(|it| (group, it))
        });
        let calls: Vec<Call> = granted.flat_map(|(group, it)| group.undo(it)).collect();
        if calls.is_empty() {
            return;
        }
        let (shared, deadline) = (Arc::clone(&self.shared), self.deadline());
        tokio::spawn(async move {
            join_all(calls.into_iter().map(|call| shared.undo(call, deadline))).await;
        });
    }

    /// Remembers the denials, each with the last figures of the tiers that did not deny.
    fn remember(&self, groups: &Groups, answers: &[Result<Answered, Trouble>], ticket: Ticket) {
        let answered = || {
            let both = groups.iter().zip(answers).enumerate();
            both.filter_map(|(number, (group, answer))| {
                Some((number, group, answer.as_ref().ok()?))
            })
        };
        for (denying, group, answer) in answered().filter(|(_, _, answer)| !answer.reply.done) {
            let (mut parts, mut reply) = (group.parts.clone(), answer.reply.clone());
            let mut decisions = answer.decisions.clone();
            for (_, group, answer) in answered().filter(|(number, _, _)| *number != denying) {
                let each = group.parts.iter().zip(&answer.reply.seen).zip(&answer.decisions);
                for ((part, seen), decision) in each.filter(|(_, decision)| decision.is_granted()) {
                    parts.push(part.clone());
                    reply.seen.push(*seen);
                    decisions.push(*decision);
                }
            }
            self.shared.denied.insert(ticket, &parts, &reply, &decisions);
        }
    }
}

impl Shared {
    async fn undo(&self, call: Call, deadline: Instant) {
        let key = call.parts.first().map(|part| part.key.clone());
        if self.nodes.call(call, deadline).await.is_err() {
            self.nodes.counters().undo_lost();
        }
        if let Some(key) = key {
            self.denied.forget(&key);
        }
    }
}

/// One part, to be given back or forgotten.
fn lone(key: &RedisKey, quota: Quota, amount: u64) -> Parts {
    Parts::from_iter([Part { key: key.clone(), quota, cost: amount, mode: Mode::Enforce }])
}

/// Forgetting needs no quota, so that any will do.
fn no_quota() -> Result<Quota, Trouble> {
    Quota::per_second(1).map_err(|error| Trouble::new(TroubleKind::Unexpected, error.to_string()))
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
            _ => self.charge_groups(charges, &groups, ticket).await,
        })
    }

    async fn refund(
        &self,
        key: &RedisKey,
        quota: &Quota,
        amount: u64,
    ) -> Result<Decision, Trouble> {
        let _forget = Forget { denied: &self.shared.denied, key };
        let parts = lone(key, *quota, amount);
        let call = Call { op: Op::Refund, parts: parts.clone() };
        let reply = self.shared.nodes.call(call, self.deadline()).await?;
        figures(&parts[0], &reply)
    }

    async fn reset(&self, key: &RedisKey) -> Result<bool, Trouble> {
        let _forget = Forget { denied: &self.shared.denied, key };
        let was_local = self.local.reset(key);
        let call = Call { op: Op::Reset, parts: lone(key, no_quota()?, 0) };
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
