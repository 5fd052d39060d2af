//! Choices for a Redis store, and a first look at the server.

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
#[must_use = "a builder does nothing until it is asked to build"]
pub struct RedisStoreBuilder {
    settings: Settings,
}

/// Why a server cannot be used.
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum StartError {
    /// It does not answer as it should.
    #[error(transparent)]
    Trouble(#[from] Trouble),
    /// It cannot keep buckets.
    #[error(transparent)]
    Unfit(#[from] Unfit),
    /// It is part of a cluster, and the URL says otherwise.
    #[error(
        "the server is part of a cluster: the URL must begin with redis+cluster or rediss+cluster"
    )]
    IsCluster,
    /// It is not part of a cluster, and the URL says otherwise.
    #[error("the server is not part of a cluster: the URL must not begin with redis+cluster")]
    IsNoCluster,
}

impl StartError {
    /// May it go away by itself, so that starting without Redis is better than not starting?
    #[must_use]
    pub fn is_passing(&self) -> bool {
        use TroubleKind::{Auth, Tls, Unexpected};
        matches!(self, Self::Trouble(trouble) if !matches!(trouble.kind(), Auth | Tls | Unexpected))
    }
}

impl RedisStoreBuilder {
    /// What keys begin with, unless told otherwise.
    pub const PREFIX_DEFAULT: &str = PREFIX_DEFAULT;
    /// How long a charge waits for Redis, unless told otherwise.
    pub const BUDGET_DEFAULT: Duration = BUDGET_DEFAULT;
    /// The longest that it can be told to.
    pub const BUDGET_MAX: Duration = BUDGET_MAX;
    /// How many denied buckets are remembered, unless told otherwise.
    pub const DENY_CACHE_DEFAULT: usize = DENY_CACHE_MAX_DEFAULT;
    /// The most that can be.
    pub const DENY_CACHE_MAX: usize = DENY_CACHE_MAX_LIMIT;
    /// The share of a quota that a process grants by itself, in percent, unless told otherwise.
    pub const LOCAL_SHARE_PERCENT_DEFAULT: u8 = LOCAL_SHARE_DEFAULT;

    pub(super) fn new(url: RedisUrl) -> Self {
        Self { settings: Settings::new(url) }
    }

    /// What keys begin with: `sg` by default. Stores with different prefixes share nothing.
    pub fn prefix(mut self, prefix: &str) -> Self {
        self.settings.prefix = prefix.into();
        self
    }

    /// Files for TLS: whom to trust, and who we are.
    pub fn tls(mut self, files: TlsFiles) -> Self {
        self.settings.tls = files;
        self
    }

    /// How long a charge waits for Redis at most: 10 ms by default.
    pub fn budget(mut self, budget: Duration) -> Self {
        self.settings.budget = budget;
        self
    }

    /// What to do about a server that may forget buckets before they are full.
    pub fn on_eviction(mut self, on_eviction: OnEviction) -> Self {
        self.settings.on_eviction = on_eviction;
        self
    }

    /// How many denied buckets are remembered, to deny again without asking; zero switches it off.
    pub fn deny_cache_max(mut self, entries: usize) -> Self {
        self.settings.deny_cache_max = entries;
        self
    }

    /// How much of a quota, in percent, this process grants by itself while Redis is in trouble.
    pub fn local_share_percent(mut self, percent: u8) -> Self {
        self.settings.local_share_percent = percent;
        self
    }

    /// How many buckets this process keeps by itself while Redis is in trouble.
    pub fn local_max_buckets(mut self, buckets: usize) -> Self {
        self.settings.local_max_buckets = buckets;
        self
    }

    #[doc(hidden)]
    /// Decides by this clock instead of the server's: for tests and replay only. Keys still expire by the
    /// server's own, so it must not show a time before that.
    pub fn clock(mut self, clock: ManualClock) -> Self {
        self.settings.clock = Some(clock);
        self
    }

    /// Whether it can be built: what [`build`](Self::build) would say, without building anything.
    ///
    /// # Errors
    ///
    /// Settings that cannot be used.
    pub fn check(&self) -> Result<(), SettingsError> {
        self.settings.check()
    }

    /// The store. It connects in the background, and goes on trying; [`RedisStore::probe`] says how that
    /// would end.
    ///
    /// # Errors
    ///
    /// Settings that cannot be used.
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
    /// Looks at the server over a connection of its own: whether it can be reached and used. What it
    /// answers are warnings, for people.
    ///
    /// # Errors
    ///
    /// Why not; [some](StartError::is_passing) may go away by themselves.
    pub async fn probe(&self) -> Result<Vec<String>, StartError> {
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

/// Whether a server can be used, as a member of a cluster or not: warnings, for people.
pub(super) fn fitness(
    server: &ServerInfo,
    is_member: bool,
    on_eviction: OnEviction,
) -> Result<Vec<String>, StartError> {
    match (server.is_cluster, is_member) {
        (true, false) => Err(StartError::IsCluster),
        (false, true) => Err(StartError::IsNoCluster),
        _ => Ok(check(server, on_eviction)?),
    }
}

/// Connects to the first that can be reached; the trouble is that of the last.
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
