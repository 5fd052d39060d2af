//! Topology of Redis: one server, the master of a sentinel group, or a cluster, with one interface.

use std::sync::Arc;

use tokio::time::Instant;

use super::alarm::Alarm;
use super::call::{Call, Reply};
use super::classify::CallError;
use super::cluster::Cluster;
use super::flight::SendMode;
use super::link::{Link, ServerStatus, Target};
use super::settings::Settings;
use super::stats::{RedisStats, Stats};
use super::trouble::Trouble;
use super::url::Topology;

/// Links of a topology.
#[derive(Debug)]
pub(super) struct Nodes {
    kind: Kind,
    stats: Arc<Stats>,
    alarm: Alarm,
}

#[derive(Debug)]
enum Kind {
    One(Link),
    Cluster(Cluster),
}

impl Nodes {
    /// Starts to connect, on the current tokio runtime. Never fails: without a connection, calls do.
    pub(super) fn start(settings: &Arc<Settings>, stats: Arc<Stats>) -> Self {
        let link =
            |target| Kind::One(Link::start(target, Arc::clone(settings), Arc::clone(&stats)));
        let kind = match settings.url.topology() {
            Topology::One(address) => link(Target::Node(address.clone())),
            Topology::Sentinel { sentinels, master, .. } => link(Target::Master {
                sentinels: sentinels.as_slice().into(),
                name: master.as_str().into(),
            }),
            Topology::Cluster { seeds } => {
                let (settings, stats) = (Arc::clone(settings), Arc::clone(&stats));
                Kind::Cluster(Cluster::start(seeds.clone(), settings, stats))
            }
        };
        Self { kind, stats, alarm: Alarm::new() }
    }

    /// Sends a call of one bucket, as [`call_whole`](Self::call_whole) does.
    ///
    /// # Errors
    ///
    /// Store errors, which are counted and logged.
    pub(super) async fn call(&self, call: Call, deadline: Instant) -> Result<Reply, Trouble> {
        let reply = self.call_whole(call, deadline).await?;
        reply.ok_or_else(|| CallError::TryAgain.into_trouble())
    }

    /// Sends one call. In a cluster, all its keys are in one slot. Never waits beyond the deadline. After a
    /// timeout or a lost connection the outcome is unknown.
    ///
    /// `None`: nothing was run. The slot is migrating to another node, and the call's several buckets have to
    /// be called one by one.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future charges either everything or nothing: nothing if the call was not sent yet.
    ///
    /// # Errors
    ///
    /// Store errors, which are counted and logged.
    pub(super) async fn call_whole(
        &self,
        call: Call,
        deadline: Instant,
    ) -> Result<Option<Reply>, Trouble> {
        let result = match &self.kind {
            Kind::One(link) => {
                let reply = link.call(call, SendMode::Together, deadline).await;
                reply.map(Some).map_err(CallError::into_trouble)
            }
            Kind::Cluster(cluster) => {
                let slot = call.parts.first().map_or(0, |part| part.key.slot());
                cluster.call(slot, call, deadline).await
            }
        };
        match &result {
            Ok(None) => {}
            Ok(Some(reply)) => {
                self.stats.repaired(reply.repaired);
                self.alarm.repaired(reply.repaired);
            }
            Err(trouble) => self.report(trouble),
        }
        result
    }

    /// Counts and logs an error.
    pub(super) fn report(&self, trouble: &Trouble) {
        self.stats.trouble(trouble);
        self.alarm.trouble(trouble);
    }

    /// Must the keys of one call be in one slot?
    pub(super) fn is_cluster(&self) -> bool {
        matches!(self.kind, Kind::Cluster(_))
    }

    /// Status of the server; in a cluster, of the node in the worst state.
    pub(super) fn status(&self) -> ServerStatus {
        match &self.kind {
            Kind::One(link) => link.status(),
            Kind::Cluster(cluster) => cluster.status(),
        }
    }

    /// Current figures.
    pub(super) fn stats(&self) -> RedisStats {
        let queued = match &self.kind {
            Kind::One(link) => link.queued(),
            Kind::Cluster(cluster) => cluster.queued(),
        };
        self.stats.snapshot(queued)
    }

    /// The counters.
    pub(super) fn counters(&self) -> &Stats {
        &self.stats
    }
}
