//! The configured store: opening, sweeping, description.

use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

use sluicegate::{
    AnyStore, BreakerState, RedisStartError, RedisStore, SettingsError, TroubleKind, Unfit,
};
use thiserror::Error;
use tokio::time::{MissedTickBehavior, interval, timeout};
use tracing::warn;

use crate::config::Store;

/// Timeout of the first probe of Redis, however many servers the URL names.
const PROBE_MAX: Duration = Duration::from_secs(2);

/// Interval and size of a sweep that evicts full buckets of this process: a million buckets in half
/// a minute, some fifty microseconds at a time.
const SWEEP_EVERY: Duration = Duration::from_millis(250);
const SWEEP_SLOTS: usize = 16 * 1024;

/// Error that keeps the service from using its store.
#[derive(Debug, Error)]
pub(crate) enum StoreError {
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

/// Opens the store. An unreachable Redis is retried while serving; one that cannot be used is an
/// error.
pub(crate) async fn open(config: &Store) -> Result<AnyStore, StoreError> {
    let Some(builder) = config.redis() else {
        return Ok(config.memory().into());
    };
    let store = builder.build()?;
    probe(&store, &config.url.to_string()).await?;
    Ok(store.into())
}

async fn probe(store: &RedisStore, url: &str) -> Result<(), StoreError> {
    match timeout(PROBE_MAX, Box::pin(store.probe())).await {
        // The store logs warnings itself, for every server it connects to.
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
    "cannot reach the store: starting without it, each rule's on_error policy answers";

/// Advice for a store that cannot be used.
pub(crate) fn help(error: &StoreError) -> &'static str {
    let StoreError::Start { source, .. } = error else { return "" };
    match source {
        RedisStartError::Trouble(trouble) => match trouble.kind() {
            TroubleKind::Auth => {
                "put the right user and password into SLUICEGATE_STORE_URL, or into a file that \
                 SLUICEGATE_STORE_URL_FILE names, and check the user's permissions"
            }
            TroubleKind::Tls => {
                "check store.tls_ca, store.tls_certificate and store.tls_key, and that the host in \
                 store.url is the one in the server's certificate"
            }
            _ => "check that store.url is the address of a Redis or Valkey server",
        },
        RedisStartError::Unfit(Unfit::TooOld { .. }) => "use Redis 6.2 or later, or Valkey",
        RedisStartError::Unfit(Unfit::Evicts { .. }) => {
            "or set store.on_eviction to warn, if admitting some requests too many is acceptable"
        }
        _ => "",
    }
}

/// Evicts full buckets periodically, for when no new keys cause it. Never returns.
pub(crate) async fn sweep(store: Arc<AnyStore>) {
    let mut ticks = interval(SWEEP_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        store.sweep(SWEEP_SLOTS);
    }
}

/// Returns whether a fallback answers in place of the store.
pub(crate) fn is_in_trouble(store: &AnyStore) -> bool {
    store.redis().is_some_and(|redis| redis.health().breaker != BreakerState::Closed)
}

/// Description of the store's state for `/readyz?verbose`; `None` for one in memory.
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
    let mut separator = "\nerrors since the start: ";
    for (kind, count) in errors.into_iter().filter(|(_, count)| *count > 0) {
        let _ = write!(note, "{separator}{kind} {count}");
        separator = ", ";
    }
    Some(note)
}
