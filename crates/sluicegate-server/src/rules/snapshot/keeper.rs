//! The keeper of the rules in force.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use sluicegate::rules::Overrides;
use sluicegate::{AnyStore, Limiter, RuleSet};
use tokio::sync::{Mutex, watch};
use tokio::task::spawn_blocking;
use tokio::time::timeout;
use tracing::{error, info, warn};

use super::{Start, compose};
use crate::auth::callers::Callers;
use crate::auth::guard::Guard;
use crate::config::{Config, DatabaseUrl};
use crate::data::{
    DataError, Database, DatabaseHandle, Loaded, OverrideFilter, Page, StoredCaller,
    StoredOverride, StoredToken,
};
use crate::observe::metrics::Metrics;
use crate::observe::ready::{Check, Readiness};
use crate::observe::snapshot_status::{SharedStatus, Status};
use crate::rules::source::RulesSource;
use crate::time::Timestamp;

/// Keeps the rules in force up to date. Clones share state.
#[derive(Clone, Debug)]
pub(crate) struct Keeper {
    pub(super) inner: Arc<Inner>,
}

/// Parts of the service that follow changes.
#[derive(Clone, Debug)]
pub(crate) struct Parts {
    pub limiter: Limiter<AnyStore>,
    pub metrics: Metrics,
    pub ready: Readiness,
    pub guard: Arc<Guard>,
    pub callers: Arc<Callers>,
}

#[derive(Debug)]
pub(super) struct Inner {
    pub(super) url: Option<DatabaseUrl>,
    pub(super) timeout: Duration,
    /// Maximum number of rules that one request may meet.
    pub(super) tiers_max: usize,
    pub(super) file: Option<PathBuf>,
    /// Content of the snapshot file.
    pub(super) latest: watch::Sender<Option<Arc<Loaded>>>,
    source: RulesSource,
    parts: Parts,
    pub(super) database: DatabaseHandle,
    /// Number of requested refreshes.
    requested: AtomicU64,
    /// Held while the database is read.
    loading: Mutex<()>,
    /// Held while rules are put in force, and not while waiting for the database.
    state: Mutex<State>,
    status: SharedStatus,
}

#[derive(Debug)]
struct State {
    /// Without overrides.
    rules: RuleSet,
    overrides: Overrides,
    loaded: Option<Arc<Loaded>>,
    /// Time at which the next override expires.
    next_expiry: Option<Timestamp>,
    /// Callers that were put in force last, including expired ones; also without anything else that could be loaded.
    callers: Vec<StoredCaller>,
    /// Time at which the next caller expires.
    next_caller_expiry: Option<Timestamp>,
    /// Refreshes up to this number are done.
    done: u64,
}

/// Contents of the database besides its rules; `None` for a table that cannot be read.
struct Rest {
    overrides: Option<Vec<StoredOverride>>,
    tokens: Option<Vec<StoredToken>>,
    callers: Option<Vec<StoredCaller>>,
}

impl Parts {
    /// Puts callers in force that have not expired, and returns the time at which the next one does.
    fn set_callers(&self, callers: &[StoredCaller], now: Timestamp) -> Option<Timestamp> {
        self.callers.set(callers, now);
        self.metrics.callers.in_force.set(i64::try_from(self.callers.len()).unwrap_or(i64::MAX));
        compose::next_of(callers.iter().map(|caller| caller.expires_at), now)
    }
}

