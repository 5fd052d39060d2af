//! Builder of a Redis store, and the check of the server at start.

use std::time::Duration;

use thiserror::Error;

use super::connect::{Connected, ServerInfo, Unfit, check, connect};
use super::sentinel::connect_master;
use super::settings::{
    BUDGET_DEFAULT, BUDGET_MAX, DENY_CACHE_MAX_DEFAULT, DENY_CACHE_MAX_LIMIT, LOCAL_SHARE_DEFAULT,
    OnEviction, PREFIX_DEFAULT, Settings, SettingsError,
};
use super::store::RedisStore;
use super::tls::TlsFiles;
use super::trouble::{Trouble, TroubleKind};
use super::url::{Address, RedisUrl, Topology};
use crate::clock::ManualClock;

/// Builds a [`RedisStore`].
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until `build` is called"]
pub struct RedisStoreBuilder {
    settings: Settings,
}

/// Error of [`RedisStore::probe`]: the server cannot be used.
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum RedisStartError {
    /// The server does not reply as expected.
    #[error(transparent)]
    Trouble(#[from] Trouble),
    /// The server cannot hold buckets.
    #[error(transparent)]
    Unfit(#[from] Unfit),
    /// The server is part of a cluster, but the URL is not `redis+cluster`.
    #[error(
        "the server is part of a cluster: the URL must begin with redis+cluster or rediss+cluster"
    )]
    IsCluster,
    /// The server is not part of a cluster, but the URL is `redis+cluster`.
    #[error("the server is not part of a cluster: the URL must not begin with redis+cluster")]
    IsNoCluster,
}

impl RedisStartError {
    /// May the error go away by itself, so that starting in degraded mode is better than not starting?
    #[must_use]
    pub fn is_passing(&self) -> bool {
        use TroubleKind::{Auth, Tls, Unexpected};
        matches!(self, Self::Trouble(trouble) if !matches!(trouble.kind(), Auth | Tls | Unexpected))
    }
}

impl RedisStoreBuilder {
    /// Default prefix of keys.
    pub const PREFIX_DEFAULT: &str = PREFIX_DEFAULT;
    /// Default maximum time that a charge waits for Redis.
    pub const BUDGET_DEFAULT: Duration = BUDGET_DEFAULT;
    /// Upper limit of the [budget](Self::budget).
    pub const BUDGET_MAX: Duration = BUDGET_MAX;
    /// Default size of the deny cache, in entries.
    pub const DENY_CACHE_DEFAULT: usize = DENY_CACHE_MAX_DEFAULT;
    /// Upper limit of the size of the deny cache.
    pub const DENY_CACHE_MAX: usize = DENY_CACHE_MAX_LIMIT;
    /// Default share of a quota that a process grants by itself while Redis is unavailable, in percent.
    pub const LOCAL_SHARE_PERCENT_DEFAULT: u8 = LOCAL_SHARE_DEFAULT;

    pub(super) fn new(url: RedisUrl) -> Self {
        Self { settings: Settings::new(url) }
    }

    /// Sets the prefix of keys: `sg` by default. Stores with different prefixes share nothing.
    pub fn prefix(mut self, prefix: &str) -> Self {
        self.settings.prefix = prefix.into();
        self
    }

    /// Sets the files for TLS: trusted authorities, and the client certificate.
    pub fn tls(mut self, files: TlsFiles) -> Self {
        self.settings.tls = files;
        self
    }

    /// Sets the maximum time that a charge waits for Redis: 10 ms by default.
    pub fn budget(mut self, budget: Duration) -> Self {
        self.settings.budget = budget;
        self
    }

    /// Sets the policy for a server that may evict buckets before they are full.
    pub fn on_eviction(mut self, on_eviction: OnEviction) -> Self {
        self.settings.on_eviction = on_eviction;
        self
    }

    /// Sets the size of the deny cache, in denied buckets; zero switches it off.
    pub fn deny_cache_max(mut self, entries: usize) -> Self {
        self.settings.deny_cache_max = entries;
        self
    }

    /// Sets the share of a quota, in percent, that this process grants by itself while Redis is unavailable.
    pub fn local_share_percent(mut self, percent: u8) -> Self {
        self.settings.local_share_percent = percent;
        self
    }

    /// Sets the maximum of buckets that this process keeps by itself while Redis is unavailable.
    pub fn local_max_buckets(mut self, buckets: usize) -> Self {
        self.settings.local_max_buckets = buckets;
        self
    }

    /// Sets the maximum of these buckets that may be without a rule. A quarter by default.
    pub fn local_take_buckets_max(mut self, buckets: usize) -> Self {
        self.settings.local_take_buckets_max = Some(buckets);
        self
    }

    #[doc(hidden)]
    /// Replaces the server's clock: for tests and replay only. Keys still expire by the server's clock, so
    /// this one must not be behind it.
    pub fn clock(mut self, clock: ManualClock) -> Self {
        self.settings.clock = Some(clock);
        self
    }

    /// Checks the settings as [`build`](Self::build) does, without building anything.
    ///
    /// # Errors
    ///
    /// Invalid settings.
    pub fn check(&self) -> Result<(), SettingsError> {
        self.settings.check()
    }

    /// Builds the store. It connects asynchronously and reconnects for ever; [`RedisStore::probe`]
    /// tests a connection.
    ///
    /// # Errors
    ///
    /// Invalid settings.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime.
    pub fn build(self) -> Result<RedisStore, SettingsError> {
        self.settings.check()?;
        Ok(RedisStore::start(self.settings))
    }
}

impl From<RedisUrl> for RedisStoreBuilder {
    fn from(url: RedisUrl) -> Self {
        Self::new(url)
    }
}

impl RedisStore {
    /// Tests over a separate connection whether the server can be reached and used. Returns warnings for
    /// operators.
    ///
    /// # Errors
    ///
    /// The server cannot be used; [some](RedisStartError::is_passing) errors may go away by themselves.
    pub async fn probe(&self) -> Result<Vec<String>, RedisStartError> {
        let settings = self.settings();
        let (connected, is_cluster) = match settings.url.topology() {
            Topology::One(address) => (connect(settings, address).await?, false),
            Topology::Sentinel { sentinels, master, .. } => {
                let (_, connected) = connect_master(settings, sentinels, master).await?;
                (connected, false)
            }
            Topology::Cluster { seeds } => (connect_any(settings, seeds).await?, true),
        };
        fitness(&connected.server, is_cluster, settings.on_eviction)
    }
}

/// Checks that a server can be used, as a member of a cluster or not. Returns warnings for operators.
pub(super) fn fitness(
    server: &ServerInfo,
    is_member: bool,
    on_eviction: OnEviction,
) -> Result<Vec<String>, RedisStartError> {
    match (server.is_cluster, is_member) {
        (true, false) => Err(RedisStartError::IsCluster),
        (false, true) => Err(RedisStartError::IsNoCluster),
        _ => Ok(check(server, on_eviction)?),
    }
}

/// Connects to the first server that can be reached; the error is that of the last.
async fn connect_any(settings: &Settings, seeds: &[Address]) -> Result<Connected, Trouble> {
    let mut trouble = Trouble::new(TroubleKind::Connection, "there is no server to connect to");
    for seed in seeds {
        match connect(settings, seed).await {
            Ok(connected) => return Ok(connected),
            Err(error) => trouble = error,
        }
    }
    Err(trouble)
}
