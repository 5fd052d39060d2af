//! The store that the settings ask for: opened, looked after, and described.

use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

use sluicegate::{
    AnyStore, BreakerState, MemoryStats, MemoryStore, RedisStartError, RedisStore, SettingsError,
    TroubleKind, Unfit,
};
use thiserror::Error;
use tokio::time::{MissedTickBehavior, interval, timeout};
use tracing::warn;

use crate::config::Store;

/// The first look at Redis takes no longer than this, however many servers the URL names.
const PROBE_MAX: Duration = Duration::from_secs(2);

/// How often the buckets of this process are swept of those that are full again, and how many each time:
/// a million buckets in half a minute, some fifty microseconds at a time.
const SWEEP_EVERY: Duration = Duration::from_millis(250);
const SWEEP_SLOTS: usize = 16 * 1024;

/// Error that keeps the service from using its store.
#[derive(Debug, Error)]
pub enum StoreError {
    /// The settings of the store contradict each other.
    #[error("cannot use the settings of the store: {0}")]
    Settings(#[from] SettingsError),
    /// The server answers, but cannot be used: wrong credentials, an old version, an unsafe eviction policy.
    #[error("cannot use the store {url}: {source}")]
    Start {
        /// Address of the server, without a password.
        url: String,
        /// Reason given by the library.
        source: RedisStartError,
    },
}

/// Opens the store. A Redis that cannot be reached now is waited for while serving; one that will never do
/// is an error.
pub(crate) async fn open(config: &Store) -> Result<AnyStore, StoreError> {
    let Some(builder) = config.redis() else {
        let store = MemoryStore::builder().max_buckets(config.max_buckets).on_full(config.on_full);
        return Ok(store.build().into());
    };
    let store = builder.build()?;
    probe(&store, &config.url.to_string()).await?;
    Ok(store.into())
}

async fn probe(store: &RedisStore, url: &str) -> Result<(), StoreError> {
    match timeout(PROBE_MAX, Box::pin(store.probe())).await {
        // Warnings are told by the store itself, for every server that it meets.
        Ok(Ok(_)) => Ok(()),
        Ok(Err(trouble)) if trouble.is_passing() => {
            warn!(store = url, %trouble, "{WITHOUT}");
            Ok(())
        }
        Ok(Err(source)) => Err(StoreError::Start { url: url.into(), source }),
        Err(_) => {
            warn!(store = url, trouble = "no answer", "{WITHOUT}");
            Ok(())
        }
    }
}

const WITHOUT: &str =
    "the store cannot be reached: starting without it, each rule's on_error answers";

/// What to do about a store that cannot be used, for people.
pub(crate) fn help(error: &StoreError) -> &'static str {
    let StoreError::Start { source, .. } = error else { return "" };
    match source {
        RedisStartError::Trouble(trouble) => match trouble.kind() {
            TroubleKind::Auth => {
                "put the right user and password into SLUICEGATE_STORE_URL, or into a file that \
                 SLUICEGATE_STORE_URL_FILE names, and see what the user may do"
            }
            TroubleKind::Tls => {
                "see store.tls_ca, store.tls_certificate and store.tls_key, and whether the host in \
                 store.url is the one that the server's certificate names"
            }
            _ => "see whether store.url leads to a Redis or Valkey server",
        },
        RedisStartError::Unfit(Unfit::TooOld { .. }) => "use Redis 6.2 or later, or Valkey",
        RedisStartError::Unfit(Unfit::Evicts { .. }) => {
            "or set store.on_eviction to warn, if some requests too many do no harm"
        }
        _ => "",
    }
}

/// Forgets full buckets now and then, for when no new keys come to do it. Ends never.
pub(crate) async fn sweep(store: Arc<AnyStore>) {
    let mut ticks = interval(SWEEP_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        if local_stats(&store).buckets == 0 {
            continue;
        }
        match &*store {
            AnyStore::Memory(store) => store.sweep(SWEEP_SLOTS),
            AnyStore::Redis(store) => store.sweep(SWEEP_SLOTS),
        }
    }
}

/// Figures of the buckets in this process; with Redis, of those that stand in for it.
pub(crate) fn local_stats(store: &AnyStore) -> MemoryStats {
    match store {
        AnyStore::Memory(store) => store.stats(),
        AnyStore::Redis(store) => store.health().local,
    }
}

/// Does something else answer in the place of the store?
pub(crate) fn is_in_trouble(store: &AnyStore) -> bool {
    store.redis().is_some_and(|redis| redis.health().breaker != BreakerState::Closed)
}

/// What to know about the store, for people; nothing of one in memory.
pub(crate) fn note(store: &AnyStore) -> Option<String> {
    let health = store.redis()?.health();
    let state = match health.breaker {
        BreakerState::Closed => "breaker closed",
        BreakerState::HalfOpen => "breaker half-open, answering by on_error",
        BreakerState::Open => "breaker open, answering by on_error",
    };
    let mut note = format!("redis {}: {state}", health.server);
    if let Some(trouble) = &health.trouble {
        // Writing to a string cannot fail.
        let _ = write!(note, "\n{trouble}");
    }
    let errors = TroubleKind::ALL.map(|kind| (kind, health.stats.errors(kind)));
    let mut separator = "\ntrouble since the start: ";
    for (kind, count) in errors.into_iter().filter(|(_, count)| *count > 0) {
        let _ = write!(note, "{separator}{kind} {count}");
        separator = ", ";
    }
    Some(note)
}