impl Keeper {
    /// Continues from the rules that the process started with, which are already in force.
    #[must_use]
    pub(crate) fn new(config: &Config, start: Start, parts: Parts) -> Self {
        let loaded = start.loaded.map(Arc::new);
        let is_from_file = start.status.from_file.is_some();
        let now = Timestamp::now();
        let next_expiry =
            loaded.as_ref().and_then(|loaded| compose::next_expiry(&loaded.overrides, now));
        // An empty list of tokens in the file does not mean that there are none now: the database
        // must be read.
        if let Some(loaded) = loaded.as_ref().filter(|l| !(is_from_file && l.tokens.is_empty())) {
            parts.guard.set_tokens(loaded.tokens.clone());
        }
        // An empty list of callers is believed, also that of the file: it never opens a door that the settings close.
        let next_caller_expiry =
            loaded.as_ref().and_then(|loaded| parts.set_callers(&loaded.callers, now));
        let callers = loaded.as_ref().map(|loaded| loaded.callers.clone()).unwrap_or_default();
        let first = loaded.clone().filter(|_| !is_from_file);
        let (rules, overrides) = (start.rules, start.overrides);
        let keeper = Self {
            inner: Arc::new(Inner {
                url: config.database.url.clone(),
                timeout: config.database.timeout,
                tiers_max: config.limits.tiers_max,
                file: config.database.snapshot.clone(),
                latest: watch::Sender::new(first),
                source: start.source,
                parts,
                database: DatabaseHandle::new(config.database.url.is_some(), start.database),
                requested: AtomicU64::new(0),
                loading: Mutex::new(()),
                state: Mutex::new(State {
                    rules,
                    overrides,
                    loaded,
                    next_expiry,
                    callers,
                    next_caller_expiry,
                    done: 0,
                }),
                status: SharedStatus::new(start.status),
            }),
        };
        keeper.notify_observers(&keeper.status());
        keeper
    }

    /// Source of the rules.
    #[must_use]
    pub(crate) fn source(&self) -> &RulesSource {
        &self.inner.source
    }

    /// Status of the rules in force.
    #[must_use]
    pub(crate) fn status(&self) -> Arc<Status> {
        self.inner.status.get()
    }

    /// Status of the rules in force, shared with observers.
    #[must_use]
    pub(crate) fn shared_status(&self) -> SharedStatus {
        self.inner.status.clone()
    }

    /// The limiter whose rules are kept up to date.
    pub(crate) fn limiter(&self) -> &Limiter<AnyStore> {
        &self.inner.parts.limiter
    }

    /// Maximum number of rules that one request may meet.
    pub(crate) fn tiers_max(&self) -> usize {
        self.inner.tiers_max
    }

    /// Handle to the database, shared with this keeper.
    #[must_use]
    pub(crate) fn database_handle(&self) -> DatabaseHandle {
        self.inner.database.clone()
    }

    /// The database.
    ///
    /// # Errors
    ///
    /// [`DataError::Unavailable`] if there is none, or it has not been reached yet.
    pub(crate) fn database(&self) -> Result<Arc<Database>, DataError> {
        self.inner.database.get()
    }

    /// Puts the database's contents in force before it returns, so that a client that changed them
    /// sees the change. If that takes longer than the timeout, it continues in its own task.
    ///
    /// # Cancel safety
    ///
    /// Continues in its own task if dropped.
    pub(crate) async fn refresh(&self) {
        let keeper = self.clone();
        let refreshing = tokio::spawn(async move { keeper.refresh_now().await });
        // Never panics; a timeout is not an error.
        let _ = timeout(self.inner.timeout, refreshing).await;
    }

    /// Loads and applies the database's contents. Concurrent calls share one load.
    pub(super) async fn refresh_now(&self) {
        let Ok(database) = self.inner.database.get() else { return };
        let number = self.inner.requested.fetch_add(1, Ordering::Relaxed) + 1;
        let _one_at_a_time = self.inner.loading.lock().await;
        if self.inner.state.lock().await.done >= number {
            // Another call began to read after this was requested.
            return;
        }
        let requested = self.inner.requested.load(Ordering::Relaxed);
        // Read first, so that a correction made during the load is noticed.
        let generation = database.generation().await.ok();
        match database.load().await {
            Ok(loaded) => {
                let mut state = self.inner.state.lock().await;
                self.take(&mut state, loaded).await;
                state.done = requested;
            }
            Err(error @ DataError::Unavailable(_)) => self.trouble(&error),
            Err(error) => {
                self.refuse(generation, &error.to_string());
                let all = Page { after: None, limit: usize::MAX };
                let overrides = database.overrides(&OverrideFilter::default(), all).await.ok();
                let tokens = database.tokens().await.ok();
                let callers = database.callers().await.ok();
                let mut state = self.inner.state.lock().await;
                self.take_rest(&mut state, Rest { overrides, tokens, callers }).await;
                state.done = requested;
            }
        }
    }

    /// Compares the generation in force with the database's, and loads if they differ.
    pub(super) async fn confirm(&self, database: &Database) {
        let status = self.status();
        match database.generation().await.map(Some) {
            Ok(generation) if generation == status.generation => self.confirmed(),
            // Already rejected, and would be again.
            Ok(generation) if generation == status.refused_generation => self.database_answered(),
            Ok(_) => self.refresh_now().await,
            Err(error) => self.trouble(&error),
        }
    }

    /// Removes expired callers and overrides. Everything else in force stays, and the status of the
    /// database does not change.
    pub(super) async fn expire(&self) {
        let mut state = self.inner.state.lock().await;
        let now = Timestamp::now();
        let has_come = |at: Option<Timestamp>| at.is_some_and(|at| at <= now);
        if has_come(state.next_caller_expiry) {
            state.next_caller_expiry = self.inner.parts.set_callers(&state.callers, now);
            info!(callers = self.inner.parts.callers.len(), "callers in force");
        }
        if has_come(state.next_expiry) {
            self.compose_overrides(&mut state).await;
        }
    }

    /// Time at which the next override or caller expires.
    pub(super) async fn next_expiry(&self) -> Option<Timestamp> {
        let state = self.inner.state.lock().await;
        [state.next_expiry, state.next_caller_expiry].into_iter().flatten().min()
    }

    /// Puts rules of a file in force, with the current overrides, and returns their version.
    pub(crate) async fn put_rules(&self, rules: RuleSet) -> u64 {
        let mut state = self.inner.state.lock().await;
        state.rules = rules;
        let version = self.put_in_force(&state);
        self.change(|status| status.refused_file = None);
        version
    }

    /// Records that the rules of a file were rejected.
    pub(crate) fn refuse_rules(&self, why: &str) {
        self.inner.parts.metrics.reload_failed();
        self.change(|status| status.refused_file = Some(why.to_owned()));
    }

    /// Puts loaded contents in force, or rejects them as a whole.
    async fn take(&self, state: &mut State, loaded: Loaded) {
        self.inner.parts.guard.set_tokens(loaded.tokens.clone());
        let generation = loaded.generation;
        let now = Timestamp::now();
        self.put_callers(state, &loaded.callers);
        let of_database = matches!(self.inner.source, RulesSource::Database(_));
        let before = state.loaded.as_ref();
        let has_same_rules = before.is_some_and(|before| before.rules == loaded.rules);
        let has_same_overrides = before.is_some_and(|before| before.overrides == loaded.overrides);
        let has_expired = state.next_expiry.is_some_and(|at| at <= now);
        let is_new = has_expired || !has_same_overrides || (of_database && !has_same_rules);
        let known_rules = (!of_database || has_same_rules).then(|| state.rules.clone());
        let tiers_max = self.inner.tiers_max;
        // Building many rules and overrides would block other answers.
        let composed = spawn_blocking(move || {
            let rules = known_rules.map_or_else(|| compose::rules(&loaded.rules, tiers_max), Ok);
            let overrides = compose::overrides(&loaded.overrides, now);
            (rules.and_then(|rules| Ok((rules, overrides?))), loaded)
        });
        let Ok((composed, loaded)) = composed.await else { return };
        match composed {
            Ok((rules, overrides)) => {
                state.next_expiry = compose::next_expiry(&loaded.overrides, now);
                (state.rules, state.overrides) = (rules, overrides);
                if is_new {
                    let version = self.put_in_force(state);
                    let (rules, overrides) = (state.rules.rules().len(), state.overrides.len());
                    info!(generation, version, rules, overrides, "rules in force");
                }
                let overrides = state.overrides.len();
                self.change(|status| {
                    (status.generation, status.overrides) = (Some(generation), overrides);
                    (status.refused, status.refused_generation) = (None, None);
                });
                self.confirmed();
                self.keep(state, loaded);
            }
            Err(why) => {
                self.refuse(Some(generation), &why);
                let Loaded { overrides, tokens, callers, .. } = loaded;
                let (overrides, tokens) = (Some(overrides), Some(tokens));
                self.take_rest(state, Rest { overrides, tokens, callers: Some(callers) }).await;
            }
        }
    }

    /// Applies overrides, tokens and callers that can be read beside invalid rules: revoked tokens and
    /// callers and blocked subjects take effect with the last valid rules, also in the snapshot file.
    async fn take_rest(&self, state: &mut State, rest: Rest) {
        let Rest { overrides, tokens, callers } = rest;
        if let Some(tokens) = &tokens {
            self.inner.parts.guard.set_tokens(tokens.clone());
        }
        if let Some(callers) = &callers {
            self.put_callers(state, callers);
        }
        let Some(before) = state.loaded.clone() else { return };
        let loaded = Loaded {
            overrides: overrides.unwrap_or_else(|| before.overrides.clone()),
            tokens: tokens.unwrap_or_else(|| before.tokens.clone()),
            callers: callers.unwrap_or_else(|| before.callers.clone()),
            ..Loaded::clone(&before)
        };
        if loaded == *before {
            return;
        }
        let has_same_overrides = loaded.overrides == before.overrides;
        self.keep(state, loaded);
        if !has_same_overrides {
            self.compose_overrides(state).await;
        }
    }

    /// Puts the callers in force that have not expired.
    fn put_callers(&self, state: &mut State, callers: &[StoredCaller]) {
        state.next_caller_expiry = self.inner.parts.set_callers(callers, Timestamp::now());
        state.callers = callers.to_vec();
    }

    /// Puts the overrides in force that have not expired.
    async fn compose_overrides(&self, state: &mut State) {
        let Some(loaded) = state.loaded.clone() else { return };
        let now = Timestamp::now();
        state.next_expiry = compose::next_expiry(&loaded.overrides, now);
        let composed = spawn_blocking(move || compose::overrides(&loaded.overrides, now));
        let Ok(Ok(overrides)) = composed.await else { return };
        state.overrides = overrides;
        let version = self.put_in_force(state);
        let overrides = state.overrides.len();
        info!(version, overrides, "overrides in force");
        self.change(|status| status.overrides = overrides);
    }

    /// Keeps contents that are in force, in memory and in the snapshot file.
    fn keep(&self, state: &mut State, loaded: Loaded) {
        let loaded = Arc::new(loaded);
        self.inner.latest.send_if_modified(|latest| {
            let is_new = latest.as_ref() != Some(&loaded);
            *latest = Some(Arc::clone(&loaded));
            is_new
        });
        state.loaded = Some(loaded);
    }

    fn put_in_force(&self, state: &State) -> u64 {
        let Parts { limiter, metrics, .. } = &self.inner.parts;
        let rules = state.rules.clone().with_overrides(state.overrides.clone());
        let version = limiter.replace_rules(rules);
        metrics.reloaded(&limiter.rules(), Timestamp::now().seconds());
        version
    }

    fn refuse(&self, generation: Option<u64>, why: &str) {
        let version = self.inner.parts.limiter.rules().version();
        // Checked every second, but logged once.
        if self.status().refused.as_deref() != Some(why) {
            self.inner.parts.metrics.reload_failed();
            error!(
                generation,
                version,
                report = why,
                "rules rejected: the last valid ones stay in force"
            );
        }
        self.change(|status| {
            status.refused = Some(why.to_owned());
            status.refused_generation = generation;
        });
        self.database_answered();
    }

    /// Records that the database's contents are in force.
    fn confirmed(&self) {
        self.database_answered();
        self.change(|status| {
            status.confirmed_at = Some(Timestamp::now());
            status.from_file = None;
        });
    }

    fn database_answered(&self) {
        if self.status().down.is_some() {
            info!("the database answers again");
            self.change(|status| status.down = None);
        }
    }

    /// Records that the database does not answer. The rules in force stay.
    pub(super) fn trouble(&self, error: &DataError) {
        let down = error.to_string();
        if self.status().down.is_none() {
            warn!(trouble = %down, "the database does not answer: checks continue with the rules in force");
        }
        self.change(|status| status.down = Some(down.clone()));
    }

    fn change(&self, change: impl Fn(&mut Status)) {
        self.inner.status.change(change);
        self.notify_observers(&self.status());
    }

    fn notify_observers(&self, status: &Status) {
        let Parts { limiter, metrics, ready, .. } = &self.inner.parts;
        metrics.snapshot(status);
        ready.note(Check::Database, status.note());
        ready.trouble(Check::Database, status.down.is_some());
        let version = limiter.rules().version();
        let refused = status.all_refused();
        let note = |why: String| {
            format!(
                "the rules of version {version} stay in force, because the new ones are invalid:\n{why}"
            )
        };
        ready.trouble(Check::Rules, refused.is_some());
        ready.note(Check::Rules, refused.map(note));
    }
}
